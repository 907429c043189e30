"""A second witness of a difference: what JAX itself computes of both sides, on the inputs where float64 shows it.

The kernels run in Pallas' interpreter, in the types that the code has, so rounding hides what is as small as it. Where
JAX computes the difference too, the answer says so. Where it computes what the reference does, although the questions
about places are proved, so that neither order nor memory that was never written explains it, one of the two is wrong:
then nothing is refuted, and both are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from layoutproof.core.errors import shorten
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.questions import problems
from layoutproof.values.compare import Comparison
from layoutproof.values.witness import Witness

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr
    from jax.typing import ArrayLike

HALF, NEAR = 0.5, 0.125
"""Parts of the difference on float64: from the first on JAX has it too; below the second it has none."""

BLIND = "it knows no order of copies, and no memory that was never written"


def witnessed(
    traced: Sequence[ClosedJaxpr], found: Comparison, premises: Sequence[Finding], outputs: Sequence[int] | None
) -> Comparison:
    """A comparison with what JAX says of its witness; unknown where the two witnesses disagree.

    traced: the function and its reference.  premises: the findings about places.  outputs: those that are compared.
    """
    from layoutproof.pallas.from_jax.run_traced import run, too_much

    witness = found.witness
    if witness is None:
        return found
    # the arrays are for here alone
    found = replace(found, witness=replace(witness, inputs=()))
    if found.verdict is not Verdict.REFUTED or not witness.inputs:
        return found
    if why := next(filter(None, map(too_much, traced)), ""):
        return replace(found, second=f"not asked: {why}")
    try:
        with np.errstate(all="ignore"):
            ours, theirs = (_numbers(run(t, witness.inputs)) for t in traced)
            word, said = _judged(witness, ours, theirs, outputs)
    except MemoryError:
        raise
    except Exception as error:
        # whatever a library raises of code that it cannot run
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        return replace(found, second=f"cannot run it: {shorten(said, 120)}")
    if word == "differs":
        return replace(found, second=f"differs too at {said}")
    if word == "rounds":
        return replace(found, second=f"says nothing: {said}")
    if any(f.verdict is not Verdict.PROVED for f in premises):
        return replace(found, second=f"computes the same, {said}; {BLIND}")
    return replace(
        found, verdict=Verdict.UNKNOWN, second=f"computes the same, {said}",
        reason=problems.WITNESSES_DISAGREE(found.reason, said),
    )  # fmt: skip


def _numbers(results: Sequence[ArrayLike]) -> list[ArrayLike]:
    return [np.asarray(r).astype(np.float64) for r in results]


def _judged(
    witness: Witness, ours: Sequence[ArrayLike], theirs: Sequence[ArrayLike], outputs: Sequence[int] | None
) -> tuple[str, str]:
    """(differs, same or rounds; in words)."""
    mine, other = (float(side[witness.output][witness.index]) for side in (ours, theirs))
    both = f"[{', '.join(map(str, witness.index))}]: {mine:.6g} and the reference {other:.6g}"
    if not np.isfinite(other):
        return "rounds", f"its reference is {other} there"
    if not np.isfinite(mine):
        return "differs", both
    if not np.isfinite(witness.ours):
        return "rounds", BLIND
    size = abs(witness.ours - witness.theirs)
    if abs(mine - other) >= HALF * size:
        return "differs", both
    chosen = range(len(ours)) if outputs is None else outputs
    least = max((_distance(ours[k], theirs[k]) for k in chosen), default=0.0)
    if least <= NEAR * size and abs(other - witness.theirs) <= NEAR * size:
        return "same", both
    return "rounds", f"rounding hides a difference of {size:.3g} there"


def _distance(a: ArrayLike, b: ArrayLike) -> float:
    """The greatest difference; infinite where one alone is no number."""
    if (np.isfinite(a) != np.isfinite(b)).any():
        return float("inf")
    known = np.isfinite(b)
    return float(np.abs(a - b)[known].max()) if known.any() else 0.0
