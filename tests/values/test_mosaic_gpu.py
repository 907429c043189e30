"""Kernels of Mosaic GPU are compared with what they should compute: threads, clusters, copies, products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("jax", reason="tracing needs the extra [jax]")

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.questions.same_plan import planned, traced
from layoutproof.values.floats import Floats, array_of
from layoutproof.values.pair import Pair
from layoutproof.values.walk import Prepared
from tests.pallas import mosaic_gpu_pairs, mosaic_gpu_thread_pairs
from tests.pallas.mosaic_gpu_pairs import LONG, PAIRS, ROWS, WANTED
from tests.pallas.mosaic_gpu_thread_pairs import THREAD_PAIRS, bar
from tests.values.mosaic_gpu_cases import CASES, TENSOR_CASES, TILED, F, H, T, kernel, of

pytestmark = pytest.mark.slow

WRONG = [(name, wrong) for name, case in CASES.items() for wrong in case.wrong]


@pytest.mark.parametrize("name", CASES)
def test_the_right_one_computes_what_is_wanted(name: str) -> None:
    case = CASES[name]
    found = lp.same(case.make(""), case.want, *case.args)
    assert (found.verdict, found.exit_code) == (Verdict.SAMPLED, 0)
    assert found.comparison.points == 3


@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_the_wrong_one_computes_what_its_error_says(name: str, wrong: str) -> None:
    """Refuted beside what is wanted, on numbers, with all places proved; beside what the error makes of it, it is the
    same: so the walk computes what the kernel does, and not something else that differs, too."""
    case = CASES[name]
    function = case.make(wrong)
    refuted = lp.same(function, case.want, *case.args)
    assert (refuted.verdict, refuted.exit_code) == (Verdict.REFUTED, 1)
    assert refuted.comparison.witness is not None
    assert all(premise.verdict is Verdict.PROVED for premise in refuted.premises)
    assert lp.same(function, case.wrong[wrong], *case.args).verdict is Verdict.SAMPLED


def test_unsigned_operands_are_multiplied_with_a_sign() -> None:
    """So JAX's kernel does not compute what its types say."""
    case = CASES["unsigned"]
    by_type = lambda a, b: a.astype(jnp.int32) @ b.astype(jnp.int32).T  # noqa: E731
    assert lp.same(case.make(""), by_type, *case.args).verdict is Verdict.REFUTED


RIGHT = {
    "add_one": ROWS, "doubled": LONG, "piped_out": ROWS, "handed": LONG, "shared_by_two": LONG,
    "stored_for_another": LONG, "spread": LONG,
}  # fmt: skip
"""The kernels of the pairs without products."""
OF_PRODUCTS = (
    "MMA before the wait", "fetch before the MMA ends", "MMA, and no commit before the copy",
    "threads: released before the MMA ends", "threads: one of two that multiply releases",
)  # fmt: skip
"""Pairs with products, which take longer: the others have errors of the same kinds."""

NOT_READ = ("threads: one place read after its results are stored",)
"""Pairs whose error is in values that the walk does not read: of arrays that have one place."""


def made(name: str) -> Callable[..., Any]:
    module = mosaic_gpu_pairs if hasattr(mosaic_gpu_pairs, name) else mosaic_gpu_thread_pairs
    return getattr(module, name)


@pytest.mark.parametrize(
    "name",
    [name for name, pair in (PAIRS | THREAD_PAIRS).items() if pair.args in (ROWS, LONG) or name in OF_PRODUCTS],
)
def test_the_errors_of_order_and_place_are_never_green(name: str) -> None:
    """The walk takes one order, in which some of them compute what is wanted: what it rests on says so."""
    pair = (PAIRS | THREAD_PAIRS)[name]
    found = lp.same(pair.make(**pair.wrong), WANTED[pair.args], *pair.args).verdict
    assert found is (Verdict.UNKNOWN if name in NOT_READ else Verdict.REFUTED)


@pytest.mark.parametrize("name", RIGHT)
def test_the_right_ones_of_the_pairs_compute_what_is_wanted(name: str) -> None:
    assert lp.same(made(name)(), WANTED[RIGHT[name]], *RIGHT[name]).verdict is Verdict.SAMPLED


# JAX beside it


def walked(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """(Some inputs, what a walk on float64 says of a function on them)."""
    with planned(function, function, args, None, (), points=1) as plan:
        pair = traced(plan)
        compared = Pair(pair.programs, pair.arrays, Prepared(), pair.outputs)
        numbers = Floats(1)
        values = compared.draw(numbers)
        (found,), _ = compared.walked(numbers, 0, values)
    types = [a.dtype for a in args]
    return [np.asarray(array_of(v)).astype(t) for v, t in zip(values, types, strict=True)], array_of(found)


@contextmanager
def interpreted() -> Iterator[None]:
    """Kernels are run by JAX's interpreter of Mosaic GPU on a CPU."""
    from jax._src.pallas.mosaic_gpu.interpret import gpu_callbacks
    from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams

    gpu_callbacks.reset_gpu_interpret_mode_state()
    own = plgpu.kernel

    def made(*args: Any, **options: Any) -> Any:
        return own(*args, interpret=InterpretGPUParams(), **options)

    with mock.patch.object(plgpu, "kernel", made):
        yield


@pytest.mark.parametrize("wrong", ["", *CASES["scaled"].wrong])
def test_the_walk_computes_what_jaxs_interpreter_does(wrong: str) -> None:
    """Of products of a warpgroup it gives NaN, it knows no copies of clusters, clips none, and has no predicates."""
    case = CASES["scaled"]
    inputs, ours = walked(case.make(wrong), case.args)
    with interpreted():
        theirs = np.asarray(case.make(wrong)(*inputs))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["add_one", "doubled", "handed", "shared_by_two", "stored_for_another"])
def test_and_so_it_does_of_the_pairs(name: str) -> None:
    inputs, ours = walked(made(name)(), RIGHT[name])
    with interpreted():
        theirs = np.asarray(made(name)()(*inputs))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_walk_computes_what_jax_does_of_the_reference(name: str) -> None:
    case = CASES[name]
    inputs, ours = walked(case.make(""), case.args)
    theirs = np.asarray(case.want(*map(jnp.asarray, inputs))).astype(np.float64)
    # conversions to float8 are made of numbers that are rounded otherwise
    away = np.abs(ours - theirs) > 2e-2 * np.maximum(np.abs(theirs), 1)
    assert away.mean() < (0.02 if name == "narrowed" else 1e-9)


# what is refused


def doubling(body: Callable[..., None], **options: Any) -> Any:
    return kernel(body, (128, T), F, {"i": 2}, plgpu.SMEM((T, T), F), plgpu.Barrier(), **options)


def fetched(x: Any, o: Any, x_s: Any, filled: Any) -> None:
    part = pl.ds(lax.axis_index("i") * T, T)
    plgpu.copy_gmem_to_smem(x.at[part], x_s, filled)
    plgpu.barrier_wait(filled)
    o[part] = x_s[...] * 2


def added(x: Any, o: Any, x_s: Any, filled: Any) -> None:
    part = pl.ds(lax.axis_index("i") * T, T)
    plgpu.copy_gmem_to_smem(x.at[part], x_s, filled)
    plgpu.barrier_wait(filled)
    plgpu.copy_smem_to_gmem(x_s, o.at[part], reduction_op="add")
    plgpu.wait_smem_to_gmem(0)


def chosen(x: Any, o: Any, x_s: Any, filled: Any) -> None:
    part = pl.ds(lax.axis_index("i") * T, T)
    plgpu.copy_gmem_to_smem(x.at[part], x_s, filled)
    plgpu.barrier_wait(filled)
    plgpu.copy_smem_to_gmem(x_s, o.at[part], predicate=x_s[0, 0] > 0)
    plgpu.wait_smem_to_gmem(0)


def without_layout(x: Any, o: Any, x_s: Any, filled: Any) -> None:
    part = pl.ds(lax.axis_index("i") * T, T)
    plgpu.copy_gmem_to_smem(x.at[part], x_s, filled)
    plgpu.barrier_wait(filled)
    o[part] = x_s.ref[...].reshape(T, T) * 2


def read_back(x: Any, o: Any, x_s: Any, filled: Any) -> None:
    part = pl.ds(lax.axis_index("i") * T, T)
    x_s[...] = x[part] * 2
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(x_s, o.at[part])
    plgpu.wait_smem_to_gmem(0)
    plgpu.copy_gmem_to_smem(o.at[part], x_s, filled)
    plgpu.barrier_wait(filled)
    o[part] = x_s[...]


def voted(x: Any, o: Any, x_s: Any, filled: Any) -> None:
    """Whether a lane has seen something is what code of the compiler computes of registers."""
    part = pl.ds(lax.axis_index("i") * T, T)
    plgpu.copy_gmem_to_smem(x.at[part], x_s, filled)
    plgpu.barrier_wait(filled)
    layout = plgpu.Layout.WG_STRIDED((T, T), vec_size=4)
    held = plgpu.load(x_s, (), layout=layout)

    @plgpu.inline_mgpu(arg_types=(layout,), return_type=plgpu.ShapeDtypeStruct((T, T), F, layout))
    def twice(_: Any, values: Any) -> Any:
        return values + values

    o[part] = twice(held)


def by_other_threads(x: Any, o: Any, x_s: Any, filled: Any) -> None:
    part = pl.ds(lax.axis_index("i") * T, T)
    bar("sync", 5, 256)
    o[part] = x[part] * 2


REFUSED = {
    "registers": (doubling(voted), "computes in registers"),
    "named barrier": (doubling(by_other_threads), "for ever"),
    "reduction": (doubling(added), "combines"),
    "condition": (doubling(chosen), "condition"),
    "read back": (doubling(read_back), "global"),
    "auto barriers": (
        doubling(fetched, compiler_params=plgpu.CompilerParams(unsafe_no_auto_barriers=True)), "unsafe_no_auto_barriers"
    ),
    "layout": (
        kernel(without_layout, (128, T), F, {"i": 2},
               plgpu.SMEM((T, T), F, transforms=(plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))),
               plgpu.Barrier()),
        "UnswizzleRef",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_modelled_is_unknown_by_its_name(name: str) -> None:
    function, why = REFUSED[name]
    found = lp.same(function, lambda x: 2 * x, of((128, T), F))
    assert (found.verdict, found.exit_code) == (Verdict.UNKNOWN, 3)
    assert why in found.reason


def test_bits_of_another_array_in_the_same_place_are_not_known() -> None:
    """What is read of a place after other elements were stored to it is refused, and what was stored again is not."""

    def reads(again: bool) -> Any:
        def body(x: Any, o: Any, place: Any) -> None:
            first, second = place
            first[...] = x[...]
            second[pl.ds(0, 32)] = (x[pl.ds(0, 32)] * 2).astype(H)
            if again:
                first[pl.ds(0, 16)] = x[pl.ds(0, 16)]
            o[...] = first[...]

        place = plgpu.RefUnion(plgpu.SMEM((T, 64), F), plgpu.SMEM((T, 64), H))
        return kernel(body, (T, 64), F, {"i": 1}, place)

    compared = [lp.same(reads(again), lambda x: x, of((T, 64), F)).comparison for again in (False, True)]
    assert [found.verdict for found in compared] == [Verdict.UNKNOWN, Verdict.SAMPLED]
    assert "RefUnion" in compared[0].reason


def test_what_is_right_of_them_is_the_same() -> None:
    assert lp.same(doubling(fetched), lambda x: 2 * x, of((128, T), F)).verdict is Verdict.SAMPLED


OF_TENSOR = [(name, wrong) for name, case in TENSOR_CASES.items() for wrong in ("", *case.wrong)]


@pytest.mark.parametrize(("name", "wrong"), OF_TENSOR)
def test_tensor_memory_holds_what_mmas_leave_once_they_are_waited_for(name: str, wrong: str) -> None:
    """Asked of the comparison alone: what it rests on is for `kernels` to say."""
    case = TENSOR_CASES[name]
    function, other = case.make(wrong), case.wrong.get(wrong, case.want)
    found = lp.same(function, case.want, *case.args).comparison
    assert found.verdict is (Verdict.REFUTED if wrong else Verdict.SAMPLED)
    inputs, ours = walked(function, case.args)
    theirs = np.asarray(other(*map(jnp.asarray, inputs)))
    np.testing.assert_allclose(ours, theirs, rtol=2e-2, atol=2e-2)


def test_warps_that_wait_for_one_another_for_ever_are_unknown() -> None:
    def body(x: Any, o: Any, x_s: Any, filled: Any) -> None:
        @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
        def _() -> None:
            pl.when(lax.axis_index("warp") < 2)(lambda: plgpu.barrier_wait(filled))

        o[...] = x[...]

    assert lp.same(doubling(body), lambda x: x, of((128, T), F)).comparison.verdict is Verdict.UNKNOWN


def test_a_product_of_integers_is_one_where_none_wraps() -> None:
    whole = jnp.int8
    tiles = (plgpu.TilingTransform((8, 128)), plgpu.SwizzleTransform(128))

    def body(a: Any, b: Any, o: Any, a_s: Any, b_s: Any, filled: Any) -> None:
        plgpu.copy_gmem_to_smem(a, a_s, filled)
        plgpu.copy_gmem_to_smem(b, b_s, filled)
        plgpu.barrier_wait(filled)
        right = plgpu.transpose_ref(b_s, (1, 0))
        o[...] = pl.run_scoped(lambda acc: (plgpu.wgmma(acc, a_s, right), acc[...])[1], plgpu.ACC((T, T), jnp.int32))

    memory = plgpu.SMEM((T, 128), whole, transforms=tiles)
    function = kernel(body, (T, T), jnp.int32, {"i": 1}, memory, memory, plgpu.Barrier(num_arrivals=2))
    args = of((T, 128), whole), of((T, 128), whole)
    right = lp.same(function, lambda a, b: a.astype(jnp.int32) @ b.astype(jnp.int32).T, *args)
    wrong = lp.same(function, lambda a, b: a.astype(jnp.int32) @ a.astype(jnp.int32).T, *args)
    assert (right.verdict, wrong.verdict) == (Verdict.SAMPLED, Verdict.REFUTED)


def test_programs_of_a_cluster_share_a_copy_as_it_lies_in_tiles() -> None:
    """Each brings the first or the second half of the tiles, whatever the other one copies."""

    def body(x: Any, o: Any, x_s: Any, full: Any) -> None:
        mine = lax.axis_index("c")
        plgpu.copy_gmem_to_smem(x.at[mine], x_s, full, collective_axes="c")
        plgpu.barrier_wait(full)
        o[mine] = x_s[...]

    options = {"cluster": (2,), "cluster_names": ("c",)}
    for rows, halves in ((T, 32), (8, 0)):
        memory = plgpu.SMEM((rows, 128), H, transforms=TILED)
        function = kernel(body, (2, rows, 128), H, {}, memory, plgpu.Barrier(), **options)

        def each(x: Any, halves: int = halves) -> Any:
            # of one row of tiles the halves are of columns
            both = jnp.concatenate([x[0, :32], x[1, 32:]]) if halves else jnp.concatenate([x[0, :, :T], x[1, :, T:]], 1)
            return jnp.stack([both, both])

        assert lp.same(function, each, of((2, rows, 128))).verdict is Verdict.SAMPLED
        assert lp.same(function, lambda x: x, of((2, rows, 128))).verdict is Verdict.REFUTED
