"""The operands of one element, counted on plain integers: the replay of what relations say.

Programs are gone through backwards from the last one that shows the element, conditions and places are evaluated as
they are written. Nothing of it is shared with isl but the sums of products themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np

from layoutproof.core.errors import Unsupported
from layoutproof.core.numbers import INTS
from layoutproof.core.products import CallMemory, LexicographicCall, Monomial, Named, Output, Sum
from layoutproof.core.term import Term
from layoutproof.solvers.arrays import ArrayNumbers
from layoutproof.solvers.interval import Interval, IntervalNumbers

Array = np.ndarray[Any, Any]
Names = Mapping[str, int | Array]
"""What names are, in each of some rows."""
Operand = tuple[str, tuple[int, ...]]
Count = Mapping[tuple[Operand, ...], Fraction | int]
"""How often each product stands in an element."""

MOST_TERMS, MOST_PROGRAMS = 2**20, 20_000
"""Products of one element, and programs that are gone through, on plain integers."""
ARRAYS = ArrayNumbers(np)


class Counts:
    """Counts of one function. sizes: the values of its names for sizes."""

    def __init__(self, calls: Sequence[LexicographicCall], sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self.outputs: dict[str, tuple[LexicographicCall, Output]] = {}
        self.states: dict[str, tuple[LexicographicCall, CallMemory, bool]] = {}
        for call in calls:
            self.outputs |= {o.source: (call, o) for o in call.outputs.values()}
            for state in call.states.values():
                self.states |= {state.before: (call, state, False), state.after: (call, state, True)}
        self.gone = self.products = 0
        self._known: dict[Operand, tuple[Count, bool]] = {}

    def element(self, whole: Sum, names: Mapping[str, int]) -> tuple[Count, bool]:
        """One element: how often each product stands in it (as a rational), and whether it is undefined."""
        names = {**self.sizes, **names}
        total: Any = Counter()
        for m in whole.numbers:
            self._count(total, m, names)
        return total, any(self._undefined(m, names) for m in whole.undefined)

    def _choices(self, m: Monomial, names: Mapping[str, int]) -> tuple[int, Names]:
        """The choices of bound names for which the conditions hold: (how many, every name as an array)."""
        self.gone += 1
        if self.gone > 40 * MOST_PROGRAMS:
            raise Unsupported("more steps than are counted on plain integers")
        if not m.bound and not m.unless:
            return int(all(bool(c.evaluate(names, INTS)) for c in m.when)), dict(names)
        every: dict[str, int | Array] = dict(names)
        held = np.ones(_extended(every, m.bound, 1), bool)
        for c in m.when:
            held &= np.asarray(c.evaluate(every, ARRAYS), bool)
        every, many = _rows(every, held), int(held.sum())
        for named, c in m.unless:
            inner: dict[str, int | Array] = {**every, "": np.arange(many)}
            rows = _extended(inner, named, many)
            met = np.broadcast_to(np.asarray(c.evaluate(inner, ARRAYS), bool), (rows,))
            left = np.ones(many, bool)
            left[cast(Array, inner[""])[met]] = False
            every, many = _rows(every, left), int(left.sum())
        return many, every

    def _places(self, index: Sequence[Term], many: int, every: Names) -> list[tuple[int, ...]]:
        columns = [np.broadcast_to(np.asarray(t.evaluate(every, ARRAYS), np.int64), (many,)).tolist() for t in index]
        return list(zip(*columns, strict=True)) if columns else [()] * many

    def _count(
        self, total: MutableMapping[tuple[Operand, ...], Fraction | int], m: Monomial, names: Mapping[str, int]
    ) -> None:
        many, every = self._choices(m, names)
        if not many:
            return
        rows = [[(f.source, at) for at in self._places(f.index, many, every)] for f in m.factors]
        for operands in zip(*rows, strict=True) if rows else [()] * many:
            for key, count in self._expanded(operands):
                self.products += 1
                if self.products > MOST_TERMS:
                    raise Unsupported(f"more than {MOST_TERMS:,} products on plain integers")
                total[key] += m.coefficient * count

    def _expanded(self, operands: Sequence[Operand]) -> Iterator[tuple[tuple[Operand, ...], Fraction | int]]:
        """A product whose operands may be sums themselves."""
        if not any(source in self.outputs or source in self.states for source, _ in operands):
            yield tuple(sorted(operands)), 1
            return
        first, *rest = operands
        inner = (
            self._value(first)[0].items() if first[0] in self.outputs or first[0] in self.states else [((first,), 1)]
        )
        for key, count in inner:
            for other, times in self._expanded(rest) if rest else [((), 1)]:
                yield tuple(sorted((*key, *other))), count * times

    def _undefined(self, m: Monomial, names: Mapping[str, int]) -> bool:
        many, every = self._choices(m, names)
        if not many:
            return False
        if not m.factors:
            return True
        return any(
            self._value((f.source, at))[1]
            for f in m.factors if f.source in self.outputs or f.source in self.states
            for at in self._places(f.index, many, every)
        )  # fmt: skip

    def _value(self, operand: Operand) -> tuple[Count, bool]:
        if operand not in self._known:
            source, at = operand
            self._known[operand] = (
                self._output(*self.outputs[source], at) if source in self.outputs
                else self._memory(*self.states[source], at)
            )  # fmt: skip
        return self._known[operand]

    def _output(self, call: LexicographicCall, output: Output, at: tuple[int, ...]) -> tuple[Count, bool]:
        names: dict[str, int] = {**self.sizes, **dict(zip([n for n, _ in output.element], at, strict=True))}
        program = self._last(call, output, names, ())
        if program is None:
            return self.element(output.otherwise, names)
        names |= dict(zip([n for n, _ in call.programs], program, strict=True))
        cell = tuple(int(t.evaluate(names, INTS)) for t in output.cell)
        return self._value((output.state, (*cell, *program)))

    def _last(
        self, call: LexicographicCall, output: Output, names: Mapping[str, int], chosen: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """The last program that shows an element, of those that begin with some ids."""
        extents = self._grid(call)
        ids: dict[str, Any] = {}
        for k, (name, _) in enumerate(call.programs):
            ids[name] = chosen[k] if k < len(chosen) else Interval(0, max(extents[k] - 1, 0))
        on = IntervalNumbers()
        if 0 in extents or any(c.evaluate({**names, **ids}, on) is False for c in output.shows):
            return None
        if len(chosen) == len(extents):
            return chosen
        self.gone += 1
        if self.gone > 40 * MOST_PROGRAMS:
            raise Unsupported("more steps than are counted on plain integers")
        for k in range(extents[len(chosen)] - 1, -1, -1):
            found = self._last(call, output, names, (*chosen, k))
            if found is not None:
                return found
        return None

    def _grid(self, call: LexicographicCall) -> list[int]:
        return [int(extent.evaluate(self.sizes, INTS)) for _, extent in call.programs]

    def _memory(
        self, call: LexicographicCall, state: CallMemory, after: bool, at: tuple[int, ...]
    ) -> tuple[Count, bool]:
        cell, program = at[: len(state.cells)], list(at[len(state.cells) :])
        extents = self._grid(call)
        total: Any = Counter()
        counts, asks, undefined, steps = True, True, False, 0
        names = dict(zip([n for n, _ in state.cells], cell, strict=True))

        def ids() -> dict[str, int]:
            return {**self.sizes, **names, **dict(zip([n for n, _ in call.programs], program, strict=True))}

        def shown() -> tuple[int, ...]:
            return tuple(int(t.evaluate(ids(), INTS)) for t in state.starts or ())

        def back() -> bool:
            """Goes to the program before; False where memory is undefined when this one begins."""
            starts = shown()
            for k in range(len(extents) - 1, -1, -1):
                if program[k]:
                    program[k] -= 1
                    return starts == shown()
                program[k] = extents[k] - 1
            return False

        if not after and not back():
            return Counter(), True
        while True:
            steps += 1
            if steps > MOST_PROGRAMS:
                raise Unsupported(f"more than {MOST_PROGRAMS:,} programs to go through on plain integers")
            here, kept, lost = ids(), False, False
            for m in state.sum.numbers if counts else ():
                if any(f.source == state.before for f in m.factors):
                    kept = kept or bool(self._choices(m, here)[0])
                else:
                    self._count(total, m, here)
            for m in state.sum.undefined if asks else ():
                if any(f.source == state.before for f in m.factors):
                    lost = lost or bool(self._choices(m, here)[0])
                else:
                    undefined = undefined or self._undefined(m, here)
            counts, asks = kept, lost
            if undefined or not (counts or asks):
                return total, undefined
            if not back():
                return total, undefined or asks


def _rows(names: Names, held: Array) -> dict[str, int | Array]:
    """The rows for which something holds."""
    return {name: value[held] if isinstance(value, np.ndarray) else value for name, value in names.items()}


def _extended(names: dict[str, int | Array], bound: Named, many: int) -> int:
    """Puts every choice of further names beside what there is of others, `many` rows; how many rows there are then."""
    for name, extent in bound:
        n = np.broadcast_to(np.maximum(np.asarray(extent.evaluate(names, ARRAYS), np.int64), 0), (many,))
        total = int(n.sum())
        if total > MOST_TERMS:
            raise Unsupported(f"{total:,} products of one element, more than {MOST_TERMS:,}")
        rows = np.repeat(np.arange(many), n)
        names.update({key: value[rows] for key, value in names.items() if isinstance(value, np.ndarray)})
        names[name] = np.arange(total) - np.repeat(np.cumsum(n) - n, n)
        many = total
    return many


def differences(ours: Count, theirs: Count) -> list[tuple[tuple[Operand, ...], Fraction, Fraction]]:
    """The products that do not stand equally often in two elements: (product, in the first, in the second)."""
    keys = sorted(k for k in {*ours, *theirs} if ours[k] != theirs[k])
    return [(key, Fraction(ours[key]), Fraction(theirs[key])) for key in keys]
