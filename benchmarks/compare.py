"""Two trees side by side, in one run: `python benchmarks/compare.py OTHER_TREE [--rounds 3]`.

Runs `run.py` of this tree by turns on this tree and on the other one (a checkout of another commit), and prints the
best of the rounds for each row: what else the machine does at a time falls on both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def rows_of(tree: Path) -> dict[tuple[str, str], float]:
    """(group, what) -> microseconds, of one run on a tree."""
    command = [sys.executable, str(HERE / "run.py"), "--json", "--table", "1000000"]
    found = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(tree)}, cwd=HERE, capture_output=True, text=True, check=True
    )
    return {(row["group"], row["what"]): row["microseconds"] for row in json.loads(found.stdout)}


def shown(micro: float) -> str:
    return f"{micro:.1f} us" if micro < 1000 else f"{micro / 1000:.1f} ms"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, metavar="OTHER_TREE")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    best: list[dict[tuple[str, str], float]] = [{}, {}]
    for _ in range(options.rounds):
        for known, tree in zip(best, (options.other.resolve(), HERE.parent), strict=True):
            for key, micro in rows_of(tree).items():
                known[key] = min(micro, known.get(key, micro))
    print("| group | what | before | after | after / before |\n|---|---|---:|---:|---:|")
    for key, after in best[1].items():
        before = best[0][key]
        print(f"| {key[0]} | {key[1]} | {shown(before)} | {shown(after)} | {after / before:.2f} |")


if __name__ == "__main__":
    main()
