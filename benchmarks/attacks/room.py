"""What the attacks share: a stranger's repository, modules that tell when they run, and which processes are left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RAN = "PWNED"
"""The file that code of the stranger leaves behind."""
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
SHADOWED = (
    *("re", "pip", "json", "yaml", "click", "rich", "joblib", "pydantic", "numpy", "tomllib", "pickle", "cloudpickle"),
    *("sitecustomize", "usercustomize", "multiprocessing", "islpy", "z3", "sympy", "jax", "distributed", "ctypes"),
)
"""Names of modules that processes of ours import, or Python by itself."""


class Untried(Exception):
    """What this machine lacks for an attack."""


def hostile(folder: Path, names: Iterable[str] = SHADOWED) -> Path:
    """The folder, made where it is missing, with a module of each name that leaves `RAN` behind, beside `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        told = folder.parent / RAN
        line = f"with open({str(told)!r}, 'a') as told:\n    told.write({name!r} + ' was imported\\n')\n"
        (folder / f"{name}.py").write_text(line)
    return folder


def ran(folder: Path) -> str:
    """What the stranger's code in `folder` left behind, "" where it never ran."""
    told = folder.parent / RAN
    return told.read_text() if told.exists() else ""


def claims(folder: Path, count: int = 40) -> Path:
    """A folder `specs` with so many true claims, of which no two are alike."""
    (folder / "specs").mkdir(parents=True, exist_ok=True)
    rows = "".join(f"  - injective: f32[{k + 3},5]{{1,0}}\n" for k in range(count))
    (folder / "specs" / "a.yaml").write_text(f"source: x\nchecks:\n{rows}")
    return folder


def git(folder: Path, *arguments: str) -> str:
    """Git as the stranger has it, with no settings of this machine."""
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **GIT}, check=True, capture_output=True, text=True
    ).stdout


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of a process that finds layoutproof here and keeps nothing."""
    return {**os.environ, **GIT, "LAYOUTPROOF_CACHE": "off", "PYTHONPATH": str(ROOT), **(more or {})}


def command(*arguments: str) -> list[str]:
    """The console command, which puts no folder of the user before the libraries."""
    return [sys.executable, "-P", "-m", "layoutproof", *arguments]


def layoutproof(
    folder: Path, *arguments: str, seconds: float = 300.0, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command in a folder, killed after so many seconds."""
    return subprocess.run(
        command(*arguments), cwd=folder, env=environment(more), capture_output=True, text=True, timeout=seconds
    )


def descendants(process: int) -> list[int]:
    """The processes that it started and those started by them."""
    if not Path("/proc/self/stat").exists():
        raise Untried("no /proc here, which says who started whom")
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found, todo = [], [process]
    while todo:
        one = todo.pop()
        more = [child for child, parent in parents.items() if parent == one]
        found += more
        todo += more
    return found


def alive(processes: Iterable[int]) -> list[int]:
    """Those that still run; one that has ended and was not asked for its exit code does not."""
    found = []
    for process in processes:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            found.append(process)
    return found


def left_after(processes: Iterable[int], seconds: float) -> list[int]:
    """Those that still run when so much time has gone, or () as soon as none does."""
    until = time.monotonic() + seconds
    left = alive(processes)
    while left and time.monotonic() < until:
        time.sleep(0.1)
        left = alive(left)
    return left
