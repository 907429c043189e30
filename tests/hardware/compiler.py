"""The real TPU compiler as an oracle for tests: runs in a child process, because it can abort.

Nothing here is imported by the product. The child compiles ahead of time, needs no TPU and no network.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from layoutproof.compiler import libtpu
from layoutproof.compiler.child import Child, ask
from layoutproof.compiler.serve import Tell, serve
from layoutproof.hardware.tpu_chips import CHIPS

TOPOLOGIES: dict[str, tuple[str, dict[str, str]]] = {
    **{name: (chip.topology, {}) for name, chip in CHIPS.items()},
    "v4 megacore": (CHIPS["v4"].topology, {"chip_config_name": "megacore"}),
}
"""One chip of each generation: the compiler's own name for it, and further options."""

Query = tuple[str, str, Sequence[int]]
"""(generation, numpy or ml_dtypes name, shape)."""


class Sized(NamedTuple):
    """An array in a layout of the caller's choice; `tiles` outermost level first, `element_bits` 0 = natural."""

    generation: str
    dtype: str
    shape: Sequence[int]
    minor_to_major: Sequence[int]
    tiles: Sequence[Sequence[int]]
    element_bits: int = 0


class Windows(NamedTuple):
    """A Pallas kernel whose windows take `vmem` bytes of VMEM, a multiple of 16 KiB; `limit` in bytes, 0 = none."""

    generation: str
    vmem: int
    limit: int = 0


class OneOperand(NamedTuple):
    """A Pallas kernel that writes zeros into the blocks of one array.

    block: an int, None (squeezed) or ["E", size] per dimension.  index: a Python expression per dimension over g0, ..
    limit: bytes of VMEM it asks for, 0 = none; 1 makes the compiler say what it needs.  dtype: as JAX spells it.
    """

    generation: str
    dtype: str
    array: Sequence[int]
    block: Sequence[Any]
    grid: Sequence[int]
    index: Sequence[str]
    limit: int = 0


class Argument(NamedTuple):
    """A Pallas kernel of f32 with one more array, which its body leaves alone.

    role: "in" (a window as large as the array), "out", "any" (an input in HBM), "table" (scalar prefetch).  dtype: as
    NumPy or ml_dtypes spells it.
    """

    generation: str
    dtype: str
    role: str
    shape: Sequence[int]


class Scalar(NamedTuple):
    """A Pallas kernel with one more array, of no dimensions. memory: "vmem", "smem" or "any".  role: "in" or "out"."""

    generation: str
    dtype: str
    memory: str
    role: str
    grid: Sequence[int]


class CompilerDied(RuntimeError):
    """The compiler aborted its process, hung, or could not start; says at which query and what it printed."""


def available() -> str:
    """ "" if the compiler can be asked here, else the reason why not."""
    missing = libtpu.missing() or ("" if importlib.util.find_spec("ml_dtypes") else "no ml_dtypes")
    return f"the real TPU compiler is not installed: {missing}" if missing else ""


def ask_default_layouts(queries: Sequence[Query], timeout_s: float = 300) -> list[str | None]:
    """The layout the compiler picks for each array, as its own text; None where it refuses the array with an error.

    Raises `CompilerDied`, naming the query, when the compiler aborts or takes longer than `timeout_s` for all.
    """
    return _ask("default_layouts", queries, timeout_s)


def compile_sizes(queries: Sequence[Sized], timeout_s: float = 300) -> list[int | None]:
    """Bytes the compiler allots to each array in the layout given; None where it refuses. Some 50 ms each.

    The array is an unused argument of a compiled program, so no code for it is emitted that could fail.
    Raises `CompilerDied` as `ask_default_layouts` does.
    """
    return _ask("compile_sizes", queries, timeout_s)


def compile_windows(queries: Sequence[Windows], timeout_s: float = 300) -> list[bool]:
    """Whether the compiler accepts each kernel. Some 80 ms each. Raises as `ask_default_layouts` does."""
    return _ask("compile_windows", queries, timeout_s)


def compile_kernels(queries: Sequence[OneOperand], timeout_s: float = 300) -> list[str]:
    """ "" for each kernel that JAX lowers and the compiler accepts, else the error's text. Some 80 ms each."""
    return _ask("compile_kernels", queries, timeout_s)


def compile_arguments(queries: Sequence[Argument], timeout_s: float = 300) -> list[str]:
    """ "" for each kernel that JAX lowers and the compiler accepts, else the error's text. Some 50 ms each."""
    return _ask("compile_arguments", queries, timeout_s)


def compile_scalars(queries: Sequence[Scalar], timeout_s: float = 300) -> list[str]:
    """ "" for each kernel that JAX lowers and the compiler accepts, else the error's text. Some 50 ms each."""
    return _ask("compile_scalars", queries, timeout_s)


def _ask(job: str, queries: Sequence[Any], timeout_s: float) -> list[Any]:
    reason = available()
    if reason:
        raise CompilerDied(reason)
    child = Child(libtpu.WHAT, "tests.hardware.compiler", libtpu.ENVIRONMENT, timeout_s)
    found = []
    for answer in ask(child, [(job, query) for query in queries], lambda value: value):
        if answer.problem:
            raise CompilerDied(f"at query {len(found)}: {queries[len(found)]}\n{answer.problem}")
        found.append(answer.value)
    return found


@cache
def _device(generation: str) -> Any:
    topology, options = TOPOLOGIES[generation]
    return libtpu.device(topology, **options)


def _dtype(name: str) -> Any:
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name, name))


def _default_layouts(queries: Sequence[Any]) -> Iterator[str | None]:
    from jax.errors import JaxRuntimeError

    for generation, dtype, shape in queries:
        device = _device(generation)
        try:
            yield str(device.client.get_default_layout(_dtype(dtype), tuple(shape), device))
        except JaxRuntimeError:
            yield None


def _compile_sizes(queries: Sequence[Any]) -> Iterator[int | None]:
    import jax
    from jax.errors import JaxRuntimeError
    from jax.experimental.layout import Format, Layout

    jax.config.update("jax_enable_x64", True)
    program = jax.jit(lambda _: 0, keep_unused=True)
    for query in (Sized(*q) for q in queries):
        layout = Layout(
            major_to_minor=tuple(reversed(query.minor_to_major)),
            tiling=tuple(tuple(tile) for tile in query.tiles),
            sub_byte_element_size_in_bits=query.element_bits,
        )
        place = Format(layout, jax.sharding.SingleDeviceSharding(_device(query.generation)))
        array = jax.ShapeDtypeStruct(tuple(query.shape), _dtype(query.dtype), sharding=place)
        try:
            yield int(program.lower(array).compile().memory_analysis().argument_size_in_bytes)
        except JaxRuntimeError:
            yield None


def _compile_windows(queries: Sequence[Any]) -> Iterator[bool]:
    import jax
    from jax.errors import JaxRuntimeError
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def zero(_: Any, out: Any) -> None:
        out[...] = jax.numpy.zeros_like(out)

    for query in (Windows(*q) for q in queries):
        # one operand in, one out, both double-buffered: four blocks of float32
        rows = query.vmem // 4 // (4 * 128)
        block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
        place = jax.sharding.SingleDeviceSharding(_device(query.generation))
        array = jax.ShapeDtypeStruct((4 * rows, 128), "float32", sharding=place)
        params = pltpu.CompilerParams(vmem_limit_bytes=query.limit or None)
        kernel = pl.pallas_call(
            zero,
            grid=(4,),
            in_specs=[block],
            out_specs=block,
            out_shape=jax.ShapeDtypeStruct(array.shape, array.dtype),
            compiler_params=params,
        )
        try:
            jax.jit(kernel).lower(array).compile()
            yield True
        except JaxRuntimeError:
            yield False


def _compile_kernels(queries: Sequence[Any]) -> Iterator[str]:
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def dimension(size: Any) -> Any:
        return pl.Element(size[1]) if isinstance(size, list) else size

    def kernel_of(query: OneOperand) -> Any:
        names = {"jnp": jnp, "pl": pl, "select": jnp.where, "min": jnp.minimum}
        arguments = ", ".join(f"g{k}" for k in range(len(query.grid)))
        index_map = eval(f"lambda {arguments}: ({', '.join(query.index)},)", names)
        return pl.pallas_call(
            lambda out: out.__setitem__(..., jnp.zeros_like(out)),
            grid=tuple(query.grid),
            out_specs=pl.BlockSpec(tuple(dimension(size) for size in query.block), index_map),
            out_shape=jax.ShapeDtypeStruct(tuple(query.array), getattr(jnp, query.dtype)),
            compiler_params=pltpu.CompilerParams(vmem_limit_bytes=query.limit or None),
        )

    for query in (OneOperand(*q) for q in queries):
        device = _device(query.generation)
        place = jax.sharding.SingleDeviceSharding(device)
        try:
            call = kernel_of(query)
            with jax.sharding.use_abstract_mesh(jax.sharding.Mesh([device], ("d",)).abstract_mesh):
                jax.jit(call, out_shardings=place).lower().compile()
            yield ""
        except Exception as error:
            yield f"{type(error).__name__}: {error}"[:2000]


def _compile_arguments(queries: Sequence[Any]) -> Iterator[str]:
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel_of(role: str, array: Any) -> Any:
        plain = jax.ShapeDtypeStruct((8, 128), "float32")
        block = pl.BlockSpec((8, 128), lambda *_: (0, 0))
        memory = pl.BlockSpec(memory_space=pl.ANY if role == "any" else pltpu.VMEM)
        tables = int(role == "table")
        inputs, outputs, shapes = [block], [block], [plain]
        if role == "out":
            outputs, shapes = [block, memory], [plain, array]
        elif not tables:
            inputs = [memory, block]

        def copy(*refs: Any) -> None:
            x, o = refs[:2] if role == "out" else refs[1:]
            o[...] = x[...]

        grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=tables, grid=(1,), in_specs=inputs, out_specs=outputs)
        return pl.pallas_call(copy, grid_spec=grid, out_shape=shapes), [plain] if role == "out" else [array, plain]

    for query in (Argument(*q) for q in queries):
        wide = _dtype(query.dtype).itemsize > 4
        device = _device(query.generation)
        place = jax.sharding.SingleDeviceSharding(device)
        try:
            with (
                jax.enable_x64(wide),
                jax.sharding.use_abstract_mesh(jax.sharding.Mesh([device], ("d",)).abstract_mesh),
            ):
                call, arrays = kernel_of(query.role, jax.ShapeDtypeStruct(tuple(query.shape), _dtype(query.dtype)))
                placed = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in arrays]
                jax.jit(call, out_shardings=place).lower(*placed).compile()
            yield ""
        except Exception as error:
            yield f"{type(error).__name__}: {error}"[:2000]


def _compile_scalars(queries: Sequence[Any]) -> Iterator[str]:
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    for query in (Scalar(*q) for q in queries):
        device = _device(query.generation)
        place = jax.sharding.SingleDeviceSharding(device)
        plain = jax.ShapeDtypeStruct((8, 128), "float32", sharding=place)
        scalar = jax.ShapeDtypeStruct((), _dtype(query.dtype), sharding=place)
        space = {"vmem": pltpu.VMEM, "smem": pltpu.SMEM, "any": pl.ANY}[query.memory]
        one, block = pl.BlockSpec(memory_space=space), pl.BlockSpec((8, 128), lambda *_: (0, 0))
        read = query.role == "in"

        def body(*refs: Any, read: bool = read, stored: bool = query.memory == "smem") -> None:
            x, s, o = (refs[1], refs[0], refs[2]) if read else refs
            o[...] = x[...]
            if not read and stored:
                s[...] = jax.numpy.zeros((), s.dtype)

        call = pl.pallas_call(
            body,
            grid=tuple(query.grid),
            in_specs=[one, block] if read else [block],
            out_specs=[block] if read else [one, block],
            out_shape=[plain] if read else [scalar, plain],
        )
        try:
            with jax.sharding.use_abstract_mesh(jax.sharding.Mesh([device], ("d",)).abstract_mesh):
                jax.jit(call, out_shardings=place).lower(*([scalar, plain] if read else [plain])).compile()
            yield ""
        except Exception as error:
            yield f"{type(error).__name__}: {error}"[:2000]


JOBS: dict[str, Callable[[Sequence[Any]], Iterator[Any]]] = {
    "default_layouts": _default_layouts,
    "compile_sizes": _compile_sizes,
    "compile_windows": _compile_windows,
    "compile_kernels": _compile_kernels,
    "compile_arguments": _compile_arguments,
    "compile_scalars": _compile_scalars,
}


def answered(request: Any, tell: Tell) -> Any:
    """The answering side: of one query."""
    job, query = request
    return next(JOBS[job]([query]))


if __name__ == "__main__":
    serve(answered)
