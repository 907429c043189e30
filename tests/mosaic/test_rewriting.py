"""Rewrites of kernels tried: the verdict by the figures, and what a user sees."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layoutproof.compiler.child import Reply
from layoutproof.mosaic.rewriting import judged
from layoutproof.pallas.compiled import Compiled, Estimate, KernelFigures, TriedRewrite

pytestmark = pytest.mark.slow

NEEDS_TPU = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None or importlib.util.find_spec("jax") is None,
    reason="needs libtpu",
)
WORDS = {name: name for name in ("kind", "operation", "place", "before", "after", "what", "write")}
WAS = KernelFigures(1000, 0, 100, 50, 4096)


def said(moves: int = 100, around: int = 0, vmem: int = 4096, **more: Any) -> Reply[dict[str, Any]]:
    """A compiler's answer."""
    return Reply(
        {
            "refused": "", "moves": {"lines": [["a.py", 3, {"packs": moves}]]}, "around": around, "bundles": 50,
            "vmem": {"total": vmem}, "numbers": "", **more,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "cycles", "verdict"),
    [
        (said(), 1000, "same"),
        (said(), 900, "helped"),
        (said(moves=10), 1000, "helped"),
        (said(moves=10), 1001, "trade"),  # a longer schedule
        (said(moves=200), 900, "trade"),
        (said(moves=200), 1000, "worse"),
        (said(around=500), 600, "given"),  # what it saves is spent before the call
        (said(around=100), 600, "helped"),
        (said(around=500), 1000, "worse"),
        (said(around=500, moves=200), 600, "worse"),
        (said(), None, "failed"),
        (said(moves=10, numbers="results differ by up to 1"), 500, "failed"),
        (said(moves=10, numbers=None, uncompared="too large"), 500, "failed"),
        (said(refused="no such layout"), 500, "failed"),
    ],
)
def test_the_verdict(answer: Reply[dict[str, Any]], cycles: int | None, verdict: str) -> None:
    """Nothing is a fix whose numbers are others, or were not compared."""
    found = judged(WORDS, WAS, answer, cycles)
    assert found.verdict == verdict
    assert found.is_fix == (verdict in ("helped", "given"))


def test_only_what_helped_is_shown() -> None:
    """With both figures; of the others how many there are."""
    good = judged(WORDS, WAS, said(moves=10), 900)
    worse = judged(WORDS, WAS, said(moves=200), 1000)
    report = Compiled("k", "v6e", estimate=Estimate(1000), source="a.py:1")
    text = replace(report, rewrites=(replace(good, place="a.py:3"), worse)).text()
    assert "rewrite  line 3: operation before -> after" in text
    assert "cycles 1,000 -> 900 (-10 %), moves 100 -> 10" in text
    assert "1 other rewrite;" in text
    assert "rewrite" not in report.text()
    assert "rewrite  line" not in replace(report, rewrites=(worse,)).text()


KERNELS = """
import jax
from jax.experimental import pallas as pl

def merged(x):
    def body(x, o):
        wide = x[...].astype("float32")
        o[...] = wide.reshape(64, 4096) * 2.0
    return pl.pallas_call(body, grid=(4,), in_specs=[pl.BlockSpec((64, 8, 512), lambda i: (i, 0, 0))],
        out_specs=pl.BlockSpec((64, 4096), lambda i: (i, 0)), out_shape=jax.ShapeDtypeStruct((256, 4096), "float32"))(x)

def flat(x):
    def body(x, o):
        o[...] = x[...].astype("float32") * 2.0
    return pl.pallas_call(body, grid=(4,), in_specs=[pl.BlockSpec((64, 4096), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((64, 4096), lambda i: (i, 0)), out_shape=jax.ShapeDtypeStruct((256, 4096), "float32"))(x)
"""


@NEEDS_TPU
def test_a_kernel_as_a_user_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The form of tpu-inference#3618: the heads are put side by side inside of the kernel. Its twin has nothing."""
    import layoutproof as lp

    (tmp_path / "kernels.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    found: dict[str, tuple[TriedRewrite, ...]] = {}
    for name, args in (("merged", "bf16[256,8,512]"), ("flat", "bf16[256,4096]")):
        answer = lp.kernels(f"kernels.py:{name}", args, target="v6e", only="grid", compile=True, try_=True)
        (report,) = answer.calls[0].compiled
        assert report.accepted, report.problem or report.refused
        found[name] = report.rewrites
        json.dumps(answer.as_dict())
    assert found["flat"] == ()
    outside = next(each for each in found["merged"] if each.kind == "outside")
    assert outside.is_fix
    assert outside.place.endswith("kernels.py:8")
    assert outside.operation == "reshape"
    assert outside.now is not None
    assert outside.now.cycles is not None
    assert outside.was.cycles is not None
    assert outside.now.cycles < outside.was.cycles
    assert outside.now.moves < outside.was.moves
