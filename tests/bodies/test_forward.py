"""The one way over the effects of a body: in order, loop by loop, and how often a loop turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from layoutproof.bodies.effects import Access, Body, BodyReference, Effect, Handed, Loop, Spot, View
from layoutproof.bodies.forward import Here, Nest, forward, nested, nests_of, turns, within
from layoutproof.bodies.symbolic import Symbolic, named
from layoutproof.core.term import ONE, ZERO, Term

COUNTED, ASKED = Loop("loop0", Term("int", 2)), Loop("loop1", None)
ROW = BodyReference("x", "in", (8,), "f32", "vmem")
K = Term("name", "k")


def stores(*loops: tuple[Loop, ...]) -> tuple[Effect, ...]:
    return tuple(Access("write", View(ROW), Spot(k, (), around, "")) for k, around in enumerate(loops))


# before, in a loop, twice in a loop in it, in the loop again, behind, and in another loop
EFFECTS = stores((), (COUNTED,), (COUNTED, ASKED), (COUNTED, ASKED), (COUNTED,), (), (ASKED,))


class Numbers:
    """A domain: the numbers of the effects that happen, where a loop runs as long as its end is known."""

    def __init__(self, body: Body) -> None:
        self.body = body

    def effect(self, effect: Effect, here: Here, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*state, (effect.spot.number, here.turns))

    def loop(self, nest: Nest, here: Here, state: tuple[Any, ...]) -> tuple[Any, ...]:
        count = None if nest.loop.count is None else int(nest.loop.count.args[0])
        for inner, more in turns(self, nest.loop, count, here):
            state = forward(nest.parts, self, inner, state) if more is True else state
        return state

    def values(self, terms: Sequence[Term], here: Here) -> list[Any]:
        on = Symbolic(self.body, here.names, {}, here.turns, {})
        return [on(term) for term in terms]

    def handed(self, one: Handed, value: Any, here: Here) -> Any:
        return value

    def turned(self, loop: Loop) -> None:
        pass


def seen(goes_on: Term | None) -> tuple[Any, Here]:
    handed = (Handed("k", "k after", ASKED, ZERO, Term("+", K, Term("int", 3))),)
    known = {} if goes_on is None else {ASKED.name: goes_on}
    domain, here = Numbers(Body(effects=EFFECTS, goes_on=known, handed=handed)), Here({}, ())
    return forward(nested(EFFECTS), domain, here, ()), here


def test_effects_come_in_order_and_loops_turn_by_turn() -> None:
    """A loop that a condition ends runs while it holds; what it hands on is a number behind it."""
    happened, here = seen(Term("<", K, Term("int", 4)))
    inner = [[(2, (t, u)), (3, (t, u))] for t in (0, 1) for u in (0, 1)]
    once = [[(1, (t,)), *inner[2 * t], *inner[2 * t + 1], (4, (t,))] for t in (0, 1)]
    assert happened == ((0, ()), *once[0], *once[1], (5, ()), (6, (0,)), (6, (1,)))
    assert here.names["k after"] == 6


@pytest.mark.parametrize("goes_on", [None, Term("<", Term("name", "n"), ONE)])
def test_a_loop_whose_end_is_not_known_hands_nothing_on(goes_on: Term | None) -> None:
    """Nor does a condition that no term says: it was taken for one that fails at once."""
    happened, here = seen(goes_on)
    assert [number for number, _ in happened] == [0, 1, 4, 1, 4, 5]
    assert "k after" not in here.names


def test_loops_by_name_and_what_is_in_one_before_an_effect() -> None:
    nest = nests_of(Body(effects=EFFECTS[:6]))
    assert {name: (one.around, one.first, one.end) for name, one in nest.items()} == {
        "loop0": ((), 1, 5), "loop1": ((COUNTED,), 2, 4),
    }  # fmt: skip
    parts = nested(EFFECTS[:6])
    assert [p for p in within(parts, (), 5) if not isinstance(p, Nest)] == [EFFECTS[0]]
    assert within(parts, (COUNTED, ASKED), 3) == (EFFECTS[2],)
    assert within(parts, (ASKED,), 6) == ()
    assert within(parts, (COUNTED,), 2) == (EFFECTS[1],)


def test_what_a_run_knows_behind_a_loop_that_nobody_knows_the_end_of() -> None:
    """A name, no number: the loop may have run, and what it hands on may be anything."""
    from layoutproof.bodies.runs import ProgramWalk
    from layoutproof.kernel.kernel import Kernel

    body = Body(effects=EFFECTS[5:], handed=(Handed("k", "k after", ASKED, ZERO, ONE),))
    run, here = ProgramWalk(Kernel("k", (), (), ()), body, (), lambda table, at: 0), Here({}, ())
    run.loop(nests_of(body)[ASKED.name], here, None)
    assert here.names["k after"] == named("name", "k after", ())
