"""The Mosaic GPU kernels that are shipped in the jax wheel, as functions of shapes that are traced without a GPU.

The list was fixed before the reader was written: every public function of `jax.experimental.pallas.ops.gpu` whose file
is a `*_mgpu` one, with parameters of its own `main`, at smaller sizes. Some ask the device how many multiprocessors it
has, attention asks which CUDA it has, and a collective matmul how many GPUs there are: `pretended` answers for an H100
or a B200. What runs on several GPUs is traced in a `shard_map` over a mesh of devices that nobody has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

MULTIPROCESSORS = {"h100": 132, "b200": 148}
"""Of each chip, how many multiprocessors a kernel with one program for each has (NVIDIA's H100 SXM, B200)."""


@dataclass(frozen=True)
class MosaicGpuOp:
    """One kernel with parameters. build: makes (function, arguments). chip: for which generation it is written.

    devices: how many GPUs run it.  keeps: what its callers keep to, as assumptions on tables.
    """

    name: str
    build: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]
    chip: str
    devices: int = 1
    keeps: tuple[str, ...] = ()


@contextmanager
def pretended(chip: str, devices: int = 1, cores: int | None = None) -> Iterator[None]:
    """Answers what kernels ask of a GPU while they are traced: the number of its multiprocessors, and its CUDA.

    devices: how many of them there are.  cores: another number of multiprocessors.
    """
    import jax
    from jax.experimental.pallas.ops.gpu import attention_mgpu
    from jax.extend import backend

    device = SimpleNamespace(core_count=cores or MULTIPROCESSORS[chip], platform="gpu", device_kind=chip)
    with ExitStack() as stack:
        for place, name, answer in (
            (backend, "get_default_device", lambda: device),
            (jax, "devices", lambda *_: [device] * devices),
            (jax, "local_devices", lambda *_: [device] * devices),
            (jax, "device_count", lambda *_: devices),
            (jax, "local_device_count", lambda *_: devices),
            (attention_mgpu, "cuda_versions", SimpleNamespace(cuda_runtime_get_version=lambda: 12091)),
        ):
            stack.enter_context(mock.patch.object(place, name, answer))
        yield


def array(shape: tuple[int, ...], dtype: str = "float16") -> Any:
    import jax
    import jax.numpy as jnp

    return jax.ShapeDtypeStruct(shape, getattr(jnp, dtype))


def ops() -> Iterator[MosaicGpuOp]:
    """All of them."""
    yield from _hopper_matmuls()
    yield from _attention()
    yield from _ragged()
    yield from _blackwell()
    yield from _several_gpus()


def _hopper_matmuls() -> Iterator[MosaicGpuOp]:
    for cluster in (None, "M"):

        def build(cluster: str | None = cluster) -> Any:
            from jax.experimental.pallas.ops.gpu import hopper_matmul_mgpu as own

            dimension = None if cluster is None else own.MatmulDimension[cluster]
            config = own.TuningConfig(128, 128, 64, 4, cluster_dimension=dimension)
            return lambda a, b: own.matmul(a, b, None, config), (array((1024, 512)), array((512, 1024)))

        yield MosaicGpuOp(f"hopper_matmul_mgpu.matmul cluster {cluster}", build, "h100")

    def with_c() -> Any:
        from jax.experimental.pallas.ops.gpu import hopper_matmul_mgpu as own

        config = own.TuningConfig(128, 128, 64, 4)
        shapes = ((1024, 512), (512, 1024), (1024, 1024))
        return lambda a, b, c: own.matmul(a, b, c, config), tuple(map(array, shapes))

    def mixed() -> Any:
        from jax.experimental.pallas.ops.gpu import hopper_mixed_type_matmul_mgpu as own

        config = own.TuningConfig(64, 128, 64, 4)
        arrays = array((1024, 512), "int8"), array((512, 1024), "bfloat16")
        return lambda a, b: own.mixed_matmul_kernel(a, b, out_dtype=b.dtype, config=config), arrays

    yield MosaicGpuOp("hopper_matmul_mgpu.matmul plus c", with_c, "h100")
    yield MosaicGpuOp("hopper_mixed_type_matmul_mgpu.mixed_matmul_kernel", mixed, "h100")


def _attention() -> Iterator[MosaicGpuOp]:
    for name, causal in (("attention", False), ("attention", True), ("attention_with_pipeline_emitter", False)):

        def build(name: str = name, causal: bool = causal) -> Any:
            from jax.experimental.pallas.ops.gpu import attention_mgpu as own

            config = own.TuningConfig(64, 128, 2, causal=causal)
            arrays = (array((1, 1024, 4, 64)),) * 3
            return lambda q, k, v: getattr(own, name)(q, k, v, config), arrays

        yield MosaicGpuOp(f"attention_mgpu.{name}{' causal' * causal}", build, "h100")

    def gradient() -> Any:
        import jax
        from jax.experimental.pallas.ops.gpu import attention_mgpu as own

        config = own.TuningConfig(64, 128, 2, block_q_dkv=64, block_kv_dkv=128, block_q_dq=64, block_kv_dq=128)
        arrays = (array((1, 1024, 4, 64)),) * 3
        return jax.grad(lambda q, k, v: own.attention(q, k, v, config).astype("float32").sum(), (0, 1, 2)), arrays

    yield MosaicGpuOp("attention_mgpu.attention gradient", gradient, "h100")


def _ragged() -> Iterator[MosaicGpuOp]:
    def plain() -> Any:
        from jax.experimental.pallas.ops.gpu import ragged_dot_mgpu as own

        options = {"block_m": 64, "block_n": 64, "block_k": 64, "max_concurrent_steps": 2, "grid_block_n": 2}
        arrays = array((512, 256)), array((4, 256, 512)), array((4,), "int32")
        return lambda a, b, sizes: own.ragged_dot(a, b, group_sizes=sizes, **options), arrays

    def transposed() -> Any:
        from jax.experimental.pallas.ops.gpu import transposed_ragged_dot_mgpu as own

        options = {"block_m": 64, "block_n": 64, "block_k": 64, "max_concurrent_steps": 2, "grid_block_n": 2}
        arrays = array((512, 256)), array((512, 256)), array((4,), "int32")
        return lambda a, b, sizes: own.transposed_ragged_dot(a, b, group_sizes=sizes, **options), arrays

    yield MosaicGpuOp("ragged_dot_mgpu.ragged_dot", plain, "h100")
    # sizes of groups that are not negative, and where their blocks begin and end
    keeps = (
        *("0 <= args[0] <= 512", "0 <= args[3] <= 8", "0 <= args[4] <= 512"),
        *("64 * args[3][i] + args[4][i] <= 512", "args[4][i] % 64 == 0"),
    )
    yield MosaicGpuOp("transposed_ragged_dot_mgpu.transposed_ragged_dot", transposed, "h100", keeps=keeps)


def _blackwell() -> Iterator[MosaicGpuOp]:
    for collective in (False, True):

        def matmul(collective: bool = collective) -> Any:
            from jax.experimental.pallas.ops.gpu import blackwell_matmul_mgpu as own

            config = own.TuningConfig(128, 128, 64, 4, collective)
            arrays = array((1024, 512)), array((512, 1024))
            return lambda a, b: own.matmul_kernel(a, b, config), arrays

        def ragged(collective: bool = collective) -> Any:
            from jax.experimental.pallas.ops.gpu import blackwell_matmul_mgpu
            from jax.experimental.pallas.ops.gpu import blackwell_ragged_dot_mgpu as own

            minor = blackwell_matmul_mgpu.MatmulDimension.N
            config = own.TuningConfig(128, 128, 64, 4, collective, 1, minor)
            arrays = array((1024, 512)), array((4, 512, 1024)), array((4,), "int32")
            return lambda a, b, sizes: own.ragged_dot_kernel(a, b, sizes, config), arrays

        word = " collective" * collective
        yield MosaicGpuOp(f"blackwell_matmul_mgpu.matmul_kernel{word}", matmul, "b200")
        yield MosaicGpuOp(f"blackwell_ragged_dot_mgpu.ragged_dot_kernel{word}", ragged, "b200")


def on_devices(function: Callable[..., Any], devices: int, *given: Any, result: Any) -> Any:
    """A function on each of some GPUs of one axis, x. given: what each of its arguments is split by, as its result."""
    import jax
    from jax.sharding import AbstractMesh, AxisType

    mesh = AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,))
    return jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=result, check_vma=False)


def collective_matmul(devices: int, rows: int, inner: int, columns: int, own: Any = None) -> Any:
    """A collective matmul and its arguments, of so many rows and columns of each GPU. own: another module of it."""
    from jax.experimental.pallas.ops.gpu import collective_matmul_mgpu, hopper_matmul_mgpu
    from jax.sharding import PartitionSpec as P

    config = hopper_matmul_mgpu.TuningConfig(64, 64, 64, 4)
    multiply = (own or collective_matmul_mgpu).all_gather_lhs_matmul
    function = on_devices(
        lambda a, b: multiply(a, b, "x", config=config), devices, P("x"), P(None, "x"), result=P(None, "x")
    )
    return function, (array((rows * devices, inner)), array((inner, columns * devices)))


def _several_gpus() -> Iterator[MosaicGpuOp]:
    def gather() -> Any:
        from jax.experimental.pallas.ops.gpu import all_gather_mgpu as own
        from jax.sharding import PartitionSpec as P

        function = on_devices(lambda x: own.all_gather(x, axis_name="x"), 4, P("x"), result=P())
        return function, (array((4096, 1024), "float32"),)

    yield MosaicGpuOp("all_gather_mgpu.all_gather, 4 GPUs", gather, "h100", 4)
    for dimension in (0, None):

        def scatter(dimension: int | None = dimension) -> Any:
            from jax.experimental.pallas.ops.gpu import reduce_scatter_mgpu as own
            from jax.sharding import PartitionSpec as P

            function = on_devices(
                lambda x: own.reduce_scatter(x, axis_name="x", scatter_dimension=dimension),
                4,
                P(None, "x"),
                result=P(None, "x"),
            )
            return function, (array((4096, 1024), "float32"),)

        word = ", all of it on each" if dimension is None else ""
        yield MosaicGpuOp(f"reduce_scatter_mgpu.reduce_scatter{word}, 4 GPUs", scatter, "h100", 4)
    for devices in (2, 3):

        def multiply(devices: int = devices) -> Any:
            return collective_matmul(devices, 256, 256, 256)

        name = f"collective_matmul_mgpu.all_gather_lhs_matmul, {devices} GPUs"
        yield MosaicGpuOp(name, multiply, "h100", devices)
