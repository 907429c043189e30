"""Properties of kernels against literal walks over small grids, written here without the product's maps."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from layoutproof.core.expression import parse_map
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Block, Kernel, Operand, Table
from layoutproof.pallas.judge import judge
from tests.questions.kernels_at_random import NAMES, any_kernel, kernel, operand, programs, starts, value

pytestmark = pytest.mark.slow

B = lambda size: Block("blocked", size)  # noqa: E731
REFUTED, PROVED, UNKNOWN = Verdict.REFUTED, Verdict.PROVED, Verdict.UNKNOWN


def one(k: Kernel, name: str, subject: str = "", **how: object) -> Finding | None:
    found = [f for f in judge(k, names=[name], **how) if not subject or f.subject == subject]  # type: ignore[arg-type]
    return min(found, key=lambda f: f.verdict) if found else None


@pytest.mark.parametrize("seed", range(250))
def test_revisits(seed: int) -> None:
    k = any_kernel(random.Random(seed), element=seed % 3 == 0)
    (o,) = k.outputs
    order = list(programs(k))
    blocks = [starts(k, o, p) for p in order]
    bad = [
        (order[a], order[b], order[c])
        for a, b, c in itertools.combinations(range(len(order)), 3)
        if blocks[a] == blocks[c] != blocks[b]
    ]
    found = one(k, "revisits")
    if found is None:
        assert not bad
        return
    assert found.verdict is (REFUTED if bad else PROVED)
    if bad:
        at = found.counterexample
        assert at is not None
        assert (at["first"], at["between"], at["last"]) == min(bad)


def hazards(k: Kernel, x: Operand, o: Operand, buffers: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    order = list(programs(k))
    into, out = [starts(k, x, p) for p in order], [starts(k, o, p) for p in order]
    found = []
    for w, r in itertools.product(range(len(order)), repeat=2):
        leaves = w == len(order) - 1 or out[w + 1] != out[w]
        begins = r == 0 or into[r - 1] != into[r]
        overlap = all(
            max(a, b, 0) < min(a + z.size, b + y.size, n) if z != y or z.kind == "element" else a == b
            for a, b, z, y, n in zip(out[w], into[r], o.block, x.block, o.dims, strict=True)
        )
        if leaves and begins and overlap and 1 <= r - w <= buffers:
            found.append((order[w], order[r]))
    return sorted(found)


@pytest.mark.parametrize("seed", range(250))
def test_alias_hazard(seed: int) -> None:
    rng = random.Random(seed)
    k = any_kernel(rng, element=seed % 3 == 0)
    (x,), (o,) = k.inputs, k.outputs
    x = replace(x, dims=o.dims, buffers=rng.choice((None, 1, 2, 3)))
    if rng.random() < 0.4 or len(x.block) != len(o.block):
        x = replace(x, block=o.block, index=o.index)
    k = replace(k, operands=(x, o), aliases=((0, 0),), semantics=())
    bad = hazards(k, x, o, x.buffers or 2)
    found = one(k, "alias_hazard")
    assert found is not None
    assert found.verdict is (REFUTED if bad else PROVED)
    if bad:
        at = found.counterexample
        assert at is not None
        assert (at["writer"], at["reader"]) == bad[0]


@pytest.mark.parametrize("seed", range(150))
def test_partial_blocks(seed: int) -> None:
    k = any_kernel(random.Random(seed))
    for o in k.operands:
        whole = 1
        for block in o.block:
            whole *= int(block.size)
        bad = []
        for p in programs(k):
            here = starts(k, o, p)
            sides = list(zip(here, o.block, o.dims, strict=True))
            if any(not 0 <= s <= n - b.size for s, b, n in sides if b.kind in ("blocked", "squeezed")):
                bad.append(p)
        found = one(k, "partial_blocks", o.name)
        verdict = PROVED if found is None else found.verdict
        assert verdict is (REFUTED if bad else PROVED)
        if bad:
            assert found is not None
            assert (found.severity, found.counterexample) == ("info", {"program": bad[0]})


@pytest.mark.parametrize("seed", range(60))
def test_index_int32(seed: int) -> None:
    rng = random.Random(seed)
    scale = rng.choice((1, 1000, 2**20, 2**29, 2**30, -(2**30)))
    text = rng.choice(
        (f"i * {scale}" if scale > 0 else f"0 - i * {-scale}", f"(i * {abs(scale)}) // {abs(scale)}", "i")
    )
    o = operand("o", "out", (10**12,), (B(rng.choice((1, 8, 128))),), f"(i) -> ({text},)")
    k = kernel((rng.choice((1, 2, 3, 9)),), o)
    bad = []
    for (i,) in programs(k):
        whole = value(o.index[0], {"i": i})
        steps = [whole, whole * int(o.block[0].size)]
        steps += [i * abs(scale)] if "i *" in text else []
        steps += [-i * abs(scale)] if text.startswith("0 -") else []
        if any(not -(2**31) <= v < 2**31 for v in steps):
            bad.append((i,))
    found = one(k, "index_int32")
    assert (PROVED if found is None else found.verdict) is (REFUTED if bad else PROVED)
    if bad:
        assert found is not None
        assert found.counterexample == {"program": bad[0]}


def test_index_int32_without_looking_at_every_program() -> None:
    o = operand("o", "out", (10**12,), (B(1),), "(i) -> (i * 4096,)")
    found = one(kernel((2**20,), o), "index_int32")
    assert found is not None
    assert found.counterexample == {"program": (524288,)}
    assert one(kernel((524288,), o), "index_int32").verdict is PROVED  # type: ignore[union-attr]


def test_parallel_prefix() -> None:
    o = operand("o", "out", (8, 8), (B(2), B(2)), "(i, j) -> (i, j)")

    def said(*words: str, grid: tuple[int, ...] = (4, 4), vmapped: tuple[int, ...] = ()) -> Verdict:
        found = one(replace(kernel(grid, o, semantics=words), vmapped=vmapped), "parallel_prefix")
        assert found is not None
        return found.verdict

    assert said("parallel", "arbitrary") is PROVED
    assert said("arbitrary", "parallel") is REFUTED
    assert said("arbitrary", "parallel", grid=(1, 4)) is PROVED
    assert said("arbitrary", "arbitrary", vmapped=(1,)) is REFUTED
    assert said() is PROVED


def test_grid_positive() -> None:
    o = operand("o", "out", (8,), (B(2),), "(i) -> (i,)")
    assert one(kernel((0,), o), "grid_positive").verdict is REFUTED  # type: ignore[union-attr]
    assert one(kernel((-1,), o), "grid_positive").verdict is REFUTED  # type: ignore[union-attr]
    assert one(kernel((4,), o), "grid_positive").verdict is PROVED  # type: ignore[union-attr]


def test_table_reads() -> None:
    t = Table("t", (4,), low=0, high=4)
    o = operand("o", "out", (8,), (B(2),), "(i) -> (t[i],)")
    assert one(kernel((4,), o, tables=(t,)), "table_reads").verdict is PROVED  # type: ignore[union-attr]
    found = one(kernel((5,), o, tables=(t,)), "table_reads")
    assert found is not None
    assert found.counterexample is not None
    assert found.counterexample["program"] == (4,)
    twice = operand("o", "out", (8,), (B(2),), "(i) -> (t[t[i]],)")
    assert {f.verdict for f in judge(kernel((4,), twice, tables=(t,)), names=["table_reads"])} == {PROVED}
    wide = replace(t, high=5)
    assert {
        f.verdict for f in judge(kernel((4,), twice, tables=(wide,)), names=["table_reads"], strict_tables=True)
    } >= {REFUTED}


@pytest.mark.parametrize("seed", range(40))
def test_tables_of_all_contents(seed: int) -> None:
    """What is said of every table is what holds for each table there is."""
    rng = random.Random(seed)
    entries, values = rng.randint(1, 3), rng.randint(1, 3)
    words = {w: rng.random() < 0.4 for w in ("monotone", "injective")}
    t = Table("t", (entries,), low=0, high=values, **words)
    grid = (entries, rng.randint(1, 2)) if rng.random() < 0.5 else (entries,)
    own = ", ".join(NAMES[: len(grid)])
    second = rng.choice(["0", NAMES[len(grid) - 1]])
    o = operand("o", "out", (rng.randint(1, 3), 2), (B(1), B(1)), f"({own}) -> (t[i], {second})")
    k = kernel(grid, o, tables=(t,), semantics=("parallel",) + ("arbitrary",) * (len(grid) - 1))
    contents = [
        row
        for row in itertools.product(range(values), repeat=entries)
        if (not t.monotone or list(row) == sorted(row)) and (not t.injective or len(set(row)) == len(row))
    ]
    wrong = {"blocks_in_bounds": False, "parallel_writes": False, "revisits": False}
    for row in contents:
        order = list(programs(k))
        blocks = [(row[p[0]], 0 if second == "0" else p[-1]) for p in order]
        wrong["blocks_in_bounds"] |= any(not (0 <= a < o.dims[0] and b < 2) for a, b in blocks)
        wrong["parallel_writes"] |= any(
            x == y and p[0] != q[0] for (p, x), (q, y) in itertools.product(zip(order, blocks, strict=True), repeat=2)
        )
        wrong["revisits"] |= any(
            blocks[a] == blocks[c] != blocks[b] for a, b, c in itertools.combinations(range(len(order)), 3)
        )
    for name, bad in wrong.items():
        found = one(k, name)
        if not contents:
            assert found is None or found.verdict is UNKNOWN
        elif found is None:
            assert not bad
        elif bad:
            # what a further assumption would settle is unknown, never proved
            assert found.verdict in (REFUTED, UNKNOWN)
            assert found.verdict is REFUTED or "assume" in found.reason or "refuted if t can be" in found.reason
        else:
            assert found.verdict is PROVED


def test_windows_of_targets() -> None:
    o = operand("o", "out", (64, 256), (B(8), B(128)), "(i, j) -> (i, j)")
    k = kernel((8, 2), replace(o, dtype="s8"))
    assert one(k, "block_shape", target="v5e", compiler="0.0.42.1").verdict is REFUTED  # type: ignore[union-attr]
    assert one(k, "block_shape", target="v5e", compiler="0.0.50.1").verdict is PROVED  # type: ignore[union-attr]
    wide = replace(o, dims=(1000, 5), block=(B(1000), B(5)), index=parse_map("(i, j) -> (0, 0)")[1])
    found = one(kernel((1, 1), wide), "relayout", target="v5e")
    assert found is not None
    assert (found.severity, found.verdict, found.figures) == (
        "warning",
        REFUTED,
        {"relayout_bytes": 544768},
    )
    big = replace(o, dims=(8192, 8192), block=(B(2048), B(2048)))
    budget = one(kernel((4, 4), big), "memory_budget", "VMEM", target="v5e")
    assert budget is not None
    assert budget.figures["bytes"] == 2 * 2048 * 2048 * 4
    assert budget.verdict is REFUTED
    assert "vmem_limit_bytes be 33554432 or more" in budget.fix


def test_element_windows_start_at_tiles() -> None:
    def verdicts(text: str, compiler: str = "0.0.42.1") -> list[Verdict]:
        block = (Block("element", 8), Block("element", 256))
        o = Operand("o", "out", (64, 256), "f32", block, parse_map(f"(i) -> ({text}, 0)")[1])
        return [f.verdict for f in judge(kernel((4,), o), names=["element_alignment"], target="v5e", compiler=compiler)]

    assert verdicts("i * 8 + 8", "0.0.52") == [PROVED, PROVED]
    assert verdicts("i * 8") == [PROVED, PROVED]
    assert verdicts("i * 8 + 8") == [REFUTED, PROVED]
    assert verdicts("multiple_of(i * 4, 8)") == [PROVED, REFUTED]
    assert verdicts("i * 4") == [REFUTED, REFUTED]
