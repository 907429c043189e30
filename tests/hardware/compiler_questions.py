"""Questions about kernels to the real TPU compiler, and what our rules of one version answer to them.

`benchmarks/compiler_rules.py` asks them of a version that nobody has measured.
"""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.expression import parse_expression
from layoutproof.core.term import Term
from layoutproof.hardware.tpu import default_layout
from layoutproof.kernel.kernel import Block, Kernel, Operand
from layoutproof.pallas.judge import kernel_target
from tests.hardware.compiler import OneOperand, Scalar

TYPES = {
    "float32": "f32", "bfloat16": "bf16", "float16": "f16", "int8": "s8", "uint8": "u8", "int4": "s4", "uint4": "u4",
    "int32": "s32", "uint32": "u32", "bool": "pred", "bool_": "pred", "int16": "s16", "uint16": "u16",
    "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "float8_e4m3b11fnuz": "f8e4m3b11fnuz", "int2": "s2",
}  # fmt: skip


def operand(row: dict[str, Any]) -> tuple[Operand, Kernel]:
    """The operand and the kernel of a recorded row."""
    dims, given, grid = row["array_shape"], row["block_shape"], row["grid"]
    names = tuple(f"g{k}" for k in range(len(grid)))
    block = tuple(_block(entry) for entry in given) if given is not None else tuple(Block("blocked", n) for n in dims)
    index = row.get("index_map")
    if given is None:
        terms: tuple[Term, ...] = (Term("int", 0),) * len(dims)
    elif index is None:
        terms = tuple(Term("name", names[k]) if k < len(grid) else Term("int", 0) for k in range(len(dims)))
    else:
        terms = tuple(parse_expression(plain(text)) for text in index)
    options = row.get("options") or {}
    memory = options.get("space", "vmem")
    buffers = options.get("buffered")
    o = Operand("x", "in", tuple(dims), TYPES[row["dtype"]], block, terms, memory=memory, buffers=buffers)
    return o, Kernel("k", tuple(grid), names, (o,), semantics=tuple(options.get("dimsem") or ()))


def _block(entry: Any) -> Block:
    if entry is None:
        return Block("squeezed", 1)
    if isinstance(entry, int):
        return Block("blocked", entry)
    kinds = {"E": "element", "B": "blocked", "BE": "element", "S": "squeezed", "Sq": "squeezed", "BS": "bounded"}
    low, high = entry[2] if len(entry) > 2 else (0, 0)
    return Block(kinds[entry[0]], 1 if entry[0] in ("S", "Sq") else entry[1], low, high)


def plain(text: str) -> str:
    """An index map's text as the language of terms writes it."""
    text = re.sub(r"\bds\((.*),\d+\)$", r"\1", text.replace("rem(", "truncrem(").replace("div(", "truncdiv("))
    text = re.sub(r"pl\.|jnp\.|jax\.lax\.|lax\.", "", text)
    text = re.sub(r"(\w+)<<(\d)", r"shl(\1,\2)", text)
    return text.replace("minimum(", "min(").replace("where(", "select(").replace("maximum(", "max(")


def row_major(row: dict[str, Any], o: Operand) -> bool:
    """Whether the array's default layout is what kernels get."""
    default = default_layout(row["array_shape"], ELEMENT_BITS[o.dtype], row["generation"])
    return default.minor_to_major == tuple(reversed(range(len(o.dims))))


# bodies of kernels for v2 and v3 are refused for reasons of their own (masks)
GENERATIONS = ["v4", "v5e", "v5p", "v6e", "7x"]


_MASKS = re.compile(r"asking is (only supported for TPU v5\+|currently implemented in)")


def of_the_body(answer: str) -> bool:
    """Whether the compiler refuses a body that handles a part of a register, whatever its block.

    v4 does for s8[64] in one block, and every generation for s4[3] (libtpu 0.0.52).
    """
    return _MASKS.search(answer) is not None


def blocks_at_random(rng: random.Random, count: int, version: str) -> list[OneOperand]:
    """Blocks of arrays whose default layout is row-major, small enough for every generation's memory."""
    queries: list[OneOperand] = []
    while len(queries) < count:
        dtype = rng.choice(["float32", "bfloat16", "int8", "int4", "int32"])
        rank = rng.choice([1, 2, 2, 2, 3])
        dims = [rng.choice([3, 8, 12, 32, 64, 96, 256, 300, 1024]) for _ in range(rank)]
        block = [rng.choice([n, 8, 16, 32, 64, 2]) for n in dims]
        block[-1] = rng.choice([dims[-1], 128, 256, 1024])
        grid = [-(-n // b) for n, b in zip(dims, block, strict=True)]
        query = OneOperand(rng.choice(GENERATIONS), dtype, dims, block, grid, [f"g{d}" for d in range(rank)])
        o, k = operand(_row(query))
        if not row_major(_row(query), o):
            continue
        if kernel_target(query.generation, version).memory(k)[0].used <= 2**20:
            queries.append(query)
    return queries


def refused_block(query: OneOperand, version: str) -> str:
    """What our rules say of a block."""
    o, k = operand(_row(query))
    return kernel_target(query.generation, version).refuses_block(o, k.grid)


def _row(query: OneOperand) -> dict[str, Any]:
    return {
        "generation": query.generation, "dtype": query.dtype, "array_shape": query.array, "block_shape": query.block,
        "grid": query.grid, "tag": "live",
    }  # fmt: skip


SCALARS = [
    Scalar(generation, dtype, memory, role, grid)
    for generation, dtype in (("v4", "float32"), ("v5e", "float32"), ("v5e", "int32"), ("7x", "float32"))
    for memory, role, grid in itertools.product(("vmem", "smem", "any"), ("in", "out"), ((), (1,), (4,)))
]
"""Arrays of no dimensions in every memory, with and without a grid."""


def refused_scalar(query: Scalar, version: str) -> str:
    """What our rules say of an array of no dimensions."""
    o = Operand("x", query.role, (), TYPES[query.dtype], (), (), memory=query.memory)
    return kernel_target(query.generation, version).refuses_block(o, query.grid)


STARTS = {
    "g0*8": True, "8*g0": True, "(7-g0)*8": True, "g0*4*2": True, "g0*g0*8": True, "(g0//2)*16": True, "(g0%4)*8": True,
    "g0*4+g0*4": False, "g0*4": False, "g0": False, "0": True, "16": True, "12": False, "(g0*6)*4": True,
    "pl.multiple_of(g0*4,8)": True, "jnp.where(g0>2,16,8*g0)": True, "(g0*4+2)*2": False, "(g0*8)%12": False,
    "jnp.where(g0>2,12,8*g0)": False, "(g0+1)*8": True, "(g0*8)*1": True, "(g0*2)*(g0*4)": False, "g0*8+g1*4": False,
    "jnp.minimum(g0*8,60)": False, "(g0*2+2)*(g1*4+4)": False, "(g0*16)//2": False,
    "g0<<3": False, "(g0<<2)*2": False, "(g0<<3)+8": False,
}  # fmt: skip
LATER = (
    "g0*8+8", "8-g0*8", "jnp.minimum(g0*8,56)", "jnp.maximum(g0*8-8,0)", "(g0*2+2)*4",
    "(g0*4+2)*4", "(g0*2*(g1+1))*4", "(g0*8)%16", "g0*8+g1*16-8", "(g0*8+8)*3",
    "jnp.where(g0>2,16,8*g0+8)", "jnp.minimum(jnp.maximum(g0*8,0),56)", "pl.multiple_of(g0*4,8)+8",
)  # fmt: skip
"""What only later versions of the compiler follow."""


def starting_at(text: str) -> OneOperand:
    """A window that starts where a Python expression says."""
    return OneOperand("v5e", "float32", [64, 256], [["E", 8], ["E", 128]], [8, 2], [text, "g1*128"])


def refused_start(text: str, version: str) -> str:
    """What our rules say of it."""
    index = tuple(parse_expression(plain(t)) for t in (text, "g1*128"))
    block = (Block("element", 8), Block("element", 128))
    return kernel_target("v5e", version).refuses_index(Operand("x", "out", (64, 256), "f32", block, index))
