"""Judgements that are kept: who edits one function of a file judges that one again, and reads what is so now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="tracing a kernel needs the extra [jax]")

from layoutproof.answers import of_kernels
from layoutproof.cli.main import run
from layoutproof.pallas import kept_judgements
from layoutproof.pallas.findings import judged

pytestmark = pytest.mark.slow

SOURCE = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0


def call(kernel, x, grid, scratch=()):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct((32, 128), x.dtype)
    return pl.pallas_call(
        kernel, grid=(grid,), in_specs=[spec], out_specs=spec, out_shape=shape, scratch_shapes=list(scratch)
    )(x)


def whole(x):
    return call(kernel, x, 4)


def part(x):
    return call(kernel, x, 3)


def waits(x):
    def body(x_ref, o_ref, semaphore):
        copy = pltpu.make_async_copy(x_ref, o_ref, semaphore)
        copy.start()

    return call(body, x, 4, [pltpu.SemaphoreType.DMA])
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the calls that were judged, in a folder with a cache of its own."""
    names: list[str] = []

    def counted(call: Any, **how: Any) -> Any:
        names.append(call.name)
        return judged(call, **how)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(kept_judgements, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(of_kernels, "judged", counted)
    Path("made.py").write_text(SOURCE)
    return names


def answer(capsys: pytest.CaptureFixture[str], function: str, *more: str) -> dict[str, Any]:
    """What the command prints."""
    capsys.readouterr()
    run(["kernels", f"made.py:{function}", "--arg", "f32[32,128]", "--json", *more])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("function", ["whole", "part", "waits"])
def test_what_is_kept_is_what_is_found(function: str, asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Once more, and after lines were added above: the same object as without the cache, its lines those of now."""
    first = answer(capsys, function)
    assert len(asked) == 1
    assert answer(capsys, function) == first
    assert len(asked) == 1
    Path("made.py").write_text(f"\n# one line more\n\n{SOURCE}")
    moved = answer(capsys, function)
    many = len(asked)
    assert moved == answer(capsys, function, "--no-cache")
    assert moved != first
    # sentences that say lines by themselves are found anew
    assert many == (2 if function == "waits" else 1)


def test_an_edit_is_judged_anew(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Of the body, of the grid; and another question, or target, is another."""
    assert answer(capsys, "whole")["exit_code"] == 0
    Path("made.py").write_text(SOURCE.replace("* 2.0", "* 3.0"))
    assert answer(capsys, "whole")["exit_code"] == 0
    Path("made.py").write_text(SOURCE.replace("call(kernel, x, 4)", "call(kernel, x, 2)"))
    assert answer(capsys, "whole")["exit_code"] == 1
    Path("made.py").write_text(SOURCE)
    assert answer(capsys, "whole")["exit_code"] == 0
    assert len(asked) == 3
    answer(capsys, "whole", "--target", "v5e")
    answer(capsys, "whole", "--only", "grid")
    answer(capsys, "whole", "--property", "outputs_covered")
    answer(capsys, "whole", "--effort", "2")
    assert len(asked) == 7


def test_of_two_lines_that_change_places_each_keeps_its_own(asked: list[str]) -> None:
    """Ranks say which line is which: a call whose lines are otherwise in order is another call."""
    text = "a.py:5 b.py:9"
    ranks = {0: 0, 5: 1, 9: 2}
    assert kept_judgements._with_lines({"Finding": {"line": 9, "reason": text}}, ranks) == {
        "Finding": {"line": 2, "reason": "a.py:1 b.py:2"}
    }
    with pytest.raises(KeyError):
        kept_judgements._with_lines(["a.py:6"], ranks)
