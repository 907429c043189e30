"""Operations on Axe and CuTe layouts: a result is returned only when it satisfies its defining equation, else a reason.

`lp.algebra.axe` and `lp.algebra.cute` hold the public names, and `docs/algebra.md` an example of each. What is public
is what their `__all__` lists; their files hold what it is made of.
May import layouts, solvers and core. Start at `axe/tiling.py` or `cute/algebra.py`.
"""

from __future__ import annotations

from layoutproof.algebra import axe, cute
from layoutproof.core.errors import Reason

__all__ = ["Reason", "axe", "cute"]
