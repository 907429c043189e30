"""The operands of each matrix product of a warpgroup (`wgmma`) lie as its instruction reads them.

Why it matters: JAX refuses other products, but only when it lowers the kernel for a GPU: a trace on a CPU, and JAX's
interpreter, take them.
Refuted by: the operand: in other tiles than 8 rows of one swizzle, without a swizzle, or with another one than the
other operand; transposed, where its elements are not 2 bytes; a product whose rows are no multiple of 64, whose columns
are no multiple of 8 or more than 256, whose depth is no multiple of the swizzle; operands of a type that is not
multiplied, or not out of registers; an accumulator of another type. A warning: operands of u8, which JAX multiplies as
s8.
Asked of every product, whether or not a program comes to it: its shapes are those of the code.
Example: `plgpu.wgmma(acc, a, b)` of f16 operands in tiles of 8 x 32 with a swizzle of 128 bytes, which are 64 elements.
Source: `_wgmma_lowering` in jax/_src/pallas/mosaic_gpu/primitives.py:1614, `wgmma` and `wgmma_m64` in
jax/experimental/mosaic/gpu/wgmma.py:302-440 and 119-299 (jax 0.10.2), held against what JAX says when it lowers for a
GPU.
Fix: on both operands `plgpu.TilingTransform((8, swizzle / bytes of an element))`, `plgpu.SwizzleTransform(swizzle)`.
Incident: none is known to us.
Limits: Asked of kernels of lane semantics, which is the default: in those of warpgroup semantics JAX chooses how
shared memory lies. Operands through reshapes are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.effects import MMAS, Access, Body, Effect, StartedUse, View
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.message import Template
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas import problems

TARGET = False
BODY = True
SETTLED_BY = "read operands by slices in tiles of 8 rows of one swizzle"

MISSING = Template("pallas.wgmma_tiles_missing", "{operand} has no {missing}: a product reads swizzled rows in tiles")
TILES = Template(
    "pallas.wgmma_tiles_tiles",
    "{operand} lies in tiles of {tiles}, and a swizzle of {swizzle} bytes of {dtype} takes {rows} x {width}",
)
TURNED = Template(
    "pallas.wgmma_tiles_turned",
    "{operand} has the depth of the product along its rows of memory, and {dtype} is not 2 bytes: only those are "
    "transposed",
)
SWIZZLES = Template("pallas.wgmma_tiles_swizzles", "{left} has a swizzle of {bytes} bytes, and {right} one of {others}")
PRODUCT_ROWS = Template("pallas.wgmma_tiles_rows", "the product has {rows} rows, no multiple of {of}")
PRODUCT_COLUMNS = Template(
    "pallas.wgmma_tiles_columns", "the product has {columns} columns: it takes multiples of {of}, {most} at most"
)
DEPTH = Template(
    "pallas.wgmma_tiles_depth", "the product is {depth} deep, no multiple of the {elements} elements of a swizzle"
)
ACCUMULATOR = Template(
    "pallas.wgmma_tiles_accumulator", "the accumulator is {dtype}, and a product of {operands} adds to {takes}"
)

OPERANDS = Template("pallas.wgmma_tiles_operands", "operands of {dtype}: a product takes {takes}")
REGISTERS = Template(
    "pallas.wgmma_tiles_registers", "the left operand is {dtype} in registers: from there a product takes {takes}"
)
SMALL_SWIZZLE = Template(
    "pallas.wgmma_tiles_small_swizzle",
    "the left operand is {dtype} in registers, and {right} has a swizzle of {swizzle} bytes: JAX refuses that",
)
SIGNED = Template(
    "pallas.wgmma_tiles_signed", "operands of u8, which JAX multiplies as s8: those above 127 count as negative"
)

ROWS, COLUMNS, MOST_COLUMNS, TILE_ROWS = 64, 8, 256, 8
"""Of a product: what its rows and its columns are multiples of, and the most columns; the rows of a tile."""
ADDS_TO: Mapping[str, tuple[str, ...]] = {
    "f32": ("f32",),
    "bf16": ("f32",),
    "f16": ("f16", "f32"),
    "f8e5m2": ("f16", "f32"),
    "f8e4m3fn": ("f16", "f32"),
    "s8": ("s32",),
    "u8": ("s32",),
}
"""Of each type of operands the types of accumulators. u8 is multiplied as s8 (wgmma.py:232)."""
FROM_REGISTERS = ("f16", "bf16", "s8", "f8e5m2", "f8e4m3fn")
"""Of a left operand in registers."""
LEAST_SWIZZLE = 32
"""With which no s8 is multiplied out of registers: JAX refuses it for an error of the assembler (wgmma.py:346)."""


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per product; none of other kernels."""
    body: Body | None = kernel.body
    if body is None or kernel.platform != "mosaic_gpu" or not kernel.lanes:
        return ()
    found: list[Obligation] = []
    for acc, use in _products(body.effects):
        right = use.views[-1]
        found.append(Obligation(right.reference.name, _settled(acc, use), source=use.spot.source))
        found += signed(right, use.spot.source)
    return (*found, *not_modelled(kernel, body)) if found else ()


def unasked(kernel: Kernel) -> Settled:
    """Where nothing is multiplied by a warpgroup."""
    return undecided("no matrix product of a warpgroup of a GPU")


def signed(right: View, source: str) -> list[Obligation]:
    """The warning of a product whose operands JAX takes for others; none of all else."""
    if right.dtype != "u8":
        return []
    said = by_rule(SIGNED(), "look at the element type of both operands: s8")
    return [Obligation(right.reference.name, said, severity="warning", source=source)]


def _products(effects: Sequence[Effect]) -> Iterator[tuple[Access, StartedUse]]:
    """Each product with what it adds to, which the effect before it says."""
    for before, effect in pairwise(effects):
        if not isinstance(effect, StartedUse) or effect.semaphore.reference.name != MMAS:
            continue
        if isinstance(before, Access) and before.kind == "add":
            yield before, effect


def _settled(acc: Access, use: StartedUse) -> Settled:
    views = tuple(map(_folded, use.views))
    *left, right = views
    if acc.view.dims is None or right.dims is None or any(turned(view) is None for view in views):
        return undecided(problems.OPERAND_VIEW())
    if any(view.dtype not in ELEMENT_BITS for view in views):
        return undecided(problems.NO_BITS(right.dtype))
    refused = next(of_operands(left, right, turns=False), None) or next(_of_product(acc.view, left, right), None)
    return refused or by_rule("")


def _folded(view: View) -> View:
    """An operand whose dimensions are folded into fewer, as memory of that shape; as it is where that is not so.

    Of those that are folded into one the last one alone may lie in tiles: each tile is one of the folded memory then
    (`UntilingTransform.commute_reshape` in jax/_src/pallas/mosaic_gpu/core.py).
    """
    at = next((k for k, step in enumerate(view.steps) if step.kind == "reshape" and not step.dtype), None)
    if at is None or len(view.reference.tilings) != 1:
        return view
    tiled = len(view.reference.tilings[0])
    for step in view.steps[:at]:
        if step.kind != "slices" or any(piece.single for piece in step.slices[len(step.dims) - tiled :]):
            return view
    tiling, step = list(view.reference.tilings[0]), view.steps[at]
    dims, tiles = list(step.dims), []
    for extent in reversed(step.after or ()):
        if not tiling:
            break
        # the last ones that make up the extent, of which all but the last have tiles of one
        last, many = tiling.pop(), dims.pop()
        while many < extent and tiling and dims and tiling[-1] == 1:
            tiling.pop()
            many *= dims.pop()
        if many != extent:
            return view
        tiles.append(last)
    if tiling or step.after is None:
        return view
    lies = replace(view.reference, dims=step.after, tilings=(tuple(reversed(tiles)),))
    return View(lies, view.steps[at + 1 :])


def turned(view: View) -> bool | None:
    """Whether an operand is seen transposed; None where it is seen through anything else than slices."""
    found = False
    for step in view.steps:
        if step.kind == "transpose" and step.permutation == (1, 0):
            found = not found
        elif step.kind != "slices":
            return None
    return found


def of_operands(left: Sequence[View], right: View, turns: bool) -> Iterator[Settled]:
    """What is wrong with how the operands lie. left: none where it is in no shared memory.

    turns: whether elements of any size may lie transposed, and not only those of 2 bytes.
    """
    for view in (*left, right):
        of, bits = view.reference, ELEMENT_BITS[view.dtype]
        width = of.swizzle * 8 // bits
        if not of.swizzle or len(of.tilings) != 1:
            yield by_rule(
                MISSING(of.name, "tiles" if of.swizzle else "swizzle"),
                f"look at its transforms: TilingTransform(({TILE_ROWS}, ..)) and SwizzleTransform(..)",
            )
        elif of.tilings[0] != (TILE_ROWS, width):
            tiles = " x ".join(map(str, of.tilings[0]))
            yield by_rule(
                TILES(of.name, tiles, of.swizzle, view.dtype, TILE_ROWS, width),
                f"look at its transforms: TilingTransform(({TILE_ROWS}, {width}))",
            )
        # rows of the left one and columns of the right one are what the instruction reads by itself
        if not turns and bits != 16 and bool(turned(view)) == (view is not right):
            yield by_rule(
                TURNED(of.name, view.dtype),
                "look at how it lies: the depth comes last in memory",
            )
    for view in left:
        if view.reference.swizzle != right.reference.swizzle:
            yield by_rule(
                SWIZZLES(view.reference.name, view.reference.swizzle, right.reference.name, right.reference.swizzle),
                "look at the transforms of both: one swizzle",
            )


def _of_product(acc: View, left: Sequence[View], right: View) -> Iterator[Settled]:
    """What is wrong with the product itself: rows, columns, depth and types. left: none where it is in registers."""
    assert acc.dims is not None
    assert right.dims is not None
    (rows, columns), depth, dtype = acc.dims, right.dims[0], right.dtype
    group = right.reference.swizzle * 8 // ELEMENT_BITS[dtype]
    if rows % ROWS:
        yield by_rule(PRODUCT_ROWS(rows, ROWS), "look at the shape of the accumulator")
    if columns % COLUMNS or columns > MOST_COLUMNS:
        yield by_rule(
            PRODUCT_COLUMNS(columns, COLUMNS, MOST_COLUMNS),
            "look at the shape of the accumulator: several products, of fewer columns",
        )
    if depth % group:
        yield by_rule(DEPTH(depth, group), "look at the slice")
    look = "look at the element type of both operands"
    if dtype not in ADDS_TO:
        yield by_rule(OPERANDS(dtype, ", ".join(ADDS_TO)), look)
    elif acc.dtype not in ADDS_TO[dtype]:
        yield by_rule(
            ACCUMULATOR(acc.dtype, dtype, " or ".join(ADDS_TO[dtype])),
            "look at the element type of plgpu.ACC",
        )
    if not left and dtype not in FROM_REGISTERS:
        yield by_rule(REGISTERS(dtype, ", ".join(FROM_REGISTERS)), look)
    if not left and dtype == "s8" and right.reference.swizzle == LEAST_SWIZZLE:
        yield by_rule(SMALL_SWIZZLE(dtype, right.reference.name, LEAST_SWIZZLE), "look at the swizzle: a larger one")
