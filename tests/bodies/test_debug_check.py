"""What a body says of itself by `pl.debug_check` is proved for every program, or refuted: each with a twin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import checkify
from jax.experimental import pallas as pl

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge

pytestmark = pytest.mark.slow

ROWS = jax.ShapeDtypeStruct((32, 128), jnp.float32)


def said(check: Callable[[Any], None]) -> list[Finding]:
    """What is found of the checks of a body, all else of which is right."""

    def body(x: Any, o: Any) -> None:
        check(x)
        o[...] = x[...]

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    (call,) = kernels_of(pl.pallas_call(body, grid=(4,), in_specs=[block], out_specs=block, out_shape=ROWS), [ROWS])
    assert isinstance(call, Kernel)
    return judge(call, names=["debug_check"])


def below(most: int) -> Callable[[Any], None]:
    return lambda x: pl.debug_check(pl.program_id(0) < most, "a program too many")


def guarded(at: int) -> Callable[[Any], None]:
    def check(x: Any) -> None:
        pl.when(pl.program_id(0) == at)(lambda: pl.debug_check(pl.program_id(0) != 2, "the third program"))

    return check


def in_a_loop(most: int) -> Callable[[Any], None]:
    def check(x: Any) -> None:
        def step(k: Any, carry: Any) -> Any:
            checkify.check(k + pl.program_id(0) < most, "too far")
            return carry

        lax.fori_loop(0, 8, step, 0)

    return check


@pytest.mark.parametrize(
    ("right", "wrong", "program"),
    [(below(4), below(3), (3,)), (guarded(1), guarded(2), (2,)), (in_a_loop(11), in_a_loop(10), (3,))],
)
def test_a_check_holds_for_every_program(right: Any, wrong: Any, program: tuple[int, ...]) -> None:
    (held,) = said(right)
    assert held.verdict is Verdict.PROVED
    (broken,) = said(wrong)
    assert broken.verdict is Verdict.REFUTED
    assert broken.counterexample is not None
    assert broken.counterexample["program"] == program
    assert broken.line > 0


def test_a_check_of_data_is_unknown() -> None:
    (open_,) = said(lambda x: pl.debug_check(x[0, 0] > 0, "not positive"))
    assert open_.verdict is Verdict.UNKNOWN


def test_a_body_without_checks_is_not_asked() -> None:
    assert not said(lambda x: None)
