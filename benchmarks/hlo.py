"""How long the audit of HLO text takes: 10 and 100 MB, whole processes on one core.

python benchmarks/hlo.py [FOLDER]      one line per text: what, seconds, peak memory

FOLDER: dumps of a compiler; they are repeated until the text is as long as wanted. Without it one module is made up,
of layers whose layouts differ. The last line says how much longer ten times the text takes.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import gate


def made_up(megabytes: int) -> str:
    """One module."""
    gate.MEGABYTES = megabytes
    return gate.dump(1, 0)


def repeated(folder: Path, megabytes: int) -> str:
    """Real modules, one after the other, each time under other names of theirs."""
    texts = [path.read_text() for path in sorted(folder.glob("*.txt"))]
    texts = [text if text.endswith("\n") else f"{text}\n" for text in texts if text.startswith("HloModule")]
    parts, size = list[str](), 0
    while size < megabytes * 1_000_000:
        for text in texts:
            parts.append(re.sub(r"\AHloModule (\w+)", rf"HloModule \1_{len(parts)}", text))
            size += len(parts[-1])
    return "".join(parts)


def measured(what: str, text: str, folder: Path) -> float:
    """Audits a text in a process of its own; prints its figures and returns the seconds that it computed."""
    path = folder / "dump.txt"
    path.write_text(text)
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "layoutproof", "hlo", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = after.ru_maxrss // 1024
    last = done.stdout.splitlines()[-1:] or done.stderr.splitlines()[-1:]
    size = len(text) / 1e6
    figures = f"{size:>6.1f} MB {seconds:>7.2f} s, {cpu:>6.2f} s of them computing, {peak:>4} MB"
    print(f"{what:<8} {figures}  {''.join(last)}")
    return cpu


def main() -> None:
    """Prints the table."""
    given = Path(sys.argv[1]) if sys.argv[1:] else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, make in [("made up", made_up)] + ([("real", lambda n: repeated(given, n))] if given else []):
            short, long = (measured(what, make(size), folder) for size in (10, 100))
            print(f"{what:<8} ten times the text takes {long / short:.1f} times as long")


if __name__ == "__main__":
    main()
