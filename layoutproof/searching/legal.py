"""Whether one candidate is legal: the compiler's rules for its blocks and memory, then every property of kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding
from layoutproof.core.message import restated
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import CompilerAnswer, Kernel, KernelTarget
from layoutproof.pallas.judge import in_order, judge, kernel_target
from layoutproof.searching import problems
from layoutproof.searching.problem import UNDECIDED, Problem

PARTIAL, MEMORY, BLOCKS = "partial_blocks", "memory_budget", "block_shape"
COSTLY = frozenset({"relayout", PARTIAL, "analysable"})
"""Properties about cost, about what the user chooses (`partial` of a problem decides on the second), and about the
body, which no block size changes: they make no candidate illegal, and the answer notes them."""


class Checker:
    """Says why a candidate is illegal, "" = it is legal for every shape of the problem; each is judged once.

    A property that no engine decides is no licence: the candidate is refused, with a reason that starts UNDECIDED.
    Block shapes are judged once each too, however many candidates share them.  but: properties that are not asked.
    effort: multiplies the step budgets of each question.
    """

    def __init__(self, problem: Problem, but: Collection[str] = (), effort: int = 1) -> None:
        self._problem, self._but, self._effort = problem, but, effort
        self._target = kernel_target(problem.target, problem.compiler)
        self._blocks: dict[tuple[object, ...], str] = {}
        self._known: dict[tuple[int, ...], str] = {}
        self._proved: dict[tuple[int, ...], tuple[Mapping[str, Sequence[Finding]], ...]] = {}

    def __call__(self, values: Mapping[str, int]) -> str:
        key = tuple(values.values())
        if key not in self._known:
            self._known[key] = self._why(values)
        return self._known[key]

    def said(self) -> Mapping[tuple[int, ...], str]:
        """Why each candidate that was judged is illegal, by its values; "" = it is legal."""
        return self._known

    def blocks(self, values: Mapping[str, int]) -> str:
        """Why the target takes no block of some operand, "" = it takes all; no other rule is asked."""
        for shape in self._problem.shapes:
            try:
                kernel = self._problem.bind(shape, values)
            except LayoutError as error:
                return problems.KERNEL_LANGUAGE(error.problem)
            refused = _blocks(kernel, self._target, self._blocks)
            if refused:
                return refused
        return ""

    def because(self, reason: str, values: Mapping[str, int] | None = None) -> Finding | None:
        """The finding of the rule that refuses a candidate; None where no rule did.

        reason: as it was given.  values: of the candidate; by default one that was judged.
        """
        name = reason.partition(" ")[0]
        if values is None:
            if name not in in_order():
                return None
            of_those = (key for key, why in self._known.items() if why == reason)
            key = next(of_those, None)
            if key is None:
                return None
            values = dict(zip(self._problem.variables, key, strict=True))
        names = (name,) if name in in_order() else (BLOCKS,)
        for shape in self._problem.shapes:
            try:
                kernel = self._problem.bind(shape, values)
            except LayoutError:
                continue
            found = judge(kernel, names=names, target=self._target, effort=self._effort)
            for finding in found:
                if finding.verdict is Verdict.REFUTED and reason.endswith(finding.reason):
                    return finding
        return None

    def findings(
        self, values: Mapping[str, int], answers: Sequence[CompilerAnswer] = ()
    ) -> tuple[tuple[Finding, ...], ...]:
        """The findings on one candidate, for each shape of the problem. answers: the compiler's, on each."""
        shapes = self._problem.shapes
        proved = None if answers else self._proved.get(tuple(values.values()))
        found = []
        for k, (shape, known) in enumerate(zip(shapes, proved or ({},) * len(shapes), strict=True)):
            target = self._target.told(answers[k]) if answers else self._target
            kernel = self._problem.bind(shape, values)
            left = [name for name in in_order() if name not in known]
            more = judge(kernel, names=left, target=target, effort=self._effort)
            rows = (known.get(name) or [f for f in more if f.question == name] for name in in_order())
            found.append(tuple(finding for row in rows for finding in row))
        return tuple(found)

    def _why(self, values: Mapping[str, int]) -> str:
        proved: list[Mapping[str, Sequence[Finding]]] = []
        for shape in self._problem.shapes:
            try:
                kernel = self._problem.bind(shape, values)
            except LayoutError as error:
                return problems.KERNEL_LANGUAGE(error.problem)
            shown: dict[str, Sequence[Finding]] = {}
            refused = _blocks(kernel, self._target, self._blocks) or self._properties(kernel, shown)
            if refused:
                return refused
            proved.append(shown)
        self._proved[tuple(values.values())] = tuple(proved)
        return ""

    def _properties(self, kernel: Kernel, shown: dict[str, Sequence[Finding]]) -> str:
        """Why a property refuses the kernel, "" = none does; those that are proved are put into `shown`."""
        partial, but, target = self._problem.partial, self._but, self._target

        def asked() -> Iterator[Finding]:
            # one property after the other: a refutation costs more than a proof, and one is enough
            for name in sorted(in_order()):
                if name == BLOCKS or (name in COSTLY and (name != PARTIAL or partial)):
                    continue
                findings = judge(kernel, names=(name,), target=target, effort=self._effort)
                if all(finding.verdict is Verdict.PROVED for finding in findings):
                    shown[name] = findings
                elif name not in but or (name == MEMORY and _other_memory(kernel, target)):
                    yield from findings

        found, proved = against(asked(), partial)
        if found is None:
            return ""
        said = problems.QUESTION_OF(found.question, found.subject, found.reason)
        return said if proved else restated(f"{UNDECIDED}{said}", said)


@dataclass(frozen=True, slots=True)
class Partial:
    """A dimension of an operand whose last block reaches over the array's edge.

    condition: that an element is inside.  reduced: grid indices that choose the block and stand in no output's index:
    the body reduces over those blocks, and over the part beyond the edge too unless it masks it.
    """

    operand: str
    dimension: int
    condition: str
    reduced: tuple[str, ...]


def partials(kernel: Kernel, findings: Iterable[Finding]) -> tuple[Partial, ...]:
    """The partial dimensions of a kernel's operands, by what was found of it."""
    written = {name for operand in kernel.outputs for term in operand.index for name in term.names()}
    operands = {operand.name: operand for operand in kernel.operands}
    found = []
    for f in findings:
        if f.question != PARTIAL or f.verdict is Verdict.PROVED or f.subject not in operands:
            continue
        operand = operands[f.subject]
        for key, condition in f.figures.items():
            d = int(key.removeprefix("mask"))
            chosen = dict.fromkeys(name for name in operand.index[d].names() if name in kernel.grid_names)
            alone = operand in kernel.inputs and tuple(name for name in chosen if name not in written)
            found.append(Partial(f.subject, d, str(condition), alone or ()))
    return tuple(found)


def partials_of(kernel: Kernel) -> tuple[Partial, ...]:
    """The same of a kernel that is not judged yet."""
    return partials(kernel, judge(kernel, names=(PARTIAL,)))


def whole(problem: Problem, effort: int = 1) -> Callable[[Mapping[str, int]], str]:
    """A function that only says which blocks of a candidate reach over an edge; "" = none."""
    target = kernel_target(problem.target, problem.compiler)

    def why(values: Mapping[str, int]) -> str:
        for shape in problem.shapes:
            try:
                kernel = problem.bind(shape, values)
            except LayoutError:
                return ""  # the rules report values that give no kernel
            for finding in judge(kernel, names=(PARTIAL,), target=target, effort=effort):
                if finding.verdict is not Verdict.PROVED:
                    unknown = finding.verdict is Verdict.UNKNOWN
                    return (UNDECIDED if unknown else "") + f"{PARTIAL} {finding.subject}"
        return ""

    return why


def _other_memory(kernel: Kernel, target: KernelTarget) -> bool:
    """Whether a memory that no limit of the problem speaks of is too small."""
    try:
        return any(memory.name != "VMEM" and memory.used > memory.limit for memory in target.memory(kernel))
    except Undecided:
        return False


def _blocks(kernel: Kernel, target: KernelTarget, seen: dict[tuple[object, ...], str]) -> str:
    for operand in kernel.operands:
        key = (operand.name, operand.dims, operand.dtype, operand.block, tuple(map(str, operand.index)))
        if key not in seen:
            try:
                seen[key] = target.refuses_block(operand, kernel.grid, kernel.pipeline)
            except Undecided as undecided:
                return f"{UNDECIDED}{BLOCKS} {operand.name}: {undecided}"
        if seen[key]:
            return f"{BLOCKS} {operand.name}: {seen[key]}"
    return ""


def against(findings: Iterable[Finding], partial: bool) -> tuple[Finding | None, bool]:
    """(the finding that makes a kernel illegal, or else the first undecided one, or None; whether it is illegal).

    partial: whether blocks may reach over an edge. An undecided property neither permits a kernel nor refutes it.
    """
    undecided = None
    for finding in findings:
        refuted = finding.verdict is Verdict.REFUTED
        if finding.question == PARTIAL and refuted and not partial:
            return finding, True
        if finding.verdict is Verdict.PROVED or finding.question in COSTLY or finding.severity != "error":
            continue
        if refuted:
            return finding, True
        undecided = finding if undecided is None else undecided
    return undecided, False
