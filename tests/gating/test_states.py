"""Reading two states, and which file of one is which of the other."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from layoutproof.compiler.tracing import stated
from layoutproof.core.errors import LayoutError
from layoutproof.gating.compare import compare, pairs_of
from layoutproof.gating.rules import rules_in
from layoutproof.gating.states import File, State, on_disk, pair
from tests import said

HLO = b"HloModule jit_f, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n"
TODAY = datetime.date(2026, 11, 21)


def state(**files: bytes) -> State:
    """A state from names (`__` stands for a dot) and contents."""
    made = [File(name.replace("__", "."), name.replace("__", "."), data) for name, data in sorted(files.items())]
    return State("x", tuple(made))


def test_what_a_folder_holds(tmp_path: Path) -> None:
    """Specs and texts at all levels, sorted, nothing else."""
    for name in ("b.yaml", "a/c.yml", "a/d.txt", "a/e.hlo", "f.md", ".hidden.txt~"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [f.relpath for f in on_disk(str(tmp_path)).files] == ["a/c.yml", "a/d.txt", "a/e.hlo", "b.yaml"]
    with pytest.raises(LayoutError, match=re.escape(said.stretch("gating.file_and_folder"))):
        pair(str(tmp_path), str(tmp_path / "b.yaml"))


@pytest.mark.parametrize(
    ("data", "is_dump"),
    [
        (HLO, True),
        (b"\n\n// a comment\nHloModule x\n", True),
        (b"HloModules\n", False),
        (b"BufferAssignment:\n", False),
        (b"", False),
    ],
)
def test_what_a_dump_is(data: bytes, is_dump: bool) -> None:
    """Its first line that says anything starts with HloModule."""
    assert File("a.txt", "a.txt", data).is_dump is is_dump


def test_numbers_of_modules_change_from_run_to_run() -> None:
    """Matched by name without the number, and it is said to be a guess; by the same name where there is one."""
    old = state(module_0001__jit_f__txt=HLO, module_0002__jit_g__txt=HLO + b"1", same__txt=HLO)
    new = state(module_0007__jit_f__txt=HLO + b"x", module_0002__jit_g__txt=HLO + b"2", same__txt=HLO + b"3")
    pairs, skipped = pairs_of(old, new)
    assert skipped == []
    found = {p.relpath: (p.old.relpath if p.old else "", p.match_heuristic) for p in pairs}
    assert found == {
        "module_0002.jit_g.txt": ("module_0002.jit_g.txt", ""),
        "module_0007.jit_f.txt": ("module_0001.jit_f.txt", "by its name without the module's number"),
        "same.txt": ("same.txt", ""),
    }


def test_texts_that_are_no_hlo_are_said() -> None:
    """They are skipped with their names, also beside dumps; a dump that is broken now is not skipped."""
    old, new = state(a__txt=HLO, notes__txt=b"one"), state(a__txt=b"broken", notes__txt=b"two")
    report = compare(old, new, {}, today=TODAY)
    assert report.notes == (said.words("gating.not_compared", files="notes.txt"),)
    # the old one ends after its first line
    assert [f.subject for f in report.findings if f.bad_input] == ["dump", "old dump"]
    assert report.findings[0].reason.startswith("not HLO text, which starts with HloModule: 'broken'")


def test_a_pointer_is_not_the_file() -> None:
    """Git LFS leaves a short text where the file should be: bad input, and how to get it."""
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n"
    report = compare(state(a__yaml=b"x: 1"), state(a__yaml=pointer), {}, today=TODAY)
    assert report.exit_code == 2
    assert "git lfs pull" in report.findings[0].reason


def test_a_defect_of_ours_is_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither ends the run nor looks like success."""

    def broken(*_: object) -> None:
        raise RuntimeError("oh")

    monkeypatch.setattr("layoutproof.gating.program_changes.read", broken)
    report = compare(state(a__txt=HLO), state(a__txt=HLO + b"\n"), {}, today=TODAY)
    assert (report.exit_code, report.findings[0].reason) == (
        2,
        said.words("core.internal_error", kind="RuntimeError", error="oh"),
    )


def test_rules_in_pyproject() -> None:
    """The gate's table, empty where there is none; of what is no TOML or no table, why."""
    assert rules_in('[tool.layoutproof.gate]\nmoved = "warn"\n', "p") == {"moved": "warn"}
    assert rules_in("[tool.other]\n", "p") == {}
    for text in ("[", "tool = 3", '[tool]\nlayoutproof = "x"'):
        assert str(rules_in(text, "p")).startswith("p: ")


def test_search_files_are_no_specs() -> None:
    """They state problems: in a folder they are named and left alone, by themselves there is nothing to compare."""
    problem = b"search: matmul\ntarget: v5e\n"
    whole = HLO + b"\nENTRY e {\n  ROOT p = f32[2]{0} parameter(0)\n}\n"
    old, new = state(a__txt=whole, s__yaml=problem), state(a__txt=whole, s__yaml=problem + b"best: 3\n")
    report = compare(old, new, {}, today=TODAY)
    assert report.notes == (said.words("gating.not_compared", files="s.yaml"),)
    assert report.exit_code == 0
    alone = compare(state(s__yaml=problem), state(s__yaml=problem + b"#"), {}, today=TODAY)
    assert alone.exit_code == 2
    assert "claims nothing" in alone.findings[0].reason


@pytest.mark.parametrize("key", ["a.", "'a b' . ", '"a".'])
def test_a_key_of_many_parts_is_not_read(key: str) -> None:
    """Python's reader takes a time that grows with their square: 4 MiB of them would take an hour."""
    words = f"{key * 100}a = 1"
    assert str(rules_in(words, "p")) == "p: not TOML that can be read: a key of more than 100 parts"
    assert stated(words.encode(), "p").source == "p: not TOML that can be read: a key of more than 100 parts"
    assert rules_in(f"{key * 99}a = 1\nb = '{'a.' * 500}'", "p") == {}


def test_a_number_of_thousands_of_digits_is_no_toml() -> None:
    assert str(rules_in(f"a = {'7' * 5000}", "p")).startswith("p: not TOML: Exceeds the limit")
