"""The user's own Python function with its block sizes as variables: each candidate traced, judged, and priced.

Tracing a candidate gives its true kernels, whatever the function does with its block sizes. Candidates that decide
alike are priced by the terms of one of them (`alike`); all are priced that keep the constraints on sizes and variables,
or, above a budget, the answer is only the best of those that were. Every shown candidate was traced itself, and so was
every cheaper one, unless grid and blocks refuse it; where tracing gives other figures than terms did, all are traced.
Then the cheapest are judged first, by the properties of kernels and the target's memory, until enough are proved legal.
Manual DMA is not in the index maps: a cost of bytes or time is then unknown.
The VMEM of the body's values is not there either: `confirm` has the real compiler take each candidate that is found.
A candidate whose body is refuted is illegal; an unknown of a body refuses nothing, and the answer says it.
One that takes more of VMEM, by the model, than headroom leaves is set aside, unless the compiler is asked: it is no
answer, and nothing is proved of it. The flops of a body's matrix products are counted where every candidate is
traced, and all programs do all of them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from layoutproof.core.errors import LayoutError, Undecided, Unsupported
from layoutproof.core.finding import Finding
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Verdict
from layoutproof.core.size import Size
from layoutproof.core.term import Term, reads
from layoutproof.kernel.kernel import Kernel, KernelTarget, Unmodelled, Work
from layoutproof.pallas.judge import BODY, GRID, about_body, in_order, judge, kernel_target
from layoutproof.pallas.memory_needed import memory_needed
from layoutproof.searching.alike import Candidates, Contradicted, Kernels, same
from layoutproof.searching.branch import DIVIDES, Candidate
from layoutproof.searching.compiler_stage import PATIENCE, Report, accepted, words
from layoutproof.searching.cost import FIGURES, CostModel, limit_of
from layoutproof.searching.legal import MEMORY, PARTIAL, against
from layoutproof.searching.machines import Headroom, machine, of_body
from layoutproof.searching.problem import NONE, TilingProblem

MOST = 4096
"""Candidates that are looked at, at effort 1 (about 10 ms each where it is traced, 0.3 ms where it is not)."""

COUNTED = 256
"""Candidates up to which each is traced where its body has products, so that what they compute is counted."""

LEFT = 64
"""Candidates, dearer than the last that is shown, up to which each is judged, so that all that are refused count."""

FUNCTION = "the function: "
"""Before what a function says that refuses a candidate."""

COMPILER = "the compiler: "
"""Before what the compiler says that refuses a candidate, or why it gave no answer."""

AT_ONCE = 16
"""Legal candidates that the compiler is asked about at a time."""

Confirm = Callable[..., Sequence[Report]]
"""The compiler's answers on candidates, or Undecided. No more are answered once so many are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedProblem(TilingProblem):
    """Arguments of a traced function. trace: the kernels of one choice; LayoutError where the function refuses it.

    vmem: bytes that a kernel may use, None = what each kernel asks for, or the target's default.  headroom: what
    is kept free of it, None = the need of the kind of each body.
    step_overhead: ps of one grid step, None = not stated.
    confirm: asks the compiler, None = there is none; confirmed: whether it is asked.
    source: file, line and column of the function's name.
    """

    trace: Callable[[Mapping[str, int]], Kernels]
    vmem: int | None = None
    headroom: Headroom | None = NONE
    step_overhead: int | None = None
    confirm: Confirm | None = None
    confirmed: bool = False
    source: tuple[str, int, int] = ("", 0, 0)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Other names of the expressions."""
        return self.shapes[0].sizes


@dataclass(frozen=True, slots=True)
class TracedCandidate:
    """One candidate. figures: sums over its kernels, but vmem of the largest.

    limit: the bottleneck of the slowest kernel, as of `cost.limit_of`.
    uncounted: operands that the cost rests on that are moved by manual DMA.  read: whether tables choose its blocks.
    body: the unknowns of its kernels' bodies; () before they were asked.
    traced: whether it was traced itself; otherwise its kernels have no bodies, and it is not shown.
    compiled: the compiler's answer on it; () before it was asked.
    """

    values: Mapping[str, int]
    kernels: tuple[Kernel, ...]
    cost: int
    figures: Mapping[str, int]
    limit: str
    uncounted: tuple[str, ...]
    read: bool
    body: tuple[str, ...] = ()
    traced: bool = True
    compiled: Report = ()

    @property
    def candidate(self) -> Candidate:
        """The same as it is shown, with the figures of its one shape."""
        return Candidate(self.values, self.cost, (self.figures,), (self.limit,))


@dataclass(slots=True)
class TracedFound:
    """The result of a search. found: proved legal, cheapest first.  refused, undecided: candidates by reason.

    best: rows to show, None = all.  within: none is shown that costs more than so many times the first, None = any.
    count: of all candidates.  looked_at: how many were; all of them where the answer is complete.
    cheaper: of the undecided ones, how many cost less than the best found, or have no price.
    ranked: every candidate with a price, cheapest first, whether it was judged or not.
    alike: the function's error for every candidate, where it refuses all of them in the same words.
    unasked: why the compiler, which should have been asked, was not.
    traced: how many candidates were traced; the others decide as one of them does.  ways: how many ways to decide.
    told: the compiler's answer on each candidate that it was asked about.
    aside: candidates that headroom sets aside, cheapest first.  because: by reason for which candidates are refused,
    the finding on the first of them.  unjudged: candidates that cost more than the shown rows and were not judged.
    compute: why the flops of bodies are not in the cost, "" = they are, or there are no products.
    """

    problem: TracedProblem
    best: int | None = None
    within: float | None = None
    count: int = 0
    looked_at: int = 0
    found: list[TracedCandidate] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    cheaper: int = 0
    ranked: list[TracedCandidate] = field(default_factory=list)
    alike: str = ""
    unasked: str = ""
    traced: int = 0
    ways: int = 0
    told: list[Report] = field(default_factory=list)
    aside: list[TracedCandidate] = field(default_factory=list)
    because: dict[str, Finding] = field(default_factory=dict)
    unjudged: int = 0
    compute: str = ""

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
        if self.aside and not self.found:
            left = f"{len(self.aside)} candidates are set aside by headroom, and nothing is proved of them"
            return f"{left}: --compile has the compiler decide, --headroom 0% takes all that fit by the model"
        return self.unasked

    @property
    def verdict(self) -> Verdict:
        """PROVED: nothing that costs less is legal.  REFUTED: no candidate is legal.  UNKNOWN otherwise."""
        if self.unknown:
            return Verdict.UNKNOWN
        return Verdict.PROVED if self.found else Verdict.REFUTED


def search_traced(problem: TracedProblem, best: int = 1, effort: int = 1) -> TracedFound:
    """The `best` cheapest candidates that are proved legal, in order of cost, then of bytes moved, then of values."""
    target = kernel_target(problem.target, problem.compiler)
    try:
        return _TracedSearch(problem, target, Candidates(problem.trace, problem.count())).run(best, effort)
    except Contradicted:
        return _TracedSearch(problem, target, Candidates(problem.trace, problem.count(), stopped=True)).run(
            best, effort
        )


ASIDE = "set aside"
"""In place of a reason, of a candidate that is among those set aside."""

PRODUCT = "set aside: windows, scratch and a product that the body works on are more than the limit of VMEM"
"""The reason of candidates whose body holds more than its windows leave."""


class _TracedSearch:
    """One search: every candidate is priced, and from the cheapest on judged, until enough are proved legal."""

    def __init__(self, problem: TracedProblem, target: KernelTarget, candidates: Candidates) -> None:
        self.problem, self.target, self.candidates = problem, target, candidates
        self.result = TracedFound(problem, count=candidates.count)
        self.counted = problem.flops is None and (candidates.stopped or candidates.count <= COUNTED)
        self._known: dict[Kernels, Prices] = {}

    def run(self, best: int, effort: int) -> TracedFound:
        """The whole search."""
        result = self.result
        for values in itertools.islice(_choices(self.problem), MOST * effort):
            result.looked_at += 1
            self._price(values)
        if self.candidates.contradicted:
            raise Contradicted
        result.cheaper = result.undecided.total()
        result.ranked.sort(key=lambda one: (one.cost, one.figures["bytes"], tuple(one.values.values())))
        self._count_the_rest(result.ranked[self._take(best, effort) :])
        result.traced, result.ways = self.candidates.traced, self.candidates.ways
        alike = next(iter(result.refused), "")
        if (alike.startswith(FUNCTION) or alike.endswith(DIVIDES)) and result.refused[alike] == result.count:
            result.alike = alike
        return result

    def _price(self, values: Mapping[str, int]) -> None:
        """Puts one candidate to those that have a price, or says why it has none."""
        problem, result = self.problem, self.result
        broken = _broken(problem, {**problem.sizes, **values})
        if broken:
            result.refused[broken] += 1
            return
        calls, traced = self.candidates.calls(values)
        if isinstance(calls, LayoutError):
            result.refused[FUNCTION + calls.problem] += 1
            return
        work = [call.work for call in calls if isinstance(call, Kernel) and call.work is not None]
        if problem.flops is None and any(one.kind in ("matmul", "attention") for one in work):
            result.compute = result.compute or _uncounted(work, self.counted)
            # terms know nothing of bodies
            self.candidates.stopped |= self.counted
            if not traced and self.counted:
                calls, traced = self.candidates.itself(values), True
        try:
            given = self._known.get(calls) or prices(problem, calls, self.counted)
            if not traced:
                self._known[calls] = given
            result.ranked.append(replace(priced(problem, values, given), traced=traced))
        except Undecided as undecided:
            result.undecided[str(undecided)] += 1
        except ZeroDivisionError:
            result.refused[DIVIDES] += 1

    def _take(self, best: int, effort: int) -> int:
        """Takes the cheapest that are legal, and how many of those with a price were judged for it."""
        problem, result = self.problem, self.result
        waiting: list[TracedCandidate] = []
        for k, one in enumerate(result.ranked, 1):
            one, why, sure = self._judge(one)
            if not why:
                result.ranked[k - 1] = one
                waiting.append(one)
            elif why is not ASIDE:
                self._put_away(why, sure)
            enough = best - len(result.found) if not problem.confirmed else AT_ONCE
            if len(waiting) >= enough or k == len(result.ranked):
                self._confirm(waiting, best)
                waiting = []
            if len(result.found) == best:
                return k
            if len(result.told) - len(result.found) >= PATIENCE * best * effort:
                said = f"the compiler was asked about {len(result.told)} candidates and took {len(result.found)}"
                result.unasked = f"{said}; a larger effort asks on"
                return k
        return len(result.ranked)

    def _judge(self, one: TracedCandidate) -> tuple[TracedCandidate, str, bool]:
        """(the candidate, why it is no answer, whether that is proved); ASIDE where it is put among those set aside."""
        known, because = _known(one), self.result.because
        if self._set_aside(one, known) and not _fits_nowhere(one, self.target, known):
            self.result.aside.append(one)
            return one, ASIDE, False
        if one.traced:
            why, sure = illegal(self.problem, one, self.target, because)
        else:
            one, why, sure = self._of_terms(one, known)
            known = one.kernels
        if not why and self._set_aside(one, known):
            # the values of its body are known once it was traced
            self.result.aside.append(one)
            return one, ASIDE, False
        if why:
            return one, why, sure
        why, body = of_bodies(one, self.target, because)
        return replace(one, body=body), why, True

    def _set_aside(self, one: TracedCandidate, known: Sequence[Kernel | None]) -> bool:
        """Whether headroom sets a candidate aside; where the compiler is asked it sets none aside."""
        return not self.problem.confirmed and bool(set_aside(self.problem, one, self.target, known))

    def _of_terms(self, one: TracedCandidate, known: Sequence[Kernel | None]) -> tuple[TracedCandidate, str, bool]:
        """What `illegal` says of a candidate that was not traced, and the candidate, traced unless it is refused.

        known: its kernels with numbers. Contradicted where tracing gives something else.
        """
        problem, because = self.problem, self.result.because
        numbered = tuple(kernel for kernel in known if kernel is not None)
        kernels = numbered if len(numbered) == len(known) else one.kernels
        why, sure = "", False
        if kernels is numbered:
            with suppress(LayoutError):
                why, sure = illegal(problem, replace(one, kernels=kernels), self.target, because)
        if why and sure:
            return one, why, sure
        try:
            found = priced(problem, one.values, prices(problem, self.candidates.itself(one.values), self.counted))
        except (LayoutError, Undecided):
            raise Contradicted from None
        if (found.cost, found.figures) != (one.cost, one.figures):
            raise Contradicted
        if not all(map(same, kernels, found.kernels)):
            why, sure = illegal(problem, found, self.target, because)
        return found, why, sure

    def _put_away(self, why: str, sure: bool) -> None:
        if sure:
            self.result.refused[why] += 1
        else:
            self.result.undecided[why] += 1
            self.result.cheaper += not self.result.found

    def _confirm(self, waiting: Sequence[TracedCandidate], best: int) -> None:
        """Puts legal candidates, which come in order of cost, to those found or to those that the compiler refuses."""
        problem, result = self.problem, self.result
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
                self._put_away(COMPILER + words(report), accepted(report) is not None)

    def _count_the_rest(self, rest: Sequence[TracedCandidate]) -> None:
        """Judges those that cost more than what is shown, where they are few: how many are refused is said of all."""
        result = self.result
        if self.problem.confirmed:
            result.unjudged = len(rest)
            return
        for one in rest:
            if len(rest) <= LEFT:
                _, why, sure = self._judge(one)
                if why and why is not ASIDE:
                    (result.refused if sure else result.undecided)[why] += 1
                continue
            known = _known(one)
            if not set_aside(self.problem, one, self.target, known):
                result.unjudged += 1
                continue
            full = _fits_nowhere(one, self.target, known)
            result.refused.update([full] if full else [])
            result.aside += [] if full else [one]


def kept_free(problem: TracedProblem, kernel: Kernel) -> Headroom:
    """The headroom of a kernel: as the problem states it, or the need of its body."""
    if problem.headroom is not None:
        return problem.headroom
    return of_body(None if kernel.work is None else kernel.work.kind)


def _known(one: TracedCandidate) -> Sequence[Kernel | None]:
    """The kernels of a candidate with its numbers in them; None in the place of one that does not take them."""
    from layoutproof.pallas.from_jax.recorded_calls import bound

    if one.traced:
        return one.kernels
    found: list[Kernel | None] = []
    for kernel in one.kernels:
        try:
            found.append(bound(kernel, one.values))
        except (LayoutError, Undecided):
            found.append(None)
    return found


def _fits_nowhere(one: TracedCandidate, target: KernelTarget, known: Sequence[Kernel | None]) -> str:
    """The memory in which a candidate cannot fit, "" = none; of one that was not traced no scratch is counted."""
    for kernel in known:
        if kernel is None:
            continue
        try:
            full = _full(kernel if one.traced else replace(kernel, scratch=(), scoped=()), target)
        except (LayoutError, Undecided):
            continue
        if full:
            return full
    return ""


def set_aside(
    problem: TracedProblem, one: TracedCandidate, target: KernelTarget, known: Sequence[Kernel | None]
) -> str:
    """Why it is unknown that a candidate fits, "" = by the model it does, with room for the values of its body."""
    for kernel, numbered in zip(one.kernels, known, strict=True):
        if numbered is None:
            continue
        try:
            # the call around a pipeline counts its buffers
            memories = () if kernel.pipeline == "emit_pipeline" else target.memory(numbered)
        except (LayoutError, Undecided):
            continue
        kept = kept_free(problem, kernel)
        held = 0 if kernel.work is None else kernel.work.held
        for memory in memories:
            if memory.name != "VMEM":
                continue
            if 100 * memory.used > memory.limit * (100 - kept.percent):
                return kept.aside
            if problem.headroom is None and memory.used + held > memory.limit:
                return PRODUCT
    return ""


def _uncounted(work: Sequence[Work], counted: bool) -> str:
    if not counted:
        return f"there are more than {COUNTED} candidates, and few are traced; flops: says it, or fewer values"
    if not all(one.always for one in work):
        return "some matrix products of the body stand under conditions; flops: says what they are together"
    return ""


def _full(kernel: Kernel, target: KernelTarget) -> str:
    """The memory in which a kernel cannot fit, whatever the compiler chooses, with its limit; "" = none."""
    # the call around a pipeline counts its buffers
    for memory in () if kernel.pipeline == "emit_pipeline" else memory_needed(kernel, target):
        if memory.least > memory.limit:
            return f"{memory.name} (more than {memory.limit} bytes)"
    return ""


@dataclass(frozen=True, slots=True)
class Prices:
    """The costs of some calls, whose amounts may be terms over the variables. models: one for each kernel.

    uncounted, read: as of `TracedCandidate`.
    """

    kernels: tuple[Kernel, ...]
    models: tuple[CostModel, ...]
    uncounted: tuple[str, ...]
    read: bool


def prices(problem: TracedProblem, calls: Kernels, counted: bool = False) -> Prices:
    """The costs of calls. counted: with the flops of the products of their bodies. Undecided where they are unknown."""
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
        flops = problem.flops if k == 0 else None
        if problem.flops is None and counted and kernel.work is not None and kernel.work.flops and kernel.work.always:
            flops = Term("*", Term("int", kernel.work.flops), Term("name", "steps"))
        models.append(CostModel(kernel, flops, numbers))
    by_hand = [o.name for kernel in kernels for o in kernel.operands if o.memory in ("any", "hbm")]
    if problem.cost is not None and not {"time", "bytes", "padding"} & set(problem.cost.names()):
        by_hand = []  # the cost is the user's own, and complete without them
    read = any(reads(operand.index) for kernel in kernels for operand in kernel.operands)
    return Prices(tuple(kernels), tuple(models), tuple(dict.fromkeys(by_hand)), read)


def priced(problem: TracedProblem, values: Mapping[str, int], given: Prices) -> TracedCandidate:
    """One candidate with the figures of its calls. Undecided where its cost is unknown."""
    names = {**problem.sizes, **values}
    rows = [model.figures(names, INTS) for model in given.models]
    row = {name: max(r[name] for r in rows) if name == "vmem" else sum(r[name] for r in rows) for name in FIGURES}
    cost = row["time"] if problem.cost is None else int(problem.cost.evaluate({**names, **row}, INTS))
    longest = max(range(len(rows)), key=lambda k: rows[k]["time"])
    limit = limit_of(rows[longest], given.models[longest].machine)
    return TracedCandidate(dict(values), given.kernels, cost, row, limit, given.uncounted, given.read)


def _check_known(kernel: Kernel) -> None:
    """Undecided where a size of the kernel is known at run time only."""
    if any(isinstance(n, Size) for n in kernel.grid):
        raise Unsupported(f"{kernel.name}: its grid is known at run time only")
    amounts = [n for o in kernel.operands for n in (*o.dims, *(b.size for b in o.block))]
    for amount in (*amounts, *(n for s in (*kernel.scratch, *kernel.scoped) for n in s.dims)):
        if isinstance(amount, Size):
            raise Unsupported(f"the size {amount} is known at run time only")


def illegal(
    problem: TracedProblem, one: TracedCandidate, target: KernelTarget, because: dict[str, Finding] | None = None
) -> tuple[str, bool]:
    """(why a candidate is illegal, whether that is proved); ("", True) = it is proved legal.

    A property that no engine decides is no licence, and no refutation either. Of memory only that counts which no
    choice of the compiler makes fit.  because: gets what was found of the first candidate of each reason.
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
            full = _full(kernel, target)
            if full:
                return full, True
        except Undecided as undecided:
            open_question = open_question or str(undecided)
        findings = (f for f in judge(kernel, target=target, only=GRID) if f.question != MEMORY)
        found, proved = against(findings, problem.partial)
        if found is not None and proved and found.question == PARTIAL:
            return f"{PARTIAL}: {found.subject} has blocks that reach over its edge", True
        if found is not None and proved:
            return _named(found, because), True
        if found is not None:
            open_question = open_question or f"{found.question} {found.subject}: {found.reason}"
    return open_question, not open_question


def _named(found: Finding, because: dict[str, Finding] | None) -> str:
    """The reason by which candidates are counted that a property refutes."""
    name = f"{found.question} {found.subject}"
    if because is not None:
        because.setdefault(name, found)
    return name


def of_bodies(
    one: TracedCandidate, target: KernelTarget, because: dict[str, Finding] | None = None
) -> tuple[str, tuple[str, ...]]:
    """The violation of a candidate's bodies, "" = none is refuted; and their unknowns, a line each."""
    unknown = []
    for kernel in one.kernels:
        if kernel.body_reader is None:
            unknown.append(f"{kernel.name}: {BODY}")
            continue
        for found in judge(kernel, names=[name for name in in_order(True) if about_body(name)], target=target):
            if found.verdict is Verdict.REFUTED and found.severity == "error":
                return _named(found, because), ()
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
