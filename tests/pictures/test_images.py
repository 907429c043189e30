"""The pictures that README and site show are those that the tool draws today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pictures import terminal
from tests.pictures.images import FOLDER, IMAGES, made


def test_the_pictures_are_those_of_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file as its command writes it; `python -m tests.pictures.images` makes them again."""
    made(tmp_path)
    capsys.readouterr()
    for name in IMAGES:
        assert (FOLDER / name).read_text() == (tmp_path / name).read_text(), name
        assert (FOLDER / name).stat().st_size < 20_000


def test_there_are_no_others() -> None:
    """Every SVG of the folder has a command."""
    assert sorted(path.name for path in FOLDER.glob("*.svg")) == sorted([*IMAGES, terminal.PICTURE.name])


@pytest.mark.slow
def test_the_terminal_shows_what_the_command_prints(tmp_path: Path) -> None:
    """`python -m tests.pictures.terminal` makes it again; its lines fit."""
    pytest.importorskip("jax", reason="the kernel of the README is traced")
    drawn = terminal.picture(tmp_path)
    assert drawn == terminal.PICTURE.read_text("utf-8")
    assert ">refuted<" in drawn
