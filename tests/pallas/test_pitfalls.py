"""What JAX and the compiler let through is refuted by the right property, and the fixed twin is not."""

from __future__ import annotations

import functools
from typing import Any

import pytest

jax = pytest.importorskip("jax", reason="finding Pallas calls needs the extra [jax]")

from layoutproof.core.errors import LayoutError  # noqa: E402
from layoutproof.core.finding import Finding  # noqa: E402
from layoutproof.core.result import Verdict  # noqa: E402
from layoutproof.kernel.kernel import Kernel  # noqa: E402
from layoutproof.pallas.from_jax.trace import kernels_of  # noqa: E402
from layoutproof.pallas.judge import judge  # noqa: E402
from tests.pallas.pitfalls import PITFALLS, Pitfall, call  # noqa: E402

pytestmark = pytest.mark.slow


def findings(built: Any, assume: tuple[str, ...]) -> tuple[Finding, ...]:
    function, arguments = built
    (kernel,) = kernels_of(function, arguments, assume=assume)
    assert isinstance(kernel, Kernel)
    # the version on which the pitfalls were collected
    return judge(kernel, target="v5e", compiler="0.0.42.1", strict_tables=True)


@pytest.mark.parametrize("pitfall", PITFALLS, ids=lambda p: f"{p.number:02d} {p.what}")
def test_a_pitfall_is_refuted(pitfall: Pitfall) -> None:
    found = findings(pitfall.wrong(), pitfall.assume)
    refuted = {(f.question, f.severity) for f in found if f.verdict is Verdict.REFUTED}
    assert (pitfall.says, pitfall.severity) in refuted


@pytest.mark.parametrize("pitfall", PITFALLS, ids=lambda p: f"{p.number:02d} {p.what}")
def test_its_twin_is_proved(pitfall: Pitfall) -> None:
    found = findings(pitfall.right(), pitfall.assume)
    wrong = [(f.question, f.subject, f.verdict, f.reason) for f in found if f.severity == "error"]
    assert [row for row in wrong if row[2] is not Verdict.PROVED] == []


def test_there_are_34() -> None:
    assert [p.number for p in PITFALLS] == list(range(1, 35))


@pytest.mark.parametrize("pitfall", [p for p in PITFALLS if p.replay], ids=lambda p: f"{p.number:02d} {p.what}")
def test_what_is_refuted_is_wrong_in_the_interpreter(pitfall: Pitfall, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's own TPU interpreter raises, or the result has elements that nothing wrote."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    monkeypatch.setattr(pl, "pallas_call", functools.partial(pl.pallas_call, interpret=pltpu.InterpretParams()))
    assert interpreted(pitfall.wrong()) != ""
    assert interpreted(pitfall.right()) == ""


def interpreted(built: Any) -> str:
    """What is wrong with a run, "" = nothing: the error's text, or how many elements hold the interpreter's filling."""
    import numpy as np
    from jax.experimental.pallas import tpu as pltpu

    function, arguments = built
    values = [np.ones(a.shape, a.dtype) if a.dtype != np.int32 else np.ones(a.shape, np.int32) for a in arguments]
    try:
        result = np.asarray(function(*values))
    except Exception as error:
        # the interpreter keeps its state after an error
        pltpu.reset_tpu_interpret_mode_state()
        return f"{type(error).__name__}: {error}"
    filled = np.isnan(result) if result.dtype.kind == "f" else result == np.iinfo(result.dtype).max
    return f"{int(filled.sum())} elements were never written" if filled.any() else ""


def test_what_jax_refuses_itself_is_told_with_its_reason() -> None:
    built = [
        lambda: call((4,), lambda i: (i / 2, 0), lambda i: (i, 0)),
        lambda: call((4,), lambda i: (i,), lambda i: (i, 0)),
        lambda: call((4,), lambda i: (i, 0), lambda i: (i, 0), block=(8,)),
    ]
    for build in built:
        function, arguments = build()
        with pytest.raises(LayoutError, match="tracing the function raised"):
            kernels_of(function, arguments)
