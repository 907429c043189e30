"""Completion in the real shells, set up as docs/howto/editor.md says; and what completes without an import."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from layoutproof.cli.main import GROUPS, cli, page_of

pytestmark = pytest.mark.slow

LINES = {
    "bash": 'eval "$(_LAYOUTPROOF_COMPLETE=bash_source layoutproof)"',
    "zsh": 'autoload -Uz compinit && compinit -u -D; eval "$(_LAYOUTPROOF_COMPLETE=zsh_source layoutproof)"',
    "fish": "_LAYOUTPROOF_COMPLETE=fish_source layoutproof | source",
}
QUIET = {"bash": ("--norc", "--noprofile", "-i"), "zsh": ("-f", "-i"), "fish": ("--no-config", "-i")}


@pytest.fixture
def where_it_is(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has the command on the path."""
    command = tmp_path / "bin" / "layoutproof"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m layoutproof "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(tmp_path), "TERM": "dumb", "PS1": "$ "}


def typed(shell: str, text: str, wanted: str, environment: dict[str, str], seconds: float = 60) -> str:
    """What a shell at a terminal shows after completion was set up and `text` and a tab were typed, until `wanted`."""
    terminal, its = pty.openpty()
    # a process that JAX is in must not fork
    child = subprocess.Popen(
        ["setsid", "--ctty", shell, *QUIET[shell]], env=environment, stdin=its, stdout=its, stderr=its
    )
    os.close(its)
    shown, sent, end = "", 0, time.monotonic() + seconds
    steps = [("", f"{LINES[shell]}; echo re''ady\n"), ("ready", f"{text}\t")]
    try:
        while time.monotonic() < end and not (sent == len(steps) and wanted in shown):
            if sent < len(steps) and steps[sent][0] in shown:
                os.write(terminal, steps[sent][1].encode())
                shown, sent = "", sent + 1
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096).decode(errors="replace")
    except OSError as error:
        shown += f" ({error})"
    finally:
        os.close(terminal)
        child.kill()
        child.wait()
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("layoutproof cros", "crosscheck"),
        ("layoutproof ask inj", "injective"),
        ("layoutproof show x --target v5", "v5p"),
    ],
    ids=["command", "argument", "option"],
)
def test_tab_at_a_terminal(shell: str, text: str, wanted: str, where_it_is: dict[str, str]) -> None:
    """The word is completed, or the candidates are listed."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    twice = f"{text}\t" if wanted == "v5p" else text
    assert wanted in typed(shell, twice, wanted, where_it_is)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_lists_commands_with_their_whole_summaries(where_it_is: dict[str, str]) -> None:
    """fish is asked by its own command what a tab would show."""
    script = f'{LINES["fish"]}; complete -C "layoutproof s"; complete -C "layoutproof show x --target v5"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], env=where_it_is, capture_output=True, text=True, timeout=60
    )
    commands = [f"{name}\t{page_of(name).summary}" for name in ("same", "scan", "schema", "search", "serve", "show")]
    assert done.stdout.splitlines() == [*commands, "v5e", "v5p"]


def test_the_list_of_commands_needs_no_command() -> None:
    """Help and completion read the files of the commands; none of them, and nothing heavy, is imported."""
    code = """
import sys
from layoutproof.cli.main import run
code = run(sys.argv[1:])
ours = {m.split(".")[1] for m in sys.modules if m.startswith("layoutproof.")}
print(code, sorted(ours), "layoutproof.cli.commands.ask" in sys.modules, file=sys.stderr)
"""
    asked = {"_LAYOUTPROOF_COMPLETE": "bash_complete", "COMP_WORDS": "layoutproof che", "COMP_CWORD": "1"}
    for arguments, environment in ((["--help"], {}), ([], asked)):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], env={**os.environ, **environment}, capture_output=True, text=True
        )
        assert done.stderr == "0 ['cli', 'core'] False\n"


@pytest.mark.parametrize("name", cli.list_commands(None))  # type: ignore[arg-type]
def test_every_command_has_its_line(name: str) -> None:
    """A group that is printed, and a sentence without a comma, at which fish would cut it."""
    page = page_of(name)
    assert page.group in GROUPS
    assert page.summary.endswith(".")
    assert "," not in page.summary
