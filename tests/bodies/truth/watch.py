"""Whether a process waits for ever: looked at from outside, on a machine that may be busy."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

LOOK = 0.25
"""Seconds between two looks at a process."""
IDLE_LOOKS = 12
"""Looks in a row at which all threads sleep, with no time of a processor used, after which a process waits for ever."""


class Watch:
    """Whether a process does nothing but wait. A busy machine does not look like that: its threads want to run.

    Looks are counted, and not seconds: who looks may get no time for long, too, and two looks say little.
    """

    def __init__(self, process: int) -> None:
        self.process, self.used, self.looks = process, used(process), 0

    def idle(self) -> bool:
        """Looks once more: whether all threads have slept at `IDLE_LOOKS` looks."""
        now, (states, _) = used(self.process), looked_at(self.process)
        self.looks = self.looks + 1 if now == self.used and states == {"S"} else 0
        self.used = now
        return self.looks >= IDLE_LOOKS


def used(process: int) -> float:
    """Seconds of a processor that a process has used."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def looked_at(process: int, but: int = 0) -> tuple[set[str], int]:
    """The states of the threads of a process, "S" where all sleep, and how often they were given a processor.

    but: a thread that is left out.
    """
    states, ran = set(), 0
    for thread in Path(f"/proc/{process}/task").iterdir() if Path(f"/proc/{process}").exists() else ():
        if thread.name != str(but):
            with contextlib.suppress(OSError):
                states.add((thread / "stat").read_text().rpartition(")")[2].split()[0])
                ran += int((thread / "schedstat").read_text().split()[2])
    return states, ran
