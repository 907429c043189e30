"""Vectors in registers, and relayouts that are proved to move nothing: held against a literal walk of registers."""

from __future__ import annotations

import itertools
import random

import pytest

from layoutproof.core.result import Verdict
from layoutproof.mosaic.vectors import free, read_vector

PLAIN = "32,{0,0},(8,128)"


@pytest.mark.parametrize(
    ("before", "after", "vector", "verdict"),
    [
        # replicated to plain: the registers are there, under fewer names
        ("32,{*,*},(8,128)", PLAIN, "512x512xf32", "proved"),
        ("32,{0,*},(8,128)", PLAIN, "16x512xf32", "proved"),
        ("32,{*,0},(8,128)", PLAIN, "16x512xf32", "proved"),
        ("32,{*,*},(8,128),-2", "32,{0,*},(8,128),-1", "256xf32", "proved"),
        ("16,{0,*},(8,128)", "16,{0,0},(8,128)", "256x4096xbf16", "proved"),
        # and the other way round somebody has to spread the value
        (PLAIN, "32,{0,*},(8,128)", "16x1xf32", "refuted"),
        (PLAIN, "32,{*,*},(8,128)", "1x1xf32", "refuted"),
        # another tile, another start, of plain ones
        ("16,{0,0},(8,128)", "16,{0,0},(16,128)", "512x512xbf16", "refuted"),
        (PLAIN, "32,{0,0},(4,128)", "64x256xf32", "refuted"),
        (PLAIN, "32,{0,64},(8,128)", "64x64xf32", "refuted"),
        ("32,{0,*},(8,128)", "32,{3,0},(8,128)", "16x512xf32", "refuted"),
        # what fills one tile lies the same in a larger one
        ("16,{0,0},(8,128)", "16,{0,0},(16,128)", "8x128xbf16", "proved"),
        (PLAIN, "32,{0,0},(1,128)", "1x128xf32", "proved"),
        (PLAIN, "32,{0,0},(1,128)", "1x256xf32", "refuted"),
        # what is not modelled is never called free
        ("16,{0,0},(1,256)", "16,{0,0},(16,128)", "8x128xbf16", "unknown"),
        ("none", PLAIN, "8x128xf32", "unknown"),
    ],
)
def test_what_a_relayout_costs(before: str, after: str, vector: str, verdict: str) -> None:
    """By refinement, and with a reason where it is not known."""
    found, reason = free(before, after, vector)
    assert found is Verdict(verdict)
    assert bool(reason) is (verdict == "unknown")


def places(text: str, dims: tuple[int, int], row: int, column: int) -> set[tuple[int, int, int, int, int]]:
    """Where an element lies: (register's row and column, sublane, lane, place in the lane), by filling registers."""
    of = read_vector(text, f"{dims[0]}x{dims[1]}xf32")
    packing = 32 // of.bits
    found = set()
    rows = range(of.rows) if of.sublane is None else [(row + of.sublane) % of.rows]
    for r, tile, lane in itertools.product(rows, range(of.tiles), range(128)):
        first = 0 if of.sublane is None else (row + of.sublane) // of.rows
        if of.lane is None:
            second = 0
        else:
            second, rest = divmod(column + of.lane, 128 * of.tiles)
            if rest != tile * 128 + lane:
                continue
        found.add((first, second, tile * (of.rows // packing) + r // packing, lane, r % packing))
    return found


def test_random_relayouts() -> None:
    """150 pairs: free exactly where each register of the second can be one of the first."""
    draw = random.Random(16)
    seen = set()
    for _ in range(150):
        bits = draw.choice([32, 16, 8])
        tiles = [rows for rows in (8, 16, 32) if rows * bits <= 256]
        starts = ["0", "0", "*", "4" if bits == 32 else "8"]
        texts = [
            f"{bits},{{{draw.choice(starts[:3])},{draw.choice(['0', '*', '5'])}}},({draw.choice(tiles)},128)"
            for _ in range(2)
        ]
        dims = (draw.choice([1, 8, 24]), draw.choice([1, 100, 300]))
        one, other = (read_vector(text, f"{dims[0]}x{dims[1]}xf32") for text in texts)
        keep = (one.sublane is not None, one.lane is not None)

        def named(place: tuple[int, ...], keep: tuple[bool, bool] = keep) -> tuple[int, ...]:
            return (place[0] * keep[0], place[1] * keep[1], *place[2:])

        some = itertools.product({0, dims[0] // 2, dims[0] - 1}, {0, dims[1] // 2, dims[1] - 1})
        holds = all(
            {named(p) for p in places(texts[1], dims, *at)} <= {named(p) for p in places(texts[0], dims, *at)}
            for at in some
        )
        verdict, _ = free(texts[0], texts[1], f"{dims[0]}x{dims[1]}xf{bits}")
        # a few elements refute; to prove takes all, which the walk does not look at
        assert verdict is not Verdict.UNKNOWN
        assert verdict is not Verdict.PROVED or holds, (texts, dims)
        assert holds or verdict is Verdict.REFUTED, (texts, dims)
        seen.add((verdict, other.lane is None))
    assert len(seen) >= 3
