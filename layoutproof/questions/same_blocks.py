"""Whether an answer at some number of blocks holds for any number: by induction over the steps of the kernel.

Along an axis of the grid, or in a loop, the state after step k is the reference's on a prefix, for each kind of step:
the two are compared, at points, with that many blocks in all. And isl shows that the steps of one kind are equal up to
the names of their elements. Anything else is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.questions.same_kept import kept_of_any
from layoutproof.questions.same_plan import Plan, TracedPair, traced
from layoutproof.values.at_points import not_same
from layoutproof.values.carried import Along, axes, loops, state
from layoutproof.values.floats import Floats
from layoutproof.values.pair import Pair, drawn, elements_of
from layoutproof.values.refusals import NotModelled, OutOfBounds
from layoutproof.values.uniform import Blocks, Varies, uniform
from layoutproof.values.walk import Prepared

COMPARED = (1, 2, 3, 5)
"""Numbers of blocks at which the two are compared, beside the given one."""
MOST_SCALED = 6
"""How often a number of blocks, or of a step, may scale data."""
MOST = 2**19
"""Elements of arguments and results at the given sizes; where there are more, nothing is said."""
SIZE = "blocks"


def any_number(plan: Plan, pair: TracedPair, tick: Callable[[str], None]) -> tuple[Blocks, ...]:
    """Of each axis along which a kernel keeps a state: that two which are the same are so for any number of blocks."""
    if any(i.value is not None for i in pair.arrays) or elements_of(pair.programs, pair.arrays) > MOST:
        return ()
    said = []
    for along in (*axes(pair.programs[0]), *loops(pair.programs[0])):
        tick(f"any number of blocks along {along.loop or f'program_id({along.axis})'}")
        try:
            said.append(_along(plan, pair, along))
        except Varies:
            continue
    # of several loops over the same blocks, none of which knows at which step it is, the first
    return tuple({(b.axis, b.along): b for b in reversed(said)}.values())[::-1]


def _along(plan: Plan, pair: TracedPair, along: Along) -> Blocks:
    """Raises Varies where it is not shown."""
    from jax import export

    from layoutproof.pallas.from_jax.adapter import blocks_with_names

    shapes = [i.shape for i in plan.arrays]
    if any(k >= len(shapes) for k, _ in along.widths):
        raise Varies("a cotangent")

    def at(blocks: Any) -> list[tuple[Any, ...]]:
        return [
            tuple(
                along.widths[k, d] * blocks - (along.widths[k, d] * along.blocks - n) if (k, d) in along.widths else n
                for d, n in enumerate(shape)
            )
            for k, shape in enumerate(shapes)
        ]

    lacks = [w * along.blocks - shapes[k][d] for (k, d), w in along.widths.items()]
    if any(not 0 <= n < w for n, w in zip(lacks, along.widths.values(), strict=True)):
        raise Varies("an extent that is not as many blocks")
    (name,) = export.symbolic_shape(SIZE)
    try:
        with blocks_with_names():
            every = traced(plan.at(at(name)))
    except LayoutError as problem:
        raise Varies(str(problem)) from None
    sizes = tuple(sorted((*axis, width) for axis, width in along.widths.items()))

    def shown() -> Blocks:
        return _shown(plan, every, along, at, any(lacks))

    return kept_of_any(plan, (along.axis, along.blocks, along.loop, sizes), [pair, every], shown)


def _shown(
    plan: Plan, every: TracedPair, along: Along, at: Callable[[object], list[tuple[object, ...]]], ragged: bool
) -> Blocks:
    """The same, once both are traced for any number of blocks. at: the shapes at some number."""
    shown = uniform(every.programs, SIZE)
    if shown.axis != along.axis:
        raise Varies("another axis")
    if shown.scaled > MOST_SCALED:
        raise Varies("data that are scaled by numbers of blocks too often")
    # so that there are more middle steps than numbers at which a difference may vanish
    scaled = range(1, 2 * shown.scaled + 4) if shown.scaled else ()
    many = sorted({*COMPARED, *scaled} - {along.blocks})
    for n in many:
        there = _traced(plan, at(n))
        why = not_same(Pair(there.programs, there.arrays, Prepared(), there.outputs))
        if why:
            raise Varies(f"at {n} blocks: {why}")
    last = _traced(plan, at(max(many)))
    try:
        draws = [(numbers := Floats(seed), drawn(numbers, last.arrays)) for seed in (1, 2)]
        found = state(last.programs[0], draws, along.axis)
    except (NotModelled, OutOfBounds) as problem:
        raise Varies(str(problem)) from None
    if found.counts or not (found.kept or shown.reduced):
        raise Varies("a state that counts" if found.counts else "an axis along which nothing is kept")
    kinds = ("first", "middle", "last") + (("ragged",) if ragged else ())
    names = tuple(f"{plan.arrays[k].name}[{d}]" for k, d in sorted(along.widths))
    return Blocks(along.axis, shown.reduced, kinds, names, tuple(sorted((*many, along.blocks))), along.loop)


def _traced(plan: Plan, shapes: list[tuple[object, ...]]) -> TracedPair:
    try:
        return traced(plan.at(shapes))
    except LayoutError as problem:
        raise Varies(str(problem)) from None
