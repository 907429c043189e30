"""For the tests of commands: one command in a folder, and user code, a module of kernels, right and wrong ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutproof.cli import main as cli
from layoutproof.pallas.judge import about_body, in_order
from layoutproof.registry.catalogue import kernel_property

OF_SOME = (
    "collective_ids", "commit_smem", "debug_check", "device_barrier", "device_races", "device_waits",
    "gpu_instructions", "semaphores_drained", "stale_read", "subcore_barrier", "tcgen05_tiles", "tma_box",
    "warpgroup_registers", "wgmma_tiles",
)  # fmt: skip
"""What is asked of kernels alone that reach other devices or subcores, are of a GPU, or say what they check, or said
only where it is found."""
_ASKED = [name for name in in_order(body=True) if about_body(name) and name not in OF_SOME]
WITH_TARGET = f"of the body: {', '.join(_ASKED)}"
"""What a headline says of the bodies of calls that are proved, with a target."""
ABOUT_BODIES = f"of the body: {', '.join(name for name in _ASKED if not kernel_property(name).TARGET)}"
"""The same without one."""

KERNELS = '''
print("imported")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof


def body(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def copy(x, block=256):
    spec = pl.BlockSpec((block, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    grid = (x.shape[0] // block,)
    return pl.pallas_call(body, grid=grid, in_specs=[spec], out_specs=spec, out_shape=shape, interpret=True)(x)


def two(x):
    return copy(copy(x, 128), 64)


def mixed(x):
    """Wrong, then right."""
    return copy(copy(x, 256), 200)


def by_hand(x):
    spec = pl.BlockSpec(memory_space=pl.ANY)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(pltpu.sync_copy, in_specs=[spec], out_specs=spec, out_shape=shape)(x)


def barrier(x):
    """Memory that outlives the kernel is not modelled."""

    def body(x_hbm, o_hbm):
        pl.semaphore_signal(pl.get_global(pltpu.SemaphoreType.REGULAR(())), 1)
        pltpu.sync_copy(x_hbm, o_hbm)

    spec = pl.BlockSpec(memory_space=pl.ANY)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, in_specs=[spec], out_specs=spec, out_shape=shape)(x)


def gather(table, x):
    def kernel(table_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    specs = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
    )
    return pl.pallas_call(kernel, grid_spec=specs, out_shape=jax.ShapeDtypeStruct((64, 128), x.dtype))(table, x)


gather_below_8 = layoutproof.assume("0 <= prefetch0 < 8")(gather)


def pipelined(x, steps):
    def kernel(x_hbm, o_hbm):
        spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
        pltpu.emit_pipeline(body, grid=(steps,), in_specs=[spec], out_specs=[spec])(x_hbm, o_hbm)

    spec = pl.BlockSpec(memory_space=pl.ANY)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, in_specs=[spec], out_specs=spec, out_shape=shape)(x)


def scratch_outputs(x):
    """The second output is never used."""
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    one = pl.BlockSpec((8, 128), lambda i: (0, 0))
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((16, 128), x.dtype)]

    def kernel(x_ref, o_ref, s_ref):
        o_ref[...] = x_ref[...]
        s_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, grid=(x.shape[0] // 8,), in_specs=[spec], out_specs=[spec, one], out_shape=shapes,
                          interpret=True)(x)[0]


def whole():
    return copy(jnp.zeros((1000, 128)))


def plain(x, times: int = 2):
    return x * times


def raises(x):
    y = x + 1
    raise RuntimeError("no such luck")


three = 3
'''

_LINES = [line.strip() for line in KERNELS.splitlines()]
SPEC_LINE = 1 + _LINES.index("spec = pl.BlockSpec((block, 128), lambda i: (i, 0))")
"""Of the index map of `copy`."""
CALL_LINE = 1 + next(k for k, line in enumerate(_LINES) if line.startswith("return pl.pallas_call(body, grid=grid"))
"""Of the call in `copy`."""


def folder_with_kernels(folder: Path, name: str = "users_kernels") -> Path:
    """Writes the module there and gives its path."""
    path = folder / f"{name}.py"
    path.write_text(KERNELS)
    return path


def kernels_command(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """`layoutproof kernels` in a folder with user code: exit code, stdout and stderr for some arguments."""
    folder_with_kernels(folder)
    monkeypatch.delitem(sys.modules, "users_kernels", raising=False)
    return command_in("kernels", capsys, folder, monkeypatch)


def command_in(
    name: str, capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """One command in a folder: exit code, stdout and stderr for some arguments."""
    monkeypatch.chdir(folder)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = cli.run([name, *map(str, arguments)])
        out, err = capsys.readouterr()
        return code, out, err

    return run
