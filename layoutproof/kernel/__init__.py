"""A Pallas kernel as data and as text: grid, operands with blocks and index maps, tables, scratch memory.

May import core. Start at `kernel.py`, then `windows.py`, which element of an array a program sees.
"""
