"""The user's own Python function with its block sizes as variables: each candidate traced, judged, and priced.

Tracing a candidate gives its true kernels, whatever the function does with its block sizes. Candidates that decide
alike are priced by the terms of one of them (`alike`); all are priced that keep the constraints on sizes and variables,
or, above a budget, the answer is no more than the best of those that were. What is shown was traced itself, and so was
all that costs less, unless grid and blocks refuse it; where tracing gives other figures than terms did, all are traced.
Then the cheapest are judged first, by the properties of kernels and the target's memory, until enough are proved legal.
What a kernel moves by manual DMA is not in its index maps: a cost of bytes or time is then unknown.
What its body holds in VMEM is not there either: `confirm` has the real compiler take each candidate that is found.
A candidate whose body is refuted is illegal; what stays unknown of a body refuses nothing, and the answer says it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from layoutproof.core.errors import LayoutError, Undecided, Unsupported
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Verdict
from layoutproof.core.size import Size
from layoutproof.core.term import Term, reads
from layoutproof.kernel.kernel import Kernel, KernelTarget, Unmodelled
from layoutproof.pallas.judge import BODY, GRID, about_body, in_order, judge, kernel_target
from layoutproof.tilings.alike import Candidates, Contradicted, Kernels, same
from layoutproof.tilings.branch import DIVIDES
from layoutproof.tilings.compiler_stage import PATIENCE, Report, accepted, words
from layoutproof.tilings.cost import FIGURES, CostModel
from layoutproof.tilings.legal import PARTIAL, against
from layoutproof.tilings.machines import Headroom, machine
from layoutproof.tilings.problem import NONE, Constraint

MOST = 4096
"""Candidates that are looked at, at effort 1 (about 10 ms each where it is traced, 0.3 ms where it is not)."""

FUNCTION = "the function: "
"""Before what a function says that refuses a candidate."""

COMPILER = "the compiler: "
"""Before what the compiler says that refuses a candidate, or why it gave no answer."""

AT_ONCE = 16
"""Legal candidates that the compiler is asked about at a time."""

Confirm = Callable[..., Sequence[Report]]
"""What the compiler says of candidates, or Undecided. No more are answered once so many are taken."""


@dataclass(frozen=True, slots=True)
class TracedProblem:
    """variables: name -> values, rising.  trace: the kernels of one choice; LayoutError where the function refuses it.

    vmem: bytes that a kernel may use, None = what each kernel asks for, or the target's default.  headroom: what
    is kept free of it.  step_overhead: ps of one grid step, None = not stated.  sizes: other names of the expressions.
    confirm: asks the compiler, None = nobody can; confirmed: whether it is asked.
    source: file, line and column of the function's name.
    The rest as in `problem.Problem`.
    """

    name: str
    variables: Mapping[str, tuple[int, ...]]
    trace: Callable[[Mapping[str, int]], Kernels]
    target: str
    compiler: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    vmem: int | None = None
    headroom: Headroom = NONE
    step_overhead: int | None = None
    flops: Term | None = None
    cost: Term | None = None
    partial: bool = True
    constraints: tuple[Constraint, ...] = ()
    confirm: Confirm | None = None
    confirmed: bool = False
    source: tuple[str, int, int] = ("", 0, 0)


@dataclass(frozen=True, slots=True)
class Traced:
    """One candidate. figures: sums over its kernels, but vmem of the largest.

    uncounted: operands that the cost rests on that are moved by manual DMA.  read: whether tables choose its blocks.
    body: what stays unknown of its kernels' bodies; () before anybody asked.
    traced: whether it was traced itself; otherwise its kernels have no bodies, and nobody is shown it.
    compiled: what the compiler says of it; () before anybody asked.
    """

    values: Mapping[str, int]
    kernels: tuple[Kernel, ...]
    cost: int
    figures: Mapping[str, int]
    uncounted: tuple[str, ...]
    read: bool
    body: tuple[str, ...] = ()
    traced: bool = True
    compiled: Report = ()


@dataclass(slots=True)
class TracedFound:
    """found: proved legal, cheapest first.  refused, undecided: candidates by reason.

    count: of all candidates.  looked_at: how many were; all of them where the answer is complete.
    cheaper: of the undecided ones, how many cost less than the best found, or nobody knows what.
    ranked: every candidate with a price, cheapest first, whether it was judged or not.
    alike: what the function says to every candidate, where it refuses all of them in the same words.
    unasked: why the compiler, which should have been asked, was not.
    traced: how many candidates were traced; the others decide as one of them does.  ways: how many ways to decide.
    told: what the compiler says of each candidate that was put to it.
    """

    count: int = 0
    looked_at: int = 0
    found: list[Traced] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    cheaper: int = 0
    ranked: list[Traced] = field(default_factory=list)
    alike: str = ""
    unasked: str = ""
    traced: int = 0
    ways: int = 0
    told: list[Report] = field(default_factory=list)

    @property
    def unknown(self) -> str:
        """Why this is not the best of all candidates, "" = it is proved to be."""
        if self.looked_at < self.count:
            return f"{self.looked_at} of {self.count} candidates were looked at; the budget ended"
        if self.cheaper:
            what = next(iter(self.undecided))
            return f"{self.cheaper} candidates that may cost less are neither proved nor refuted, e.g. {what}"
        by_hand = dict.fromkeys(name for one in self.found for name in one.uncounted)
        if by_hand:
            return f"{', '.join(by_hand)}: moved by manual DMA, and the bytes of that are not counted"
        return self.unasked


def search_traced(problem: TracedProblem, best: int = 1, effort: int = 1) -> TracedFound:
    """The `best` cheapest candidates that are proved legal, in order of cost, then of bytes moved, then of values."""
    target = kernel_target(problem.target, problem.compiler)
    count = prod(len(values) for values in problem.variables.values())
    candidates = Candidates(problem.trace, count)
    try:
        return _searched(problem, target, candidates, best, effort)
    except Contradicted:
        return _searched(problem, target, Candidates(problem.trace, count, stopped=True), best, effort)


def _searched(
    problem: TracedProblem, target: KernelTarget, candidates: Candidates, best: int, effort: int
) -> TracedFound:
    result = TracedFound(count=candidates.count)
    known: dict[Kernels, Prices] = {}
    for values in itertools.islice(_choices(problem), MOST * effort):
        result.looked_at += 1
        broken = _broken(problem, {**problem.sizes, **values})
        if broken:
            result.refused[broken] += 1
            continue
        calls, traced = candidates.calls(values)
        if isinstance(calls, LayoutError):
            result.refused[FUNCTION + calls.problem] += 1
            continue
        try:
            given = known.get(calls) or prices(problem, calls)
            if not traced:
                known[calls] = given
            result.ranked.append(replace(priced(problem, values, given), traced=traced))
        except Undecided as undecided:
            result.undecided[str(undecided)] += 1
        except ZeroDivisionError:
            result.refused[DIVIDES] += 1
    if candidates.contradicted:
        raise Contradicted
    result.cheaper = result.undecided.total()
    result.ranked.sort(key=lambda one: (one.cost, one.figures["bytes"], tuple(one.values.values())))
    waiting: list[Traced] = []
    for k, one in enumerate(result.ranked):
        body: tuple[str, ...] = ()
        if one.traced:
            why, sure = illegal(problem, one, target)
        else:
            one, why, sure = _of_terms(problem, one, target, candidates)
        if not why:
            why, body = of_bodies(one, target)
        if not why:
            result.ranked[k] = replace(one, body=body)
            waiting.append(result.ranked[k])
        else:
            _put_away(result, why, sure)
        enough = best - len(result.found) if not problem.confirmed else AT_ONCE
        if len(waiting) >= enough or k + 1 == len(result.ranked):
            _confirmed(problem, waiting, result, best)
            waiting = []
        if len(result.found) == best:
            break
        if len(result.told) - len(result.found) >= PATIENCE * best * effort:
            said = f"the compiler was asked about {len(result.told)} candidates and took {len(result.found)}"
            result.unasked = f"{said}; a larger effort asks on"
            break
    result.traced, result.ways = candidates.traced, candidates.ways
    alike = next(iter(result.refused), "")
    if (alike.startswith(FUNCTION) or alike.endswith(DIVIDES)) and result.refused[alike] == result.count:
        result.alike = alike
    return result


def _of_terms(
    problem: TracedProblem, one: Traced, target: KernelTarget, candidates: Candidates
) -> tuple[Traced, str, bool]:
    """What `illegal` says of a candidate that was not traced, and the candidate, traced unless it is refused.

    Contradicted where tracing gives something else.
    """
    from layoutproof.pallas.from_jax.recorded_calls import bound

    kernels = one.kernels
    try:
        kernels = tuple(bound(kernel, one.values) for kernel in kernels)
        why, sure = illegal(problem, replace(one, kernels=kernels), target)
    except LayoutError:
        why, sure = "", False
    if why and sure:
        return one, why, sure
    try:
        found = priced(problem, one.values, prices(problem, candidates.itself(one.values)))
    except (LayoutError, Undecided):
        raise Contradicted from None
    if (found.cost, found.figures) != (one.cost, one.figures):
        raise Contradicted
    if not all(map(same, kernels, found.kernels)):
        why, sure = illegal(problem, found, target)
    return found, why, sure


def _full(problem: TracedProblem, kernel: Kernel, target: KernelTarget) -> str:
    """The memory in which a kernel takes more than it may, with what that is; "" = none."""
    # the call around a pipeline counts its buffers
    for memory in () if kernel.pipeline == "emit_pipeline" else target.memory(kernel):
        allowed = memory.limit * (100 - problem.headroom.percent) // 100
        if memory.used > allowed:
            return f"{memory.name} (more than {allowed} bytes)"
    return ""


def _put_away(result: TracedFound, why: str, sure: bool) -> None:
    if sure:
        result.refused[why] += 1
    else:
        result.undecided[why] += 1
        result.cheaper += not result.found


def _confirmed(problem: TracedProblem, waiting: Sequence[Traced], result: TracedFound, best: int) -> None:
    """Puts legal candidates, which come in order of cost, to those found or to those that the compiler refuses."""
    reports: Sequence[Report] | None = None
    if problem.confirmed and problem.confirm is not None and waiting:
        try:
            reports = problem.confirm(waiting, best - len(result.found))
        except Undecided as undecided:
            result.unasked = str(undecided)
    if reports is None:
        result.found += waiting[: best - len(result.found)]
        return
    for one, report in zip(waiting, reports, strict=False):
        if len(result.found) == best:
            return
        result.told.append(report)
        if accepted(report):
            result.found.append(replace(one, compiled=report))
        else:
            _put_away(result, COMPILER + words(report), accepted(report) is not None)


@dataclass(frozen=True, slots=True)
class Prices:
    """What some calls cost, whose amounts may be terms over the variables. models: one for each kernel.

    uncounted, read: as of `Traced`.
    """

    kernels: tuple[Kernel, ...]
    models: tuple[CostModel, ...]
    uncounted: tuple[str, ...]
    read: bool


def prices(problem: TracedProblem, calls: Kernels) -> Prices:
    """What calls cost. Undecided where nobody knows."""
    kernels = []
    for call in calls:
        if isinstance(call, Unmodelled):
            raise Unsupported(f"{call.name}: {call.reason}")
        if call.manual_dma and not any(operand.windowed for operand in call.operands):
            raise Unsupported(f"{call.name}: all its data are moved by manual DMA, so there is no block to choose")
        kernels.append(call if problem.vmem is None else replace(call, vmem_limit=problem.vmem))
    if not kernels:
        raise Unsupported("the function makes no Pallas call")
    models = []
    for k, kernel in enumerate(kernels):
        _check_known(kernel)
        numbers = machine(problem.target, kernel, problem.step_overhead)
        # the flops are of all kernels together, and counted once
        models.append(CostModel(kernel, problem.flops if k == 0 else None, numbers))
    by_hand = [o.name for kernel in kernels for o in kernel.operands if o.memory in ("any", "hbm")]
    if problem.cost is not None and not {"time", "bytes", "padding"} & set(problem.cost.names()):
        by_hand = []  # the cost is the user's own, and complete without them
    read = any(reads(operand.index) for kernel in kernels for operand in kernel.operands)
    return Prices(tuple(kernels), tuple(models), tuple(dict.fromkeys(by_hand)), read)


def priced(problem: TracedProblem, values: Mapping[str, int], given: Prices) -> Traced:
    """One candidate with the figures of its calls. Undecided where its cost is unknown."""
    names = {**problem.sizes, **values}
    rows = [model.figures(names, INTS) for model in given.models]
    row = {name: max(r[name] for r in rows) if name == "vmem" else sum(r[name] for r in rows) for name in FIGURES}
    cost = row["time"] if problem.cost is None else int(problem.cost.evaluate({**names, **row}, INTS))
    return Traced(dict(values), given.kernels, cost, row, given.uncounted, given.read)


def _check_known(kernel: Kernel) -> None:
    """Undecided where a size of the kernel is known at run time only."""
    if any(isinstance(n, Size) for n in kernel.grid):
        raise Unsupported(f"{kernel.name}: its grid is known at run time only")
    amounts = [n for o in kernel.operands for n in (*o.dims, *(b.size for b in o.block))]
    for amount in (*amounts, *(n for s in (*kernel.scratch, *kernel.scoped) for n in s.dims)):
        if isinstance(amount, Size):
            raise Unsupported(f"the size {amount} is known at run time only")


def illegal(problem: TracedProblem, one: Traced, target: KernelTarget) -> tuple[str, bool]:
    """(why a candidate is illegal, whether that is proved); ("", True) = it is proved legal.

    A property that no engine decides is no licence, and no refutation either.
    """
    broken = _broken(problem, {**problem.sizes, **one.values, **one.figures})
    if broken:
        return broken, True
    open_question = ""
    for kernel in one.kernels:
        if kernel.platform != target.platform:
            open_question = f"{kernel.name} is for {kernel.platform}; {target.name} has kernels for {target.platform}"
            continue
        try:
            full = _full(problem, kernel, target)
            if full:
                return full, True
        except Undecided as undecided:
            open_question = open_question or str(undecided)
        found, proved = against(judge(kernel, target=target, only=GRID), problem.partial)
        if found is not None and proved and found.question == PARTIAL:
            return f"{PARTIAL}: {found.subject} has blocks that reach over its edge", True
        if found is not None and proved:
            return f"{found.question} {found.subject}", True
        if found is not None:
            open_question = open_question or f"{found.question} {found.subject}: {found.reason}"
    return open_question, not open_question


def of_bodies(one: Traced, target: KernelTarget) -> tuple[str, tuple[str, ...]]:
    """What a candidate's bodies do wrong, "" = nothing is refuted; and what stays unknown of them, a line each."""
    unknown = []
    for kernel in one.kernels:
        if kernel.body_reader is None:
            unknown.append(f"{kernel.name}: {BODY}")
            continue
        for found in judge(kernel, names=[name for name in in_order(True) if about_body(name)], target=target):
            if found.verdict is Verdict.REFUTED and found.severity == "error":
                return f"{found.question} {found.subject}", ()
            if found.verdict is Verdict.UNKNOWN and found.severity == "error":
                unknown.append(f"{found.question} {found.subject}: {found.reason}")
    return "", tuple(unknown)


def _broken(problem: TracedProblem, names: Mapping[str, int]) -> str:
    """A constraint that does not hold, among those that speak of these names only; "" = none."""
    for constraint in problem.constraints:
        if not set(constraint.condition.names()) <= set(names):
            continue
        try:
            if not constraint.condition.evaluate(names, INTS):
                return constraint.text
        except ZeroDivisionError:
            return f"{constraint.text}: {DIVIDES}"
    return ""


def _choices(problem: TracedProblem) -> Iterator[dict[str, int]]:
    """Every candidate, largest values first: where the budget ends the small ones, which fetch most, are left out."""
    names = list(problem.variables)
    for values in itertools.product(*(values[::-1] for values in problem.variables.values())):
        yield dict(zip(names, values, strict=True))
