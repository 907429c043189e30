"""Mutants of real dumps against the gate: `python benchmarks/gate_mutants.py [--each N] [--seed S] [FILE|FOLDER ..]`.

Each mutant is one edit by a named operator (`tests/changes/mutants.py`). One that changes what a program computes,
costs or promises must be denied or unknown, or a warning where the class is one (constants, bodies of kernels); one
that changes nothing must be green. FILE: dumps of a compiler, packed by gzip or not; by default those of the tests.
The exit code is 1 where a mutant is let pass or an edit of nothing is not green.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main() -> int:
    """Prints a table: operator, mutants, what became of them; and what should not be."""
    from tests.changes.mutants import ALIKE, MEANING, SEEN_NOT_DENIED, mutants, verdict

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=[ROOT / "tests" / "cases" / "hlo"])
    parser.add_argument("--each", type=int, default=3, help="mutants of each operator and dump")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    paths = [p for each in given.files for p in (sorted(each.glob("*.txt*")) if each.is_dir() else [each])]
    table: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for path in paths:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        for operators in (MEANING, ALIKE):
            for name, new in mutants(text, operators, given.each, given.seed):
                word, judged = verdict(text, new)
                table[name, word] += 1
                wanted = ("green",) if operators is ALIKE else ("denied", "unknown")
                if word in wanted or (name in SEEN_NOT_DENIED and word == "warned"):
                    continue
                wrong += 1
                one, other = next((a, b) for a, b in zip(text.splitlines(), new.splitlines(), strict=False) if a != b)
                kinds = sorted({f"{f.question} {f.subject}" for f in judged})[:5]
                print(
                    f"{name}: {word} {kinds} {path.name}\n    {one.strip()[:200]}\n    {other.strip()[:200]}",
                    flush=True,
                )
    words = ("denied", "unknown", "warned", "green")
    for names in (MEANING, ALIKE):
        for name in names:
            counts = {word: table[name, word] for word in words}
            print(f"{name:<20} {sum(counts.values()):>6} " + " ".join(f"{word} {n}" for word, n in counts.items() if n))
        total = {word: sum(table[name, word] for name in names) for word in words}
        print(f"{'all':<20} {sum(total.values()):>6} " + " ".join(f"{word} {n}" for word, n in total.items() if n))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
