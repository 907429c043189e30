"""Outputs of which each program stores a segment: all of them together is everything, or something is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.result import Verdict

pytestmark = pytest.mark.slow

ROWS, GROUPS = 12, 4
OFFSETS = f"prefetch0 is cu_seqlens(total={ROWS})"
IN_RANGE = f"0 <= prefetch0 <= {ROWS}"
ENDS = f"{IN_RANGE}; prefetch0[0] == 0; prefetch0[-1] == {ROWS}"

Ends = Callable[[Any, Any], Any]


def copied(begin: Ends, end: Ends, programs: int = GROUPS, guard: Any = None, interpret: Any = False) -> Any:
    """Each program copies the rows of its segment. guard: of a row, under which it is copied; None = always."""

    def called(t: jax.Array, x: jax.Array) -> jax.Array:
        def body(t_ref: Any, x_ref: Any, o_ref: Any) -> None:
            i = pl.program_id(0)

            def turn(row: Any, none: int) -> int:
                def copy() -> None:
                    o_ref[pl.ds(row, 1), :] = x_ref[pl.ds(row, 1), :]

                if guard is None:
                    copy()
                else:
                    pl.when(guard(row))(copy)
                return none

            jax.lax.fori_loop(begin(t_ref, i), end(t_ref, i), turn, 0)

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(programs,),
            in_specs=[pl.BlockSpec((ROWS, 128), lambda i, t: (0, 0))],
            out_specs=pl.BlockSpec((ROWS, 128), lambda i, t: (0, 0)),
        )
        shape = jax.ShapeDtypeStruct((ROWS, 128), jnp.float32)
        return pl.pallas_call(body, grid_spec=spec, out_shape=shape, interpret=interpret)(t, x)

    return called


def at(by: int = 0, rows: int = 0) -> Ends:
    """An entry beside that of the program, and rows more."""
    return lambda t, i: t[i + by] + rows


CASES: dict[str, tuple[dict[str, Any], str, bool]] = {
    "each its own": ({"begin": at(), "end": at(1)}, OFFSETS, True),
    "in any order": ({"begin": at(), "end": at(1)}, ENDS, True),
    "one row more": ({"begin": at(), "end": lambda t, i: jnp.minimum(t[i + 1] + 1, ROWS)}, OFFSETS, True),
    "no first row said": ({"begin": at(), "end": at(1)}, f"{IN_RANGE}; prefetch0[-1] == {ROWS}", False),
    "no last row said": ({"begin": at(), "end": at(1)}, f"{IN_RANGE}; prefetch0[0] == 0", False),
    "begins one row late": ({"begin": at(rows=1), "end": at(1)}, OFFSETS, False),
    "ends one row early": ({"begin": at(), "end": at(1, -1)}, OFFSETS, False),
    "not the last sequence": ({"begin": at(), "end": at(1), "programs": GROUPS - 1}, OFFSETS, False),
    "not row 5": ({"begin": at(), "end": at(1), "guard": lambda row: row != 5}, OFFSETS, False),
    "the same sequence": ({"begin": lambda t, i: t[0], "end": lambda t, i: t[1]}, OFFSETS, False),
    "every other one": ({"begin": lambda t, i: t[i // 2 * 2], "end": lambda t, i: t[i // 2 * 2 + 1]}, OFFSETS, False),
}


@pytest.mark.parametrize("name", CASES)
def test_what_programs_store_by_segments_is_all_of_it_or_not_known_to_be(name: str) -> None:
    how, assume, right = CASES[name]
    given = jax.ShapeDtypeStruct((GROUPS + 1,), jnp.int32), jax.ShapeDtypeStruct((ROWS, 128), jnp.float32)
    (found,) = lp.kernels(copied(**how), *given, assume=[assume], properties=["outputs_stored"]).findings
    assert (found.verdict is Verdict.PROVED) is right
    if right:
        assert any("prefetch0" in text for text in found.assumes)


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_leaves_a_row_out_where_it_is_not_proved(name: str) -> None:
    how, assume, right = CASES[name]
    tables = [[0, 4, 4, 9, ROWS], [0, 0, 0, 0, ROWS], [0, ROWS, ROWS, ROWS, ROWS], [0, 1, 2, 3, ROWS]]
    if assume == ENDS:
        tables.append([0, 9, 3, 7, ROWS])
    if "prefetch0[0]" not in assume and "is" not in assume:
        tables.append([3, 4, 4, 9, ROWS])
    if "prefetch0[-1]" not in assume and "is" not in assume:
        tables.append([0, 4, 4, 9, ROWS - 1])
    run = copied(**how, interpret=pltpu.InterpretParams(uninitialized_memory="nan"))
    left = [t for t in tables if np.isnan(run(jnp.array(t, jnp.int32), jnp.ones((ROWS, 128), jnp.float32))).any()]
    assert bool(left) is not right
