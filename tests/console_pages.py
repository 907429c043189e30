"""Pages with commands and what they print: run and compared; `python -m tests.console_pages PAGE..` fills empty ones.

A block ```console has commands after `$ layoutproof `, each with its output below; one that ends in a backslash goes on
in the next line. A line `...` stands for any lines. A block of any language whose first line is `# NAME.yaml` or
`# NAME.py` is a file of that name, without that line; of a block ```diff it is two, before/NAME and after/NAME. A
command that is refused (exit code 2) stands on a page only where the line above its block says so, `<!-- exit: 2 -->`:
else a page whose command no longer works shows an error as its result, and is green.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from tests.cli.in_one_process import Answer, commands

BLOCK = re.compile(r"^( *)(?:<!-- exit: (\d) -->\n *)?```(\w+)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
ANSWERS = (0, 1, 3)
"""Exit codes of commands that answer; any other one is an error."""


class Said(NamedTuple):
    """A command, the lines that stand below it, and the error that the page says it ends with, if any."""

    command: str
    lines: list[str]
    error: int | None = None


def files(text: str) -> dict[str, str]:
    """The files that a page has, by name.

    >>> files("```diff\\n# a.yaml\\n-x: 1\\n+x: 2\\n y: 3\\n```\\n")
    {'before/a.yaml': '\\nx: 1\\ny: 3\\n', 'after/a.yaml': '\\nx: 2\\ny: 3\\n'}
    """
    found = {}
    for margin, _, language, block in BLOCK.findall(text):
        lines = [line.removeprefix(margin) for line in block.splitlines(keepends=True)]
        name = re.fullmatch(r"# (\S+\.(?:yaml|py|txt))\n", lines[0]) if lines else None
        if name is not None and language == "diff":
            for state, sign in (("before", "-"), ("after", "+")):
                kept = [line[1:] for line in lines[1:] if line.startswith((" ", sign))]
                found[f"{state}/{name[1]}"] = "".join(["\n", *kept])
        elif name is not None:
            found[name[1]] = "".join(["\n", *lines[1:]])  # so that lines have the numbers that they have in the block
    return found


def consoles(text: str) -> list[Said]:
    """Every command of a page with what stands below it, in order."""
    found: list[Said] = []
    for _, error, language, block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines() if language == "console" else ():
            if line.startswith("$ "):
                found.append(Said(line.removeprefix("$ "), [], int(error) if error else None))
            else:
                found[-1].lines.append(line)
    return found


def early(text: str) -> list[str]:
    """Commands that need a file of the page which only stands below them.

    >>> page = "```console\\n$ layoutproof check %s\\n```\\n```yaml\\n# a.yaml\\nchecks: []\\n```\\n"
    >>> early(page % "a.yaml"), early(page % "b.yaml")
    (['layoutproof check a.yaml'], [])
    """
    found = []
    for block in BLOCK.finditer(text):
        below = [name for name in files(text[block.end() :]) if name not in files(text[: block.start()])]
        for said in consoles(block[0]):
            words = re.split(r"[\s:\"']", said.command)
            found += [said.command for name in below if {name, name.removesuffix(".py")} & set(words)]
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


def lay(text: str, folder: Path) -> None:
    """Write the files of a page into a folder."""
    for name, content in files(text).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")


def answers(text: str, folder: Path) -> list[Answer]:
    """The answer to each command of a page, its files lying in `folder`."""
    lay(text, folder)
    words = [shlex.split(said.command)[1:] for said in consoles(text)]
    return commands(folder, *words, seconds=300)[0] if words else []


def lines_of(answer: Answer) -> list[str]:
    """What a command printed, errors last."""
    return [line.rstrip() for line in (answer.out + answer.err).rstrip("\n").splitlines()]


def failed(said: Said, code: int) -> bool:
    """Whether a command ends with an error of which the page says nothing, or without the one that it says.

    >>> said = Said("layoutproof search a.yaml", ["unknown key 'best'"])
    >>> failed(said, 2), failed(said._replace(error=2), 2), failed(said._replace(error=2), 0), failed(said, 1)
    (True, False, True, False)
    """
    return code not in ANSWERS if said.error is None else code != said.error


def wrong(text: str, folder: Path) -> list[str]:
    """What is not as a page shows it: commands before their files, errors, and other lines than stand below."""
    found = [f"{command}: its file stands below it" for command in early(text)]
    for said, answer in zip(consoles(text), answers(text, folder), strict=True):
        if failed(said, answer.code):
            found.append(f"{said.command}: exit code {answer.code}: {answer.err.strip()}")
        elif not matches(said.lines, lines_of(answer)):
            found.append("\n".join([f"{said.command} prints", *lines_of(answer)]))
    return found


def filled(text: str, folder: Path) -> str:
    """A page with the output of each command that has none below it; an error is none."""
    for said, answer in zip(consoles(text), answers(text, folder), strict=True):
        if failed(said, answer.code):
            raise SystemExit(f"{said.command}: exit code {answer.code}: {answer.err.strip()}")
        if not said.lines:
            block = f"```console\n$ {said.command}\n"
            text = text.replace(f"{block}```", block + "".join(f"{line}\n" for line in lines_of(answer)) + "```")
    return text


if __name__ == "__main__":
    import tempfile

    for argument in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as at:
            Path(argument).write_text(filled(Path(argument).read_text("utf-8"), Path(at)), "utf-8")
