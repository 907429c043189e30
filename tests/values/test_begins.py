"""Where a difference begins: the store after which a kernel's state is no prefix of its reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli.documents import adapter

pytestmark = pytest.mark.slow

pytest.importorskip("jax")
cases = pytest.importorskip("tests.values.begin_cases")

loops = pytest.importorskip("tests.values.begin_loops")

FILES = {
    Path(str(each.__file__)).name: Path(str(each.__file__)).read_text(encoding="utf-8").splitlines()
    for each in (cases, loops)
}
RIGHT = {**cases.RIGHT, **loops.RIGHT}
CASES = {**cases.CASES, **loops.CASES}


def mark_of(place: str) -> str:
    """The mark of a line."""
    file, _, line = place.rpartition(":")
    return FILES[Path(file).name][int(line) - 1].rpartition("# at ")[2] if place else ""


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_begins_nowhere(name: str) -> None:
    """And is not refuted."""
    kernel, reference, shapes = RIGHT[name]
    found = lp.same(kernel, reference, *shapes)
    assert found.verdict.value in ("sampled", "proved"), found.reason
    assert found.comparison.begins is None
    assert "begins" not in str(found)


@pytest.mark.parametrize("name", CASES)
def test_the_store_at_which_a_difference_begins(name: str) -> None:
    """Never another one: where it is not known, that is said, with the store of the element."""
    kernel, reference, shapes, mark = CASES[name]
    found = lp.same(kernel, reference, *shapes)
    assert found.verdict is lp.Verdict.REFUTED, found.reason
    begins = found.comparison.begins
    assert begins is not None
    assert mark_of(begins.place) == mark, str(found)
    assert mark_of(begins.stored) == ("store" if begins.stored else "")
    said_at = begins.place or begins.stored
    assert not said_at or found.findings[0].line == int(said_at.rpartition(":")[2])
    hint = found.findings[0].hint.replace("tests/values/", "")
    assert not begins.place or f"it begins at {Path(begins.place.rpartition(':')[0]).name}" in hint
    adapter("same").validate_json(found.to_json())
    said = found.as_dict()["begins"]
    assert (said["place"], said["program"]) == (begins.place, list(begins.program))


def test_a_reference_that_cannot_be_cut_blames_no_program() -> None:
    """Lengths are given: a row of one block is whole after the first program, which says nothing of longer ones."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    lengths = np.array([32, 5], np.int32)

    def body(many: Any, q: Any, k: Any, v: Any, o: Any, top: Any, total: Any, acc: Any) -> None:
        row, block = pl.program_id(0), pl.program_id(1)

        @pl.when(block == 0)
        def _() -> None:
            top[...] = jnp.full_like(top, -1e30)
            total[...] = jnp.zeros_like(total)
            acc[...] = jnp.zeros_like(acc)

        @pl.when(block * 8 < many[row])
        def _() -> None:
            at = jax.lax.broadcasted_iota(jnp.int32, (8, 8), 1) + block * 8
            scores = jnp.where(at < many[row], q[0] @ k[0].T, -1e30)
            new = jnp.maximum(top[...], scores.max(1, keepdims=True))
            weights, factor = jnp.exp(scores - new), jnp.exp(top[...] - new)
            total[...] = factor * total[...] + weights.sum(1, keepdims=True)
            acc[...] = acc[...] + weights @ v[0]  # not rescaled
            top[...] = new

        @pl.when(block == 3)
        def _() -> None:
            o[0] = acc[...] / total[...]

    def kernel(*args: Any) -> Any:
        whole = pl.BlockSpec((1, 8, 4), lambda b, k, m: (b, 0, 0))
        part = pl.BlockSpec((1, 8, 4), lambda b, k, m: (b, k, 0))
        scratch = [pltpu.VMEM(shape, "float32") for shape in ((8, 1), (8, 1), (8, 4))]
        grid = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(2, 4), in_specs=[whole, part, part], out_specs=whole, scratch_shapes=scratch
        )
        return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct((2, 8, 4), "float32"))(*args)

    def reference(many: Any, q: Any, k: Any, v: Any) -> Any:
        scores = jnp.where(jnp.arange(32) < many[:, None, None], jnp.einsum("bqd,bkd->bqk", q, k), -jnp.inf)
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores, -1), v)

    found = lp.same(kernel, reference, lengths, "f32[2,8,4]", "f32[2,32,4]", "f32[2,32,4]")
    assert found.verdict is lp.Verdict.REFUTED, found.reason
    begins = found.comparison.begins
    assert begins is not None
    assert (begins.place, begins.program) == ("", ()), str(found)
