"""Whether one candidate is legal: the compiler's rules for its blocks and memory, then every property of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.kernel import Kernel, KernelTarget
from layoutproof.core.result import Verdict
from layoutproof.engine.kernels import Finding, judge, kernel_target
from layoutproof.jobs.search.problem import Problem

COSTLY = frozenset({"relayout", "partial_blocks"})
"""Properties that are about cost, or about what the user chooses; `partial` of a problem decides on the second."""


def checker(problem: Problem) -> Callable[[Mapping[str, int]], str]:
    """A function that says why a candidate is illegal, "" = it is legal for every shape of the problem.

    A property that nobody can decide is no licence: the candidate is refused with the reason. Block shapes are judged
    once each, however many candidates share them.
    """
    target = kernel_target(problem.target, problem.compiler)
    blocks: dict[tuple[object, ...], str] = {}

    def why(values: Mapping[str, int]) -> str:
        for shape in problem.shapes:
            try:
                kernel = problem.template.instance({**shape.sizes, **values})
            except LayoutError as error:
                return f"the kernel language: {error.problem}"
            refused = _blocks(kernel, target, blocks) or _properties(kernel, target, problem.partial)
            if refused:
                return refused
        return ""

    return why


def findings_of(problem: Problem, values: Mapping[str, int]) -> tuple[Finding, ...]:
    """What is proved of one candidate, for the first shape of the problem."""
    kernel = problem.template.instance({**problem.shapes[0].sizes, **values})
    return judge(kernel, target=kernel_target(problem.target, problem.compiler))


def narrowed(problem: Problem) -> tuple[Problem, dict[str, str]]:
    """The problem without values that no candidate can have, and why: "bm = 12" -> the rule.

    A value is left out when it is illegal as the size of one dimension of one block while the block's other dimensions
    are those of the whole array, which every target takes. Only block sizes that are a variable alone are looked at.
    """
    target = kernel_target(problem.target, problem.compiler)
    kept, dropped = dict(problem.variables), dict[str, str]()
    for window_at, window in enumerate(problem.template.windows):
        for d, term in enumerate(window.block):
            if term is None or term.op != "name" or term.args[0] not in kept:
                continue
            name = term.args[0]
            good = []
            for value in kept[name]:
                refused = _alone(problem, target, window_at, d, {**_any(problem, kept), name: value})
                if refused:
                    dropped[f"{name} = {value}"] = refused
                else:
                    good.append(value)
            kept[name] = tuple(good)
    return replace(problem, variables=kept), dropped


def _any(problem: Problem, domains: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    return {name: (domains[name] or values)[0] for name, values in problem.variables.items()}


def _alone(problem: Problem, target: KernelTarget, at: int, dimension: int, values: Mapping[str, int]) -> str:
    for shape in problem.shapes:
        try:
            kernel = problem.template.instance({**shape.sizes, **values})
            operand = (kernel.inputs + kernel.outputs)[at]
            whole = tuple(
                block if d == dimension or block.kind != "blocked" else replace(block, size=extent)
                for d, (block, extent) in enumerate(zip(operand.block, operand.dims, strict=True))
            )
            refused = target.refuses_block(replace(operand, block=whole))
        except (LayoutError, Undecided):
            return ""
        if refused:
            return refused
    return ""


def _blocks(kernel: Kernel, target: KernelTarget, seen: dict[tuple[object, ...], str]) -> str:
    for operand in kernel.operands:
        key = (operand.name, operand.dims, operand.dtype, operand.block, tuple(map(str, operand.index)))
        if key not in seen:
            try:
                seen[key] = target.refuses_block(operand)
            except Undecided as undecided:
                seen[key] = str(undecided)
        if seen[key]:
            return f"block_shape: {seen[key]}"
    return ""


def _properties(kernel: Kernel, target: KernelTarget, partial: bool) -> str:
    for finding in judge(kernel, target=target):
        verdict, info = finding.result.verdict, finding.severity == "info"
        if finding.property == "partial_blocks" and not partial and verdict is Verdict.REFUTED:
            return f"partial_blocks: {finding.result.reason}"
        if verdict is Verdict.PROVED or finding.property in COSTLY or (info and verdict is Verdict.REFUTED):
            continue
        if finding.severity == "error":
            return f"{finding.property} {finding.subject}: {verdict.value}, {finding.result.reason}"
    return ""
