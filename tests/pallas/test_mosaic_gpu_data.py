"""Kernels of Mosaic GPU where data decide what threads do, or JAX leaves out its barriers: right and wrong ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("jax", reason="kernels are traced")

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.mosaic_gpu import _left
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.core.term import Term
from layoutproof.ir.program import Equation, primitive
from layoutproof.pallas.from_jax import adapter
from layoutproof.pallas.from_jax.adapter import name_of
from tests.pallas.mosaic_gpu_pairs import TILED
from tests.said import Said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(jax.__version__ != "0.10.2", reason="as of jax 0.10.2"),
]

F = jnp.float32
WHOLE = jax.ShapeDtypeStruct((512, 128), F)
COUNT = jax.ShapeDtypeStruct((1,), jnp.int32)
RACE, STORED, BOUNDS = "body_races", "outputs_stored", "body_in_bounds"


def open_of(function: Any, *args: Any, assume: tuple[str, ...] = ()) -> list[Finding]:
    """The errors that are not proved."""
    found = lp.kernels(function, *args, target="mosaic_gpu", assume=assume).findings
    return [f for f in found if f.asked and f.severity == "error" and f.verdict is not Verdict.PROVED]


def copied_by_data(left: int = 0, commit: bool = True, drained: bool = True, at_end: bool = True) -> Any:
    """Two threads, of which one stores and copies out what data decide on, four times into one memory."""

    def body(n_gmem: Any, x_gmem: Any, o_gmem: Any, x_s: Any, o_s: Any, full: Any, empty: Any) -> None:
        wg, many = lax.axis_index("wg"), n_gmem[0]

        @pl.when(wg == 0)
        def _() -> None:
            @pl.loop(0, 4)
            def _(k: Any) -> None:
                pl.when(k >= 1)(lambda: plgpu.barrier_wait(empty))
                plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(k * 64, 64)], x_s, full)

            plgpu.barrier_wait(empty)

        @pl.when(wg == 1)
        def _() -> None:
            @pl.loop(0, 4)
            def _(k: Any) -> None:
                plgpu.barrier_wait(full)
                if drained:
                    plgpu.wait_smem_to_gmem(left)
                o_s[...] = x_s[...] * 2
                plgpu.barrier_arrive(empty)
                if commit:
                    plgpu.commit_smem()

                @pl.when(many > k)
                def _() -> None:
                    plgpu.copy_smem_to_gmem(o_s, o_gmem.at[pl.ds(k * 64, 64)])

            if at_end:
                plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(
        body,
        out_type=WHOLE,
        num_threads=2,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((64, 128), F), plgpu.SMEM((64, 128), F), plgpu.Barrier(), plgpu.Barrier()],
    )


def test_copies_out_that_data_decide_on_are_proved_but_for_what_they_store() -> None:
    assert {f.question for f in open_of(copied_by_data(), COUNT, WHOLE)} == {STORED}


@pytest.mark.parametrize(
    ("wrong", "question"),
    [
        ({"drained": False}, "dma_order"),
        ({"at_end": False}, "dma_order"),
        ({"commit": False}, "commit_smem"),
        ({"left": 1}, "dma_order"),
    ],
)
def test_copies_out_that_data_decide_on_are_never_green_where_they_are_wrong(
    wrong: dict[str, Any], question: str
) -> None:
    found = {f.question: f.verdict for f in open_of(copied_by_data(**wrong), COUNT, WHOLE)}
    # whether it happens is up to data, so that it is not refuted either
    assert found[question] is Verdict.UNKNOWN


def test_how_many_copies_are_left_is_not_known_where_data_decide() -> None:
    (found,) = (f for f in open_of(copied_by_data(left=1), COUNT, WHOLE) if f.question == "dma_order")
    assert Said("bodies.thread_reaches").of(found.reason)


def looked_up(x_gmem: Any, i_gmem: Any, o_gmem: Any, smem: Any, barrier: Any) -> None:
    """Rows of the input where a list of places says."""
    first = i_gmem[lax.axis_index("i")] * 64
    plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(lax.axis_index("i") * 64, 64)], smem, barrier)
    plgpu.barrier_wait(barrier)
    plgpu.copy_smem_to_gmem(smem, o_gmem.at[pl.ds(first, 64)])
    plgpu.wait_smem_to_gmem(0)


def lookup() -> Any:
    return plgpu.kernel(
        looked_up,
        out_type=WHOLE,
        grid=(8,),
        grid_names=("i",),
        scratch_types=[plgpu.SMEM((64, 128), F), plgpu.Barrier()],
    )


LIST = WHOLE, jax.ShapeDtypeStruct((8,), jnp.int32)
WITHIN = "0 <= args[1] < 8"


@pytest.mark.parametrize(
    ("assume", "left"),
    [
        ((WITHIN, "args[1] is injective", "args[1] is onto"), set()),
        ((WITHIN,), {STORED, RACE}),
        (("0 <= args[1] < 9",), {STORED, RACE, BOUNDS}),
        ((), {STORED, RACE, BOUNDS}),
    ],
)
def test_lists_in_global_memory_are_tables_that_assumptions_speak_of(assume: tuple[str, ...], left: set[str]) -> None:
    found = open_of(lookup(), *LIST, assume=assume)
    assert {f.question for f in found} == left
    # a caller may give another list: nothing is refuted, and nothing is green
    assert {f.verdict for f in found} <= {Verdict.UNKNOWN}


def lanes(second: str = "", ordered: bool = False, threads: int = 2) -> Any:
    """One thread fetches, and one loads, stores and copies out, where JAX puts no barrier around loads and stores."""

    def body(x_gmem: Any, o_gmem: Any, x_s: Any, o_s: Any, full: Any, empty: Any) -> None:
        wg = lax.axis_index("wg")
        fetches, computes = (0, 1) if "fetch" not in second else (1, 1)

        @pl.when(wg == fetches)
        def _() -> None:
            plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(0, 64)], x_s, full)

        @pl.when(wg == computes)
        def _() -> None:
            plgpu.barrier_wait(full)
            o_s[...] = x_s[...] * 2
            if second == "fetches again":
                plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(64, 64)], x_s, full)
                plgpu.barrier_wait(full)
            if second == "reads":
                plgpu.barrier_arrive(empty)
                plgpu.barrier_wait(empty)
                o_s[...] = o_s[...] + 1
            if second == "stores":
                o_s[...] = x_s[...] * 3
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(o_s, o_gmem.at[pl.ds(0, 64)])
            plgpu.wait_smem_to_gmem(0)
            o_s[...] = x_s[...] * 4
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(o_s, o_gmem.at[pl.ds(64, 64)])
            plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((128, 128), F),
        num_threads=threads,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((64, 128), F), plgpu.SMEM((64, 128), F), plgpu.Barrier(), plgpu.Barrier()],
        compiler_params=plgpu.CompilerParams(unsafe_no_auto_barriers=not ordered),
    )


@pytest.mark.parametrize("second", ["", "fetches"])
def test_without_barriers_of_jax_what_needs_none_is_proved(second: str) -> None:
    assert not open_of(lanes(second), WHOLE)


@pytest.mark.parametrize("second", ["reads", "stores", "fetches again"])
def test_without_barriers_of_jax_what_needs_them_is_never_green(second: str) -> None:
    assert not open_of(lanes(second, ordered=True), WHOLE)
    found = {f.question: f for f in open_of(lanes(second), WHOLE)}
    assert found["dma_order"].verdict is Verdict.UNKNOWN
    assert Said("bodies.read_and_stored").of(found["dma_order"].reason)


def windows(first: int) -> Any:
    def body(x_gmem: Any, o_gmem: Any) -> None:
        def step(_: Any, x_s: Any, o_s: Any) -> None:
            o_s[...] = x_s[...] * 2

        plgpu.emit_pipeline(
            step,
            grid=(3,),
            in_specs=[plgpu.BlockSpec((pl.Element(64), 128), lambda k: (first + k * 64, 0))],
            out_specs=[plgpu.BlockSpec((64, 128), lambda k: (k, 0))],
        )(x_gmem, o_gmem)

    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((192, 128), F))


@pytest.mark.parametrize(("first", "refuted"), [(8, False), (383, False), (384, True)])
def test_a_pipeline_of_a_gpu_has_windows_of_elements_that_begin_inside(first: int, refuted: bool) -> None:
    found = open_of(windows(first), WHOLE)
    assert {f.question for f in found} == ({"body_in_bounds"} if refuted else set())
    assert {f.verdict for f in found} <= {Verdict.REFUTED}


def test_how_many_a_wait_leaves_is_a_parameter_in_newer_versions() -> None:
    def wait(**params: Any) -> Equation:
        return Equation(primitive("wgmma_wait"), (), (), params, "")

    assert _left(wait(n=1), []) == Term("int", 1)
    with pytest.raises(UnsupportedOp):
        _left(wait(), [])


@pytest.mark.parametrize("name", ["set_max_registers", "wgmma_accumulator_deref", "inline_mgpu"])
def test_primitives_of_newer_versions_are_read_by_their_names_of_before(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jax._src.pallas.mosaic_gpu import primitives
    from jax.extend.core import Primitive

    newer = Primitive(name)
    monkeypatch.setattr(primitives, f"{name}_p", newer)
    assert name_of(newer) == f"{name}_p"
    # anybody's primitive of the name is none of them
    assert name_of(Primitive(name)) == name


CopyAndWait = tuple[Callable[[Any, Any], None], Callable[[int], None]]


@pytest.fixture
def cp_async(monkeypatch: pytest.MonkeyPatch) -> Iterator[CopyAndWait]:
    """A copy without a barrier, and its wait, which jax 0.12 has for GPUs before Hopper."""
    from jax._src.pallas.mosaic_gpu import primitives
    from jax._src.state.primitives import get_ref_and_transforms
    from jax._src.state.types import ReadEffect, WriteEffect
    from jax.extend.core import Primitive

    copies, waits = Primitive("copy_gmem_to_smem"), Primitive("wait_gmem_to_smem")
    copies.multiple_results = waits.multiple_results = True
    copies.def_effectful_abstract_eval(lambda *_, **__: ((), {ReadEffect(0), WriteEffect(1)}))
    waits.def_effectful_abstract_eval(lambda *_, **__: ((), set(plgpu_effects())))
    monkeypatch.setattr(primitives, "copy_gmem_to_smem_p", copies)

    def copy(source: Any, target: Any) -> None:
        (a, of_a), (b, of_b) = (get_ref_and_transforms(one, None, "copy") for one in (source, target))
        (own, tree), (others, other) = jax.tree.flatten(of_a), jax.tree.flatten(of_b)
        none = jax.tree.structure(())
        trees = {"src_transforms_treedef": tree, "dst_transforms_treedef": other, "barrier_transforms_treedef": none}
        said = {"has_barrier": False, "has_user_predicate": False, "collective_axes": None, "leader_tracked": None}
        copies.bind(a, b, *own, *others, oob_mode="PROMISE_IN_BOUNDS", **trees, **said)

    adapter._primitives.cache_clear()
    yield copy, lambda n: waits.bind(n=n) and None
    adapter._primitives.cache_clear()


def plgpu_effects() -> tuple[Any, ...]:
    from jax._src.pallas.mosaic_gpu import core

    return (core._memory_effect,)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("left", "ahead", "question"), [(1, 0, ""), (0, 0, ""), (2, 0, "dma_order"), (1, 1, "dma_order")]
)
def test_copies_without_a_barrier_are_groups_in_order(
    left: int, ahead: int, question: str, threads: int, cp_async: CopyAndWait
) -> None:
    """Four parts come into two slots, each while the part before it is stored."""
    copy, wait = cp_async

    def body(x_gmem: Any, o_gmem: Any, x_s: Any) -> None:
        def fetches() -> None:
            copy(x_gmem.at[pl.ds(0, 64)], x_s.at[0])
            for k in range(4):
                if k < 3:
                    copy(x_gmem.at[pl.ds(k * 64 + 64, 64)], x_s.at[(k + 1 + ahead) % 2])
                wait(left if k < 3 else 0)
                o_gmem[pl.ds(k * 64, 64)] = x_s[k % 2]

        pl.when(lax.axis_index("wg") == threads - 1)(fetches)

    function = plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((256, 128), F),
        num_threads=threads,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((2, 64, 128), F)],
    )
    found = {f.question: f.verdict for f in open_of(function, WHOLE)}
    assert found.get(question, Verdict.REFUTED) is Verdict.REFUTED
    assert bool(found) is bool(question)


def test_copies_without_a_barrier_are_of_ampere(cp_async: CopyAndWait) -> None:
    copy, wait = cp_async

    def copied(rows: int) -> Any:
        def body(x_gmem: Any, o_gmem: Any, x_s: Any) -> None:
            copy(x_gmem.at[pl.ds(0, rows)], x_s)
            wait(0)
            o_gmem[...] = x_s[...]

        memory = plgpu.SMEM((rows, 128), F)
        return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((rows, 128), F), scratch_types=[memory])

    assert not open_of(copied(326), WHOLE)
    assert {f.question for f in open_of(copied(327), WHOLE)} == {"memory_budget"}
    found = {f.question: f.verdict for f in lp.kernels(copied(64), WHOLE, target="h100").findings}
    assert found["gpu_instructions"] is Verdict.REFUTED


def multiplied(released: int, waited: int, stages: int, more: int = 0, turns: int | None = None) -> Any:
    """The sum of products of tiles of f16[64,2048] and f16[2048,64], by a pipeline of as many steps as a table says.

    released: how many turns behind slots are filled again.  waited: MMAs that each turn leaves running.  more: steps
    beyond those that are said.  turns: a number that is known, in the table's stead.
    """

    def body(n_gmem: Any, a_gmem: Any, b_gmem: Any, o_gmem: Any) -> None:
        many = n_gmem[0] if turns is None else turns

        def summed(acc: Any) -> Any:
            def step(_: Any, a_s: Any, b_s: Any) -> None:
                plgpu.wgmma(acc, a_s, b_s)
                plgpu.wgmma_wait(waited)

            spec = {"transforms": TILED, "delay_release": released}
            plgpu.emit_pipeline(
                step,
                grid=(many + more,),
                in_specs=[
                    plgpu.BlockSpec((64, 64), lambda k: (0, k), **spec),
                    plgpu.BlockSpec((64, 64), lambda k: (k, 0), **spec),
                ],
                max_concurrent_steps=stages,
            )(a_gmem, b_gmem)
            return acc[...]

        found = pl.run_scoped(summed, plgpu.ACC((64, 64)))

        @functools.partial(pl.run_scoped, o_s=plgpu.SMEM((64, 64), F))
        def _(o_s: Any) -> None:
            o_s[...] = found
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(o_s, o_gmem)
            plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((64, 64), F))


FACTORS = COUNT, jax.ShapeDtypeStruct((64, 2048), jnp.float16), jax.ShapeDtypeStruct((2048, 64), jnp.float16)
STEPS = 32
"""Steps at most."""


@pytest.mark.parametrize("stages", [2, 3, 6])
@pytest.mark.parametrize(("released", "waited"), [(0, 0), (1, 0), (1, 1), (0, 1)])
def test_a_pipeline_of_any_number_of_steps_is_right_where_it_is_for_each(
    stages: int, released: int, waited: int
) -> None:
    each = [open_of(multiplied(released, waited, stages, turns=n), *FACTORS) for n in (1, 2, 3, 9, STEPS)]
    said = open_of(multiplied(released, waited, stages), *FACTORS, assume=(f"0 <= args[0] <= {STEPS}",))
    assert bool(said) == any(each) == (waited > released)
    assert {f.question for f in said} <= {f.question for found in each for f in found}


def test_a_pipeline_of_a_step_too_many_leaves_its_array() -> None:
    said = open_of(multiplied(1, 1, 2, more=1), *FACTORS, assume=(f"0 <= args[0] <= {STEPS}",))
    assert {f.question for f in said} == {"body_in_bounds"}
    assert not open_of(multiplied(1, 1, 2, more=1), *FACTORS, assume=(f"0 <= args[0] < {STEPS}",))


@pytest.mark.parametrize(("first", "right"), [(384, True), (448, False)])
def test_a_part_of_an_array_may_end_outside_where_what_is_touched_of_it_does_not(first: int, right: bool) -> None:
    def body(x_gmem: Any, o_gmem: Any, x_s: Any, full: Any) -> None:
        part = x_gmem.at[pl.ds(lax.axis_index("i") * 64 + first, 256)]
        plgpu.copy_gmem_to_smem(part.at[pl.ds(64, 64)], x_s, full)
        plgpu.barrier_wait(full)
        plgpu.copy_smem_to_gmem(x_s, o_gmem)
        plgpu.wait_smem_to_gmem(0)

    made = plgpu.kernel(
        body,
        out_type=jax.ShapeDtypeStruct((64, 128), F),
        grid=(1,),
        grid_names=("i",),
        scratch_types=[plgpu.SMEM((64, 128), F), plgpu.Barrier()],
    )
    assert {f.question for f in open_of(made, WHOLE)} == (set() if right else {"body_in_bounds"})


def in_two_scopes(left: bool, slots: int, threads: int) -> Any:
    """x by way of shared memory, after a scope with a barrier: perhaps one arrival is left on it, which another gets.

    left: whether nothing waits for that arrival.  slots: of the second scope's barrier; the first one has one.
    """

    def body(x_gmem: Any, o_gmem: Any, x_s: Any) -> None:
        def first(barrier: Any) -> None:
            only(lambda: plgpu.barrier_arrive(barrier))
            if not left:
                plgpu.barrier_wait(barrier)

        def second(barrier: Any) -> None:
            def copies() -> None:
                plgpu.copy_gmem_to_smem(x_gmem, x_s, barrier.at[0])
                plgpu.barrier_wait(barrier.at[0])
                plgpu.copy_smem_to_gmem(x_s, o_gmem)
                plgpu.wait_smem_to_gmem(0)

            only(copies)

        def only(does: Any) -> None:
            pl.when(lax.axis_index("wg") == 0)(does) if threads > 1 else does()

        axes = {"collective_axes": "wg"} if threads > 1 else {}
        pl.run_scoped(first, plgpu.Barrier(), **axes)
        pl.run_scoped(second, plgpu.Barrier(num_barriers=slots), **axes)

    options = {"num_threads": threads, "thread_name": "wg"} if threads > 1 else {}
    scratch = [plgpu.SMEM((64, 128), F)]
    return plgpu.kernel(body, out_type=jax.ShapeDtypeStruct((64, 128), F), scratch_types=scratch, **options)


@pytest.mark.parametrize(
    ("left", "slots", "threads", "right"),
    [(left, slots, threads, not left or slots > 1) for left in (False, True) for slots in (1, 2) for threads in (1, 2)],
)
def test_an_arrival_that_a_later_scope_may_see_is_never_green(
    left: bool, slots: int, threads: int, right: bool
) -> None:
    found = open_of(in_two_scopes(left, slots, threads), jax.ShapeDtypeStruct((64, 128), F))
    assert {f.question for f in found} == (set() if right else {"dma_order"})
    assert all(Said("bodies.left_on_barrier").of(f.reason) for f in found)
