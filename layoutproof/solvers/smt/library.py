"""z3, with its native library from where z3 is installed.

By itself z3 looks in the current folder first: in the checkout of a stranger a file `libz3.so` would run as soon as a
question about products is asked. It looks in the folders of `builtins.Z3_LIB_DIRS` instead where they are named, and
after them in those of three variables, of which an empty or relative entry is the current folder again.

Source: z3/z3core.py of z3-solver 4.15.8 and 5.4.1 (`_default_dirs`, `Z3_LIB_DIRS`).
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from z3 import ArithRef, BitVecRef, BoolRef, CheckSatResult, Context, ExprRef, Solver

__all__ = ["ArithRef", "BitVecRef", "BoolRef", "CheckSatResult", "Context", "ExprRef", "Solver", "z3"]

_NAMED = "Z3_LIB_DIRS"
_KEPT = 31 << 20
"""Bytes of a block whose release makes the allocator keep what a context of z3 frees for the next one.

A context takes two blocks of 8 MiB. glibc gives memory back to the system where more than twice the largest block that
was ever released is free at its end, so that each context would fault in 4,128 pages anew: 16 ms of CPU time, where 2
are needed. It learns from blocks below 32 MiB. Source: mallopt(3), M_MMAP_THRESHOLD and M_TRIM_THRESHOLD; measured with
glibc 2.36 and z3 5.4.1, 2026-11.
"""


class _Folders(list[str]):
    """The folders to look in; of those from an environment variable only absolute paths are kept."""

    def extend(self, more: Iterable[str]) -> None:
        super().extend(filter(os.path.isabs, more))


def _z3() -> ModuleType:
    found = find_spec("z3")
    if found is not None and not hasattr(builtins, _NAMED):
        own = [os.path.abspath(folder) for folder in found.submodule_search_locations or ()]
        folders = [place for folder in own for place in (os.path.join(folder, "lib"), folder)]
        setattr(builtins, _NAMED, _Folders([*folders, os.path.join(sys.prefix, "lib")]))
        try:
            import z3
        finally:
            delattr(builtins, _NAMED)
    else:
        import z3
    library: ModuleType = z3
    return library


z3 = _z3()
# made and released here, and never touched
bytes(_KEPT)
