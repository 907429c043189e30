"""Broken kernels, and whether `lp.repair` finds an edit that is judged right: the share by kind of fault.

    python benchmarks/repairs.py --count 40 --seed 1            drawn from the wrong kernels of `wrong_kernels`
    python benchmarks/repairs.py --only matmul                  of one kernel

Each is a file with one wrong edit; the search knows the file, the name, the arguments and the reference, and neither
the edit nor the right text. What it finds was judged by `kernels` and `same`. A repair counts as that of the line where
the edit undoes the fault's own lines. Prints one line for each, and the table of docs/howto/same.md.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.wrong_kernels.__main__ import kernels  # noqa: E402
from benchmarks.wrong_kernels.made import Kernel  # noqa: E402

FAULTS = {
    "an index or a block": ("lambda", "pl.ds", "grid=", "BlockSpec", ".at[", "program_id", "slots"),
    "a mask, a bound, a condition": ("where", "<", ">", "iota", "when", "=="),
    "a copy": (".wait", ".start", "copy"),
    "a sum or its start": ("zeros", "+=", "acc", "sum"),
}
"""Kind of fault -> what the text that the fault replaces holds; the first that fits. The others are of a value."""


def kind_of(old: str) -> str:
    """The kind of a fault, by the right text that it replaces."""
    return next((kind for kind, words in FAULTS.items() if any(word in old for word in words)), "a value")


def repaired(kernel: Kernel, wrong: str, folder: Path) -> tuple[bool, bool, int, str]:
    """(Whether an edit was judged right, whether it is of a faulty line, how many were tried, the edit in words)."""
    import layoutproof as lp

    text = kernel.text(wrong)
    path = folder / "wrong.py"
    path.write_text(text)
    found = lp.repair(f"{path}:{kernel.name}", *kernel.arguments, reference=kernel.reference)
    if found is None:
        return False, False, 0, ""
    new = kernel.wrong[wrong][1]
    first = text.count("\n", 0, text.index(new)) + 1 if new and new in text else 0
    near = first - 1 <= found.edit.line <= first + new.count("\n") + 1 if first else False
    return True, near, found.tried, found.edit.words


def main() -> int:
    """0 where the search ran to its end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="the name of a kernel")
    options = parser.parse_args()
    rows = [
        (kernel, wrong)
        for kernel in kernels().values()
        for wrong in kernel.wrong
        if kernel.kind(wrong) in ("", "order") and options.only in ("", kernel.name)
    ]
    random.Random(options.seed).shuffle(rows)
    every: Counter[str] = Counter()
    right: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for kernel, wrong in rows[: options.count]:
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            done, near, tried, words = repaired(kernel, wrong, Path(folder))
        kind = kind_of(kernel.wrong[wrong][0])
        every[kind] += 1
        right[kind] += done
        lines[kind] += near
        said = f"{tried} tried, {words}" if done else "none"
        seconds = time.process_time() - start
        print(f"{'repaired' if done else 'not':8} {kernel.name}, {wrong}: {said} ({seconds:.1f} s CPU)", flush=True)
    print("\n| what is wrong | kernels | repaired | at the line |\n|---|---:|---:|---:|")
    for kind in every:
        print(f"| {kind} | {every[kind]} | {right[kind]} | {lines[kind]} |")
    print(f"| all | {every.total()} | {right.total()} | {lines.total()} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
