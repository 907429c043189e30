"""Kernels of Triton: of each pair the right one is proved whole, and of the wrong one its question speaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.record import records_of
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from layoutproof.pallas.records import read_records
from tests.gpu_lowering import lowered_for_cuda
from tests.pallas.random_triton import drawn
from tests.pallas.triton_page import page
from tests.pallas.triton_pairs import PAIRS, F, N, add_one, array, call, counted, halves, tickets
from tests.said import Said, words

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="read from jax 0.10.2"),
]

SIDES = pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
PAGE = Path(__file__).resolve().parents[2] / "docs" / "triton.md"


def decided(function: Any, args: tuple[Any, ...], **options: Any) -> list[Finding]:
    """The errors that are not proved."""
    found = lp.kernels(function, *args, **{"target": "triton", **options}).findings
    return [f for f in found if f.asked and f.severity == "error" and f.verdict is not Verdict.PROVED]


def made(name: str, wrong: bool) -> Any:
    pair = PAIRS[name]
    return pair.make(**(pair.wrong if wrong else {}))


@pytest.mark.parametrize("name", PAIRS)
def test_the_right_one_is_proved_whole(name: str) -> None:
    assert not decided(made(name, False), PAIRS[name].args)


@pytest.mark.parametrize("name", PAIRS)
def test_the_wrong_one_is_refuted_at_its_element(name: str) -> None:
    pair = PAIRS[name]
    found = [f for f in decided(made(name, True), pair.args) if f.question == pair.question]
    assert [f.verdict for f in found if f.verdict is Verdict.REFUTED]
    shown = [(f.counterexample or {})["element"] for f in found if f.verdict is Verdict.REFUTED]
    assert pair.element in shown


@SIDES
@pytest.mark.parametrize("name", PAIRS)
def test_jax_lowers_it_for_a_gpu(name: str, wrong: bool) -> None:
    """So the right one is one that a GPU can be given, and of the error JAX says nothing."""
    assert lowered_for_cuda(jax.jit(made(name, wrong)), *PAIRS[name].args).as_text()


@SIDES
@pytest.mark.parametrize("name", PAIRS)
def test_jaxs_interpreter(name: str, wrong: bool) -> None:
    """It gives the right ones' numbers, and of the wrong ones those of which it hides the error."""
    pair, own = PAIRS[name], pl.pallas_call

    def interpreted(*args: Any, compiler_params: Any, **options: Any) -> Any:
        return own(*args, interpret=True, **options)

    with mock.patch.object(pl, "pallas_call", interpreted):
        function = made(name, wrong)
        given = [np.random.default_rng(1).integers(0, 16, a.shape).astype(a.dtype) for a in pair.args]
        found = np.asarray(function(*given))
    assert np.allclose(found, np.asarray(pair.same(*given)), rtol=1e-5) is (pair.hidden or not wrong)


@SIDES
@pytest.mark.parametrize("name", PAIRS)
def test_same_computes_it(name: str, wrong: bool) -> None:
    pair = PAIRS[name]
    said = lp.same(made(name, wrong), pair.same, *pair.args)
    assert said.verdict is (Verdict.REFUTED if wrong else Verdict.SAMPLED), said.reason


def test_places_that_data_choose_rest_on_the_data() -> None:
    """It is unknown with what would settle it, and proved with that."""
    given = (array(512, dtype=N),)
    assert not decided(counted(), given)
    (open_,) = decided(counted(step=3), given)
    assert (open_.question, open_.verdict) == ("body_in_bounds", Verdict.UNKNOWN)
    assert open_.needs == ("0 <= args[0] < 12",)
    assert not decided(counted(step=3), given, assume=open_.needs)


def test_what_a_program_stores_and_loads_again_is_in_no_known_order() -> None:
    given = (array(512),)
    assert not decided(halves(), given)
    found = decided(halves(apart=False), given)
    assert {(f.question, f.verdict) for f in found} == {("body_races", Verdict.UNKNOWN)}
    assert all(Said("pallas.body_races_own_order", name="outputs").of(f.reason) for f in found)
    assert not decided(halves(apart=False, barrier=True), given)


def test_atomic_operations_whose_results_are_used_may_order_programs() -> None:
    assert not decided(tickets(used=False), ())
    assert not decided(tickets(), ())
    for used in (False, True):

        def body(start: Any, o: Any, n: Any, used: bool = used) -> None:
            del start
            i = pl.program_id(0)
            mine = plgpu.atomic_add(n, (i * 0,), jnp.int32(1))
            o[0] = mine if used else i

        function = call(body, (array(1, dtype=N), array(1, dtype=N)), (8,), input_output_aliases={0: 1})
        (found,) = decided(function, (array(1, dtype=N),))
        assert (found.question, found.verdict) == ("body_races", Verdict.UNKNOWN if used else Verdict.REFUTED)
        assert (words("pallas.body_races_atomics_order") in found.reason) is used


def test_two_atomic_operations_do_not_commute() -> None:
    def body(start: Any, o: Any) -> None:
        del start

        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            plgpu.atomic_max(o, (slice(None),), jnp.ones((4,), F))

        @pl.when(pl.program_id(0) > 0)
        def _() -> None:
            plgpu.atomic_add(o, (slice(None),), jnp.ones((4,), F))

    function = call(body, array(4), (2,), input_output_aliases={0: 0})
    (found,) = decided(function, (array(4),))
    assert (found.question, found.verdict) == ("body_races", Verdict.REFUTED)


def test_what_is_not_modelled_is_refused_by_name() -> None:
    def swapped(start: Any, o: Any) -> None:
        del start
        plgpu.atomic_cas(o, jnp.int32(0), jnp.int32(1))

    spec = pl.BlockSpec((None,), lambda i: (i,))
    out = array(4, dtype=N)
    blocks = {"in_specs": [spec], "out_specs": spec, "input_output_aliases": {0: 0}}
    found = decided(call(swapped, out, (4,), **blocks), (out,))
    assert {f.verdict for f in found} == {Verdict.UNKNOWN}
    assert any(words("bodies.cas_of_block") in f.reason for f in found)

    def polled(x: Any, o: Any) -> None:
        o[...] = plgpu.load(x, volatile=True)

    found = decided(call(polled, array(4), (1,)), (array(4),))
    assert any(words("bodies.volatile_load") in f.reason for f in found)

    def added(x: Any, o: Any) -> None:
        plgpu.atomic_add(o, (slice(None),), x[...])

    found = decided(call(added, out, (1,)), (out,))
    assert any(words("bodies.integers_as_floats", operation="add") in f.reason for f in found)
    assert "atomic_add" in lp.same(call(added, out, (1,)), lambda x: x, out).reason

    def columns(x: Any, o: Any) -> None:
        o[...] = x[:, jnp.arange(8)]

    found = decided(call(columns, array(16, 8), (1,)), (array(16, 8),))
    assert any(words("bodies.list_after_slice") in f.reason for f in found)


def test_an_index_past_a_block_is_in_another_one() -> None:
    """Triton reads the neighbour there, and the interpreter the block's last element: neither is what is written."""
    spec = pl.BlockSpec((64,), lambda i: (i,))

    def body(x: Any, o: Any) -> None:
        at = jnp.arange(64) + 1
        o[...] = plgpu.load(x.at[at], mask=pl.program_id(0) * 64 + at < 512, other=0.0)

    (found,) = decided(call(body, array(512), (8,), in_specs=[spec], out_specs=spec), (array(512),))
    assert (found.question, found.counterexample) == ("body_in_bounds", {"program": (0,), "element": (64,)})
    assert Said("pallas.body_in_bounds_past_block", name="args[0]", place=64).of(found.reason)


@pytest.mark.parametrize(("rows", "wide"), [(32768, False), (65536, True), (131072, False)])
def test_offsets_that_int32_does_not_count(rows: int, wide: bool) -> None:
    """Elements of one byte: of 2**31 int32 counts all, and of more than 2**32 bytes JAX counts in int64."""
    spec = pl.BlockSpec((1, 4096), lambda i, j: (i, j))

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    out = array(rows, 65536, dtype=jnp.int8)
    found = decided(call(body, out, (rows, 16), in_specs=[spec], out_specs=spec), (out,))
    assert {(f.question, f.verdict) for f in found} == ({("index_int32", Verdict.REFUTED)} if wide else set())
    assert all((f.counterexample or {})["element"] == (32768, 0) for f in found)


def test_a_call_for_any_platform_is_read_as_triton_runs_it() -> None:
    """A partial block is filled up on a TPU, and goes past the array's end here."""
    spec = pl.BlockSpec((128,), lambda i: (i,))

    def body(x: Any, o: Any) -> None:
        o[...] = x[...] + 1

    def function(x: Any) -> Any:
        return pl.pallas_call(body, out_shape=array(1000), grid=(8,), in_specs=[spec], out_specs=spec)(x)

    given = (array(1000),)
    assert {f.question for f in decided(function, given)} == {"body_in_bounds"}
    assert not [f for f in lp.kernels(function, *given).findings if f.verdict is Verdict.UNKNOWN]
    assert not decided(function, given, target="v5e")


def test_a_batch_is_one_more_dimension_of_the_arrays() -> None:
    batched = jax.vmap(add_one())
    assert not decided(batched, (array(3, 1000),))
    found = decided(jax.vmap(add_one(past=1)), (array(3, 1000),))
    assert (0, 1000) in [(f.counterexample or {})["element"] for f in found if f.question == "body_in_bounds"]


def test_a_record_says_the_same(tmp_path: Path) -> None:
    """Of a call that was written to a file all is asked again, atomic operations too."""
    for name in ("store_for_atomic_add", "rows_not_masked"):
        for wrong in (False, True):
            (one,) = kernels_of(made(name, wrong), PAIRS[name].args)
            (tmp_path / "calls.jsonl").write_bytes(records_of([one]))
            (again,) = read_records(tmp_path / "calls.jsonl")
            assert isinstance(one, Kernel)
            assert isinstance(again, Kernel)
            told = [[(f.question, f.verdict) for f in judge(each, target="triton")] for each in (one, again)]
            assert sorted(set(told[0])) == sorted(set(told[1]))


@pytest.mark.parametrize("seed", range(40))
def test_random_kernels_against_their_definition(seed: int) -> None:
    """Each question is proved where the answer is yes, and refuted where it is no."""
    one = drawn(seed)
    function, given = one.function()
    found = [f for f in lp.kernels(function, *given).findings if f.asked and f.severity == "error"]
    for question, wrong in one.wrong().items():
        said = min((f.verdict for f in found if f.question == question), default=None)
        assert said is (Verdict.REFUTED if wrong else Verdict.PROVED), (question, one)


def test_the_page_is_what_a_run_says() -> None:
    assert PAGE.read_text("utf-8") == page()
