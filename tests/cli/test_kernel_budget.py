"""A question that is too hard ends at its budget of steps, in a process of its own that may not take much."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.in_one_process import commands
from tests.said import stretch

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

CODE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def call(index):
    def body(table, x, o):
        o[...] = x[...]

    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, t: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), index),
    )
    return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32))


def through(table, x):
    def index(i, t):
        deep = t[(t[(t[(t[i] + i) % 8] * 3 + i) % 8] + t[(i * 5) % 8] * 2) % 8]
        return (t[i] * t[(i + 3) % 8] + jnp.where(deep < 3, t[(i * i) % 8] * i, deep * t[i]) ** 3) % 8, 0

    return call(index)(table, x)


def around(table, x):
    return call(lambda i, t: ((i * 5 + i // 4 * 8) % 8, 0))(table, x)
"""


@pytest.mark.parametrize(
    ("name", "code", "said"), [("through", 3, stretch("kernel.blocks_depend", table="prefetch0")), ("around", 0, "")]
)
def test_blocks_that_a_table_chooses_through_itself_end_as_unknown(
    tmp_path: Path, name: str, code: int, said: str
) -> None:
    """A grid of eight programs took minutes and 1.9 GB."""
    (tmp_path / "users.py").write_text(CODE)
    asked = ["kernels", f"users.py:{name}", "--arg", "s32[8]", "--arg", "f32[8,128]"]
    (done,), megabytes = commands(tmp_path, [*asked, "--property", "outputs_covered", "--assume", "0 <= prefetch0 < 8"])
    assert done.code == code, done.out + done.err
    assert said in done.out
    assert megabytes < 1_000
