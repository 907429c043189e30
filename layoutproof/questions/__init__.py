"""Questions asked of layouts: `ask`, `locate`, `table`, `pack`, `unpack`, `convert`.

May import pallas, registry, solvers, layouts, hardware, compiler. Start at `ask.py`.
"""
