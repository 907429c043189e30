"""The operands and the sum of each product on tensor memory (`tcgen05_mma`) lie as its instruction takes them.

Why it matters: JAX refuses other products, but only when it lowers the kernel for a GPU: a trace on a CPU, and JAX's
interpreter, take them.
Refuted by: an operand in other tiles than 8 rows of one swizzle, without a swizzle, or with another one than the other
operand; elements of another type than f16, bf16, f8e4m3fn, f8e5m2 and s8, or of two types; a sum of another type; a
product whose rows are not 64 or 128, whose columns are no multiple of what the instruction takes, or too many, whose
depth is no multiple of the swizzle; a sum, or a left operand in tensor memory, that lies there otherwise. A warning:
operands of u8, which JAX multiplies as s8.
Asked of every product, whether or not a program comes to it: its shapes are those of the code.
Example: `plgpu.tcgen05_mma(acc, a, b, barrier)` of 96 rows.
Source: `mma` and `create_instr_descriptor` in jax/experimental/mosaic/gpu/tcgen05.py:174-498 and 48-105,
`create_descriptor` in mma_utils.py:43-211, `_tcgen05_mma_lowering` in
jax/_src/pallas/mosaic_gpu/primitives.py:2200 (jax 0.10.2), held against what JAX says when it lowers for a GPU.
Fix: on both operands `plgpu.TilingTransform((8, swizzle / bytes of an element))`, `plgpu.SwizzleTransform(swizzle)`; a
sum in `plgpu.TMEM((128, columns), jnp.float32)`.
Incident: none is known to us.
Limits: Asked of kernels of lane semantics, which is the default: in those of warpgroup semantics JAX chooses how
shared memory lies. Operands through reshapes, products of scaled and of sparse operands are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutproof.bodies import problems as body_problems
from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.effects import TENSOR, Access, Body, Effect, StartedUse, View
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.message import Template
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas import problems
from layoutproof.pallas.rules.wgmma_tiles import of_operands, signed, turned

TARGET = False
BODY = True
SETTLED_BY = "read operands by slices in tiles of 8 rows of one swizzle, and sum into a slice of columns"

LIES = Template("pallas.tcgen05_tiles_lies", "how {memory} lies in tensor memory is not known")
TWO_TYPES = Template(
    "pallas.tcgen05_tiles_two_types", "{left} is {dtype}, and {right} is {other}: a product is of one type"
)
OPERANDS = Template("pallas.tcgen05_tiles_operands", "operands of {dtype}: the instruction takes {takes}")
SUM = Template("pallas.tcgen05_tiles_sum", "the sum is {dtype}, and a product of {operands} adds to {takes}")
PRODUCT_ROWS = Template("pallas.tcgen05_tiles_rows", "the product has {rows} rows of each program: it takes {takes}")
LEFT_ROWS = Template(
    "pallas.tcgen05_tiles_left_rows", "{operand} lies in tensor memory and has {rows} rows: from there it takes {takes}"
)
PART_OF_ROWS = Template(
    "pallas.tcgen05_tiles_part_of_rows", "a part of the rows of {memory}, whose columns alone are cut"
)
PACKED = Template(
    "pallas.tcgen05_tiles_packed",
    "{memory} has {packing} elements of {dtype} in a column, and the product takes {takes}",
)
OTHERWISE = Template(
    "pallas.tcgen05_tiles_lanes",
    "{memory} of {rows} rows lies in tensor memory otherwise than a product of {programs} takes it",
)
COLUMNS = Template(
    "pallas.tcgen05_tiles_columns", "the right operand has {columns} columns: the product takes multiples of {of}"
)
MOST = Template(
    "pallas.tcgen05_tiles_most", "the right operand has {columns} columns: the product takes {most} at most"
)
WIDE = Template(
    "pallas.tcgen05_tiles_wide", "the right operand has {columns} columns: of more than 256 only 512 are taken"
)
HALVES = Template(
    "pallas.tcgen05_tiles_halves",
    "a product of 64 rows halves its {columns} columns, and a swizzle of {swizzle} bytes is {elements} elements",
)
PART_OF_TILE = Template(
    "pallas.tcgen05_tiles_part_of_tile",
    "{operand} lies in tiles of {elements} elements along its {what}: the product takes {taken} at once",
)
DEPTH = Template(
    "pallas.tcgen05_tiles_depth", "the product is {depth} deep, no multiple of the {elements} elements of a swizzle"
)

ROWS, HALF = 128, 64
"""Rows of a product, in each program."""
ADDS_TO = {
    "bf16": ("f32",),
    "f16": ("f16", "f32"),
    "f8e4m3fn": ("f16", "f32"),
    "f8e5m2": ("f16", "f32"),
    "s8": ("s32", "u32"),
    "u8": ("s32", "u32"),
}
"""Of each type of operands the types of sums. u8 is multiplied as s8 (tcgen05.py:88)."""
MOST_COLUMNS, AT_ONCE, MOST_OF_TWO = 512, 256, 128
"""Columns of the right operand at most, of one instruction, and where two programs bring as many each."""
EIGHT_BITS = frozenset({"f8e4m3fn", "f8e5m2"})
"""Types of floats of which one product may have two (PTX, `kind::f8f6f4`): jax 0.11.2 lowers it, 0.10.2 refuses it."""
COLUMNS_OF, TWICE = 8, 2
"""What columns are multiples of; twice as many where two programs bring them, and again twice of integers."""


@dataclass(frozen=True)
class _Product:
    """One product. left: in shared or in tensor memory.  together: whether two programs of a cluster do it.

    plain: whether it has no scales, and its operands are not sparse.
    """

    acc: View
    left: View
    right: View
    together: bool
    source: str
    plain: bool

    @property
    def shared(self) -> list[View]:
        """The left operand where it lies in shared memory."""
        return [] if self.left.reference.memory == "tmem" else [self.left]


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per product; none of other kernels."""
    body: Body | None = kernel.body
    if body is None or kernel.platform != "mosaic_gpu" or not kernel.lanes:
        return ()
    found: list[Obligation] = []
    for one in _products(body.effects):
        found.append(Obligation(one.right.reference.name, _settled(one), source=one.source))
        found += signed(one.right, one.source)
    return (*found, *not_modelled(kernel, body)) if found else ()


def unasked(kernel: Kernel) -> Settled:
    """Where nothing is multiplied on tensor memory."""
    return undecided("no matrix product on tensor memory of a GPU")


def _products(effects: Sequence[Effect]) -> Iterator[_Product]:
    """Each product: a load of the left operand, one of the right one, what it adds to or overwrites, and its start."""
    for k, effect in enumerate(effects):
        if not isinstance(effect, StartedUse) or effect.semaphore.reference.name != TENSOR:
            continue
        before = [one for one in effects[max(k - 4, 0) : k] if isinstance(one, Access)]
        sums = [one for one in before[-2:] if one.kind != "read"]
        reads = before[: len(before) - len(sums)]
        # scales, and what is left of sparse operands, lie in tensor memory
        plain = all(view.reference.memory == "shared" for view in effect.views)
        yield _Product(sums[-1].view, reads[-2].view, reads[-1].view, bool(effect.across), effect.spot.source, plain)


def _settled(one: _Product) -> Settled:
    if one.acc.dims is None or one.right.dims is None or one.left.dims is None:
        return undecided(problems.OPERAND_VIEW())
    if not one.plain:
        return undecided(body_problems.TENSOR_SCALES())
    if any(turned(view) is None for view in (one.acc, one.left, one.right)):
        return undecided(problems.OPERAND_VIEW())
    tensor = [one.acc, *([] if one.shared else [one.left])]
    open_ = next((view for view in tensor if not view.reference.packing), None)
    if open_ is not None:
        return undecided(LIES(open_.reference.name))
    if any(view.dtype not in ELEMENT_BITS for view in (one.left, one.right)):
        return undecided(problems.NO_BITS(one.right.dtype))
    # JAX looks at the tiles first
    for refusals in (of_operands(one.shared, one.right, turns=True), _of_types(one), _of_memory(one), _of_shape(one)):
        for refused in refusals:
            return refused
    return by_rule("")


def _of_types(one: _Product) -> Iterator[Settled]:
    left, right, dtype = one.left.reference.name, one.right.reference.name, one.right.dtype
    if one.left.dtype != dtype and not {one.left.dtype, dtype} <= EIGHT_BITS:
        yield by_rule(TWO_TYPES(left, one.left.dtype, right, dtype), "look at the element types of both operands")
    if dtype not in ADDS_TO:
        yield by_rule(OPERANDS(dtype, ", ".join(ADDS_TO)), "look at the element type of both operands")
    elif one.acc.dtype not in ADDS_TO[dtype]:
        said = SUM(one.acc.dtype, dtype, " or ".join(ADDS_TO[dtype]))
        yield by_rule(said, "look at the element type of plgpu.TMEM")


def _of_memory(one: _Product) -> Iterator[Settled]:
    """What is wrong with the rows, and with how the sum and a left operand lie in tensor memory."""
    assert one.acc.dims is not None
    rows = one.acc.dims[0]
    if rows not in (ROWS, HALF):
        yield by_rule(PRODUCT_ROWS(rows, f"{HALF} or {ROWS}"), "look at the shape of the sum")
    if not one.shared and rows != ROWS:
        yield by_rule(LEFT_ROWS(one.left.reference.name, rows, ROWS), "look at the shape of the left operand")
    packed = [(one.acc, 1)]
    if not one.shared:
        packed.append((one.left, 32 // ELEMENT_BITS[one.left.dtype]))
    for view, packing in packed:
        of = view.reference
        if view.dims is None or view.dims[0] != of.dims[-2]:
            yield by_rule(PART_OF_ROWS(of.name), "look at the slice")
        if of.packing != packing:
            yield by_rule(PACKED(of.name, of.packing, of.dtype, packing), "look at packed of plgpu.TMEM")
        # of 64 rows the layout says how many columns there are, and a part of them is none
        whole = view.dims is not None and view.dims[-1] == of.dims[-1]
        wanted = "whole" if rows == ROWS else "pair" if one.together else "half"
        if of.lanes != wanted or (rows != ROWS and not whole):
            programs = "two programs" if one.together else "one program"
            yield by_rule(OTHERWISE(of.name, rows, programs), "look at collective of plgpu.TMEM, and at the slice")


def _of_shape(one: _Product) -> Iterator[Settled]:
    """What is wrong with columns and depth."""
    assert one.acc.dims is not None
    assert one.right.dims is not None
    rows, (depth, columns) = one.acc.dims[0], one.right.dims
    swizzle = one.right.reference.swizzle
    group = swizzle * 8 // ELEMENT_BITS[one.right.dtype]
    halves = 2 if rows == HALF and not one.together else 1
    look = "look at the shape of the right operand"
    if halves == 2 and group > columns // halves:
        yield by_rule(HALVES(columns, swizzle, group), "look at the swizzle: a smaller one")
    of = COLUMNS_OF * (TWICE if one.together else 1) * (TWICE if one.acc.dtype in ADDS_TO["s8"] else 1)
    if (columns // halves) % of:
        yield by_rule(COLUMNS(columns, of * halves), look)
    most = MOST_OF_TWO if one.together else MOST_COLUMNS
    if columns > most:
        yield by_rule(MOST(columns, most), look)
    if columns > AT_ONCE and columns != MOST_COLUMNS:
        yield by_rule(WIDE(columns), look)
    if depth % group:
        yield by_rule(DEPTH(depth, group), "look at the slice")
    at_once = min(columns // halves, MOST_OF_TWO if one.together else AT_ONCE)
    for view, crossed, taken, what in (
        *[(left, True, rows, "rows") for left in one.shared],
        (one.right, False, at_once, "columns"),
    ):
        # tiles are as wide as a swizzle along what is last in memory, and 8 along the other
        if turned(view) is crossed and taken % group:
            yield by_rule(PART_OF_TILE(view.reference.name, group, what, taken), "look at the swizzle: a smaller one")
