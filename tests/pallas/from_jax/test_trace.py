"""Finding Pallas calls: every way in which JAX nests them, and operations of index maps against JAX's own numbers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="finding Pallas calls needs the extra [jax]")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from layoutproof.core.errors import LayoutError  # noqa: E402
from layoutproof.core.numbers import INTS  # noqa: E402
from layoutproof.core.result import Verdict  # noqa: E402
from layoutproof.kernel.kernel import Block, Kernel, Unmodelled  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.judge import judge  # noqa: E402

pytestmark = pytest.mark.slow

X = jax.ShapeDtypeStruct((32, 128), jnp.float32)


def body(x: Any, o: Any) -> None:
    o[...] = x[...]


def copy(
    x: Any, index: Any = lambda i: (i, 0), out_index: Any = lambda i: (i, 0), grid: Any = (4,), **more: Any
) -> Any:
    return pl.pallas_call(
        body,
        grid=grid,
        in_specs=[pl.BlockSpec((8, 128), index)],
        out_specs=pl.BlockSpec((8, 128), out_index),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        **more,
    )(x)


def one(function: Any, *arguments: Any, **how: Any) -> Kernel:
    (found,) = kernels_of(function, arguments or (X,), **how)
    assert isinstance(found, Kernel), found
    return found


def wide(*results: Any) -> tuple[Any, ...]:
    return tuple(result.astype(jnp.int32) for result in results)


MAPS: dict[str, Any] = {
    "affine": lambda i, j: (2 * i + j - 1, 7 - j),
    "floor division": lambda i, j: (i // 3, (i * 5 + j) // 4),
    "remainder": lambda i, j: (i % 3, (j - 5) % 4),
    "negative floor division": lambda i, j: ((i - 4) // 3, (j - 5) // 2),
    "truncating": lambda i, j: (jax.lax.div(i - 4, 3), jax.lax.rem(j - 5, 2)),
    "minimum and maximum": lambda i, j: (jnp.minimum(i, j), jnp.maximum(i - 2, 0)),
    "clamp": lambda i, j: (jnp.clip(i - 2, 0, 2), jax.lax.clamp(1, j, 3)),
    "where": lambda i, j: (jnp.where(i > j, i, j + 1), jnp.where((i == 2) | (j != 1), 1, 0)),
    "select of conditions": lambda i, j: (jnp.where(jnp.logical_and(i >= 1, ~(j < 2)), i, 0), j),
    "shifts": lambda i, j: (i << 2, (j + 4) >> 1),
    "logical shift": lambda i, j: (jax.lax.shift_right_logical(i + 8, 1), j),
    "mask": lambda i, j: ((i + 5) & 3, j & 1),
    "masks with holes": lambda i, j: ((9 * i - 7) & -4, (7 * j + i) & 0b1011),
    "bits": lambda i, j: ((i ^ 5) | 2, ~j ^ -3),
    "narrow": lambda i, j: wide((i * 100).astype(jnp.int8) * jnp.int8(3), (j - 2).astype(jnp.uint8) + jnp.uint8(1)),
    "unsigned": lambda i, j: wide((i.astype(jnp.uint32) - 2) >> 30, (j.astype(jnp.uint16) - 3) // 4096),
    "constant that wraps": lambda i, j: (i + jnp.int32(65536) * jnp.int32(65537), j),
    "switch": lambda i, j: (jax.lax.switch(i - 1, [lambda: j, lambda: 7 - i, lambda: i * j]), j),
    "select of many": lambda i, j: (jax.lax.select_n(i % 3, i, j, i + j), j),
    "square": lambda i, j: (jnp.square(i - 2), j),
    "sign and abs": lambda i, j: (jnp.sign(i - 2), jnp.abs(j - 3)),
    "powers": lambda i, j: (i**2, i * j),
    "conversions": lambda i, j: (i.astype(jnp.int32) + (j > 1).astype(jnp.int32), jnp.int32(3)),
    "programs": lambda i, j: (i + pl.num_programs(0), pl.num_programs(1) - j),
    "cond": lambda i, j: (jax.lax.cond(i > 1, lambda: j, lambda: i), j),
    "jit": lambda i, j: (jax.jit(lambda a: a * 3 + 1)(i), j),
    "constants": lambda i, j: (0, 5),
}


@pytest.mark.parametrize("name", MAPS)
def test_operations_of_index_maps_give_jaxs_numbers(name: str) -> None:
    index = MAPS[name]
    kernel = one(lambda x: copy(x, index, lambda i, j: (0, 0), grid=(5, 4)))
    operand = kernel.inputs[0]
    assert operand.unmodelled == ""
    if "num_programs" in str(index.__code__.co_names):
        index = lambda i, j: (i + 5, 4 - j)  # noqa: E731
    for program in itertools.product(range(5), range(4)):
        names = dict(zip(kernel.grid_names, program, strict=True))
        ours = tuple(term.evaluate(names, INTS) for term in operand.index)
        assert ours == tuple(int(v) for v in index(*(jnp.int32(p) for p in program)))


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (lambda i: (jnp.sin(i.astype(jnp.float32)).astype(jnp.int32), 0), "float32, which is no integer"),
        (lambda i: (i ^ (i + 1), 0), "the bitwise operation xor"),
        (lambda i: (i & 0b10101010101, 0), "6 runs of ones"),
        (lambda i: (8 >> i, 0), "a shift by g0, which is no constant"),
        (lambda i: (100 // (i + 1), 0), "which is no positive constant"),
    ],
)
def test_what_is_beyond_the_model_is_named_and_unknown(index: Any, said: str) -> None:
    kernel = one(lambda x: copy(x, index))
    assert said in kernel.inputs[0].unmodelled
    verdicts = {f.subject: f.verdict for f in judge(kernel, names=["blocks_in_bounds"])}
    assert verdicts[kernel.inputs[0].name] is Verdict.UNKNOWN
    assert verdicts[kernel.outputs[0].name] is Verdict.PROVED


def scanned(x: Any) -> Any:
    return jax.lax.scan(lambda carry, _: (copy(carry), None), x, None, length=3)[0]


@jax.custom_vjp
def with_rule(x: Any) -> Any:
    return copy(x)


with_rule.defvjp(lambda x: (copy(x), None), lambda _, g: (copy(g),))

NESTED: dict[str, tuple[Any, int]] = {
    "jit": (jax.jit(copy), 1),
    "two": (lambda x: copy(copy(x)), 2),
    "scan": (scanned, 1),
    "while": (lambda x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, copy(c[1])), (0, x))[1], 1),
    "cond": (lambda x: jax.lax.cond(x[0, 0] > 0, copy, lambda y: copy(copy(y)), x), 3),
    "custom_vjp": (with_rule, 1),
    "grad": (jax.grad(lambda x: with_rule(x).sum()), 2),
    "remat": (jax.checkpoint(copy), 1),
}


@pytest.mark.parametrize("name", NESTED)
def test_calls_are_found_inside(name: str) -> None:
    function, many = NESTED[name]
    found = kernels_of(function, (X,))
    assert [type(k) for k in found] == [Kernel] * many
    assert all(k.source.startswith(__file__) for k in found)


def test_shard_map() -> None:
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("d")
    sharded = jax.shard_map(copy, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    assert len(kernels_of(sharded, (X,))) == 1


def test_vmap_adds_a_parallel_dimension() -> None:
    kernel = one(jax.vmap(copy), jax.ShapeDtypeStruct((3, 32, 128), jnp.float32))
    assert (kernel.grid, kernel.vmapped, kernel.parallel()) == ((3, 4), (0,), (0,))
    assert kernel.inputs[0].block[0] == Block("squeezed", 1)


def test_parameters_are_read() -> None:
    params = pltpu.CompilerParams(dimension_semantics=("parallel",), vmem_limit_bytes=2**24)
    kernel = one(lambda x: copy(x, compiler_params=params, input_output_aliases={0: 0}, name="copied"))
    assert (kernel.name, kernel.semantics, kernel.vmem_limit, kernel.aliases) == (
        "copied",
        ("parallel",),
        2**24,
        ((0, 0),),
    )
    assert (kernel.inputs[0].dtype, kernel.inputs[0].dims, kernel.inputs[0].name) == ("f32", (32, 128), "args[0]")
    assert kernel.inputs[0].source.startswith(__file__)


def prefetched(t: Any, x: Any) -> Any:
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, t: (t[i], 0), pipeline_mode=pl.Buffered(1))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.bfloat16), pltpu.SMEM((4,), jnp.int32)],
    )
    return pl.pallas_call(
        lambda t, x, o, a, b: body(x, o), grid_spec=spec, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
    )(t, x)


def test_scalar_prefetch_scratch_and_assumptions() -> None:
    table = jax.ShapeDtypeStruct((4,), jnp.int32)
    kernel = one(prefetched, table, X)
    assert str(kernel.inputs[0].index[0]) == "prefetch0[g0]"
    assert kernel.inputs[0].buffers == 1
    assert [(s.dims, s.dtype, s.memory) for s in kernel.scratch] == [((8, 128), "bf16", "vmem"), ((4,), "s32", "smem")]
    assumed = one(prefetched, table, X, assume=("0 <= prefetch0 < 4",))
    assert assumed.tables[0].assumptions() == ("0 <= prefetch0 < 4",)


def test_a_dynamic_grid_is_a_size_of_the_running_program() -> None:
    kernel = one(lambda n, x: copy(x, grid=(n,)), jax.ShapeDtypeStruct((), jnp.int32), X)
    assert (str(kernel.grid[0]), kernel.runtime) == ("grid0", ("grid0",))
    assert judge(kernel, names=["blocks_in_bounds"], where="grid0 <= 4")[0].verdict is Verdict.PROVED


def test_dropped_outputs_are_known() -> None:
    def two(x: Any) -> Any:
        spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        call = pl.pallas_call(
            lambda x, o, p: body(x, o), grid=(4,), in_specs=[spec], out_specs=[spec, spec], out_shape=[shape, shape]
        )
        return call(x)[0]

    assert [o.live for o in one(two).outputs] == [True, False]
    assert [o.live for o in one(jax.jit(two)).outputs] == [True, False]


def test_kernels_that_move_data_by_hand_are_not_analysable() -> None:
    def by_hand(x: Any) -> Any:
        spec = pl.BlockSpec(memory_space=pl.ANY)
        return pl.pallas_call(
            lambda x, o: pltpu.sync_copy(x, o),
            in_specs=[spec],
            out_specs=spec,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        )(x)

    kernel = one(by_hand)
    assert [operand.role for operand in kernel.manual_dma] == ["in", "out"]
    (found,) = judge(kernel, names=["analysable"])
    assert found.verdict is Verdict.UNKNOWN
    assert all(operand.name in found.reason for operand in kernel.operands)


def test_emit_pipeline_is_seen_from_inside() -> None:
    def outer(x: Any) -> Any:
        def kernel(x_hbm: Any, o_hbm: Any) -> None:
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
            pltpu.emit_pipeline(body, grid=(5,), in_specs=[spec], out_specs=[spec])(x_hbm, o_hbm)

        spec = pl.BlockSpec(memory_space=pl.ANY)
        return pl.pallas_call(
            kernel, in_specs=[spec], out_specs=spec, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
        )(x)

    found = kernels_of(outer, (X,))
    assert [k.pipeline for k in found if isinstance(k, Kernel)] == ["pallas_call", "emit_pipeline"]
    pipeline = found[1]
    assert isinstance(pipeline, Kernel)
    assert (pipeline.grid, pipeline.source.split(":")[0]) == ((5,), __file__)
    verdicts = {f.verdict for f in judge(pipeline, names=["blocks_in_bounds"])}
    assert verdicts == {Verdict.REFUTED}


def test_errors_of_user_code_name_the_place() -> None:
    def wrong(x: Any) -> Any:
        raise KeyError("nothing here")

    with pytest.raises(
        LayoutError, match=r"tracing the function raised KeyError: 'nothing here' \(.*test_trace.py:\d+\)"
    ):
        kernels_of(wrong, (X,))


def test_nothing_is_left_changed() -> None:
    before = (jax.devices, pl.pallas_call)
    kernels_of(copy, (X,))
    with pytest.raises(LayoutError):
        kernels_of(lambda x: 1 / 0, (X,))
    assert (jax.devices, pl.pallas_call) == before
    assert jax.devices()[0].device_kind == "cpu"


def test_a_call_without_block_mappings_is_told_apart() -> None:
    assert kernels_of(lambda x: x + 1, (X,)) == ()
    assert Unmodelled("a", "b", "c").reason == "c"


def test_an_alias_is_counted_without_the_dynamic_grid() -> None:
    number = jax.ShapeDtypeStruct((), jnp.int32)
    kernel = one(lambda n, x: copy(x, grid=(n,), input_output_aliases={0: 0}), number, X)
    assert kernel.aliases == ((0, 0),)


def test_a_table_that_shares_an_outputs_buffer_is_unknown() -> None:
    def aliased(t: Any, x: Any) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, t: (i, 0))],
            out_specs=pl.BlockSpec((4,), lambda i, t: (0,), memory_space=pltpu.SMEM),
        )
        shape = jax.ShapeDtypeStruct((4,), jnp.int32)
        return pl.pallas_call(lambda t, x, o: None, grid_spec=spec, out_shape=shape, input_output_aliases={0: 0})(t, x)

    kernel = one(aliased, jax.ShapeDtypeStruct((4,), jnp.int32), jax.ShapeDtypeStruct((8, 128), jnp.float32))
    assert [f.verdict for f in judge(kernel, names=["alias_hazard"])] == [Verdict.UNKNOWN]


def test_a_pipeline_elsewhere_does_not_make_a_kernel_analysable() -> None:
    def by_hand(x: Any) -> Any:
        spec = pl.BlockSpec(memory_space=pl.ANY)
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(lambda x, o: pltpu.sync_copy(x, o), in_specs=[spec], out_specs=spec, out_shape=shape)(x)

    def with_pipeline(x: Any) -> Any:
        def kernel(x_hbm: Any, o_hbm: Any) -> None:
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
            pltpu.emit_pipeline(body, grid=(4,), in_specs=[spec], out_specs=[spec])(x_hbm, o_hbm)

        spec = pl.BlockSpec(memory_space=pl.ANY)
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, in_specs=[spec], out_specs=spec, out_shape=shape)(x)

    first, second, _ = kernels_of(lambda x: with_pipeline(by_hand(x)), (X,))
    assert isinstance(first, Kernel)
    assert isinstance(second, Kernel)
    assert len(first.manual_dma) == 2
    assert second.manual_dma == ()


def test_a_users_function_named_floor_divide_is_not_taken_for_jaxs() -> None:
    @jax.jit
    def floor_divide(a: Any, b: Any) -> Any:
        return a + b

    kernel = one(lambda x: copy(x, lambda i: (floor_divide(i, 2), 0)))
    assert kernel.inputs[0].index[0].evaluate({"g0": 3}, INTS) == 5


def test_clamp_and_shifts_are_xlas() -> None:
    kernel = one(lambda x: copy(x, lambda i: (jax.lax.clamp(5, i, 3), jax.lax.shift_right_logical(i - 2, 0))))
    assert [t.evaluate({"g0": 1}, INTS) for t in kernel.inputs[0].index] == [3, -1]


def test_program_id_is_refused_in_index_maps_of_a_pipeline() -> None:
    """It is the step that runs, also where the map is asked for the block of another one."""

    def outer(x: Any) -> Any:
        def kernel(x_hbm: Any, o_hbm: Any) -> None:
            spec = pl.BlockSpec((8, 128), lambda i: (2 * pl.program_id(0) + i, 0))
            pltpu.emit_pipeline(body, grid=(2,), in_specs=[spec], out_specs=[spec])(x_hbm, o_hbm)

        spec = pl.BlockSpec(memory_space=pl.ANY)
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)

    pipeline = kernels_of(outer, (X,))[1]
    assert isinstance(pipeline, Kernel)
    assert "`pl.program_id`" in pipeline.inputs[0].unmodelled


def test_a_kernel_that_is_a_pipeline_has_the_name_that_jax_gives_it() -> None:
    """It had that of our own wrapper."""
    spec, whole = pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec(memory_space=pl.ANY)

    def outer(x: Any) -> Any:
        kernel = pltpu.emit_pipeline(body, grid=(5,), in_specs=[spec], out_specs=[spec])
        return pl.pallas_call(kernel, in_specs=[whole], out_specs=whole, out_shape=X)(x)

    assert [k.name for k in kernels_of(outer, (X,))] == ["pipeline", "emit_pipeline"]


def pipelined(index: Any, out_index: Any = None, number: Any = lambda: 2 * pl.program_id(0)) -> Kernel:
    """The pipeline whose index maps are made of a number that only the running kernel has."""

    def outer(x: Any) -> Any:
        def kernel(x_hbm: Any, o_hbm: Any) -> None:
            base = number()
            ins, outs = (pl.BlockSpec((8, 128), make(base)) for make in (index, out_index or index))
            pltpu.emit_pipeline(body, grid=(2,), in_specs=[ins], out_specs=[outs])(x_hbm, o_hbm)

        spec = pl.BlockSpec(memory_space=pl.ANY)
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)

    found = kernels_of(outer, (X,))[1]
    assert isinstance(found, Kernel)
    return found


def test_a_number_of_the_kernels_body_is_one_unknown() -> None:
    # it wraps in program 1, so that it is not followed to the ids of the grid
    kernel = pipelined(lambda base: lambda i: (base + i, 0), number=lambda: 4 * (2**29 * pl.program_id(0)))
    assert [str(o.index[0]) for o in kernel.operands] == ["captured0[0] + g0"] * 2
    assert [(t.name, t.dims, t.bits) for t in kernel.tables] == [("captured0", (1,), 32)]
    said = {f.question: f for f in judge(kernel, names=["blocks_in_bounds", "revisits", "table_reads"])}
    assert said["blocks_in_bounds"].verdict is Verdict.UNKNOWN
    assert "depends on what captured0 holds" in said["blocks_in_bounds"].reason
    # whatever the number is, the two blocks are different ones
    assert said["revisits"].verdict is Verdict.PROVED
    assert said["table_reads"].verdict is Verdict.PROVED


def test_a_number_of_the_ids_around_a_pipeline_is_followed_to_them() -> None:
    kernel = pipelined(lambda base: lambda i: (base + i, 0))
    assert [str(o.index[0]) for o in kernel.operands] == ["outer_program_id0[0] * 2 + g0"] * 2
    found = judge(kernel, names=["blocks_in_bounds"])
    assert found
    assert {f.verdict for f in found} == {Verdict.PROVED}


def test_a_number_known_when_tracing_is_that_number() -> None:
    three = np.int32(3)
    kernel = pipelined(lambda base: lambda i: (three + i, 0))
    assert [str(o.index[0]) for o in kernel.operands] == ["g0 + 3"] * 2
    assert kernel.tables == ()


def prefetched_as(dtype: Any, index: Any, dims: tuple[int, ...] = (4,)) -> Kernel:
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), index)],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
    )
    return one(
        lambda t, x: pl.pallas_call(
            lambda t, x, o: body(x, o), grid_spec=spec, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
        )(t, x),
        jax.ShapeDtypeStruct(dims, dtype),
        X,
    )


def test_narrow_tables_wrap_as_they_do() -> None:
    def verdict(dtype: Any, index: Any) -> Verdict:
        kernel = prefetched_as(dtype, index)
        assert kernel.inputs[0].unmodelled == ""
        found = {f.subject: f.verdict for f in judge(kernel, names=["blocks_in_bounds"])}
        return found[kernel.inputs[0].name]

    # 0 - 1 is 255 in eight bits, and 255 // 64 is block 3
    assert verdict(jnp.uint8, lambda i, t: ((t[i] - jnp.uint8(1)).astype(jnp.int32) // 64, 0)) is Verdict.PROVED
    assert verdict(jnp.uint8, lambda i, t: ((t[i].astype(jnp.int32) - 1) // 64, 0)) is not Verdict.PROVED
    assert verdict(jnp.int8, lambda i, t: (((t[i] + jnp.int8(127)) & 3).astype(jnp.int32), 0)) is Verdict.PROVED
    assert verdict(jnp.bool_, lambda i, t: (jnp.where(t[i] & (i > 0), 3, i), 0)) is Verdict.PROVED
    assert verdict(jnp.bool_, lambda i, t: (3 * t[i].astype(jnp.int32), 0)) is Verdict.PROVED


def test_a_single_prefetched_number_is_a_table_of_one_entry() -> None:
    kernel = prefetched_as(jnp.int32, lambda i, t: (t[...] * 0 + i, 0), ())
    assert [(t.name, t.dims) for t in kernel.tables] == [("prefetch0", (1,))]
    assert {f.verdict for f in judge(kernel, names=["table_reads", "blocks_in_bounds"])} == {Verdict.PROVED}
