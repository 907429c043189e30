"""Forms of public kernels of which first verdicts were wrong, as `layoutproof kernels` answers: right, and wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

from tests.cli.user_code import kernels_command

pytestmark = pytest.mark.slow

CODE = '''
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ANY = pl.BlockSpec(memory_space=pl.ANY)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def copy(*refs):
    refs[-1][...] = refs[-2][...]


def mapped(index, arguments, grid=8):
    """An input's block of 8 rows is `index`; of all arguments but the last it reads."""
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=len(arguments) - 1,
        grid=(grid,),
        in_specs=[pl.BlockSpec((8, 128), index)],
        out_specs=pl.BlockSpec((8, 128), lambda i, *t: (i, 0)),
    )
    shape = jax.ShapeDtypeStruct((8 * grid, 128), jnp.float32)
    return pl.pallas_call(copy, grid_spec=spec, out_shape=shape)(*arguments)


def whole(kernel, x, grid=(1,), scratch=()):
    """The kernel moves everything itself."""
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, in_specs=[ANY], out_specs=ANY, out_shape=shape, grid=grid, scratch_shapes=scratch)(x)


def unsigned(x, times=1):
    return mapped(lambda i: ((i * times).astype(jnp.uint32).astype(jnp.int32), 0), [x])


def hashed(x, blocks=8):
    """The products of a hash leave int32, as they may."""

    def index(i):
        return (i.astype(jnp.uint32) * jnp.uint32(2654435761) % jnp.uint32(blocks)).astype(jnp.int32), 0

    return mapped(index, [x])


def shifted(x, by=29):
    return mapped(lambda i: (lax.shift_right_logical(i - 8, by), 0), [x])


def branch(t, x, taken=4):
    return mapped(lambda i, t: (lax.cond(i < taken, lambda: t[i] * 0, lambda: 0), 0), [t, x])


def pipeline(x, rows=8, columns=128, semantics=None, parts=((0, -1),)):
    """Parts (start, rows) of an array, one pipeline each."""

    def body(x_ref, o_ref):
        for start, many in parts:
            given = [r if many < 0 else r.at[pl.ds(start, many)] for r in (x_ref, o_ref)]
            grid = (given[0].shape[0] // rows, given[0].shape[1] // columns)
            spec = pl.BlockSpec((rows, columns), lambda i, j: (i, j))
            pltpu.emit_pipeline(copy, grid=grid, in_specs=[spec], out_specs=[spec], dimension_semantics=semantics)(
                *given
            )

    return whole(body, x)


def parallel_last(x, call=False):
    if not call:
        return pipeline(x, semantics=(pltpu.ARBITRARY, pltpu.PARALLEL))
    spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    params = pltpu.CompilerParams(dimension_semantics=("arbitrary", "parallel"))
    grid = (x.shape[0] // 8, x.shape[1] // 128)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(
        copy, grid=grid, in_specs=[spec], out_specs=spec, out_shape=shape, compiler_params=params
    )(x)


def around(x, step=2):
    """A pipeline of two steps in each of two programs."""

    def body(x_ref, o_ref):
        program = pl.program_id(0)
        spec = pl.BlockSpec((8, 128), lambda i: (program * step + i, 0))
        pltpu.emit_pipeline(copy, grid=(2,), in_specs=[spec], out_specs=[spec])(x_ref, o_ref)

    return whole(body, x, (2,))


def cores(x, apart=16):
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)

    @pl.kernel(out_type=x, mesh=mesh, scratch_types=[pltpu.VMEM((16, 128), x.dtype), pltpu.SemaphoreType.DMA])
    def halves(x_ref, o_ref, buffer, arrived):
        core = lax.axis_index("core")
        pltpu.async_copy(x_ref.at[pl.ds(core * 16, 16)], buffer, arrived).wait()
        pltpu.async_copy(buffer, o_ref.at[pl.ds(core * apart, 16)], arrived).wait()

    return halves(x)


def rows(x, rows=32):
    spec = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(copy, grid=(x.shape[0] // rows,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)


def indirect(t, x):
    """Blocks of single rows that an array of indices names."""

    def body(t_ref, x_ref, o_ref):
        def inner(x_block, o_block):
            o_block[...] = x_block[...]

        spec = pl.BlockSpec((pl.Indirect(8), 128), lambda i: (t_ref[pl.ds(i * 8, 8)], 0))
        pltpu.emit_pipeline(inner, grid=(8,), in_specs=[spec], out_specs=[ROWS])(x_ref, o_ref)

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, in_specs=[ANY, ANY], out_specs=ANY, out_shape=shape)(t, x)

'''
X = "f32[64,128]"
WIDE = "f32[64,256]"
TABLE = f"s32[4], {X}"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    command = kernels_command(capsys, tmp_path, monkeypatch)
    (tmp_path / "forms_of_kernels.py").write_text(CODE)
    monkeypatch.delitem(sys.modules, "forms_of_kernels", raising=False)

    def ask(name: str, args: str, *more: str) -> tuple[int, set[str]]:
        """The exit code, and the questions that are refuted or unknown as errors."""
        code, out, _ = command(f"forms_of_kernels:{name}", "--args", args, *more, "--json")
        found = [f for call in json.loads(out)["kernels"] for f in call["findings"] if f["severity"] == "error"]
        return code, {f["question"] for f in found if f["verdict"] != "proved"}

    return ask


V5E = ("--target", "v5e")


@pytest.mark.parametrize(
    ("name", "args", "right", "wrong", "question"),
    [
        ("unsigned", X, (), ("times=3",), "blocks_in_bounds"),
        ("hashed", X, (), ("blocks=9",), "blocks_in_bounds"),
        ("shifted", X, (), ("by=28",), "blocks_in_bounds"),
        ("branch", TABLE, (), ("taken=5",), "table_reads"),
        ("parallel_last", WIDE, (), ("call=True",), "parallel_prefix"),
        ("pipeline", X, ("parts=((0, 32), (32, 32))",), ("parts=((0, 32), (0, 32))",), "outputs_stored"),
        ("pipeline", X, ("parts=((0, 64),)",), ("parts=((0, 32),)",), "outputs_stored"),
        ("around", "f32[32,128]", (), ("step=3",), "blocks_in_bounds"),
        ("cores", "f32[32,128]", (), ("apart=8",), "outputs_stored"),
        ("pipeline", "f32[2048,512]", ("rows=4", "columns=512", *V5E), ("rows=8", "columns=64", *V5E), "block_shape"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_the_right_form_is_proved_and_its_twin_refuted(
    name: str, args: str, right: tuple[str, ...], wrong: tuple[str, ...], question: str, run: Any
) -> None:
    """Of the whole call: exit code 0, no question left over; and 1, with the question that finds it."""
    assert run(name, args, *_options(right)) == (0, set())
    code, found = run(name, args, *_options(wrong))
    assert code == 1
    assert question in found


def _options(given: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for text in given:
        found += ["--kwarg", text] if "=" in text else [text]
    return found


def test_blocks_of_rows_that_an_array_names_are_unknown(run: Any) -> None:
    """No rule of blocks of one size is asked of them, and the call is not passed over."""
    code, found = run("indirect", f"s32[64], {X}")
    assert code == 3
    assert "blocks_in_bounds" in found


@pytest.mark.parametrize(
    ("args", "compiler", "code"),
    [("s4[64,8]", "0.0.42.1", 3), ("s4[64,256]", "0.0.42.1", 1), ("s4[64,8]", "0.0.52", 0)],
)
def test_narrow_numbers_in_columns_are_never_refused_by_guess(args: str, compiler: str, code: int, run: Any) -> None:
    """Of 8 columns they lie in columns by default on v5p, XLA copies them first, and some blocks of 32 rows pass there.

    In rows libtpu 0.0.42.1 refuses them all, and 0.0.52 takes both.
    """
    found = run("rows", args, "--target", "v5p", "--compiler", compiler, "--property", "block_shape")
    assert found == (code, {"block_shape"} if code else set())
