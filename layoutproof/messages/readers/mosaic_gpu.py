"""What Pallas says of kernels for GPUs: copies, products, shared and tensor memory of Mosaic GPU; blocks of Triton.

Source: jax/experimental/mosaic/gpu (launch_context.py, wgmma.py, tcgen05.py, mma_utils.py), jax/_src/pallas/mosaic_gpu
and jax/_src/pallas/triton of jax 0.10.2; `tests/messages/test_gpu_says.py` asks the installed JAX, which lowers for
CUDA without a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from layoutproof.messages.explanation import Explanation
from layoutproof.messages.kinds import Kind, Told, explained, next_multiple, sizes_in
from layoutproof.messages.pasted import PastedLine

_ASK = (
    "layoutproof kernels --target mosaic_gpu asks this of all copies and products (tma_box, wgmma_tiles, tcgen05_tiles)"
)


def _shared(match: re.Match[str], block: str) -> Told:
    asked, there = int(match[1]), int(match[2])
    if asked <= there:
        return Told("", reason=f"{asked} bytes fit into {there}, so they do not explain it")
    return Told(
        f"scratch, buffers of the pipeline and barriers take {asked} bytes of shared memory, and a block has {there}: "
        f"{asked - there} too many",
        (
            "fewer steps in flight: max_concurrent_steps of the pipeline, or one slot less of the ring",
            "or smaller tiles: half the K tile halves the buffers of both operands",
            "layoutproof kernels --target mosaic_gpu lists what takes them (memory_budget)",
        ),
    )


def _last_dimension(match: re.Match[str], block: str) -> Told:
    unit, step, given = match[1], int(match[2]), int(match[3])
    if given % step == 0:
        return Told("", reason=f"{given} {unit} are a multiple of {step}, so they do not explain it")
    return Told(
        f"TMA copies whole 16 bytes along the last dimension, and this copy has {given} {unit} there "
        f"({given} % {step} = {given % step})",
        (f"a last dimension of {next_multiple(given, step)} {unit}: pad the array, or copy more and mask", _ASK),
    )


def _too_many(match: re.Match[str], block: str) -> Told:
    sizes = sizes_in(match[1])
    if sizes and max(sizes) <= 256:
        return Told("", reason=f"{match[1]} has no dimension above 256, so it does not explain it")
    large = [f"{n} in dimension {k}" for k, n in enumerate(sizes) if n > 256]
    return Told(
        f"TMA copies at most 256 elements along each dimension, and this copy has {', '.join(large) or match[1]}",
        ("several copies, of 256 each; or a tile of at most 256 there", _ASK),
    )


def _swizzle(match: re.Match[str], block: str) -> Told:
    swizzle, elements, given = int(match[1]), int(match[3]), int(match[4])
    if elements == given:
        return Told("", reason=f"both numbers of the message are {given}, so they do not explain it")
    return Told(
        f"with a swizzle of {swizzle} bytes tiles have {elements} elements in a row, and this copy has {given}",
        (
            f"TilingTransform((8, {elements})) before SwizzleTransform({swizzle}), so that each tile is that wide",
            f"or a swizzle of {given * swizzle // elements}"
            if given * swizzle // elements in (16, 32, 64, 128)
            else _ASK,
        ),
    )


def _trailing(match: re.Match[str], block: str) -> Told:
    swizzle, wanted, shape = int(match[1]), int(match[2]), sizes_in(match[3])
    if not shape or shape[-1] == wanted:
        return Told("", reason=f"{match[3]} ends in {wanted}, so it does not explain it")
    return Told(
        f"a swizzle of {swizzle} bytes goes over tiles of 8 x {wanted}, and these are {shape[-1]} wide: {match[3]}",
        (
            f"TilingTransform((8, {wanted})) before SwizzleTransform({swizzle})",
            *[f"or SwizzleTransform({swizzle * shape[-1] // wanted})"]
            * (swizzle * shape[-1] // wanted in (16, 32, 64, 128) and swizzle * shape[-1] % wanted == 0),
        ),
    )


def _strides(match: re.Match[str], block: str) -> Told:
    return Told(
        "TMA reads rows that begin 16 bytes apart or a multiple of it, and those of this array do not",
        ("pad the last dimension of the array in global memory to whole 16 bytes: 8 of bfloat16, 4 of float32", _ASK),
    )


def _tiling(match: re.Match[str], block: str) -> Told:
    return Told(
        f"a copy takes whole tiles of the transform, and its shape {match[1]} ends in no multiple of {match[2]}",
        ("a copy whose last dimensions are multiples of the tile; it may reach over the end of the array", _ASK),
    )


def _multiple(name: str) -> Callable[[re.Match[str], str], Told]:
    def told(match: re.Match[str], block: str) -> Told:
        step, given = int(match[1]), int(match[2])
        if given % step == 0:
            return Told("", reason=f"{given} is a multiple of {step}, so it does not explain it")
        return Told(
            f"{name} is {given} here, and the instruction takes multiples of {step}",
            (f"{name} = {next_multiple(given, step)}: a larger tile, or one that is padded", _ASK),
        )

    return told


def _columns(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the columns N of a product are a multiple of 8 and at most 256, and here they are {match[1]}",
        ("tiles of N that divide by 8, and two products for more than 256", _ASK),
    )


def _tiles(match: re.Match[str], block: str) -> Told:
    swizzle, bits, elements, one, other = (int(match[k]) for k in (1, 2, 3, 4, 5))
    return Told(
        f"an operand of a product lies in tiles of 8 x {elements}, which is the swizzle of {swizzle} bytes in elements "
        f"of {bits} bits; this one is {one} x {other}",
        (f"transforms=(TilingTransform((8, {elements})), SwizzleTransform({swizzle})) of its BlockSpec or SMEM", _ASK),
    )


def _types(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the accumulator of a product of {match[1]} is {match[2]}, and here it is {match[3]}",
        (f"plgpu.ACC((M, N), jnp.{'float32' if 'f32' in match[2] else 'int32'}), and a cast after the last product",),
    )


def _clusters(match: re.Match[str], block: str) -> Told:
    grid, cluster = int(match[2]), int(match[3])
    if cluster and grid % cluster == 0:
        return Told("", reason=f"{cluster} divides {grid}, so it does not explain it")
    return Told(
        f"clusters are cut out of the grid: {grid} programs along dimension {match[1]} are no multiple of {cluster}",
        (
            f"a grid of {next_multiple(grid, cluster or 1)} there, whose last programs do nothing; or a cluster that "
            f"divides {grid}",
        ),
    )


def _steps(match: re.Match[str], block: str) -> Told:
    steps, delay = int(match[1]), int(match[2])
    return Told(
        f"the pipeline has {steps} slots, and a body that releases one {delay} turns later needs more than {delay}",
        (f"max_concurrent_steps={delay + 1} or more, or delay_release={max(steps - 1, 0)} or less",),
    )


def _tensor_memory(match: re.Match[str], block: str) -> Told:
    return Told(
        f"tensor memory has {match[2]} columns for all accumulators and scales together, and {match[1]} are asked for",
        ("a smaller N of the accumulator: a column is 4 bytes of each of 128 lanes", "one accumulator fewer in flight"),
    )


def _powers(match: re.Match[str], block: str) -> Told:
    sizes = sizes_in(match[1])
    odd = [n for n in sizes if n & (n - 1)]
    if not odd:
        return Told("", reason=f"{match[1]} has sizes that are powers of 2 alone; their product may be too large")
    up = [1 << (n - 1).bit_length() for n in odd]
    return Told(
        f"Triton computes with arrays whose size is a power of 2, and {match[1]} has {', '.join(map(str, odd))}",
        (f"blocks of {', '.join(map(str, up))}, and a mask of loads and stores: plgpu.load(ref, mask=i < n, other=0)",),
    )


def _all_threads(match: re.Match[str], block: str) -> Told:
    step, given = int(match[1]), int(match[2])
    if step and given % step == 0:
        return Told("", reason=f"{given} is a multiple of {step}, so it does not explain it")
    return Told(
        f"a warpgroup loads and stores with {step} lanes, and {given} elements are no multiple of {step}",
        (f"blocks of {next_multiple(given, step or 1)} elements or more", "or the Triton backend of pallas_call"),
    )


def _rocm(match: re.Match[str], block: str) -> Told:
    return Told(
        f"Mosaic GPU is for NVIDIA's GPUs, and this one is AMD's ({match[1]})",
        ("compiler_params=plgpu.CompilerParams() of jax.experimental.pallas.triton: the Triton backend has AMD, too",),
    )


def _no_grid_of_data(match: re.Match[str], block: str) -> Told:
    return Told(
        "Mosaic GPU takes a grid of numbers that are known while it is traced; here one is an array",
        ("the largest grid, and pl.when(pl.program_id(0) < n) around the body, with n read from a reference",),
    )


_KINDS: tuple[Kind, ...] = (
    (
        re.compile(r"exceeds available shared memory: (?:smem_bytes=)?(\d{1,12}) > (?:max_smem_bytes=)?(\d{1,12})"),
        _shared,
    ),
    (
        re.compile(
            r"Async copies require the number of (bits|bytes) copied along the last dimension to be divisible by "
            r"(\d{1,6}), but got (\d{1,12})"
        ),
        _last_dimension,
    ),
    (
        re.compile(
            r"Async copies only support copying <=256 elements along each dimension, got ([\[(][\d, ]{0,200}[\])])"
        ),
        _too_many,
    ),
    (
        re.compile(
            r"Async copies with swizzle=(\d{1,4}) require the last dimension of the slice to be exactly (\d{1,6}) "
            r"bytes i\.e\. (\d{1,6}) elements, but got (\d{1,9}) elements"
        ),
        _swizzle,
    ),
    (
        re.compile(
            r"Swizzle (\d{1,4}) requires the trailing dimension to be of size (\d{1,6}), but got shape: "
            r"([\[(][\d, ]{0,200}[\])])"
        ),
        _trailing,
    ),
    (re.compile(r"async_copy requires all GMEM strides except the last one to be a multiple of 16 bytes"), _strides),
    (
        re.compile(
            r"Expected GMEM slice shape ([\[(][\d, ]{0,200}[\])]) suffix to be a multiple of tiling "
            r"([\[(][\d, ]{0,200}[\])])"
        ),
        _tiling,
    ),
    (re.compile(r"(?<!\w)M must be a multiple of (\d{1,6}),? (?:but )?got:? (\d{1,9})"), _multiple("M")),
    (re.compile(r"(?<!\w)K must be a multiple of (\d{1,6}),? (?:but )?got:? (\d{1,9})"), _multiple("K")),
    (re.compile(r"(?<!\w)N must be a multiple of 8 and <= 256, got:? (\d{1,9})"), _columns),
    (
        re.compile(
            r"Tiling should be \(8, swizzle_elems\) where swizzle_elems = 8 \* swizzle // bitwidth\(dtype\) \(= 8 \* "
            r"(\d{1,4}) // (\d{1,3}) = (\d{1,5})\), but got \((\d{1,6}), (\d{1,6})\)"
        ),
        _tiles,
    ),
    (
        re.compile(
            r"(?:WGMMA|MMA) with element type (\w{1,20}) only supports (?:accumulators of type )?"
            r"([\w ]{1,40}?)(?: accumulators)?, but got:? (\w{1,20})"
        ),
        _types,
    ),
    (
        re.compile(r"Grid dimension (\w{1,20}) must be divisible by cluster dimension: (\d{1,12}) % (\d{1,12}) != 0"),
        _clusters,
    ),
    (
        re.compile(
            r"max_concurrent_steps must be greater than (?:all )?delay_release(?: values)?, but "
            r"max_concurrent_steps=(\d{1,6})(?:,| and) delay_release(?:_levels)?=\D{0,3}(\d{1,6})"
        ),
        _steps,
    ),
    (
        re.compile(
            r"Total TMEM allocation exceeds memory limit\. Requested (\d{1,9}) columns which exceeds limit of (\d{1,9})"
        ),
        _tensor_memory,
    ),
    (
        re.compile(
            r"The Pallas Triton lowering currently requires that all operations have array arguments and results whose "
            r"size is a power of 2\. Encountered an array of shape (\([\d, ]{0,200}\))"
        ),
        _powers,
    ),
    (re.compile(r"must have a number of elements that is a multiple of (\d{1,6}) \(got (\d{1,9})\)"), _all_threads),
    (re.compile(r"invalid literal for int\(\) with base 10: '(gfx\w{1,10})'"), _rocm),
    (re.compile(r"[Dd]ynamic grid bounds (?:are )?not supported in the Mosaic GPU lowering"), _no_grid_of_data),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The errors of kernels for GPUs in a text, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("Pallas for GPUs", _KINDS, lines)
