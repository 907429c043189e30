"""Two checkouts of one program, compared by what they compute: kernels, meshes, trees, names, what is not modelled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from layoutproof.programs.compile import Asked
from layoutproof.programs.functions import Computed, compared
from tests.said import stretch, words

pytestmark = pytest.mark.slow

pytest.importorskip("jax")

BEFORE = """
import jax
import jax.numpy as jnp
from functools import partial
from jax.experimental import pallas as pl
from jax.sharding import PartitionSpec as P

def kernel(x, y):
    def body(x, y, o):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o[...] = jnp.zeros_like(o)
        o[...] += x[...] @ y[...]
    grid = (2, 2)
    specs = [pl.BlockSpec((8, 128), lambda i, k: (i, k)), pl.BlockSpec((128, 128), lambda i, k: (k, 0))]
    out = jax.ShapeDtypeStruct((16, 128), x.dtype)
    return pl.pallas_call(body, grid=grid, in_specs=specs, out_specs=pl.BlockSpec((8, 128), lambda i, k: (i, 0)),
                          out_shape=out)(x, y)

def summed(x):
    @partial(jax.shard_map, in_specs=P("d"), out_specs=P())
    def inner(x):
        return jax.lax.psum(x.sum(0), "d")
    return inner(x)

def named(p):
    return {"a": p["x"] + 1, "b": p["x"] * 2}

def given(x, n):
    return {"loss": x.sum() / n}

def ordered(x):
    return jnp.sort(x)

def backend(x):
    return jnp.sin(x) if jax.default_backend() == "tpu" else jnp.cos(x)

def late(x):
    import helper
    return helper.twice(x)
"""
RIGHT = (
    ("x[...] @ y[...]", "jnp.dot(x[...], y[...])"),
    ('jax.lax.psum(x.sum(0), "d")', 'jax.lax.psum(x, "d").sum(0)'),
    ('{"a": p["x"] + 1, "b": p["x"] * 2}', '{"a": 1 + p["x"], "b": p["x"] + p["x"]}'),
    ("x.sum() / n", "x.sum() * (1 / n)"),
    ("helper.twice(x)", "helper.double(x)"),
)
WRONG = (
    ("o[...] += x", "o[...] = x"),
    ('jax.lax.psum(x.sum(0), "d")', 'jax.lax.pmean(x.sum(0), "d")'),
    ('"b": p["x"] * 2', '"b": p["x"] * 3'),
    ("x.sum() / n", "x.mean() / n"),
    ('jnp.sin(x) if jax.default_backend() == "tpu"', 'jnp.sin(2 * x) if jax.default_backend() == "tpu"'),
    ("helper.twice(x)", "helper.double(x) * 2"),
)
OTHERWISE = (
    ('{"a": p["x"] + 1, "b": p["x"] * 2}', '{"c": p["x"] * 2, "d": p["x"] + 1}'),
    ('{"loss": x.sum() / n}', '{"loss": x.sum() / n, "norm": (x * x).sum()}'),
)
KERNEL = Asked("model:kernel", args=["f32[16,256]", "f32[256,128]"], target="v5e")
SUMMED = Asked("model:summed", args=["f32[8,4]"], mesh={"d": 4}, ins=["P('d')"])
NAMED = Asked("model:named", args=["{'x': 'f32[4,4]'}"])
GIVEN = Asked("model:given", args=["f32[8]", "8"])
ORDERED = Asked("model:ordered", args=["f32[8]"])
CPU, TPU = (Asked("model:backend", args=["f32[8]"], target=target) for target in ("cpu", "v5e"))
LATE = Asked("model:late", args=["f32[8]"])


def checkout(folder: Path, edits: tuple[tuple[str, str], ...], helper: str) -> Path:
    """A checkout with the model after some edits, and the module that it imports when it is traced."""
    text = BEFORE
    for old, new in edits:
        text = text.replace(old, new)
    (folder / ".git").mkdir(parents=True)
    (folder / "model.py").write_text(text)
    (folder / "helper.py").write_text(f"def {helper}(x):\n    return x + x\n")
    return folder


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """What comes of programs, in one checkout against the one before the edits."""
    old = checkout(tmp_path / "old", (), "twice")

    def answers(edits: tuple[tuple[str, str], ...], *programs: Asked, **changed: object) -> list[Computed]:
        new = checkout(
            tmp_path / f"new{len([*tmp_path.iterdir()])}", edits, "double" if edits in (RIGHT, WRONG) else "twice"
        )
        monkeypatch.chdir(new)
        pairs = [(replace(p, **changed), replace(p, folder=str(old))) for p in programs]  # type: ignore[arg-type]
        return list(compared(pairs, 300))

    return answers


def test_kernels_meshes_trees_and_modules_of_two_checkouts(asked) -> None:  # type: ignore[no-untyped-def]
    right = asked(RIGHT, KERNEL, NAMED, GIVEN, CPU, TPU, LATE)
    assert [(c.state, c.reason) for c in right] == [("same", "")] * 6
    assert [c.alike for c in right] == [True, False, False, True, True, True]
    wrong = asked(WRONG, KERNEL, NAMED, GIVEN, CPU, TPU, LATE)
    # what is only written for a TPU is no other function on a CPU
    assert [c.state for c in wrong] == ["other", "other", "other", "same", "other", "other"]
    assert [c.output for c in wrong if c.state == "other"] == [
        "result", "result['b']", "result['loss']", "result", "result",
    ]  # fmt: skip
    assert all(c.place.startswith("model.py:") for c in wrong if c.state == "other")


def test_a_mesh_without_devices(asked) -> None:  # type: ignore[no-untyped-def]
    (right,), (wrong,) = asked(RIGHT, SUMMED), asked(WRONG, SUMMED)
    assert (right.state, wrong.state) == ("same", "other"), (right, wrong)
    (other,) = asked(RIGHT, SUMMED, mesh={"d": 2})
    assert (other.state, other.reason) == (
        "unknown", "its mesh is {'d': 2}, and was {'d': 4}: it is another program's",
    )  # fmt: skip


def test_names_that_are_other_ones_and_what_is_not_modelled(asked) -> None:  # type: ignore[no-untyped-def]
    named, given, sort = asked(OTHERWISE, NAMED, GIVEN, ORDERED)
    assert named.state == "unknown"
    assert stretch("programs.other_names") in named.reason
    assert (given.state, given.reason) == (
        "unknown", words("programs.other_results", names="result['norm'] is new"),
    )  # fmt: skip
    assert sort.state == "unknown"
    assert "an order of data" in sort.reason
    (static,) = asked((), GIVEN, args=["f32[8]", "4"])
    assert static.state == "other"


def test_a_mistake_says_whose_it_is(asked) -> None:  # type: ignore[no-untyped-def]
    broken, fine = asked((("jnp.sort(x)", "jnp.sort(y)"),), ORDERED, NAMED)
    assert broken.error is not None
    assert "name 'y' is not defined (model.py:" in broken.error.problem
    assert "the base" not in broken.error.problem
    assert fine.state == "same"
