"""`layoutproof hlo` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli import main as cli
from tests.hlo.dumps import SMALL


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One command line in a folder with a dump, a broken dump and a note: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    Path("good.txt").write_text(SMALL)
    Path("notes.txt").write_text("not a dump\n")

    def run_one(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(["hlo", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run_one


def test_a_file(run: Any) -> None:
    code, out, _ = run("good.txt")
    assert code == 0
    assert out.startswith("good.txt: 1 program (small), 2 computations, 6 instructions")
    assert out.endswith(
        "good.txt: 1 of 1 bitcast proved to keep every byte, no buffer with two layouts; "
        "120.0 KiB of 144.0 KiB is padding, 1 relayout (136.0 KiB), no collective\n"
    )


def test_a_file_as_json(run: Any) -> None:
    code, out, _ = run("good.txt", "--json", "--target", "v5e")
    (found,) = json.loads(out)["results"]
    assert code == 0
    assert found["verdict"] == "proved"
    assert found["wasters"][0]["fix"]["layout"] == "f32[256,8]{0,1:T(8,128)}"
    assert found["bytes"]["total"] == {"unpadded": 3 * 8192, "padded": 2 * 8192 + 131072}
    assert [c["kind"] for c in found["copies"]] == ["relayout"]
    assert [(c["verdict"], c["is"]) for c in found["bitcasts"]] == [("proved", "transpose (1, 0)")]


def test_a_folder(run: Any) -> None:
    Path("broken.txt").write_text(SMALL[:-30])
    Path("wrong.hlo").write_text(SMALL.replace("{0,1:T(8,128)} bitcast", "{1,0:T(8,128)} bitcast"))
    code, out, _ = run(".")
    assert code == 1
    assert "not HLO text, not read: notes.txt" in out
    assert "good.txt: 1 of 1 bitcast proved" in out
    assert "broken.txt: bad input" in out
    assert "wrong.hlo: refuted" in out
    code, out, _ = run(".", "--json")
    assert code == 1
    shown = json.loads(out)
    assert [f["verdict"] for f in shown["results"]] == ["unknown", "proved", "refuted"]
    assert shown["not_dumps"] == ["notes.txt"]


@pytest.mark.slow
def test_a_folder_in_several_processes(run: Any, tmp_path: Path) -> None:
    for k in range(4):
        (tmp_path / f"{k}.txt").write_text(SMALL.replace("HloModule small", f"HloModule small{k}"))
    alone = run(str(tmp_path))
    assert alone[0] == 0
    assert [f"small{k}" in alone[1] for k in range(4)] == [True] * 4
    assert run(str(tmp_path), "--jobs", "2") == alone


def test_refuted_is_one_and_names_the_line(run: Any) -> None:
    Path("wrong.txt").write_text(SMALL.replace("->f32[256,8]{1,0", "->f32[256,8]{0,1"))
    code, out, _ = run("wrong.txt")
    assert code == 1
    assert "refuted  contradiction  entry result and entry_computation_layout   wrong.txt:1" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.txt"], "no.txt"),
        (["notes.txt"], "not HLO text"),
        (["good.txt", "--target", "v99"], "unknown TPU generation"),
        (["empty"], "no HLO dump here"),
    ],
)
def test_bad_input(run: Any, arguments: list[str], message: str) -> None:
    Path("empty").mkdir()
    code, out, err = run(*arguments)
    assert code == 2
    assert message in out + err
