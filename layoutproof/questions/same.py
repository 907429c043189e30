"""`lp.same`: whether a function of JAX, with its Pallas kernels, computes what a reference computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from operator import itemgetter

from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.ir.program import Program
from layoutproof.questions import problems
from layoutproof.questions.reduced import equations_in, explained, halved, smallest
from layoutproof.questions.same_answer import Same
from layoutproof.questions.same_blocks import any_number
from layoutproof.questions.same_kept import kept
from layoutproof.questions.same_plan import Plan, TracedPair, again, planned, traced
from layoutproof.questions.same_premises import Call, conditions, for_all_sizes, kernels, premises, rests_on
from layoutproof.questions.second_witness import witnessed
from layoutproof.values.at_points import at_points
from layoutproof.values.compare import RELATIONS, SMALL, Comparison, TooLarge, compare, differs
from layoutproof.values.pair import Pair, elements_of
from layoutproof.values.partly import partly
from layoutproof.values.readings import folded
from layoutproof.values.refusals import OFFER
from layoutproof.values.walk import Prepared
from layoutproof.values.witness import WITNESSED

MOST_ELEMENTS = 2**27
"""Elements of all arguments and results together."""
Tick = Callable[[str], None]


def same(
    kernel: Callable[..., object] | str,
    reference: Callable[..., object] | str,
    *args: object,
    where: Sequence[str] = (),
    assume: Sequence[str] = (),
    inputs: Callable[[], object] | str | None = None,
    outputs: Sequence[int] | None = None,
    points: int = 3,
    target: str | None = None,
    gradient: bool = False,
    relations: bool = True,
    reduced: bool = False,
    tick: Callable[[str], None] = lambda what: None,
) -> Same:
    """Whether a function computes what a reference computes, over the reals, at these sizes.

    Both are traced. Sums of products are compared as relations, which prove; everything else is walked over at random
    points of prime fields (`layoutproof explain same`). Nothing runs on a device. A refutation is shown on float64,
    or where it is too large for that, counted on plain integers.

    Args:
        kernel: A function of JAX, with or without Pallas calls, or its place: `MODULE:FUNCTION`, `FILE.py:FUNCTION`.
        reference: The function that says what is right, likewise.
        *args: The arguments of both: shapes (texts such as f32[8,128], or `jax.ShapeDtypeStruct`; f32[M,128] where
            the answer is to be about all M, which relations alone can say), arrays of integers
            such as tables, which are used as they are, trees of these, and other values, which are passed as they are.
            Of an array of floats the shape counts.
        where: Conditions on sizes that are names, or that only the running program knows.
        assume: Conditions as of `kernels`: on scalar prefetch operands, for the premises, and bounds of integers of
            which only the shape is given, `0 <= args[1] < 8`, that they are drawn in.
        inputs: Instead of `args`: a function that gives them, or its place; it is called once, without arguments.
        outputs: Positions of the outputs that are compared; all by default.
        points: At how many random points the two are compared, from 1 to 100.
        target: The TPU generation that functions are traced for, e.g. "v5e".
        gradient: Whether the gradients are compared: of all float arguments, for random cotangents; and
            the values beside them.
        relations: Whether relations are asked before points.
        reduced: Whether they are compared at the smallest sizes of the arguments at which the function's kernels have
            every kind of program: the first, a middle, the last and a ragged one of each axis. The premises are asked
            at the given sizes.
        tick: Is told what is done now.

    Returns:
        The answer: `verdict` (proved, sampled, refuted or unknown), `reason`, `findings`, `exit_code`; `str` is what
        the command prints.

    Raises:
        LayoutError: The input is wrong: shapes that do not fit, outputs that are not alike, a function that raises.
    """
    with planned(
        kernel, reference, args, inputs, assume, where=tuple(where),
        outputs=None if outputs is None else tuple(outputs), points=points, target=target, gradient=gradient,
        relations=relations, reduced=reduced,
    ) as plan:  # fmt: skip
        return answered(plan, tick)


def may_be_same(
    kernel: Callable[..., object],
    reference: Callable[..., object] | str,
    *args: object,
    assume: Sequence[str] = (),
    target: str | None = None,
) -> bool:
    """Whether one random point shows no difference: a question before `same`, of candidates of which few are right.

    Arguments and errors as of `same`. What is true is asked again by `same`; what is false may be the same where both
    take maxima, of which one point says less.
    """
    with planned(kernel, reference, args, None, assume, points=1, target=target) as plan:
        if plan.sizes:
            return True
        pair = traced(plan)
        if elements_of(pair.programs, pair.arrays) > WITNESSED:
            return True
        compared = Pair(pair.programs, pair.arrays, Prepared(readings=folded(*pair.programs)), pair.outputs)
        return at_points(compared, 1).state != "differs"


def answered(plan: Plan, tick: Tick, pair: TracedPair | None = None) -> Same:
    """The answer to a plan; where a function is another program when it is traced again, the worse of both answers.

    pair: the plan traced, where the caller did.
    """
    pair = pair or traced(plan)
    answer = _answer_of(plan, pair, tick)
    other = again(plan, pair)
    if other is None:
        return answer
    first, second = _noted(answer, "first"), _noted(_answer_of(plan, other, tick), "second")
    return min(first, second, key=lambda said: said.verdict)


def _noted(said: Same, word: str) -> Same:
    note = problems.TRACED_TWICE(word)
    return replace(said, comparison=replace(said.comparison, notes=(*said.comparison.notes, note)))


def _answer_of(plan: Plan, pair: TracedPair, tick: Tick) -> Same:
    """The answer for one pair: for all sizes, at smaller ones, or at the given ones."""
    found = kernels(plan, pair)
    whole = Same(*plan.names, Comparison(Verdict.UNKNOWN), sizes=plan.sizes, where=plan.where if plan.sizes else ())
    if plan.sizes:
        return kept(plan, [(pair, found)], lambda: _for_all_sizes(whole, plan, pair, found, tick))
    if plan.reduced:
        return _at_smaller_sizes(whole, plan, pair, found, tick)

    def at_given_sizes() -> Same:
        # a mistake in the assumptions is reported first
        conditions(plan, found)
        compared = _compared(plan, pair, tick)
        rests = premises(plan, found, compared)
        said = witnessed(pair.jaxprs, compared, rests, pair.outputs)
        return replace(whole, comparison=said, premises=rests_on(said, rests))

    answer = kept(plan, [(pair, found)], at_given_sizes)
    if answer.verdict not in (Verdict.PROVED, Verdict.SAMPLED):
        return answer
    return replace(answer, blocks=any_number(plan, pair, tick))


def _for_all_sizes(whole: Same, plan: Plan, pair: TracedPair, found: Sequence[Call], tick: Tick) -> Same:
    """The answer of relations for all sizes; where they show a difference, the smallest sizes with one, walked over."""
    from layoutproof.core.expression import parse_condition
    from layoutproof.values.relations.decide import related
    from layoutproof.values.stability import sums_in

    held = [parse_condition(text) for text in plan.where]
    stray = [n for term in held for n in term.names() if n not in plan.sizes]
    if stray:
        raise LayoutError(problems.CONDITION_NAMES(stray[0], ", ".join(plan.sizes)))
    tick("relations")
    said = related(pair.programs, pair.arrays, plan.outputs, plan.sizes, held)
    if said.same is None:
        why = problems.RELATIONS_UNDECIDED(said.reason)
        return replace(whole, comparison=Comparison(Verdict.UNKNOWN, why))
    notes = tuple(problems.CONVERSION_EXACT(old, new) for old, new in said.conversions)
    if not said.same:
        at = problems.ELEMENT_DIFFERS(said.output, ", ".join(map(str, said.element)), said.operands)
        if not said.sizes:
            return replace(whole, comparison=Comparison(Verdict.UNKNOWN, at, notes=notes))
        tick("the smallest sizes")
        shown = answered(plan.sized(said.sizes), tick)
        if shown.verdict is Verdict.REFUTED:
            return replace(shown, smallest=said.sizes)
        why = problems.RELATIONS_ALONE(at)
        return replace(whole, comparison=Comparison(Verdict.UNKNOWN, why), smallest=said.sizes)
    rests = for_all_sizes(plan, found, said.grids)
    if isinstance(rests, str):
        return replace(whole, comparison=Comparison(Verdict.UNKNOWN, rests))
    sums = sums_in(pair.programs[0])
    proved = Comparison(Verdict.PROVED, decided_by=RELATIONS, notes=notes, sums=sums)
    return replace(whole, comparison=proved, premises=rests)


def _at_smaller_sizes(whole: Same, plan: Plan, given: TracedPair, found: Sequence[Call], tick: Tick) -> Same:
    """The answer at the smallest sizes that keep every kind of program; the premises at the given ones."""
    tick("smaller sizes")
    fixed = {n for i in plan.arrays if i.value is not None for n in i.shape}

    def at(shapes: list[tuple[int, ...]]) -> tuple[Program, Program]:
        return traced(plan.at(shapes)).programs

    choose = halved if plan.halved else smallest
    shapes, why = choose(plan.shapes, fixed, at)
    pair = traced(plan.at(shapes))
    there = kernels(plan, pair)
    changed = tuple((i.name, i.shape, s) for i, s in zip(plan.arrays, shapes, strict=True) if i.shape != s)

    def compared() -> Same:
        rests = premises(plan, found)
        # a premise that holds at the given sizes and not at these: the code is not written for these sizes
        beyond = () if why else premises(plan, there)
        worse = [f for f in beyond if f.verdict < min((p.verdict for p in rests), default=f.verdict)]
        refused = (
            problems.PREMISE_AT_SMALLER_SIZES(list(shapes[0]), worse[0].question, worse[0].verdict.value)
            if worse
            else why
        )
        if refused:
            said = Comparison(Verdict.UNKNOWN, problems.REDUCED_NOT_COMPARED(plan.names[0], refused))
        else:
            seen = witnessed(pair.jaxprs, _compared(plan, pair, tick), rests, pair.outputs)
            said = _at_given_sizes_too(plan, given, pair, seen, tick)
        return replace(whole, comparison=said, premises=rests_on(said, rests, given=False), reduced=changed)

    return kept(plan, [(given, found), (pair, there)], compared)


def _at_given_sizes_too(plan: Plan, given: TracedPair, pair: TracedPair, found: Comparison, tick: Tick) -> Comparison:
    """The comparison at smaller sizes, where a difference may come from a size that the code states as a number.

    Where the given sizes can be walked over, float64 has to show a difference there, too. Where they are too large, no
    number may stand in the programs at both sizes that one of the given ones explains.
    """
    if found.verdict is not Verdict.REFUTED:
        return found
    if max(elements_of(given.programs, given.arrays), *(_largest(t)[0] for t in given.programs)) <= WITNESSED:
        tick("float64, at the given sizes")
        if differs(Pair(given.programs, given.arrays, Prepared(), given.outputs)):
            return found
        why = problems.FLOAT64_AGREES()
    else:
        shapes = [i.shape for i in pair.arrays[: len(plan.arrays)]]
        stated = explained(given.programs, pair.programs, plan.shapes, shapes)
        if not stated:
            return found
        number, size = stated
        why = problems.GIVEN_SIZE_STATED(number, size)
    return replace(found, verdict=Verdict.UNKNOWN, reason=problems.REDUCED_DIFFERS(found.reason, why), differs=None)


def _compared(plan: Plan, pair: TracedPair, tick: Tick) -> Comparison:
    """The comparison by relations, points and float64; unknown, with the numbers, where there is nothing to compare."""
    compared = [a for t in pair.programs for a in t.out_avals]
    if not any(prod(a.shape) for a in compared):
        return Comparison(Verdict.UNKNOWN, problems.OUTPUTS_EMPTY())
    elements = elements_of(pair.programs, pair.arrays)
    most, place = max(map(_largest, pair.programs), key=itemgetter(0))
    too_large = SMALL
    if elements > MOST_ELEMENTS:
        too_large = TooLarge(problems.ELEMENTS_GIVEN(elements, MOST_ELEMENTS))
    elif most > MOST_ELEMENTS:
        too_large = TooLarge(problems.ELEMENTS_OF_ARRAY(most, MOST_ELEMENTS), place)

    def ask(outputs: Sequence[int] | None) -> Comparison:
        return compare(
            pair.programs, pair.arrays, plan.points, outputs, tick, plan.relations, too_large, pair.retrace,
        )  # fmt: skip

    try:
        return ask(pair.outputs) if too_large.why else partly(pair.programs, pair.outputs, ask)[0]
    except MemoryError:
        why = problems.MEMORY_RAN_OUT(most, OFFER)
        return Comparison(Verdict.UNKNOWN, why, place, again=True)


def _largest(program: Program) -> tuple[int, str]:
    """(Elements of the largest array that a program makes, kernels' and loops' bodies included, its place)."""
    most, where = 0, None
    for equation in equations_in(program):
        size = max((prod(getattr(v.aval, "shape", ())) for v in equation.outvars), default=0)
        if size > most:
            most, where = size, equation
    return most, "" if where is None else str(where.source)
