"""Modules at the root of a pull request whose names are those of libraries: none may run where nothing is traced."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from benchmarks.attacks.room import ROOT, Untried, claims, environment, git, hostile, layoutproof, ran

DUMP = ROOT / "tests" / "cases" / "hlo"


def _checkout(room: Path) -> Path:
    """A clone whose head is the stranger's: claims, and modules with the names of libraries."""
    upstream = claims(room / "upstream")
    git(upstream, "init", "-q", "-b", "main")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "one")
    git(room, "clone", "-q", str(upstream), "work")
    work = hostile(room / "work")
    (work / "specs" / "b.yaml").write_text("source: x\nchecks:\n  - injective: f32[7]\n  - injective: f32[8]\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "two")
    return work


def _said(work: Path, done: Sequence[subprocess.CompletedProcess[str]], codes: tuple[int, ...] = (0,)) -> str:
    wrong = [f"{one.args} exited {one.returncode}: {one.stderr[-1000:]}" for one in done if one.returncode not in codes]
    return "\n".join(filter(None, [ran(work), *wrong]))


def workers_of_check(room: Path) -> str:
    """A pull request brings a `re.py`, and `check --no-trace --jobs 2` starts workers in its folder."""
    work = claims(hostile(room / "work"))
    return _said(work, [layoutproof(work, "check", "specs", "--no-trace", "--jobs", "2")])


def workers_of_gate(room: Path) -> str:
    """A pull request brings a `re.py`, and `gate --against --no-trace --jobs 0` starts workers in its folder."""
    work = _checkout(room)
    return _said(
        work, [layoutproof(work, "gate", "specs", "--against", "origin/main", "--no-trace", "--jobs", "0")], (0, 1, 3)
    )


def workers_of_hlo(room: Path) -> str:
    """A pull request brings a `re.py`, and `hlo FOLDER --jobs 2` starts workers in its folder."""
    work = hostile(room / "work")
    (work / "dumps").mkdir()
    for k in (3, 4):
        text = f"HloModule m{k}, is_scheduled=true\n\nENTRY %e (p: f32[{k},5]) -> f32[{k},5] {{\n"
        text += f"  %p = f32[{k},5]{{1,0}} parameter(0)\n  ROOT %c = f32[{k},5]{{1,0}} copy(%p)\n}}\n"
        (work / "dumps" / f"{k}.hlo").write_text(text)
    return _said(work, [layoutproof(work, "hlo", "dumps", "--jobs", "2")], (0, 1, 3))


def libraries_of_the_checkout(room: Path) -> str:
    """A pull request brings native libraries under the names of those that packages of ours load.

    What lies there is a library that does not fit: who loads it gets no further, and the claims are not as stated.
    """
    shared = importlib.util.find_spec("_heapq") or importlib.util.find_spec("_json")
    if shared is None or shared.origin is None or not Path(shared.origin).is_file():
        raise Untried("no native library here to put there")
    work = claims(room / "work")
    rows = "".join(f"  - injective: f32[{k}*N,5]{{1,0:T(8,128)}}\n    engine: smt\n" for k in (3, 5))
    (work / "specs" / "b.yaml").write_text(f"source: x\nchecks:\n{rows}")
    for package in ("z3", "islpy", "numpy", "yaml", "jaxlib", "libtpu"):
        found = importlib.util.find_spec(package)
        for folder in (found.submodule_search_locations or ()) if found is not None else ():
            for path in Path(folder).rglob("*"):
                if re.search(r"\.(so|dylib|dll)\b", path.name):
                    (work / path.name).unlink(missing_ok=True)
                    (work / path.name).symlink_to(shared.origin)
    for name in ("libz3.so", "libz3.dylib", "libz3.dll", "libisl.so", "libtpu.so"):
        (work / name).unlink(missing_ok=True)
        shutil.copyfile(shared.origin, work / name)
    return _said(work, [layoutproof(work, "check", "specs", "--no-trace", "--jobs", jobs) for jobs in ("1", "2")])


def action_on_a_fork(room: Path) -> str:
    """A fork brings a `re.py`, and the action runs with its own example `arguments: --jobs 0`."""
    work = _checkout(room)
    binaries = room / "bin"
    binaries.mkdir()
    (binaries / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (binaries / "python").chmod(0o755)
    given = {"AGAINST": "origin/main", "BASE": "main", "DEFAULT": "main", "PATHS_TO_GATE": "specs", "FORK": "true"}
    given |= {"PATHS_TO_CHECK": "specs", "MORE": "--jobs 0", "GITHUB_OUTPUT": str(room / "output")}
    given |= {"GITHUB_STEP_SUMMARY": str(room / "summary.md"), "SARIF": "out.sarif", "HTML": "out.html"}
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(ROOT / "action" / "run")],
        cwd=work,
        env=environment({**given, "PATH": path}),
        capture_output=True,
        text=True,
        timeout=600,
    )
    return _said(work, [done], (0, 1, 3))


def action_installs(room: Path) -> str:
    """A pull request brings a `pip.py`, and the action's install step runs in its folder.

    Every `python` of the step is started as the runner starts it, with what it would install left out: its `-m pip` is
    asked for its version, which imports as much.
    """
    work = hostile(room / "work")
    steps = [
        step
        for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
        if "pip" in str(step.get("run", ""))
    ]
    binaries = room / "bin"
    binaries.mkdir()
    asked = '#!/bin/sh\nargs=""\nfor a in "$@"; do case "$a" in install) break;; esac; args="$args $a"; done\n'
    (binaries / "python").write_text(f"{asked}exec {sys.executable} $args --version\n")
    (binaries / "python").chmod(0o755)
    given = {"VERSION": "", "PACKAGES": "jax", "CHECKOUT": str(ROOT), "RUNNER_TEMP": str(room)}
    given |= {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
    clean = {name: value for name, value in environment(given).items() if name != "PYTHONPATH"}
    done = [
        subprocess.run(["bash", "-e", "-c", step["run"]], cwd=work, env=clean, capture_output=True, text=True)
        for step in steps
    ]
    pip = [one for one in done if re.search(r"^pip \d", one.stdout, re.M)]
    return _said(work, done) or ("" if pip else f"no step asked pip: {[one.stdout + one.stderr for one in done]}")


NIGHT = ("workers_of_hlo", "action_on_a_fork")
