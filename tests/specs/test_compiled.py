"""A program is compiled once within a run, whoever asks, and never shared by what only looks alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.compiler.child import Reply
from layoutproof.compiler.tracing import Tracing, only
from layoutproof.core.finding import Finding
from layoutproof.programs import compile as compiling
from layoutproof.programs.compile import Asked, Made
from layoutproof.specs import compiled

SPEC = """
programs:
  step: {function: "model:step", args: ["f32[64,128]"]}
checks:
  - {peak_memory: step, at_most: 1MiB}
  - {argument_memory: step, at_most: 1MiB}
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """What a compiler was asked, which refuses all: each answer says which question it is of."""
    found: list[Asked] = []

    def refused(given: Sequence[Asked], seconds: float) -> Iterator[Made]:
        for one in given:
            found.append(one)
            yield Made(one, problem=Finding("compile", one.title, f"refusal {len(found)}"))

    monkeypatch.setattr(compiled, "made", refused)
    return found


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the compiler's processes were asked, by anybody; they refuse all."""
    found: list[str] = []

    def refused(child: object, given: Iterable[dict[str, Any]], *_: object) -> Iterator[Reply[dict[str, Any]]]:
        for one in given:
            found.append(one["program"])
            yield Reply({"refused": f"refusal {len(found)}", "compiler": "a compiler"})

    monkeypatch.setattr(compiling, "ask", refused)
    monkeypatch.setattr(compiling, "missing", lambda asked: "")
    return found


def tree(folder: Path, spec: str = SPEC) -> Path:
    """A folder with specs."""
    (folder / "specs").mkdir(parents=True)
    (folder / "specs" / "a.yaml").write_text(spec)
    return folder


def lock(folder: Path) -> None:
    """One that says nothing of programs."""
    empty = tree(folder / "empty", "checks: [{injective: 'f32[3]'}]\n")
    text = (empty / "specs" / "a.yaml").read_text()
    both = (folder / "specs" / "a.yaml").read_text()
    (folder / "specs" / "a.yaml").write_text(text)
    from layoutproof.gating import lock as locks
    from layoutproof.gating import states

    (folder / "layoutproof.lock").write_text(locks.write(states.here(("specs",)).files, ("specs",)))
    (folder / "specs" / "a.yaml").write_text(both)


def test_the_gate_compiles_a_program_once(tmp_path: Path, requests: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two claims of it, its drift from the lock: one question to the compiler, and each says what came of it."""
    monkeypatch.chdir(tree(tmp_path))
    lock(tmp_path)
    found = lp.gate()
    assert len(requests) == 1
    assert sum("refusal 1" in each.reason for each in found.findings) >= 2
    lp.gate()
    assert len(requests) == 2, "code may have changed between two runs"


def test_names_are_no_difference_and_all_else_is(
    asked: list[Asked], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = Asked("model:step", ("f32[64,128]",), rule=Tracing())
    others = [
        replace(one, program="models:step"),
        replace(one, args=("f32[64,256]",)),
        replace(one, kwargs={"x": 1}),
        replace(one, target="v5e"),
        replace(one, mesh={"x": 2}),
        replace(one, donate=(0,)),
        replace(one, flags={"xla_a": "1"}),
        replace(one, libtpu="other.so"),
        replace(one, folder=str(tmp_path)),
        replace(one, rule=Tracing(prefixes=("model",))),
    ]
    with only(Tracing()):
        named = compiled.compiled([one, replace(one, name="step"), one], 600.0)
        assert [each.asked.name for each in named] == ["", "step", ""]
        assert len(asked) == 1
        compiled.compiled(others, 600.0)
        assert len(asked) == 1 + len(others)
        # more time is another question where it did not end well, less is none
        compiled.compiled([one], 60.0)
        assert len(asked) == 1 + len(others)
        compiled.compiled([one], 900.0)
        assert len(asked) == 2 + len(others)


def test_another_tree_and_another_run_share_nothing(
    tmp_path: Path, requests: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same text means another module in another folder, and in the same one once somebody edited it."""
    for name in ("a", "b"):
        tree(tmp_path / name)
    said = []
    for name in ("a", "b", "b"):
        monkeypatch.chdir(tmp_path / name)
        said.append({each.reason for each in lp.check("specs").findings})
    assert len(requests) == 3
    assert [each.pop().partition("refusal ")[2][:1] for each in said] == ["1", "2", "3"]
    # within one run too
    with only(Tracing()):
        for name in ("a", "b", "a"):
            monkeypatch.chdir(tmp_path / name)
            lp.check("specs")
    assert len(requests) == 5
