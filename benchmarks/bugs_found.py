"""Whether the bugs of BUGS-FOUND.md are still there: `python benchmarks/bugs_found.py`.

Runs every program of the page in a process of its own, with a limit of time and memory, and compares what it prints
with what the page says. A program runs where its packages are: in an environment of `benchmarks/peers` (`--install`
there makes them), or in this Python, or in the one that `--python` names. One that needs a checkout of a repository is
run with `--checkout OWNER/NAME=FOLDER`, and is else skipped.

Exit code: 0, everything that was run prints what the page says; 1, something does not, and the page or a version has
changed; 3, nothing was run.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.peers.__main__ import FOLDER, peers  # noqa: E402

PAGE = ROOT / "BUGS-FOUND.md"
MEMORY = 12 << 30
"""Bytes of address space of one program."""

_PROGRAM = re.compile(r"```python\n(?P<code>.*?)```\n```text\n(?P<printed>.*?)```\n", re.DOTALL)
_TOLD = re.compile(r"^- ([A-Z][a-z ]+): (.*(?:\n  .*)*)", re.MULTILINE)
_ROW = re.compile(r"^\|.*\n", re.MULTILINE)
_RUN_WITH = re.compile(r"^- Run with: (?P<needs>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Bug:
    """An entry of the page.

    packages: what must be installed.  checkout: the repository whose sources it imports, or "".  told: what its list
    says, by the word in front: "Where", "Refuted by", "Fix".  table: the rows of its table, "" where it has none.
    """

    section: str
    title: str
    packages: tuple[str, ...]
    checkout: str
    code: str
    printed: str
    told: Mapping[str, str]
    table: str


def bugs(page: str) -> list[Bug]:
    """The entries of the page. Raises ValueError for one that has not one program, or does not say what it needs."""
    found = []
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        heading, *entries = re.split(r"^### ", section, flags=re.MULTILINE)
        for entry in entries:
            title = entry.partition("\n")[0]
            programs, needs = list(_PROGRAM.finditer(entry)), _RUN_WITH.findall(entry)
            if len(programs) != 1 or len(needs) != 1 or entry.count("```python") != 1:
                raise ValueError(f"{title!r} has no one program, what it prints, and a line '- Run with: `PACKAGE`'")
            packages, _, source = needs[0].partition("a checkout of")
            named = re.findall(r"`([^`]+)`", source)
            found.append(
                Bug(
                    heading.partition("\n")[0],
                    title,
                    tuple(re.findall(r"`([^`]+)`", packages)),
                    named[0] if named else "",
                    programs[0]["code"],
                    programs[0]["printed"],
                    {label: " ".join(text.split()) for label, text in _TOLD.findall(entry.partition("```")[0])},
                    "".join(_ROW.findall(entry)),
                )
            )
    return found


@cache
def version(python: Path, package: str) -> str:
    """Of a package in an interpreter's environment, "" where it is not there."""
    code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    done = subprocess.run([str(python), "-c", code, package], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def interpreter(bug: Bug, pythons: Sequence[Path]) -> Path | None:
    """The first interpreter that has all its packages."""
    return next((python for python in pythons if all(version(python, package) for package in bug.packages)), None)


def run(bug: Bug, python: Path, checkouts: Mapping[str, Path], seconds: float) -> str:
    """What its program prints, and how it ended where it did not end by itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(bug.code)
        paths = str(checkouts[bug.checkout]) if bug.checkout else ""
        # a device must not change what the page says of CPUs
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": paths}
        try:
            done = subprocess.run(
                [str(python), str(path)],
                capture_output=True,
                text=True,
                timeout=seconds,
                cwd=folder,
                env=environment,
                preexec_fn=_limited,
            )
        except subprocess.TimeoutExpired:
            return f"not done within {seconds:g} s\n"
    if done.returncode < 0:
        return f"{done.stdout}ended by {signal.Signals(-done.returncode).name}\n"
    last = (done.stderr.strip().splitlines() or ["no words"])[-1]
    return done.stdout + (f"exit code {done.returncode}: {last}\n" if done.returncode else "")


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> int:
    """Run, print, and say whether everything is as the page says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD", help="entries with this word in their title")
    parser.add_argument("--checkout", action="append", default=[], metavar="OWNER/NAME=FOLDER")
    parser.add_argument("--python", action="append", default=[], type=Path, help="an interpreter that is asked first")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="the environments of the peers")
    parser.add_argument("--seconds", type=float, default=120.0, help="for one program")
    given = parser.parse_args()
    checkouts = {name: Path(folder).resolve() for name, _, folder in (text.partition("=") for text in given.checkout)}
    pythons = [*given.python, Path(sys.executable)]
    pythons += [peer.python for peer in peers(given.folder) if peer.python is not None]
    ran = differ = 0
    for bug in bugs(PAGE.read_text(encoding="utf-8")):
        if given.only.lower() not in bug.title.lower():
            continue
        python = interpreter(bug, pythons)
        if python is None:
            print(f"skipped  {bug.title}: {', '.join(bug.packages)} is not installed")
            continue
        if bug.checkout and bug.checkout not in checkouts:
            print(f"skipped  {bug.title}: --checkout {bug.checkout}=FOLDER is not given")
            continue
        said = run(bug, python, checkouts, given.seconds)
        versions = ", ".join(f"{package} {version(python, package)}" for package in bug.packages)
        same = said == bug.printed
        ran, differ = ran + 1, differ + (not same)
        print(f"{'holds    ' if same else 'DIFFERS  '}{bug.title} ({versions})", flush=True)
        if not same:
            print(f"  the page has {bug.printed!r}\n  it prints    {said!r}")
    print(f"{ran} run, {ran - differ} hold, {differ} differ")
    return 1 if differ else 0 if ran else 3


if __name__ == "__main__":
    sys.exit(main())
