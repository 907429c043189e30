"""Several commands, one after the other, in one process of their own: as users run them, without a start for each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_CHILD = """
import contextlib, io, json, pathlib, resource, sys
from layoutproof.cli.main import run
def peak():
    # Linux lets a child's ru_maxrss begin at its parent's peak
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
answers = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps([answers, peak()]))
"""


class Answer(NamedTuple):
    """What one command printed, and its exit code."""

    code: int
    out: str
    err: str


def commands(folder: Path, *arguments: list[str], seconds: float = 60) -> tuple[list[Answer], float]:
    """The answer of each command line, run in `folder`, and the peak memory of all in MiB; an error after `seconds`."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, json.dumps(arguments)],
        cwd=folder,
        capture_output=True,
        check=True,
        timeout=seconds,
    )
    answers, peak = json.loads(done.stdout)
    return [Answer(*answer) for answer in answers], peak
