"""`pltpu.InterpretParams`: memory that starts as NaN, blocks visited again, races of cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.crosschecks.case import Case, PallasCall
from layoutproof.crosschecks.jax_asking import asked, jax_child, jax_missing, jax_version
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped, both
from layoutproof.kernel.kernel import Kernel, Unmodelled


def version() -> str:
    """JAX's."""
    return jax_version("InterpretParams")


def missing() -> str:
    """JAX."""
    return jax_missing()


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Each kernel with a body that writes the program's own number; a user's with its own body too."""
    child = jax_child("JAX's interpreter of kernels", JAX_PLATFORMS="cpu")
    for case, outcome in zip(cases, asked(child, "tpu_kernels", "cpu", cases, 10, own), strict=True):
        yield outcome if case.call is None else both(outcome, _body(case, case.call))


def own(case: Case) -> bool:
    """Kernels only."""
    return case.kind == "kernel"


def _body(case: Case, call: PallasCall) -> Outcome:
    """Runs of a user's kernel, on memory that starts as NaN and as 0, against the proofs about it."""
    from layoutproof.pallas.from_jax.user import argument
    from layoutproof.pallas.judge import judge
    from layoutproof.pallas.replay import SIGNS, replays

    kernel = case.parsed.kernel
    found = judge(kernel, fixes=False)
    others: list[tuple[Kernel | Unmodelled, Sequence[Finding]]] = [
        (Unmodelled("", "another call", ""), ())
    ] * call.number
    named = {name: argument(value) for name, value in call.kwargs.items()}
    run = replays(call.function, call.args, named, call.target, [*others, (kernel, found)])[-1]
    if run.problem:
        return Skipped(run.problem)
    for sign in run.signs:
        if sign.text.endswith("on memory that starts as 0 too"):
            # it comes from what the kernel computes, not from memory that was never written
            continue
        asked_of = [f for f in found if f.severity == "error" and sign.kind in SIGNS.get(f.question, ())]
        if asked_of and all(f.verdict is Verdict.PROVED for f in asked_of):
            names = ", ".join(dict.fromkeys(f.question for f in asked_of))
            return Disagree("what a run of the kernel shows", f"proved: {names}", sign.text)
    return Agree(1)
