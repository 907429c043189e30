"""The TPU compiler, ahead of time: which kernels it takes, and how much VMEM their windows need.

Of each kernel its grid and blocks, with a body that writes zeros: JAX lowers it, and the compiler compiles it, for one
generation in turn (for all where the cases are few). Ours is what our rules of the same version of the compiler say. A
compiler that refuses what our rules take is right, and so is one that takes what they refuse: it is shown as our bug.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from layoutproof.compiler import libtpu
from layoutproof.core.errors import LayoutError, Undecided, Unsupported
from layoutproof.core.result import Verdict
from layoutproof.crosschecks.asking import Failed, answers
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped
from layoutproof.crosschecks.tpu_cases import kernels as random_cases
from layoutproof.crosschecks.turns import turns
from layoutproof.hardware.tpu_kernels import kernel_target
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.kernel_print import mapping_of
from layoutproof.layouts.kernel.layout import KernelLayout
from layoutproof.pallas.judge import judge

SMALLER = False
__all__ = ["SMALLER", "compare", "missing", "random_cases", "version"]

FEW = 8
"""Up to so many cases are compiled for every generation."""

_OF_THE_BODY = re.compile(
    r"asking is (only supported for TPU v[45]\+|currently implemented in)|Invalid vector type for (load|store)"
    r"|infer-vector-layout|apply-vector-layout|Unsupported (input|target) type|Not [Ii]mplemented: .*(store|mask)"
)
"""The message on the zeros that the body writes, for all blocks."""
_MEMORY = ("vmem", "smem", "any", "hbm")


def version() -> str:
    """The compiler's."""
    return libtpu.version()


def missing() -> str:
    """The missing packages for it."""
    return libtpu.missing()


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Taken or refused, and the bytes of VMEM of what is taken."""
    asked: list[tuple[int, str, Kernel]] = []
    for k, (case, names) in enumerate(chain.from_iterable(turns(cases, FEW, len(cases)))):
        kernel = kernel_of(case)
        asked += [(k, name, kernel) for name in names if kernel is not None]
    said = answers([["kernel", name, {"kernel": mapping_of(kernel)}] for _, name, kernel in asked])
    left = iter(zip(asked, said, strict=True))
    number = libtpu.number()
    row = next(left, None)
    for k in range(len(cases)):
        outcomes = []
        while row is not None and row[0][0] == k:
            outcomes.append(outcome(row[0][2], row[0][1], row[1], number))
            row = next(left, None)
        yield _worst(outcomes)


def kernel_of(case: Case) -> Kernel | None:
    """The kernel of a case that can be compiled without its body; None where there is none."""
    kernel = case.parsed.kernel if isinstance(case.parsed, KernelLayout) else case.parsed
    if not isinstance(kernel, Kernel) or not _can_be_called(kernel):
        return None
    # the body that is compiled is ours: it stores what it writes, and allocates nothing
    stored = tuple(o.dtype for o in kernel.outputs if o.memory == "vmem")
    operands = tuple(replace(o, lookahead=False, revisit="immediate") for o in kernel.operands)
    return replace(kernel, operands=operands, touched=stored, scoped=(), body_reader=None, aliases=())


def _can_be_called(kernel: Kernel) -> bool:
    """Whether a call can be written down: of constant sizes, of memories and blocks that we know to ask for."""
    if kernel.pipeline != "pallas_call" or kernel.platform != "tpu" or not kernel.outputs or kernel.vmapped:
        return False
    memories = {operand.memory for operand in kernel.operands} | {scratch.memory for scratch in kernel.scratch}
    kinds = {block.kind for operand in kernel.operands for block in operand.block}
    if not memories <= set(_MEMORY) or not kinds <= {"blocked", "squeezed", "element"}:
        return False
    return _is_constant(kernel) and not any(operand.unmodelled for operand in kernel.operands)


def _is_constant(kernel: Kernel) -> bool:
    """Whether the grid, every array and every block is of constant size."""
    numbers = [*kernel.grid]
    for operand in kernel.operands:
        numbers += [*operand.dims, *(block.size for block in operand.block)]
    numbers += [extent for table in kernel.tables for extent in table.dims]
    numbers += [extent for scratch in kernel.scratch for extent in scratch.dims]
    return all(type(number) is int for number in numbers)


def outcome(kernel: Kernel, generation: str, said: Any, number: str) -> Outcome:
    """The answer on one kernel on one generation. said: by the compiler.  number: of its version, "" = not known."""
    if isinstance(said, Failed) and said.aborted:
        return Skipped(str(said))
    if isinstance(said, Failed) and _OF_THE_BODY.search(said.words):
        return Skipped("the compiler refuses zeros in such blocks")
    try:
        why, vmem = ours(kernel, generation, number or None)
    except Undecided as error:
        return Skipped(f"our rules leave it unknown: {error}")
    except LayoutError as error:
        return Skipped(f"our rules have no answer: {error.problem}")
    taken = not isinstance(said, Failed)
    if isinstance(said, Failed) and not why and "out of bounds" in said.words and _past(kernel):
        return Skipped("a block lies past its array, which blocks_in_bounds refutes")
    if taken != (why == ""):
        mine = f"refused: {why}" if why else "taken"
        wrong = "and the compiler is right: this is a bug of our rules"
        return Disagree(f"kernel on {generation}", mine, f"{'taken' if taken else said}, {wrong}")
    if taken and said["vmem"] is not None and vmem is not None and said["vmem"] != vmem:
        return Disagree(f"bytes of VMEM on {generation}", str(vmem), str(said["vmem"]))
    return Agree(1 + (taken and said["vmem"] is not None and vmem is not None))


def _past(kernel: Kernel) -> bool:
    """Whether some block lies outside of its array."""
    return any(found.verdict is Verdict.REFUTED for found in judge(kernel, names=["blocks_in_bounds"], fixes=False))


def ours(kernel: Kernel, generation: str, number: str | None) -> tuple[str, int | None]:
    """(why our rules refuse the kernel or "", the bytes of VMEM that it takes, None where they are not exact).

    number: of the compiler's version, None = the newest measured. Raises Undecided.
    """
    target = kernel_target(generation, number)
    refused = [f"{o.name}: {why}" for o in kernel.operands if (why := target.refuses_block(o, kernel.grid))]
    refused += target.refuses_kernel(kernel)
    refused += [f"{o.name}: {why}" for o in kernel.operands if not refused and (why := target.refuses_index(o))]
    if refused:
        return refused[0], None
    memory = target.memory(kernel)
    over = [f"{m.name}: {m.least} of {m.limit} bytes" for m in memory if m.least > m.limit]
    perhaps = [m for m in memory if m.used > m.limit >= m.least]
    if perhaps and not over:
        raise Unsupported(f"{perhaps[0].name}: {perhaps[0]}, of which the compiler may spare some")
    return "; ".join(over), memory[0].used


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    """A disagreement where there is one, else what agrees, else why nothing was compared."""
    for one in outcomes:
        if isinstance(one, Disagree):
            return one
    agreed = [one.compared for one in outcomes if isinstance(one, Agree)]
    if agreed:
        return Agree(sum(agreed))
    return outcomes[0] if outcomes else Skipped("no kernel with blocks of known sizes, compiled as a Pallas call")
