"""What is stopped is gone: processes that outlive the command that started them, and what Ctrl-C shows."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from benchmarks.attacks.room import claims, command, descendants, environment, left_after

PATIENCE = 20.0
"""Seconds that a process may take to end; far more than it needs, on a machine that is busy."""


def killed_with_workers(room: Path) -> str:
    """`check --jobs 2` is killed by SIGKILL in the middle of its work: no process may stay."""
    claims(room, 4000)
    process = subprocess.Popen(
        command("check", "specs", "--jobs", "2"),
        cwd=room,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        started: list[int] = []
        until = time.monotonic() + 120
        while len(started) < 2 and process.poll() is None and time.monotonic() < until:
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
    if len(started) < 2:
        return f"no workers were seen before it ended with {process.returncode}"
    return f"{len(left)} of {len(started)} processes are alive {PATIENCE:g} s later" if left else ""


def interrupted_at_any_time(room: Path) -> str:
    """Ctrl-C comes at fifteen times of `check --jobs 2`, from its start on: one line and 130, or its answer."""
    claims(room, 4000)
    wrong = []
    for k in range(15):
        process = subprocess.Popen(
            command("check", "specs", "--jobs", "2"),
            cwd=room,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02 + 0.1 * k)
        started = descendants(process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        out, said = process.communicate(timeout=120)
        left = left_after(started, PATIENCE)
        # the checks that were done by then are reported, which ends with that line
        ends = said == "interrupted\n" or (not said and "interrupted" in out)
        # before a line of ours runs, Python itself says what it says
        early = process.returncode != 130 and "layoutproof" not in said.replace("-m layoutproof", "")
        fine = (process.returncode == 130 and ends) or early or (process.returncode == 0 and not said)
        if not fine or left:
            wrong.append(f"after {0.02 + 0.1 * k:.2f} s: exit {process.returncode}, {len(left)} left, {said[-600:]!r}")
    return "\n".join(wrong)


NIGHT = ("killed_with_workers", "interrupted_at_any_time")
