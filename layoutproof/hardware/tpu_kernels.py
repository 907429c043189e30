"""The TPU compiler's rules for a Pallas kernel: block shapes, Element starts, memory, buffering, grid.

Two refuse: JAX's lowering, blind to the element type, and then Mosaic, which wants whole tiles of the operand's
layout. Measured on libtpu 0.0.42.1 (jax 0.10.2) and, for what differs, on every version of `RULES`: a rule speaks for
the version it was measured on. The installed compiler's rules hold unless a version is named; an unmeasured version has
the nearest older one's, and every answer says so. `benchmarks/compiler_rules.py` measures a version. 913 recorded
blocks and 27 Element windows agree, but for the ones that `tests/hardware/test_tpu_kernels.py` names with their reason.

Blocks of no dimensions (f32[]): JAX refuses all but those in SMEM (jax 0.10.2 and 0.12.0.1), and libtpu refuses those
too where the call has a grid: "Scalar windows not implemented" (0.0.52, v4, v5e and 7x, in and out, 4 element types).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, Undecided, Unsupported, shorten
from layoutproof.core.packages import package_version
from layoutproof.core.size import Extent, Size, divide
from layoutproof.hardware import problems
from layoutproof.hardware.facts import AS_THE_RULE, Fact, numbers
from layoutproof.hardware.tpu_alignment import believes
from layoutproof.hardware.tpu_chips import CHIPS, KIB, MIB, OTHER_NAMES, generation
from layoutproof.hardware.tpu_elements import refused_arrays
from layoutproof.hardware.tpu_layouts import relaid, relayout, tile_of
from layoutproof.hardware.tpu_memory import memory
from layoutproof.hardware.tpu_pipelines import refuses_copies, refuses_slices
from layoutproof.hardware.tpu_tiles import LANES, SUBLANES, packing_of
from layoutproof.kernel.kernel import CompilerAnswer, Kernel, MemoryUse, Operand

KERNEL_TARGETS = tuple(CHIPS)
"""Canonical names of the generations."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one version of the compiler.

    Attributes:
        version: Of libtpu, as its package names it.
        narrow_rows: It takes any 8 rows of 8- and 4-bit blocks where the array itself has tiles of 32 or 64 rows.
        sums: Its prover of alignment follows sums; see `tpu_alignment`.
    """

    version: str
    narrow_rows: bool = True
    sums: bool = True


RULES = (
    Rules("0.0.42.1", narrow_rows=False, sums=False),
    Rules("0.0.50.1", sums=False),
    Rules("0.0.51"),
    Rules("0.0.52"),
)
"""The versions that were measured, oldest first."""

COMPILERS = tuple(f"libtpu {rules.version}" for rules in RULES)
"""Their names."""


FACTS = (
    *(
        Fact(name, str(getattr(rules, name)), f"libtpu {rules.version}", "benchmarks/compiler_rules.py")
        for rules in RULES
        for name in ("narrow_rows", "sums")
    ),
    Fact("blocks of calls", AS_THE_RULE, "libtpu 0.0.52", "913 recorded blocks, and random ones"),
    Fact("scalars", "in SMEM, without a grid", "libtpu 0.0.52", "f32[] and s32[] in each memory, with and without"),
)
"""The differences between versions, of each; and the facts behind the rules."""


def kernel_target(name: str, compiler: str | None = None) -> TpuKernels:
    """The rules of one generation as one compiler version has them.

    Args:
        name: Of the generation.
        compiler: The version, with or without "libtpu" before it; None for the installed one, or else the newest that
            was measured.

    Returns:
        The target. Of a version that was not measured it has the rules of the nearest older one, and its `compiler`
        says so.

    Raises:
        LayoutError: The generation is unknown, or the compiler is no version.

    >>> kernel_target("v6e", "0.0.50.1").compiler
    'libtpu 0.0.50.1'
    >>> kernel_target("v6e", "0.0.50.7").compiler
    'libtpu 0.0.50.7 (rules of 0.0.50.1)'
    """
    known = generation(name)
    version = installed() or RULES[-1].version if compiler is None else compiler.strip().removeprefix("libtpu").strip()
    if compiler is not None and not _NUMBERS.match(version):
        raise LayoutError(problems.COMPILER_VERSION(shorten(compiler, 40), _measured()))
    rules = next((r for r in RULES if r.version == version), None)
    if rules is not None:
        return TpuKernels(known, f"libtpu {version}", rules)
    # older than all that were measured: then the oldest
    older = [r for r in RULES if numbers(r.version) <= numbers(version)] or [RULES[0]]
    return TpuKernels(known, f"libtpu {shorten(version, 40)} (rules of {older[-1].version})", older[-1])


@lru_cache(maxsize=1)
def installed() -> str:
    """The version of libtpu that is installed here.

    Returns:
        As its package names it, "" where there is none. The compiler itself is not loaded.
    """
    version = package_version("libtpu")
    return version if _NUMBERS.match(version) else ""


_NUMBERS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,9}")


def _measured() -> str:
    return ", ".join(rules.version for rules in RULES)


def page(name: str) -> str:
    """The page of one generation, as `explain` shows it.

    >>> page("v5e").splitlines()[0]
    'TPU v5e: 1 core for a kernel, 128 MiB of VMEM (16 MiB unless a kernel asks for more), 16124 MiB of HBM usable.'
    """
    known = generation(name)
    chip = CHIPS[known]
    others = ", ".join(other for other, ours in OTHER_NAMES.items() if ours == known)
    cores = "1 core" if chip.cores == 1 else f"{chip.cores} cores"
    rows = "1 row" if chip.packed_rows == 1 else f"{chip.packed_rows} rows"
    lines = [
        f"TPU {known}: {cores} for a kernel, {chip.vmem / MIB:g} MiB of VMEM ({chip.vmem_scoped / MIB:g} MiB "
        f"unless a kernel asks for more), {chip.hbm // MIB} MiB of HBM usable.",
        "",
        f"SMEM {chip.smem // KIB} KiB; HBM {chip.bandwidth / 1e9:g} GB/s; {chip.bf16 / 1e12:g} bf16 TFLOP/s published.",
        f"Default layouts have tiles of 8 x 128 elements of 32 bits; the smallest has {rows} of 32-bit words.",
        f"Elements narrower than a byte {'are packed' if chip.sub_byte else 'take a byte each'}.",
        f"Rules for kernels are measured on libtpu {_measured()}.",
        "Those of the installed version hold, else the newest; --compiler names another. A version that was not",
        "measured has the rules of the nearest older one, and answers say so.",
    ]
    return "\n".join([*lines, f"Also called {others}."] if others else lines)


@dataclass(frozen=True, slots=True)
class TpuKernels:
    """One generation and one compiler version; see `kernel.kernel.KernelTarget`. answer: of its compiler."""

    name: str
    compiler: str
    rules: Rules
    platform: str = "tpu"
    answer: CompilerAnswer | None = None

    def refuses_block(self, operand: Operand, grid: Sequence[object] = (), pipeline: str = "pallas_call") -> str:
        """Why JAX or Mosaic refuses the block, or "". A squeezed dimension counts as a block of 1."""
        if not operand.dims and operand.memory not in ("semaphore", "host"):
            return _refuses_scalar(operand, grid)
        if operand.memory in ("any", "hbm"):
            return _refuses_part(operand)
        if not operand.windowed or (operand.memory == "smem" and _trivial(operand)) or not operand.dims:
            return ""
        for d, b in enumerate(operand.block):
            if type(b.size) is int and b.size < 1:
                return f"dimension {d}: a block of {b.size} elements (JAX lowering)"
        for d, b in enumerate(operand.block):
            if b.low:
                return f"dimension {d}: low padding {b.low} is not supported by Mosaic yet"
        bits = 32 if operand.dtype == "pred" else ELEMENT_BITS[operand.dtype]
        if bits < 8 and not CHIPS[self.name].sub_byte:
            return f"{operand.dtype}: {self.name} stores it in whole bytes, and Mosaic expects it packed"
        block: list[Any] = [b.size for b in operand.block]
        dims: list[Any] = list(operand.dims)
        if len(dims) == 1:
            refused = self._one_dimension(block[0], dims[0], bits)
        else:
            refused = self._two_dimensions(block, dims, bits)
        return refuses_copies(operand, self.name, bits) if refused and pipeline == "emit_pipeline" else refused

    def _two_dimensions(self, block: list[Extent], dims: list[Extent], bits: int) -> str:
        rows, columns = block[-2:]
        if not (columns == dims[-1] or _divides(LANES, columns)):
            return _needs("columns", len(dims) - 1, columns, dims[-1], LANES, "JAX lowering")
        if not (rows == dims[-2] or _divides(SUBLANES, rows)):
            return _needs("rows", len(dims) - 2, rows, dims[-2], SUBLANES, "JAX lowering")
        if rows == dims[-2] or self.rules.narrow_rows or bits >= 16:
            return ""
        large = SUBLANES * packing_of(bits)
        if _divides(large, rows):
            return ""
        known = [n for n in dims if isinstance(n, int)]
        if len(known) < len(dims):
            raise Unsupported(
                f"whether {rows} rows are whole tiles depends on the sizes of [{', '.join(map(str, dims))}]"
            )
        tile = tile_of(known, bits, self.name)[0]
        if _divides(tile, rows):
            return ""
        if relaid(known, bits, self.name):
            # 3 of 10 recorded ones pass, and the rule that tells them apart is unknown
            text = f"XLA copies this operand first, into tiles of {SUBLANES} or of {tile} rows"
            raise Unsupported(f"{text}; only with the first do blocks of {rows} rows pass")
        return _needs("rows", len(dims) - 2, rows, dims[-2], tile, f"Mosaic E2002, tile ({tile}, 128), {self.compiler}")

    def _one_dimension(self, size: Extent, extent: Extent, bits: int) -> str:
        least = LANES * packing_of(bits)
        if size == extent or _divides(1024, size):
            return ""
        if not (type(size) is int and size >= least and size & (size - 1) == 0):
            rule = f"the whole array, a multiple of 1024, or a power of two from {least} up"
            return f"dimension 0: a block of {size} of {extent} elements; one dimension takes {rule} (JAX lowering)"
        if type(extent) is not int:
            raise Unsupported(f"whether blocks of {size} are whole tiles depends on {extent}")
        tile = tile_of([extent], bits, self.name)[0]
        if size % min(tile, least * CHIPS[self.name].packed_rows):
            return _needs("elements", 0, size, extent, tile, f"Mosaic E2002, tile ({tile}), {self.compiler}")
        return ""

    def refuses_index(self, operand: Operand) -> str:
        """Why the compiler cannot prove that an Element window starts at a tile, or ""."""
        for d, tile in self.misaligned(operand):
            term = operand.index[d]
            if not believes(term, tile, self.rules.sums):
                return (
                    f"dimension {d}: the compiler cannot prove that {tile} divides {term}; write it as a product with "
                    f"{tile}, or say pl.multiple_of(.., {tile})"
                )
        return ""

    def misaligned(self, operand: Operand) -> tuple[tuple[int, int], ...]:
        """(dimension, tile) of the Element dimensions among the last two."""
        dims: list[Any] = list(operand.dims)
        if not operand.windowed or not all(type(n) is int for n in dims):
            found = [d for d in range(max(0, len(dims) - 2), len(dims)) if operand.block[d].kind == "element"]
            if found and operand.windowed:
                raise Unsupported(f"the tile of [{', '.join(map(str, dims))}] depends on its sizes")
            return ()
        bits = 32 if operand.dtype == "pred" else ELEMENT_BITS[operand.dtype]
        tile: tuple[int, ...] = tile_of(dims, bits, self.name) if len(dims) > 1 else ()
        if len(dims) == 1:
            tile = (CHIPS[self.name].packed_rows * packing_of(bits) * LANES,)
        rows: Any = operand.block[-2].size if len(dims) > 1 else 0
        if bits < 16 and len(dims) > 1 and self.rules.narrow_rows and rows % tile[0]:
            # a window of whole tiles starts at one; another has tiles of 8 rows (s8 and s4 on v5e, libtpu 0.0.52)
            tile = (min(tile[0], SUBLANES), tile[1])
        pairs = zip(range(len(dims) - len(tile), len(dims)), tile, strict=True)
        # of a window as long as the array too: 0 need not be proved, anything else must be
        return tuple((d, t) for d, t in pairs if operand.block[d].kind == "element")

    def relayout(self, operand: Operand) -> tuple[int, str]:
        """Bytes copied because the operand's default layout is not row-major, and the sentence that says so."""
        return relayout(operand, self.name)

    def memory(self, kernel: Kernel) -> tuple[MemoryUse, ...]:
        """VMEM and SMEM: every window, table and scratch, against what the kernel may use."""
        return memory(kernel, self.name)

    def answered(self, kernel: Kernel) -> CompilerAnswer | None:
        """This compiler's answer on the kernel that it was asked about."""
        return self.answer

    def told(self, answer: CompilerAnswer) -> TpuKernels:
        """The same target with that answer."""
        return replace(self, answer=answer)

    def refuses_kernel(self, kernel: Kernel) -> tuple[str, ...]:
        """Further refusals: the grid, the semantics, buffers, mixes of block kinds."""
        found = [
            f"grid dimension {k} is {n}, and the compiler takes 0 to 2147483646" for k, n in _wrong_extents(kernel)
        ]
        if kernel.semantics and len(kernel.semantics) != len(kernel.grid) - len(kernel.vmapped):
            many = len(kernel.grid) - len(kernel.vmapped)
            if len(kernel.semantics) != len(kernel.grid):
                found.append(
                    f"{len(kernel.semantics)} dimension_semantics for a grid of {many} dimensions (JAX lowering)"
                )
        if kernel.subcores:
            return (*found, *self._refused_subcores(kernel))
        for k, word in enumerate(kernel.semantics[: len(kernel.grid)]):
            cores = CHIPS[self.name].cores
            extent = kernel.grid[k]
            if word == "subcore_parallel":
                found.append(f"grid dimension {k} is subcore_parallel, which only SparseCore kernels may say")
            if word == "core_parallel" and type(extent) is int and extent > cores:
                found.append(f"grid dimension {k} is core_parallel with {extent} programs on {cores} core(s)")
        odd = [operand for operand in kernel.operands if any(b.kind.startswith("?") for b in operand.block)]
        for operand in kernel.operands:
            if operand in odd:
                continue
            found += [f"{operand.name}: {why}" for why in _refused_operand(kernel, operand)]
            cut = refuses_slices(operand, self.name) if kernel.pipeline == "emit_pipeline" else ""
            found += [f"{operand.name}: {cut}"] if cut else []
        if odd and not found:
            raise Unsupported(f"{odd[0].name}: {odd[0].unmodelled or 'a kind of block without rules'}")
        try:
            for why in refused_arrays(kernel, self.name):
                found.append(why)
        except Undecided:
            # a refusal does not depend on the body
            if not found:
                raise
        return tuple(found)

    def _refused_subcores(self, kernel: Kernel) -> Iterator[str]:
        """Why a kernel of SparseCores does not run here: there are none, or not so many (jax 0.10.2, sc_core.py)."""
        core = CHIPS[self.name].sparse
        if core is None:
            yield f"{self.name} has no SparseCores"
            return
        extents = (core.cores, core.subcores)
        for extent, most, what in zip(kernel.grid, extents, ("SparseCores", "subcores in each"), strict=False):
            if type(extent) is int and extent > most:
                yield f"a mesh of {extent} {what}; {self.name} has {most}"


def _refused_operand(kernel: Kernel, operand: Operand) -> Sequence[str]:
    found = []
    kinds = {b.kind for b in operand.block}
    if kernel.pipeline == "pallas_call":
        if "bounded" in kinds:
            found.append("BoundedSlice is for emit_pipeline only (JAX lowering)")
        if "element" in kinds and "blocked" in kinds:
            found.append("all block dimensions are Element or Squeezed, or none is Element (JAX lowering)")
        if operand.buffers not in (None, 1, 2):
            found.append(f"Buffered({operand.buffers}): only 1 and 2 buffers (JAX lowering)")
        if operand.lookahead:
            found.append("use_lookahead is for emit_pipeline only (JAX lowering)")
        if operand.revisit == "any" and operand.buffers != 1:
            found.append("revisit ANY needs Buffered(1) (JAX lowering)")
        if not kernel.grid and operand.windowed and not _trivial(operand):
            found.append("a call without a grid takes whole arrays only (JAX lowering)")
    elif operand.role == "out" and (operand.buffers or 2) > 2:
        found.append(f"Buffered({operand.buffers}): outputs of emit_pipeline have at most 2 buffers")
    return found


def _wrong_extents(kernel: Kernel) -> list[tuple[int, int]]:
    return [(k, n) for k, n in enumerate(kernel.grid) if type(n) is int and not 0 <= n <= 2147483646]


def _refuses_scalar(operand: Operand, grid: Sequence[object]) -> str:
    """Why the block of an array without dimensions is refused, or ""."""
    if operand.memory != "smem":
        return "a block of no dimensions: give the array one, [1], or put it into SMEM (JAX lowering)"
    return "a scalar in SMEM has no window in a grid: pass it as a table, or as [1] (libtpu)" if grid else ""


def _refuses_part(operand: Operand) -> str:
    """Why the block of an array that no window is copied of is refused, or "": it is the whole array."""
    if _trivial(operand):
        return ""
    return f"an operand in {operand.memory} has no window: leave the block out, or move it to VMEM (JAX lowering)"


def _trivial(operand: Operand) -> bool:
    whole = all(b.size == n for b, n in zip(operand.block, operand.dims, strict=True))
    return whole and all(t.op == "int" and t.args[0] == 0 for t in operand.index)


def _divides(by: int, value: Extent) -> bool:
    if isinstance(value, Size):
        rest = divide(value, by)[1]
        if type(rest) is int and rest == 0:
            return True
        raise Unsupported(f"whether {by} divides the block size {value} depends on it")
    return bool(value % by == 0)


def _needs(what: str, dimension: int, size: Extent, extent: Extent, by: int, who: str) -> str:
    nearest = ""
    if type(size) is int and type(extent) is int:
        up = -(-size // by) * by
        nearest = f"; {up if up < extent else extent} would do"
    some = f"dimension {dimension}: a block of {size} of {extent} {what}"
    return f"{some} is neither all of them nor a multiple of {by}{nearest} ({who})"
