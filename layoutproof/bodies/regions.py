"""The elements that views show, as numbers at one place of a run: first ones, sizes and strides per dimension."""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.bodies.effects import View, ViewStep
from layoutproof.bodies.symbolic import Number, Symbolic, named, plus
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.kernel.kernel import Kernel

Run = tuple[Number, Number, int]
"""Start, size and stride in one dimension of a reference."""


@dataclass(frozen=True, slots=True)
class ViewedRegion:
    """The region of an array that a view shows: name, one run per dimension; exact: whether it shows all of that."""

    name: str
    runs: tuple[Run, ...]
    exact: bool


def array_of(kernel: Kernel, name: str) -> str:
    """One name for references that share a buffer; a window is a buffer of its own."""
    for source, target in kernel.aliases:
        if source >= 0 and kernel.inputs[source].name == name:
            operand, output = kernel.inputs[source], kernel.outputs[target]
            return output.name if operand.windowed == output.windowed else name
    return name


def region_of(kernel: Kernel, on: Symbolic, view: View) -> ViewedRegion:
    """The region of its array that a view shows; it is made once for an evaluator, which is of one kernel."""
    if view not in on.regions:
        on.regions[view] = _region(kernel, on, view)
    found: ViewedRegion = on.regions[view]
    return found


def _region(kernel: Kernel, on: Symbolic, view: View) -> ViewedRegion:
    runs: list[Run] = [(0, extent, 1) for extent in view.reference.dims]
    seen: list[int | None] = list(range(len(runs)))
    exact = True
    for step in view.steps:
        if step.kind == "slices" and len(seen) == len(step.slices) and exact:
            left: list[int | None] = []
            for k, piece in zip(seen, step.slices, strict=True):
                left += [] if piece.single else [k]
                if k is None:
                    continue
                start, _, stride = runs[k]
                size: Number = 1 if piece.single else on(piece.size)
                runs[k] = (plus(start, on(piece.start), stride), size, stride * piece.stride)
            seen = left
        elif step.kind == "reshape" and step is not view.steps[-1] and exact and _by_ones(step):
            wide = (k for k, extent in zip(seen, step.dims, strict=True) if extent != 1)
            seen = [None if extent == 1 else next(wide) for extent in step.after or ()]
        elif step.kind == "transpose":
            seen = [seen[d] for d in step.permutation]
        elif step is not view.steps[-1] or step.kind in ("slices", "gather"):
            exact = False
    return ViewedRegion(array_of(kernel, view.reference.name), tuple(runs), exact)


def _by_ones(step: ViewStep) -> bool:
    """Whether a reshape only adds dimensions of one element, or takes some away."""
    return [n for n in step.dims if n != 1] == [n for n in step.after or () if n != 1]


def bytes_of(on: Symbolic, view: View) -> Number:
    """The bytes of what a view shows."""
    sizes: list[Number] = []
    if view.dims is not None:
        sizes = list(view.dims)
    else:
        sizes = [on(piece.size) for piece in view.steps[-1].slices if not piece.single]
    total: Number = 1
    for size in sizes:
        if type(total) is int:
            total = plus(0, size, total)
        else:
            total = plus(0, total, size) if type(size) is int else named("*", total, size)
    bits = ELEMENT_BITS[view.dtype]
    if bits % 8 == 0:
        return plus(0, total, bits // 8)
    return -(-total * bits // 8) if type(total) is int else named("bytes", total, bits)


def common_element(on: Symbolic, left: ViewedRegion, right: ViewedRegion) -> tuple[int, ...] | bool | None:
    """An element in both; False where there is none, None where that is not known, True: some element has no number."""
    first: list[int] = []
    open_ = not (left.exact and right.exact)
    for (a, n, s), (b, m, t) in zip(left.runs, right.runs, strict=True):
        if n == 0 or m == 0:
            return False
        gap = plus(b, a, -1)
        sizes = on.interval(n), on.interval(m)
        if sizes[0] is not None and sizes[1] is not None:
            most, reach = (sizes[0][1] - 1) * s, (sizes[1][1] - 1) * t
            ends = on.interval(gap)
            if ends is not None and (ends[0] > most or ends[1] < -reach):
                return False
            if on.apart(gap) > max(most, reach):
                return False
        if type(gap) is not int or type(n) is not int or type(m) is not int:
            open_ = True
            continue
        found = _meeting(n, s, gap, m, t)
        if found is None:
            return False
        if type(a) is int:
            first.append(a + found)
    if open_:
        return None
    return tuple(first)


def _meeting(n: int, s: int, gap: int, m: int, t: int) -> int | None:
    """The least of 0, s, .., (n - 1) * s that is one of gap, gap + t, .., gap + (m - 1) * t."""
    if s == t == 1:
        low = max(0, gap)
        return low if low < min(n, gap + m) else None
    other = range(gap, gap + (m - 1) * t + 1, t)
    return next((x for x in range(0, (n - 1) * s + 1, s) if x in other), None)
