"""What a tiling costs, on any kind of number: ints give the figure, intervals bound it over many candidates at once.

The model, printed with every answer
    HBM bytes   a block is fetched (or written back) only when its index changes from one program to the next in grid
                order; blocks at the edge move what lies inside the array, rounded up to 128 columns and to rows that
                share 32 bits. Entries of a table count as if no two were equal.
    time        steps x overhead + the larger of bytes / bandwidth and flops / peak, in picoseconds. A roofline: nobody
                measured it, and it knows nothing of the kernel's body but the flops that the problem states.
    VMEM        every window rounded up to tiles, times its buffers, and the scratch.
Sources: skipped copies and lexicographic order, JAX's pages on TPU pipelining (docs/pallas/tpu/details.rst); window
bytes measured on libtpu 0.0.42.1 (`hardware/tpu_kernels`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.core.numbers import Numbers
from layoutproof.core.term import Term
from layoutproof.hardware.tpu_tiles import grain, vmem_bytes
from layoutproof.tilings.interval import ends
from layoutproof.tilings.template import Template, Window, vmem_bits
from layoutproof.tilings.walk import walked

FIGURES = ("time", "bytes", "flops", "steps", "vmem", "padding")
"""Names that a user's own cost or constraint may use besides sizes and tile variables."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the roofline needs of a chip: bytes per second, flops per second, and picoseconds per grid step."""

    name: str
    bandwidth: int
    peak: int
    overhead: int


def figures(
    template: Template,
    flops: Term | None,
    machine: Machine,
    names: Mapping[str, Any],
    on: Numbers,
    most: int | None = None,
    moves: bool = True,
) -> Any:
    """FIGURES by name. `names` gives sizes and tile variables; `flops` is of the whole kernel.

    most: where more bytes of VMEM than this are needed for sure, nothing but `vmem` and `steps` is given.
    moves: False = never anything else: what moves takes far longer to bound than what is held.
    """
    grid = [term.evaluate(names, on) for term in template.grid]
    steps: Any = 1
    for extent in grid:
        steps = steps * extent
    vmem: Any = 0
    for window in template.windows:
        if window.memory == "vmem":
            vmem = vmem + window_bytes(window, grid, names, on)
    for bits, dims, memory in template.scratch:
        if memory == "vmem":
            vmem = vmem + vmem_bytes([term.evaluate(names, on) for term in dims], bits, on)
    if not moves or (most is not None and ends(vmem)[0] > most):
        return {"steps": steps, "vmem": vmem}
    moved: Any = 0
    useful: Any = 0
    for window, covered in zip(template.windows, template.covered, strict=True):
        if window.memory not in ("vmem", "smem"):
            continue
        if window.straight:
            whole, rounded = _moved(window, covered, grid, names, on)
        else:
            whole, rounded = walked(window, grid, names, on)
        moved, useful = moved + rounded, useful + whole
    work: Any = 0 if flops is None else flops.evaluate({**names, "steps": steps}, on)
    time = steps * machine.overhead
    time = time + on.maximum(_ceil(moved * 10**12, machine.bandwidth), _ceil(work * 10**12, machine.peak))
    return {"time": time, "bytes": moved, "flops": work, "steps": steps, "vmem": vmem, "padding": moved - useful}


def window_bytes(window: Window, grid: list[Any], names: Mapping[str, Any], on: Numbers) -> Any:
    """Bytes of VMEM that one operand's windows take, buffers included."""
    block = [term.evaluate(names, on) for term in window.block if term is not None]
    one = vmem_bytes(block, vmem_bits(window.dtype), on)
    if window.buffers == 1:
        return one
    moves: Any = any(term.op == "read" for term in window.index)
    for used in window.uses:
        for k in used:
            moves = on.logical_or(moves, on.less(1, grid[k]))
    return on.select(moves, (window.buffers or 2) * one, one)


def _moved(
    window: Window, covered: frozenset[int], grid: list[Any], names: Mapping[str, Any], on: Numbers
) -> tuple[Any, Any]:
    """(bytes of elements, bytes with the tiles' padding) that one operand moves between HBM and VMEM."""
    chosen = {k for used in window.uses for k in used}
    repeats: Any = 1
    started: Any = False
    # innermost first: dimensions inside of the last one that chooses a block leave the block where it is
    for k in reversed(range(len(grid))):
        if k in chosen:
            started = on.logical_or(started, on.less(1, grid[k]))
        else:
            repeats = on.select(started, repeats * grid[k], repeats)
    whole: Any = 1
    rounded: Any = 1
    units = grain(len(window.dims), window.bits)
    for d, (dim, block, used) in enumerate(zip(window.dims, window.block, window.uses, strict=True)):
        extent = dim.evaluate(names, on)
        size = 1 if block is None else block.evaluate(names, on)
        if d in covered and d not in window.looked_up:
            here = extent
        elif d in window.looked_up:
            here = size
            for k in used:
                here = here * grid[k]
        else:
            count: Any = 1
            for k in used:
                count = count * grid[k]
            here = on.minimum(extent, size * count)
        whole = whole * here
        rounded = rounded * _in_tiles(here, size, units[d], on)
    return repeats * whole * window.bits // 8, repeats * rounded * window.bits // 8


def _in_tiles(length: Any, block: Any, unit: int, on: Numbers) -> Any:
    """What blocks that follow one another over `length` elements hold together, each rounded up to `unit`."""
    if unit == 1:
        return length
    full = length // block
    last = length - full * block
    # at least the elements themselves: says nothing new of ints, and much of intervals
    return on.maximum(length, full * (_ceil(block, unit) * unit) + _ceil(last, unit) * unit)


def _ceil(value: Any, by: Any) -> Any:
    return (value + by - 1) // by
