"""Patterns over compiled programs: each gives the places of a module, as (instruction, source), that a bug needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.hlotext.lines import read_hlo
from layoutproof.hlotext.module import Header, Instruction

Places = Iterator[tuple[str, str]]
_SHAPE = re.compile(r"([a-z]\w*)\[([\d,]*)\]")
_SLICE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")
_SMALL, _LARGE = 256, 1 << 16
_ROW = 1 << 17


@dataclass(slots=True)
class ComputationText:
    """Instructions by name, in order. root: the name of its result."""

    instructions: dict[str, Instruction] = field(default_factory=dict)
    root: str = ""

    def operand(self, of: Instruction | None, number: int) -> Instruction | None:
        """What gives an operand; None where it is not in the text."""
        if of is None or number >= len(of.operands):
            return None
        return self.instructions.get(of.operands[number].partition("#")[0])

    def behind(self, of: Instruction | None, *opcodes: str) -> Instruction | None:
        """The first instruction behind these, which only hand on."""
        while of is not None and of.opcode in opcodes:
            of = self.operand(of, 0)
        return of


@dataclass(slots=True)
class CompiledText:
    """A compiled module as patterns see it. flags: the compiler's options."""

    header: Header = field(default_factory=lambda: Header(""))
    computations: dict[str, ComputationText] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)

    def each(self, *opcodes: str) -> Iterator[tuple[ComputationText, Instruction]]:
        """The instructions with one of these opcodes, with their computations."""
        for computation in self.computations.values():
            for one in computation.instructions.values():
                if one.opcode in opcodes:
                    yield computation, one

    def called(self, of: Instruction, role: str = "calls") -> ComputationText | None:
        """The computation that an instruction names."""
        return next((self.computations.get(name) for at, name in of.calls if at == role), None)


def read(lines: Iterable[str], flags: Mapping[str, str]) -> CompiledText:
    """A module of the compiler's text. What is no module's line is passed over: it was read before, with its errors."""
    found = CompiledText(flags=flags)
    for module in read_hlo(lines):
        found.header = module.header
        for computation in module.computations:
            each = {one.name: one for one in computation.instructions}
            root = next((one.name for one in computation.instructions if one.root), "")
            found.computations[computation.name] = ComputationText(each, root)
    return found


def update_owned_by_raw_start(text: CompiledText) -> Places:
    """A partitioned dynamic-update-slice whose owner is found by a start that is not clamped."""
    if text.header.partitions < 2:
        return
    for computation, both in text.each("and"):
        sides = [computation.operand(both, k) for k in (0, 1)]
        if not both.op_name.endswith("dynamic_update_slice") or any(s is None or s.opcode != "compare" for s in sides):
            continue
        starts = {side.operands[0] for side in sides if side is not None}
        ways = {side.attribute("direction") for side in sides if side is not None}
        start = computation.operand(sides[0], 0)
        if len(starts) == 1 and ways == {"GE", "LT"} and not _bounded(start):
            yield _place(both)


def slice_clamped_by_shard(text: CompiledText) -> Places:
    """A partitioned dynamic-slice whose start is the shard's own plus a clamped one."""
    if text.header.partitions < 2:
        return
    for computation, cut in text.each("dynamic-slice"):
        for number in range(1, len(cut.operands)):
            start = computation.operand(cut, number)
            if start is None or start.opcode != "add" or not start.op_name.endswith("dynamic_slice"):
                continue
            if sorted(part.opcode for k in (0, 1) if (part := computation.operand(start, k))) == ["clamp", "multiply"]:
                yield _place(cut)


def shifted_update_in_place(text: CompiledText) -> Places:
    """A loop fusion that updates its operand with an earlier part of the same operand, both through a bitcast."""
    for _, fusion in text.each("fusion"):
        inner = text.called(fusion) if fusion.attribute("kind") == "kLoop" else None
        root = inner.instructions.get(inner.root) if inner is not None else None
        if inner is None or root is None or root.opcode != "dynamic-update-slice":
            continue
        whole = inner.operand(root, 0)
        update = inner.operand(root, 1)
        part = inner.behind(update, "bitcast")
        if part is None or part.opcode != "slice" or whole is None or whole.opcode != "bitcast":
            continue
        base = inner.behind(whole, "bitcast")
        cut = inner.operand(part, 0)
        starts = [inner.operand(root, k) for k in range(2, len(root.operands))]
        if base is None or base is not cut or base.opcode != "parameter" or any(s is None for s in starts):
            continue
        numbers = [_number(start) for start in starts]
        if None in numbers:
            continue
        at = _offset(root.shape, [int(n) for n in numbers if n is not None])
        from_ = _offset(base.shape, [int(first) for first, _, _ in _SLICE.findall(part.attributes)])
        if at > from_:
            yield _place(fusion)


def long_rows_in_ynn_dot(text: CompiledText) -> Places:
    """A YNNPACK fusion of a dot and a reduction whose rows take more than 128 KiB."""
    for fusion, inner in _ynn(text):
        if any(one.opcode == "reduce" for one in inner.instructions.values()):
            for one in inner.instructions.values():
                dims, size = _array(one.shape)
                if one.opcode == "dot" and dims and dims[-1] * size > _ROW:
                    yield _place(fusion)


def eight_dimensions_in_ynn(text: CompiledText) -> Places:
    """A YNNPACK fusion that reduces something of eight dimensions or more."""
    for fusion, inner in _ynn(text):
        if _reduced_rank(inner) >= 8:
            yield _place(fusion)


def seven_dimensions_in_ynn(text: CompiledText) -> Places:
    """A YNNPACK fusion that reduces f32 of seven dimensions, one of 1 that is not reduced."""
    for fusion, inner in _ynn(text):
        for one in inner.instructions.values():
            operand = inner.operand(one, 0) if one.opcode == "reduce" else None
            dims, _ = _array(operand.shape) if operand is not None else ((), 0)
            kept = [extent for k, extent in enumerate(dims) if k not in (one.dimensions or ())]
            if len(dims) == 7 and 1 in kept and operand is not None and operand.shape.startswith("f32"):
                yield _place(fusion)


def small_update_in_loop(text: CompiledText) -> Places:
    """A loop whose body updates less than 256 bytes of an array of 64 KiB or more."""
    for _, loop in text.each("while"):
        body = text.called(loop, "body")
        for one in () if body is None else body.instructions.values():
            inner = text.called(one) if one.opcode == "fusion" else None
            of = inner or body
            root = one if inner is None else inner.instructions.get(inner.root)
            if of is None or root is None or root.opcode != "dynamic-update-slice":
                continue
            update = of.operand(root, 1)
            if update is not None and _bytes(update.shape) < _SMALL and _bytes(root.shape) >= _LARGE:
                yield _place(one)


def sliced_before_ynn_reduction(text: CompiledText) -> Places:
    """A YNNPACK reduction of what a fusion of its own slices out of an array first."""
    for computation, fusion in text.each("fusion"):
        if not _is_ynn(fusion):
            continue
        for name in fusion.operands:
            before = computation.instructions.get(name)
            inner = text.called(before) if before is not None and before.opcode == "fusion" else None
            root = inner.instructions.get(inner.root) if inner is not None else None
            if root is not None and root.opcode == "slice" and _bytes(root.shape) >= _LARGE:
                yield _place(fusion)


def scaled_cublas_with_bias(text: CompiledText) -> Places:
    """A cuBLASLt product with a bias and a factor other than 1."""
    for _, call in text.each("custom-call"):
        factor = re.search(r'"alpha_real":\s*"?([\d.eE+-]+)', call.attributes)
        biased = call.target.startswith("__cublas$lt$matmul") and '"epilogue":"BIAS"' in call.attributes.replace(
            " ", ""
        )
        if biased and factor is not None and float(factor[1]) != 1:
            yield _place(call)


def triton_with_several_results(text: CompiledText) -> Places:
    """A fusion compiled by Triton that has several results."""
    for _, fusion in text.each("fusion"):
        if fusion.shape.startswith("(") and '"__triton' in fusion.attributes:
            yield _place(fusion)


def reduced_behind_scatter_loop(text: CompiledText) -> Places:
    """An all-reduce of what a loop carries, in whose body a scatter adds to it."""
    for computation, reduction in text.each("all-reduce", "all-reduce-start"):
        carried = computation.behind(
            computation.operand(reduction, 0), "get-tuple-element", "bitcast", "copy", "fusion"
        )
        body = text.called(carried, "body") if carried is not None and carried.opcode == "while" else None
        if body is not None and _holds(text, body, "scatter"):
            yield _place(reduction)


def scatter_by_itself(text: CompiledText) -> Places:
    """A program that is one scatter that adds, as JAX runs it outside of `jit`."""
    if re.match(r"jit_scatter.?add\b", text.header.name):
        for _, one in text.each("scatter"):
            yield _place(one)


def overlapped_collectives(text: CompiledText) -> Places:
    """Both groups of flags that overlap collectives, in a program with an exchange and a Pallas kernel."""
    told = {name.lstrip("-") for name, value in text.flags.items() if str(value).lower() in ("true", "1", "")}
    fused = any(name.startswith("xla_tpu_enable_async_collective_fusion") for name in told)
    if fused and "xla_tpu_overlap_compute_collective_tc" in told:
        kernels = [one for _, one in text.each("custom-call") if one.target == "tpu_custom_call"]
        if any(text.each("all-to-all", "all-to-all-start", "all-reduce", "all-reduce-start")):
            for one in kernels[:1]:
                yield _place(one)


def _ynn(text: CompiledText) -> Iterator[tuple[Instruction, ComputationText]]:
    for _, fusion in text.each("fusion"):
        inner = text.called(fusion) if _is_ynn(fusion) else None
        if inner is not None:
            yield fusion, inner


def _is_ynn(fusion: Instruction) -> bool:
    return '"__ynn_fusion"' in fusion.attributes


def _reduced_rank(inner: ComputationText) -> int:
    reduced = [inner.operand(one, 0) for one in inner.instructions.values() if one.opcode == "reduce"]
    return max((len(_array(one.shape)[0]) for one in reduced if one is not None), default=0)


def _holds(text: CompiledText, computation: ComputationText, opcode: str) -> bool:
    """Whether an instruction of this opcode is in a computation, or in a fusion of it."""
    for one in computation.instructions.values():
        inner = text.called(one) if one.opcode == "fusion" else None
        if one.opcode == opcode or (inner is not None and _holds(text, inner, opcode)):
            return True
    return False


def _bounded(start: Instruction | None) -> bool:
    """Whether a start is a constant, or was clamped."""
    return start is None or start.opcode in ("clamp", "minimum", "maximum", "constant")


def _array(shape: str) -> tuple[tuple[int, ...], int]:
    """(dims, bytes of an element) of one array; ((), 0) of anything else."""
    found = _SHAPE.match(shape)
    if found is None:
        return (), 0
    return tuple(int(n) for n in found[2].split(",") if n), ELEMENT_BITS.get(found[1], 0) // 8


def _bytes(shape: str) -> int:
    dims, size = _array(shape)
    return prod(dims) * size


def _offset(shape: str, at: list[int]) -> int:
    """The row-major offset of an element."""
    found = 0
    for extent, place in zip(_array(shape)[0], at, strict=False):
        found = found * extent + place
    return found


def _number(of: Instruction | None) -> int | None:
    text = of.inside.strip() if of is not None and of.opcode == "constant" else ""
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None


def _place(of: Instruction) -> tuple[str, str]:
    return of.name, of.op_name
