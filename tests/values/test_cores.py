"""Kernels over meshes of cores are compared with what they should compute: each core with its own memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

pytest.importorskip("jax", reason="tracing needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.pallas.from_jax.adapter import device_of
from layoutproof.pallas.from_jax.programs import program_of
from layoutproof.questions.reduced import work_of
from tests.bodies import subcore_pairs
from tests.bodies.kernels import X, scratched
from tests.bodies.subcore_pairs import CASES, TARGET, here, made

pytestmark = pytest.mark.slow

F, WHOLE = jnp.float32, jnp.int32


def wanted(name: str) -> Callable[..., Any]:
    """What a pair wants, of arrays of JAX."""

    def reference(*given: Any) -> Any:
        with patch.object(subcore_pairs, "np", jnp):
            return CASES[name].want(*given)

    return reference


def shapes(name: str) -> list[Any]:
    return [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in CASES[name].args()]


def given(name: str) -> list[Any]:
    """The lists of a pair; of its other arrays the shapes."""
    pairs = zip(CASES[name].args(), shapes(name), strict=True)
    return [array if array.dtype.kind == "i" else shape for array, shape in pairs]


@pytest.mark.parametrize("name", CASES)
def test_the_right_one_computes_what_is_wanted(name: str) -> None:
    function = subcore_pairs.function_of(CASES[name], False)
    assert lp.same(function, wanted(name), inputs=lambda: given(name), target=TARGET).verdict is Verdict.SAMPLED


@pytest.mark.parametrize("name", CASES)
def test_the_wrong_one_does_not(name: str) -> None:
    function = subcore_pairs.function_of(CASES[name], True)
    assert lp.same(function, wanted(name), inputs=lambda: given(name), target=TARGET).verdict is Verdict.REFUTED


@pytest.mark.parametrize("name", ["lookup", "next_rows", "ring", "zeroed"])
def test_what_is_assumed_of_a_list_is_assumed_of_the_kernel_that_gets_it(name: str) -> None:
    case = CASES[name]
    right, wrong = (
        lp.same(subcore_pairs.function_of(case, error), wanted(name), *shapes(name), target=TARGET, assume=case.assume)
        for error in (False, True)
    )
    assert (right.verdict, wrong.verdict) == (Verdict.SAMPLED, Verdict.REFUTED)
    # of a list that is changed on its way nothing is assumed
    function = subcore_pairs.function_of(case, False)
    turned = lp.same(
        lambda x, i, *more: function(x, i[::-1], *more),
        lambda x, i, *more: wanted(name)(x, i[::-1], *more),
        *shapes(name),
        target=TARGET,
        assume=case.assume,
    )
    assert turned.verdict is Verdict.UNKNOWN


def scattered(double: bool) -> Callable[..., Any]:
    def body(x: Any, o: Any, row: Any) -> None:
        _, _, w = here()
        pltpu.sync_copy(x.at[w], row)
        lanes = jax.lax.iota(WHOLE, 8)
        plsc.store_scatter(row, [lanes // 2 if double else 7 - lanes], row[pl.ds(0, 8)])
        pltpu.sync_copy(row, o.at[w])

    return lambda x: made(body, (8, 8), [pltpu.VMEM((8,), F)])(x)


def test_two_lanes_that_store_to_one_place_are_not_known() -> None:
    x = jax.ShapeDtypeStruct((8, 8), F)
    right = lp.same(scattered(False), lambda x: x[:, ::-1], x, target=TARGET)
    twice = lp.same(scattered(True), lambda x: x[:, ::-1], x, target=TARGET)
    assert right.verdict is Verdict.SAMPLED
    assert twice.verdict is Verdict.UNKNOWN
    assert "two lanes" in twice.reason


def masked(kind: str, wrong: bool = False) -> Callable[..., Any]:
    def body(x: Any, o: Any, row: Any, other: Any) -> None:
        _, _, w = here()
        pltpu.sync_copy(x.at[w], row)
        odd = jax.lax.iota(WHOLE, 8) % 2 == (0 if wrong else 1)
        other[...] = jnp.zeros((8,), F)
        if kind == "packed":
            plsc.store_compressed(other.at[pl.ds(0, 8)], row[...], mask=odd)
        else:
            other[...] = jnp.where(odd, plsc.load_expanded(row.at[pl.ds(0, 8)], mask=odd), 0.0)
        pltpu.sync_copy(other, o.at[w])

    return lambda x: made(body, (8, 8), [pltpu.VMEM((8,), F), pltpu.VMEM((8,), F)])(x)


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        ("packed", lambda x: jnp.concatenate([x[:, 1::2], jnp.zeros((8, 4), F)], 1)),
        ("expanded", lambda x: jnp.zeros((8, 8), F).at[:, 1::2].set(x[:, :4])),
    ],
)
def test_masks_pack_and_unpack(kind: str, want: Callable[..., Any]) -> None:
    x = jax.ShapeDtypeStruct((8, 8), F)
    assert lp.same(masked(kind), want, x, target=TARGET).verdict is Verdict.SAMPLED
    assert lp.same(masked(kind, wrong=True), want, x, target=TARGET).verdict is Verdict.REFUTED


def rows_but(ignored: int | None, later: int = 0) -> Callable[..., Any]:
    """Rows by a list, zeros where a place is ignored. later: by how much each part of the list begins too late."""

    def body(x: Any, i: Any, o: Any, listed: Any, found: Any) -> None:
        _, _, w = here()
        pltpu.sync_copy(i.at[pl.ds(jnp.minimum(w * 8 + later, 56), 8)], listed)
        for row in range(8):
            for half in (0, 8):
                found[row, pl.ds(half, 8)] = jnp.zeros((8,), F)
        pltpu.sync_copy(x.at[plsc.Indices(listed, ignored_value=ignored)], found)
        pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

    return lambda x, i: made(body, (64, 16), [pltpu.VMEM((8,), WHOLE), pltpu.VMEM((8, 16), F)])(x, i)


def test_a_row_whose_place_is_ignored_stays_as_it_is() -> None:
    listed = np.random.default_rng(3).integers(0, 64, 64).astype(np.int32)
    listed[::3] = -1
    inputs = [jax.ShapeDtypeStruct((64, 16), F), listed]

    def taken(x: Any, i: Any) -> Any:
        return jnp.where(i[:, None] >= 0, jnp.take(x, jnp.maximum(i, 0), axis=0), 0.0)

    right, outside, late = (
        lp.same(kernel, taken, inputs=lambda: inputs, target=TARGET)
        for kernel in (rows_but(-1), rows_but(-2), rows_but(-1, later=1))
    )
    assert (right.verdict, outside.verdict, late.verdict) == (Verdict.SAMPLED, Verdict.REFUTED, Verdict.REFUTED)
    assert "out of bounds" in outside.reason
    assert "[0, 0]" in late.reason


def test_a_gather_from_one_place_further_on_is_refuted_with_the_element() -> None:
    """Against `jnp.take`: each subcore but the last reads its part of the list from one place further on."""
    inputs = given("lookup")
    wrong = lp.same(rows_but(None, later=1), lambda x, i: jnp.take(x, i, axis=0), inputs=lambda: inputs, target=TARGET)
    assert wrong.verdict is Verdict.REFUTED
    assert wrong.comparison.witness is not None
    assert wrong.comparison.witness.index == (0, 0)


def halves(wrong: bool) -> Callable[..., Any]:
    """Each core of two doubles its half."""

    def body(x: Any, o: Any, part: Any, semaphore: Any) -> None:
        at = pl.ds((1 if wrong else jax.lax.axis_index("core")) * 8, 8)
        pltpu.make_async_copy(x.at[at], part, semaphore).start()
        pltpu.make_async_copy(x.at[at], part, semaphore).wait()
        part[...] = part[...] * 2
        out = pl.ds(jax.lax.axis_index("core") * 8, 8)
        pltpu.make_async_copy(part, o.at[out], semaphore).start()
        pltpu.make_async_copy(part, o.at[out], semaphore).wait()

    with warnings.catch_warnings():
        # jax 0.12 has another name for it
        warnings.simplefilter("ignore", DeprecationWarning)
        mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
    return lambda x: pl.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((16, 128), F),
        mesh=mesh,
        scratch_types=[pltpu.VMEM((8, 128), F), pltpu.SemaphoreType.DMA],
    )(x)


def test_cores_of_a_tensorcore_mesh_have_their_own_scratch() -> None:
    x = jax.ShapeDtypeStruct((16, 128), F)
    assert lp.same(halves(False), lambda x: 2 * x, x, target="v5p").verdict is Verdict.SAMPLED
    wrong = lp.same(halves(True), lambda x: 2 * x, x, target="v5p")
    assert wrong.verdict is Verdict.REFUTED
    assert wrong.comparison.witness is not None
    assert wrong.comparison.witness.different == 8 * 128


@pytest.mark.parametrize(("apart", "verdict"), [(16, Verdict.SAMPLED), (8, Verdict.REFUTED)])
def test_a_core_map_works_on_references_around_it_and_has_scratch_of_its_own(apart: int, verdict: Verdict) -> None:
    for extra in (0, 1):
        assert lp.same(scratched(apart, extra), lambda x: x, X, target="v5p").verdict is verdict


ROWS = jax.ShapeDtypeStruct((4, 8), F)


def changed(x: Any) -> Any:
    kept, out = jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))
    kept[0] = 2 * x[1]
    out[...] = kept[...] + 1
    return jax.freeze(out)


def added_up(x: Any) -> Any:
    total = jax.new_ref(jnp.zeros(8, F))

    @pl.loop(0, 4)
    def _(row: Any) -> None:
        total[...] += x[row]

    return total[...]


def filled(rows: int) -> Callable[..., Any]:
    """Fills so many of four rows of memory that begins undefined."""

    def run(x: Any) -> Any:
        out = jax.new_ref(jax.lax.empty(x.shape, x.dtype))
        out[:rows] = x[:rows]
        return out[...]

    return run


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    [
        (changed, lambda x: x.at[0].set(2 * x[1]) + 1, lambda x: x.at[1].set(2 * x[1]) + 1),
        (jax.jit(changed), lambda x: x.at[0].set(2 * x[1]) + 1, lambda x: x + 1),
        (added_up, lambda x: x.sum(0), lambda x: x[1:].sum(0)),
        (filled(4), lambda x: x, lambda x: -x),
    ],
    ids=["changed", "changed in jit", "added up", "filled"],
)
def test_references_that_a_program_makes_hold_what_was_stored_last(function: Any, right: Any, wrong: Any) -> None:
    assert lp.same(function, right, ROWS).verdict is Verdict.SAMPLED
    assert lp.same(function, wrong, ROWS).verdict is Verdict.REFUTED


def test_memory_that_nobody_fills_is_undefined() -> None:
    found = lp.same(filled(2), lambda x: x, ROWS)
    assert found.verdict is Verdict.REFUTED
    assert "undefined" in str(found)
    # which integers were stored is known of memory alone
    assert lp.same(filled(4), lambda x: x, jax.ShapeDtypeStruct((4, 8), WHOLE)).verdict is Verdict.UNKNOWN


def test_a_gather_over_devices_is_that_of_each() -> None:
    """A kernel of subcores inside of `shard_map`: each device has its rows."""
    mesh = jax.sharding.AbstractMesh((2,), ("data",), (jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec
    lookup = subcore_pairs.function_of(CASES["lookup"], False)

    def split(x: Any, i: Any) -> Any:
        each = jax.shard_map(
            lookup, mesh=mesh, in_specs=(spec(), spec("data")), out_specs=spec("data"), check_vma=False
        )
        return each(x, i)

    x, i = CASES["lookup"].args()
    lists = np.concatenate([i, (i + 1) % 64])
    arrays = [jax.ShapeDtypeStruct(x.shape, x.dtype), lists]
    assert lp.same(split, lambda x, i: x[i], inputs=lambda: arrays, target=TARGET).verdict is Verdict.SAMPLED
    turned = lp.same(split, lambda x, i: x[i[::-1]], inputs=lambda: arrays, target=TARGET)
    assert turned.verdict is Verdict.REFUTED


def test_steps_of_a_walk_are_those_of_every_core() -> None:
    case = CASES["lookup"]
    with device_of(TARGET):
        program = program_of(jax.make_jaxpr(subcore_pairs.function_of(case, False))(*case.args()))
    (equation,) = [e for e in program.eqns if e.primitive.name == "mpmd_map"]
    (body,) = equation.params["jaxprs"]
    assert work_of(program) >= 8 * work_of(body) > 0
