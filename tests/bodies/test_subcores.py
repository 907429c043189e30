"""Kernels of SparseCores: every subcore is a program, places come out of lists, barriers keep programs apart."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

import layoutproof as lp
from layoutproof.bodies import in_flight
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.record import records_of
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from layoutproof.pallas.records import read_records
from tests.bodies import random_gathers, random_subcores, run_subcores, subcore_pairs
from tests.bodies.subcore_pairs import CASES, TARGET, here, made
from tests.bodies.subcores_page import page

pytestmark = pytest.mark.slow

F, WHOLE = jnp.float32, jnp.int32


def found(name: str, wrong: bool) -> list[Finding]:
    case = CASES[name]
    args = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in case.args()]
    function = subcore_pairs.function_of(case, wrong)
    return [*lp.kernels(function, *args, target=TARGET, assume=case.assume).findings]


@pytest.mark.parametrize("name", CASES)
def test_the_right_one_is_proved_whole(name: str) -> None:
    assert not [f for f in found(name, False) if f.severity == "error" and f.verdict is not Verdict.PROVED]


@pytest.mark.parametrize("name", CASES)
def test_of_the_wrong_one_its_question_speaks(name: str) -> None:
    case = CASES[name]
    spoken = [f for f in found(name, True) if f.question == case.kind and f.verdict is not Verdict.PROVED]
    if case.answer == "refuted":
        assert Verdict.REFUTED in {f.verdict for f in spoken}
    else:
        assert {f.verdict for f in spoken} == {Verdict.UNKNOWN}
        assert case.answer == "unknown" or any(f.reason.startswith("refuted if args[1] can be") for f in spoken)


@pytest.mark.parametrize("name", CASES)
def test_runs_show_the_same(name: str) -> None:
    """Right is equal to what is wanted in every order that was drawn, and what is wrong shows in some."""
    assert run_subcores.signs(name, False) == {"equal"}
    assert CASES[name].seen in run_subcores.signs(name, True)


def test_the_page_is_what_the_pairs_are() -> None:
    assert Path("docs/subcores.md").read_text() == page()


def one(body: Callable[..., Any], shape: tuple[int, ...], scratch: Any, *args: Any, **more: Any) -> list[Finding]:
    def call(*given: Any) -> Any:
        return made(body, shape, scratch)(*given)

    return [*lp.kernels(call, *args, **{"target": TARGET, **more}).findings]


X = jax.ShapeDtypeStruct((64, 16), F)
LISTED = jax.ShapeDtypeStruct((64,), WHOLE)


def scattered(x: Any, i: Any, o: Any, listed: Any, rows: Any) -> None:
    _, _, w = here()
    pltpu.sync_copy(i.at[pl.ds(w * 8, 8)], listed)
    pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], rows)
    pltpu.sync_copy(rows, o.at[listed])


def test_a_scatter_is_a_race_where_a_list_may_hold_a_place_twice() -> None:
    scratch = [pltpu.VMEM((8,), WHOLE), pltpu.VMEM((8, 16), F)]
    within = ("0 <= args[1] < 64",)
    asked = {"properties": ["body_races"]}
    (race,) = one(scattered, (64, 16), scratch, X, LISTED, assume=within, **asked)
    assert race.verdict is Verdict.UNKNOWN
    assert race.needs == ("args[1] is injective",)
    said = (*within, "args[1] is injective")
    assert all(f.verdict is Verdict.PROVED for f in one(scattered, (64, 16), scratch, X, LISTED, assume=said, **asked))


def test_a_scatter_by_a_permutation_stores_all_rows() -> None:
    scratch = [pltpu.VMEM((8,), WHOLE), pltpu.VMEM((8, 16), F)]
    said = ("0 <= args[1] < 64", "args[1] is injective")
    found = one(scattered, (64, 16), scratch, X, LISTED, assume=said)
    assert not [f for f in found if f.severity == "error" and f.verdict is not Verdict.PROVED]

    def half(x: Any, i: Any, o: Any, listed: Any, rows: Any) -> None:
        """Of each list the first half: where that is all of a permutation is not so."""
        _, _, w = here()
        pltpu.sync_copy(i.at[pl.ds(w * 8, 8)], listed)
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], rows)
        pltpu.sync_copy(rows.at[pl.ds(0, 4)], o.at[listed.at[pl.ds(0, 4)]])

    stored = one(half, (64, 16), scratch, X, LISTED, assume=said, properties=["outputs_stored"])
    assert {f.verdict for f in stored} != {Verdict.PROVED}


def test_a_gather_needs_the_range_of_its_list_and_says_so() -> None:
    def body(x: Any, i: Any, o: Any, listed: Any, rows: Any) -> None:
        _, _, w = here()
        pltpu.sync_copy(i.at[pl.ds(w * 8, 8)], listed)
        pltpu.sync_copy(x.at[listed], rows)
        pltpu.sync_copy(rows, o.at[pl.ds(w * 8, 8)])

    scratch = [pltpu.VMEM((8,), WHOLE), pltpu.VMEM((8, 16), F)]
    open_ = [f for f in one(body, (64, 16), scratch, X, LISTED) if f.verdict is not Verdict.PROVED]
    assert [f.needs for f in open_ if f.severity == "error"] == [("0 <= args[1] < 64",)]


def test_a_list_that_is_stored_again_in_a_loop_is_not_what_was_copied() -> None:
    """In the second turn the list is what the first has left: one further on, and so outside."""

    def body(x: Any, i: Any, o: Any, listed: Any, rows: Any) -> None:
        _, _, w = here()
        pltpu.sync_copy(i.at[pl.ds(w * 8, 8)], listed)

        @pl.loop(0, 2)
        def _(turn: Any) -> None:
            pltpu.sync_copy(x.at[listed], rows)
            listed[...] = listed[...] + 1

        pltpu.sync_copy(rows, o.at[pl.ds(w * 8, 8)])

    scratch = [pltpu.VMEM((8,), WHOLE), pltpu.VMEM((8, 16), F)]
    said = ("0 <= args[1] < 64",)
    verdicts = {
        f.verdict
        for f in one(body, (64, 16), scratch, X, LISTED, assume=said)
        if f.question == "body_in_bounds" and f.subject == "args[0]"
    }
    assert verdicts == {Verdict.UNKNOWN}


def test_a_copy_that_is_not_waited_for_before_a_barrier_is_not_ordered_by_it() -> None:
    def body(x: Any, o: Any, shared: Any, sent: Any, early: bool) -> None:
        _, subcore, w = here()
        copy = pltpu.make_async_copy(x.at[pl.ds(w * 8, 8)], shared.at[pl.ds(subcore * 8, 8)], sent)
        copy.start()
        if early:
            copy.wait()
        plsc.subcore_barrier()
        after = jax.lax.rem(subcore + 1, 4)
        pltpu.sync_copy(shared.at[pl.ds(after * 8, 8)], o.at[pl.ds(w * 8, 8)])
        if not early:
            copy.wait()

    scratch = [pltpu.VMEM_SHARED((32, 16), F), pltpu.SemaphoreType.DMA]

    def races(early: bool) -> set[Verdict]:
        def kernel(x: Any, o: Any, shared: Any, sent: Any) -> None:
            body(x, o, shared, sent, early)

        return {f.verdict for f in one(kernel, (64, 16), scratch, X, properties=["body_races", "initialised"])}

    assert races(True) == {Verdict.PROVED}
    assert Verdict.UNKNOWN in races(False)


@pytest.mark.parametrize(("rows", "fits"), [(64000 // 16, True), (65536 // 16, False)])
def test_memory_of_all_subcores_is_one_memory(rows: int, fits: bool) -> None:
    """libtpu 0.0.52 takes 64,512 numbers for v6e, and refuses 65,536: 16 subcores share 1,048,575 words."""

    def body(x: Any, o: Any, own: Any) -> None:
        _, _, w = here()
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], own.at[pl.ds(0, 8)])
        pltpu.sync_copy(own.at[pl.ds(0, 8)], o.at[pl.ds(w * 8, 8)])

    budget = [f for f in one(body, (64, 16), [pltpu.VMEM((rows, 16), F)], X) if f.question == "memory_budget"]
    assert (Verdict.REFUTED in {f.verdict for f in budget}) is not fits


@pytest.mark.parametrize("asks", [False, True])
def test_what_cores_write_that_the_body_does_not_tell_apart_is_the_same(asks: bool) -> None:
    """Each row is copied by a subcore of both cores; where what it is depends on the core, they race."""

    def body(x: Any, o: Any, rows: Any) -> None:
        subcore = jax.lax.axis_index("subcore")
        first = jax.lax.axis_index("core") * 8 if asks else 0
        pltpu.sync_copy(x.at[pl.ds(first + subcore * 8, 8)], rows)
        pltpu.sync_copy(rows, o.at[pl.ds(subcore * 8, 8)])

    found = one(body, (32, 16), [pltpu.VMEM((8, 16), F)], X, properties=["body_races"])
    assert {f.verdict for f in found} == {Verdict.REFUTED if asks else Verdict.PROVED}


def test_a_scalar_subcore_shares_its_memory_with_nobody() -> None:
    def call(x: Any) -> Any:
        @pl.kernel(
            out_type=x,
            mesh=plsc.ScalarSubcoreMesh(axis_name="core", num_cores=2),
            scratch_types=[pltpu.VMEM_SHARED((32, 16), F)],
        )
        def halves(x: Any, o: Any, own: Any) -> None:
            at = pl.ds(jax.lax.axis_index("core") * 32, 32)
            pltpu.sync_copy(x.at[at], own)
            pltpu.sync_copy(own, o.at[at])

        return halves(x)

    found = lp.kernels(call, X, target=TARGET).findings
    assert not [f for f in found if f.severity == "error" and f.verdict is not Verdict.PROVED]


def test_a_number_is_not_loaded_from_the_vector_memory_of_a_subcore() -> None:
    def body(x: Any, o: Any, rows: Any) -> None:
        _, _, w = here()
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], rows)
        rows[0, pl.ds(0, 8)] = jnp.full((8,), rows[1, 0])
        pltpu.sync_copy(rows, o.at[pl.ds(w * 8, 8)])

    found = one(body, (64, 16), [pltpu.VMEM((8, 16), F)], X, properties=["body_accesses"])
    assert Verdict.REFUTED in {f.verdict for f in found}


@pytest.mark.parametrize(
    ("columns", "dtype", "tiled", "taken"),
    [(128, F, True, True), (16, F, True, False), (16, F, False, True), (128, jnp.bfloat16, True, False)],
)
def test_rows_that_the_compiler_takes_by_a_list(columns: int, dtype: Any, tiled: bool, taken: bool) -> None:
    """Each as libtpu 0.0.52 answers for v6e."""

    def call(x: Any, i: Any) -> Any:
        mesh = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=2, num_subcores=4)
        scratch = [pltpu.VMEM((8,), WHOLE), pltpu.VMEM((8, columns), dtype)]
        params = pltpu.CompilerParams(use_tc_tiling_on_sc=tiled)

        @pl.kernel(out_type=x, mesh=mesh, scratch_types=scratch, compiler_params=params)
        def rows(x: Any, i: Any, o: Any, listed: Any, found: Any) -> None:
            _, _, w = here()
            pltpu.sync_copy(i.at[pl.ds(w * 8, 8)], listed)
            pltpu.sync_copy(x.at[listed], found)
            pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

        return rows(x, i)

    shape = jax.ShapeDtypeStruct((64, columns), dtype)
    found = lp.kernels(call, shape, LISTED, target=TARGET, properties=["body_accesses"])
    assert found.exit_code == (0 if taken else 1)


def test_a_record_is_judged_as_the_call(tmp_path: Path) -> None:
    case = CASES["transposed_rows"]
    args = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in case.args()]
    (call,) = kernels_of(subcore_pairs.function_of(case, True), args, target=TARGET)
    (tmp_path / "calls.jsonl").write_bytes(records_of([call]))
    (read,) = read_records(tmp_path / "calls.jsonl")
    assert isinstance(call, Kernel)
    assert isinstance(read, Kernel)
    assert [(f.question, f.verdict, f.reason) for f in judge(read)] == [
        (f.question, f.verdict, f.reason) for f in judge(call)
    ]


def test_the_interpreter_is_not_asked_of_what_it_does_not_have() -> None:
    case = CASES["lookup"]
    args = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in case.args()]
    function = subcore_pairs.function_of(case, False)
    found = lp.kernels(function, *args, target=TARGET, assume=case.assume, replay=True)
    assert found.exit_code == 0
    assert "a kernel of SparseCores" in str(found)


def test_without_a_target_that_has_them_it_is_said_which_do() -> None:
    with pytest.raises(lp.LayoutError, match="SparseCores: v5p, v6e, 7x have some"):
        one(scattered, (64, 16), [pltpu.VMEM((8,), WHOLE), pltpu.VMEM((8, 16), F)], X, LISTED, target="v5e")


def signalling(amount: int, **to: Any) -> list[Finding]:
    """Each subcore tells the one before it; `to` is what the signal says of where it goes."""

    def body(x: Any, o: Any, shared: Any, there: Any) -> None:
        core, subcore, w = here()
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], shared.at[pl.ds(subcore * 8, 8)])
        before = jax.lax.rem(subcore + 3, 4)
        pl.semaphore_signal(there, amount, **(to or {"device_id": {"core": core, "subcore": before}}))
        pl.semaphore_wait(there, 1)
        pltpu.sync_copy(shared.at[pl.ds(jax.lax.rem(subcore + 1, 4) * 8, 8)], o.at[pl.ds(w * 8, 8)])

    return one(body, (64, 16), [pltpu.VMEM_SHARED((32, 16), F), pltpu.SemaphoreType.REGULAR], X)


def refuted(findings: list[Finding]) -> set[str]:
    return {f.question for f in findings if f.severity == "error" and f.verdict is Verdict.REFUTED}


def test_a_signal_of_a_subcore_that_nobody_waits_for_is_left() -> None:
    assert not [f for f in signalling(1) if f.severity == "error" and f.verdict is not Verdict.PROVED]
    assert refuted(signalling(2)) == {"semaphores_drained"}


def test_of_a_signal_to_a_core_that_is_said_in_another_way_nothing_is_known() -> None:
    findings = signalling(1, core_index=0)
    assert not refuted(findings)
    assert "body_races" in {f.question for f in findings if f.verdict is Verdict.UNKNOWN}


def test_tensor_cores_that_meet_may_read_what_the_other_has_written() -> None:
    def halves(meet: bool) -> list[Finding]:
        def body(x: Any, between: Any, o: Any, there: Any) -> None:
            core = jax.lax.axis_index("core")
            pltpu.sync_copy(x.at[pl.ds(core * 8, 8)], between.at[pl.ds(core * 8, 8)])
            if meet:
                pltpu.core_barrier(there, core_axis_name="core")
            pltpu.sync_copy(between.at[pl.ds((1 - core) * 8, 8)], o.at[pl.ds(core * 8, 8)])

        mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
        array = jax.ShapeDtypeStruct((16, 128), F)
        kernel = pl.kernel(body, out_type=(array, array), mesh=mesh, scratch_types=[pltpu.SemaphoreType.REGULAR])
        return [*lp.kernels(lambda x: kernel(x), array, target="v5p").findings]

    assert not [f for f in halves(True) if f.severity == "error" and f.verdict is not Verdict.PROVED]
    assert "body_races" in refuted(halves(False))


@pytest.mark.parametrize("waits", ["where it starts", "always"])
def test_what_is_open_of_one_subcore_is_not_walked_again_for_each_of_the_others(
    waits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def body(x: Any, n: Any, o: Any, listed: Any, found: Any, arrived: Any) -> None:
        _, _, w = here()
        pltpu.sync_copy(n.at[pl.ds(0, 8)], listed)
        some = listed[...][0] > 0
        copy = pltpu.make_async_copy(x.at[pl.ds(w * 8, 8)], found, arrived)
        pl.when(some)(copy.start)
        pl.when(some if waits == "where it starts" else w >= 0)(copy.wait)
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], o.at[pl.ds(w * 8, 8)])

    scratch = [pltpu.VMEM((8,), WHOLE), pltpu.VMEM((8, 16), F), pltpu.SemaphoreType.DMA]
    (kernel,) = kernels_of(lambda *given: made(body, (64, 16), scratch)(*given), (X, LISTED), target=TARGET)
    assert isinstance(kernel, Kernel)
    monkeypatch.setattr(in_flight, "FEW_STEPS", 0)
    walk = in_flight.FlightWalk(kernel, kernel.body)
    walk.one_by_one()
    assert walk.whole == (waits == "where it starts")
    assert {p.sure for p in walk.problems} == (set() if walk.whole else {False})


def test_of_random_kernels_of_subcores_no_verdict_is_wrong() -> None:
    chance = random.Random(7)
    found = {one: random_subcores.wrong(one) for one in (random_subcores.drawn(chance) for _ in range(24))}
    assert not [(one, said, why) for one, (said, why) in found.items() if why]
    said = {verdict for verdict, _ in found.values()}
    assert {"proved", "body_races", "device_waits"} <= said


def test_of_random_gathers_and_scatters_no_verdict_is_wrong() -> None:
    found = {k: random_gathers.wrong(random_gathers.drawn(random.Random(k)), k) for k in range(10)}
    assert not [(k, said, why) for k, (said, why) in found.items() if why]
    assert len({said for said, _ in found.values()}) > 2


def with_ignored(kind: str, ignored: int | None, low: int, fills: bool = True) -> set[tuple[str, str]]:
    """What is refuted, or open, of rows by a list with entries from `low` to 63."""
    right = {"high": 64, "permuted": True, "skips": 0, "adds": 0, "mask": "", "writes": "own"}
    kernel = random_gathers.Drawn(kind=kind, low=low, ignored=ignored, fills=fills, **right)  # type: ignore[arg-type]
    args = X, LISTED
    answer = lp.kernels(random_gathers.function_of(kernel), *args, target=TARGET, assume=random_gathers.assumed(kernel))
    open_ = [f for f in answer.findings if f.severity == "error" and f.verdict is not Verdict.PROVED]
    return {(f.question, f.reason.split(" if ")[0].partition(" (")[0]) for f in open_}


def test_rows_whose_place_is_ignored_are_not_moved() -> None:
    """-1 is no row of 64: it is outside, but where it is ignored; and then the row stays as it was."""
    assert not with_ignored("gather rows", -1, -1)
    assert with_ignored("gather rows", None, -1) == {("body_in_bounds", "refuted")}
    assert with_ignored("gather rows", -1, -2) == {("body_in_bounds", "refuted")}
    assert with_ignored("gather rows", -1, -1, fills=False) == {("initialised", "refuted")}
    assert not with_ignored("gather rows", None, 0, fills=False)
    # of a scatter an output is not stored where all that would go there is ignored
    assert not with_ignored("scatter rows", None, 0)
    assert {question for question, _ in with_ignored("scatter rows", 5, 0)} == {"outputs_stored"}


def test_a_number_that_all_subcores_add_to_is_refused_by_name() -> None:
    def body(x: Any, o: Any, counter: Any, found: Any) -> None:
        _, _, w = here()
        counter[0] = 0
        plsc.subcore_barrier()
        ticket = plsc.fetch_and_add(counter.at[0], 1, subcore_id=0)
        pltpu.sync_copy(x.at[pl.ds(ticket * 8, 8)], found)
        pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

    findings = one(body, (64, 16), [pltpu.SMEM((1,), WHOLE), pltpu.VMEM((8, 16), F)], X)
    assert not refuted(findings)
    refused = {f.question for f in findings if f.verdict is Verdict.UNKNOWN and "sc_fetch_and_add" in f.reason}
    assert {"body_in_bounds", "body_races", "dma_order", "initialised", "subcore_barrier"} <= refused
    assert all("by axis_index" in f.reason for f in findings if "sc_fetch_and_add" in f.reason)


def told(who: str, guarded: bool, stores: bool) -> list[Finding]:
    """Subcores add to a number of the first one, which set it to 0; that one then looks whether it is still 0.

    who: "all" subcores or "another" one.  guarded: whether only who finds 0 reads rows that are not there.  stores:
    whether who finds another number stores its rows.
    """

    def body(x: Any, o: Any, counter: Any, found: Any) -> None:
        _, subcore, w = here()
        counter[0] = 0
        plsc.subcore_barrier()
        added = (subcore >= 0) if who == "all" else (subcore == 1)

        @pl.when(added)
        def _() -> None:
            plsc.fetch_and_add(counter.at[0], 1, subcore_id=0)

        plsc.subcore_barrier()
        still = (counter[0] == 0) & (subcore == 0)
        outside = still if guarded else still | (subcore == 0)
        pltpu.sync_copy(x.at[pl.ds(jax.numpy.where(outside, 64, w * 8), 8)], found)

        @pl.when(~still if stores else subcore != 0)
        def _() -> None:
            pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

    return one(body, (64, 16), [pltpu.SMEM((1,), WHOLE), pltpu.VMEM((8, 16), F)], X)


@pytest.mark.parametrize("who", ["all", "another"])
def test_a_number_that_others_add_to_is_not_what_was_stored_there(who: str) -> None:
    """0 was taken for what is there, and a kernel that is right was refuted."""
    assert not refuted(told(who, guarded=True, stores=True))
    # what is wrong whatever is there is found
    assert refuted(told(who, guarded=False, stores=True)) == {"body_in_bounds"}
    stored = [f.verdict for f in told(who, guarded=True, stores=False) if f.question == "outputs_stored"]
    assert stored == [Verdict.UNKNOWN]


def test_what_is_not_modelled_may_write_what_is_read_after_it() -> None:
    def rows_of(ignored: int | None, fetched: bool) -> list[Finding]:
        def body(x: Any, i: Any, o: Any, listed: Any, found: Any) -> None:
            _, _, w = here()
            pltpu.sync_copy(i.at[pl.ds(w * 8, 8)], listed)
            if fetched:
                pltpu.sync_copy(x.at[plsc.Indices(listed, ignored_value=ignored)], found)
            pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

        return one(body, (64, 16), [pltpu.VMEM((8,), WHOLE), pltpu.VMEM((8, 16), F)], X, LISTED)

    assert "initialised" not in refuted(rows_of(-1, True))
    assert "initialised" in {f.question for f in rows_of(-1, True) if f.verdict is Verdict.UNKNOWN}
    assert "initialised" in refuted(rows_of(-1, False))
    assert {f.verdict for f in rows_of(None, True) if f.question == "initialised"} == {Verdict.PROVED}


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="the TPU compiler is not installed")
def test_a_program_that_jax_cannot_read_back_was_compiled() -> None:
    """libtpu 0.0.52 takes it for v6e; jaxlib 0.10.2 fails on the text: "async-update .. 1 operands but sees 2"."""
    answer = lp.kernels(
        lambda x: CASES["neighbours"].build(False)(x), jax.ShapeDtypeStruct((64, 16), F), target=TARGET, compile=True
    )
    (said,) = (f for f in answer.findings if f.question == "compiled")
    assert said.verdict is Verdict.PROVED, said.reason
