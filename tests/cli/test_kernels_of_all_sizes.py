"""Sizes that are names, `f32[M,128]`: the command and spec files ask about all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

from layoutproof.cli.main import run as command

pytestmark = pytest.mark.slow

KERNELS = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def called(body, *arrays, programs=None):
    x = arrays[0]
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    grid = (pl.cdiv(x.shape[0], 8) if programs is None else programs,)
    return pl.pallas_call(body, grid=grid, in_specs=[ROWS] * len(arrays), out_specs=ROWS, out_shape=out)(*arrays)


def copy(*arrays):
    def body(*refs):
        refs[-1][...] = refs[0][...]

    return called(body, *arrays)


def all_but_the_last(x):
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return called(body, x, programs=x.shape[0] // 8)


def asks(x):
    return copy(x) if x.shape[0] > 8 else x
"""


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "sizes.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)

    def asked(*arguments: str) -> tuple[int, Any]:
        code = command([*arguments, "--json"])
        return code, json.loads(capsys.readouterr().out)

    return asked


def refuted(answer: Any) -> list[Any]:
    return [
        f
        for call in answer["kernels"]
        for f in call["findings"]
        if f["verdict"] == "refuted" and f["severity"] == "error"
    ]


def test_the_command_proves_for_all_sizes(ask: Any) -> None:
    assert ask("kernels", "sizes.py:copy", "--arg", "f32[M,128]")[0] == 0


def test_and_refutes_at_the_smallest(ask: Any) -> None:
    code, answer = ask("kernels", "sizes.py:all_but_the_last", "--arg", "f32[M,128]")
    assert code == 1
    found = {(f["question"], f["counterexample"]["sizes"]["M"]) for f in refuted(answer)}
    # of fewer than 8 rows there is no program, and of 9 the last is left out
    assert {size for _, size in found} == {1, 9}, found


def test_a_multiple_is_a_size(ask: Any) -> None:
    assert ask("kernels", "sizes.py:all_but_the_last", "--arg", "f32[8*M,128]")[0] == 0
    code, _ = ask("kernels", "sizes.py:all_but_the_last", "--arg", "f32[M,128]", "--where", "M % 8 == 0")
    assert code == 0


def test_one_name_is_one_size_in_all_arguments(ask: Any) -> None:
    assert ask("kernels", "sizes.py:copy", "--args", "f32[M,128], f32[M,128]")[0] == 0
    # of the second array there may be fewer rows, or more
    code, answer = ask("kernels", "sizes.py:copy", "--args", "f32[M,128], f32[N,128]")
    assert code == 1
    assert {f["question"] for f in refuted(answer)} == {"blocks_in_bounds", "inputs_read"}


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("g0", "g0 is what a number of ours is called"),
        ("8*loop1", "loop1 is what a number of ours is called"),
        ("max", "jax reads these otherwise"),
        ("M+1", "an argument is a shape such as"),
        ("8 M", "dimensions are whole numbers separated by commas"),
    ],
)
def test_what_is_no_name_of_a_size(size: str, said: str, ask: Any) -> None:
    code, answer = ask("kernels", "sizes.py:copy", "--arg", f"f32[{size},128]")
    assert code == 2
    assert said in answer["error"]["message"]


def test_a_function_that_asks_about_a_size_says_what_to_give(ask: Any) -> None:
    code, answer = ask("kernels", "sizes.py:asks", "--arg", "f32[M,128]")
    assert code == 2
    assert "asks in Python about a size that is a name" in answer["error"]["message"]
    assert "sizes.py" in answer["error"]["message"]


def test_the_compiler_and_a_run_want_numbers(ask: Any) -> None:
    code, answer = ask("kernels", "sizes.py:copy", "--arg", "f32[M,128]", "--replay")
    assert code == 0
    assert "M is no number" in json.dumps(answer)
    code, answer = ask("kernels", "sizes.py:copy", "--arg", "f32[M,128]", "--compile", "--target", "v5e")
    assert code == 3
    assert refuted(answer) == []
    (found,) = [f for call in answer["kernels"] for f in call["findings"] if f["question"] == "compiled"]
    assert found["reason"].startswith("M is no number")


def test_a_spec_file_takes_them(ask: Any, tmp_path: Path) -> None:
    def spec(function: str) -> None:
        (tmp_path / "a.yaml").write_text(
            f'kernels:\n  one: {{trace: "sizes.py:{function}", args: ["f32[M,128]"]}}\nchecks:\n- {{kernel: one}}\n'
        )

    spec("copy")
    assert ask("check", "a.yaml")[0] == 0
    spec("all_but_the_last")
    code, answer = ask("check", "a.yaml")
    assert code == 1
    assert '"M": 1' in json.dumps(answer)
