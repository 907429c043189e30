"""The premises of an answer of `lp.same`: findings about the function's kernels, as `lp.kernels` gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.findings import Judged, judged
from layoutproof.questions import problems
from layoutproof.questions.same_plan import Plan, TracedPair, given_whole
from layoutproof.values.compare import Comparison
from layoutproof.values.pair import Input
from layoutproof.values.relations.reading import LARGEST

PREMISES = (
    "body_races", "dma_order", "undefined_values", "body_in_bounds", "blocks_in_bounds", "parallel_writes",
    "table_reads", "alias_hazard", "initialised", "device_waits", "device_races", "device_barrier", "subcore_barrier",
    "commit_smem",
)  # fmt: skip
"""The premises of the walk: it runs programs in one order, copies land when they are waited for, and uninitialised
integers, which it draws, are not read."""
UNDEFINED, WRITTEN = "undefined_values", "initialised"
PLACES, ORDER = ("body_in_bounds", "blocks_in_bounds", "table_reads"), ("dma_order",)
"""The premises that the walk checks itself: it computes every place of every program, from the given integers, and
which copies are in flight when a place is touched."""


Call = Kernel | Unmodelled


def kernels(plan: Plan, pair: TracedPair) -> tuple[Call, ...]:
    """The kernels of the function that is asked about; of its arrays, those that are given are constants."""
    from layoutproof.pallas.from_jax.user import CPU, calls_in

    call, shapes = pair.with_tables()
    target = None if plan.target == CPU else plan.target
    found = calls_in(call, shapes, {}, target=target, assume=plan.assume)
    given = given_whole(pair)
    return tuple(map(_bounded, found, given)) if len(given) == len(found) else found


def _bounded(call: Call, given: Mapping[str, Input]) -> Call:
    """A kernel of which is assumed what is assumed of the arguments that it is given as they are."""
    if not isinstance(call, Kernel):
        return call
    tables = {table.name: table.dims for table in every_table(call)}
    texts = [
        f"{i.span[0]} <= {name} < {i.span[1] + 1}"
        for name, i in given.items()
        if i.span is not None and i.value is None and tables.get(name) == i.shape
    ]
    return with_assumptions(call, texts) if texts else call


def conditions(plan: Plan, found: Sequence[Call]) -> tuple[str | None, ...]:
    """The condition on sizes under which each kernel is asked about. Raises LayoutError where there is none to ask."""
    from layoutproof.pallas.judge import conditions_of

    for text in () if found else (*plan.where, *plan.assume):
        raise LayoutError(problems.CONDITION_WITHOUT_KERNEL(shorten(text, 80)))
    return tuple(conditions_of(found, plan.where)) if found else ()


def premises(plan: Plan, found: Sequence[Call], seen: Comparison | None = None) -> tuple[Finding, ...]:
    """The findings of kernels on the premises of the walk.

    seen: the comparison. A premise that `rests_on` would leave out is not asked, and no assumption is looked for that
    would decide a premise which the comparison shows itself.
    """
    among = [name for name in PREMISES if seen is None or name not in _needless(seen)]
    shown = () if seen is None else _shown(seen)
    return tuple(
        f
        for call, said in zip(found, conditions(plan, found), strict=True)
        for f in _of(judged(call, where=said, among=among, settled_elsewhere=shown))
    )


def for_all_sizes(plan: Plan, found: Sequence[Call], grids: Sequence[Sequence[Term]]) -> tuple[Finding, ...] | str:
    """Likewise for all sizes that are names, or why not. grids: of each kernel, as relations read it."""
    from layoutproof.pallas.judge import conditions_on

    if len(found) != len(grids):
        return problems.KERNELS_OF_RELATIONS(len(found), len(grids))
    bounds = [*plan.where, *(f"{name} <= {LARGEST}" for name in plan.sizes)]
    every: list[Finding] = []
    for call, grid in zip(found, grids, strict=True):
        texts = [*bounds, *(f"grid{k} == {n}" for k, n in enumerate(grid) if n.op != "int")]
        every += _of(judged(call, where=conditions_on(call, texts) if isinstance(call, Kernel) else None))
    # that nothing undefined is in an output is what relations decide, for all sizes
    return tuple(f for f in every if f.question not in (UNDEFINED, WRITTEN))


def rests_on(found: Comparison, asked: Sequence[Finding], given: bool = True) -> tuple[Finding, ...]:
    """The premises that an answer rests on, with what the comparison itself shows of them.

    asked: as `premises` gives them.  given: whether it was made at the given sizes.
    """
    needless = (WRITTEN,) if found.verdict in (Verdict.REFUTED, Verdict.UNKNOWN) else _needless(found)
    return tuple(_seen(f, found) if given else f for f in asked if f.question not in needless)


def _needless(found: Comparison) -> tuple[str, ...]:
    """Premises not to ask: the comparison sees uses of uninitialised floats, where no integer is uninitialised."""
    settled = found.verdict is Verdict.PROVED or (found.verdict is Verdict.SAMPLED and found.defined)
    return (WRITTEN,) if settled else ()


def _shown(found: Comparison) -> tuple[str, ...]:
    """The premises that the comparison shows by itself, for the tables that are given."""
    undefined = found.verdict is Verdict.SAMPLED and found.inside and found.defined
    return (
        *(PLACES if found.inside else ()),
        *(ORDER if found.ordered or found.race else ()),
        *((UNDEFINED,) if undefined or found.verdict is Verdict.PROVED else ()),
    )


def _seen(premise: Finding, found: Comparison) -> Finding:
    """A premise that is undecided for all tables, as far as the comparison shows it for the given ones."""
    if premise.verdict is not Verdict.UNKNOWN or premise.question not in _shown(found):
        return premise
    if premise.question in PLACES or (premise.question in ORDER and found.ordered):
        words = problems.PREMISE_WALKED()
        return replace(premise, verdict=Verdict.PROVED, reason=words, decided_by="walk")
    if premise.question in ORDER:
        words = problems.PREMISE_RACE(found.race)
        return replace(premise, verdict=Verdict.REFUTED, reason=words, decided_by="walk")
    if found.verdict is Verdict.PROVED:
        # undefined times 0 is undefined there
        words = problems.PREMISE_DEFINED()
        return replace(premise, verdict=Verdict.PROVED, reason=words, decided_by=found.decided_by)
    # an uninitialised float is a value of its own there, which no product removes
    words = problems.PREMISE_SAMPLED(found.points)
    return replace(premise, verdict=Verdict.SAMPLED, reason=words, decided_by="points")


def _of(call: Judged) -> list[Finding]:
    whole = call.whole()
    asked = [f for f in call.findings if f.question in PREMISES and f.severity == "error"]
    # the comparison sees what depends on uninitialised floats
    floats = _floats(call.call)
    asked = [f for f in asked if f.question != WRITTEN or f.subject not in floats]
    return [*asked, *([replace(whole, severity="error")] if whole is not None else [])]


def _floats(call: Call) -> frozenset[str]:
    """The names of a kernel's scratch and outputs that hold floats."""
    if not isinstance(call, Kernel):
        return frozenset()
    memory = {f"scratch[{k}]": s.dtype for k, s in enumerate(call.scratch)}
    memory |= {operand.name: operand.dtype for operand in call.operands}
    return frozenset(name for name, dtype in memory.items() if dtype.startswith(("f", "bf")))
