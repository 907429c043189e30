"""Possible fixes of a kernel: a text, and the changed kernel. Each is tried before it is shown.

Here are fixes of grids, index maps and parallel dimensions; those of bodies are in `pallas.body_fixes`. The
likeliest comes first, an index that is off by one before a clamp, which lets blocks be seen twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.core.folding import shifted
from layoutproof.core.numbers import INTS
from layoutproof.core.size import ceil_div
from layoutproof.core.term import Term, reads
from layoutproof.kernel.kernel import Kernel, Operand

MOST = 4096
"""Programs tried when a cause is guessed."""


UNSURE = "whether these are the places that you mean is not known"
"""The doubt about an index that is changed so that it lies inside."""


LEFT = "a program then finds in scratch what those before it left there"
"""The doubt where one core runs all programs."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelFix:
    """One way to repair a kernel.

    words: the text to write instead.  kernel: with that change.  doubt: how numbers may be wrong although all is
    proved, "" where they cannot.
    """

    words: str
    kernel: Kernel
    doubt: str = ""


def out_of_bounds(kernel: Kernel, operand: Operand, dimension: int) -> Iterator[KernelFix]:
    """Of blocks outside the array in this dimension."""
    block, extent, term = operand.block[dimension], operand.dims[dimension], operand.index[dimension]
    values = values_of(kernel, term)
    if values is None or type(block.size) is not int or type(extent) is not int:
        return
    low, high, divisor = values
    match block.kind:
        case "blocked":
            count = ceil_div(extent, block.size)
        case "element":
            count = block.low + extent + block.high - block.size + 1
        case _:
            count = extent
    where = f"dimension {dimension} of the index map of {operand.name}"
    if block.kind == "blocked" and block.size > 1 and divisor % block.size == 0 and high // block.size < count:
        words = (
            f"{term} is an element offset, and a block index is expected: return it divided by {block.size} in {where}"
        )
        yield KernelFix(
            f"{words} (JAX multiplies the index by the block size itself)",
            _indexed(kernel, operand, dimension, Term("//", term, Term("int", block.size))),
        )
    if term.op == "name" and term.args[0] in kernel.grid_names:
        k = kernel.grid_names.index(term.args[0])
        what = "blocks" if block.kind == "blocked" else "places"
        words = f"{kernel.dimension(k)} has {kernel.grid[k]} programs and the array {count} {what}: "
        cdiv = f"use pl.cdiv({extent}, {block.size}) = {count}"
        words += cdiv if block.kind == "blocked" and block.size > 1 else f"let it have {count}"
        yield KernelFix(words, _with_grid(kernel, k, count))
    by = -low if low < 0 else count - 1 - high
    if by and low + by >= 0 and high + by < count:
        other = shifted(term, by)
        words = f"return {other} in {where}, where {term} stands: it is {abs(by)} too {'large' if by < 0 else 'small'}"
        yield KernelFix(
            words,
            _indexed(kernel, operand, dimension, other),
            UNSURE,
        )
    clamped, call = term, str(term)
    if low < 0:
        clamped, call = Term("max", clamped, Term("int", 0)), f"jnp.maximum({call}, 0)"
    if high >= count:
        clamped, call = Term("min", clamped, Term("int", count - 1)), f"jnp.minimum({call}, {count - 1})"
    doubt = "programs whose block was outside then see another one, whose values are wrong where they are used"
    yield KernelFix(f"clamp it: return {call} in {where}", _indexed(kernel, operand, dimension, clamped), doubt)


def uncovered(kernel: Kernel, operand: Operand, dimension: int) -> Iterator[KernelFix]:
    """Of blocks of this dimension that no program has, where the grid falls short of them."""
    block, extent, term = operand.block[dimension], operand.dims[dimension], operand.index[dimension]
    if type(block.size) is not int or block.kind not in ("blocked", "squeezed"):
        return
    if term.op == "min" and type(extent) is int and term.args[1].op == "int":
        last = ceil_div(extent, block.size) - 1
        if term.args[1].args[0] == last - 1:
            words = f"clamp it to the last block, {last}: return jnp.minimum({term.args[0]}, {last}) in dimension "
            words += f"{dimension} of the index map of {operand.name}, where {term} stands"
            yield KernelFix(
                words, _indexed(kernel, operand, dimension, Term("min", term.args[0], Term("int", last))), UNSURE
            )
    if term.op != "name" or term.args[0] not in kernel.grid_names:
        return
    k = kernel.grid_names.index(term.args[0])
    doubt = (
        "what happens at a step that the body names, such as a last store, must be meant so"
        if _named(kernel, k)
        else ""
    )
    if type(extent) is not int:
        if kernel.grid[k] == extent // block.size:
            words = f"{kernel.dimension(k)} floor-divides {extent} by {block.size}: use pl.cdiv({extent}, {block.size})"
            yield KernelFix(words, _with_grid(kernel, k, ceil_div(extent, block.size)), doubt)
        return
    programs, count = kernel.grid[k], ceil_div(extent, block.size)
    if type(programs) is not int or programs >= count:
        return
    cdiv = f"use pl.cdiv({extent}, {block.size}) = {count}"
    said = f"has {programs} programs for {count} blocks"
    if programs == extent // block.size:
        said = f"floor-divides {extent} by {block.size}"
    yield KernelFix(f"{kernel.dimension(k)} {said}: {cdiv}", _with_grid(kernel, k, count), doubt)


def _named(kernel: Kernel, dimension: int) -> bool:
    """Whether the body does something only in some programs along a dimension of the grid."""
    body, name = kernel.body, kernel.grid_names[dimension]
    return body is not None and any(name in c.names() for effect in body.effects for c in effect.spot.path)


def innermost(kernel: Kernel, dimension: int, outputs: str) -> Iterator[KernelFix]:
    """A grid with one of its dimensions as the last."""
    order = [k for k in range(len(kernel.grid)) if k != dimension] + [dimension]
    if dimension in kernel.vmapped or any(k >= len(kernel.grid) - 1 for k in kernel.vmapped):
        return
    grid = tuple(kernel.grid[k] for k in order)
    words = f"{kernel.dimension(dimension)} does not choose the block of {outputs}: make it the innermost dimension, "
    said = ", ".join(str(kernel.grid[k]) for k in order if k not in kernel.vmapped)
    words += f"grid ({said}), and number the arguments of index maps and pl.program_id so"
    yield KernelFix(
        words,
        kernel.changed(
            grid=grid,
            grid_names=tuple(kernel.grid_names[k] for k in order),
            semantics=tuple(kernel.semantics[k] for k in order) if kernel.semantics else (),
            vmapped=tuple(order.index(k) for k in kernel.vmapped),
        ),
    )


def in_order(kernel: Kernel, dimensions: tuple[int, ...], doubt: str = "") -> Iterator[KernelFix]:
    """Dimensions of a grid that no longer run in parallel; a kernel over a mesh of cores (`core_map`) has no such
    words."""
    named = [
        k for k in dimensions if kernel.semantics and kernel.semantics[k] == "parallel" and k not in kernel.vmapped
    ]
    if len(named) < len(dimensions) or not named or kernel.platform != "tpu":
        return
    semantics = tuple("arbitrary" if k in named else word for k, word in enumerate(kernel.semantics))
    many = " and ".join(map(kernel.dimension, named))
    yield KernelFix(f'make {many} "arbitrary" in dimension_semantics', kernel.changed(semantics=semantics), doubt)


def _indexed(kernel: Kernel, operand: Operand, dimension: int, term: Term) -> Kernel:
    """The kernel with another index of one operand in one dimension."""
    index = tuple(term if d == dimension else other for d, other in enumerate(operand.index))
    return kernel.changed(
        operands=tuple(replace(o, index=index) if o.name == operand.name else o for o in kernel.operands)
    )


def _with_grid(kernel: Kernel, dimension: int, programs: object) -> Kernel:
    return kernel.changed(grid=tuple(programs if k == dimension else n for k, n in enumerate(kernel.grid)))


def values_of(kernel: Kernel, term: Term) -> tuple[int, int, int] | None:
    """(least, greatest, a divisor of all) of a term over the grid, tried out; None where there is too much to try."""
    from itertools import product
    from math import gcd

    names = [n for n in term.names() if n in kernel.grid_names]
    extents: list[Any] = [kernel.grid[kernel.grid_names.index(n)] for n in names]
    if reads((term,)) or len(names) < len(term.names()) or not all(type(n) is int for n in extents):
        return None
    # the last programs stand for all where there are too many
    ranges = [range(n) if n <= 16 else (0, 1, 2, n - 2, n - 1) for n in extents]
    found = []
    for count, values in enumerate(product(*ranges)):
        if count == MOST:
            return None
        found.append(int(term.evaluate(dict(zip(names, values, strict=True)), INTS)))
    return (min(found), max(found), gcd(*found)) if found else None
