"""Values that no candidate can have, left out before the search: by conditions on one variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Amount, parameters, value_of
from layoutproof.kernel.kernel import Block, KernelTarget, Operand
from layoutproof.searching import problems
from layoutproof.searching.branch import DIVIDES
from layoutproof.searching.cost import FIGURES
from layoutproof.searching.problem import Problem

OVER = "(partial: none)"
"""The end of the reason of a block that reaches over an edge."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Values of one variable that were left out for one reason. first: one of them, with the reason in full."""

    variable: str
    values: tuple[int, ...]
    first: str


Known = dict[tuple[object, ...], Mapping[int, str]]
"""Why values of a variable are refused, by what was asked of which values."""


def presolve(
    problem: Problem, target: KernelTarget | None, known: Known | None = None
) -> tuple[Problem, tuple[Removed, ...]]:
    """The problem without values that no candidate can have, and why each of them is left out.

    A value is left out when it breaks a constraint that speaks of that variable and of sizes only; where blocks may
    not reach over an edge, when it does not divide what it cuts; and when it is illegal as the size of one dimension
    of one block while the block's other dimensions are those of the whole array, which every target takes. Only block
    sizes that are a variable alone are looked at, and no `range`.  target: None = whatever its compiler takes.
    known: answers about the same kernel and constraints, to which those of this call are added.
    """
    known = {} if known is None else known
    kept, removed = dict(problem.variables), list[Removed]()

    def leave_out(name: str, why: Callable[[int], str], *question: object) -> None:
        if kept[name] and isinstance(kept[name], range):
            # too many to look at one by one; they rise, so each reaches over an edge where the first one does
            first = why(kept[name][0])
            if first.endswith(OVER):
                removed.append(Removed(name, (kept[name][0],), f"{name} = {kept[name][0]}: {first}"))
                kept[name] = ()
            return
        asked = (name, *question, kept[name])
        refused = known.get(asked) or {value: why(value) for value in kept[name]}
        if question:
            known[asked] = refused
        bad = tuple(value for value, reason in refused.items() if reason)
        if bad:
            removed.append(Removed(name, bad, f"{name} = {bad[0]}: {refused[bad[0]]}"))
            kept[name] = tuple(value for value in kept[name] if not refused[value])

    for constraint in problem.constraints:
        names = set(constraint.condition.names())
        tuned = names.intersection(problem.variables)
        if len(tuned) == 1 and not names.intersection(FIGURES):
            (name,) = tuned
            condition = constraint.condition

            def breaks(value: int, name: str = name, text: str = constraint.text) -> str:
                try:
                    held = all(condition.evaluate({**s.sizes, name: value}, INTS) for s in problem.shapes)  # noqa: B023
                except ZeroDivisionError:
                    return DIVIDES
                return "" if held else text

            leave_out(name, breaks, constraint.text)
    for at, one in enumerate(problem.declared.model.traffic):
        for d, block in enumerate(one.operand.block):
            name = str(block.size)
            if block.kind != "blocked" or name not in kept:
                continue
            if any(name in problem.variables for name in parameters(one.operand.dims)):
                continue
            if not problem.partial and d in one.covered:
                extent = one.operand.dims[d]
                leave_out(name, lambda value, extent=extent: _left_over(problem, extent, value), at, d)  # type: ignore[misc]
            if target is not None:
                leave_out(name, _refusal(problem, target, at, d, _any(problem, kept)))
    return replace(problem, variables=kept), tuple(removed)


def _left_over(problem: Problem, dim: Amount, value: int) -> str:
    for shape in problem.shapes:
        try:
            extent = value_of(dim, shape.sizes, INTS)
        except ZeroDivisionError:
            return DIVIDES
        if extent % value:
            return problems.OVER_THE_EDGE(value, extent, OVER)
    return ""


def _any(problem: Problem, domains: Mapping[str, Sequence[int]]) -> dict[str, int]:
    return {name: (domains[name] or values)[0] for name, values in problem.variables.items()}


def _refusal(
    problem: Problem, target: KernelTarget, at: int, d: int, values: Mapping[str, int]
) -> Callable[[int], str]:
    """Why the target refuses a size of dimension d of one operand, whatever the block's other dimensions are."""
    whole: list[tuple[Operand, str]] = []
    for shape in problem.shapes:
        try:
            kernel = problem.bind(shape, values)
        except LayoutError:
            # the single candidates report values that give no kernel
            return lambda value: ""
        operand = kernel.operands[at]
        blocks = tuple(
            block if block.kind != "blocked" else replace(block, size=extent)
            for block, extent in zip(operand.block, operand.dims, strict=True)
        )
        whole.append((replace(operand, block=blocks), kernel.pipeline))

    def why(value: int) -> str:
        for operand, pipeline in whole:
            before, own, after = operand.block[:d], operand.block[d], operand.block[d + 1 :]
            block = Block(own.kind, value, own.low, own.high)
            try:
                refused = target.refuses_block(replace(operand, block=(*before, block, *after)), pipeline=pipeline)
            except Undecided:
                continue
            if refused:
                return refused
        return ""

    return why
