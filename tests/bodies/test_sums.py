"""Tables of which it is said what all entries come to, and loops that add them up."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.errors import LayoutError

pytestmark = pytest.mark.slow

ROWS = 64
SIZES = jax.ShapeDtypeStruct((8,), jnp.int32)
X = jax.ShapeDtypeStruct((ROWS, 128), jnp.float32)


def adding(turns: Any, first: int = 0, step: Any = lambda t, j: t[j]) -> Any:
    """Where the rows start of a group: what those before it have."""
    return lambda t, i: jax.lax.fori_loop(0, turns(i), lambda j, s: s + step(t, j), jnp.int32(first))


STARTS: dict[str, tuple[Any, bool]] = {
    "two entries": (lambda t, i: t[0] + t[7], True),
    "one entry twice": (lambda t, i: t[3] + t[3], False),
    "the groups before": (adding(lambda i: i), True),
    "a fixed number of groups": (adding(lambda i: 5), True),
    "the groups from the second on": (adding(lambda i: 7, step=lambda t, j: t[j + 1]), True),
    "the groups before, one row later": (adding(lambda i: i, first=1), False),
    "the first group again and again": (adding(lambda i: i, step=lambda t, j: t[0]), False),
    "twice each group": (adding(lambda i: i, step=lambda t, j: 2 * t[j]), False),
}


def read(start: Any) -> Any:
    """Each program reads 8 rows from a place on that a table says."""

    def called(t: jax.Array, x: jax.Array) -> jax.Array:
        def body(t_ref: Any, x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[pl.ds(start(t_ref, pl.program_id(0)), 8), :]

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(8,),
            in_specs=[pl.BlockSpec((ROWS, 128), lambda i, t: (0, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
        )
        return pl.pallas_call(body, grid_spec=spec, out_shape=X)(t, x)

    return called


@pytest.mark.parametrize("name", STARTS)
def test_what_is_added_up_of_a_table_stays_below_its_sum(name: str) -> None:
    start, right = STARTS[name]
    given = f"prefetch0 is group_sizes(total={ROWS - 8})"
    assert lp.kernels(read(start), SIZES, X, assume=[given]).exit_code == (0 if right else 3)
    # one row more, and the last rows that are read are behind the end
    more = lp.kernels(read(start), SIZES, X, assume=[f"prefetch0 is group_sizes(total={ROWS - 7})"])
    assert more.exit_code == 3


def test_a_sum_is_said_in_what_an_answer_assumes_and_refutes_only_what_it_allows() -> None:
    start, _ = STARTS["two entries"]
    found = lp.kernels(read(start), SIZES, X, assume=["0 <= prefetch0 <= 57", "sum(prefetch0) < 58"])
    (open_,) = [f for f in found.findings if f.question == "body_in_bounds" and f.verdict.value != "proved"]
    assert open_.reason.startswith("refuted if prefetch0 can be 0, 57 ")
    assert "sum(prefetch0) <= 57" in open_.assumes


@pytest.mark.parametrize(
    ("assume", "says"),
    [
        ("sum(prefetch0) <= 8; prefetch0 is monotone", "of a table with a sum only bounds are said"),
        ("sum(prefetch0[:2]) <= 8", "a sum is said of all of a table"),
        ("sum(prefetch0) <= n", "a sum is at most a number"),
    ],
)
def test_what_is_not_said_of_a_sum(assume: str, says: str) -> None:
    with pytest.raises(LayoutError, match=says):
        lp.kernels(read(STARTS["two entries"][0]), SIZES, X, assume=[assume])


def test_a_sum_that_no_table_has_proves_nothing() -> None:
    found = lp.kernels(read(STARTS["two entries"][0]), SIZES, X, assume=["1 <= prefetch0 <= 8", "sum(prefetch0) <= 7"])
    assert found.exit_code == 3
    assert any("sum(prefetch0) cannot be at most 7" in f.reason for f in found.findings)


TILES: dict[str, Any] = {
    "pl.cdiv": lambda t, j: pl.cdiv(t[j], 8),
    "a sum that is divided": lambda t, j: (t[j] + 7) // 8,
    "a shift": lambda t, j: (t[j] + 7) >> 3,
    "a quotient below 0": lambda t, j: -(-t[j] // 8),
}


@pytest.mark.parametrize("name", TILES)
def test_tiles_of_groups_are_few_more_than_of_all_rows_together(name: str) -> None:
    """Up to 7 groups before: 9 rows in one of them and 1 in each of the others need 8 tiles, and 14 rows never do."""

    def rows(t: Any, i: Any) -> Any:
        return 8 * adding(lambda i: i, step=TILES[name])(t, i)

    def code(total: int) -> int:
        given = f"prefetch0 is group_sizes(total={total})"
        return lp.kernels(read(rows), SIZES, X, assume=[given], properties=["body_in_bounds"]).exit_code

    assert code(14) == 0
    assert code(15) == 3


def test_rows_of_whole_tiles_are_added_up_as_tiles_are() -> None:
    for step, most in ((lambda t, j: 8 * pl.cdiv(t[j], 8), 14), (lambda t, j: 8 * (t[j] // 8), 63)):
        for total, expected in ((most, 0), (most + 1, 3)):
            given = f"prefetch0 is group_sizes(total={total})"
            called = read(adding(lambda i: i, step=step))
            assert lp.kernels(called, SIZES, X, assume=[given], properties=["body_in_bounds"]).exit_code == expected


@pytest.mark.fast
def test_the_bound_of_a_sum_of_tiles_holds_of_arrays_and_is_reached() -> None:
    rng = np.random.default_rng(33)
    for by in (1, 2, 8, 128):
        for _ in range(200):
            sizes = rng.integers(0, 3 * by, int(rng.integers(1, 9)))
            assert (-(-sizes // by)).sum() * by <= sizes.sum() + len(sizes) * (by - 1)
        worst = np.ones(5, np.int64)
        assert (-(-worst // by)).sum() * by == worst.sum() + len(worst) * (by - 1)
