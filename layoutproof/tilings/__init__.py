"""Search: the best tilings under a target's constraints, each proved legal, with a certificate that none is better.

A search file is YAML with a top-level key `search` and one of: `kernel` (grid, BlockSpecs, scratch) or `trace` (your
function) with `tune` (names and their candidates), `layouts` (the fewest padded bytes), `padding`, `shardings`.
`target` says which hardware. `search_model.py` is the manual of every key; specs/search has one file of each kind.
Start at `file.py`: a file to its answer.
"""

from __future__ import annotations
