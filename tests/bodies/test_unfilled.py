"""Arrays that nobody has filled, `jax.lax.empty`: what is read of them is undefined, what is stored first is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.pallas.from_jax.record import records_of
from layoutproof.pallas.from_jax.trace import kernels_of

pytestmark = pytest.mark.slow

SHAPE = (32, 128)
X = jax.ShapeDtypeStruct(SHAPE, jnp.float32)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
ANY = pl.BlockSpec(memory_space=pl.ANY)


def updated(x: jax.Array, cache: jax.Array, kept: int = 4) -> jax.Array:
    """The first rows of each block are new, the others those of the cache, in place."""

    def body(x_ref: Any, c_ref: Any, o_ref: Any) -> None:
        new = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0) < kept
        o_ref[...] = jnp.where(new, x_ref[...], c_ref[...])

    return pl.pallas_call(
        body, grid=(4,), in_specs=[ROWS, ROWS], out_specs=ROWS, out_shape=X, input_output_aliases={1: 0}
    )(x, cache)


def copied(x: jax.Array, cache: jax.Array, blocks: int = 4) -> jax.Array:
    """So many blocks are copied out by hand, into the buffer of the cache."""

    def body(x_ref: Any, c_ref: Any, o_ref: Any, sem: Any) -> None:
        i = pl.program_id(0)

        @pl.when(i < blocks)
        def _() -> None:
            copy = pltpu.make_async_copy(x_ref, o_ref.at[pl.ds(i * 8, 8)], sem)
            copy.start()
            copy.wait()

    return pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[ROWS, ANY],
        out_specs=ANY,
        out_shape=X,
        scratch_shapes=[pltpu.SemaphoreType.DMA(())],
        input_output_aliases={1: 0},
    )(x, cache)


def fetched(cache: jax.Array) -> jax.Array:
    """Each block is copied in by hand."""

    def body(c_ref: Any, o_ref: Any, buffer: Any, sem: Any) -> None:
        copy = pltpu.make_async_copy(c_ref.at[pl.ds(pl.program_id(0) * 8, 8)], buffer, sem)
        copy.start()
        copy.wait()
        o_ref[...] = buffer[...]

    scratch = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA(())]
    return pl.pallas_call(body, grid=(4,), in_specs=[ANY], out_specs=ROWS, out_shape=X, scratch_shapes=scratch)(cache)


def empty() -> jax.Array:
    return jax.lax.empty(SHAPE, jnp.float32)


def errors(function: Callable[[jax.Array], jax.Array]) -> list[Finding]:
    found = lp.kernels(function, X).findings
    return [f for f in found if f.severity == "error" and f.verdict is not Verdict.PROVED]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: updated(x, empty()),
        lambda x: jax.jit(updated)(x, jax.lax.empty((128, 32), jnp.bfloat16).astype(jnp.float32).T),
        lambda x: fetched(empty()),
    ],
    ids=["in place", "through a function", "by hand"],
)
def test_what_nobody_has_filled_is_refuted_where_it_reaches_an_output(function: Any) -> None:
    (found,) = errors(function)
    assert (found.question, found.verdict) == ("undefined_values", Verdict.REFUTED)
    assert "which is uninitialised (jax.lax.empty at " in found.reason
    assert "test_unfilled.py:" in found.reason
    assert found.file.endswith("test_unfilled.py")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: updated(x, jnp.zeros(SHAPE)),
        # all of it is stored first, and nothing of it is taken
        lambda x: updated(x, empty(), kept=8),
        lambda x: fetched(x),
        lambda x: copied(x, empty()),
    ],
    ids=["zeros", "nothing kept", "given", "all copied"],
)
def test_what_is_filled_or_not_taken_is_proved(function: Any) -> None:
    assert errors(function) == []


def test_a_hole_in_an_output_keeps_what_its_input_has_unless_nobody_has_filled_that() -> None:
    (found,) = errors(lambda x: copied(x, empty(), blocks=3))
    assert (found.question, found.verdict) == ("outputs_stored", Verdict.REFUTED)
    assert errors(lambda x: copied(x, jnp.zeros(SHAPE), blocks=3)) == []


def test_what_the_installed_jax_fills_with_zeros_is_filled() -> None:
    filled = "empty[" not in str(jax.make_jaxpr(lambda: jnp.empty(SHAPE))())
    found = errors(lambda x: updated(x, jnp.empty(SHAPE)))
    assert [f.question for f in found] == ([] if filled else ["undefined_values"])


def handed_on(blocks: int, kept: int, cut: bool = False) -> list[Finding]:
    """A kernel copies so many of four blocks, and the next one takes all but the first rows of each from it."""

    def first(x: jax.Array) -> jax.Array:
        # a buffer of its own
        return copied(x, empty(), blocks)

    def function(x: jax.Array) -> jax.Array:
        found = jax.jit(first)(x)
        found = jnp.pad(found[: blocks * 8], ((0, (4 - blocks) * 8), (0, 0))) if cut else found
        return updated(x, found, kept)

    return [f for call in lp.kernels(function, X).calls[1:] for f in call.findings if f.severity == "error"]


def test_who_reads_an_output_of_which_a_part_is_stored_is_told_so() -> None:
    (found,) = [f for f in handed_on(3, 4) if f.verdict is not Verdict.PROVED]
    assert (found.question, found.verdict) == ("undefined_values", Verdict.UNKNOWN)
    assert "stores a part of its outputs alone (outputs_stored)" in found.reason
    assert "test_unfilled.py:" in found.reason


@pytest.mark.parametrize(
    ("blocks", "kept", "cut"),
    [(4, 4, False), (3, 8, False), (3, 4, True)],
    ids=["all stored", "nothing taken", "cut off"],
)
def test_who_reads_what_is_stored_or_takes_nothing_is_proved(blocks: int, kept: int, cut: bool) -> None:
    assert {f.verdict for f in handed_on(blocks, kept, cut)} == {Verdict.PROVED}


def test_a_kernel_over_a_mesh_of_cores_reads_what_nobody_has_filled() -> None:
    def function(x: jax.Array, given: Callable[[], jax.Array]) -> jax.Array:
        def body(c_ref: Any, o_ref: Any, buffer: Any) -> None:
            pltpu.sync_copy(c_ref, buffer)
            pltpu.sync_copy(buffer, o_ref)

        mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)
        scratch = [pltpu.VMEM(SHAPE, jnp.float32)]
        return pl.kernel(body, out_type=X, mesh=mesh, scratch_types=scratch)(given())

    assert "undefined_values" in {f.question for f in errors(lambda x: function(x, empty))}
    assert errors(lambda x: function(x, lambda: jnp.zeros(SHAPE))) == []


def test_a_record_is_judged_as_what_was_traced(tmp_path: Path) -> None:
    def function(x: jax.Array) -> jax.Array:
        return updated(x, fetched(updated(x, copied(x, empty(), 3))))

    traced = kernels_of(function, (X,))
    file = tmp_path / "calls.jsonl"
    file.write_bytes(records_of(traced))
    assert str(Path(__file__).parent) not in file.read_text()
    findings = [found.findings for found in (lp.kernels(function, X), lp.kernels(file))]
    told, recorded = ([(f.question, f.subject, f.verdict) for f in found] for found in findings)
    assert told == recorded
    assert all(any("stores a part" in f.reason for f in found) for found in findings)
