"""The kernels behind published block sizes, as their repositories have them, with the blocks that are given.

Each function here makes the real call of a real kernel, to be traced by name (`FILE.py:FUNCTION`). `source` is a folder
with vllm-project/tpu-inference at b8692ff01 and openxla/tokamax at 783ea9570 (`git archive`), each in a folder of its
name; nothing of their code is here. Tokamax needs Python 3.12, and the packages jaxtyping, immutabledict and absl-py.

What a kernel reads from tables of scalar prefetch is 0 to the compiler's estimate. Where a row says what those tables
hold (random groups; a causal mask), they are closed over as what they hold: the same body and the same index
maps, an entry being a sum of steps in its index (`Known`).
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class Known:
    """A table whose entries are known, to be read at an index that the running program has.

    table: whole numbers.
    """

    def __init__(self, table: Any) -> None:
        self.table = [int(one) for one in table]
        self.size, self.shape = len(self.table), (len(self.table),)

    def __getitem__(self, at: Any) -> Any:
        import jax.numpy as jnp

        if isinstance(at, int):
            return jnp.int32(self.table[at])
        # pieces in which the entries grow evenly
        first, slope = self.table[0], self.table[1] - self.table[0] if len(self.table) > 1 else 0
        found = first + slope * at
        for k in range(2, len(self.table)):
            change = self.table[k] - self.table[k - 1] - slope
            if change:
                slope += change
                found = found + jnp.where(at >= k, change * (at - k + 1), 0)
        return jnp.asarray(found, jnp.int32)


def known(tables: Any) -> Any:
    """The same tree with `Known` in place of arrays."""
    import jax

    return jax.tree.map(Known, tables)


def _closed(pallas_call: Callable[..., Any], kernel: Callable[..., Any], grid_spec: Any, kw: Mapping[str, Any]) -> Any:
    """The call of a kernel whose scalar prefetch is known: closed over, and no operand."""
    import dataclasses

    import jax
    from jax.experimental import pallas as pl

    many = grid_spec.num_scalar_prefetch

    def call(*args: Any) -> Any:
        tables = args[:many]

        def spec(one: Any) -> Any:
            if one.index_map is None:
                return one
            return dataclasses.replace(one, index_map=lambda *at: one.index_map(*at, *tables))

        def is_spec(one: Any) -> bool:
            return isinstance(one, pl.BlockSpec)

        return pallas_call(
            lambda *refs: kernel(*tables, *refs),
            grid=tuple(int(one) for one in grid_spec.grid),
            in_specs=jax.tree.map(spec, list(grid_spec.in_specs), is_leaf=is_spec),
            out_specs=jax.tree.map(spec, grid_spec.out_specs, is_leaf=is_spec),
            scratch_shapes=grid_spec.scratch_shapes,
            **kw,
        )(*args[many:])

    return call


@contextlib.contextmanager
def _instead(module: Any, **names: Any) -> Iterator[None]:
    """A module with other things under its names, as long as this lasts."""
    before = {name: getattr(module, name) for name in names}
    try:
        for name, value in names.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def _like(module: Any, **names: Any) -> Any:
    """All that a module has, some of it under other values."""
    found = types.ModuleType(module.__name__)
    found.__dict__.update(module.__dict__, **names)
    return found


def _module(source: str, folder: str, name: str, stubs: Mapping[str, Mapping[str, Any]]) -> Any:
    """A module of a repository, without the packages around it and what those import.

    stubs: modules that stand in for what the kernel does not need, with what is in them.
    """
    package = name.partition(".")[0]
    if package not in sys.modules:
        root = types.ModuleType(package)
        root.__path__ = [f"{source}/{folder}/{package}"]
        sys.modules[package] = root
        for stub, names in stubs.items():
            sys.modules[stub] = types.ModuleType(stub)
            sys.modules[stub].__dict__.update(names)
    return importlib.import_module(name)


def _tpu_inference(source: str, name: str) -> Any:
    quiet = types.SimpleNamespace(warning_once=lambda *words: None)
    log = {"tpu_inference.logger": {"init_logger": lambda name: quiet}}
    return _module(source, "tpu-inference", f"tpu_inference.kernels.{name}", log)


def _tokamax(source: str, name: str) -> Any:
    stubs: dict[str, dict[str, Any]] = {
        "qwix": {"QArray": type("QArray", (), {})},
        "tokamax._src.ops.ragged_dot.base": {"ActivationFunction": object},
    }
    return _module(source, "tokamax", f"tokamax._src.ops.{name}", stubs)


def quantised(x: Any, w: Any, scale: Any, *, source: str, blocks: tuple[int, int, int], kind: str) -> Any:
    """The quantised matmul of tpu-inference with these blocks (batch, out, in)."""
    import jax.numpy as jnp

    kernel = _tpu_inference(source, "quantized_matmul.kernel")
    value = _tpu_inference(source, "quantized_matmul.tuned_block_sizes").TunedValue(*blocks)
    quantize = kernel.util.quantize_array

    def wide(x: Any, largest: Any, kind: Any) -> Any:
        # the simulation aborts on products of bf16 with a constant: one scale a row is computed in f32 instead
        of_row = largest.astype(jnp.float32)
        ones, scales = quantize(jnp.ones_like(of_row), of_row, kind)
        del ones
        return (x * (1 / scales).astype(x.dtype)).astype(kind), scales

    with _instead(kernel, util=_like(kernel.util, quantize_array=wide)):
        return kernel.quantized_matmul_kernel.__wrapped__(x, w, scale, x_q_dtype=jnp.dtype(kind), tuned_value=value)


def flash(q: Any, k: Any, v: Any, *, source: str, causal: bool, residuals: bool, blocks: Mapping[str, Any]) -> Any:
    """Tokamax's splash attention of one sequence, heads first, with the configuration of a row."""
    import jax
    import numpy as np

    splash = _tokamax(source, "experimental.tpu.splash_attention.splash_attention_kernel")
    masks = _tokamax(source, "experimental.tpu.splash_attention.splash_attention_mask")
    info = _tokamax(source, "experimental.tpu.splash_attention.splash_attention_mask_info")
    config = splash.SplashConfig.get_default()
    layouts = {f"{name}_layout": splash.QKVLayout(blocks[f"{name}_layout"]) for name in "qkv"}
    import dataclasses

    config = dataclasses.replace(config, **{**blocks, **layouts})
    shape = (q.shape[1], k.shape[1])
    mask = (masks.CausalMask if causal else masks.FullMask)(shape)
    with jax.ensure_compile_time_eval():
        of_mask, function = info.process_mask(mask, (config.block_q, config.block_kv), downcast_smem_data=False)
        bounds = info.find_bounds(of_mask.active_rows)
        bounds = tuple(None if one is None else np.asarray(one) for one in bounds)
    tables = [of_mask.active_rows, of_mask.active_cols, of_mask.mask_next, *bounds, of_mask.block_mask]
    fixed = [None if one is None else Known(one) for one in tables]

    def call(kernel: Any, *, grid_spec: Any, **kw: Any) -> Any:
        closed = _closed(splash.pl.pallas_call.real, kernel, grid_spec, kw)
        return lambda *args: closed(*fixed, *args[len(fixed) :])

    call.real = splash.pl.pallas_call  # type: ignore[attr-defined]
    with _instead(splash, pl=_like(splash.pl, pallas_call=call)):
        return splash._splash_attention_forward(
            of_mask, q, k, v, None, None,
            mask_value=float(np.finfo(np.float32).min), is_mqa=False, config=config, save_residuals=residuals,
            mask_function=function, fwd_mask_sparsity=1.0,
        )  # fmt: skip


def ragged_dot(
    lhs: Any, rhs: Any, *, source: str, groups: int, form: str, blocks: tuple[int, int, int], out: str
) -> Any:
    """Tokamax's grouped matrix product with these tiles (m, k, n), of groups whose sizes are drawn as its tuner does.

    form: "forward", "transposed" (the right side is) or "summed" (over the rows of each group).
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    kernels = _tokamax(source, "ragged_dot.pallas_mosaic_tpu_kernel")
    rows = lhs.shape[0]
    drawn = np.random.default_rng(0).choice(groups, (rows,))
    sizes = np.bincount(drawn, minlength=groups).astype(np.int32)
    make = kernels.make_group_metadata

    def fixed(**given: Any) -> Any:
        with jax.ensure_compile_time_eval():
            tables, many = make(**{**given, "group_sizes": jnp.asarray(sizes), "start_group": jnp.int32(0)})
            return tuple(Known(np.asarray(one)[: int(many) + (k == 0)]) for k, one in enumerate(tables)), int(many)

    def call(kernel: Any, *, grid_spec: Any, input_buffer_count: Any = None, **kw: Any) -> Any:
        closed = _closed(kernels.pl.pallas_call, kernel, grid_spec, kw)
        return lambda tables, offset, *arrays: closed(tables, Known([0]), *arrays)

    common = _like(kernels.common, custom_buffered_pallas_call=call)
    with _instead(kernels, make_group_metadata=fixed, common=common):
        given = {"group_sizes": jnp.asarray(sizes), "precision": jax.lax.Precision.DEFAULT, "out_dtype": jnp.dtype(out)}
        if form == "summed":
            return kernels.tgmm.__wrapped__(lhs.T, rhs, **given, tiling=blocks)
        tiling = blocks if form == "forward" else (blocks[0], blocks[2], blocks[1])
        return kernels.gmm.__wrapped__(lhs, rhs, **given, tiling=tiling, transpose_rhs=form == "transposed")


def cross_entropy(x: Any, labels: Any, w: Any, *, source: str, blocks: tuple[int, int, int]) -> Any:
    """Tokamax's linear softmax cross entropy with these blocks (rows, hidden, vocabulary), on one core."""
    from jax.experimental import pallas as pl

    kernels = _tokamax(source, "linear_softmax_cross_entropy_loss.pallas_mosaic_tpu_kernel")

    def kernel(*, out_type: Any, mesh: Any, scratch_types: Any, compiler_params: Any, name: str) -> Any:
        anywhere = pl.BlockSpec(memory_space=pl.ANY)

        def made(body: Any) -> Any:
            return lambda *args: pl.pallas_call(
                body,
                out_shape=out_type,
                in_specs=[anywhere for _ in args],
                out_specs=[anywhere for _ in out_type],
                scratch_shapes=scratch_types,
                compiler_params=compiler_params,
                name=name,
            )(*args)

        return made

    real = kernels.pltpu.emit_pipeline
    pltpu = _like(
        kernels.pltpu,
        emit_pipeline=lambda body, *, core_axis_name, **kw: real(body, **kw),
        TensorCoreMesh=lambda **kw: None,
    )
    b, h, v = blocks
    whole = kernels.pltpu.get_tpu_info().vmem_capacity_bytes
    with _instead(kernels, pl=_like(kernels.pl, kernel=kernel), pltpu=pltpu, _get_vmem_limit_bytes=lambda: whole):
        return kernels.linear_softmax_cross_entropy_loss_forward_pallas_kernel(
            x, labels, w, reduction="sum", h_dim=x.shape[1], v_dim=w.shape[1], preferred_element_type="float32",
            b_block_size=b, h_block_size=h, v_block_size=v,
        )  # fmt: skip


def paged(q: Any, pages: Any, lengths: Any, tables: Any, starts: Any, many: Any, *, source: str, blocks: Any) -> Any:
    """Version 2 of tpu-inference's ragged paged attention with these blocks (pages, queries)."""
    kernel = _tpu_inference(source, "ragged_paged_attention.v2.kernel")
    given = {"num_kv_pages_per_block": blocks[0], "num_queries_per_block": blocks[1]}
    return kernel.ragged_paged_attention(q, pages, lengths, tables, starts, many, **given)


def paged_jax(
    q: Any, pages: Any, lengths: Any, tables: Any, starts: Any, many: Any, *, source: str, blocks: Any
) -> Any:
    """The ragged paged attention of the installed jax with these blocks (pages, queries)."""
    del source
    from jax.experimental.pallas.ops.tpu import ragged_paged_attention as kernel

    given = {"num_kv_pages_per_block": blocks[0], "num_queries_per_block": blocks[1]}
    return kernel.ragged_paged_attention(q, pages, lengths, tables, starts, many, **given)


def paged_v3(
    q: Any, k: Any, v: Any, pages: Any, lengths: Any, tables: Any, starts: Any, spread: Any, *, source: str, blocks: Any
) -> Any:
    """Version 3 of tpu-inference's ragged paged attention, each of its calls with these blocks (queries, keys)."""
    kernel = _tpu_inference(source, "ragged_paged_attention.v3.kernel")
    sizes = {f"{case}_block_sizes": (*blocks, *blocks) for case in "dpm"}
    return kernel.ragged_paged_attention(q, k, v, pages, lengths, tables, starts, spread, **sizes)
