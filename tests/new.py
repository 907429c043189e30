"""Writes the files of something new: `python -m tests.new rule NAME`, or property, language, target, format, message.

They are the files of the worked example in CONTRIBUTING.md under the new name: what it says, its test and its page run
as they are, and are then filled in.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
KINDS = {
    "property": "Add a property of layouts",
    "rule": "Add a property of kernels",
    "language": "Add a layout language",
    "target": "Add a target",
    "format": "Add a report format",
    "message": "Add a message",
}
"""What can be added -> the heading of its example."""


class Example(NamedTuple):
    """One worked example. title: its heading.  text: all of it.  files: path -> what stands in it, the module first."""

    title: str
    text: str
    files: Mapping[str, str]

    @property
    def name(self) -> str:
        """Of its module."""
        return Path(next(iter(self.files))).stem


def examples(guide: str) -> tuple[Example, ...]:
    """The worked examples of the guide, in its order."""
    found = re.findall(r"^### (Add a .*?)\n(.*?)(?=^##|\Z)", guide, re.DOTALL | re.MULTILINE)
    blocks = r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$"
    return tuple(
        Example(title, text, dict(re.findall(blocks, text, re.DOTALL | re.MULTILINE))) for title, text in found
    )


EXAMPLES = examples((ROOT / "CONTRIBUTING.md").read_text("utf-8"))


def files(kind: str, name: str) -> dict[str, str]:
    """Path -> text of what is written for a kind of `KINDS`: the files that have the example's name, with another one.

    >>> list(files("target", "npu"))
    ['layoutproof/hardware/npu.py']
    """
    (example,) = (each for each in EXAMPLES if each.title == KINDS[kind])
    old = example.name
    classes = [word.title().replace("_", "") for word in (old, name)]

    def renamed(text: str) -> str:
        return text.replace(old, name).replace(*classes)

    return {renamed(path): renamed(text) for path, text in example.files.items() if old in path}


def main(words: list[str]) -> None:
    """Write them into this checkout; nothing is written where a file is there, or the name is none."""
    if len(words) != 2 or words[0] not in KINDS:
        sys.exit(f"python -m tests.new KIND NAME, where KIND is one of {', '.join(KINDS)}")
    kind, name = words
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        sys.exit(f"{name} is no name of a module: small letters, digits and _")
    made = files(kind, name)
    if there := [path for path in made if (ROOT / path).exists()]:
        sys.exit(f"{', '.join(there)} is there already")
    for path, text in made.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, "utf-8")
        print(path)
    print(f"CONTRIBUTING.md, {KINDS[kind]!r}, says what else there is to do")


if __name__ == "__main__":
    main(sys.argv[1:])
