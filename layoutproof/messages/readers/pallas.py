"""What Pallas refuses before any compiler is asked: constants, grids, index maps, aliases, masks, types, semaphores.

Source: jax/_src/pallas/{core,pallas_call,primitives}.py and jax/_src/pallas/mosaic/{core,lowering,pipeline}.py of jax
0.10.2; `tests/messages/test_jax_says.py` asks the installed JAX for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layoutproof.messages.explanation import Explanation
from layoutproof.messages.kinds import Kind, Told, explained, sizes_in
from layoutproof.messages.pasted import PastedLine

_SHAPE = r"(\([\d, ]{0,200}\))"


def _block(text: str) -> tuple[int, ...]:
    """The shape of a block as JAX prints it, each dimension a number or with its kind.

    >>> _block("(Blocked(block_size=8), 128, Squeezed())")
    (8, 128, 1)
    """
    return tuple(int(number or 1) for number, _ in re.findall(r"(\d+)|(Squeezed|None)", text))


def _constants(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the body uses {match[2]} of the function around it; a kernel reads arrays through its references alone",
        (
            "pass it as one more argument of pallas_call, with a BlockSpec that has it whole",
            "or make it in the body: jnp.full, jax.lax.broadcasted_iota; a Python number may be closed over",
        ),
    )


def _index_map_constants(match: re.Match[str], block: str) -> Told:
    return Told(
        "an index map uses an array of the function around it; it may use grid indices, Python numbers and scalar "
        "prefetch operands",
        ("pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, ..): the array is then an argument of the index map",),
    )


def _returns(match: re.Match[str], block: str) -> Told:
    return Told(
        "the body returns something; a kernel gives its results by storing to its output references",
        ("o_ref[...] = value in place of return value; a lambda that stores returns None by itself",),
    )


def _index_map_rank(match: re.Match[str], block: str) -> Told:
    wanted = int(match[1])
    given = int(match[3])
    if wanted == given:
        return Told("", reason=f"both numbers of the message are {given}, so they do not explain it")
    return Told(
        f"an index map gives one block index for each dimension of its block: {wanted} for {_block(match[2])}, and "
        f"here {given}",
        (f"lambda of the grid's indices that returns {wanted} values; 0 for a dimension that is not cut",),
    )


def _rank(match: re.Match[str], block: str) -> Told:
    one, two = _block(match[1]), sizes_in(match[2])
    if len(one) == len(two):
        return Told("", reason="block and array of the message have as many dimensions, so they do not explain it")
    return Told(
        f"a block has as many dimensions as its array: {len(one)} in {one}, and {len(two)} in {match[2]}",
        ("None (pl.Squeezed()) for a dimension of which each program has one element; the body does not see it",),
    )


def _no_grid(match: re.Match[str], block: str) -> Told:
    grid = match.groupdict().get("grid")
    length = match.groupdict().get("length") if grid is None else str(len(sizes_in(grid))) if sizes_in(grid) else None
    if length is not None and 0 <= int(match["axis"]) < int(length):
        return Told("", reason="the axis of the message is one of the grid, so it does not explain it")
    has = f"the grid has {length} dimensions" if length is not None else "the pallas_call has no grid"
    axis = match.groupdict().get("axis")
    asks = f"pl.program_id({axis})" if axis is not None else "pl.program_id"
    return Told(
        f"{asks} asks for a dimension of the grid, and {has}",
        ("give grid=(n, ..), or take the number of a loop in the body",),
    )


def _alias_types(match: re.Match[str], block: str) -> Told:
    return Told(
        f"an output that takes over the memory of an input has its shape and type; here input {match[1]} and output "
        f"{match[2]} differ",
        (
            "out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype) of that input",
            "inputs count from 0 over all operands, scalar prefetch operands among them",
        ),
    )


def _alias_numbers(match: re.Match[str], block: str) -> Told:
    which, number, end = match[1], int(match[2]), int(match[3])
    if 0 <= number < end:
        return Told("", reason=f"{number} is one of {end} {which}s, so it does not explain it")
    return Told(
        f"input_output_aliases names {which} {number}, and there are {end}, counted from 0",
        ("inputs count over all operands, scalar prefetch operands among them; outputs over out_shape",),
    )


def _semantics(match: re.Match[str], block: str) -> Told:
    grid, given = match[1], match[2]
    if grid == given:
        return Told("", reason=f"both lengths of the message are {grid}, so they do not explain it")
    return Told(
        f"dimension_semantics has {given} entries for a grid of {grid} dimensions",
        ('one of "parallel" and "arbitrary" for each dimension of the grid, the first one first',),
    )


def _wide(match: re.Match[str], block: str) -> Told:
    return Told(
        "the cores of a TPU have no 64-bit numbers, and one of the kernel's arrays is 64 bits wide",
        (
            "x.astype(jnp.int32) or jnp.float32 before the call; jnp.arange(n, dtype=jnp.int32) in the body",
            "jax_enable_x64 makes Python numbers 64 bits wide: write jnp.float32(2) and jnp.int32(3) in the body",
        ),
    )


def _cast(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the lowering has no cast from {match[1]} to {match[2]}",
        (f"by way of 32 bits: x.astype(jnp.float32).astype(jnp.{match[2]}), or int32 between integers",),
    )


def _unsigned(match: re.Match[str], block: str) -> Told:
    return Told(
        f"a product takes integers as signed, and an operand is {match[1]}",
        ("cast to the signed type where its values fit, or to a wider one: x.astype(jnp.int32)",),
    )


def _without_shard_map(match: re.Match[str], block: str) -> Told:
    return Told(
        "the kernel copies to or signals another device, and nothing around it says which devices there are",
        ("call it inside of jax.shard_map over the mesh whose axes device_id names",),
    )


def _dma_semaphore(match: re.Match[str], block: str) -> Told:
    return Told(
        "a copy ends on a semaphore of type DMA, and it was given one that counts signals",
        ("pltpu.SemaphoreType.DMA for copies, SemaphoreType.REGULAR for semaphore_signal and semaphore_wait",),
    )


def _array_of_semaphores(match: re.Match[str], block: str) -> Told:
    return Told(
        f"one semaphore is signalled or waited for, and this is an array of them, {match[1]}",
        ("sem.at[k], with k the slot",),
    )


def _device_ids(match: re.Match[str], block: str) -> Told:
    given, axes = match[1], match[2]
    return Told(
        f"device_id has {given} places, and the mesh has {axes} axes",
        ("one place for each axis of the mesh, in its order; or a dict, device_id={'x': k}: the other axes stay",),
    )


def _mask(match: re.Match[str], block: str) -> Told:
    value, mask = match[1], match[2]
    return Told(
        f"a mask has the shape of what it is for: {value}, and here {mask}",
        ("jnp.broadcast_to(mask, x.shape), or a mask from jax.lax.broadcasted_iota of that shape",),
    )


def _in_hbm(match: re.Match[str], block: str) -> Told:
    return Told(
        "the body loads or stores an array that was left in HBM (memory_space=pl.ANY or HBM): only VMEM and SMEM are "
        "read by instructions",
        (
            "copy the part first: pltpu.sync_copy(x_hbm.at[pl.ds(i, n)], x_vmem), with x_vmem in scratch_shapes",
            "or a BlockSpec without memory_space: the pipeline copies each block",
        ),
    )


def _whole_in_hbm(match: re.Match[str], block: str) -> Told:
    return Told(
        "an operand that stays in HBM (memory_space=pl.ANY) is whole: no blocks are cut and no index map moves",
        (
            "pl.BlockSpec(memory_space=pl.ANY) without block_shape; the body copies what it needs (pltpu.async_copy)",
            "or leave memory_space out, so that the pipeline copies blocks",
        ),
    )


_KINDS: tuple[Kind, ...] = (
    (
        re.compile(
            r"The kernel function in the (?:pallas_call|core_map) (.{1,200}?) captures (?:non-scalar )?constants "
            r"\[(.{1,300}?)\](?=\.|$)"
        ),
        _constants,
    ),
    (re.compile(r"Index map function .{1,300}? must not capture constants"), _index_map_constants),
    (re.compile(r"The kernel function in the (?:pallas_call|core_map) .{1,200}? should return None"), _returns),
    (re.compile(r"The emit_pipeline body function must return None"), _returns),
    (
        re.compile(
            r"Index map function .{1,300}? must return (\d{1,4}) values to match block_shape=(\(.{0,200}?\))\. "
            r"Currently returning (\d{1,4}) values"
        ),
        _index_map_rank,
    ),
    (
        re.compile(
            rf"Block shape for .{{1,200}}? \(= (\(.{{0,300}}?\))\) must have the same number of dimensions as the "
            rf"array shape {_SHAPE}"
        ),
        _rank,
    ),
    (
        re.compile(
            r"user passed in program id with axis: (?P<axis>-?\d{1,4}), but grid only has length: (?P<length>\d{1,4})"
        ),
        _no_grid,
    ),
    (re.compile(r"program id: (?P<axis>-?\d{1,4}) was passed, but user did not provide a grid"), _no_grid),
    (re.compile(r"Axis (?P<axis>-?\d{1,4}) is out of bounds for grid (?P<grid>\([\d, ]{0,80}\))"), _no_grid),
    (re.compile(r"program id was requested but no grid was provided"), _no_grid),
    (
        re.compile(
            r"input_output_aliases contains the mapping '(\d{1,4}):(\d{1,4})' referring to input.{0,80} with "
            r"abstract value"
        ),
        _alias_types,
    ),
    (
        re.compile(
            r"input_output_aliases contains the mapping '\d{1,4}:\d{1,4}' with (input|output) index (\d{1,4}) outside "
            r"the range \[0, (\d{1,4})\)"
        ),
        _alias_numbers,
    ),
    (
        re.compile(
            r"Length of grid does not match length of dimension semantics\. len\(grid\)=(\d{1,4}), "
            r"len\(dimension_semantics\)=(\d{1,4})"
        ),
        _semantics,
    ),
    (re.compile(r"64-bit types are not supported"), _wide),
    (re.compile(r"Unsupported cast: (\w{1,20}) -> (\w{1,20})"), _cast),
    (re.compile(r"Unsigned integer dtype (\w{1,20}) is not supported for dot_general"), _unsigned),
    (re.compile(r"Cannot use communication in pallas_call without shard_map"), _without_shard_map),
    (re.compile(r"dma_wait requires a DMA semaphore, but got a regular semaphore"), _dma_semaphore),
    (
        re.compile(r"Cannot (?:signal|wait|read|\w{1,20}) on a non-\(\)-shaped semaphore: (\([\d, ]{0,80}\))"),
        _array_of_semaphores,
    ),
    (
        re.compile(
            r"Number of device ids must match the number of mesh axes, but got (\d{1,4}) ids for a (\d{1,4})D mesh"
        ),
        _device_ids,
    ),
    (
        re.compile(
            rf"Expected value and mask to have the same shape, but got value shape {_SHAPE} vs\. mask shape {_SHAPE}"
        ),
        _mask,
    ),
    (re.compile(r"Loads (?:and stores )?are only allowed on VMEM and SMEM references"), _in_hbm),
    (re.compile(r"currently supports in memory space ANY only blocks having the same block shape"), _whole_in_hbm),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The errors of kernels that Pallas finds itself, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("Pallas", _KINDS, lines)
