"""Layout languages: text <-> data <-> index map, deciding nothing. A folder or file each; its name is the language's.

May import core and kernel. A language has `read`, `looks_like` and a frozen class with `index_map()`.
Start at `strided.py`.
"""
