"""Axe layouts: canonical form, grouping, tiling, slices, direct sums, scopes. Start at `canonical.py`."""
