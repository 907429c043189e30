"""Whether one candidate is legal: the compiler's rules for its blocks and memory, then every property of kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import CompilerAnswer, Kernel, KernelTarget
from layoutproof.pallas.judge import judge, kernel_target
from layoutproof.registry.catalogue import kernel_properties
from layoutproof.tilings.problem import UNDECIDED, Problem

COSTLY = frozenset({"relayout", "partial_blocks", "analysable"})
"""Properties about cost, about what the user chooses (`partial` of a problem decides on the second), and about the
body, which no block size changes: they make no candidate illegal, and the answer notes them."""


MEMORY = "memory_budget"


def checker(problem: Problem, but: Collection[str] = (), effort: int = 1) -> Callable[[Mapping[str, int]], str]:
    """A function that says why a candidate is illegal, "" = it is legal for every shape of the problem.

    A property that no engine decides is no licence: the candidate is refused, with a reason that starts UNDECIDED.
    Block shapes are judged once each, however many candidates share them.  but: properties that are not asked.
    effort: multiplies the step budgets of each question.
    """
    target = kernel_target(problem.target, problem.compiler)
    blocks: dict[tuple[object, ...], str] = {}

    def why(values: Mapping[str, int]) -> str:
        for shape in problem.shapes:
            try:
                kernel = problem.bind(shape, values)
            except LayoutError as error:
                return f"the kernel language: {error.problem}"
            refused = _blocks(kernel, target, blocks) or _properties(kernel, target, problem.partial, but, effort)
            if refused:
                return refused
        return ""

    return why


def findings_of(
    problem: Problem, values: Mapping[str, int], effort: int = 1, answer: CompilerAnswer | None = None
) -> tuple[tuple[Finding, ...], ...]:
    """What is proved of one candidate, for each shape of the problem. answer: what the compiler said of it."""
    target = kernel_target(problem.target, problem.compiler)
    target = target if answer is None else target.told(answer)
    found = []
    for shape in problem.shapes:
        found.append(judge(problem.bind(shape, values), target=target, effort=effort))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Partial:
    """A dimension of an operand whose last block reaches over the array's edge.

    condition: of what is inside.  reduced: grid indices that choose the block and stand in no output's index: the body
    adds those blocks up, or whatever its reduction is, and what lies beyond the edge with them unless it masks it.
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
        if f.question != "partial_blocks" or f.verdict is Verdict.PROVED or f.subject not in operands:
            continue
        operand = operands[f.subject]
        for key, condition in f.figures.items():
            d = int(key.removeprefix("mask"))
            chosen = dict.fromkeys(name for name in operand.index[d].names() if name in kernel.grid_names)
            alone = operand in kernel.inputs and tuple(name for name in chosen if name not in written)
            found.append(Partial(f.subject, d, str(condition), alone or ()))
    return tuple(found)


def partials_of(kernel: Kernel) -> tuple[Partial, ...]:
    """The same of a kernel that nobody judged yet."""
    return partials(kernel, judge(kernel, names=("partial_blocks",)))


def whole(problem: Problem, effort: int = 1) -> Callable[[Mapping[str, int]], str]:
    """A function that says which blocks of a candidate reach over an edge, and nothing else; "" = none."""
    target = kernel_target(problem.target, problem.compiler)

    def why(values: Mapping[str, int]) -> str:
        for shape in problem.shapes:
            try:
                kernel = problem.bind(shape, values)
            except LayoutError:
                return ""  # what is no kernel is for the rules to say
            for finding in judge(kernel, names=("partial_blocks",), target=target, effort=effort):
                if finding.verdict is not Verdict.PROVED:
                    unknown = finding.verdict is Verdict.UNKNOWN
                    return (UNDECIDED if unknown else "") + f"partial_blocks {finding.subject}"
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
                seen[key] = target.refuses_block(operand)
            except Undecided as undecided:
                return f"{UNDECIDED}block_shape {operand.name}: {undecided}"
        if seen[key]:
            return f"block_shape {operand.name}: {seen[key]}"
    return ""


def _properties(kernel: Kernel, target: KernelTarget, partial: bool, but: Collection[str], effort: int) -> str:
    undecided = ""
    # one property after the other: a refutation costs more than a proof, and one is enough
    for finding in (
        f for name in kernel_properties() for f in judge(kernel, names=(name,), target=target, effort=effort)
    ):
        verdict, why = finding.verdict, f"{finding.question} {finding.subject}: {finding.reason}"
        if finding.question == "partial_blocks" and not partial and verdict is Verdict.REFUTED:
            return why
        if verdict is Verdict.PROVED or finding.question in COSTLY or finding.severity != "error":
            continue
        if finding.question in but and not (finding.question == MEMORY and _other_memory(kernel, target)):
            continue
        if verdict is Verdict.REFUTED:
            return why
        undecided = undecided or UNDECIDED + why
    return undecided
