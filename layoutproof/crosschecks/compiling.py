"""The answering side of the TPU compiler: its results for arrays, reshapes and kernels, ahead of time.

It runs in a process of its own (`asking.py` asks), since the compiler can abort it. A request is a list, a job's name
and its arguments; the answer is plain data. A refusal is an answer too: {"refused": its words}. What came of a compiled
program is read from the compiler's own text, never from what was asked for.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from layoutproof.compiler import libtpu
from layoutproof.compiler.serve import Tell, serve
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.index_map import Memory
from layoutproof.core.numbers import Numbers
from layoutproof.core.term import Term
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.kernel.kernel import Block, Kernel, Operand

if TYPE_CHECKING:
    import numpy as np
    from jax import Array, Device, ShapeDtypeStruct
    from jax.experimental.pallas import BlockSpec
    from jax.experimental.pallas.tpu import CompilerParams
    from jax.ref import Ref
    from jax.stages import Compiled, Lowered

MOST_WORDS = 1500

_SHAPE = re.compile(r"\w+\[[^\]]*\](?:\{[^}]*\})?")
_HEADER = re.compile(r"entry_computation_layout=\{\((.*?)\)->(.*)\}(?:, |$)", re.MULTILINE)
_LINE = re.compile(r"^\s*(ROOT )?%(\S+) = (.*?) ([\w-]+)\((.*?)\)(?:, |$)")
_SPACE = re.compile(r"S\(\d+\)")
_SCOPED = re.compile(r'"used_scoped_memory_configs":(\[.*?\])')
VMEM_SPACE = "1"
"""The compiler's number of VMEM among memory spaces."""


def defaults(questions: Sequence[tuple[str, str, Sequence[int]]]) -> list[str | None]:
    """The layout that the compiler gives each (generation, element type, dims), as its own text; None = it refuses."""
    from jax.errors import JaxRuntimeError

    found: list[str | None] = []
    for generation, element, dims in questions:
        device = _device(generation)
        try:
            found.append(str(device.client.get_default_layout(_dtype(element), tuple(dims), device)))
        except (JaxRuntimeError, LayoutError):
            found.append(None)
    return found


Array = tuple[str, Sequence[int], Sequence[int], Sequence[Sequence[int]], int]
"""Element type, dims, minor_to_major, tiles or () for those that the compiler picks, bits of an element or 0."""


def returned(generation: str, arrays: Sequence[Array]) -> dict[str, object]:
    """A program that returns its parameters. {"in", "out": the shapes of its entry, "bytes": of all parameters}."""
    import jax

    jax.config.update("jax_enable_x64", True)
    given = [_array(generation, *array) for array in arrays]
    program = jax.jit(lambda *values: values, keep_unused=True)
    return _entry(_compiled(program.lower(*given)))


def unused(generation: str, arrays: Sequence[Array]) -> dict[str, object]:
    """The same of a program that leaves its parameters alone: it needs no code for layouts that have none.

    "out" is another array.
    """
    import jax

    jax.config.update("jax_enable_x64", True)

    given = [_array(generation, *array) for array in arrays]
    return _entry(_compiled(jax.jit(lambda *_: 0, keep_unused=True).lower(*given)))


def moved(generation: str, pairs: Sequence[tuple[str, Sequence[int], str, Sequence[int]]]) -> list[object]:
    """For each reshape or transpose of a parameter [its shape, the result's, "" or the operation that moves data].

    pairs: (element type, dims, "reshape" or "transpose", the new dims or the permutation) of each parameter.
    Parameters are given away, since one that is kept is copied.
    """
    import jax

    def program(*values: Array) -> tuple[Array, ...]:
        return tuple(
            value.reshape(tuple(what)) if how == "reshape" else value.transpose(tuple(what))
            for value, (_, _, how, what) in zip(values, pairs, strict=True)
        )

    jax.config.update("jax_enable_x64", True)
    given = [_array(generation, element, dims, None) for element, dims, _, _ in pairs]
    lowered = jax.jit(program, donate_argnums=tuple(range(len(pairs))), keep_unused=True).lower(*given)
    text = _compiled(lowered).as_text()
    inside, outside = _shapes(text)
    return [list(row) for row in zip(inside, outside, _ways(text, len(pairs)), strict=True)]


def kernel(generation: str, mapping: JsonObject, limit: int | None = None) -> JsonObject:
    """A Pallas call with these blocks, whose body writes zeros to its outputs, and counts in its scratch.

    {"vmem": bytes that it takes, or None where an array is in VMEM anyway and so needs no window}.
    limit: bytes of VMEM that it asks for, in place of what the mapping says.
    """
    import jax
    from jax.experimental.pallas import tpu as pltpu

    from layoutproof.layouts.kernel.layout import KernelLayout
    from layoutproof.pallas.from_jax.adapter import device_of
    from layoutproof.registry.read import read_layout

    layout = read_layout(dict(mapping))
    assert isinstance(layout, KernelLayout)
    made: Kernel = layout.kernel
    device = _device(generation)
    place = jax.sharding.SingleDeviceSharding(device)
    wide = any(_dtype(o.dtype).itemsize > 4 for o in made.operands)
    with jax.enable_x64(wide), device_of(generation):
        call = _call(made, pltpu.CompilerParams(**_params(made, limit)))
        given = [jax.ShapeDtypeStruct(t.dims, _dtype(t.dtype or f"s{t.bits}"), sharding=place) for t in made.tables]
        given += [jax.ShapeDtypeStruct(o.dims, _dtype(o.dtype), sharding=place) for o in made.inputs]
        text = _compiled(jax.jit(call, out_shardings=place).lower(*given)).as_text()
    known = {found[2]: found for line in text.splitlines() if (found := _LINE.match(line))}
    line = next(line for line in text.splitlines() if 'custom_call_target="tpu_custom_call"' in line)
    found = _LINE.match(line)
    used = _SCOPED.search(line)
    if found is None or used is None:
        return {"vmem": None}
    arrays = [found[3], *(known[name][3] for name in _names(found[5]) if name in known)]
    vmem = sum(int(c["size"]) for c in json.loads(used[1]) if c["memory_space"] == VMEM_SPACE)
    return {"vmem": None if any("S(1)" in array for array in arrays) else vmem}


def kind(generation: str) -> str:
    """The compiler's name of a generation's device."""
    return str(_device(generation).device_kind)


def devices(generation: str) -> float:
    """The devices of each chip of a described topology of 2x2 chips."""
    from jax.experimental.topologies import get_topology_desc

    name = libtpu.topology_name(CHIPS[generation].topology, "2x2")
    described = get_topology_desc(platform="tpu", topology_name=name)
    return len(described.devices) / 4


def published(generation: str) -> dict[str, int]:
    """The table of chips of the installed JAX."""
    from jax._src.pallas.mosaic import tpu_info

    chip, info = CHIPS[generation], tpu_info
    said: Any = info._get_tpu_info_impl(info.chip_version_from_device_kind(chip.kind), chip.cores)
    return {
        "cores": int(said.num_cores), "smem": int(said.smem_capacity_bytes),
        "bandwidth": int(said.mem_bw_bytes_per_second), "bf16": int(said.bf16_ops_per_second),
        "int8": int(said.int8_ops_per_second), "fp8": int(said.fp8_ops_per_second),
    }  # fmt: skip


def _compiled(lowered: Lowered) -> Compiled:
    start = time.perf_counter()
    try:
        return lowered.compile()
    finally:
        _SPENT[0] += time.perf_counter() - start


_SPENT = [0.0]
"""Seconds that the compiler itself took for the request that is being answered."""


def _entry(compiled: Compiled) -> dict[str, object]:
    inside, outside = _shapes(compiled.as_text())
    return {"in": inside, "out": outside, "bytes": int(compiled.memory_analysis().argument_size_in_bytes)}


def _shapes(text: str) -> tuple[list[str], list[str]]:
    header = _HEADER.search(text[: text.find("\n\n")])
    if header is None:
        raise ValueError(f"a program without an entry layout: {text[:200]}")
    inside, outside = (_SHAPE.findall(part) for part in header.groups())
    return inside, outside


def _ways(text: str, count: int) -> list[str]:
    """For each result "" where it is a parameter under another name, else the operation that makes it."""
    lines = [found for line in text[text.find("\nENTRY ") :].splitlines() if (found := _LINE.match(line))]
    known = {found[2]: found for found in lines}
    root = next(found for found in lines if found[1])
    results = _names(root[5]) if count > 1 or root[4] == "tuple" else [root[2]]
    return [_way(known, name) for name in results]


def _way(known: Mapping[str, re.Match[str]], name: str) -> str:
    while name in known:
        found = known[name]
        operation, operands = found[4], _names(found[5])
        if operation == "parameter":
            return ""
        # from one memory to the other in one layout moves nothing to another place in it
        same = operation == "copy" and _plain(known[operands[0]][3]) == _plain(found[3])
        if operation not in ("bitcast", "copy-start", "copy-done") and not same:
            return str(operation)
        name = operands[0]
    return f"no operation named {name}"


def _plain(shape: str) -> str:
    return _SPACE.sub("", shape).replace(":}", "}")


def _names(operands: str) -> list[str]:
    return re.findall(r"%([\w.-]+)", operands)


@cache
def _device(generation: str) -> Device:
    return libtpu.device(CHIPS[generation].topology)


def _dtype(element: str) -> np.dtype[np.generic]:
    from layoutproof.core.element_types import ELEMENT_BITS
    from layoutproof.questions.images import array_dtype

    bits = ELEMENT_BITS[element]
    return array_dtype(element, Memory(bits, bits, 1))


def _array(
    generation: str,
    element: str,
    dims: Sequence[int],
    order: Sequence[int] | None,
    tiles: Sequence[Sequence[int]] = (),
    bits: int = 0,
) -> ShapeDtypeStruct:
    import jax
    from jax.experimental.layout import Format, Layout

    place: Any = jax.sharding.SingleDeviceSharding(_device(generation))
    if order is not None:
        layout = Layout(
            major_to_minor=tuple(reversed(order)),
            tiling=tuple(map(tuple, tiles)),
            sub_byte_element_size_in_bits=bits,
        )
        place = Format(layout, place)
    return jax.ShapeDtypeStruct(tuple(dims), _dtype(element), sharding=place)


def _params(made: Kernel, limit: int | None) -> JsonObject:
    asked = limit if limit is not None else made.vmem_limit
    return {"vmem_limit_bytes": asked, "dimension_semantics": made.semantics or None}


def _call(made: Kernel, params: CompilerParams) -> Callable[..., Array]:
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    outputs = len(made.tables) + len(made.inputs)
    scratch = len(made.tables) + len(made.operands)

    def body(*refs: Ref) -> None:
        for ref, operand in zip(refs[outputs:scratch], made.outputs, strict=True):
            if operand.windowed:
                ref[...] = jnp.zeros(ref.shape, ref.dtype)
        for ref, kept in zip(refs[scratch:], made.scratch, strict=True):
            if kept.memory == "vmem":
                # scratch of which nothing is read is dropped
                ref[...] = ref[...] + jnp.ones(ref.shape, ref.dtype)

    spaces = {"vmem": pltpu.VMEM, "smem": pltpu.SMEM, "any": pl.ANY, "hbm": pltpu.HBM}
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=len(made.tables),
        grid=made.grid,
        in_specs=[_spec(made, o, spaces) for o in made.inputs],
        out_specs=[_spec(made, o, spaces) for o in made.outputs],
        scratch_shapes=[spaces[s.memory](s.dims, _dtype(s.dtype)) for s in made.scratch],
    )
    shapes = [jax.ShapeDtypeStruct(o.dims, _dtype(o.dtype)) for o in made.outputs]
    call: Callable[..., Array] = pl.pallas_call(
        body, grid_spec=grid, out_shape=shapes, compiler_params=params, name="k"
    )
    return call


def _spec(made: Kernel, operand: Operand, spaces: Mapping[str, object]) -> BlockSpec:
    from jax.experimental import pallas as pl

    rank = len(made.grid)

    def index(*at: Array) -> tuple[Array, ...]:
        names = dict(zip(made.grid_names, at[:rank], strict=True))
        held = dict(zip((t.name for t in made.tables), at[rank:], strict=True))
        return tuple(_evaluate(term, names, held) for term in operand.index)

    extra: dict[str, Any] = {"memory_space": spaces[operand.memory]}
    if not operand.windowed:
        return pl.BlockSpec(**extra)
    if operand.buffers is not None:
        extra["pipeline_mode"] = pl.Buffered(operand.buffers)
    return pl.BlockSpec(tuple(map(block_dimension, operand.block)), index, **extra)


def block_dimension(block: Block) -> object:
    """One dimension of a block as Pallas takes it."""
    from jax.experimental import pallas as pl

    if block.kind == "squeezed":
        return None
    return pl.Element(block.size, (block.low, block.high)) if block.kind == "element" else block.size


class TracedNumbers(Numbers):
    """Numbers that JAX is tracing."""

    def select(self, condition: Array, if_true: Array, if_false: Array) -> Array:
        import jax.numpy as jnp

        return jnp.where(condition, if_true, if_false)

    def logical_and(self, left: Array, right: Array) -> Array:
        import jax.numpy as jnp

        return jnp.logical_and(left, right)

    def logical_or(self, left: Array, right: Array) -> Array:
        import jax.numpy as jnp

        return jnp.logical_or(left, right)

    def logical_not(self, condition: Array) -> Array:
        import jax.numpy as jnp

        return jnp.logical_not(condition)

    def minimum(self, left: Array, right: Array) -> Array:
        import jax.numpy as jnp

        return jnp.minimum(left, right)

    def maximum(self, left: Array, right: Array) -> Array:
        import jax.numpy as jnp

        return jnp.maximum(left, right)


def _evaluate(term: Term, names: Mapping[str, Array], tables: Mapping[str, Array]) -> Array:
    if term.op == "read":
        return tables[term.args[0].args[0]][tuple(_evaluate(a, names, tables) for a in term.args[1:])]
    if term.op == "multiple_of":
        from jax.experimental import pallas as pl

        return pl.multiple_of(_evaluate(term.args[0], names, tables), term.args[1].args[0])
    if term.op in ("int", "name"):
        return term.evaluate(names, TracedNumbers())
    parts = {f"part{k}": _evaluate(a, names, tables) for k, a in enumerate(term.args)}
    return Term(term.op, *(Term("name", name) for name in parts)).evaluate(parts, TracedNumbers())


JOBS: Mapping[str, Callable[..., Any]] = {
    "defaults": defaults,
    "returned": returned,
    "unused": unused,
    "moved": moved,
    "kernel": kernel,
    "kind": kind,
    "devices": devices,
    "published": published,
}


def answered(request: Any, tell: Tell) -> Any:
    """The answering side: of one request. {"said": the answer} or {"refused": words}, and "seconds" of the compiler."""
    job, *arguments = request
    _SPENT[0] = 0.0
    found: dict[str, Any]
    try:
        found = {"said": JOBS[job](*arguments)}
    except LayoutError:
        raise
    except Exception as error:
        found = {"refused": shorten(f"{type(error).__name__}: {error}", MOST_WORDS)}
    return {**found, "seconds": _SPENT[0]}


if __name__ == "__main__":
    serve(answered)
