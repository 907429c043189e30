"""CuTe layouts: coalesce, composition, complement, inverses, divide, product. Start at `algebra.py`."""
