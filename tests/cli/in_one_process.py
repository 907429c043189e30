"""Several commands, one after the other, in one process of their own: as users run them, without a start for each."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.peak import peak

_CHILD = f"""
import contextlib, io, json, sys
from layoutproof.cli.main import run
{inspect.getsource(peak)}
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
