"""Which arrays the TPU compiler takes into a kernel at all, by their element type and their number of elements.

Measured ahead of time on libtpu 0.0.42.1, 0.0.50.1 and 0.0.52 with jax 0.10.2: 31 element types as windows, tables,
arrays in SMEM and in HBM, outputs and scratch, loaded, stored, or only there; on v2 to 7x with 0.0.52 (2,912 kernels),
on three generations with the older ones (816 kernels each, the same answers). So the rule is one for these versions.

    inputs, tables     refused: f16, f8e4m3, f8e3m4, f8e4m3fnuz, f8e5m2fnuz ("Only arguments with float8e5m2, ..
                       bfloat16 or 32-bit element types are supported"), wherever they lie, loaded or not
    outputs, scratch   of those types are taken, loads and stores of vectors are not ("Invalid vector type")
    any array          refused: 64 and 128 bits (f64, s64, u64, c64, c128), s1, u1, f6; 2 and 4 bits on v2 and v3
    any array          refused: no elements, s32[0] ("XLA layout ({0}) does not match Mosaic layout ({0:T(128)})"); a
                       scratch without elements is taken, and a call whose outputs all have none is left out by XLA

What a body computes with the types that are taken (casts of f4, loads of s2 on v4) is the compiler's to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import Unsupported
from layoutproof.hardware.facts import Fact
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.kernel.kernel import Kernel

NO_VECTORS = frozenset({"f16", "f8e4m3", "f8e3m4", "f8e4m3fnuz", "f8e5m2fnuz"})
"""Float types of which Mosaic takes no arguments, and knows no vectors."""

NO_ARRAYS = frozenset({"s1", "u1", "f6e2m3fn", "f6e3m2fn"})
"""Widths that Mosaic has no memory for, besides all above 32 bits."""


REFUSED = frozenset(name for name, bits in ELEMENT_BITS.items() if bits > 32) | NO_VECTORS | NO_ARRAYS
"""Element types that no input of a kernel may have, on any generation."""

FACTS = (
    Fact("refused inputs", ", ".join(sorted(REFUSED)), "libtpu 0.0.52", "each element type as a window on v5e"),
    Fact("inputs without elements", "refused", "libtpu 0.0.52", "s32[0] on v5e"),
)
"""The element types that the compiler takes into a kernel."""


def refused_arrays(kernel: Kernel, target: str) -> Iterator[str]:
    """The refused arrays and scratch of a kernel, one sentence each. target: the generation's canonical name.

    Raises Undecided, after the refusals, where these depend on the effects of a body that is not known.
    """
    # a call without a result is not compiled at all
    compiled = not kernel.outputs or not all(map(_empty, (o.dims for o in kernel.outputs)))
    for table in kernel.tables:
        dtype = table.dtype or f"{'s' if table.signed else 'u'}{table.bits}"
        yield from _array(f"table {table.name}", "in", dtype, table.dims, target, packed=False, compiled=compiled)
    of_vectors = list[tuple[str, str]]()
    for operand in kernel.operands:
        if operand.memory in ("semaphore", "host"):
            continue
        # a pipeline's arrays are no arguments of the call, but lie in its memory
        role = operand.role if kernel.pipeline == "pallas_call" else "inside"
        packed = operand.windowed and operand.memory != "smem"
        yield from _array(operand.name, role, operand.dtype, operand.dims, target, packed, compiled)
        if operand.dtype in NO_VECTORS and role != "in" and operand.windowed:
            of_vectors.append((operand.name, operand.dtype))
            yield from _vectors(kernel, operand.name, operand.dtype)
    for k, scratch in enumerate(kernel.scratch):
        name = f"scratch {k}"
        if scratch.memory in ("semaphore", "host"):
            continue
        if _too_wide(scratch.dtype):
            yield f"{name}: {scratch.dtype}: {_WIDTH}"
        elif scratch.dtype in NO_VECTORS and scratch.memory == "vmem":
            of_vectors.append((name, scratch.dtype))
            yield from _vectors(kernel, name, scratch.dtype)
    if kernel.touched is None and of_vectors:
        raise Unsupported(_unless(*of_vectors[0]))


_WIDTH = "a kernel's arrays have elements of 2, 4, 8, 16 or 32 bits (XLA and Mosaic refuse it)"


def _empty(dims: Sequence[object]) -> bool:
    return any(type(extent) is int and extent == 0 for extent in dims)


def _array(
    name: str, role: str, dtype: str, dims: Sequence[object], target: str, packed: bool, compiled: bool
) -> Iterator[str]:
    shown = f"{dtype}[{','.join(map(str, dims))}]"
    if _empty(dims) and compiled and role != "inside":
        yield f"{name}: {shown} has no elements, and Mosaic refuses the layout that XLA gives it; leave it out"
    elif _too_wide(dtype):
        yield f"{name}: {shown}: {_WIDTH}"
    elif dtype in NO_VECTORS and role == "in":
        taken = "f32, bf16, f8e5m2, f8e4m3fn, f8e4m3b11fnuz, f8e8m0fnu and f4e2m1fn"
        yield f"{name}: {shown}: of floats Mosaic takes {taken} only; pass its bits as integers, or cast it before"
    elif ELEMENT_BITS.get(dtype, 32) < 8 and not CHIPS[target].sub_byte and not packed:
        yield f"{name}: {shown}: {target} stores it in whole bytes, and Mosaic expects it packed"


def _too_wide(dtype: str) -> bool:
    return dtype in NO_ARRAYS or ELEMENT_BITS.get(dtype, 32) > 32


def _vectors(kernel: Kernel, name: str, dtype: str) -> Iterator[str]:
    """The refusal of an array of `NO_VECTORS` where the body is known to load or store it."""
    if kernel.touched is not None and dtype in kernel.touched:
        yield _no_vector(name, dtype)


def _no_vector(name: str, dtype: str) -> str:
    return (
        f"{name}: the body loads or stores vectors of {dtype}, which Mosaic has none of; cast, or bitcast the reference"
    )


def _unless(name: str, dtype: str) -> str:
    return f"{name}: Mosaic has no vectors of {dtype}, and whether the body loads or stores some is not known"
