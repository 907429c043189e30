"""Whether a process waits for ever: looked at from outside, on a machine that may be busy."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

LOOK = 0.25
"""Seconds between two looks at a process."""
IDLE_LOOKS = 12
"""Looks in a row at which a process hardly wants to run, after which it waits for ever."""
BUSY = 0.5
"""Of the time between two looks: for how much of it a process that goes on at least runs or wants to run.

JAX's interpreter looks ten times a second whether a wait has failed: a run of four devices that all wait wants to run
for 0.07 of the time (jax 0.10.2, two cores with six processes)."""


class Watch:
    """Whether a process does nothing but wait. A busy machine does not look like that: its threads want to run.

    Looks are counted, and not seconds: who looks may get no time for long, too, and two looks say little.
    """

    def __init__(self, process: int, but: int = 0, looks: int = IDLE_LOOKS) -> None:
        """but: a thread that is left out.  looks: after how many in a row it waits for ever."""
        self.process, self.but, self.most, self.looks = process, but, looks, 0
        self.time, self.wanted = time.monotonic(), wanted(process, but)

    def idle(self) -> bool:
        """Looks once more: whether it has hardly wanted to run at so many looks."""
        now, all_of_it = time.monotonic(), wanted(self.process, self.but)
        quiet = 0 <= all_of_it - self.wanted < BUSY * (now - self.time)
        self.looks = self.looks + 1 if quiet else 0
        self.time, self.wanted = now, all_of_it
        return self.looks >= self.most


def used(process: int) -> float:
    """Seconds of a processor that a process has used."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wanted(process: int, but: int = 0) -> float:
    """Seconds for which the threads of a process ran, or were ready to and had no processor. but: one is left out."""
    total = 0
    for thread in Path(f"/proc/{process}/task").iterdir() if Path(f"/proc/{process}").exists() else ():
        if thread.name != str(but):
            with contextlib.suppress(OSError):
                ran, waited, _ = (thread / "schedstat").read_text().split()
                total += int(ran) + int(waited)
    return total / 1e9
