"""Real programs compiled by JAX on the CPU, dumped, and gated as a user does: from `as_text()` to the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli import main as cli

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="JAX is not installed")


@pytest.fixture
def gate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Two texts of programs gated: the exit code and the classes with their subjects."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", "off")

    def run(old: str, new: str) -> tuple[int, list[tuple[str, str]]]:
        for side, text in (("old", old), ("new", new)):
            Path(side).mkdir(exist_ok=True)
            Path(side, "module_0001.jit_f.cpu_after_optimizations.txt").write_text(text)
        code = cli.run(["gate", "old", "new", "--json"])
        report = json.loads(capsys.readouterr().out)
        return code, [(f["question"], f["subject"]) for f in report["findings"]]

    return run


def compiled(transposed: bool = False, extra: bool = False) -> str:
    """A small attention-like program after optimizations; transposed: its first argument is given column-major."""
    import jax.numpy as jnp
    from jax.experimental.layout import Format, Layout

    def f(x: Any, w: Any) -> Any:
        scores = jnp.einsum("bid,bjd->bij", x @ w, x)
        out = jax.nn.softmax(scores) @ x
        return out.sum(0) if extra else out

    x = jax.ShapeDtypeStruct((4, 32, 48), jnp.float32)
    w = jax.ShapeDtypeStruct((48, 48), jnp.float32)
    single = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    order = (0, 2, 1) if transposed else (0, 1, 2)
    jitted = jax.jit(f, in_shardings=(Format(Layout(order), single), None))
    return str(jitted.lower(x, w).compile().as_text())


def test_compiled_twice_alike(gate: Any) -> None:
    """Nothing: the numbers of instructions are not compared."""
    assert gate(compiled(), compiled()) == (0, [])


def test_compiled_for_another_layout_of_a_parameter(gate: Any) -> None:
    """The program's ABI changed, at the parameter that changed and no other; exit 1."""
    code, found = gate(compiled(), compiled(transposed=True))
    assert code == 1
    assert [subject for kind, subject in found if kind == "abi"] == ["parameter 0 (x)"]
    assert "unknown" not in {kind for kind, _ in found}


def test_compiled_with_another_result(gate: Any) -> None:
    """A result of another shape is the ABI too."""
    code, found = gate(compiled(), compiled(extra=True))
    assert code == 1
    assert {("abi", "result 0")} <= set(found)
    assert "unknown" not in {kind for kind, _ in found}
