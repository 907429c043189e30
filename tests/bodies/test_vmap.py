"""A batched kernel is the same kernel: `jax.vmap` puts a dimension in front of the grid, which the body does not count.

Each way to batch is tried on kernels that are right and on their wrong neighbours; and the net that needs no oracle:
traced and dumped, batched and not, no kernel of the pitfalls is proved in one form and refuted in another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from tests.bodies import forms
from tests.bodies.forms import Call
from tests.bodies.pitfalls import CASES
from tests.cli.user_code import command_in

pytestmark = pytest.mark.slow

Function = Callable[..., Any]
F32 = jnp.float32


def shape(*dims: int, dtype: Any = F32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(dims, dtype)


def rows(body: Function, grid: tuple[int, ...], given: Any, out: Any, made: tuple[int, ...], *scratch: Any) -> Function:
    """A kernel of one input and one output, given: (block, index map) of each."""
    call = pl.pallas_call(
        body,
        grid=grid,
        in_specs=[pl.BlockSpec(*given)],
        out_specs=pl.BlockSpec(*out),
        out_shape=shape(*made),
        scratch_shapes=list(scratch),
    )
    return lambda x: call(x)


def summed(wrong: bool) -> Function:
    """Four blocks added up; the wrong one is zeroed in the second of four steps."""

    def body(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(0) == (1 if wrong else 0))
        def _() -> None:
            o[...] = jnp.zeros_like(o)

        o[...] += x[...]

    return rows(body, (4,), ((8, 128), lambda i: (i, 0)), ((8, 128), lambda i: (0, 0)), (8, 128))


def at_last(wrong: bool) -> Function:
    """Added up in scratch, and stored at the last step; the wrong one waits for a step that never comes."""

    def body(x: Any, o: Any, acc: Any) -> None:
        k = pl.program_id(1)

        @pl.when(k == 0)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        acc[...] += x[...]

        @pl.when(k == pl.num_programs(1) - (0 if wrong else 1))
        def _() -> None:
            o[...] = acc[...]

    scratch = pltpu.VMEM((8, 128), F32)
    return rows(body, (4, 2), ((8, 128), lambda i, k: (i, k)), ((8, 128), lambda i, k: (i, 0)), (32, 128), scratch)


def sliced(wrong: bool) -> Function:
    """Each step of the inner dimension takes 8 rows of its window; the wrong one's window has rows for two of four."""

    def body(x: Any, o: Any) -> None:
        o[...] = x[pl.ds(pl.program_id(1) * 8, 8), :]

    height = 16 if wrong else 32
    return rows(body, (1, 4), ((height, 128), lambda i, j: (i, 0)), ((8, 128), lambda i, j: (i * 4 + j, 0)), (32, 128))


def backwards(wrong: bool) -> Function:
    """Blocks from the last to the first; the wrong one begins behind the last."""

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    last = 0 if wrong else 1
    return rows(
        body, (4,), ((8, 128), lambda i: (pl.num_programs(0) - last - i, 0)), ((8, 128), lambda i: (i, 0)), (32, 128)
    )


KERNELS: dict[str, tuple[Callable[[bool], Function], tuple[int, ...]]] = {
    "initialised": (summed, (32, 128)),
    "outputs_stored": (at_last, (32, 256)),
    "body_in_bounds": (sliced, (32, 128)),
    "blocks_in_bounds": (backwards, (32, 128)),
}
"""By the question that the wrong one breaks: the kernel, and the shape of its input."""


def scanned(kernel: Function) -> Function:
    return lambda x: jax.lax.scan(lambda carry, one: (carry, jax.vmap(kernel)(one)), 0.0, x)[1]


def sharded(kernel: Function) -> Function:
    mesh = Mesh(jax.devices()[:1], ("data",))

    options = {"mesh": mesh, "in_specs": P("data"), "out_specs": P("data"), "check_vma": False}
    return jax.shard_map(jax.vmap(kernel), **options)  # type: ignore[no-any-return]


def custom(kernel: Function) -> Function:
    @jax.custom_batching.custom_vmap
    def own(x: Any) -> Any:
        return kernel(x)

    @own.def_vmap
    def _(size: int, batched: Any, x: Any) -> Any:
        return jax.vmap(kernel)(x), True

    return jax.vmap(own)


WAYS: dict[str, tuple[Callable[[Function], Function], Callable[[tuple[int, ...]], tuple[int, ...]]]] = {
    "once": (jax.vmap, lambda dims: (3, *dims)),
    "twice": (lambda f: jax.vmap(jax.vmap(f)), lambda dims: (2, 3, *dims)),
    "along the last axis": (lambda f: jax.vmap(f, in_axes=2), lambda dims: (*dims, 3)),
    "along two axes": (lambda f: jax.vmap(jax.vmap(f, in_axes=1), in_axes=2), lambda dims: (dims[0], 2, 3, dims[1])),
    "a batch of one": (jax.vmap, lambda dims: (1, *dims)),
    "inside of jit": (lambda f: jax.jit(jax.vmap(f)), lambda dims: (3, *dims)),
    "around jit": (lambda f: jax.vmap(jax.jit(f)), lambda dims: (3, *dims)),
    "inside of scan": (scanned, lambda dims: (2, 3, *dims)),
    "around scan": (
        lambda f: jax.vmap(lambda x: jax.lax.scan(lambda c, one: (c, f(one)), 0.0, x)[1]),
        lambda dims: (3, 2, *dims),
    ),
    "inside of shard_map": (sharded, lambda dims: (3, *dims)),
    "by a rule of its own": (custom, lambda dims: (3, *dims)),
}


def errors(function: Function, *arguments: Any, **options: Any) -> list[Finding]:
    """What is no proof: errors of the body, of grids and blocks."""
    asked = {*forms.BODIES, *forms.GRIDS}
    found = lp.kernels(function, *arguments, **options).findings
    return [f for f in found if f.question in asked and f.severity == "error" and f.verdict is not Verdict.PROVED]


@pytest.mark.parametrize("question", KERNELS)
@pytest.mark.parametrize("way", WAYS)
def test_a_batched_kernel_is_the_same_kernel(way: str, question: str) -> None:
    make, dims = KERNELS[question]
    batch, shaped = WAYS[way]
    assert [(f.question, f.reason) for f in errors(batch(make(False)), shape(*shaped(dims)))] == []
    wrong = errors(batch(make(True)), shape(*shaped(dims)))
    assert {f.question for f in wrong if f.verdict is Verdict.REFUTED} >= {question}
    alone = errors(make(True), shape(*dims))
    assert {f.question for f in wrong} == {f.question for f in alone}


@pytest.mark.parametrize("way", ["once", "twice"])
def test_a_fix_counts_the_grid_as_its_author_does(way: str) -> None:
    def fixes(question: str, batched: bool) -> list[str]:
        make, dims = KERNELS[question]
        batch, shaped = WAYS[way] if batched else (lambda f: f, lambda dims: dims)
        found = errors(batch(make(True)), shape(*shaped(dims)))
        return [f.fix for f in found if f.question == question]

    assert fixes("outputs_stored", True) == fixes("outputs_stored", False)
    assert "pl.program_id(1) == 2" in fixes("outputs_stored", True)[0]
    assert fixes("initialised", True) == fixes("initialised", False)
    assert "pl.when(pl.program_id(0) == 0)" in fixes("initialised", True)[0]


CODE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def window(rows):
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(pl.program_id(1) * 8, 8), :]

    return pl.pallas_call(
        body,
        grid=(2, 4),
        in_specs=[pl.BlockSpec((rows, 128), lambda i, j: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i * 4 + j, 0)),
        out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
    )


def right(x):
    return jax.vmap(window(32))(x)


def wrong(x):
    return jax.vmap(window(16))(x)
"""


def test_the_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = command_in("kernels", capsys, tmp_path, monkeypatch)
    (tmp_path / "batched.py").write_text(CODE)
    code, said, _ = run("batched.py:right", "--arg", "f32[3,64,128]")
    assert (code, "1 proved" in said) == (0, True), said
    code, said, _ = run("batched.py:wrong", "--arg", "f32[3,32,128]")
    assert code == 1, said
    assert "the body reads elements 16:24 of dimension 0 of args[0], which has 16" in " ".join(said.split())


def gathered(wrong: bool) -> Function:
    """A table says which block a step takes; the wrong one takes the one behind."""

    def body(table: Any, x: Any, o: Any) -> None:
        o[...] = x[pl.ds((table[pl.program_id(0)] + wrong) * 8, 8), :]

    call = pl.pallas_call(
        body,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4,),
            in_specs=[pl.BlockSpec((32, 128), lambda i, t: (0, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, t: (i, 0)),
        ),
        out_shape=shape(32, 128),
    )
    return lambda t, x: call(t, x)


@pytest.mark.parametrize(
    ("axes", "table", "x"),
    [
        ((None, 0), (4,), (3, 32, 128)),
        ((0, None), (3, 4), (32, 128)),
        ((0, 0), (3, 4), (3, 32, 128)),
        ((1, 2), (4, 3), (32, 128, 3)),
    ],
)
def test_tables_are_shared_by_a_batch_or_looped_over(
    axes: tuple[int | None, ...], table: tuple[int, ...], x: tuple[int, ...]
) -> None:
    given = shape(*table, dtype=jnp.int32), shape(*x)
    for wrong in (False, True):
        found = errors(jax.vmap(gathered(wrong), in_axes=axes), *given, assume=["0 <= prefetch0 < 4"])
        assert {f.question for f in found} == ({"body_in_bounds"} if wrong else set())


def test_a_bound_of_a_grid_keeps_its_name() -> None:
    """What is said of `grid0`, the author's first dimension, holds of a batch too."""

    def kernel(n: Any, x: Any) -> Any:
        def body(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[pl.ds(pl.program_id(0) * 8, 8), :]

        return pl.pallas_call(
            body,
            grid=(n,),
            in_specs=[pl.BlockSpec((32, 128), lambda i: (0, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
            out_shape=shape(32, 128),
        )(x)

    n, x = shape(dtype=jnp.int32), shape(3, 32, 128)
    batched = jax.vmap(kernel, in_axes=(None, 0))
    (call,) = lp.kernels(batched, n, x, where=["grid0 <= 4"]).calls
    assert isinstance(call.call, Kernel)
    assert (str(call.call.grid[1]), call.call.vmapped) == ("grid0", (0,))
    asked = lp.kernels(batched, n, x, where=["grid0 <= 4"], properties=["body_in_bounds"]).findings
    assert {f.verdict for f in asked} == {Verdict.PROVED}


def copied(wrong: bool) -> Function:
    """Rows of an array in HBM, copied out by hand; the wrong one leaves the last ones out."""

    def body(x: Any, o: Any, buffer: Any, arrived: Any) -> None:
        for k in range(3 if wrong else 4):
            pltpu.async_copy(x.at[pl.ds(k * 8, 8)], buffer, arrived).wait()
            pltpu.async_copy(buffer, o.at[pl.ds(k * 8, 8)], arrived).wait()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    scratch = [pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA]
    call = pl.pallas_call(
        body, in_specs=[anywhere], out_specs=anywhere, out_shape=shape(32, 128), scratch_shapes=scratch
    )
    return lambda x: call(x)


def test_programs_of_a_batch_move_parts_of_their_own_of_an_array() -> None:
    """No two of them meet; what none of them stores is named with the batch's index; and vmap has made it illegal."""
    batch = shape(3, 32, 128)
    assert errors(jax.vmap(copied(False)), batch) == []
    (found,) = errors(jax.vmap(copied(True)), batch)
    assert found.question == "outputs_stored"
    assert (found.counterexample or {})["element"] == (0, 24, 0)
    refused = lp.kernels(jax.vmap(copied(False)), batch, target="v5e", properties=["block_shape"]).findings
    assert {(f.verdict, f.hint) for f in refused} == {
        (Verdict.REFUTED, "look at vmap, which gave it the block: jax.lax.map batches outside of the call")
    }


def splash(q: Any, k: Any, v: Any) -> Any:
    """JAX's own splash attention of one example, as its users make it."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    mask = masks.MultiHeadMask([masks.CausalMask((q.shape[1], q.shape[1])) for _ in range(q.shape[0])])
    sizes = kernels.BlockSizes(block_q=128, block_kv=128, block_kv_compute=128)
    return kernels.make_splash_mha_single_device(mask, block_sizes=sizes)(q, k, v)


def ragged(lengths: Any, q: Any, k: Any) -> Any:
    """Attention over the rows of each sequence that are there, as serving code writes it for one head."""

    def body(lengths: Any, q: Any, k: Any, o: Any, m: Any) -> None:
        b, i = pl.program_id(0), pl.program_id(1)

        @pl.when(i == 0)
        def _() -> None:
            m[...] = jnp.full_like(m, -jnp.inf)
            o[...] = jnp.zeros_like(o)

        @pl.when(i * 128 < lengths[b])
        def _() -> None:
            scores = jnp.sum(q[...] * k[...], axis=1, keepdims=True)
            row = i * 128 + jax.lax.broadcasted_iota(jnp.int32, scores.shape, 0)
            scores = jnp.where(row < lengths[b], scores, -jnp.inf)
            m[...] = jnp.maximum(m[...], jnp.max(scores))
            o[...] += jnp.sum(jnp.where(row < lengths[b], k[...], 0.0), axis=0, keepdims=True)

    def block(b: Any, i: Any, lengths: Any) -> Any:
        return b, jnp.where(i * 128 < lengths[b], i, 0), 0

    one = pl.BlockSpec((None, 1, 128), lambda b, i, lengths: (b, 0, 0))
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4, 8),
        in_specs=[one, pl.BlockSpec((None, 128, 128), block)],
        out_specs=[one, one],
    )
    return pl.pallas_call(body, grid_spec=grid, out_shape=[shape(4, 1, 128), shape(4, 1, 128)])(lengths, q, k)


HEADS = jax.ShapeDtypeStruct((2, 256, 128), F32)
REAL: dict[str, tuple[Function, Function, tuple[Any, ...], tuple[Any, ...], tuple[str, ...]]] = {
    "splash": (splash, jax.vmap(splash), (HEADS,) * 3, (shape(3, 2, 256, 128),) * 3, ("0 <= prefetch0 < 2",)),
    "ragged": (
        ragged,
        jax.vmap(ragged, in_axes=(None, 1, 1), out_axes=2),
        (shape(4, dtype=jnp.int32), shape(4, 1, 128), shape(4, 1024, 128)),
        (shape(4, dtype=jnp.int32), shape(4, 8, 1, 128), shape(4, 8, 1024, 128)),
        ("0 <= prefetch0 <= 1024",),
    ),
}
"""A kernel, itself batched as it is used, arguments of both, and what holds of its table."""


@pytest.mark.parametrize("assumed", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_a_batch_of_a_kernel_of_the_field_has_its_verdict(name: str, assumed: bool) -> None:
    one, many, given, batch, assume = REAL[name]
    options = {"assume": assume} if assumed else {}
    alone, batched = errors(one, *given, **options), errors(many, *batch, **options)
    assert {(f.question, f.verdict, f.needs) for f in batched} == {(f.question, f.verdict, f.needs) for f in alone}
    assert all(f.verdict is Verdict.UNKNOWN for f in batched)
    if assumed:
        assert batched == []


# the net

OPEN = {("scratch_half_written True", "batched", "body_races")}
"""What is unknown in one form alone: programs of a batch run on several cores, whose scratch is their own."""


@pytest.mark.slow
def test_no_form_of_a_pitfall_contradicts_another() -> None:
    calls, tables = {}, {}
    for name, case in CASES.items():
        for wrong in (True, False):
            built = case.build(wrong)
            calls[f"{name} {wrong}"] = Call(built.fn, tuple(built.args), case.assume)
            tables[f"{name} {wrong}"] = len([a for a in built.args if a.dtype.kind in "iu"])
    found = list(forms.every_form(calls, tables))
    assert [said for one in found for said in one.contradictions()] == []
    assert {(one.name, *each) for one in found for each in one.open()} == OPEN
    asked = Counter(form for one in found for form, *_ in one.compared())
    # most forms are there to be compared
    assert asked["batched"] > 1000
    assert asked["dumped"] > 1000
    assert asked["batched and dumped"] > 300


def test_a_contradiction_is_told() -> None:
    proved, refuted, unknown = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
    traced = {"initialised": proved, "dma_order": refuted, "body_races": proved}
    batched = {"initialised": refuted, "dma_order": refuted, "body_races": unknown}
    found = forms.Forms("k", "vmap of 2 along [0]", {"traced": traced, "batched": batched, "dumped": {}})
    assert found.contradictions() == [
        "k batched (vmap of 2 along [0]): initialised is refuted, and proved of the traced kernel"
    ]
    assert found.open() == [("batched", "body_races")]
    # garbage in scratch is one core's own, or another's
    unwritten = {"initialised": refuted, "body_races": proved}
    raced = {"traced": unwritten, "batched": {**unwritten, "body_races": refuted}}
    assert forms.Forms("k", "", raced).contradictions() == []
    sound = {form: {**each, "initialised": proved} for form, each in raced.items()}
    assert len(forms.Forms("k", "", sound).contradictions()) == 1
