"""The elements that an effect touches: every load, store and side of a copy, and an element of it as terms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from layoutproof.bodies import problems
from layoutproof.bodies.effects import Access, Effect, Index, Spot, StartedCopy, View, places
from layoutproof.bodies.values import Lost, aligned
from layoutproof.core.errors import Unsupported
from layoutproof.core.folding import TRUE, all_of, fold
from layoutproof.core.term import ZERO, Term


@dataclass(frozen=True, slots=True, eq=False)
class Touch:
    """One side of an effect. writes: whether it changes the memory.  does: the action, in words."""

    view: View
    spot: Spot
    writes: bool
    does: str
    effect: Effect


def touches(effect: Effect) -> Iterator[Touch]:
    """The reads and writes of an effect here; none for waits and signals."""
    match effect:
        case Access(kind, view, spot):
            does = {"read": "reads", "write": "writes", "add": "adds to"}[kind]
            yield Touch(view, spot, kind != "read", does, effect)
        case StartedCopy(source, target, _, spot, _, device):
            yield Touch(source, spot, False, "copies from", effect)
            if not device:
                yield Touch(target, spot, True, "adds to" if effect.adds else "copies into", effect)


def sizes_of(view: View) -> list[tuple[Term, int]]:
    """Of each dimension of a view its size, and what that is at most."""
    if view.dims is not None:
        return [(Term("int", extent), extent) for extent in view.dims]
    step = view.steps[-1]
    return [(p.size, extent) for p, extent in zip(step.slices, step.dims, strict=True) if not p.single]


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """Any element of a view. names: of its index in the view, with their extents.  place: in the reference.

    condition: that it is one, where the view's shape is not constant.  index: in the view.
    """

    names: dict[str, int]
    place: Index
    condition: Term
    index: Index


def any_element(view: View, prefix: str) -> Element:
    """Any element of a view, its index named `prefix` and a number. Unsupported where no term says its place."""
    names: dict[str, int] = {}
    index: list[Term] = []
    conditions: list[Term] = [TRUE]
    for k, (size, extent) in enumerate(sizes_of(view)):
        if size.op == "int" and size.args[0] == 1:
            index.append(ZERO)
            continue
        names[f"{prefix}{k}"] = extent
        index.append(Term("name", f"{prefix}{k}"))
        if size.op != "int":
            conditions.append(fold("<", index[-1], size))

    def part(count: int) -> Term:
        names[f"{prefix}{len(sizes_of(view))}"] = count
        return Term("name", f"{prefix}{len(sizes_of(view))}")

    place = places(view, tuple(index), part)
    if place is None:
        raise Unsupported(problems.BITCAST_ELEMENTS(view.reference.name))
    return Element(names, place, all_of(conditions), tuple(index))


def masked(touch: Touch, index: Index) -> tuple[list[Term], str]:
    """The condition that a mask lets an element of a view be touched, and a doubt where no term says it."""
    mask = getattr(touch.effect, "mask", None)
    if mask is None:
        return [], ""
    if len(mask.dims) <= len(touch.view.dims or ()):
        with suppress(Lost):
            return [mask.number(aligned(mask, touch.view.dims or (), index))], ""
    return [], problems.MASK_OF_ELEMENTS()


def same_place(first: Index, second: Index) -> Term:
    """The condition that two elements of one reference are the same."""
    return all_of([fold("==", a, b) for a, b in zip(first, second, strict=True) if a is not b])
