"""What every table has that is as assumed: entries that are fixed, violations that none of them is without."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.folding import fold
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.every_table import in_every_table, is_fixed
from layoutproof.pallas.refuted_if import REFUTED_IF
from layoutproof.pallas.witnesses import broken

pytestmark = pytest.mark.slow

STEPS, GROUPS = 6, 3
IDS = f"prefetch0 is sorted_ids(below={GROUPS + 1})"
RISES = f"prefetch0[0] == 0; prefetch0[-1] == {GROUPS}; prefetch0[i + 1] <= prefetch0[i] + 1"
ORDER = "prefetch0 is permutation(of={})"


def blocks(t: jax.Array, x: jax.Array, groups: int = GROUPS, steps: int = STEPS, ahead: int = 0) -> jax.Array:
    """Each step stores the block of its group, where the group of the step `ahead` is another one."""

    def body(t_ref: Any, x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)
        o_ref[...] = jnp.where(t_ref[i + ahead] == t_ref[i], x_ref[...], 0.0)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(steps,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, t: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (t[i], 0)),
    )
    return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((groups * 8, 128), jnp.float32))(t, x)


def worst(question: str, *assume: str, entries: int = STEPS, **how: int) -> Any:
    """The worst finding of a question."""
    given = jax.ShapeDtypeStruct((entries,), jnp.int32), jax.ShapeDtypeStruct((STEPS * 8, 128), jnp.float32)
    found = lp.kernels(lambda t, x: blocks(t, x, **how), *given, assume=assume, properties=[question]).findings
    return min(found, key=lambda f: f.verdict)


@pytest.mark.parametrize(
    ("assume", "verdict"),
    [
        ((IDS, RISES), Verdict.REFUTED),
        ((IDS,), Verdict.UNKNOWN),
        ((IDS, RISES.replace(f"== {GROUPS}", f"<= {GROUPS}")), Verdict.UNKNOWN),
        (
            (IDS.replace(f"{GROUPS + 1}", f"{GROUPS}"), RISES.replace(f"== {GROUPS}", f"== {GROUPS - 1}")),
            Verdict.PROVED,
        ),
    ],
    ids=["the last one is outside", "any may be", "the last one may be", "none is"],
)
def test_a_block_is_outside_in_every_table_or_in_some(assume: tuple[str, ...], verdict: Verdict) -> None:
    found = worst("blocks_in_bounds", *assume)
    assert found.verdict is verdict
    if verdict is Verdict.REFUTED:
        assert found.counterexample["program"] == (STEPS - 1,)
    if assume == (IDS,):
        assert found.reason.startswith(REFUTED_IF)


def test_a_read_behind_a_table_is_refuted_whatever_relations_say_of_its_entries() -> None:
    found = worst("body_in_bounds", IDS, RISES, ahead=1)
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample == {"program": (STEPS - 1,)}
    assert worst("body_in_bounds", IDS, RISES, ahead=0).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("below", "entries", "steps", "verdict"),
    [
        (GROUPS, GROUPS, GROUPS, Verdict.PROVED),
        (GROUPS + 1, GROUPS, GROUPS, Verdict.UNKNOWN),
        (GROUPS, GROUPS, GROUPS - 1, Verdict.REFUTED),
        (GROUPS + 1, GROUPS + 1, GROUPS, Verdict.UNKNOWN),
    ],
    ids=["each block", "one number more", "a program too few", "an unread entry"],
)
def test_a_permutation_leaves_no_block_out(below: int, entries: int, steps: int, verdict: Verdict) -> None:
    assert worst("outputs_covered", ORDER.format(below), entries=entries, steps=steps).verdict is verdict


def test_fewer_programs_than_blocks_leave_one_out_whatever_a_table_holds() -> None:
    assert worst("outputs_covered", "0 <= prefetch0 < 9", groups=STEPS + 1).verdict is Verdict.REFUTED
    assert worst("outputs_covered", "0 <= prefetch0 < 9", groups=STEPS).verdict is Verdict.UNKNOWN


SAID = (
    "0 <= t < 3; t is monotone; t[0] == 1",
    "0 <= t < 3; t[0] == 0; t[-1] == 2; t[i + 1] <= t[i] + 1",
    "0 <= t < 4; t is injective; t is monotone",
    "0 <= t < 4; t[i] < t[i + 1]",
    "0 <= t < 3; t is monotone; t is onto",
    "0 <= t < 4; 3 <= t[i] + t[i + 1]; t[1] == 0",
)


@pytest.mark.parametrize("said", SAID)
def test_what_every_table_has_is_what_every_table_has(said: str) -> None:
    """All tables as assumed are looked at, one by one."""
    kernel = with_assumptions(Kernel("k", (3,), ("i",), (), tables=(Table("t", (4,)),)), [said])
    tables = [t for t in itertools.product(range(4), repeat=4) if broken(kernel, {"t": np.array(t)}, {}) == ""]
    assert tables
    for place, value in itertools.product(range(4), range(4)):
        if is_fixed(kernel, "t", (place,), value):
            assert all(t[place] == value for t in tables)
    chance = random.Random(said)
    found = 0
    for _ in range(12):
        by, most = chance.choice((0, 1)), chance.randrange(4)
        entry = Term("read", Term("name", "t"), fold("+", Term("name", "i"), Term("int", by)))
        ids = in_every_table(kernel, [fold("<=", Term("int", most), entry)])
        if ids is not None:
            found += 1
            assert all(t[ids["i"] + by] >= most for t in tables)
    assert found


def summed(ends: Any, t: jax.Array, x: jax.Array) -> jax.Array:
    """Adds the blocks of a group, and stores the sum in the steps that `ends` says."""

    def body(t_ref: Any, x_ref: Any, o_ref: Any, s_ref: Any) -> None:
        i = pl.program_id(0)
        begins = (i == 0) | (t_ref[i] != t_ref[jnp.maximum(i - 1, 0)])
        s_ref[...] = jnp.where(begins, 0.0, s_ref[...]) + x_ref[...]

        @pl.when(ends(t_ref, i))
        def _() -> None:
            o_ref[...] = s_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(STEPS,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, t: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, t: (t[i], 0)),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )
    return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((GROUPS * 8, 128), jnp.float32))(t, x)


def _changes(t: Any, i: Any) -> Any:
    return t[i] != t[jnp.minimum(i + 1, STEPS - 1)]


IN_ORDER = f"prefetch0 is sorted_ids(below={GROUPS})"


@pytest.mark.parametrize(
    ("ends", "assume", "verdict"),
    [
        (lambda t, i: (i == STEPS - 1) | _changes(t, i), (IN_ORDER,), Verdict.PROVED),
        # the last group, which every table has
        (_changes, (IN_ORDER,), Verdict.REFUTED),
        # the group of step 0, where there is another one
        (lambda t, i: i == STEPS - 1, (IN_ORDER, "prefetch0[0] < prefetch0[-1]"), Verdict.REFUTED),
        (lambda t, i: i == STEPS - 1, (IN_ORDER,), Verdict.UNKNOWN),
        # in any order the last group may have ended before
        (_changes, (f"0 <= prefetch0 < {GROUPS}",), Verdict.UNKNOWN),
        # a block that may be outside is for another question
        (_changes, (f"prefetch0 is sorted_ids(below={GROUPS + 1})",), Verdict.UNKNOWN),
    ],
    ids=["where a group ends", "not the last", "only the last", "one may be all", "in any order", "one too many"],
)
def test_a_visit_that_stores_nothing_in_every_table(ends: Any, assume: tuple[str, ...], verdict: Verdict) -> None:
    given = jax.ShapeDtypeStruct((STEPS,), jnp.int32), jax.ShapeDtypeStruct((STEPS * 8, 128), jnp.float32)
    call = lp.kernels(lambda t, x: summed(ends, t, x), *given, assume=assume, properties=["outputs_stored"])
    assert min(f.verdict for f in call.findings) is verdict


def test_a_visit_that_is_refuted_stores_nothing_in_any_table() -> None:
    """All tables in order, one by one."""
    for t in itertools.combinations_with_replacement(range(GROUPS), STEPS):
        stored = {t[i] for i in range(STEPS) if t[i] != t[min(i + 1, STEPS - 1)]}
        assert t[-1] not in stored
