"""Does memory grow with the questions? `python benchmarks/memory.py [--questions N] [--only KIND]`

One process asks N different questions, no two alike: layouts of constant and of symbolic sizes, strides, index maps,
pairs, shardings over devices in an order of their own, and questions that isl or z3 has to decide. At 10,000, wherever
their number has doubled since, and at the end, it prints how much memory the process holds (resident, after a
collection), and how many questions a second it answered since the row before. A row that is higher than that of 10,000
is a memo without a bound.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

os.environ["LAYOUTPROOF_CACHE"] = "off"

import layoutproof as lp

FIRST = 10_000
DEVICES = 16


def _extents(k: int) -> tuple[int, int]:
    """A pair of sizes of its own for each k, all below 1,100."""
    return 17 + k % 1009, 5 + k // 1009 % 1021


def _padded(k: int) -> None:
    rows, columns = _extents(k)
    lp.ask("padding", f"bf16[{rows},{columns}]{{1,0:T(8,128)(2,1)}}")


def _symbolic(k: int) -> None:
    rows, columns = _extents(k)
    lp.ask("in_bounds", f"f32[{rows}*N,{columns}]{{1,0:T(8,128)}}")


def _strided(k: int) -> None:
    rows, columns = _extents(k)
    lp.ask("injective", f"f32[{rows % 64 + 2},{columns % 64 + 2}] strides ({k % 9973 + 3},{k // 9973 % 97 + 2})")


def _by_isl(k: int) -> None:
    rows, columns = _extents(k)
    lp.ask("injective", f"(i < {rows}*N, j < {columns}) -> (i * {columns} + j)", engine="isl")


def _by_smt(k: int) -> None:
    rows, columns = _extents(k)
    lp.ask("injective", f"f32[{rows}*N,{columns}]{{1,0:T(8,128)}}", engine="smt")


def _mapped(k: int) -> None:
    rows, columns = _extents(k)
    lp.ask("injective", f"(i < {rows}, j < {columns}) -> ((i * {columns} + j) // 8, (i * {columns} + j) % 8)")


def _paired(k: int) -> None:
    rows, columns = _extents(k)
    lp.ask("bitcast", f"f32[{rows},8,{columns}]{{2,1,0:T(8,128)}}", f"f32[{8 * rows},{columns}]{{1,0:T(8,128)}}")


def _sharded(k: int) -> None:
    # the k-th order of the devices, in the factorial number system
    left, order = [*range(DEVICES)], []
    for size in range(DEVICES, 0, -1):
        k, at = divmod(k, size)
        order.append(str(left.pop(at)))
    lp.ask("owned", f"f32[{DEVICES},8] sharded {{devices=[{DEVICES},1]{','.join(order)}}}")


KINDS: Mapping[str, Callable[[int], None]] = {
    "padded": _padded,
    "symbolic": _symbolic,
    "strided": _strided,
    "mapped": _mapped,
    "paired": _paired,
    "sharded": _sharded,
    "by_isl": _by_isl,
    "by_smt": _by_smt,
}


def resident() -> float:
    """MiB that the process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def main() -> int:
    """Ask, and print a row at each doubling."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=200_000)
    parser.add_argument("--only", choices=KINDS, action="append")
    options = parser.parse_args()
    kinds = [KINDS[name] for name in options.only or KINDS]
    ends = [min(FIRST, options.questions)]
    while ends[-1] < options.questions:
        ends.append(min(2 * ends[-1], options.questions))
    print(f"{'questions':>9}  {'MiB':>6}  {'a second':>8}")
    done, start = 0, time.perf_counter()
    for end in ends:
        before = done
        for k in range(before, end):
            kinds[k % len(kinds)](k // len(kinds))
        done = end
        gc.collect()
        now = time.perf_counter()
        print(f"{done:>9,}  {resident():>6.1f}  {(done - before) / (now - start):>8.0f}", flush=True)
        start = time.perf_counter()
    return 0


if __name__ == "__main__":
    sys.exit(main())
