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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from layoutproof.core.errors import LayoutError, Undecided, Unsupported
from layoutproof.core.finding import Finding
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Verdict
from layoutproof.core.size import Size
from layoutproof.core.term import Term, reads
from layoutproof.kernel.kernel import Kernel, KernelTarget, Unmodelled, Work
from layoutproof.pallas.judge import BODY, GRID, about_body, in_order, judge, kernel_target
from layoutproof.pallas.memory_needed import memory_needed
from layoutproof.searching import problems
from layoutproof.searching.alike import Candidates, Contradicted, Kernels, same
from layoutproof.searching.branch import DIVIDES
from layoutproof.searching.compiled import CompilerReply
from layoutproof.searching.compiler_stage import PATIENCE, Report, accepted, order, words
from layoutproof.searching.cost import FIGURES, CostModel, limit_of
from layoutproof.searching.learned import Learned, learned
from layoutproof.searching.legal import MEMORY, PARTIAL, against
from layoutproof.searching.machines import fits, machine
from layoutproof.searching.problem import Problem
from layoutproof.searching.tilings import Enumerated, Tilings, TracedCandidate

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


def search_traced(problem: Problem, best: int = 1, effort: int = 1) -> Tilings:
    """The `best` cheapest candidates that are proved legal, in order of cost, then of bytes moved, then of values."""
    target = kernel_target(problem.target, problem.compiler)
    try:
        return _TracedSearch(problem, target, Candidates(problem.traced.trace, problem.count())).run(best, effort)
    except Contradicted:
        return _TracedSearch(problem, target, Candidates(problem.traced.trace, problem.count(), stopped=True)).run(
            best, effort
        )


ASIDE = "set aside"
"""In place of a reason, of a candidate that is among those set aside."""

PRODUCT = "set aside: windows, scratch and a product that the body works on are more than the limit of VMEM"
"""The reason of candidates whose body holds more than its windows leave."""


class _TracedSearch:
    """One search: every candidate is priced, and from the cheapest on judged, until enough are proved legal."""

    def __init__(self, problem: Problem, target: KernelTarget, candidates: Candidates) -> None:
        self.problem, self.target, self.candidates = problem, target, candidates
        self.found: list[TracedCandidate] = []
        self.refused, self.undecided = Counter[str](), Counter[str]()
        self.because: dict[str, Finding] = {}
        self.ranked: list[TracedCandidate] = []
        self.aside: list[TracedCandidate] = []
        self.told: list[Report] = []
        self.asked: list[TracedCandidate] = []
        self.learned: Learned | None = None
        self.looked_at = self.cheaper = self.unjudged = 0
        self.unasked = self.compute = ""
        self.counted = problem.flops is None and (candidates.stopped or candidates.count <= COUNTED)
        self._known: dict[Kernels, Prices] = {}

    def run(self, best: int, effort: int) -> Tilings:
        """The whole search."""
        for values in itertools.islice(_choices(self.problem), MOST * effort):
            self.looked_at += 1
            self._price(values)
        if self.candidates.contradicted:
            raise Contradicted
        self.cheaper = self.undecided.total()
        self.ranked.sort(key=lambda one: (one.cost, one.figures["bytes"], tuple(one.values.values())))
        rest = self.ranked[self._take(best, effort) :]
        self._count_the_rest(rest)
        self.learned = self._learn(rest)
        return self._result()

    def _result(self) -> Tilings:
        """All that was found, frozen."""
        problem, count, alike = self.problem, self.candidates.count, next(iter(self.refused), "")
        if not (alike.startswith(FUNCTION) or alike.endswith(DIVIDES)) or self.refused[alike] < count:
            alike = ""
        how = Enumerated(
            taken=tuple(self.found),
            looked_at=self.looked_at,
            refused=self.refused,
            undecided=self.undecided,
            because=self.because,
            cheaper=self.cheaper,
            ranked=tuple(self.ranked),
            aside=tuple(self.aside),
            unjudged=self.unjudged,
            alike=alike,
            traced=self.candidates.traced,
            ways=self.candidates.ways,
            compute=self.compute,
            unasked=self.unasked,
            learned=self.learned,
        )
        return Tilings(
            problem,
            count,
            tuple(one.candidate for one in self.found),
            how,
            replies=_replies(self.found, self.unasked) if problem.confirmed else None,
            told=tuple(self.told),
        )

    def _price(self, values: Mapping[str, int]) -> None:
        """Puts one candidate to those that have a price, or says why it has none."""
        problem = self.problem
        broken = _broken(problem, {**problem.shapes[0].sizes, **values})
        if broken:
            self.refused[broken] += 1
            return
        calls, traced = self.candidates.calls(values)
        if isinstance(calls, LayoutError):
            self.refused[FUNCTION + calls.problem] += 1
            return
        work = [call.work for call in calls if isinstance(call, Kernel) and call.work is not None]
        if problem.flops is None and any(one.kind in ("matmul", "attention") for one in work):
            self.compute = self.compute or _uncounted(work, self.counted)
            # terms know nothing of bodies
            self.candidates.stopped |= self.counted
            if not traced and self.counted:
                calls, traced = self.candidates.itself(values), True
        try:
            given = self._known.get(calls) or prices(problem, calls, self.counted)
            if not traced:
                self._known[calls] = given
            self.ranked.append(replace(priced(problem, values, given), traced=traced))
        except Undecided as undecided:
            self.undecided[str(undecided)] += 1
        except ZeroDivisionError:
            self.refused[DIVIDES] += 1

    def _take(self, best: int, effort: int) -> int:
        """Takes the cheapest that are legal, and how many of those with a price were judged for it."""
        problem = self.problem
        waiting: list[TracedCandidate] = []
        for k, one in enumerate(self.ranked, 1):
            one, why, sure = self._judge(one)
            if not why:
                self.ranked[k - 1] = one
                waiting.append(one)
            elif why is not ASIDE:
                self._put_away(why, sure)
            enough = best - len(self.found) if not problem.confirmed else AT_ONCE
            if len(waiting) >= enough or k == len(self.ranked):
                self._confirm(waiting, best)
                waiting = []
            if len(self.found) == best:
                return k
            if len(self.told) - len(self.found) >= PATIENCE * best * effort:
                self.unasked = problems.COMPILER_BUDGET(len(self.told), len(self.found))
                return k
        return len(self.ranked)

    def _judge(self, one: TracedCandidate) -> tuple[TracedCandidate, str, bool]:
        """(the candidate, why it is no answer, whether that is proved); ASIDE where it is put among those set aside."""
        known, because = _known(one), self.because
        if self._set_aside(one, known) and not _fits_nowhere(one, self.target, known):
            self.aside.append(one)
            return one, ASIDE, False
        if one.traced:
            why, sure = illegal(self.problem, one, self.target, because)
        else:
            one, why, sure = self._of_terms(one, known)
            known = one.kernels
        if not why and self._set_aside(one, known):
            # the values of its body are known once it was traced
            self.aside.append(one)
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
        problem, because = self.problem, self.because
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
            self.refused[why] += 1
        else:
            self.undecided[why] += 1
            self.cheaper += not self.found

    def _confirm(self, waiting: Sequence[TracedCandidate], best: int) -> None:
        """Puts legal candidates, which come in order of cost, to those found or to those that the compiler refuses."""
        problem = self.problem
        reports: Sequence[Report] | None = None
        if problem.confirmed and problem.traced.confirm is not None and waiting:
            try:
                reports = problem.traced.confirm(waiting, best - len(self.found))
            except Undecided as undecided:
                self.unasked = str(undecided)
        if reports is None:
            self.found += waiting[: best - len(self.found)]
            return
        for one, report in zip(waiting, reports, strict=False):
            if len(self.found) == best:
                return
            self.told.append(report)
            self.asked.append(one)
            if accepted(report):
                self.found.append(replace(one, compiled=report))
            else:
                self._put_away(COMPILER + words(report), accepted(report) is not None)

    def _learn(self, rest: Sequence[TracedCandidate]) -> Learned | None:
        """What the compiler's cycles say of the rest, which cost more than what it was asked about."""
        if not self.asked:
            return None
        problem, because = self.problem, self.because
        numbers = machine(problem.target, self.asked[0].kernels[0], problem.step_overhead)

        def legal(one: TracedCandidate) -> bool:
            return not self._judge(one)[1]

        # who was not asked about is no part of the answer, and neither is why a rule refuses it
        self.because = dict(because)
        try:
            return learned([*zip(self.asked, self.told, strict=True)], rest, numbers, legal)
        except Contradicted:
            return None
        finally:
            self.because = because

    def _count_the_rest(self, rest: Sequence[TracedCandidate]) -> None:
        """Judges those that cost more than what is shown, where they are few: how many are refused is said of all."""
        if self.problem.confirmed:
            self.unjudged = len(rest)
            return
        for one in rest:
            if len(rest) <= LEFT:
                _, why, sure = self._judge(one)
                if why and why is not ASIDE:
                    (self.refused if sure else self.undecided)[why] += 1
                continue
            known = _known(one)
            if not set_aside(self.problem, one, self.target, known):
                self.unjudged += 1
                continue
            full = _fits_nowhere(one, self.target, known)
            self.refused.update([full] if full else [])
            self.aside += [] if full else [one]


def _replies(found: Sequence[TracedCandidate], unasked: str) -> tuple[CompilerReply, ...]:
    """The compiler's answer on each candidate, with its place. unasked: why it was not asked."""
    places = {place.at: place for place in order([one.compiled for one in found])}
    return tuple(CompilerReply(one.values, one.compiled, unasked, place=places.get(at)) for at, one in enumerate(found))


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


def set_aside(problem: Problem, one: TracedCandidate, target: KernelTarget, known: Sequence[Kernel | None]) -> str:
    """Why it is unknown that a candidate fits, "" = by the model it does, with room for the values of its body."""
    for kernel, numbered in zip(one.kernels, known, strict=True):
        if numbered is None:
            continue
        try:
            # the call around a pipeline counts its buffers
            memories = () if kernel.pipeline == "emit_pipeline" else target.memory(numbered)
        except (LayoutError, Undecided):
            continue
        kept = problem.kept_free(kernel)
        held = 0 if kernel.work is None else kernel.work.held
        for memory in memories:
            if memory.name != "VMEM":
                continue
            # what the user keeps free is kept free of every body
            of_kind = numbered if problem.headroom is None else None
            if not fits(of_kind, memory.used, memory.limit, kept):
                return kept.aside
            if problem.headroom is None and memory.used + held > memory.limit:
                return PRODUCT
    return ""


def _uncounted(work: Sequence[Work], counted: bool) -> str:
    if not counted:
        return problems.TOO_MANY_CANDIDATES(COUNTED)
    if not all(one.always for one in work):
        return problems.PRODUCTS_UNDER_CONDITIONS()
    return ""


def _full(kernel: Kernel, target: KernelTarget) -> str:
    """The memory in which a kernel cannot fit, whatever the compiler chooses, with its limit; "" = none."""
    # the call around a pipeline counts its buffers
    for memory in () if kernel.pipeline == "emit_pipeline" else memory_needed(kernel, target):
        if memory.least > memory.limit:
            return problems.MEMORY_OVER(memory.name, memory.limit)
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


def prices(problem: Problem, calls: Kernels, counted: bool = False) -> Prices:
    """The costs of calls. counted: with the flops of the products of their bodies. Undecided where they are unknown."""
    kernels = []
    for call in calls:
        if isinstance(call, Unmodelled):
            raise Unsupported(f"{call.name}: {call.reason}")
        if call.manual_dma and not any(operand.windowed for operand in call.operands):
            raise Unsupported(problems.NO_BLOCK_TO_CHOOSE(call.name))
        kernels.append(replace(call, vmem_limit=problem.limit) if problem.limit else call)
    if not kernels:
        raise Unsupported(problems.NO_PALLAS_CALL())
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


def priced(problem: Problem, values: Mapping[str, int], given: Prices) -> TracedCandidate:
    """One candidate with the figures of its calls. Undecided where its cost is unknown."""
    names = {**problem.shapes[0].sizes, **values}
    rows = [model.figures(names, INTS) for model in given.models]
    row = {name: max(r[name] for r in rows) if name == "vmem" else sum(r[name] for r in rows) for name in FIGURES}
    cost = row["time"] if problem.cost is None else int(problem.cost.evaluate({**names, **row}, INTS))
    longest = max(range(len(rows)), key=lambda k: rows[k]["time"])
    limit = limit_of(rows[longest], given.models[longest].machine)
    return TracedCandidate(dict(values), given.kernels, cost, row, limit, given.uncounted, given.read)


def _check_known(kernel: Kernel) -> None:
    """Undecided where a size of the kernel is known at run time only."""
    if any(isinstance(n, Size) for n in kernel.grid):
        raise Unsupported(problems.GRID_AT_RUN_TIME(kernel.name))
    amounts = [n for o in kernel.operands for n in (*o.dims, *(b.size for b in o.block))]
    for amount in (*amounts, *(n for s in (*kernel.scratch, *kernel.scoped) for n in s.dims)):
        if isinstance(amount, Size):
            raise Unsupported(problems.SIZE_AT_RUN_TIME(amount))


def illegal(
    problem: Problem, one: TracedCandidate, target: KernelTarget, because: dict[str, Finding] | None = None
) -> tuple[str, bool]:
    """(why a candidate is illegal, whether that is proved); ("", True) = it is proved legal.

    A property that no engine decides is no licence, and no refutation either. Of memory only that counts which no
    choice of the compiler makes fit.  because: gets what was found of the first candidate of each reason.
    """
    broken = _broken(problem, {**problem.shapes[0].sizes, **one.values, **one.figures})
    if broken:
        return broken, True
    open_question = ""
    for kernel in one.kernels:
        if kernel.platform != target.platform:
            open_question = problems.KERNEL_OF_OTHER_TARGET(kernel.name, kernel.platform, target.name, target.platform)
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
            open_question = open_question or problems.QUESTION_OF(found.question, found.subject, found.reason)
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
                unknown.append(problems.QUESTION_OF(found.question, found.subject, found.reason))
    return "", tuple(unknown)


def _broken(problem: Problem, names: Mapping[str, int]) -> str:
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


def _choices(problem: Problem) -> Iterator[dict[str, int]]:
    """Every candidate, largest values first: where the budget ends the small ones, which fetch most, are left out."""
    names = list(problem.variables)
    for values in itertools.product(*(values[::-1] for values in problem.variables.values())):
        yield dict(zip(names, values, strict=True))
