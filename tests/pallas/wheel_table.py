"""`python -m tests.pallas.wheel_table > docs/pallas_ops.md`: every Pallas operation of the jax wheel, judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from layoutproof.kernel.kernel import Unmodelled
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.pallas.wheel_ops import NOT_TRACED, Op, ops

HEAD = """# Pallas operations of the jax wheel

Grids and BlockSpecs, traced on shapes from jax 0.10.2 and judged by the rules measured on libtpu 0.0.52 (`triton`:
read from jax 0.10.2).
Bodies are judged for [Triton](triton.md) alone.
`python -m tests.pallas.wheel_table` prints this page; `tests/pallas/test_wheel.py` holds it against a fresh run.

| operation | target | calls | proved | unknown | refuted (error / warning / info) | what |
|---|---|---:|---:|---:|---|---|
"""


def rows() -> Iterator[str]:
    for op in ops():
        yield row(op)


def row(op: Op) -> str:
    function, arguments = op.build()
    calls = kernels_of(function, arguments, target="v5e" if op.target == "triton" else op.target, assume=op.assume)
    verdicts: Counter[str] = Counter()
    said: dict[str, None] = {}
    for call in calls:
        if isinstance(call, Unmodelled):
            verdicts["unknown"] += 1
            said[f"{call.reason}"] = None
            continue
        for finding in judge(call, target=op.target, **judged_by(op)):
            if not finding.asked:
                continue
            verdict = finding.verdict.value
            verdicts[verdict if verdict != "refuted" else finding.severity] += 1
            if verdict == "unknown":
                said[f"unknown `{finding.question}`: {_short(finding.reason)}"] = None
            elif verdict == "refuted" and finding.severity == "error":
                said[f"**{finding.question}**: {finding.reason}. Fix: {finding.fix}"] = None
            elif verdict == "refuted":
                said[f"{finding.severity} `{finding.question}` {finding.subject}"] = None
    refuted = f"{verdicts['error']} / {verdicts['warning']} / {verdicts['info']}"
    what = "; ".join(said).replace("|", "\\|")
    cells = (op.name, op.target, len(calls), verdicts["proved"], verdicts["unknown"], refuted, what)
    return f"| {' | '.join(map(str, cells))} |"


def judged_by(op: Op) -> dict[str, Any]:
    """How a call of an operation is judged, by the options of `judge`."""
    return {} if op.target == "triton" else {"compiler": "0.0.52", "only": "grid"}


def _short(reason: str) -> str:
    return reason.partition(" (")[0]


def page() -> str:
    left = "\n".join(f"- {name}: {why}." for name, why in NOT_TRACED.items())
    return HEAD + "\n".join(rows()) + f"\n\nNot traced:\n\n{left}\n"


if __name__ == "__main__":
    print(page(), end="")
