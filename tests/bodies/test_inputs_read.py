"""What a body reads of its inputs: by copies, by pipelines, and by loops over a window that is the whole array."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.result import Verdict
from tests.bodies.kernels import ANY, found

pytestmark = pytest.mark.slow

WHOLE = ((1000, 128), lambda i: (0, 0))
VMEM = [pltpu.VMEM((128, 128), jnp.float32)]


def _answer(body: Any, **call: Any) -> tuple[str, Any]:
    """(severity of what is refuted, "" = nothing is; the element)."""
    call = {
        "grid": (1,),
        "given": ANY,
        "x": (1000, 128),
        "out": ((128, 128), lambda i: (0, 0)),
        "shape": (128, 128),
        **call,
    }
    answers = found("inputs_read", body, scratch=VMEM, **call)
    assert all(f.verdict is not Verdict.UNKNOWN for f in answers)
    refuted = [f for f in answers if f.verdict is Verdict.REFUTED]
    worst = next((f for f in refuted if f.severity == "error"), refuted[0] if refuted else None)
    return ("", None) if worst is None else (worst.severity, (worst.counterexample or {}).get("element"))


def _loop(steps: int, rest: int = 0, size: int = 128, start: int = 0) -> Any:
    """Copies parts of rows, one after the other, and what is left."""

    def body(x: Any, o: Any, buffer: Any) -> None:
        def part(k: Any, carry: Any) -> Any:
            pltpu.sync_copy(x.at[pl.ds((start + k) * size, size)], buffer.at[pl.ds(0, size)])
            return carry

        lax.fori_loop(0, steps, part, 0)
        if rest:
            pltpu.sync_copy(x.at[pl.ds(1000 - rest, rest)], buffer.at[pl.ds(0, rest)])
        o[...] = buffer[...]

    return body


@pytest.mark.parametrize(
    ("body", "severity", "element"),
    [
        (_loop(7), "error", (896, 0)),
        (_loop(7, rest=104), "", None),
        (_loop(8, size=125), "", None),
        # only some of the parts are read: the kernel may need no more
        (_loop(5), "info", (640, 0)),
        (_loop(6, start=1), "info", (0, 0)),
        (_loop(7, rest=8), "info", (896, 0)),
    ],
)
def test_copies_from_an_array_in_hbm(body: Any, severity: str, element: Any) -> None:
    assert _answer(body) == (severity, element)


def test_an_input_that_shares_its_buffer_keeps_what_is_not_read() -> None:
    def body(x: Any, o: Any, buffer: Any) -> None:
        def part(k: Any, carry: Any) -> Any:
            pltpu.sync_copy(x.at[pl.ds(k * 128, 128)], buffer)
            pltpu.sync_copy(buffer, o.at[pl.ds(k * 128, 128)])
            return carry

        lax.fori_loop(0, 7, part, 0)

    assert _answer(body, out=ANY, shape=(1000, 128), aliases={0: 0})[0] == "warning"


@pytest.mark.parametrize(("steps", "severity"), [(4, ""), (3, "warning"), (2, "info")])
def test_a_loop_that_stops_a_part_early_is_worth_what_such_a_grid_is(steps: int, severity: str) -> None:
    def body(x: Any, o: Any, buffer: Any) -> None:
        def part(k: Any, total: Any) -> Any:
            return total + x[pl.ds(k * 128, 128), :]

        o[...] = lax.fori_loop(0, steps, part, jnp.zeros((128, 128), jnp.float32))

    assert _answer(body, x=(512, 128), given=((512, 128), lambda i: (0, 0)))[0] == severity

    def copy(x: Any, o: Any, buffer: Any) -> None:
        o[...] = x[...]

    by_grid = {"grid": (steps,), "out": ((128, 128), lambda i: (i, 0)), "shape": (128 * steps, 128)}
    assert _answer(copy, x=(512, 128), given=((128, 128), lambda i: (i, 0)), **by_grid)[0] == severity


@pytest.mark.parametrize(("steps", "rest", "severity"), [(7, 0, "error"), (7, 104, ""), (3, 0, "info")])
def test_a_loop_over_a_window_that_is_the_whole_array(steps: int, rest: int, severity: str) -> None:
    def body(x: Any, o: Any, buffer: Any) -> None:
        def part(k: Any, total: Any) -> Any:
            return total + x[pl.ds(k * 128, 128), :]

        total = lax.fori_loop(0, steps, part, jnp.zeros((128, 128), jnp.float32))
        if rest:
            total = total + jnp.sum(x[pl.ds(1000 - rest, rest), :])
        o[...] = total

    assert _answer(body, given=WHOLE)[0] == severity


def test_what_tables_address_is_not_asked() -> None:
    def body(table: Any, x: Any, o: Any, buffer: Any) -> None:
        def part(k: Any, carry: Any) -> Any:
            pltpu.sync_copy(x.at[pl.ds(table[k] * 128, 128)], buffer)
            return carry

        lax.fori_loop(0, 7, part, 0)
        o[...] = buffer[...]

    assert _answer(body, tables=[(7,)], out=((128, 128), lambda i, t: (0, 0))) == ("", None)


@pytest.mark.parametrize(("rows", "asked"), [((0, 1000), True), ((0, 504), False), ((504, 496), False)])
def test_pipelines_over_parts_of_an_array(rows: tuple[int, int], asked: bool) -> None:
    """Who cuts `x.at[ds(0, 504)]` out of an array for a pipeline wants no more of it: nothing is asked."""

    def body(x: Any, o: Any, buffer: Any) -> None:
        def inner(a: Any, b: Any) -> None:
            b[...] = a[...]

        spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
        start, many = rows
        run = pltpu.emit_pipeline(inner, grid=(many // 8,), in_specs=[spec], out_specs=[spec])
        run(x.at[pl.ds(start, many)], o.at[pl.ds(start, many)])

    answers = found("inputs_read", body, (1,), (1000, 128), ANY, ANY, (1000, 128), scratch=VMEM)
    assert [f.verdict for f in answers] == [Verdict.PROVED] * asked
