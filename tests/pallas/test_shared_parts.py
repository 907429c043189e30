"""Kernels whose index maps and bodies use what they compute more than once: each part costs once."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

import layoutproof as lp
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Verdict

pytestmark = pytest.mark.slow

ROWS = jax.ShapeDtypeStruct((32, 128), jnp.float32)


def mixed(v: Any) -> Any:
    """Forty steps, each of which uses what it is given twice: 2**40 parts when they are walked as a tree."""
    for _ in range(40):
        v = (v * 3 + (v & 7)) & 255
    return v


def call(body: Any, index: Any) -> Any:
    return pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), index)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=ROWS,
    )


def in_the_body(rows: int) -> Any:
    def body(x: Any, out: Any) -> None:
        out[...] = jnp.zeros_like(out)
        at = mixed(pl.program_id(0)) % rows
        out[pl.ds(at, 1), :] = x[pl.ds(at, 1), :]

    return call(body, lambda i: (i, 0))


def in_the_index_map(blocks: int) -> Any:
    def body(x: Any, out: Any) -> None:
        out[...] = x[...]

    return call(body, lambda i: (mixed(i) % blocks, 0))


@pytest.mark.parametrize(
    ("right", "wrong", "question"),
    [
        (in_the_body(8), in_the_body(256), "body_in_bounds"),
        (in_the_index_map(4), in_the_index_map(256), "blocks_in_bounds"),
    ],
)
def test_forty_steps_are_judged(right: Any, wrong: Any, question: str) -> None:
    for function, verdict in ((right, Verdict.PROVED), (wrong, Verdict.REFUTED)):
        (one,) = lp.kernels(function, ROWS).calls
        found = [f for f in one.findings if f.question == question]
        assert min(f.verdict for f in found) is verdict
        assert all(len(f.reason) < 4_000 for f in one.findings)


def nested(steps: int) -> Any:
    """An index map of so many steps of a minimum of a maximum, each of which uses the one before twice."""

    def index(i: Any) -> Any:
        v = i
        for k in range(steps):
            v = jnp.minimum(v * 3 + k, jnp.maximum(v - 2, 7))
        return jnp.clip(v, 0, 3), 0

    def body(x: Any, out: Any) -> None:
        out[...] = x[...]

    return call(body, index)


def test_parts_of_one_index_map_are_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether any part leaves int32 is one question about all: twice the steps cost twice, not four times as much."""
    plain, asked = Numbers.minimum, []
    monkeypatch.setattr(Numbers, "minimum", lambda on, a, b: asked.append(1) or plain(on, a, b))
    counts = []
    for steps in (20, 40):
        asked.clear()
        (one,) = lp.kernels(nested(steps), ROWS).calls
        assert all(f.verdict is Verdict.PROVED for f in one.findings if f.question == "index_int32")
        counts.append(len(asked))
    assert 0 < counts[1] < 3 * counts[0]
