"""Mutants of real dumps against the gate: `python benchmarks/gate_mutants.py [--each N] [--seed S] [FILE|FOLDER ..]`.

Each mutant is one edit by a named operator (`tests/gating/mutants.py`). One that changes what a program computes,
costs or promises must be denied or unknown, or a warning where the class is one (constants, bodies of kernels); one
that changes nothing must be green. Each is judged twice: as it is, and with every name and all metadata gone. FILE:
dumps of a compiler, packed by gzip or not, or JSON lines with `name`, `target` and `text`; by default those of the
tests. The exit code is 1 where a mutant is let pass or an edit of nothing is not green.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main() -> int:
    """Prints a table: operator, mutants, what became of them; and what should not be."""
    from tests.gating.mutants import ALIKE, MEANING, SEEN_NOT_DENIED, mutants, unnamed, verdict

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=[ROOT / "tests" / "cases" / "hlo"])
    parser.add_argument("--each", type=int, default=3, help="mutants of each operator and dump")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--target", action="append", help="of JSON lines those of a generation; may be repeated")
    given = parser.parse_args()
    table: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for of, text in texts(given.files, given.target):
        for operators in (MEANING, ALIKE):
            for name, new in mutants(text, operators, given.each, given.seed):
                for called, edited in ((name, new), (f"{name}, unnamed", unnamed(new))):
                    word, judged = verdict(text, edited)
                    table[called, word] += 1
                    wanted = ("green",) if operators is ALIKE else ("denied", "unknown")
                    if word in wanted or (name in SEEN_NOT_DENIED and word == "warned"):
                        continue
                    wrong += 1
                    lines = zip(text.splitlines(), new.splitlines(), strict=False)
                    one, other = next((a.strip()[:200], b.strip()[:200]) for a, b in lines if a != b)
                    kinds = sorted({f"{f.question} {f.subject}" for f in judged})[:5]
                    print(f"{called}: {word} {kinds} {of}\n    {one}\n    {other}", flush=True)
    words = ("denied", "unknown", "warned", "green")
    for names in ([f"{name}{more}" for name in kind for more in ("", ", unnamed")] for kind in (MEANING, ALIKE)):
        for name in names:
            counts = {word: table[name, word] for word in words}
            print(f"{name:<28} {sum(counts.values()):>6} " + " ".join(f"{word} {n}" for word, n in counts.items() if n))
        total = {word: sum(table[name, word] for name in names) for word in words}
        print(f"{'all':<28} {sum(total.values()):>6} " + " ".join(f"{word} {n}" for word, n in total.items() if n))
    return int(wrong > 0)


def texts(files: Sequence[Path], targets: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """(name, text) of each dump in some files and folders."""
    for path in (p for each in files for p in (sorted(each.glob("*.txt*")) if each.is_dir() else [each])):
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        if ".jsonl" not in path.name:
            yield path.name, text
            continue
        for row in map(json.loads, text.splitlines()):
            if not targets or row["target"] in targets:
                yield f"{row['name']} {row['target']}", row["text"]


if __name__ == "__main__":
    sys.exit(main())
