"""The work and the cycles of a program's Pallas kernels: what the source says of each, and the compiler's simulation.

A kernel of the text is found in the source by the shapes of its operands and results. Of several that have the same
shapes the bounds are of any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from layoutproof.core.counted import Counted
from layoutproof.core.document import JsonObject
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.hlotext.lines import read_hlo
from layoutproof.ir.work import ProgramCount
from layoutproof.mosaic.bounds import flops_a_cycle
from layoutproof.mosaic.placed import estimates
from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET, MosaicCall, call_of
from layoutproof.programs import problems
from layoutproof.programs.record import KernelCall, Record
from layoutproof.programs.source_work import shapes

_NO_SOURCE = "the kernel is not in the source by its shapes, so that nobody knows whether its cycles depend on data"


def with_source(
    record: Record,
    lines: Sequence[str],
    said: JsonObject,
    options: Mapping[str, str] = {},
    library: str = "",
) -> Record:
    """A record with what the source says: products of the whole, work and cycles of each kernel.

    Args:
        record: Of the compiled text.
        lines: That text.
        said: Of the source, as `source_work.of_source` has it; {} where it was not at hand.
        options: The compiler's.
        library: The path of its libtpu, "" for the installed one.

    Returns:
        The record. A kernel whose cycles are not known says why.
    """
    if record.work is not None and "products" in said:
        record = replace(record, work=replace(record.work, source=Counted(**said["products"])))
    if not record.kernels:
        return record
    calls = _calls(lines)
    rows: dict[str, list[JsonObject]] = {}
    for row in said.get("kernels", ()):
        rows.setdefault(row["shapes"], []).append(row)
    kernels = [_of_source(each, calls, rows) for each in record.kernels]
    wanted = [each for each in kernels if not each.why]
    if wanted and record.made.target in CHIPS:
        placed = [calls[each.place.instruction] for each in wanted]
        try:
            found = estimates(placed, record.made.target, options=options, library=library)
        except LayoutError as error:
            kernels = [replace(each, why=each.why or error.problem) for each in kernels]
        else:
            known = {
                each.place.instruction: _guarded(each, said.cycles, said.reason, record.made.target)
                for each, said in zip(wanted, found, strict=True)
            }
            kernels = [known.get(each.place.instruction, each) for each in kernels]
    return replace(record, kernels=tuple(kernels))


def _calls(lines: Sequence[str]) -> dict[str, MosaicCall]:
    return {
        each.name: call_of(each, "")
        for module in read_hlo(lines)
        for computation in module.computations
        for each in computation.instructions
        if each.opcode == "custom-call" and each.target == TARGET
    }


def shapes_of(call: MosaicCall) -> str:
    """Operands and results of a call, as `source_work` has them of the source."""
    return shapes(*([(each.dtype, each.dims) for each in side] for side in (call.operands, call.results)))


def _of_source(kernel: KernelCall, calls: Mapping[str, MosaicCall], rows: Mapping[str, list[JsonObject]]) -> KernelCall:
    call = calls.get(kernel.place.instruction)
    found = [] if call is None or call.problem else rows.get(shapes_of(call), [])
    if not found:
        return replace(kernel, why=(call.problem if call is not None else "") or _NO_SOURCE)
    first, *others = [_count(row) for row in found]
    for other in others:
        first = first.either(other, problems.SEVERAL_KERNELS())
    why = next((reason for row in found for reason in row["unseen"]), "")
    if kernel.communicates:
        why = why or problems.SPEAKS_TO_DEVICES()
    return replace(kernel, products=first.products, flops=first.flops, transcendentals=first.transcendentals, why=why)


def _count(row: JsonObject) -> ProgramCount:
    products = {kind: Counted(**each) for kind, each in row["products"].items()}
    return ProgramCount(products, Counted(**row["flops"]), Counted(**row["transcendentals"]))


def _guarded(kernel: KernelCall, cycles: int | None, reason: str, target: str) -> KernelCall:
    """A kernel with its cycles, unless its products alone take more of them: then the simulation leaves work out."""
    if cycles is None:
        return replace(kernel, why=reason)
    per = flops_a_cycle(target) * CHIPS[target].cores
    least = sum(each.least * min(16, _bits(kind)) // 16 for kind, each in kernel.products.items())
    if per and cycles < least // per:
        why = problems.CYCLES_TOO_FEW(cycles, least // per)
        return replace(kernel, why=why)
    return replace(kernel, cycles=cycles)


def _bits(kind: str) -> int:
    return max(ELEMENT_BITS.get(each, 16) for each in kind.split(" x "))
