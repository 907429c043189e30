"""What is stopped is gone: processes that outlive the command that started them, and what Ctrl-C shows."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from benchmarks.attacks.room import Untried, claims, command, descendants, environment, left_after
from benchmarks.interrupts import PLAIN, commands, interrupted, moments, prepare

MOMENTS = 100
"""At which commands are interrupted."""
START = 300.0
"""Seconds after which a command has to have started what it starts."""
PATIENCE = 20.0
"""Seconds that a process may take to end; far more than it needs, on a machine that is busy."""


def killed_with_workers(room: Path) -> str:
    """`check --jobs 2` is killed by SIGKILL in the middle of its work: no process may stay."""
    claims(room, 4000)
    return _killed(room, "check", "specs", "--jobs", "2")


def killed_while_it_compiles(room: Path) -> str:
    """`compile`, and `check` of a program, are killed by SIGKILL while the child compiles: no process may stay."""
    if importlib.util.find_spec("jax") is None:
        raise Untried("no JAX, so nothing is compiled")
    slow = "import time\nimport jax.numpy as jnp\ndef fine(x):\n    time.sleep(600)\n    return jnp.sum(x)\n"
    (room / "pkg.py").write_text(slow)
    (room / "specs").mkdir()
    spec = "programs: {p: {function: 'pkg:fine', args: ['f32[8]']}}\nchecks: [{peak_memory: p, at_most: 1GiB}]\n"
    (room / "specs" / "a.yaml").write_text(spec)
    said = _killed(room, "compile", "pkg:fine", "--arg", "f32[8]", "--target", "cpu", least=1)
    return said + _killed(room, "check", "specs", least=1)


def killed_server(room: Path) -> str:
    """`serve` is killed by SIGKILL while a worker is made ready: no process may stay."""
    if importlib.util.find_spec("mcp_types") is None:
        raise Untried("no MCP SDK, so nothing is served")
    return _killed(room, "serve", "--http", "0", least=1)


def _killed(room: Path, *arguments: str, least: int = 2) -> str:
    """What is left of a command's processes when it is killed. least: how many it has to have started by then."""
    process = subprocess.Popen(
        command(*arguments), cwd=room, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        started: list[int] = []
        until = time.monotonic() + START
        while len(started) < least and process.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
            started = descendants(process.pid)
        time.sleep(0.5)
        started = descendants(process.pid) or started
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = left_after(started, PATIENCE)
    for one in left:
        with contextlib.suppress(OSError):
            os.kill(one, signal.SIGKILL)
    name = arguments[0]
    if len(started) < least:
        return f"{name}: no workers were seen before it ended with {process.returncode}\n"
    return f"{name}: {len(left)} of {len(started)} processes are alive {PATIENCE:g} s later\n" if left else ""


def interrupted_at_any_time(room: Path) -> str:
    """Ctrl-C comes at fifteen times of `check --jobs 2`, from its start on: one line and 130, or its answer."""
    claims(room, 4000)
    ends = [interrupted(room, 0.02 + 0.1 * k, "check", "specs", "--jobs", "2") for k in range(15)]
    return "\n".join(filter(None, (end.said for end in ends)))


def interrupted_at_random(room: Path) -> str:
    """Ctrl-C comes at a hundred random moments of several commands: one line and 130, or the whole answer."""
    prepare(room)
    drawn = random.Random(29)
    ends = [end for words in PLAIN.values() for end in moments(room, words, MOMENTS // len(PLAIN) + 1, drawn)]
    wrong = [end.said for end in ends if end.said]
    stopped = any(end.kind == "130" for end in ends)
    return "\n".join(wrong) or ("" if stopped else "nothing was interrupted, so nothing is known")


def nowhere_to_write(room: Path) -> str:
    """The disk is full, the reader of a pipe is gone, the folder is read-only or deleted: a line, and no traceback."""
    claims(room, 50)
    dump = "HloModule m\nENTRY e {\n  ROOT x = f32[8]{0} parameter(0)\n}\n"
    (room / "a.txt").write_text(dump)
    commands = (
        *(("check", "specs", "--verbose"), ("check", "specs", "--json"), ("explain",), ("--help",), ("schema", "spec")),
        *(("hlo", "a.txt"), ("why", "f32[1000,5]"), ("show", "f32[3,5]"), ("ask", "injective", "f32[3,5]", "--json")),
    )
    said = ""
    for words in commands:
        with open("/dev/full", "w") as full:
            said += _told(room, words, stdout=full)
        pipe = subprocess.Popen(
            command(*words), cwd=room, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert pipe.stdout is not None
        assert pipe.stderr is not None
        pipe.stdout.close()
        told = pipe.stderr.read()
        pipe.wait(timeout=240)
        if told.strip() and (len(told.splitlines()) > 1 or "Error" in told or "Traceback" in told):
            said += f"{words} | head: exit {pipe.returncode}: {told[-400:]}\n"
    for option, where in (("--output", "/proc/x"), ("--svg", "/nowhere/x"), ("--output", "specs")):
        said += _told(room, ("check", "specs", option, where))
    gone = room / "gone"
    gone.mkdir()
    for words in commands:
        code = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
        done_ = subprocess.run(
            [sys.executable, "-c", code, *command(*words)],
            cwd=gone,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=240,
        )
        gone.mkdir()
        if "Traceback" in done_.stderr or "a bug in" in done_.stderr or len(done_.stderr.splitlines()) > 1:
            said += f"{words} in a deleted folder: exit {done_.returncode}: {done_.stderr[-400:]}\n"
    return said


LONG = ("same, a long walk", "same in specs", "search --compile")
"""Of the commands, what takes minutes and does no more than the others."""
BOUND = "import ctypes, os, sys\nfor one in (1, 2, 3):\n    ctypes.CDLL(None).prctl(24, one, 0, 0, 0)\n"
"""A program in which the administrator too obeys the modes of files: capabilities(7), PR_CAPBSET_DROP."""


def nothing_may_be_written(room: Path) -> str:
    """Folder, home and the folder of temporary files are read-only, or there is no home: a command answers, or a line.

    With and without the folder of answers that a run before it has filled.
    """
    if sys.platform != "linux":
        raise Untried("no prctl here, without which an administrator may write everywhere")
    work = prepare(room / "work")
    for path in [work, *work.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    homes = {"no home": {"HOME": str(room / "nowhere")}, "read-only": {"HOME": str(work), "TMPDIR": str(work)}}
    said = ""
    try:
        for name, words in commands().items():
            for kind, more in homes.items() if name not in LONG else ():
                variables = {**environment(more), "LAYOUTPROOF_CACHE": ""}
                variables = {key: value for key, value in variables.items() if not key.startswith("XDG_")}
                run = [sys.executable, "-c", f"{BOUND}os.execv(sys.argv[1], sys.argv[1:])", *command(*words)]
                done = subprocess.run(run, cwd=work, env=variables, capture_output=True, text=True, timeout=START)
                wrong = "Traceback" in done.stderr or "a bug in" in done.stderr + done.stdout
                if wrong or done.returncode not in (0, 1, 2, 3) or len(done.stderr.splitlines()) > 1:
                    said += f"{name}, {kind}: exit {done.returncode}: {done.stderr[-600:]}\n"
    finally:
        for path in [work, *work.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    return said


def _told(room: Path, words: Sequence[str], stdout: IO[str] | int = subprocess.PIPE) -> str:
    """What is wrong with what a command says that cannot write."""
    done = subprocess.run(
        command(*words), cwd=room, env=environment(), stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=240
    )
    one = len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr and "a bug in" not in done.stderr
    return "" if one and done.returncode == 2 else f"exit {done.returncode} of {words}: {done.stderr[-400:]}\n"


NIGHT = (
    *("killed_with_workers", "interrupted_at_any_time", "killed_while_it_compiles"),
    *("interrupted_at_random", "nowhere_to_write", "nothing_may_be_written"),
)
