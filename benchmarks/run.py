"""How fast the engines decide, beside raw isl, raw z3 and enumeration, in one run: `python benchmarks/run.py`.

Absolute times depend on the machine and what else it does; the column `x` is the ratio to the first row of its group,
measured in the same run, and that is what to quote. Nothing here is asserted: the tests never look at a clock.
"""

from __future__ import annotations

import argparse
import importlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from table import median_us, show

import layoutproof as lp

FORMATS = (
    ("f32", "T(8,128)"),
    ("f32", "T(4,128)"),
    ("bf16", "T(8,128)(2,1)"),
    ("s8", "T(8,128)(4,1)"),
    ("s8", "T(32,128)(4,1)"),
)


def corpus(count: int, low: int, high: int, ranks: tuple[int, ...] = (2, 2, 2, 3, 4)) -> list[object]:
    """Distinct layouts as real programs have them: mostly row-major, TPU tilings, extents between low and high."""
    pick = random.Random(20261120)
    layouts = []
    for _ in range(count):
        kind, tiles = pick.choice(FORMATS)
        rank = pick.choice(ranks)
        order = list(range(rank))[::-1] if pick.random() < 0.7 else pick.sample(range(rank), rank)
        dims = ",".join(str(pick.randint(low, high)) for _ in order)
        layouts.append(lp.read_layout(f"{kind}[{dims}]{{{','.join(map(str, order))}:{tiles}}}"))
    return layouts


def best_us(question: Callable[[], object], repeat: int = 5) -> float:
    """Best of a few runs, in microseconds: for questions too slow to ask a thousand times."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        question()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def proved(*question: object, **options: object) -> None:
    """Ask, and insist on the verdict: a benchmark of wrong answers is worth nothing."""
    result = lp.ask(*question, **options)  # type: ignore[arg-type]
    if result.verdict is not lp.Verdict.PROVED:
        raise SystemExit(f"expected proved:\n{result}")


def constant_rows() -> list[tuple[str, str, float]]:
    rows = []
    for name in ("injective", "in_bounds", "padding"):
        rows.append(
            (
                "constant layouts",
                f"{name}, 1,000 layouts",
                median_us(lambda v, n=name: proved(n, v), corpus(1001, 2, 20000)),
            )
        )
    text = "bf16[100,300]{1,0:T(8,128)(2,1)}"
    for name in ("injective", "in_bounds", "padding"):
        again = median_us(lambda v, n=name: proved(n, v), [text] * 2001)
        rows.append(("the same text again", f"{name} {text}", again))
    small, huge = (corpus(1001, *bounds, ranks=(3,)) for bounds in ((10, 11), (10**6 - 1, 10**6 + 1)))
    rows.append(("size", "injective at 10^3 elements", median_us(lambda v: proved("injective", v), small)))
    rows.append(("size", "injective at 10^18 elements", median_us(lambda v: proved("injective", v), huge)))
    many = [lp.read_layout(_many_digits(k)) for k in range(101)]
    rows.append(("size", "injective, 72 digits", median_us(lambda v: proved("injective", v), many)))
    pairs = [(v, lp.read_layout(f"{v}".replace("(2,1)}", "(2,128)(2,1)}"))) for v in _packed(1001)]
    rows.append(("equality", "same_map of two spellings", median_us(lambda p: proved("same_map", *p), pairs)))  # type: ignore[misc]
    texts = [str(v) for v in corpus(1001, 2, 20000)]
    rows.append(("text", "read_layout, 1,000 texts", median_us(lp.read_layout, texts)))
    rows.append(("text", "injective of a text, 1,000 texts", median_us(lambda t: proved("injective", t), texts)))
    return rows


def refuted_rows() -> list[tuple[str, str, float]]:
    """Random Axe layouts that share places: yes or no, and the smallest two elements that do, in all."""
    try:
        module = importlib.import_module("layoutproof.algebra.axe.canonical_form")
    except ModuleNotFoundError:  # an earlier tree, see compare.py
        module = importlib.import_module("layoutproof.algebra.axe.canonical")
    fibers_disjoint = module.fibers_disjoint
    pick = random.Random(20261122)
    layouts: list[Any] = []
    while len(layouts) < 100:
        iters = [(pick.randint(2, 40), pick.choice((1, 2, 3, 4, 6, 16, 100)), pick.choice("mw")) for _ in range(5)]
        shard, copies = (
            f"({','.join(str(e) for e, _, _ in part)}):({','.join(f'{s}@{a}' for _, s, a in part)})"
            for part in (iters[:3], iters[3:])
        )
        layout = lp.read_layout(f"S[{shard}] + R[{copies}]" if len(layouts) % 2 else f"S[{shard}]")
        if not fibers_disjoint(layout):
            layouts.append(layout)

    def refuted() -> None:
        for layout in layouts:
            if lp.ask("injective", layout).verdict is not lp.Verdict.REFUTED:
                raise SystemExit(f"expected refuted: {layout}")

    group = "100 refuted Axe layouts"
    whether = best_us(lambda: [fibers_disjoint(layout) for layout in layouts])
    return [(group, "axe.canonical, yes or no", whether), (group, "ask, with the counterexample", best_us(refuted, 3))]


def random_rows() -> list[tuple[str, str, float]]:
    """Random questions about layouts of every language, as the fuzz asks them: proved, refuted or unknown."""
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from tests.questions.questions_at_random import question

    times: dict[bool, list[float]] = {False: [], True: []}
    for number in range(10_000):
        asked = question(random.Random(f"20261124/{number}"))
        texts = [layout.text for layout in asked.layouts]
        start = time.perf_counter()
        lp.ask(asked.property, *texts, where=asked.where, **asked.options)
        times[bool(asked.symbols())].append((time.perf_counter() - start) * 1e6)
    rows = []
    for symbolic, found in times.items():
        # the first ones load the engines
        found = sorted(found[len(found) // 20 :])
        group = f"{len(found):,} random questions, {'with size symbols' if symbolic else 'constant sizes'}"
        rows += [(group, f"{part:.0%}", found[int(len(found) * part)]) for part in (0.5, 0.9, 0.99)]
        rows.append((group, "slowest", found[-1]))
    return rows


def _many_digits(k: int) -> str:
    dims = ",".join(str(2**12) for _ in range(6))
    tiles = "".join(f"({','.join([str(2**level)] * 6)})" for level in range(11, 0, -1))
    return f"f32[{dims}]{{5,4,3,2,1,0:T{tiles}S({1 + k % 100})}}"


def _packed(count: int) -> list[str]:
    pick = random.Random(7)
    return [f"bf16[{pick.randint(2, 9999)},{pick.randint(2, 9999)}]{{1,0:T(8,128)(2,1)}}" for _ in range(count)]


def all_shapes_rows() -> list[tuple[str, str, float]]:
    text = "bf16[N,M]{1,0:T(8,128)(2,1)}"
    rows = [
        (
            "all shapes, bf16[N,M] T(8,128)(2,1) injective",
            f"layoutproof {engine}",
            best_us(lambda e=engine: proved("injective", text, engine=e)),
        )
        for engine in ("digits", "isl", "smt")
    ]
    free = ("bf16[a,b,c]{2,1,0:T(8,128)(2,1)}", "bf16[a*b,c]{1,0:T(8,128)(2,1)}")
    rows.append(
        (
            "all shapes, reshape is free",
            "bitcast where b % 8 == 0",
            best_us(lambda: proved("bitcast", *free, where="b % 8 == 0")),
        )
    )
    return rows


ARGUED = (
    ("in_bounds", "f32[N,M] strides (M-1,1)", "proved", "corners"),
    ("injective", "(N,(2,M)):(2*M,(1,92))", "refuted", "a common multiple of strides"),
    ("owned", "f32[N,M] sharded {devices=[4,4]<=[4,4]T(1,0)}", "proved", "digits of constant extent"),
    ("owned", "f32[N,M] sharded {devices=[2,3]<=[2,3]T(1,0)}", "proved", "joined digits"),
    (
        "injective",
        "(3,3,3,3,3,3,3,3,3,3):(249092,571187,619737,194877,495072,963418,62403,487214,607839,284177)",
        "",
        "59,049 places sorted",
    ),
    ("injective", "(i < 1000000) -> (i*i,)", "proved", "10^6 places sorted"),
    ("injective", "(i < 9900000) -> (i*i,)", "proved", "9.9 * 10^6 places sorted"),
    ("covers", "Sw<3,3,3> o (1000,3000):(3000,1)", "proved", "3 * 10^6 places marked"),
    ("covers", "Sw<3,3,3> o (24576,40960):(40960,1)", "proved", "counted, 10^9 elements"),
)
"""Questions that took seconds, or that nobody could decide: (property, layout, verdict, the argument)."""


def argued_rows() -> list[tuple[str, str, float]]:
    rows = []
    for name, layout, verdict, argument in ARGUED:

        def asked(name: str = name, layout: str = layout, verdict: str = verdict) -> None:
            found = lp.ask(name, layout).verdict.value
            if found == "unknown" or verdict not in ("", found):
                raise SystemExit(f"expected {verdict} of {name} {layout}, not {found}")

        shown = layout if len(layout) < 50 else f"{layout[:18]}...{layout[-12:]}"
        rows.append((f"{name} {shown}", argument, best_us(asked, 3)))
    return rows


def peer_rows() -> list[tuple[str, str, float]]:
    """f32[250,500] in 8x128 tiles: the same question put to the raw libraries."""
    import islpy as isl
    import numpy as np
    import z3

    group = "f32[250,500] T(8,128) injective"
    text = "f32[250,500]{1,0:T(8,128)}"

    def raw_isl() -> None:
        m = isl.Map(
            "{ [i,j] -> [4096*(floor(i/8)) + 1024*floor(j/128) + 128*(i mod 8) + (j mod 128)] : 0<=i<250 and 0<=j<500 }"
        )
        if not m.is_injective():
            raise SystemExit("raw isl disagrees")

    def raw_z3() -> None:
        solver = z3.Solver()
        a, b, c, d = z3.BitVecs("a b c d", 40)
        for value, bound in ((a, 250), (b, 500), (c, 250), (d, 500)):
            solver.add(z3.ULT(value, bound))

        def offset(i: z3.BitVecRef, j: z3.BitVecRef) -> z3.BitVecRef:
            return z3.LShR(i, 3) * 4096 + z3.LShR(j, 7) * 1024 + (i & 7) * 128 + (j & 127)

        solver.add(offset(a, b) == offset(c, d), z3.Or(a != c, b != d))
        if solver.check() != z3.unsat:
            raise SystemExit("raw z3 disagrees")

    def enumeration() -> None:
        i, j = np.ogrid[:250, :500]
        offsets = i // 8 * 4096 + j // 128 * 1024 + i % 8 * 128 + j % 128
        if np.unique(offsets).size != 250 * 500:
            raise SystemExit("enumeration disagrees")

    rows = [(group, "layoutproof digits", best_us(lambda: proved("injective", text), 50))]
    rows += [
        (group, f"layoutproof {e}", best_us(lambda e=e: proved("injective", text, engine=e))) for e in ("isl", "smt")
    ]
    rows += [(group, "raw isl", best_us(raw_isl)), (group, "raw z3 (bit-vectors)", best_us(raw_z3))]
    return [*rows, (group, "numpy enumeration", best_us(enumeration))]


def table_rows(elements: int) -> list[tuple[str, str, float]]:
    import numpy as np

    side = int(elements**0.5)
    layout = lp.read_layout(f"f32[{side},{side}]{{1,0:T(8,128)}}")
    group = f"table of {side}x{side} offsets"
    rows = [(group, "numpy.arange of the same bytes", best_us(lambda: np.arange(side * side, dtype=np.int64), 3))]
    return [*rows, (group, "layoutproof.table", best_us(lambda: lp.table(layout), 3))]


def process_rows() -> list[tuple[str, str, float]]:
    def run(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    rows = [
        ("start", "bare interpreter", best_us(run("-c", "pass"), 7)),
        ("start", "import layoutproof", best_us(run("-c", "import layoutproof"), 7)),
        (
            "start",
            "layoutproof ask injective",
            best_us(run("-m", "layoutproof", "ask", "injective", "bf16[4096,11008]{1,0:T(8,128)(2,1)}"), 7),
        ),
    ]
    with tempfile.TemporaryDirectory() as folder:
        kinds = ("injective", "in_bounds", "padding", "bijective", "fits_int64")
        claims = [f'  - {kinds[k % 5]}: "{layout}"' for k, layout in enumerate(corpus(1000, 2, 500))]
        spec = Path(folder, "many.yaml")
        spec.write_text("source: benchmark\nchecks:\n" + "\n".join(claims) + "\n")
        command = ("-m", "layoutproof", "check", str(spec))
        rows.append(("start", "layoutproof check, 1,000 claims", best_us(run(*command), 5)))
    return rows


def main() -> None:
    """Print the table; `--json` for machines; `--table N` sets the elements of the table row (800 MB at 10^8)."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--table", type=int, default=10**8)
    parser.add_argument("--argued", action="store_true", help="only the questions that once were slow")
    parser.add_argument("--random", action="store_true", help="only random questions: the median and the slowest ones")
    options = parser.parse_args()
    if options.argued or options.random:
        show(argued_rows() if options.argued else random_rows(), options.json)
        return
    rows = [
        *constant_rows(),
        *refuted_rows(),
        *all_shapes_rows(),
        *argued_rows(),
        *peer_rows(),
        *table_rows(options.table),
        *process_rows(),
    ]
    show(rows, options.json)


if __name__ == "__main__":
    main()
