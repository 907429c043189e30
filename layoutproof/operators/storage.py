"""The part of an Axe layout that each owner (thread, device) holds: `{storage: A}`, or `{storage: [A, "m, F"]}`.

Axes that number owners are dropped from D, R and O; what stays is memory. The second form names the memory axes, where
they have names that are not known.
No result: an axis that is neither known nor named as memory.
Example: `{storage: "S[(2,32,2,64):(1@gpuid,128@m,2@gpuid,1@m)]"}` is `S[(32,64):(128,1)]`: 32 rows of 64, 128 apart.
Source: apache/tvm `python/tvm/tirx/layout.py` at 5d4dc87213 (`storage`).
"""

from __future__ import annotations

from layoutproof.algebra.axe.width import storage
from layoutproof.algebra.problems import NO_AXIS
from layoutproof.core.errors import LayoutError, Reason, shorten
from layoutproof.layouts.axe.layout import AxeLayout

OF = AxeLayout
LAYOUTS = 1
ARGUMENT = "memory"
OPTIONAL = True
EQUATION = "T(y) = the memory axes of A(x), for the x with the digits y on them and 0 on the others"


def apply(layout: AxeLayout, memory: object = None) -> AxeLayout | Reason:
    """What one owner holds, or why that is not known. LayoutError for axes that cannot be read or are not there."""
    if memory is None:
        return storage(layout)
    axes = memory.split(",") if isinstance(memory, str) else memory
    if not isinstance(axes, list) or not all(isinstance(axis, str) for axis in axes):
        raise LayoutError(f'memory axes are written "m, F", not {shorten(repr(memory), 60)}')
    names = [axis.strip() for axis in axes]
    for name in names:
        if name not in layout.axes():
            raise LayoutError(NO_AXIS(layout, name, ", ".join(layout.axes())))
    return storage(layout, names)
