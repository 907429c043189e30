"""Comparisons at equal numbers, which random points never meet: `x >= y` and `x > y` are one function at every point.

Both programs are walked over once, and what is compared with what is noted. Where one has a comparison that the other
has not, or has the other way round, its equal numbers are looked for: among whole numbers, of which many are equal,
and among integers that are drawn. A program that never met equal numbers has not been compared there. So it is with
bounds of integers: that of two clamps one ends at 90 and one at 91 is seen by numbers from there on alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from layoutproof.ir.program import Equation
from layoutproof.values.contractions import ORDERED
from layoutproof.values.floats import Floats, array_of
from layoutproof.values.kinds import D, NumberKind, Shaped
from layoutproof.values.known import Known
from layoutproof.values.pair import Input, Pair, with_integers
from layoutproof.values.parting import at_a_point, named
from layoutproof.values.points import Points
from layoutproof.values.refusals import NotModelled, OutOfBounds
from layoutproof.values.walk import Prepared, Walk
from layoutproof.values.witness import WHOLE, told, where_equal

Key = tuple[str, str, str]
"""What is compared: "<" or "=", and the names of both sides; of `a >= b` those of `a < b`, which it is not."""
_TURNED = {"lt": False, "ge": False, "gt": True, "le": True}
"""Whether a comparison is `a < b`, or it not, or that of `b < a`."""


_BOUNDED = ("max", "min", "clamp", "rem", "div", "and")
"""Primitives that make integers others from some number on: as if they were compared with it."""


class _Noting(Walk):
    """A walk that notes comparisons. keys: of each its equation, and whether all of it is known.

    met: of each equation which of "<", "=" and ">" it met among numbers.
    """

    def __init__(self, numbers: NumberKind[D], prepared: Prepared) -> None:
        super().__init__(numbers, prepared)
        self.keys: dict[Key, tuple[Equation, bool]] = {}
        self.met: dict[Equation, set[str]] = {}

    def _results(self, equation: Equation, operands: list[Shaped]) -> Sequence[Shaped]:
        name = equation.primitive.name
        if name in _TURNED or name in ("eq", "ne"):
            self._note(equation, name, *operands)
        elif name in _BOUNDED and all(isinstance(o, Known) for o in operands):
            for other in operands[1:]:
                self._note(equation, "lt", operands[0], other)
        elif name in ORDERED:
            self._note_first(equation, operands[0])
        elif name == "sign":
            zero = Known(np.zeros(()))
            self._note(equation, "lt", operands[0], zero)
            self._note(equation, "gt", operands[0], zero)
        return super()._results(equation, operands)

    def _note_first(self, equation: Equation, value: Shaped) -> None:
        """Of which several are equally great, the first one is taken: by another order it is another one."""
        axes = tuple(equation.params["axes"])
        if isinstance(value, Known) or not self.numbers.exact:
            array = np.asarray(array_of(value))
            for best in (array.max(axes, keepdims=True), array.min(axes, keepdims=True)) if array.size else ():
                if ((array == best).sum(axes) > 1).any():
                    self.met.setdefault(equation, set()).add("=")
        if self.numbers.exact:
            key = "=", named(value), f"first along {axes}"
            self.keys.setdefault(key, (equation, isinstance(value, Known) and not value.sampled))

    def _note(self, equation: Equation, name: str, a: Shaped, b: Shaped) -> None:
        one, other = (array_of(x) if isinstance(x, Known) or not self.numbers.exact else None for x in (a, b))
        if one is not None and other is not None:
            met = self.met.setdefault(equation, set())
            # where many numbers may be equal, 0 is a special one
            equal = np.equal(one, other) & ((np.asarray(one) != 0) | (not np.any(one)) | (not np.any(other)))
            for word, holds in (("<", np.less(one, other)), ("=", equal), (">", np.greater(one, other))):
                if word not in met and holds.any():
                    met.add(word)
        if not self.numbers.exact:
            return
        names = named(a), named(b)
        known = one is not None and other is not None
        first, second = names[::-1] if _TURNED.get(name) else names if name in _TURNED else sorted(names)
        self.keys.setdefault(("<" if name in _TURNED else "=", first, second), (equation, known))


def untied(pair: Pair, draws: Sequence[Sequence[Input]]) -> tuple[str, str]:
    """(Why equal numbers may tell two programs apart that no point does, where), "" where nothing says so.

    draws: the inputs with integers, several times; the drawn values of those that were not given.
    """
    given = [pair.given(inputs) for inputs in (with_integers(pair.inputs), *draws)]
    met: dict[Equation, set[str]] = {}
    odd = _compared_otherwise(given, met)
    if odd is None:
        return "what is compared in it cannot be looked through", ""
    if not odd:
        return "", ""
    for seed, each in (*((seed, given[0]) for seed in range(1, WHOLE + 1)), *((1, each) for each in given[1:])):
        found = where_equal(each, seed)
        if found is not None:
            return f"no point tells them apart, and float64 does on whole numbers: {told(found)}", ""
        with suppress(NotModelled, OutOfBounds):
            for side in each.sides:
                walk = _Noting(Floats(seed, whole=True, numbers=each.prepared.numbers), each.prepared)
                with np.errstate(all="ignore"):
                    walk.run(side, each.draw(walk.numbers))
                _add(met, walk.met)
    for equation, known in odd.items():
        lacks = (set("<=>") if known else {"="}) - met.get(equation, set())
        if lacks:
            what = "equal numbers" if "=" in lacks else "numbers of which the first is the less, and the greater"
            why = f"one of the two compares what the other does not compare so, and what was tried has no {what} there"
            return why, str(equation.source)
    return "", ""


def _compared_otherwise(given: Sequence[Pair], met: dict[Equation, set[str]]) -> dict[Equation, bool] | None:
    """The comparisons that one of two programs has and the other has not, and whether all of each is known; None where
    a point is not modelled.

    given: the pair with integers, several times.  met: takes in which of "<", "=" and ">" each comparison met.
    """
    odd: dict[Equation, bool] = {}
    texts: dict[Equation, list[set[Key]]] = {}
    for pair in given:
        walks = _points(pair)
        if walks is None:
            return None
        mine, theirs = (walk.keys for walk in walks)
        for one, other in ((mine, theirs), (theirs, mine)):
            for key, (equation, known) in one.items():
                if key not in other and (known or key[0] == "=" or (key[0], key[2], key[1]) in other):
                    odd[equation] = odd.get(equation, False) or known
        for walk in walks:
            _add(met, walk.met)
            for equation in walk.met:
                texts.setdefault(equation, []).append({k for k, (of, _) in walk.keys.items() if of is equation})
    # numbers that are the same for all integers do not rest on them
    return {e: known for e, known in odd.items() if not known or any(keys != texts[e][0] for keys in texts[e])}


def _add(met: dict[Equation, set[str]], more: Mapping[Equation, set[str]]) -> None:
    for equation, words in more.items():
        met.setdefault(equation, set()).update(words)


def _points(pair: Pair) -> list[_Noting] | None:
    """Both programs walked over at one point; None where that is not modelled."""

    def of(numbers: Points) -> list[_Noting]:
        walks = [_Noting(numbers, pair.prepared) for _ in pair.sides]
        values = pair.draw(numbers)
        for walk, side in zip(walks, pair.sides, strict=True):
            walk.run(side, values)
        return walks

    return at_a_point(of, pair.prepared)
