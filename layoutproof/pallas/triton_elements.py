"""Whether each element that a body of a kernel for Triton loads or stores lies in its block, and in its array.

A block is a view of its array: masks say which elements are touched, and nothing else stands before the array's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from layoutproof.bodies.claims import BodyClaim, asked
from layoutproof.bodies.effects import Body, Index, View, places
from layoutproof.bodies.row_major import reshaped
from layoutproof.bodies.touched import Touch, any_element, masked, touches
from layoutproof.core.claim import Claim
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import FALSE, any_of, fold
from layoutproof.core.message import Message, Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point, Verdict
from layoutproof.core.term import ZERO, Term
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Due, Obligation, undecided
from layoutproof.pallas import problems

PAST_ARRAY = Template(
    "pallas.body_in_bounds_past_array",
    "the body {what} element {place} of dimension {dim} of {name}, which has {extent}: no mask leaves it out",
)
PAST_BLOCK = Template(
    "pallas.body_in_bounds_past_block",
    "the body {what} element {place} of dimension {dim} of a block of {name}, which has {extent}: no mask leaves it "
    "out, and it is in another block, or in none",
)
WIDE = Template(
    "pallas.index_int32_offset",
    "the body {what} element {place} of {name}, which is {offset} elements from its start: JAX counts them in int32, "
    "as the array has no more than 2**32 bytes, and int32 ends at {limit}",
)
LOOK_AT_MASK = Template(
    "pallas.body_in_bounds_look_at_mask",
    "mask what is not there, as in mask=start + jnp.arange(block) < {extent}: Triton fills nothing up at the end of an "
    "array, and drops nothing there",
)
DEPENDS = Template(
    "pallas.body_in_bounds_element_depends", "which elements of {name} the body {what} depends on {lost}"
)
WHERE = Template("pallas.body_in_bounds_element_where", "which elements of {name} the body {what}")

INT32 = 1 << 31


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where an element is in one dimension of what a step of its view cuts. array: whether that is the array."""

    place: Term
    dim: int
    extent: int
    array: bool

    @property
    def outside(self) -> Term:
        """The condition that it is not there."""
        return any_of([fold("<", self.place, ZERO), fold("<=", Term("int", self.extent), self.place)])


def elements_inside(kernel: Kernel, body: Body) -> tuple[list[Due], int]:
    """A question for each load and store that may leave its block or its array, and how many there are of both."""
    found: list[Due] = []
    many = 0
    for effect in body.effects:
        for touch in touches(effect):
            many += 1
            if touch.view.steps:
                found.append(partial(_of, kernel, body, touch))
    return found, many


def offsets_in_int32(kernel: Kernel) -> Iterator[Obligation]:
    """A question for each access to an array of which JAX counts elements in int32 though it has more.

    Source: `_compute_offsets_from_indices` of jax/_src/pallas/triton/lowering.py, jax 0.10.2: offsets are of 64 bits
    where the array has more than 2**32 bytes, and an element has one at least.
    """
    body: Body | None = kernel.body if kernel.in_body else None
    for touch in (touch for effect in (() if body is None else body.effects) for touch in touches(effect)):
        dims = touch.view.reference.dims
        size = max(1, ELEMENT_BITS.get(touch.view.reference.dtype, 8) // 8)
        if body is not None and prod(dims) > INT32 and prod(dims) * size <= 2 * INT32:
            yield _wide(kernel, body, touch, dims)


def _wide(kernel: Kernel, body: Body, touch: Touch, dims: tuple[int, ...]) -> Obligation:
    name, what = touch.view.reference.name, touch.does
    try:
        element = any_element(touch.view, "at")
        (offset,) = reshaped(element.place, dims, (prod(dims),))
        held, doubt = masked(touch, element.index)

        def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> str:
            return WIDE(what, list(map(value, element.place)), name, value(offset), INT32 - 1)

        far = fold("<=", Term("int", INT32), offset)
        conditions = [*touch.spot.path, element.condition, *held, far]
        extra = [offset]
        found = asked(
            kernel, body, conditions, touch.spot.loops, element.names, explain, extra=extra, place=element.place
        )
    except Undecided as lost:
        return Obligation(name, undecided(DEPENDS(name, what, lost)), source=touch.spot.source)
    return _open_or_not(touch, found, doubt, found.claim)


def _open_or_not(touch: Touch, found: BodyClaim, doubt: str, claim: Claim) -> Obligation:
    """An answer, which is open where it is refuted by numbers that nothing says. doubt: of what a mask lets through."""
    name, what = touch.view.reference.name, touch.does
    lost = [*found.lost, *([doubt] if doubt else [])]
    open_ = {Verdict.REFUTED: problems.DEPENDS_ON(WHERE(name, what), " and ".join(lost))} if lost else {}
    source, tables = touch.spot.source, found.tables
    return Obligation(name, claim, bool(tables), source=source, leaves_open=open_, tables=tables)


def _of(kernel: Kernel, body: Body, touch: Touch) -> Obligation:
    name, what = touch.view.reference.name, touch.does
    try:
        element = any_element(touch.view, "at")
        entries = [e for e in _entries(touch.view, element.index) if e.outside is not FALSE]
        held, doubt = masked(touch, element.index)
        outside = any_of([entry.outside for entry in entries])

        def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> Message:
            return _said(next(e for e in entries if not 0 <= value(e.place) < e.extent), value, what, name)

        def hint(at: Point, on: Numbers) -> str:
            wrong = next(e for e in entries if not 0 <= found.value(e.place, at, on) < e.extent)
            return LOOK_AT_MASK(wrong.extent)

        found = asked(
            kernel,
            body,
            [*touch.spot.path, element.condition, *held, outside],
            touch.spot.loops,
            element.names,
            explain,
            extra=[entry.place for entry in entries],
            place=element.place,
        )
    except Undecided as lost:
        return Obligation(name, undecided(DEPENDS(name, what, lost)), source=touch.spot.source)
    return _open_or_not(touch, found, doubt, replace(found.claim, hint=hint))


def _said(entry: _Entry, value: Callable[[Term], int], what: str, name: str) -> Message:
    """What leaves a dimension, in words."""
    words = PAST_ARRAY if entry.array else PAST_BLOCK
    return words(what, value(entry.place), entry.dim, name, entry.extent)


def _entries(view: View, index: Index) -> Iterator[_Entry]:
    """Where an element of a view is, in each dimension that a step of the view cuts.

    The first step is the one to the block, where the block is not the array: it cuts the array.
    """
    for k in range(len(view.steps)):
        if view.steps[k].kind not in ("slices", "gather"):
            continue
        inner = places(View(view.reference, view.steps[k:]), index)
        for dim, (place, extent) in enumerate(zip(inner or (), view.steps[k].dims, strict=True)):
            yield _Entry(place, dim, extent, k == 0)
