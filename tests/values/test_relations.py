"""Sums of products as relations: proved, or refuted with the operands that are missing, extra or counted twice."""

from __future__ import annotations

from typing import Any

import pytest

import layoutproof as lp

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax")
jnp = jax.numpy
cases = pytest.importorskip("tests.values.relation_cases")


def product(x: Any, y: Any) -> Any:
    return x @ y


RIGHT: list[tuple[str, Any, Any, tuple[str, ...]]] = [
    ("matmul", cases.matmul(), product, ("f32[16,24]", "f32[24,16]")),
    ("a ragged tail", cases.matmul(), product, ("f32[13,19]", "f32[19,10]")),
    ("summed in the output", cases.matmul(scratch=False), product, ("f32[13,19]", "f32[19,10]")),
    ("one block", cases.matmul(), product, ("f32[3,5]", "f32[5,4]")),
    ("bf16", cases.matmul(dtype=jnp.bfloat16), product, ("bf16[16,24]", "bf16[24,16]")),
    ("rows at once", cases.whole_rows(), product, ("f32[16,24]", "f32[24,10]")),
    ("batched", jax.vmap(cases.matmul()), lambda x, y: jnp.einsum("bij,bjk->bik", x, y),
     ("f32[3,16,10]", "f32[3,10,8]")),
    ("of transposes", lambda x, y: cases.matmul()(x.T, y.T), lambda x, y: jnp.einsum("ki,jk->ij", x, y),
     ("f32[24,16]", "f32[16,24]")),
    ("turned twice", lambda x, y: cases.matmul()(y.T, x.T).T, product, ("f32[16,24]", "f32[24,16]")),
    ("transposed copy", cases.transposed(), lambda x: x.T, ("f32[16,24]",)),
    ("a ragged copy", cases.transposed(), lambda x: x.T, ("f32[13,10]",)),
    ("row sums", cases.row_sums(), lambda x: x.sum(1, keepdims=True), ("f32[13,21]",)),
    ("backwards", cases.turns(), lambda x: 2 * x - 1, ("f32[24,16]",)),
    ("a mean", lambda x: x.mean(1), lambda x: x.sum(1) / 16, ("f32[8,16]",)),
    ("distributed", lambda x, y: (x + 1) @ (y - 2), lambda x, y: x @ y + y.sum(0) - 2 * x.sum(1)[:, None] - 32,
     ("f32[8,16]", "f32[16,8]")),
    ("x @ x.T", lambda x: cases.matmul()(x, x.T), lambda x: jnp.einsum("jk,ik->ij", x, x), ("f32[16,24]",)),
    ("pads and pieces", lambda x: jnp.concatenate([jnp.pad(x, ((1, 0), (0, 0)))[:4], x[3:]]), lambda x: jnp.concatenate(
        [jnp.zeros((1, 16)), x[:3], x[3:]]), ("f32[8,16]",)),
    ("reshape", lambda x: x.reshape(4, 2, 16).sum(1), lambda x: x[::2] + x[1::2], ("f32[8,16]",)),
    ("a gather", lambda x: x[jnp.arange(8)[::-1]], lambda x: jnp.flip(x, 0), ("f32[8,16]",)),
    ("convolution", lambda x, w: jnp.convolve(x, w, mode="valid"),
     lambda x, w: sum(x[2 - k : 14 + 2 - k] * w[k] for k in range(3)), ("f32[16]", "f32[3]")),
    ("in place", cases.in_place(), cases.every_second, ("f32[40,16]", "f32[40,16]")),
    ("many chunks", cases.chunks(), product, ("f32[8,400]", "f32[400,8]")),
    ("rows in turn", cases.rows_in_turn(), lambda x: 2 * x, ("f32[80,8]",)),
    ("chunks in scratch", cases.in_scratch(), lambda x: x.sum(1, keepdims=True), ("f32[16,640]",)),
    ("a long scan", cases.scanned(), lambda x: (x.sum(0), jnp.cumsum(x, 0)), ("f32[80,8]",)),
    ("running", lambda x: jnp.cumsum(x), lambda x: jnp.tril(jnp.ones((8, 8))) @ x, ("f32[8]",)),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs", "args"), [p[1:] for p in RIGHT], ids=[p[0] for p in RIGHT])
def test_what_is_right_is_proved(ours: Any, theirs: Any, args: tuple[str, ...]) -> None:
    """For every element, and counted in the headline; points, asked alone, find no difference either."""
    found = lp.same(ours, theirs, *args)
    assert (found.verdict.value, found.exit_code, found.findings[0].decided_by) == ("proved", 0, "relations")
    assert "1 pair: 1 proved, 0 sampled, 0 refuted, 0 unknown" in str(found)
    assert (found.as_dict()["decided_by"], found.as_dict()["chance"]) == ("relations", "")


SQUARE = ("f32[16,16]", "f32[16,16]")
WRONG: list[tuple[str, Any, Any, tuple[str, ...], str]] = [
    *(
        (wrong, cases.matmul(wrong), product, args, said)
        for wrong, args, said in (
            ("reset late", ("f32[16,24]", "f32[24,16]"), "args[0][0, 0] * args[1][0, 0] is missing"),
            ("zeroed once", ("f32[16,24]", "f32[24,16]"), "is extra"),
            ("mask off by one", ("f32[16,19]", "f32[19,16]"), "never written"),
            ("mask short", ("f32[16,19]", "f32[19,16]"), "args[0][0, 18] * args[1][18, 0] is missing"),
            ("mask local", ("f32[16,19]", "f32[19,16]"), "never written"),
            ("mask of x alone", ("f32[16,19]", "f32[19,16]"), "never written"),
            ("mask of y alone", ("f32[16,19]", "f32[19,16]"), "never written"),
            ("times the mask", ("f32[16,19]", "f32[19,16]"), "never written"),
            ("drops the last", ("f32[16,24]", "f32[24,16]"), "args[0][0, 16] * args[1][16, 0] is missing"),
            ("=", ("f32[16,24]", "f32[24,16]"), "args[0][0, 0] * args[1][0, 0] is missing"),
            ("doubled", ("f32[16,24]", "f32[24,16]"), "args[0][0, 16] * args[1][16, 0] is there twice"),
            ("stored at first", ("f32[16,24]", "f32[24,16]"), "args[0][0, 8] * args[1][8, 0] is missing"),
            ("wrong block of y", SQUARE, "is extra"),
            ("turned", SQUARE, "is extra"),
            ("transposed", SQUARE, "is extra"),
        )
    ),
    *(
        (f"in place: {wrong}", cases.in_place(wrong), cases.every_second, ("f32[40,16]", "f32[40,16]"), said)
        for wrong, said in (
            ("once", "args[1][0, 0] is there once, and in the reference twice"),
            ("of the next", "args[1][0, 0] is missing"),
            ("beside", "args[1][0, 0] is missing"),
            ("no alias", "never written"),
        )
    ),
    *(
        (f"chunks: {wrong}", cases.chunks(wrong), product, ("f32[8,400]", "f32[400,8]"), said)
        for wrong, said in (
            ("twice", "args[0][0, 396] * args[1][396, 0] is there twice"),
            ("=", "args[0][0, 0] * args[1][0, 0] is missing"),
            ("not the first", "args[0][0, 0] * args[1][0, 0] is missing"),
            ("not the last", "args[0][0, 396] * args[1][396, 0] is missing"),
        )
    ),
    *(
        (f"rows: {wrong}", cases.rows_in_turn(wrong), lambda x: 2 * x, ("f32[80,8]",), said)
        for wrong, said in (
            ("all in one", "args[0][0, 0] is missing"),
            ("the first again", "args[0][0, 0] is there once, and in the reference twice"),
            ("not the last", "never written"),
        )
    ),
    *(
        (f"in scratch: {wrong}", cases.in_scratch(wrong), lambda x: x.sum(1, keepdims=True), ("f32[16,640]",), said)
        for wrong, said in (
            ("zeroed late", "args[0][0, 0] is missing"),
            ("=", "args[0][0, 0] is missing"),
            ("the first half", "args[0][0, 0] is there twice"),
        )
    ),
    *(
        (f"a scan: {wrong}", cases.scanned(wrong), lambda x: (x.sum(0), jnp.cumsum(x, 0)), ("f32[80,8]",), said)
        for wrong, said in (
            ("twice", "args[0][0, 0] is there twice"),
            ("before", "args[0][0, 0] is missing"),
            ("the first twice", "args[0][0, 0] is there twice"),
            ("backwards", "args[0][1, 0] is extra"),
        )
    ),
    ("= in the output", cases.matmul("=", scratch=False), product, ("f32[16,24]", "f32[24,16]"), "is missing"),
    ("turned output", cases.whole_rows("turned"), product, SQUARE, "is missing"),
    ("blocks of a copy", cases.transposed("block"), lambda x: x.T, ("f32[16,16]",), "args[0][0, 8] is extra"),
    ("within a block", cases.transposed("not within"), lambda x: x.T, ("f32[16,16]",), "args[0][0, 1] is extra"),
    ("no mask of sums", cases.row_sums("no mask"), lambda x: x.sum(1, keepdims=True), ("f32[13,21]",), "never written"),
    ("a mask of sums", cases.row_sums("mask off by one"), lambda x: x.sum(1, keepdims=True), ("f32[13,21]",),
     "never written"),
    ("= of sums", cases.row_sums("="), lambda x: x.sum(1, keepdims=True), ("f32[13,21]",), "args[0][0, 0] is missing"),
    ("rows", cases.turns("rows"), lambda x: 2 * x - 1, ("f32[24,16]",), "args[0][3, 0] is extra"),
    ("a factor", lambda x: 2 * x, lambda x: 3 * x, ("f32[8]",), "args[0][0] is there twice, and in the reference 3"),
    ("a constant", lambda x: x + 1, lambda x: x, ("f32[8]",), "a constant is extra"),
    ("counted twice", lambda x: x[jnp.arange(8) // 2].sum(), lambda x: x.sum(), ("f32[8]",), "args[0][4] is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs", "args", "said"), [p[1:] for p in WRONG], ids=[p[0] for p in WRONG])
def test_what_is_wrong_is_refuted_by_its_operands(ours: Any, theirs: Any, args: tuple[str, ...], said: str) -> None:
    """float64 shows the element, relations say which product is missing, extra, or there more than once."""
    found = lp.same(ours, theirs, *args)
    assert (found.verdict.value, found.findings[0].decided_by) == ("refuted", "float64"), found.reason
    assert said in found.comparison.operands
    assert said in found.as_dict()["operands"]
    assert f"\n  operands      {found.comparison.operands}" in str(found)


LARGE = ("f32[65536,65535]", "f32[65535,65536]")


def test_what_is_too_large_for_a_walk_is_decided() -> None:
    """2^48 products: proved; and refuted, the products of one element counted on plain integers."""
    right = lp.same(cases.matmul(block=128), product, *LARGE)
    assert right.verdict is lp.Verdict.PROVED, right.reason
    wrong = lp.same(cases.matmul("mask short", block=128), product, *LARGE)
    assert wrong.verdict is lp.Verdict.REFUTED
    assert "args[0][0, 65534] * args[1][65534, 0] is missing" in wrong.reason
    (finding,) = wrong.findings
    assert (finding.decided_by, finding.counterexample) == ("relations", {"output": (0,), "element": (0, 0)})
    assert "plain integers" in str(wrong)


OUTSIDE: list[tuple[str, Any, Any, tuple[Any, ...], str]] = [
    ("an exponential", jnp.exp, jnp.exp, ("f32[8]",), "sampled"),
    ("a maximum", lambda x: jnp.maximum(x, 0), jax.nn.relu, ("f32[8]",), "sampled"),
    ("a division by data", lambda x, y: x / y, lambda x, y: x * (1 / y), ("f32[8]", "f32[8]"), "sampled"),
    ("a root", lambda x: x * 2**0.5, lambda x: x * jnp.sqrt(2.0), ("f32[8]",), "sampled"),
    ("float8", lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32), lambda x: x, ("f32[8]",), "refuted"),
    ("integers", lambda x: x + x, lambda x: 2 * x, ("s32[8]",), "sampled"),
    ("a choice by data", lambda x: jnp.where(x > 0, x, x), lambda x: x, ("f32[8]",), "sampled"),
    ("an infinity", lambda x: jnp.where(jnp.arange(8) < 4, x, -jnp.inf), lambda x: jnp.where(
        jnp.arange(8) < 4, x, -jnp.inf), ("f32[8]",), "sampled"),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs", "args", "verdict"), [p[1:] for p in OUTSIDE], ids=[p[0] for p in OUTSIDE])
def test_what_is_no_sum_of_products_is_left_to_points(ours: Any, theirs: Any, args: Any, verdict: str) -> None:
    """It is never proved."""
    found = lp.same(ours, theirs, *args)
    alone = lp.same(ours, theirs, *args, relations=False)
    assert found.verdict == alone.verdict
    assert found.verdict.value == verdict
    assert found.findings[0].decided_by != "relations"


def test_copies_by_hand_are_left_to_points() -> None:
    """What lands when it is waited for is not followed here, and not forgotten."""
    from tests.values import same_cases

    assert lp.same(same_cases.copied(), lambda x: 2 * x, "f32[24,128]").findings[0].decided_by == "points"


def test_a_conversion_between_floats_is_said() -> None:
    """Over the reals it changes nothing; the answer says which there were."""
    found = lp.same(lambda x: x.astype(jnp.bfloat16).astype(jnp.float32), lambda x: x, "f32[8]")
    assert found.verdict is lp.Verdict.PROVED
    assert "a conversion from float32 to bfloat16 changes nothing, over the reals" in found.comparison.notes


def test_what_is_undefined_stays_so_times_0() -> None:
    """Definedness is no coefficient: 0 times what nobody wrote is what nobody wrote."""
    from layoutproof.core.products import Monomial, Sum
    from layoutproof.values.relations.arrays import times

    lost = Sum((), (Monomial(),))
    assert times(Sum(), lost, str).undefined == lost.undefined
    found = lp.same(cases.matmul("times the mask"), product, "f32[8,12]", "f32[12,8]")
    assert found.verdict is lp.Verdict.REFUTED


def test_a_premise_that_is_refuted_refutes() -> None:
    """Values that are proved rest on what is asked of places."""
    call = cases.turns("misses a block")
    assert lp.same(call, lambda x: 2 * x - 1, "f32[24,16]").verdict is lp.Verdict.REFUTED


NAMED = ("f32[M,K]", "f32[K,N]")
FOR_ALL: list[tuple[str, Any, Any, tuple[str, ...], tuple[str, ...]]] = [
    ("matmul", cases.matmul(), product, NAMED, ()),
    ("in the output", cases.matmul(scratch=False), product, NAMED, ()),
    ("no kernel", lambda x, y: (y.T @ x.T).T, product, NAMED, ()),
    ("transposed copy", cases.transposed(), lambda x: x.T, ("f32[M,N]",), ()),
    ("row sums", cases.row_sums(), lambda x: x.sum(1, keepdims=True), ("f32[M,N]",), ()),
    ("no tail", cases.row_sums("no mask"), lambda x: x.sum(1, keepdims=True), ("f32[M,N]",), ("N % 8 == 0",)),
    ("in place", cases.in_place(), cases.every_second, ("f32[N,16]", "f32[N,16]"), ()),
    ("a scan", cases.scanned(), lambda x: (x.sum(0), jnp.cumsum(x, 0)), ("f32[N,8]",), ()),
    ("a scan backwards", cases.scanned(back=True), lambda x: (x.sum(0), jnp.flip(jnp.cumsum(jnp.flip(x, 0), 0), 0)),
     ("f32[N,8]",), ()),
    ("a loop", cases.summed_in_turn(), lambda x: x.sum(0), ("f32[N,8]",), ()),
    ("two sums of one line", lambda x, y: x.sum() + y.sum(), lambda x, y: y.sum() + x.sum(),
     ("f32[N,8]", "f32[M]"), ()),
    ("one is given", cases.matmul(), product, ("f32[M,24]", "f32[24,16]"), ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "theirs", "args", "where"), [p[1:] for p in FOR_ALL], ids=[p[0] for p in FOR_ALL]
)  # fmt: skip
def test_for_all_sizes(ours: Any, theirs: Any, args: tuple[str, ...], where: tuple[str, ...]) -> None:
    """Sizes that are names: the answer is about all of them, with its premises."""
    found = lp.same(ours, theirs, *args, where=where)
    assert (found.verdict.value, found.findings[0].decided_by) == ("proved", "relations"), found.reason
    assert f"for all {', '.join(found.sizes)} from 1 to 1,073,741,824" in str(found)
    assert all(condition in found.findings[0].scope for condition in where)
    assert found.as_dict()["sizes"] == list(found.sizes)


@pytest.mark.parametrize(
    ("wrong", "smallest", "said"),
    [
        ("mask off by one", (1, 1, 1), "never written"),
        ("mask short", (1, 1, 1), "args[0][0, 0] * args[1][0, 0] is missing"),
        ("mask of x alone", (1, 1, 1), "never written"),
        ("mask of y alone", (1, 1, 1), "never written"),
        ("mask local", (1, 9, 1), "never written"),
        ("doubled", (1, 1, 1), "args[0][0, 0] * args[1][0, 0] is there twice"),
        ("zeroed once", (1, 1, 9), "args[0][0, 0] * args[1][0, 0] is extra"),
        ("=", (1, 9, 1), "args[0][0, 0] * args[1][0, 0] is missing"),
        ("drops the last", (1, 1, 1), "args[0][0, 0] * args[1][0, 0] is missing"),
        ("reset late", (1, 1, 1), "never written"),
        ("stored at first", (1, 9, 1), "args[0][0, 8] * args[1][8, 0] is missing"),
    ],
)
def test_the_smallest_sizes_at_which_it_is_wrong(wrong: str, smallest: tuple[int, ...], said: str) -> None:
    """Walked over at these sizes before it is shown."""
    found = lp.same(cases.matmul(wrong), product, *NAMED)
    assert found.verdict is lp.Verdict.REFUTED, found.reason
    assert tuple(found.smallest.values()) == smallest
    assert said in found.comparison.operands
    assert found.findings[0].figures["sizes"] == dict(zip("MKN", smallest, strict=True))
    assert f"smallest      M = {smallest[0]}, K = {smallest[1]}, N = {smallest[2]}" in str(found)


@pytest.mark.parametrize(
    ("ours", "theirs", "args", "smallest", "said"),
    [
        (cases.in_place("once"), cases.every_second, 2, 1, "args[1][0, 0] is there once, and in the reference twice"),
        (cases.in_place("beside"), cases.every_second, 2, 1, "args[1][0, 0] is missing"),
        (cases.in_place("no alias"), cases.every_second, 2, 9, "never written"),
        (cases.scanned("twice"), lambda x: (x.sum(0), jnp.cumsum(x, 0)), 1, 1, "args[0][0, 0] is there twice"),
        (cases.scanned("before"), lambda x: (x.sum(0), jnp.cumsum(x, 0)), 1, 1, "args[0][0, 0] is missing"),
        (cases.scanned("backwards"), lambda x: (x.sum(0), jnp.cumsum(x, 0)), 1, 2, "args[0][1, 0] is extra"),
        (cases.summed_in_turn("twice"), lambda x: x.sum(0), 1, 1, "args[0][0, 0] is there twice"),
        (cases.summed_in_turn("not the first"), lambda x: x.sum(0), 1, 1, "args[0][0, 0] is missing"),
    ],
    ids=["in place, once", "beside", "no alias", "twice", "before", "backwards", "a loop, twice", "not the first"],
)  # fmt: skip
def test_the_smallest_number_of_steps_at_which_it_is_wrong(
    ours: Any, theirs: Any, args: int, smallest: int, said: str
) -> None:  # fmt: skip
    """Outputs in the place of inputs and loops, for all sizes."""
    found = lp.same(ours, theirs, *["f32[N,8]"] * args)
    assert found.verdict is lp.Verdict.REFUTED, found.reason
    assert dict(found.smallest) == {"N": smallest}
    assert said in found.comparison.operands


def test_what_reads_its_own_writes_is_left_to_points() -> None:
    """In one buffer a program reads what another one wrote: no sum of what was there before."""
    found = lp.same(cases.shifted_in_place(), cases.spread, "f32[80,16]")
    # JAX's interpreter keeps what was there before, and says so
    assert "two witnesses disagree" in found.reason
    small = lp.same(cases.shifted_in_place(), cases.spread, "f32[64,16]")
    assert (small.verdict, small.findings[0].decided_by) == (lp.Verdict.PROVED, "relations")
    many = lp.same(lambda x: jax.lax.fori_loop(0, 80, lambda i, h: 0.5 * h + x[i], x[0]), lambda x: x[0], "f32[80,8]")
    assert many.verdict is lp.Verdict.REFUTED
    assert many.findings[0].decided_by != "relations"


def test_other_operations_are_unknown_for_all_sizes() -> None:
    """Points have sizes; so does a condition that speaks of others."""
    found = lp.same(jnp.exp, jnp.exp, "f32[N]")
    assert (found.verdict, "for all sizes" in found.reason or "all sizes" in found.reason) == (lp.Verdict.UNKNOWN, True)
    with pytest.raises(lp.LayoutError, match="speaks of P"):
        lp.same(lambda x: x, lambda x: x, "f32[N]", where=["P >= 2"])
