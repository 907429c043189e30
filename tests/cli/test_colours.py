"""Verdicts are in colour on a terminal, and nowhere else: NO_COLOR, FORCE_COLOR, pipes, JSON."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

from layoutproof.cli.main import run

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
REFUTED = ["ask", "injective", "f32[3,5] strides (4,1)"]
PROVED = ["ask", "injective", "f32[3,5]{1,0}"]
UNKNOWN = ["ask", "injective", "f32[0,5]{1,0}"]


class Terminal(io.StringIO):
    """What says that it is one."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def printed(words: list[str], stream: io.StringIO) -> str:
    """What a command prints there."""
    with contextlib.redirect_stdout(stream):
        run(words)
    return stream.getvalue()


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody said anything of colours, and the terminal is an ordinary one."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(("words", "colour"), [(REFUTED, "1;31"), (PROVED, "1;32"), (UNKNOWN, "1;35")])
def test_a_verdict_is_in_colour_on_a_terminal(words: list[str], colour: str) -> None:
    """Red, green, magenta; the rest of the text, and the text without colours, are as in a pipe."""
    shown, plain = printed(words, Terminal()), printed(words, io.StringIO())
    verdict = plain.split()[0]
    assert shown.startswith(f"\x1b[{colour}m{verdict}\x1b[0m")
    assert ESCAPE.sub("", shown) == plain
    assert "\x1b" not in plain


@pytest.mark.parametrize(
    ("wishes", "stream", "coloured"),
    [
        ({"NO_COLOR": "1"}, Terminal, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, Terminal, False),
        ({"NO_COLOR": ""}, Terminal, True),
        ({"FORCE_COLOR": "1"}, io.StringIO, True),
        ({"FORCE_COLOR": ""}, io.StringIO, False),
        ({"TERM": "dumb"}, Terminal, False),
    ],
)
def test_who_wants_colours_gets_them(
    wishes: dict[str, str], stream: type[io.StringIO], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable counts where it is not empty, and no colour wins."""
    for name, value in wishes.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b" in printed(REFUTED, stream())) == coloured


def test_data_has_no_colours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JSON, SARIF and JUnit are for programs, whatever was wished."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    for words in ([*REFUTED, "--json"], ["show", "f32[3,5]{1,0:T(2,2)}", "--json"]):
        assert "\\u001b" not in printed(words, Terminal())
        assert json.loads(printed(words, Terminal()))
    (tmp_path / "a.yaml").write_text('checks: [{injective: "f32[3,5] strides (4,1)"}]\n')
    for form in ("sarif", "junit", "json", "markdown"):
        assert "\x1b" not in printed(["check", str(tmp_path / "a.yaml"), "--format", form], Terminal())
    assert "\x1b[1;31m" in printed(["check", str(tmp_path / "a.yaml")], Terminal())


def test_tiles_have_backgrounds_on_a_terminal() -> None:
    """They were printed as escapes to read; without them the picture is the one of a pipe."""
    words = ["show", "f32[3,5]{1,0:T(2,2)}"]
    shown, plain = printed(words, Terminal()), printed(words, io.StringIO())
    assert "\x1b[48;5;" in shown
    assert "\\x1b" not in shown
    assert len(set(ESCAPE.findall(shown))) >= 4
    assert "\x1b" not in plain
