"""Whether the threads of a program of Triton may find their own program's loads and stores in another order.

A program is a block of threads, each of which has some elements of an array. Nothing orders what two of them do in
global memory but `debug_barrier`, and which thread has which element is the compiler's choice: a load of what the
program stored, or stores that meet, are not known to come in the order of the code.
A store after a load of the same elements is in order, since it needs what was loaded, or the same threads do both.
Source: the lowering of `debug_barrier` in jax/_src/pallas/triton/primitives.py, jax 0.10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

from layoutproof.bodies.claims import Beside, BodyClaim, asked
from layoutproof.bodies.effects import Access, Body, Loop, Spot
from layoutproof.bodies.memory import described
from layoutproof.bodies.memory_state import conditions_of
from layoutproof.bodies.terms import inlined, names_in
from layoutproof.bodies.touched import Touch, any_element, masked, same_place, touches
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import TRUE, all_of, any_of, fold
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point, Verdict
from layoutproof.core.term import Term, every
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Due, Obligation, undecided
from layoutproof.pallas import problems

OWN_ORDER = Template(
    "pallas.body_races_own_order",
    "whether the threads of a program keep the order of {first} and {second} of an element of {name}: no debug_barrier "
    "is between them",
)
TWICE = Template("pallas.body_races_twice", "whether a store writes two elements to one place of {name}")
DOES_BOTH = Template("pallas.body_races_does_both", "program {program} does both at {name}{place}")
STORES_TWICE = Template(
    "pallas.body_races_stores_twice",
    "program {program} stores two elements to {name}{place} at once: which of them stays is chance",
)


def of_own_threads(kernel: Kernel, pair: Beside) -> Iterator[Due]:
    """A question for each two accesses of a program, and for each store whose places a list says."""
    body: Body = kernel.body
    own: dict[str, list[Touch]] = {}
    for touch in (touch for effect in body.effects for touch in touches(effect)):
        own.setdefault(touch.view.reference.name, []).append(touch)
    for name, those in own.items():
        for first, later in product(those, those):
            here, after = _may_turn(body, first, later)
            if here or after:
                yield partial(_in_order, kernel, pair, name, first, later, here, after)
        for touch in those:
            if touch.writes and not _of_one_kind(touch) and any(step.kind == "gather" for step in touch.view.steps):
                yield partial(_once, kernel, pair, name, touch)


def _of_one_kind(touch: Touch) -> str:
    return touch.effect.atomic if isinstance(touch.effect, Access) else ""


def _common(first: Touch, later: Touch) -> list[Loop]:
    pairs = zip(first.spot.loops, later.spot.loops, strict=False)
    return [one for one, other in pairs if one is other]


def _may_turn(body: Body, first: Touch, later: Touch) -> tuple[bool, bool]:
    """Whether `first` is done before `later`, in one iteration and in a later one, and nothing keeps them in order."""
    if not (first.writes or later.writes) or (_of_one_kind(first) and _of_one_kind(later)):
        return False, False
    common = _common(first, later)
    # where the view is the same the same threads have the same elements, and each does what it does in order
    alike = later.writes and [*map(described, first.view.steps)] == [*map(described, later.view.steps)]
    still = alike and not _moves(body, first, common)
    between = [b for b in body.barriers if _everywhere(b, common, first, later)]
    here = first.spot.number < later.spot.number and not alike
    here = here and not any(first.spot.number < b.number <= later.spot.number for b in between)
    after = bool(common) and not still and not any(common[-1] in b.loops for b in between)
    return here, after


def _moves(body: Body, touch: Touch, loops: Sequence[Loop]) -> bool:
    """Whether where an access is may change from iteration to iteration."""
    terms = [inlined(body.definitions, term) for term in conditions_of(touch.spot, touch.view)]
    names = {name for term in terms for name in names_in(term)}
    fixed = not names & set(body.unknowns) and not any(part.op == "read" for term in terms for part in every(term))
    return bool(names & {loop.name for loop in loops}) or not fixed


def _everywhere(barrier: Spot, common: Sequence[Loop], first: Touch, later: Touch) -> bool:
    """Whether a barrier is reached wherever two accesses are done, in the same iterations."""
    conditions = [c for c in first.spot.path if any(c is other for other in later.spot.path)]
    inside = [loop for loop in barrier.loops if not any(loop is one for one in common)]
    return not inside and all(any(c is other for other in conditions) for c in barrier.path)


def _in_order(
    kernel: Kernel, pair: Beside, name: str, first: Touch, later: Touch, here: bool, after: bool
) -> Obligation:
    """That two accesses of one program never meet: where they may, it is not known in what order they do.

    here, after: as of `_may_turn`.
    """
    what = OWN_ORDER(_said(first), _said(later), name)
    common = [Term("name", loop.name) for loop in _common(first, later)]
    same = all_of([Term("==", turn, pair.other(turn)) for turn in common])
    ways = [same] if here else []
    if after:
        ways += [
            all_of([*(Term("==", turn, pair.other(turn)) for turn in common[:k]), Term("<", turn, pair.other(turn))])
            for k, turn in enumerate(common)
        ]
    found = _meeting(kernel, pair, name, first, later, [any_of(ways)], what)
    return found if isinstance(found, Obligation) else _answered(found[0], name, later, what)


def _once(kernel: Kernel, pair: Beside, name: str, touch: Touch) -> Obligation:
    """That no two elements of what a program stores at once have one place."""
    what = TWICE(name)
    turns = [Term("name", loop.name) for loop in touch.spot.loops]
    same = [Term("==", turn, pair.other(turn)) for turn in turns]
    found = _meeting(kernel, pair, name, touch, touch, same, what, apart=True)
    if isinstance(found, Obligation):
        return found
    claim, doubt = found
    return _answered(claim, name, touch, " and ".join([*claim.lost, *([doubt] if doubt else [])]) and what)


def _answered(found: BodyClaim, name: str, touch: Touch, open_: str) -> Obligation:
    """open_: why a violation is none for sure, "" where it is one."""
    leaves_open = {Verdict.REFUTED: open_} if open_ else {}
    return Obligation(
        name, found.claim, bool(found.tables), source=touch.spot.source, leaves_open=leaves_open, tables=found.tables
    )


def _meeting(
    kernel: Kernel,
    pair: Beside,
    name: str,
    first: Touch,
    later: Touch,
    conditions: Sequence[Term],
    what: str,
    apart: bool = False,
) -> tuple[BodyClaim, str] | Obligation:
    """The claim that two accesses of one program meet in an element, and a doubt of it; or why it cannot be said.

    apart: whether they are two elements of what is accessed at once.
    """
    ids = [Term("name", n) for n in kernel.grid_names]
    try:
        one, two = any_element(first.view, "at"), any_element(later.view, "there")
        (mine, doubt), (theirs, other_doubt) = masked(first, one.index), masked(later, two.index)
        there = tuple(map(pair.other, two.place))
        differ = (
            any_of([fold("!=", a, pair.other(b)) for a, b in zip(one.index, two.index, strict=True)]) if apart else TRUE
        )

        def explain(at: Point, on: Numbers, value: Callable[[Term], int]) -> str:
            return (STORES_TWICE if apart else DOES_BOTH)(at["first"], name, list(map(value, one.place)))

        found = asked(
            kernel,
            pair.body,
            [
                *(Term("==", term, pair.other(term)) for term in ids),
                *conditions,
                *first.spot.path,
                *map(pair.other, later.spot.path),
                one.condition,
                pair.other(two.condition),
                *mine,
                *map(pair.other, theirs),
                differ,
                same_place(one.place, there),
            ],
            (*first.spot.loops, *pair.loops(later.spot.loops)),
            {**one.names, **{f"{k}_2": extent for k, extent in two.names.items()}},
            explain,
            programs=pair.programs,
            place=one.place,
        )
    except Undecided as lost:
        return Obligation(name, undecided(problems.DEPENDS_ON(what, lost)), source=later.spot.source)
    return found, doubt or other_doubt


def _said(touch: Touch) -> str:
    line = touch.spot.source.rpartition(":")[2]
    kind = "a store" if touch.writes else "a load"
    return f"{kind} at line {line}" if line else kind
