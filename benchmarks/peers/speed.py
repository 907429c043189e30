"""CuTe and linear layouts: how fast questions, compositions and conversions are: `python benchmarks/peers --speed`.

As in `run.py`, the column `x` is the ratio to the first row of its group, measured in the same run. Nothing is asserted
but the verdicts.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import layoutproof as lp
from benchmarks.peers.__main__ import Peer
from benchmarks.peers.questions import linear, question
from benchmarks.table import median_us, show
from layoutproof.algebra.cute.algebra import complement, composition, left_inverse
from layoutproof.algebra.cute.tiling import logical_divide, logical_product
from layoutproof.compiler.child import ask
from layoutproof.core.claim import Claim
from layoutproof.core.index_map import IndexMap
from layoutproof.layouts.cute.layout import CuteLayout, _index_map
from layoutproof.layouts.linear import _index_map as _linear_map
from layoutproof.properties import covers, in_bounds, injective, same_map
from layoutproof.questions.convert import convert
from layoutproof.registry.read import map_of
from layoutproof.solvers import bits

SIDE = 2**15
Row = tuple[str, str, float]


def best_us(question: Callable[[], object], repeat: int = 200) -> float:
    """Median time of one question asked again and again, in microseconds, after one run to load what it needs."""
    return median_us(lambda _: question(), [None] * repeat)


def swizzles(shape: str) -> list[object]:
    """The shape under every swizzle of 1 to 3 bits within its lowest 16 bits."""
    found = [(b, m, s) for b in (1, 2, 3) for m in range(8) for s in range(b, 9 - b)]
    return [lp.read_layout(f"Sw<{b},{m},{s}> o 0 o {shape}") for b, m, s in found]


def linears(xors: int) -> list[object]:
    """2**30 elements in three inputs: bases in some order, the first `xors` of them with a second bit."""
    pick = random.Random(20261121)
    found = []
    for _ in range(101):
        order = list(range(30)) if xors else pick.sample(range(30), 30)
        shift = pick.randint(1, 9)
        bases = [[1 << bit | (1 << bit + shift if k < xors else 0)] for k, bit in enumerate(order)]
        inputs = {"register": bases[:8], "lane": bases[8:13], "warp": bases[13:]}
        found.append(lp.read_layout({"linear": {"in": inputs, "out": ["offset"]}}))
    return found


def proved(*question: object, **options: object) -> None:
    """Ask, and insist on the verdict: a benchmark of wrong answers is worth nothing."""
    result = lp.ask(*question, **options)  # type: ignore[arg-type]
    if result.verdict is not lp.Verdict.PROVED:
        raise SystemExit(f"expected proved:\n{result}")


def question_rows() -> list[Row]:
    """Every question is about 2**30 elements, and every layout is new to it."""
    rows: list[Row] = []
    for group, shape in (
        ("swizzles of 2^30 elements", f"({SIDE},{SIDE}):({SIDE},1)"),
        ("swizzled tiles, 2^30 elements", f"((8,{SIDE // 8}),(64,{SIDE // 64})):((64,{8 * SIDE}),(1,512))"),
    ):
        for name in ("injective", "in_bounds", "covers", "bijective"):
            rows.append((group, name, median_us(lambda a, n=name: proved(n, a), swizzles(shape))))  # type: ignore[misc]
            _index_map.cache_clear()
    for group, xors in (("linear layouts, bit permutations", 0), ("linear layouts, 20 bases of two bits", 20)):
        for name in ("injective", "in_bounds", "covers", "bijective"):
            rows.append((group + ", 2^30 elements", name, median_us(lambda a, n=name: proved(n, a), linears(xors))))  # type: ignore[misc]
            _linear_map.cache_clear()
    swizzled, linear = (lp.read_layout(text := f"Sw<3,4,3> o 0 o ({SIDE},{SIDE}):({SIDE},1)"), convert(text, "linear"))
    rows.append(("same map", "swizzle as a linear layout, 2^30", best_us(lambda: proved("same_map", swizzled, linear))))
    xla, cute = (
        lp.read_layout("bf16[4096,11008]{1,0:T(8,128)(2,1)}"),
        convert("bf16[4096,11008]{1,0:T(8,128)(2,1)}", "cute"),
    )
    rows.append(("same map", "XLA T(8,128)(2,1) as CuTe", best_us(lambda: proved("same_map", xla, cute))))
    small = lp.read_layout("Sw<3,3,3> o 0 o (8,64):(64,1)")
    for engine in ("bits", "smt", "brute"):
        ask = best_us(lambda e=engine: proved("injective", small, engine=e), 5)  # type: ignore[misc]
        rows.append(("swizzle<3,3,3> of 512 elements", f"layoutproof {engine}", ask))
    return rows


PERMUTATION = [1 << 7 * k % 30 for k in range(30)]
CROSSED = [1 << k ^ (1 << k - 9 if k > 20 else 0) for k in range(30)]


def matrix_rows(triton: Peer) -> list[Row]:
    """A question about bit matrices of 2**30 elements: ours with the matrix made for it, with it known, and Triton's.

    Triton's layouts are matrices from the start: making one, as ours from a text's data, is in its first row, and the
    question alone in its second. Its rows are there where its package is installed.
    """
    rows: list[Row] = []
    for what, bases in (("a permutation", PERMUTATION), ("9 bases of two bits", CROSSED)):
        group = f"bit matrix, 2^30 elements, {what}"
        one = linear({"register": bases[:8], "lane": bases[8:13], "warp": bases[13:]}, 1 << 30)
        rows += engine_rows(group, map_of(lp.read_layout(one["ours"])), map_of(lp.read_layout(one["ours"])))
        if triton.installed:
            asked = [question(group, kind, one, name=what) for kind in ("injective", "covers")]
            asked.append(question(group, "same_map", one, one, name=what))
            # the truth is by construction: each basis has a highest bit of its own
            for question_, answer in zip(asked, ask(triton.child(60.0), asked, dict), strict=True):
                if answer.value is None or answer.value["value"] is not True:
                    raise SystemExit(f"Triton: {answer.problem or answer.value}")
                rows.append((group, f"Triton: {question_['kind']}, made", answer.value["us"]))
                rows.append((group, f"Triton: {question_['kind']}, known", answer.value["known"]))
    group = "bit matrix, 2^30 elements, Sw<3,4,3>"
    swizzled = [map_of(lp.read_layout(f"Sw<3,4,3> o 0 o ({SIDE},{SIDE}):({SIDE},1)")) for _ in range(2)]
    return rows + engine_rows(group, *swizzled)


def engine_rows(group: str, m: IndexMap, other: IndexMap) -> list[Row]:
    """The engine of bits on the claims of one map, and that it is another one."""
    rows: list[Row] = []
    for name, claims in (
        ("injective", injective.claims(m)),
        ("covers", covers.claims(m)),
        ("in_bounds", in_bounds.claims(m)),
        ("same_map", same_map.claims(m, other)),
    ):

        def decided(claim: Claim = claims[0]) -> None:
            assert bits.decide(claim) is None

        def first(claim: Claim = claims[0]) -> None:
            bits._placed.cache_clear()
            bits._independent.cache_clear()
            assert bits.decide(claim) is None

        rows.append((group, f"{name}, matrix made", best_us(first)))
        rows.append((group, f"{name}, matrix known", best_us(decided)))
    return rows


def algebra_rows() -> list[Row]:
    """Each result is checked against its law before it is returned; that is in the time."""
    a, b = CuteLayout((2**20, 2**20, 2**20), (2**40, 1, 2**20)), CuteLayout((2**30, 2**30), (2**30, 1))
    tile = CuteLayout((8, 16), (1, 64))
    wrong = CuteLayout((6, 2), (1, 7)), CuteLayout((3, 2), (2, 3))
    calls: list[tuple[str, Callable[[], object]]] = [
        ("composition, 2^60 elements", lambda: composition(a, b)),
        ("composition refused, cutlass#2955", lambda: composition(*wrong)),
        ("complement", lambda: complement(tile, 4096)),
        ("left_inverse", lambda: left_inverse(tile)),
        ("logical_divide, 2^20 elements", lambda: logical_divide(CuteLayout(2**20, 1), tile)),
        ("logical_product", lambda: logical_product(tile, CuteLayout((64, 64), (64, 1)))),
    ]
    return [("algebra", name, best_us(call)) for name, call in calls]


def conversion_rows() -> list[Row]:
    """Reading, converting and the proof."""
    text = "bf16[4096,8192]{1,0:T(8,128)(2,1)}"
    rows = [
        ("conversion of " + text, f"to {to}", best_us(lambda t=to: convert(text, t)))
        for to in ("cute", "axe", "linear")
    ]  # type: ignore[misc]
    cute = str(convert(text, "cute"))
    return [*rows, ("conversion of " + text, "back from cute", best_us(lambda: convert(cute, "xla"), 20))]


def show_all(triton: Peer, as_json: bool) -> None:
    """Print the table. triton: who is asked about bit matrices."""
    show([*matrix_rows(triton), *question_rows(), *algebra_rows(), *conversion_rows()], as_json)
