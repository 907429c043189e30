"""What `pl.multiple_of` promises is held against every program, iteration and table."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.said import Said

pytestmark = pytest.mark.slow


def _asked(row: Any, loop: bool = False, table: bool = False, programs: int = 4) -> list[Finding]:
    """What is said of a kernel that reads 8 rows from a promised multiple of 8. row: of the program, loop or table."""

    def body(*refs: Any) -> None:
        *tables, x, o = refs

        def part(i: Any) -> Any:
            return x[pl.ds(pl.multiple_of(row(tables[0][i] if table else i), 8), 8), :]

        if loop:
            o[...] = jax.lax.fori_loop(0, 3, lambda i, total: total + part(i), jnp.zeros((8, 128)))
        else:
            o[...] = part(pl.program_id(0))

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=int(table),
        grid=(programs,),
        in_specs=[pl.BlockSpec((64, 128), lambda i, *tables: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, *tables: (i, 0)),
    )
    fn = pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((8 * programs, 128), jnp.float32))
    args = [jnp.zeros((programs,), jnp.int32)] * table + [jax.ShapeDtypeStruct((64, 128), jnp.float32)]
    (call,) = kernels_of(fn, tuple(args))
    assert isinstance(call, Kernel)
    return list(judge(call, names=["multiple_of"]))


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize(("step", "true"), [(4, "here pl.multiple_of(.., 4) would hold"), (3, "nothing divides it")])
def test_what_is_no_multiple_is_refuted_with_the_first_program_or_iteration(loop: bool, step: int, true: str) -> None:
    (found,) = _asked(lambda i: i * step, loop)
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample == ({"program": (0,), "iteration": (1,)} if loop else {"program": (1,)})
    assert Said("pallas.multiple_of_wrong", by=8, wrong=step).of(found.reason)
    assert found.fix == ""
    assert Said("pallas.multiple_of_look", held=true).of(found.hint)
    assert found.line > 0


@pytest.mark.parametrize("loop", [False, True])
def test_what_is_one_is_proved(loop: bool) -> None:
    assert [f.verdict for f in _asked(lambda i: i * 16, loop)] == [Verdict.PROVED]


def test_it_holds_for_a_billion_programs_or_fails_at_the_first() -> None:
    assert [f.verdict for f in _asked(lambda i: i * 8, programs=10**8)] == [Verdict.PROVED]
    (found,) = _asked(lambda i: i - i % 8 + i // (10**8 - 1), programs=10**8)
    assert found.counterexample == {"program": (10**8 - 1,)}


def test_what_a_table_holds_is_not_known_and_its_multiple_is() -> None:
    (found,) = _asked(lambda row: row, table=True)
    assert found.verdict is Verdict.UNKNOWN
    # a bound would leave zeros alone
    assert found.needs == ("prefetch0[i] % 8 == 0",)
    assert [f.verdict for f in _asked(lambda row: row * 8, table=True)] == [Verdict.PROVED]


@pytest.mark.parametrize(("step", "verdict"), [(8, Verdict.PROVED), (4, Verdict.REFUTED)])
def test_the_copies_of_an_unrolled_loop_are_one_question(step: int, verdict: Verdict) -> None:
    def body(x: Any, o: Any) -> None:
        total = jnp.zeros((8, 128))
        for k in range(4):
            total += x[pl.ds(pl.multiple_of(pl.program_id(0) * 8 + k * step, 8), 8), :]
        o[...] = total

    specs = [pl.BlockSpec((64, 128), lambda i: (0, 0))]
    shape = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    out = pl.BlockSpec((8, 128), lambda i: (i, 0))
    fn = pl.pallas_call(body, grid=(4,), in_specs=specs, out_specs=out, out_shape=shape)
    (call,) = kernels_of(fn, (jax.ShapeDtypeStruct((64, 128), jnp.float32),))
    assert isinstance(call, Kernel)
    (found,) = judge(call, names=["multiple_of"])
    assert found.verdict is verdict
    if verdict is Verdict.REFUTED:
        assert found.counterexample == {"program": (0,)}
        assert Said("pallas.multiple_of_wrong", by=8, wrong=4).of(found.reason)
