"""Traced calls written as spec files: read back, they are the same kernels with the same verdicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layoutproof.core.errors import Undecided
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.kernel.kernel_print import mapping_of
from layoutproof.pallas.judge import judge
from layoutproof.pallas.spec_text import not_serialisable, spec_text
from layoutproof.registry.read import read_layout
from layoutproof.specs.spec import loads
from tests.pallas.pitfalls import PITFALLS, Pitfall

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="JAX is not installed")


@pytest.mark.parametrize("pitfall", PITFALLS, ids=lambda p: f"{p.number}-{p.what[:30]}")
@pytest.mark.parametrize("side", ["wrong", "right"])
def test_a_call_is_what_its_spec_says(pitfall: Pitfall, side: str) -> None:
    from layoutproof.pallas.from_jax.trace import kernels_of

    function, arguments = getattr(pitfall, side)()
    calls = kernels_of(function, arguments, assume=pitfall.assume)
    if any(map(not_serialisable, calls)):
        with pytest.raises(Undecided, match="cannot be written as a spec"):
            spec_text(calls, "here")
        return
    text = spec_text(calls, "here")
    checks, errors = loads(text)
    assert errors == []
    assert len(checks) == len(calls)
    for call, check in zip(calls, checks, strict=True):
        assert isinstance(call, Kernel)
        back = read_layout(check.layouts[0]).kernel
        assert mapping_of(back) == mapping_of(call)
        before, after = (
            [(f.question, f.subject, f.verdict, f.counterexample) for f in judge(kernel, target="v5e")]
            for kernel in (replace(call, body_reader=None), back)  # a text holds no body
        )
        assert before == after


def test_what_has_no_words_is_refused() -> None:
    """It is never left out."""
    with pytest.raises(Undecided, match=r"k \(a.py:3\) cannot be written as a spec: a grid of floats"):
        spec_text([Unmodelled("k", "a.py:3", "a grid of floats")], "here")
