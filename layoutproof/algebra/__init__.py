"""Operations on Axe and CuTe layouts: a result is returned only when it satisfies its defining equation, else a reason.

May import layouts, solvers and core. Start at `axe/tiling.py` or `cute/algebra.py`.
"""
