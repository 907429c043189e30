"""What is said of a kernel that is wrong in one way, and of its right twin."""

from __future__ import annotations

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.bodies.pitfalls import CASES


def findings(name: str, wrong: bool, question: str) -> list[Finding]:
    """All that one property says of a case: of all its calls, errors only."""
    case = CASES[name]
    built = case.build(wrong)
    found: list[Finding] = []
    for call in kernels_of(built.fn, built.args, assume=case.assume):
        assert isinstance(call, Kernel)
        found += [f for f in judge(call, names=[question], strict_tables=True) if f.severity == "error"]
    return found


def worst(found: list[Finding]) -> Verdict:
    """Refuted over unknown over proved."""
    return min((f.verdict for f in found), default=Verdict.UNKNOWN)
