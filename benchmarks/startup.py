"""How long the command takes to start: CPU time of whole processes, which other jobs on the machine change little.

    python benchmarks/startup.py [--runs 9]

Bytecode is cached, as it is after `pip install`; a first run of each line that fills the cache is not counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

CONSTANT = "bf16[4096,11008]{1,0:T(8,128)(2,1)}"
LINES: Mapping[str, Sequence[str]] = {
    "bare interpreter": ("-c", "pass"),
    "import click": ("-c", "import click"),
    "layoutproof --help": ("-m", "layoutproof", "--help"),
    "layoutproof ask --help": ("-m", "layoutproof", "ask", "--help"),
    "layoutproof ask injective LAYOUT": ("-m", "layoutproof", "ask", "injective", CONSTANT),
    "layoutproof show LAYOUT": ("-m", "layoutproof", "show", "f32[3,5]{1,0:T(2,2)}"),
    "layoutproof explain injective": ("-m", "layoutproof", "explain", "injective"),
}


def cpu_ms(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """User and system time of one process, in milliseconds."""
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(arguments)} exited {child.returncode}")
    return (used.ru_utime + used.ru_stime) * 1e3


def main() -> None:
    """Print a table; the runs of the lines take turns, so that a slow minute slows all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as cache:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = cache
        taken: dict[str, list[float]] = {name: [] for name in LINES}
        for turn in range(runs + 1):
            for name, arguments in LINES.items():
                used = cpu_ms(arguments, environment)
                if turn:
                    taken[name].append(used)
    print(f"| CPU of the whole process, of {runs} runs | least | median |\n|---|---:|---:|")
    for name, times in taken.items():
        print(f"| {name} | {min(times):.0f} ms | {statistics.median(times):.0f} ms |")


if __name__ == "__main__":
    main()
