"""Each copy between global and shared memory of a GPU is one that the tensor memory accelerator (TMA) can do.

Why it matters: JAX refuses other copies, but only when it lowers the kernel for a GPU: a trace on a CPU, and JAX's
interpreter, take them.
Refuted by: the box of the copy, as it lies in shared memory: a dimension of more than 256 elements, a last dimension
that is no multiple of 16 bytes or not as wide as the swizzle, more than 5 dimensions, rows of the array in global
memory that are no multiple of 16 bytes apart, or that its tiles do not divide; into shared memory, bytes that are no
multiple of 128.
Asked of every copy, whether or not a program comes to it: its shapes are those of the code.
Example: `plgpu.copy_gmem_to_smem(x_gmem, smem, barrier)` of 512 rows at once.
Source: `_prepare_tma` and `async_copy` in jax/experimental/mosaic/gpu/launch_context.py, `_copy_gmem_to_smem_lowering`
in jax/_src/pallas/mosaic_gpu/primitives.py (jax 0.10.2), held against what JAX says when it lowers for a GPU.
Fix: more copies of fewer rows; a last dimension of 16 bytes or more; `plgpu.TilingTransform((8, swizzle / bytes of an
element))` with `plgpu.SwizzleTransform(swizzle)`.
Incident: none is known to us.
Limits: Asked of kernels of lane semantics, which is the default: in those of warpgroup semantics JAX chooses how
shared memory lies. Copies through views that are no slices (transposed, reshaped) and in tiles of tiles are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from operator import mul

from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.effects import COPIES_IN, TENSOR, Body, StartedCopy, View
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.message import Template
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided
from layoutproof.pallas import problems

TARGET = False
BODY = True
SETTLED_BY = "copy fewer rows at once, whose last dimension is a multiple of 16 bytes"

NO_SLICE = Template("pallas.tma_box_no_slice", "a copy through a view that is no slice")
TILES_OF_TILES = Template("pallas.tma_box_tiles_of_tiles", "{memory} lies in tiles of tiles")
DATA = Template("pallas.tma_box_data", "a copy whose shape depends on data")
PART_OF_TILES = Template(
    "pallas.tma_box_part_of_tiles", "the copy, {shape} elements, is no whole number of the tiles of {tiles} in {memory}"
)
BYTES = Template(
    "pallas.tma_box_bytes",
    "the copy is of {bytes} bytes, no multiple of {of}: each thread of a warpgroup announces its share of them",
)
APART = Template(
    "pallas.tma_box_apart",
    "rows of dimension {dimension} of {array} {shape} lie {bytes} bytes apart, no multiple of {of}",
)
UNDIVIDED = Template(
    "pallas.tma_box_undivided",
    "dimension {dimension} of {array} {shape} is {extent}, which tiles of {tiles}, as in {memory}, do not divide",
)
DIMENSIONS = Template(
    "pallas.tma_box_dimensions", "the box {box} has {count} dimensions{besides}: a copy takes {most} at most"
)
SHARED = Template(
    "pallas.tma_box_shared",
    "{programs} programs of the cluster share the copy, and they divide no leading dimensions of its box {box}",
)
LAST = Template(
    "pallas.tma_box_last", "the last dimension of the box {box} in {memory} is {bytes} bytes, no multiple of {of}"
)
SWIZZLE = Template(
    "pallas.tma_box_swizzle",
    "{memory} has a swizzle of {swizzle} bytes, and the last dimension of the box {box} is {bytes} bytes",
)
ELEMENTS = Template(
    "pallas.tma_box_elements", "a dimension of the box {box} has {elements} elements: a copy takes {most} at most"
)

MOST_ELEMENTS, MOST_DIMENSIONS, ALIGNED_BITS = 256, 5, 128
"""Of a box of TMA: elements of a dimension, dimensions; and what its rows and their distance are multiples of."""
WARPGROUP = 128
"""Threads of a warpgroup, of which each expects as many bytes of a copy into shared memory."""


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per copy between global and shared memory; none of other kernels."""
    body: Body | None = kernel.body
    if body is None or kernel.platform != "mosaic_gpu" or not kernel.lanes:
        return ()
    found = [
        Obligation(_sides(effect)[1].reference.name, _settled(kernel, effect), source=effect.spot.source)
        for effect in body.effects
        if isinstance(effect, StartedCopy)
        and _sides(effect)[1].reference.memory == "shared"
        and effect.semaphore.reference.name not in (COPIES_IN, TENSOR)
    ]
    if not found and not body.unmodelled:
        return ()
    return (*found, *not_modelled(kernel, body))


def unasked(kernel: Kernel) -> Settled:
    """Where nothing is copied to or from shared memory."""
    return undecided("no copy between global and shared memory of a GPU")


def _sides(copy: StartedCopy) -> tuple[View, View]:
    """What lies in global memory, and what lies in the other."""
    return (copy.source, copy.target) if copy.source.reference.memory == "gmem" else (copy.target, copy.source)


def _settled(kernel: Kernel, copy: StartedCopy) -> Settled:
    array, shared = _sides(copy)
    bits = ELEMENT_BITS.get(shared.reference.dtype)
    if bits is None:
        return undecided(problems.NO_BITS(shared.reference.dtype))
    if array.reference.memory != "gmem" or any(step.kind != "slices" for step in (*array.steps, *shared.steps)):
        return undecided(NO_SLICE())
    if len(shared.reference.tilings) > 1:
        return undecided(TILES_OF_TILES(shared.reference.name))
    if shared.dims is None or array.dims is None:
        return undecided(DATA())
    tiling = shared.reference.tilings[0] if shared.reference.tilings else ()
    if len(shared.dims) < len(tiling) or any(n % t for n, t in zip(_last(shared.dims, tiling), tiling, strict=True)):
        return by_rule(
            PART_OF_TILES(_text(shared.dims), _text(tiling), shared.reference.name),
            "look at the tiling: it divides the last dimensions of what is copied",
        )
    together = 1
    if copy.across and not copy.led:
        extents = dict(zip(kernel.grid_names, kernel.grid, strict=True))
        together = prod(int(extents[axis]) for axis in copy.across)
    return next(_refusals(copy, bits, tiling, together), by_rule(""))


def _refusals(copy: StartedCopy, bits: int, tiling: Sequence[int], together: int) -> Iterator[Settled]:
    """What JAX refuses, in its order. together: the programs that share the copy."""
    array, shared = _sides(copy)
    # the first of two programs expects the bytes of both
    moved = prod(shared.dims or ()) * bits * (2 if copy.led else 1)
    if copy.source is array and moved % (8 * WARPGROUP):
        yield by_rule(
            BYTES(_bytes(moved), WARPGROUP),
            "look at the slice: copy more, or less",
        )
    yield from _of_array(array, shared.reference.name, bits, tiling)
    yield from _of_box(copy, bits, tiling, together)


def _of_array(array: View, of: str, bits: int, tiling: Sequence[int]) -> Iterator[Settled]:
    """What is wrong with the array in global memory, whatever the box. of: the shared memory."""
    name, dims = array.reference.name, array.reference.dims
    for k, stride in enumerate(_strides(dims)[:-1]):
        if stride * bits % ALIGNED_BITS:
            yield by_rule(
                APART(k, name, _text(dims), _bytes(stride * bits), ALIGNED_BITS // 8),
                "look at the array: pad its last dimension outside of the kernel",
            )
    for k, tile in zip(reversed(_ranges(array)), reversed(tiling), strict=False):
        if dims[k] > tile and dims[k] % tile:
            yield by_rule(
                UNDIVIDED(k, name, _text(dims), dims[k], _text(tiling), of),
                "look at the tiling, or pad the array outside of the kernel",
            )


def _of_box(copy: StartedCopy, bits: int, tiling: Sequence[int], together: int) -> Iterator[Settled]:
    """What is wrong with the box of a copy, the first thing first."""
    array, shared = _sides(copy)
    of, swizzle = shared.reference.name, shared.reference.swizzle
    box, apart, single = _box(array, shared, tiling)
    kept = [k for k, (n, whole) in enumerate(zip(box, _extents(array, tiling), strict=True)) if n != 1 or whole != 1]
    if len(kept) + single > MOST_DIMENSIONS:
        besides = " and that of its indices" if single else ""
        yield by_rule(
            DIMENSIONS(_text(box), len(kept), besides, MOST_DIMENSIONS),
            "look at the tiling and the slice: fewer dimensions",
        )
        return
    box, apart = [box[k] for k in kept] or [1], [apart[k] for k in kept] or [1]
    shares = _shared_box(box, together, swizzle)
    if shares is None:
        yield by_rule(
            SHARED(together, _text(box)),
            "look at the tiling: the first dimensions of the box are divided among the programs",
        )
        return
    row = shares[-1] * bits
    if row % ALIGNED_BITS:
        yield by_rule(
            LAST(_text(shares), of, _bytes(row), ALIGNED_BITS // 8),
            "look at the slice: its last dimension is a multiple of 16 bytes",
        )
    if swizzle and row != swizzle * 8:
        yield by_rule(
            SWIZZLE(of, swizzle, _text(shares), _bytes(row)),
            f"look at the tiling: the last dimension of its tiles is {swizzle * 8 // bits} elements",
        )
    plain = not swizzle and together == 1 and not _fills_with_zeros(copy) and _contiguous(shares, apart)
    if max(shares) > MOST_ELEMENTS and not plain:
        yield by_rule(
            ELEMENTS(_text(shares), max(shares), MOST_ELEMENTS),
            f"look at the slice: several copies, of {MOST_ELEMENTS} or less",
        )


def _fills_with_zeros(copy: StartedCopy) -> bool:
    """Whether it reads zeros outside of the array; a copy to global memory never does."""
    return copy.clips and copy.source.reference.memory == "gmem"


def _box(array: View, shared: View, tiling: Sequence[int]) -> tuple[list[int], list[int], int]:
    """The elements of each dimension, their distance in global memory in elements, and 1 where indices need one more.

    Tiles come behind the places of the tiles, as they lie in shared memory. JAX makes one dimension of all indices.
    """
    assert shared.dims is not None
    left = _ranges(array)
    strides = _strides(array.reference.dims)
    extents, apart = list(shared.dims), [strides[k] for k in left]
    if tiling:
        split = len(extents) - len(tiling)
        counts = [n // t for n, t in zip(extents[split:], tiling, strict=True)]
        tiles = [a * t for a, t in zip(apart[split:], tiling, strict=True)]
        extents, apart = [*extents[:split], *counts, *tiling], [*apart[:split], *tiles, *apart[split:]]
    return extents, apart, int(any(n != 1 for k, n in enumerate(array.reference.dims) if k not in left))


def _extents(array: View, tiling: Sequence[int]) -> list[int]:
    """How many elements the array has along each dimension of the box."""
    whole = [array.reference.dims[k] for k in _ranges(array)]
    split = len(whole) - len(tiling)
    tiled = list(zip(whole[split:], tiling, strict=True))
    return [*whole[:split], *(max(1, n // t) for n, t in tiled), *(min(n, t) for n, t in tiled)]


def _ranges(array: View) -> list[int]:
    """The dimensions of the array that are no single index."""
    left = list(range(len(array.reference.dims)))
    for step in array.steps:
        left = [k for k, one in zip(left, step.slices, strict=True) if not one.single]
    return left


def _shared_box(box: Sequence[int], together: int, swizzle: int) -> list[int] | None:
    """What each of some programs copies of a box, None where it cannot be divided among them."""
    shares, left = list(box), together
    for k, extent in enumerate(shares[:-1] if swizzle else list(shares)):
        if extent % left == 0:
            shares[k], left = extent // left, 1
            break
        if left % extent:
            break
        shares[k], left = 1, left // extent
    return shares if left == 1 else None


def _contiguous(box: Sequence[int], apart: Sequence[int]) -> bool:
    """Whether the elements of a box lie one behind the other in global memory."""
    lengths = [1, *accumulate(reversed(box), mul)]
    return all(
        n == 1 or stride == before for n, stride, before in zip(reversed(box), reversed(apart), lengths, strict=False)
    )


def _strides(dims: Sequence[int]) -> list[int]:
    """Elements between neighbours along each dimension, the last one fastest."""
    return [*reversed([1, *accumulate(reversed(dims[1:]), mul)])] if dims else []


def _last(dims: Sequence[int], tiling: Sequence[int]) -> Sequence[int]:
    return dims[len(dims) - len(tiling) :]


def _text(dims: Sequence[int]) -> str:
    return " x ".join(map(str, dims)) or "1"


def _bytes(bits: int) -> str:
    return f"{bits / 8:g}"
