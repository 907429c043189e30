"""Answers of `lp.same` that are kept, and what a difference at smaller sizes is worth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.compiler import cache
from layoutproof.core.result import Verdict
from layoutproof.questions import same as asking

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
pl = pytest.importorskip("jax.experimental.pallas")


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Asks, with a folder of answers; says how often values were compared for it."""
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "answers"))
    ran: list[int] = []
    really = asking.compare

    def counted(*args: Any, **options: Any) -> Any:
        ran.append(1)
        return really(*args, **options)

    monkeypatch.setattr(asking, "compare", counted)

    def ask(*args: Any, **options: Any) -> int:
        ran.clear()
        lp.same(*args, **options)
        return len(ran)

    return ask


def _ratio(by: Any, kernel: bool = False, plus: float = 1.0) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        return by * x / (plus + x)

    def body(x: Any, o: Any) -> None:
        o[...] = function(x[...])

    def called(x: Any) -> Any:
        spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
        return pl.pallas_call(body, grid=(x.shape[0] // 8,), in_specs=[spec], out_specs=spec, out_shape=x)(x)

    return called if kernel else function


def test_asked_twice_is_compared_once(compared: Callable[..., int]) -> None:
    """Neither a constant, nor an array that is closed over, nor an option may change; functions made anew may."""
    asked = _ratio(2.0, kernel=True), _ratio(2.0), "f32[16,128]"
    assert compared(*asked) == 1
    assert compared(_ratio(2.0, kernel=True), _ratio(2.0), "f32[16,128]") == 0
    first, again = lp.same(*asked), lp.same(*asked)
    assert (str(first), first.as_dict()) == (str(again), again.as_dict())
    assert first.premises == again.premises != ()
    for changed, options in (
        ((_ratio(3.0, kernel=True), _ratio(3.0), "f32[16,128]"), {}),
        ((*asked[:2], "f32[24,128]"), {}),
        (asked, {"points": 2}),
        (asked, {"relations": False}),
        (asked, {"gradient": True}),
    ):
        if options == {"gradient": True}:
            changed = _ratio(2.0), _ratio(2.0), "f32[16,128]"
        assert compared(*changed, **options) == 1, options
        assert compared(*changed, **options) == 0, options
    row = np.arange(128.0, dtype=np.float32)
    assert compared(_ratio(row), _ratio(row), "f32[16,128]") == 1
    assert compared(_ratio(row.copy()), _ratio(row), "f32[16,128]") == 0
    other = row.copy()
    other[77] = 3
    assert compared(_ratio(other), _ratio(other), "f32[16,128]") == 1


def test_given_tables_are_part_of_what_was_asked(compared: Callable[..., int]) -> None:
    """Another table is another question, and a refutation is shown anew each time."""
    table = np.array([2, 0, 1])

    def taken(x: Any, t: Any) -> Any:
        return x[t] / (1 + x[t])

    def plain(x: Any, t: Any) -> Any:
        return x[jnp.array([2, 0, 1])] / (1 + x[jnp.array([2, 0, 1])])

    assert compared(taken, plain, "f32[3,8]", table) == 1
    assert compared(taken, plain, "f32[3,8]", table) == 0
    for _ in range(2):
        assert compared(taken, plain, "f32[3,8]", table[::-1].copy()) == 1


def test_another_tool_asks_anew(compared: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions of this package, of JAX and of the solvers are in what `tool` says."""
    asked = _ratio(2.0), _ratio(2.0), "f32[16,128]"
    assert (compared(*asked), compared(*asked)) == (1, 0)
    monkeypatch.setattr(cache, "tool", lambda: "0" * 32)
    assert compared(*asked) == 1


def _scaled(by: float) -> Callable[..., Any]:
    """Every element times a number, in blocks of rows."""

    def body(x: Any, o: Any) -> None:
        o[...] = x[...] * by

    def kernel(x: Any) -> Any:
        spec = pl.BlockSpec((8, 256), lambda i: (i, 0))
        return pl.pallas_call(body, grid=(x.shape[0] // 8,), in_specs=[spec], out_specs=spec, out_shape=x)(x)

    return kernel


@pytest.mark.parametrize(
    ("rows", "by", "verdict", "because"),
    [
        (1024, 2 / 1024, "unknown", "float64 shows no difference at the given ones"),
        (1024, 1 / 1024**0.5, "refuted", ""),
        (2**20, 2 / 2**20, "unknown", "may be made of 1048576, which is given"),
        (2**20, 0.37, "refuted", ""),
    ],
)
def test_a_difference_at_smaller_sizes_of_a_number_that_the_code_states(
    rows: int, by: float, verdict: str, because: str
) -> None:
    """Right at the size that the number was written for is not refuted; wrong at every size is."""
    found = lp.same(_scaled(by), lambda x: x / (x.shape[0] // 2), f"f32[{rows},256]", reduced=True, relations=False)
    assert found.reduced
    assert found.verdict is Verdict(verdict), found.reason
    assert because in found.reason
