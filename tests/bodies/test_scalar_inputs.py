"""Inputs in scalar memory: what is read of them is any number, the same for all programs where all see one block."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="finding Pallas calls needs the extra [jax]")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from layoutproof.core.finding import Finding  # noqa: E402
from layoutproof.core.result import Verdict  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.judge import judge  # noqa: E402


def found(body: Any, block: Any, question: str) -> list[Finding]:
    """What is found of a kernel of 4 parallel programs with s32[4] in scalar memory, which moves rows by hand."""

    def call(s: Any, x: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(4,),
            in_specs=[block, pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec(memory_space=pl.ANY),
            out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
            scratch_shapes=[pltpu.SemaphoreType.DMA],
        )(s, x)

    shapes = jax.ShapeDtypeStruct((4,), jnp.int32), jax.ShapeDtypeStruct((64, 128), jnp.float32)
    (kernel,) = kernels_of(call, shapes)
    assert isinstance(kernel, Kernel)
    return [f for f in judge(kernel, names=[question]) if f.question == question]


WHOLE = pl.BlockSpec(memory_space=pltpu.SMEM)
ONE_EACH = pl.BlockSpec((1,), lambda i: (i,), memory_space=pltpu.SMEM)


def rows_from(s: Any, x: Any, o: Any, sem: Any) -> None:
    start = s[0] + 8 * pl.program_id(0)
    copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(start, 8)], sem)
    copy.start()
    copy.wait()


def guarded(s: Any, x: Any, o: Any, sem: Any) -> None:
    @pl.when((s[0] >= 0) & (s[0] <= 32))
    def _() -> None:
        rows_from(s, x, o, sem)


def verdicts(findings: list[Finding]) -> set[Verdict]:
    assert findings
    return {f.verdict for f in findings}


@pytest.mark.parametrize("block", [WHOLE, ONE_EACH])
def test_numbers_of_the_caller_refute_nothing(block: Any) -> None:
    findings = found(rows_from, block, "body_in_bounds")
    assert verdicts(findings) >= {Verdict.UNKNOWN}
    assert Verdict.REFUTED not in verdicts(findings)
    assert any("what the body loads from" in f.reason for f in findings)


def test_what_the_body_asks_before_is_known() -> None:
    assert verdicts(found(guarded, WHOLE, "body_in_bounds")) == {Verdict.PROVED}


def test_one_start_for_all_programs_keeps_their_rows_apart() -> None:
    assert verdicts(found(guarded, WHOLE, "body_races")) == {Verdict.PROVED}


def test_starts_of_their_own_do_not() -> None:
    assert Verdict.UNKNOWN in verdicts(found(guarded, ONE_EACH, "body_races"))
