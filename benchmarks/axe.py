"""How fast Axe layouts are decided, beside TVM where it is importable, in one run: `python benchmarks/axe.py`.

Medians in microseconds over many calls. Absolute times depend on the machine; what carries over is the ratio to TVM and
that layouts of 10**12 elements take no longer. Every answer is checked; nothing is asserted about time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

from layoutproof.algebra.axe.canonical_form import canonical, fibers_disjoint, same
from layoutproof.algebra.axe.grouping import group
from layoutproof.algebra.axe.locate import backward, forward
from layoutproof.algebra.axe.recognise import is_tile_inner, is_tile_outer
from layoutproof.algebra.axe.slices import slice_
from layoutproof.algebra.axe.sums import direct_sum
from layoutproof.algebra.axe.tiling import tile
from layoutproof.layouts import axe

FIG2 = "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1@m)] + R[2:4@warpid] + 5@warpid"
RESPELLED = "S[(8,2,2,2,2):(4@laneid,1@warpid,2@laneid,1@laneid,1@m)] + R[2:-4@warpid] + 9@warpid"
SEVEN = "S[(8,8,8,8,4,4,2):(960@m,4@m,120@m,4@laneid,30@m,1@laneid,1@m)]"
HUGE = "S[(1000000,1000000):(1000000,1)]"
Row = tuple[str, str, float]


def median_us(question: Callable[[], Any], wanted: Any = None, calls: int = 2001) -> float:
    """Median time of one call, in microseconds; the answer must be truthy, or `wanted`."""
    answer = question()
    if not (answer if wanted is None else answer == wanted):
        raise SystemExit(f"wrong answer: {answer}")
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        question()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def ours() -> list[Row]:
    fig2, respelled, seven, huge = (axe.read(text) for text in (FIG2, RESPELLED, SEVEN, HUGE))
    square, atom = axe.read("S[(8,8):(8,1)]"), axe.read("S[(4,2,2,4):(16,8,1,2)]")
    tiled = tile(square, (8, 8), atom, (8, 8))
    grid = axe.read("S[(2,8,3,8):(192,8,64,1)]")
    column = axe.read("S[1000000000000:2]")
    if not tiled:
        raise SystemExit(str(tiled))
    rows = [
        ("canonicalise", "Fig2-L", median_us(lambda: canonical(fig2))),
        ("canonicalise", "7 iters", median_us(lambda: canonical(seven))),
        ("canonicalise", "10^12 elements", median_us(lambda: canonical(huge))),
        ("equality", "Fig2-L, respelled", median_us(lambda: same(fig2, respelled), True)),
        ("equality", "10^12 elements", median_us(lambda: same(huge, axe_million), True)),
        ("fibers disjoint", "Fig2-L", median_us(lambda: fibers_disjoint(fig2), True)),
        ("fibers disjoint", "7 iters", median_us(lambda: fibers_disjoint(seven), True)),
        ("fibers disjoint", "10^12 elements", median_us(lambda: fibers_disjoint(huge), True)),
        ("group", "Fig2-L by (8,16)", median_us(lambda: group(fig2, (8, 16)))),
        ("tile", "(8,8) over an atom of 4 iters", median_us(lambda: tile(square, (8, 8), atom, (8, 8)))),
        ("tile", "Fig2-L twice", median_us(lambda: tile(square, (8, 8), fig2, (8, 16)))),
        ("is_tile_inner", "4 iters", median_us(lambda: is_tile_inner(atom, tiled, (64, 64), (8, 8)))),
        ("is_tile_outer", "4 iters", median_us(lambda: is_tile_outer(square, tiled, (64, 64), (8, 8)))),
        ("direct sum", "(8,8) and 4 iters", median_us(lambda: direct_sum(square, (8, 8), atom, (8, 8)))),
        ("slice", "2-D, [2,6)x[4,12)", median_us(lambda: slice_(grid, (16, 24), [(2, 6), (4, 12)]))),
        ("slice", "2-D, [0,8)x[8,24)", median_us(lambda: slice_(grid, (16, 24), [(0, 8), (8, 24)]))),
        ("slice", "10^12 elements", median_us(lambda: slice_(column, (10**12,), [(5, 10**12 - 5)]))),
        ("forward", "Fig2-L (2,9)", median_us(lambda: forward(fig2, (2, 9), (8, 16)))),
        ("backward", "Fig2-L", median_us(lambda: backward(fig2, {"warpid": 6, "laneid": 8, "m": 1}, (8, 16)))),
        ("read the text", "Fig2-L", median_us(lambda: axe.read(FIG2))),
    ]
    return [(what, case, micro) for what, case, micro in rows]


axe_million = axe.read("S[(1000,1000,1000000):(1000000000,1000000,1)]")


def tvm_rows() -> list[Row]:
    """The same questions put to TVM. Its equality is structural, and says no to Fig2-L respelled."""
    from tvm.tirx.layout import R, S, TileLayout, laneid, m, warpid
    from tvm_ffi import structural_equal as equal

    fig2 = TileLayout(S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1 @ m)] + R[2 : 4 @ warpid] + 5 @ warpid)
    square, atom = TileLayout(S[(8, 8) : (8, 1)]), TileLayout(S[(4, 2, 2, 4) : (16, 8, 1, 2)])
    tiled = atom.tile(square, (8, 8), (8, 8))
    grid = TileLayout(S[(2, 8, 3, 8) : (192, 8, 64, 1)])
    return [
        ("canonicalise", "Fig2-L, TVM", median_us(lambda: fig2.canonicalize())),
        (
            "equality",
            "Fig2-L and itself, TVM",
            median_us(lambda: equal(fig2.canonicalize(), fig2.canonicalize())),
        ),
        ("group", "Fig2-L by (8,16), TVM", median_us(lambda: fig2.group([8, 16]))),
        ("tile", "(8,8) over an atom of 4 iters, TVM", median_us(lambda: atom.tile(square, (8, 8), (8, 8)))),
        ("is_tile_inner", "4 iters, TVM", median_us(lambda: atom.is_tile_inner(tiled, (64, 64), (8, 8)))),
        ("direct sum", "(8,8) and 4 iters, TVM", median_us(lambda: atom.direct_sum(square, (8, 8), (8, 8)))),
        ("slice", "2-D, [0,8)x[8,24), TVM", median_us(lambda: grid.slice([16, 24], [(0, 8), (8, 24)]))),
    ]


def main() -> None:
    """Print the table; `--json` for machines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = ours()
    if importlib.util.find_spec("tvm") is not None:
        rows += tvm_rows()
    if options.json:
        print(json.dumps([dict(zip(("group", "what", "microseconds"), row, strict=True)) for row in rows]))
        return
    system = f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
    print(f"{system}, {time.strftime('%Y-%m-%d')}")
    print("| operation | case | median |\n|---|---|---:|")
    for what, case, micro in sorted(rows, key=lambda row: [r[0] for r in rows].index(row[0])):
        print(f"| {what} | {case} | {micro:.1f} us |")


if __name__ == "__main__":
    main()
