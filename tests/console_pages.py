"""Pages with commands and what they print: run and compared; `python -m tests.console_pages PAGE..` fills empty ones.

A block ```console has commands after `$ layoutproof `, each with its output below. A line `...` stands for any lines. A
block of any language whose first line is `# NAME.yaml` or `# NAME.py` is a file of that name, without that line.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from tests.cli.in_one_process import commands

BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


class Said(NamedTuple):
    """A command, and the lines that stand below it."""

    command: str
    lines: list[str]


def files(text: str) -> dict[str, str]:
    """The files that a page has, by name."""
    found = {}
    for margin, _, block in BLOCK.findall(text):
        lines = [line.removeprefix(margin) for line in block.splitlines(keepends=True)]
        name = re.fullmatch(r"# (\S+\.(?:yaml|py|txt))\n", lines[0]) if lines else None
        if name is not None:
            found[name[1]] = "".join(["\n", *lines[1:]])  # so that lines have the numbers that they have in the page
    return found


def consoles(text: str) -> list[Said]:
    """Every command of a page with what stands below it, in order."""
    found: list[Said] = []
    for _, language, block in BLOCK.findall(text):
        for line in block.splitlines() if language == "console" else ():
            if line.startswith("$ "):
                found.append(Said(line.removeprefix("$ "), []))
            else:
                found[-1].lines.append(line)
    return found


def timeless(line: str) -> str:
    """A line without the seconds that a command took."""
    return re.sub(r"; [\d.]+ s$", "; 0.0 s", line)


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether a page shows what was printed; `...` in it is any number of lines.

    >>> matches(["a", "...", "d"], ["a", "b", "c", "d"]), matches(["a", "..."], ["b"]), matches([], ["a"])
    (True, False, False)
    """
    parts = [r"(?:.*\n)*" if line == "..." else re.escape(timeless(line)) + r"\n" for line in shown]
    return re.fullmatch("".join(parts), "".join(f"{timeless(line)}\n" for line in printed)) is not None


def printed(text: str, folder: Path) -> list[list[str]]:
    """The lines that each command of a page prints, its files lying in `folder`."""
    for name, content in files(text).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    words = [shlex.split(said.command)[1:] for said in consoles(text)]
    if not words:
        return []
    answers, _ = commands(folder, *words, seconds=300)
    return [[line.rstrip() for line in (answer.out + answer.err).rstrip("\n").splitlines()] for answer in answers]


def filled(text: str, folder: Path) -> str:
    """A page with the output of each command that has none below it."""
    answers = printed(text, folder)
    for said, lines in zip(consoles(text), answers, strict=True):
        if not said.lines:
            block = f"```console\n$ {said.command}\n"
            text = text.replace(f"{block}```", block + "".join(f"{line}\n" for line in lines) + "```")
    return text


if __name__ == "__main__":
    import tempfile

    for argument in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as at:
            Path(argument).write_text(filled(Path(argument).read_text("utf-8"), Path(at)), "utf-8")
