"""The grid has at least one program.

Why it matters: a grid with an extent of 0 runs nothing and says nothing; every output is whatever was in memory.
Refuted by: the grid dimension and its extent. Extents known at run time only are assumed to be at least 1.
Example: grid (n // 256,) of an array with 100 rows.
Mend: pl.cdiv(n, 256), or return early where there is nothing to do.
"""

from __future__ import annotations

from layoutproof.core.kernel import Kernel
from layoutproof.core.obligation import Obligation

TARGET = False


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One, about the whole grid."""
    broken = [f"grid dimension {k} has {n} programs" for k, n in enumerate(kernel.grid) if type(n) is int and n < 1]
    return (Obligation("grid", broken="; ".join(broken), mend=lambda point, on: "use pl.cdiv instead of //"),)
