"""Numbers that a loop carries, as terms of its counter: constant steps, alternations, wrap-around.

>>> from layoutproof.bodies.effects import Loop
>>> i = Term("name", "carry1")
>>> forms = closed_form(Loop("loop1", None), {"carry1": Term("int", 3)}, {"carry1": Term("+", i, Term("int", 2))})
>>> str(forms["carry1"])
'loop1 * 2 + 3'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from layoutproof.bodies.effects import Loop
from layoutproof.bodies.terms import names_in, renaming, replaced
from layoutproof.bodies.wraps import unwrapped
from layoutproof.core.errors import Undecided
from layoutproof.core.folding import linear
from layoutproof.core.numbers import SizeNumbers
from layoutproof.core.term import ONE, ZERO, Term, every

MOST_TRIES = 60
"""Guesses that are tried for one loop."""


def closed_form(
    loop: Loop,
    starts: Mapping[str, Term | None],
    nexts: Mapping[str, Term | None],
    varying: frozenset[str] = frozenset(),
    fits: Callable[[Term], bool] = lambda term: True,
) -> dict[str, Term]:
    """Carried names whose value in iteration `loop.name` is a term; the others are missing.

    starts: the value of each before the first iteration; nexts: after an iteration, over the carried names and the
    counter. None where it is no term.  varying: names of numbers that each iteration has its own of.  fits: whether
    no `int32(..)` in a term over the counter loses anything.
    """
    counter = Term("name", loop.name)
    found: dict[str, Term] = {}
    for name, start in starts.items():
        following = nexts.get(name)
        if start is None or following is None:
            continue
        form = _alone(name, start, unwrapped(following), counter)
        if form is not None and following is not unwrapped(following):
            form = _held(name, form, following, fits)
        if form is None:
            form = _swapped(name, start, following, starts, nexts, counter)
        if form is not None:
            found[name] = form
    # values of the iteration before, from numbers that have terms by now
    progress = True
    while progress:
        progress = False
        for name, start in starts.items():
            following = nexts.get(name)
            if name in found or start is None or following is None:
                continue
            names = set(names_in(following))
            needed = names & set(starts)
            if needed <= set(found) and not names & varying and not any(part.op == "read" for part in every(following)):
                value = replaced(following, renaming({other: found[other] for other in needed}))
                before = replaced(value, renaming({loop.name: Term("-", counter, ONE)}))
                found[name] = Term("select", Term("==", counter, ZERO), start, before)
                progress = True
    return found


def _held(name: str, form: Term, following: Term, fits: Callable[[Term], bool]) -> Term | None:
    """A form that was found without regard to what 32 bits lose, as they hold it; None where that is not known."""
    if fits(replaced(following, renaming({name: form}))):
        return form
    # a number with a constant step has it in 32 bits, too
    moves = difference(unwrapped(following), Term("name", name)) is not None
    return Term("int32", form) if moves else None


def rounds(
    loop: Loop,
    starts: Mapping[str, Term | None],
    nexts: Mapping[str, Term | None],
    known: Mapping[str, Term],
    holds: Callable[[Term], bool],
) -> dict[str, Term]:
    """Carried names that count how often others have gone round, as the ids of a grid that one loop runs through do.

    Guesses are proved: a guess is kept if the claim holds that a step keeps it. starts, nexts: as for `closed_form`.
    known: the terms of the names that have one.  holds: whether a condition on the loop's counter always holds.
    """
    counter = Term("name", loop.name)
    found: dict[str, Term] = {}
    periods = [f.args[1].args[0] for f in known.values() if f.op == "%" and f.args[1].op == "int"]
    tries = 0
    progress = True
    while progress and periods and tries < MOST_TRIES:
        progress = False
        for name, start in starts.items():
            following, all_known = nexts.get(name), {**known, **found}
            if name in all_known or start is None or following is None or start.op != "int":
                continue
            needed = set(names_in(following)) & set(starts)
            if not needed <= {*all_known, name} or any(part.op == "read" for part in every(following)):
                continue
            for period, (size, guess) in product(dict.fromkeys(periods), _guesses(name, unwrapped(following))):
                form = guess(start, counter, period, loop.count)
                tries += 1
                ahead = replaced(form, renaming({loop.name: Term("+", counter, ONE)}))
                step = replaced(following, renaming({**all_known, name: form}))
                first = replaced(form, renaming({loop.name: ZERO}))
                if difference(first, start) == 0 and holds(Term("==", step, ahead)):
                    found[name] = form
                    periods += [period * size] if size > 1 else []
                    progress = True
                    break
    return found


Guess = Callable[[Term, Term, int, Term | None], Term]


def _guesses(name: str, following: Term) -> list[tuple[int, Guess]]:
    """Guesses for a name that moves by one in some iterations: (its period, the term)."""
    own = Term("name", name)
    if following.op != "select":
        return []
    condition, yes, no = following.args
    size = difference(condition.args[1], ZERO) if condition.op == "==" else None
    if size is not None and size > 0 and difference(yes, ZERO) == 0 and no.op == "select":
        return [(size, lambda start, t, by, count: Term("%", _turned(start, t, by), Term("int", size)))]
    steps = {difference(case.args[0] if case.op == "%" else case, own) for case in (yes, no)}
    if steps != {0, 1}:
        return []

    def held(start: Term, t: Term, by: int, count: Term | None) -> Term:
        # the last iteration fetches nothing more
        last = t if count is None else Term("min", t, Term("-", count, ONE))
        return _turned(start, last, by)

    return [(1, lambda start, t, by, count: _turned(start, t, by)), (1, held)]


def _turned(start: Term, t: Term, by: int) -> Term:
    return linear([(1, Term("//", t, Term("int", by))), (1, start)])


def _alone(name: str, start: Term, following: Term, counter: Term) -> Term | None:
    own = Term("name", name)
    if following.op == "name" and following.args[0] == name:
        return start
    step = difference(following, own)
    if step is not None:
        return _moved(start, step, counter)
    if following.op == "%" and following.args[1].op == "int":
        # a number that wraps around at a width, or a ring of buffers
        step, whole = difference(following.args[0], own), following.args[1]
        if step is not None and start.op == "int" and 0 <= start.args[0] < whole.args[0]:
            return Term("%", _moved(start, step, counter), whole)
    if following.op == "select":
        return _wrapped(own, start, following, counter)
    total = difference(Term("+", following, own), ZERO)
    if total is not None:
        # k - x: two values in turn
        return Term(
            "select", Term("==", Term("%", counter, Term("int", 2)), ZERO), start, Term("-", Term("int", total), start)
        )
    return None


def _wrapped(own: Term, start: Term, following: Term, counter: Term) -> Term | None:
    """`select(x + 1 == n, 0, x + 1)`: counts round n."""
    condition, yes, no = following.args
    if condition.op != "==" or difference(yes, ZERO) != 0 or difference(no, own) != 1:
        return None
    step = difference(condition.args[0], own)
    size = difference(condition.args[1], ZERO)
    if step is None or size is None or start.op != "int":
        return None
    size = size + 1 - step
    if size < 1 or not 0 <= start.args[0] < size:
        return None
    return Term("%", _moved(start, 1, counter), Term("int", size))


def once_round(
    starts: Mapping[str, Term | None], nexts: Mapping[str, Term | None], known: Mapping[str, Term], end: Term
) -> list[str]:
    """Carried names that are the loop's counter, and 0 again after the last one of `end` iterations.

    So is the id of a grid of one dimension whose extent the running program computes, `select(x + 1 == end, 0, x + 1)`:
    in iteration t < end it is t, and t + 1 == end holds in the last one alone. With no iteration it is 0, too.
    starts, nexts: as for `closed_form`.  known: the terms of names that have one.

    >>> x, n = Term("name", "carry1"), Term("name", "final2")
    >>> ahead = Term("+", x, ONE)
    >>> once_round({"carry1": ZERO}, {"carry1": Term("select", Term("==", ahead, n), ZERO, ahead)}, {}, n)
    ['carry1']
    """
    found = []
    for name, start in starts.items():
        following, own = nexts.get(name), Term("name", name)
        if name in known or start is None or following is None or difference(start, ZERO) != 0:
            continue
        step = unwrapped(following)
        if step.op != "select" or step.args[0].op != "==":
            continue
        (reached, whole), again, ahead = step.args[0].args, *step.args[1:]
        around = difference(again, ZERO) == 0 and difference(ahead, own) == 1 and difference(reached, own) == 1
        if around and replaced(whole, renaming(known)) == end:
            found.append(name)
    return found


def _swapped(
    name: str,
    start: Term,
    following: Term,
    starts: Mapping[str, Term | None],
    nexts: Mapping[str, Term | None],
    counter: Term,
) -> Term | None:
    """Two that change places in every iteration."""
    if following.op != "name" or following.args[0] not in starts:
        return None
    other = following.args[0]
    back, theirs = nexts.get(other), starts[other]
    if back is None or theirs is None or back.op != "name" or back.args[0] != name:
        return None
    return Term("select", Term("==", Term("%", counter, Term("int", 2)), ZERO), start, theirs)


def _moved(start: Term, step: int, counter: Term) -> Term:
    return linear([(1, start), (step, counter)])


def difference(left: Term, right: Term) -> int | None:
    """left - right where that is one number for all values of the names in them."""
    sizes = SizeNumbers()
    try:
        value: Any = left.evaluate({}, sizes) - right.evaluate({}, sizes)
    except (Undecided, TypeError, RecursionError):
        return None
    return value if type(value) is int else None
