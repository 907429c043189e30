"""A diff in parts: all of them are the new tree, none of them the old one, each of them one change."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from layoutproof.gating import states
from layoutproof.gating.git import commit_of
from layoutproof.gating.hunks import Hunk, PatchedTree, hunks_of
from tests.gating.repository import git

OLD = "import a\n\n\ndef f(x):\n    # why\n    return x\n\n\ndef g(x):\n    return x + 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "repository"
    (place / "specs").mkdir(parents=True)
    for name, text in {"model.py": OLD, "gone.txt": "a\nb\n", "specs/a.yaml": "a: 1\n", ".gitignore": "*.o\n"}.items():
        (place / name).write_text(text)
    (place / "image.bin").write_bytes(b"\0\n1\n2\n")
    git(place, "init", "-q", "-b", "main")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    monkeypatch.chdir(place)
    return place


def hunks(folder: Path, base: str) -> tuple[Hunk, ...]:
    return hunks_of(folder, commit_of(folder, "HEAD"), Path(base))


def test_every_kind_of_change_is_a_part_with_its_first_line(folder: Path) -> None:
    text = "# above\n" + OLD.replace("return x\n", "return 2 * x\n").replace(
        "    return x + 1\n", "    y = x\n    return y\n"
    )
    (folder / "model.py").write_text(text)
    (folder / "gone.txt").unlink()
    (folder / "image.bin").write_bytes(b"\0\n1\n3\n")
    (folder / "new.py").write_text("b = 1\n")
    (folder / "skipped.o").write_text("1")
    with states.work_tree_of("HEAD") as base:
        found = [str(each) for each in hunks(folder, base)]
    assert found == [
        "gone.txt:1: - a (and 1 more line)",
        found[1],
        "model.py:1: + # above",
        "model.py:7: + return 2 * x",
        "model.py:11: + y = x",
        "model.py:12: + return y",
        "new.py:1: + b = 1",
    ]
    assert found[1].startswith("image.bin:1: ")


def test_what_python_reads_as_the_same_program_is_no_part(folder: Path) -> None:
    (folder / "model.py").write_text("# above\n\n" + OLD.replace("# why", "# because"))
    with states.work_tree_of("HEAD") as base:
        assert hunks(folder, base) == ()
    # a docstring is a value of the program
    (folder / "model.py").write_text('"""What it is."""\n' + OLD)
    with states.work_tree_of("HEAD") as base:
        assert len(hunks(folder, base)) == 1


@pytest.mark.parametrize("seed", range(10))
def test_all_parts_are_the_new_tree_and_none_the_old_one(folder: Path, seed: int) -> None:
    random = Random(seed)
    lines = [f"x{k} = {k}\n" for k in range(40)]
    (folder / "many.py").write_text("".join(lines))
    (folder / "last.py").write_text("a = 1\r\nb = 2")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "second")
    for _ in range(12):
        at = random.randrange(len(lines))
        lines[at : at + random.randrange(3)] = [f"y{at} = {random.random()}\n" for _ in range(random.randrange(3))]
    (folder / "many.py").write_text("".join(lines))
    (folder / "last.py").write_bytes(b"a = 1\r\nb = 3\r\n")
    (folder / "gone.txt").unlink()
    (folder / "more").mkdir()
    (folder / "more" / "new.py").write_text("b = 1\n")
    names = ("many.py", "last.py", "gone.txt", "more/new.py", "model.py")

    def contents(top: Path) -> list[bytes | None]:
        return [(top / name).read_bytes() if (top / name).exists() else None for name in names]

    with states.work_tree_of("HEAD") as base:
        old = contents(Path(base))
        found = hunks(folder, base)
        assert len(found) > 3
        tree = PatchedTree(Path(base), found)
        tree.apply(found)
        assert contents(Path(base)) == contents(folder)
        tree.apply(random.sample(found, 2))
        assert contents(Path(base)) not in (old, contents(folder))
        times = (Path(base) / "many.py").stat().st_mtime
        tree.apply([])
        assert contents(Path(base)) == old
        # a compiled module of the version before is not taken for this one
        assert (Path(base) / "many.py").stat().st_mtime != times


def test_a_link_is_in_no_part(folder: Path) -> None:
    outside = folder.parent / "outside.py"
    outside.write_text("secret = 1\n")
    (folder / "model.py").unlink()
    (folder / "model.py").symlink_to(outside)
    with states.work_tree_of("HEAD") as base:
        found = hunks(folder, base)
        assert [each.gone for each in found] == [True]
        assert "secret" not in "".join(map(str, found))
    shutil.rmtree(folder)


def test_a_block_of_replaced_lines_is_cut_where_lines_are_alike(folder: Path) -> None:
    (folder / "model.py").write_text("A = 1\nSPECS = (1, 2, 3, 4)\nLAST = 9\n")
    git(folder, "commit", "-qam", "second")
    (folder / "model.py").write_text("MORE = 7\nA = 2\nSPECS = (1, 2, 3, 5)\nLAST = 9\n")
    with states.work_tree_of("HEAD") as base:
        found = [str(each) for each in hunks(folder, base)]
    assert found == ["model.py:1: + MORE = 7", "model.py:2: + A = 2", "model.py:3: + SPECS = (1, 2, 3, 5)"]
