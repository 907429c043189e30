"""Calls, branches, loops and scoped memory.

A loop's body is looked at once, on names for its counter and for what it carries. A carried number that moves by a
constant step, alternates, wraps around, or repeats what the iteration before computed is a term of the counter; any
other is an unknown of its type, and the invariants that hold of it are facts (`invariants`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

from layoutproof.bodies import invariants, problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.claims import LONGEST_LOOP
from layoutproof.bodies.effects import Carried, Freed, Handed, Loop, Unknown, View, writes_to
from layoutproof.bodies.integers import DIVISIONS, condition_of, number_of
from layoutproof.bodies.memory import allocated
from layoutproof.bodies.passes import BodyValue, Pass, Rule, as_array
from layoutproof.bodies.recurrence import closed_form, difference, once_round, rounds
from layoutproof.bodies.shapes import moved
from layoutproof.bodies.terms import names_in, renaming, replaced
from layoutproof.bodies.values import Index, Lost, Span, Value, dims_of, hull, leaf, maybe, span_of_type, takes
from layoutproof.bodies.wraps import bounds, never_wraps, unwrapped
from layoutproof.core.folding import FALSE, TRUE, all_of, any_of, constant, fold, folded, linear, negation
from layoutproof.core.operations import CONDITIONS, INT32, Op
from layoutproof.core.term import ONE, ZERO, Term
from layoutproof.ir.program import Equation, Literal, Program, Variable, scan_parts

_HANDED_ON = problems.HANDED_NUMBER()
"""The reason of an unknown carried number."""


def _call(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    params = equation.params
    jaxpr = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))
    if jaxpr is None:
        raise UnsupportedOp(problems.CALL_WITHOUT_BODY(params.get("name", "a function")))
    known = DIVISIONS.get(str(params.get("name", "")))
    if known and len(operands) == 2 and jaxpr.own:
        by = _whole(operands[1])
        if by is not None and by > 0 and as_array(operands[0]).dtype.kind in "iu":
            # JAX writes them out with div, sign and select; the name says it better
            left, dims = as_array(operands[0]), dims_of(equation.outvars[0].aval)
            if left.dims == dims:
                return [_divided(left, known, by)]
    return on.run(jaxpr, operands)


def _whole(value: BodyValue) -> int | None:
    """The one number that all elements of a value are, where that is known."""
    if not isinstance(value, Value):
        return None
    try:
        return constant(value.number((ZERO,) * len(value.dims))) if not value.dims else None
    except Lost:
        return None


def _divided(left: Value, op: Op, by: int) -> Value:
    def said(index: Index) -> Term:
        term = left.number(index)
        return fold(op, term, Term("int", by))

    low, high = (end // by for end in left.span) if op == "//" else (0, by - 1)
    return Value(left.dims, left.dtype, said, None if left.defined else left.undefined, span=(low, high))


def _cond(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    which, rest = as_array(operands[0]), operands[1:]
    branches = equation.params["branches"]
    count = len(branches)
    known = _whole(which)
    if known is not None:
        return on.run(branches[min(max(known, 0), count - 1)], rest)
    chosen = on.scalar(which)
    said = condition_of(chosen) if which.dtype.kind == "b" else chosen
    taken = [takes(said, k, count) for k in range(count)]
    sides: list[list[Any] | None] = []
    for branch, condition in zip(branches, taken, strict=True):
        if condition is FALSE:
            sides.append(None)
            continue
        with on.under(condition):
            sides.append(on.run(branch, rest))
    kept = [(c, side) for c, side in zip(taken, sides, strict=True) if side is not None]
    return [_merged(which, cases) for cases in zip(*[[(c, v) for v in side] for c, side in kept], strict=True)]


def _merged(which: Value, cases: Sequence[tuple[Term, BodyValue]]) -> BodyValue:
    first = cases[0][1]
    if isinstance(first, View):
        if all(value is first for _, value in cases):
            return first
        raise UnsupportedOp(problems.BRANCH_REFERENCE())
    if len(cases) == 1:
        return first
    arrays = [(condition, as_array(value)) for condition, value in cases]

    def said(index: Index) -> Term:
        found = arrays[-1][1].number(index)
        for condition, value in reversed(arrays[:-1]):
            found = _selected(condition, value.number(index), found)
        return found

    def undefined(index: Index) -> Term:
        return any_of([which.undefined(), *(all_of([c, v.undefined(index)]) for c, v in arrays)])

    defined = which.defined and all(v.defined for _, v in arrays)
    return Value(first.dims, first.dtype, said, None if defined else undefined, span=hull([v for _, v in arrays]))


def _selected(condition: Term, yes: Term, no: Term) -> Term:
    if yes is no:
        return yes
    if yes.op in CONDITIONS or no.op in CONDITIONS:
        return any_of([all_of([condition, condition_of(yes)]), all_of([negation(condition), condition_of(no)])])
    return yes if condition is TRUE else no if condition is FALSE else Term("select", condition, yes, no)


def _scan(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    params = equation.params
    consts, carry = scan_parts(equation)
    length = int(params["length"])
    inits, xs = operands[consts : consts + carry], operands[consts + carry :]
    if length == 0 and len(equation.outvars) == carry:
        # nothing in it happens
        return inits
    loop = Loop(on.named("loop"), Term("int", length), on.source())
    counter = Term("name", loop.name)
    position = Term("-", Term("int", length - 1), counter) if params.get("reverse") else counter
    spans = _spans_of_scan(on, params["jaxpr"], consts, inits, length)
    slots = [_slot(on, init, span) for init, span in zip(inits, spans, strict=True)]
    known = frozenset(on.unknowns)
    rows = [moved(x, x.dims[1:], lambda index: (position, *index)) for x in map(as_array, xs)]
    with on.inside(loop):
        results = on.run(params["jaxpr"], [*operands[:consts], *(s for _, s in slots), *rows])
    finals = _close(on, loop, inits, slots, results[:carry], known, Term("int", length))
    stacked = []
    for value, variable in zip(results[carry:], equation.outvars[carry:], strict=True):
        why = problems.LOOP_STACKS()
        dims = dims_of(variable.aval)
        stacked.append(
            Value(dims, value.dtype, why, None if value.defined else lambda index: maybe("what a loop stacks"))
        )
    return [*finals, *stacked]


def looped(
    on: Pass,
    program: Program,
    bounds: tuple[Value | int, Value | int, Value | int],
    consts: Sequence[BodyValue],
    inits: Sequence[BodyValue],
) -> list[BodyValue]:
    """The values after a loop from one bound to below another one, by steps, whose iterations have no order.

    program: of an iteration: it sees `consts`, the index, and the carried values.  bounds: lower, upper, step.
    """
    lower, upper, step = (b if isinstance(b, Value) else on.constant_value(b) for b in bounds)
    by = _whole(step)
    if by is None or by < 1:
        raise UnsupportedOp(problems.PARALLEL_STEP())
    first, end = on.scalar(lower), on.scalar(upper)
    count = fold("//", linear([(1, end), (-1, first), (1, Term("int", by - 1))]), Term("int", by))
    count = count if count.op == "int" and count.args[0] >= 0 else fold("max", count, ZERO)
    if count is ZERO:
        return list(inits)
    loop = Loop(on.named("loop"), count, on.source(), parallel=True)
    last = upper.span[1] - 1
    index = Value(
        (), step.dtype, _always(linear([(1, first), (by, Term("name", loop.name))])), span=(lower.span[0], last)
    )
    slots = [_slot(on, init, None) for init in inits]
    known = frozenset(on.unknowns)
    with on.inside(loop):
        results = on.run(program, [*consts, index, *(s for _, s in slots)])
    return _close(on, loop, inits, slots, results, known, count)


def _while(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    params = equation.params
    first, second = int(params["cond_nconsts"]), int(params["body_nconsts"])
    of_cond, of_body = operands[:first], operands[first : first + second]
    inits = operands[first + second :]
    given = _given_out(params["cond_jaxpr"], params["body_jaxpr"], first, second)
    if given:
        return _units(on, params["body_jaxpr"], of_body, inits, given)
    loop = Loop(on.named("loop"), None, on.source())
    (begins,) = on.run(params["cond_jaxpr"], [*of_cond, *inits])
    if begins.defined and _whole(begins) == 0:
        return inits
    spans = _spans_of_while(on, (params["cond_jaxpr"], of_cond), (params["body_jaxpr"], second), inits)
    slots = [_slot(on, init, span) for init, span in zip(inits, spans, strict=True)]
    known = frozenset(on.unknowns)
    with on.inside(loop):
        (goes_on,) = on.run(params["cond_jaxpr"], [*of_cond, *(s for _, s in slots)])
        condition = folded(condition_of(on.scalar(goes_on)))
        on.goes_on[loop.name] = condition
        with on.under(condition):
            results = on.run(params["body_jaxpr"], [*of_body, *(s for _, s in slots)])
    finals = _close(on, loop, inits, slots, results, known, None, condition)
    (again,) = on.run(params["cond_jaxpr"], [*of_cond, *finals])
    with suppress(Lost):
        on.facts.append(negation(folded(condition_of(again.number()))))
    if _surely_defined(goes_on, inits, slots, results):
        return finals
    return _as_often(on, loop, (begins, goes_on, again), slots, results, finals, known)


def _given_out(condition: Program, body: Program, first: int, second: int) -> list[tuple[int, str]]:
    """Of a loop that goes on while a GPU gives out more work: which carried numbers are that, and of which axis; "" of
    the one that says whether there is more.

    first, second: how many values the condition and the body see beside the carried ones.
    """
    query = next((e for e in body.eqns if e.primitive.name == "query_cluster_cancel"), None)
    if query is None or condition.eqns or len(condition.outvars) != 1:
        return []
    names = [*map(str, query.params["grid_names"]), ""]
    found = [(k, names[query.outvars.index(one)]) for k, one in enumerate(body.outvars) if one in query.outvars]
    goes_on = [k for k, name in found if not name]
    carried = list(condition.invars[first:])
    return found if [carried[k] for k in goes_on] == list(condition.outvars) else []


def _units(
    on: Pass, body: Program, consts: Sequence[BodyValue], inits: Sequence[BodyValue], given: list[tuple[int, str]]
) -> list[BodyValue]:
    """The values after a loop over the work that a GPU gives out, that of a program of its grid in each iteration.

    Which work a program does, in which order and how much of it, is not known; each is done once, by one program, which
    begins with its own. So the ids are those of the work, and how many iterations there are is a number of its own.
    """
    names = {name for _, name in given if name}
    extents = [extent for name, extent in zip(on.names, on.grid, strict=True) if name in names]
    begins = {k: inits[k] for k, _ in given}
    if on.units or any(type(extent) is not int for extent in extents) or len(extents) < len(names):
        raise UnsupportedOp(problems.UNITS_LOOP())
    for k, name in given:
        own = _number(begins[k])
        if own is None or own != (Term("name", name) if name else ONE):
            raise UnsupportedOp(problems.UNITS_LOOP())
    on.units = on.named("units")
    most = prod(map(int, extents))
    on.unknowns[on.units] = Unknown(on.units, 1, most + 1, problems.UNITS_LEFT(), on.source(), (), True)
    count = Term("name", on.units)
    loop = Loop(on.named("loop"), count, on.source(), units=True)
    rest = [k for k in range(len(inits)) if k not in begins]
    other = [inits[k] for k in rest]
    slots = [_slot(on, init, span) for init, span in zip(other, [None] * len(other), strict=True)]
    known = frozenset(on.unknowns)
    seen = {**begins, **{k: slot for k, (_, slot) in zip(rest, slots, strict=True)}}
    with on.inside(loop):
        results = on.run(body, [*consts, *(seen[k] for k in range(len(inits)))])
    finals = dict(zip(rest, _close(on, loop, other, slots, [results[k] for k in rest], known, count), strict=True))
    left = {k: Value((), as_array(init).dtype, problems.UNITS_LEFT()) for k, init in begins.items()}
    return [finals[k] if k in finals else left[k] for k in range(len(inits))]


def check_units(on: Pass) -> None:
    """Refuses what writes global memory by how much work a program has done before, of a body with a loop over it."""
    loop = next(one for effect in on.effects for one in effect.spot.loops if one.units)
    for effect in on.effects:
        view = writes_to(effect)
        if view is None or view.reference.memory != "gmem":
            continue
        if loop not in effect.spot.loops:
            raise UnsupportedOp(problems.UNITS_ELSEWHERE())
        terms = [*effect.spot.path, *(one.count for one in effect.spot.loops if one.count and one is not loop)]
        terms += [n for step in view.steps for piece in step.slices for n in (piece.start, piece.size)]
        todo, reached = [name for term in terms for name in term.names()], set[str]()
        handed = {one.name: one for one in on.handed} | {one.after: one for one in on.handed}
        while todo:
            name = todo.pop()
            if name in reached:
                continue
            reached.add(name)
            todo += on.definitions[name].names() if name in on.definitions else ()
            todo += [*handed[name].start.names(), *handed[name].following.names()] if name in handed else ()
        if reached & {loop.name, on.units} or any(step.kind != "slices" for step in view.steps):
            raise UnsupportedOp(problems.UNITS_ORDER())


def _surely_defined(
    goes_on: Value, inits: Sequence[BodyValue], slots: Sequence[tuple[str, BodyValue]], results: Sequence[BodyValue]
) -> bool:
    """Whether a loop's condition rests on nothing but carried numbers that start defined and stay so."""
    nexts = {
        name: result.undefined()
        for (name, _), init, result in zip(slots, inits, results, strict=True)
        if name and isinstance(result, Value) and not init.dims and as_array(init).defined
    }
    whole = False
    while not whole:
        kept = {name: condition for name, condition in nexts.items() if _never(condition, nexts)}
        whole, nexts = len(kept) == len(nexts), kept
    return _never(goes_on.undefined(), nexts)


def _never(undefined: Term, defined: Collection[str]) -> bool:
    """Whether a condition of being undefined does not hold where these leaves do not."""

    def change(part: Term) -> Term | None:
        return FALSE if part.op == "leaf" and part.args[0] in defined else folded(part)

    return undefined is FALSE or replaced(undefined, change) is FALSE


def _as_often(
    on: Pass,
    loop: Loop,
    conditions: tuple[Value, Value, Value],
    slots: Sequence[tuple[str, BodyValue]],
    results: Sequence[BodyValue],
    finals: Sequence[BodyValue],
    known: frozenset[str],
) -> list[BodyValue]:
    """The values after a loop whose condition may be undefined: its trip count is then undefined, too.

    conditions: before the first iteration, in an iteration, and after the last one.  known: the unknowns that were
    there before it.
    """
    begins, goes_on, again = conditions
    name, after = on.named("decided"), on.named("decided")
    before = Value((), begins.dtype, problems.LOOP_GOES_ON(), lambda index: begins.undefined())
    every_time = Value(
        (), begins.dtype, problems.LOOP_GOES_ON(), lambda index: any_of([leaf(name, ()), goes_on.undefined()])
    )
    on.carried[name] = Carried(loop, before, every_time)
    on.carried[after] = Carried(loop, before, every_time, final=True)

    def decided() -> Term:
        return any_of([begins.undefined(), leaf(after, ()), again.undefined()])

    def doubtful(final: Value) -> Value:
        return Value(final.dims, final.dtype, final.number, lambda index: any_of([final.undefined(index), decided()]))

    found: list[Any] = []
    for (_, slot), result, final in zip(slots, results, finals, strict=True):
        # a loop-invariant value does not depend on the trip count
        found.append(final if isinstance(final, View) or result is slot else doubtful(final))
        if found[-1] is not final and isinstance(final, Value) and not final.dims:
            with suppress(Lost):
                new = {name for name in names_in(final.number()) if name in on.unknowns} - known
                on.doubts.update(dict.fromkeys(new, found[-1]))
    return found


def steps_of(on: Pass, jaxpr: Program, before: int, count: int) -> list[int | None]:
    """The step of each carried number, by the equations of a loop's body; None where it has no constant step.

    before: how many inputs of the body come before the carried ones.  count: of the carried ones.
    """
    made = _made_by(jaxpr)
    found: list[int | None] = []
    for own, result in zip(jaxpr.invars[before : before + count], jaxpr.outvars[:count], strict=True):
        equation = None if hasattr(result, "val") else made.get(result)
        step = 0 if result is own else None
        if equation is not None and equation.primitive.name in ("add", "sub"):
            left, right = equation.invars
            if equation.primitive.name == "add" and right is own:
                left, right = right, left
            known = _whole(on.constant_value(right.val)) if left is own and hasattr(right, "val") else None
            if known is not None and abs(known) < INT32:
                step = known if equation.primitive.name == "add" else -known
        found.append(step)
    return found


def _made_by(jaxpr: Program) -> dict[Variable, Equation]:
    """The equation that makes a value, of those that make one alone."""
    return {equation.outvars[0]: equation for equation in jaxpr.eqns if len(equation.outvars) == 1}


def _spans_of_scan(on: Pass, jaxpr: Program, consts: int, inits: Sequence[BodyValue], length: int) -> list[Span | None]:
    """Between which numbers each carried number is in every iteration, where it moves by a constant."""
    found: list[Span | None] = []
    for init, step in zip(inits, steps_of(on, jaxpr, consts, len(inits)), strict=True):
        if step is None or isinstance(init, View):
            found.append(None)
            continue
        reach = step * max(length - 1, 0)
        found.append(_within(init, (init.span[0] + min(reach, 0), init.span[1] + max(reach, 0))))
    return found


def _spans_of_while(
    on: Pass, condition: tuple[Program, Sequence[BodyValue]], body: tuple[Program, int], inits: Sequence[BodyValue]
) -> list[Span | None]:
    """The same for a while loop: spans of numbers that move towards a loop-invariant bound.

    condition: its equations, and the values that they see beside the carried ones.  body: the equations, and how many
    such values they see.
    """
    (inner, seen), (jaxpr, before) = condition, body
    steps = steps_of(on, jaxpr, before, len(inits))
    found = [
        _within(as_array(init), as_array(init).span) if step == 0 else None
        for init, step in zip(inits, steps, strict=True)
    ]
    carried = list(inner.invars[len(seen) :])
    moving = {own for own, step in zip(carried, steps, strict=True) if step != 0}
    values = {own: v for own, v in zip(inner.invars, [*seen, *inits], strict=True) if own not in moving}
    # the condition itself also sees the number that ends the loop
    alone = len(inner.eqns) == 1
    for smaller, larger, strict in _comparisons(inner):
        for own, end, way in ((smaller, larger, 1), (larger, smaller, -1)):
            k = next((k for k, one in enumerate(carried) if one is own), None)
            top = on.constant_value(end.val) if hasattr(end, "val") else values.get(end)
            step = None if k is None else steps[k]
            if k is None or step is None or step * way <= 0 or not isinstance(top, Value):
                continue
            init = inits[k]
            if isinstance(init, View):
                continue
            low, high = init.span
            if way > 0:
                high = max(high, top.span[1] - strict + (0 if alone else step))
            else:
                low = min(low, top.span[0] + strict + (0 if alone else step))
            found[k] = _within(init, (low, high))
    return found


def _comparisons(jaxpr: Program) -> Iterator[tuple[Variable | Literal, Variable | Literal, int]]:
    """The comparisons of a loop, all true in an iteration: (smaller, larger, 1 where they are never equal)."""
    made, todo = _made_by(jaxpr), list(jaxpr.outvars)
    while todo:
        atom = todo.pop()
        equation = None if hasattr(atom, "val") else made.get(atom)
        name = "" if equation is None else equation.primitive.name
        if equation is not None and name == "and":
            todo += equation.invars
        elif equation is not None and name in ("lt", "le"):
            yield (*equation.invars, int(name == "lt"))
        elif equation is not None and name in ("gt", "ge"):
            yield (*reversed(equation.invars), int(name == "gt"))


def _within(init: BodyValue, span: Span) -> Span | None:
    """The span, where it is of whole numbers that their type holds."""
    if isinstance(init, View) or init.dims or getattr(init.dtype, "kind", "") not in "iu":
        return None
    low, high = span_of_type(init.dtype)
    return span if low <= span[0] and span[1] <= high else None


def _slot(on: Pass, init: BodyValue, span: Span | None) -> tuple[str, BodyValue]:
    """A name for a carried value, and the value that a loop's body sees. span: between which numbers it is."""
    if isinstance(init, View):
        return "", init
    name = on.named("carry")
    term = on.any_number(name, _HANDED_ON, init.dtype, on.source())
    if init.dims or getattr(init.dtype, "kind", "") not in "iub":
        why = problems.HANDED_VALUE()
        return name, Value(init.dims, init.dtype, why, lambda index: leaf(name, index))
    said = term if init.dtype.kind != "b" else Term("!=", term, ZERO)
    return name, Value((), init.dtype, lambda index: said, lambda index: leaf(name, index), span=span)


def _close(
    on: Pass,
    loop: Loop,
    inits: Sequence[BodyValue],
    slots: Sequence[tuple[str, BodyValue]],
    results: Sequence[BodyValue],
    known: frozenset[str],
    count: Term | None,
    condition: Term | None = None,
) -> list[BodyValue]:
    """The definitions of the carried names, and the values after the loop.

    known: the unknowns that were there before an iteration.  count: of iterations, None where `condition` ends it.
    """
    names = [name for name, _ in slots]
    starts = [_number(init) for init in inits]
    nexts = [_number(result) for result in results]
    varying = frozenset(on.unknowns) - known
    most = LONGEST_LOOP if count is None or count.op != "int" else int(count.args[0])

    begin, step = dict(zip(names, starts, strict=True)), dict(zip(names, nexts, strict=True))

    def fits(form: Term) -> bool:
        # asked before the definitions are known: a carried number may be any of its type
        own = {name: slot.span for name, slot in slots if isinstance(slot, Value)} | {loop.name: (0, max(most - 1, 0))}
        return never_wraps(form, bounds(on.kernel, on, own))

    forms = closed_form(loop, begin, step, varying, fits)
    if on.induction and len(forms) < sum(start is not None for start in starts):

        def holds(claim: Term) -> bool:
            before = [] if condition is None else [condition]
            return invariants.never(on.kernel, on, [*on.path, *before, negation(claim)], (*on.loops, loop))

        forms |= on.searched(lambda: rounds(loop, begin, step, forms, holds))
    counted = None if condition is None else _counted(loop, condition, forms, begin, step, varying)
    ends = _of_counted(loop, counted, forms, begin, step)
    for name, closed in forms.items():
        del on.unknowns[name]
        on.definitions[name] = closed
    if counted is not None:
        trips = Term("max", Term("-", counted[2], counted[1]), ZERO)
    elif condition is not None:
        trips = _trips(on, loop, condition, forms, begin)
    else:
        assert count is not None
        trips = count
    open_ = {
        name: (start, following)
        for name, start, following in zip(names, starts, nexts, strict=True)
        if name and name not in forms and start is not None and following is not None
    }
    goes_on = TRUE if condition is None else condition
    around = (*on.loops, loop)
    shapes = on.searched(lambda: invariants.kept(on.kernel, on, on.path, around, open_, goes_on))
    counter = Term("name", loop.name)
    finals: list[Any] = []
    for (name, _), init, result in zip(slots, inits, results, strict=True):
        if isinstance(init, View):
            finals.append(init)
            continue
        single = not init.dims and getattr(init.dtype, "kind", "") in "iub"
        after = on.named("final")
        defined = init.defined and isinstance(result, Value) and result.defined
        if not defined:
            on.carried[name] = Carried(loop, init, result)
            on.carried[after] = Carried(loop, init, result, final=True)
        undefined: Callable[[Index], Term] | None = None if defined else _leaf_of(after)
        if not single:
            finals.append(Value(init.dims, init.dtype, "what a loop hands on", undefined))
            continue
        form = forms.get(name)
        if form is not None:
            last = replaced(form, renaming({loop.name: trips})) if loop.name in names_in(form) else form
            last = ends.get(name, last)
        else:
            held = shapes.get(name, ())
            given, last = Term("name", name), Term("name", after)
            on.any_number(name, _HANDED_ON, init.dtype, loop.source, [shape(given, counter) for shape in held])
            told = [shape(last, trips) for shape in held]
            on.any_number(after, _HANDED_ON, init.dtype, loop.source, told, fixed=not on.loops)
            first, following = _number(init), _number(result)
            if first is not None and following is not None:
                on.handed.append(Handed(name, after, loop, first, following, trips))
        said = last if init.dtype.kind != "b" else condition_of(last)
        finals.append(Value((), init.dtype, _always(said), undefined))
    return finals


def _of_counted(
    loop: Loop, counted: tuple[str, Term, Term] | None, forms: dict[str, Term],
    starts: Mapping[str, Term | None], nexts: Mapping[str, Term | None],
) -> dict[str, Term]:  # fmt: skip
    """Puts into `forms` what follows of a loop that counts, and gives what is 0 after it. counted: as of `_counted`."""
    if counted is None:
        return {}
    # while it is below a number of its type, the next one is of its type too
    index, start, upper = counted
    wide = forms[index]
    forms[index] = wide.args[0] if wide.op == "int32" else wide
    if difference(start, ZERO) != 0:
        return {}
    ends = dict.fromkeys(once_round(starts, nexts, forms, upper), ZERO)
    forms.update(dict.fromkeys(ends, Term("name", loop.name)))
    return ends


def _always(term: Term) -> Callable[[Index], Term]:
    return lambda index: term


def _leaf_of(name: str) -> Callable[[Index], Term]:
    return lambda index: leaf(name, index)


def _number(value: BodyValue) -> Term | None:
    """A carried number as a term, truth values as 0 or 1; None where there is none."""
    if isinstance(value, View) or value.dims or getattr(value.dtype, "kind", "") not in "iub":
        return None
    try:
        return number_of(value.number())
    except Lost:
        return None


def _counted(
    loop: Loop, condition: Term, forms: Mapping[str, Term], starts: Mapping[str, Term | None],
    nexts: Mapping[str, Term | None], varying: Collection[str],
) -> tuple[str, Term, Term] | None:  # fmt: skip
    """(The number that a loop with `i < upper` counts by one, its start, the invariant upper bound); None for others.

    forms: of carried numbers, as terms of the counter.  starts, nexts: as for `closed_form`.  varying: unknowns of
    which each iteration may have others.
    """
    if condition.op != "<" or condition.args[0].op != "name":
        return None
    (name,), upper = condition.args[0].args, condition.args[1]
    start, following = starts.get(name), nexts.get(name)
    above = forms.get(upper.args[0], upper) if upper.op == "name" else upper
    # a carried number without a closed form may be another number in each iteration
    changing = {loop.name, *varying, *(other for other in starts if other not in forms)}
    if start is None or name not in forms or changing & set(_reached(forms, above)):
        return None
    by_one = following is not None and difference(unwrapped(following), Term("name", name)) == 1
    return (name, start, above) if by_one else None


def _trips(
    on: Pass, loop: Loop, condition: Term, forms: Mapping[str, Term], starts: Mapping[str, Term | None]
) -> Term:  # fmt: skip
    """How often a loop runs that a condition ends and that counts otherwise: before the last time it held."""
    name = on.named("trips")
    trips = Term("name", name)
    before = renaming({loop.name: Term("-", trips, ONE)})
    facts = []
    if all(part in forms or part not in starts for part in names_in(condition)):
        held = replaced(replaced(condition, renaming(forms)), before)
        facts.append(any_of([Term("==", trips, ZERO), held]))
    why = problems.TRIP_COUNT()
    on.unknowns[name] = Unknown(name, 0, LONGEST_LOOP, why, loop.source, tuple(facts), not on.loops)
    return trips


def _reached(forms: Mapping[str, Term], term: Term) -> tuple[str, ...]:
    return names_in(replaced(term, renaming(forms)))


def _scoped(on: Pass, equation: Equation, operands: list[BodyValue]) -> list[BodyValue]:
    inner = equation.params["jaxpr"]
    transforms = equation.params.get("ref_transforms") or ((),) * len(inner.invars)
    axes = tuple(map(str, equation.params.get("collective_axes") or ()))
    if on.kernel.remote and on.kernel.threads and axes == (on.kernel.threads,):
        # the threads of a GPU meet before memory of a scope that has ended is used again
        on.barriers.append(on.spot())
    fresh = [allocated(on, variable.aval, own) for variable, own in zip(inner.invars, transforms, strict=True)]
    results = on.run(inner, [*operands, *fresh])
    on.effects.append(Freed(tuple(view.reference for view in fresh), replace(on.spot(), path=())))
    return results


PRIMITIVES: dict[str, Rule] = {
    **dict.fromkeys(
        (
            "jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr",
            "remat", "remat2", "checkpoint",
        ),
        _call,
    ),
    "cond": _cond,
    "scan": _scan,
    "while": _while,
    "run_scoped": _scoped,
}  # fmt: skip
