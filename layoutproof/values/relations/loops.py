"""Loops: written out where they are short; else a step is read once, for a name, and said what all steps make.

A step keeps some of what it is handed on, and adds to it. So after `n` steps there is what each of them added, unless a
later one did not keep it, and what there was before, unless one of them did not. What multiplies the state, as a linear
recurrence does, is not for this engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.control import steps_of
from layoutproof.bodies.integers import condition_of
from layoutproof.bodies.passes import BodyValue, as_array
from layoutproof.bodies.shapes import shape_of
from layoutproof.bodies.terms import names_in
from layoutproof.bodies.values import Index, Value, extent_term, span_of_type
from layoutproof.bodies.values import number as single
from layoutproof.core.folding import FALSE, TRUE, all_of, constant, fold, linear, negation
from layoutproof.core.products import Factor, Monomial, Named, Sum, added
from layoutproof.core.term import ZERO, Term
from layoutproof.ir.program import Array, Equation, Program, scan_parts
from layoutproof.values.relations.arrays import FloatArray, as_floats, opaque, renamed, times
from layoutproof.values.relations.reading import Reading, ReadingRule, bounds, is_float, shape_terms

MOST_STEPS = 64
"""Iterations of a loop that are written out."""


class _LoopStep:
    """A step of a loop, for a name. counter: that name.  steps: how many there are.

    states: of what is handed on, by the name of its source: (before the first step, after one); None for what no step
    changes.
    """

    def __init__(self, on: Reading, counter: str, steps: Term) -> None:
        self.on, self.counter, self.steps = on, counter, steps
        self.states: dict[str, tuple[FloatArray, FloatArray | None]] = {}
        self._asked: list[str] = []

    def after(self, source: str, index: Index, steps: Term) -> Sum:
        """An element of a state when some steps are done."""
        begins, ends = self.states[source]
        if ends is None:
            return begins.sum(index)
        if source in self._asked:
            raise UnsupportedOp("a recurrence that is no sum")
        self._asked.append(source)
        try:
            one, other = ends.sum(index), begins.sum(index)
            here = Factor(source, index)
            return Sum(
                self._all(one.numbers, other.numbers, here, steps, True),
                self._all(one.undefined, other.undefined, here, steps, False),
            )
        finally:
            self._asked.pop()

    def at(self, whole: Sum, step: Term) -> Sum:
        """The results of a step, from its carried values."""
        return Sum(self._known(whole.numbers, step, True), self._known(whole.undefined, step, False))

    def _known(self, monomials: Sequence[Monomial], step: Term, numbers: bool) -> tuple[Monomial, ...]:
        """The same, without the states of the loop."""
        found: list[Monomial] = []
        for m in (renamed(m, {self.counter: step}) for m in monomials):
            rest = replace(m, factors=tuple(f for f in m.factors if f.source not in self.states))
            states = [self.after(f.source, f.index, step) for f in m.factors if f.source in self.states]
            if numbers:
                whole = Sum((rest,))
                for state in states:
                    whole = times(whole, Sum(state.numbers), self.on.named)
                found += whole.numbers
                continue
            # undefined is a product of which one factor is
            found += [rest] if rest.factors or not states else []
            bare = replace(rest, factors=())
            for state in states:
                found += times(Sum((bare,)), Sum(state.undefined), self.on.named).numbers
        return tuple(found)

    def _all(
        self, ends: Sequence[Monomial], begins: Sequence[Monomial], here: Factor, steps: Term, numbers: bool
    ) -> tuple[Monomial, ...]:  # fmt: skip
        """The state after some steps. ends: a step's.  begins: the state before the first."""
        kept, rest = [], []
        for m in ends:
            if m.factors == (here,) and not m.bound and not m.unless and (m.coefficient == 1 or not numbers):
                kept.append(m)
            elif any(f.source == here.source for f in m.factors):
                raise UnsupportedOp("a recurrence that is no sum")
            else:
                rest.append(m)
        lost = all_of(negation(all_of(m.when)) for m in kept)
        if lost is TRUE:
            last, ran = linear([(1, steps)], -1), fold("<", ZERO, steps)
            found = self._known(rest, last, numbers) if ran is not FALSE else ()
            return (*(m.under(ran) for m in found), *(m.under(negation(ran)) for m in begins if ran is not TRUE))
        step = self.on.named("u")
        whole = Sum(self._known(rest, Term("name", step), numbers)).over(((step, steps),)).numbers
        if lost is FALSE:
            return (*whole, *begins)
        return (
            *(self._unless(m, lost, Term("name", step), steps) for m in whole),
            *(self._unless(m, lost, None, steps) for m in begins),
        )

    def _unless(self, m: Monomial, lost: Term, after: Term | None, steps: Term) -> Monomial:
        """A monomial that stands where no step (after one) lost what there was."""
        later = self.on.named("v")
        name = Term("name", later)
        condition = renamed(Monomial(when=(lost,)), {self.counter: name}).when[0]
        if after is not None:
            condition = fold("and", fold("<", after, name), condition)
        bound: Named = ((later, steps),)
        return replace(m, unless=(*m.unless, (bound, condition)))


def looped(
    on: Reading, steps: Term, inits: Sequence[BodyValue], adds: Sequence[int | None], most: int,
    body: Callable[[list[BodyValue], Term], Sequence[BodyValue]],
) -> tuple[list[BodyValue], list[Callable[[Index, Term], Sum] | None]]:  # fmt: skip
    """A loop of steps with a name: (what is handed on at the end, what else a step gives, as of an index and a step).

    adds: of whole numbers that are handed on, what a step adds.  most: steps.  body: of what is handed on, and a step.
    """
    counter = on.named("t")
    t = Term("name", counter)
    on.entered(counter, steps)
    loop = _LoopStep(on, counter, steps)
    before = dict(on.memory)
    slots: list[BodyValue] = []
    for k, (init, add) in enumerate(zip(inits, adds, strict=True)):
        if isinstance(init, FloatArray):
            slots.append(opaque(f"{counter}.{k}", init.dims, init.dtype))
        else:
            slots.append(_counted(as_array(init), add, t, most - 1))
    memory = {name: opaque(f"{counter}.{name}", held.dims, held.dtype) for name, held in before.items()}
    on.memory = dict(memory)
    on.looped += 1
    results = body(slots, t)
    on.looped -= 1
    left, on.memory = on.memory, dict(before)
    for name, held in before.items():
        changed = left[name] if left[name] is not memory[name] else None
        loop.states[f"{counter}.{name}"] = held, changed
        if changed is not None:
            on.memory[name] = _end(loop, f"{counter}.{name}", held)
    finals: list[BodyValue] = []
    for k, (init, add) in enumerate(zip(inits, adds, strict=True)):
        if isinstance(init, FloatArray):
            source = f"{counter}.{k}"
            loop.states[source] = init, None if results[k] is slots[k] else as_floats(results[k])
            finals.append(_end(loop, source, init))
        else:
            one = as_array(init)
            finals.append(one if add == 0 else Value(one.dims, one.dtype, "a number that a long loop leaves"))
    return finals, [_given_by(loop, r) if isinstance(r, FloatArray) else None for r in results[len(inits) :]]


def _end(loop: _LoopStep, source: str, like: FloatArray) -> FloatArray:
    return FloatArray(like.dims, like.dtype, lambda index: loop.after(source, index, loop.steps))


def _given_by(loop: _LoopStep, value: FloatArray) -> Callable[[Index, Term], Sum]:
    return lambda index, step: loop.at(value.sum(index), step)


def _counted(init: Value, add: int | None, step: Term, most: int) -> Value:
    """A whole number that is handed on, after some steps; no number where it may leave its type."""
    if add == 0 or not isinstance(init, Value):
        return init
    low, high = init.span
    span = low + min(0, (add or 0) * most), high + max(0, (add or 0) * most)
    least, greatest = span_of_type(init.dtype)
    if add is None or init.dims or not least <= span[0] <= span[1] <= greatest:
        return Value(init.dims, init.dtype, "a number that a long loop hands on")
    return single(linear([(1, init.number()), (add, step)]), init.dtype, span)


def _scan(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    p = equation.params
    consts, carry = scan_parts(equation)
    fixed, carried, rows = operands[:consts], operands[consts : consts + carry], operands[consts + carry :]
    length, back, jaxpr = extent_term(*shape_terms((p["length"],))), bool(p.get("reverse")), p["jaxpr"]
    count = constant(length)
    given = equation.outvars[carry:]
    if count is None or count > MOST_STEPS:

        def place(step: Term) -> Term:
            return linear([(1, length), (-1, step)], -1) if back else step

        def body(slots: list[BodyValue], t: Term) -> Sequence[BodyValue]:
            return on.run(jaxpr, [*fixed, *slots, *(_row(as_array(x), place(t)) for x in rows)])

        adds = steps_of(on, jaxpr, consts, carry)
        finals, made = looped(on, length, carried, adds, bounds(length)[1], body)
        return [*finals, *(
            _stacked_by(one, place, shape_of(equation, carry + k), v.aval)
            for k, (one, v) in enumerate(zip(made, given, strict=True))
        )]  # fmt: skip
    stacked: list[list[Any]] = []
    for k in range(count - 1, -1, -1) if back else range(count):
        found = on.run(jaxpr, [*fixed, *carried, *(_row(as_array(x), Term("int", k)) for x in rows)])
        carried = found[:carry]
        stacked.append(found[carry:])
    if back:
        stacked.reverse()
    return [
        *carried,
        *(_stack([row[k] for row in stacked], v.aval, shape_of(equation, carry + k)) for k, v in enumerate(given)),
    ]  # fmt: skip


def _row(value: Value, at: Term) -> BodyValue:
    if isinstance(value, FloatArray):
        return FloatArray(value.dims[1:], value.dtype, lambda index: value.sum((at, *index)))
    return Value(value.dims[1:], value.dtype, lambda index: value.number((at, *index)))


def _stacked_by(
    made: Callable[[Index, Term], Sum] | None, place: Callable[[Term], Term], dims: tuple[int, ...], aval: Array
) -> BodyValue:
    """The result of each step, one row after the other; from the last row on where the loop runs backwards."""
    if made is None:
        return Value(dims, aval.dtype, "integers that a loop gives")
    return FloatArray(dims, aval.dtype, lambda index: made(index[1:], place(index[0])))


def _stack(rows: Sequence[BodyValue], aval: Array, dims: tuple[int, ...]) -> BodyValue:
    if not is_float(aval):
        return Value(dims, aval.dtype, "integers that a loop gives")
    floats = [as_floats(row) for row in rows]

    def element(index: Index) -> Sum:
        known = constant(index[0])
        if known is not None:
            return floats[known].sum(index[1:])
        each = (row.sum(index[1:]).under(fold("==", index[0], Term("int", k))) for k, row in enumerate(floats))
        return added(*each)

    return FloatArray(dims, aval.dtype, element)


def _while(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    p = equation.params
    first, second = int(p["cond_nconsts"]), int(p["body_nconsts"])
    of_condition, of_body = operands[:first], operands[first : first + second]
    inits = carried = operands[first + second :]
    memory, calls = dict(on.memory), len(on.calls)
    for _ in range(MOST_STEPS + 1):
        goes_on = condition_of(on.run(p["cond_jaxpr"], [*of_condition, *carried])[0].number())
        if goes_on is FALSE:
            return list(carried)
        if negation(goes_on) is not FALSE:
            break
        carried = on.run(p["body_jaxpr"], [*of_body, *carried])
    on.memory = memory
    del on.calls[calls:]
    adds = steps_of(on, p["body_jaxpr"], second, len(inits))
    steps, most = trips(on, p["cond_jaxpr"], of_condition, inits, adds)

    def body(slots: list[BodyValue], t: Term) -> Sequence[BodyValue]:
        return on.run(p["body_jaxpr"], [*of_body, *slots])

    return looped(on, steps, inits, adds, most, body)[0]


def trips(
    on: Reading, condition: Program, fixed: Sequence[BodyValue], carried: Sequence[BodyValue],
    adds: Sequence[int | None],
) -> tuple[Term, int]:  # fmt: skip
    """How often a loop runs that ends when a number that each step makes 1 larger reaches one that stays, and at most.

    That many: a counter is a number of its type until it ends the loop.
    """
    inits = [as_array(init) for init in carried]
    names = [on.named("i") if add == 1 and not init.dims else "" for init, add in zip(inits, adds, strict=True)]
    slots = [
        single(Term("name", name), init.dtype, init.span) if name else init if add == 0 else
        Value(init.dims, init.dtype, "a number that a loop hands on")
        for name, init, add in zip(names, inits, adds, strict=True)
    ]  # fmt: skip
    said = condition_of(on.run(condition, [*fixed, *slots])[0].number())
    if said.op in ("<", "<="):
        left, upper = said.args
        if left.op == "name" and left.args[0] in names and not {*names} & {*names_in(upper)}:
            init = inits[names.index(left.args[0])]
            steps = linear([(1, upper), (-1, init.number())], int(said.op == "<="))
            return steps, min(bounds(steps, 0)[1], span_of_type(init.dtype)[1] - init.span[0])
    raise UnsupportedOp("a loop whose end is no number")


LOOPS: dict[str, ReadingRule] = {"scan": _scan, "while": _while}
"""Primitive -> (pass, equation, operands) -> results."""
