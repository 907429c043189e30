"""What is said of a random kernel, held against what is true."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from layoutproof.pallas.refuted_if import REFUTED_IF
from tests.bodies.forms import Call
from tests.bodies.truth.description import Description
from tests.bodies.truth.generate import kernel
from tests.bodies.truth.literal import QUESTIONS, truth
from tests.bodies.truth.pallas import function, shapes

NOTHING = "nothing"
"""Where a property has no finding that is an error."""


@dataclass(frozen=True)
class Compared:
    """One kernel. verdicts: the worst error of each question; wrong, right: see `literal.Truth`.

    reasons: of what is not proved.  refused: why JAX does not trace it.  spared: as of `literal.Truth`.
    """

    seed: int
    wrong: tuple[str, ...]
    right: tuple[str, ...]
    why: Mapping[str, str]
    verdicts: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""
    spared: tuple[str, ...] = ()

    def truth(self, question: str) -> str:
        """In one word; open where the truth is neither."""
        return "wrong" if question in self.wrong else "right" if question in self.right else "open"

    def disagreements(self) -> list[tuple[str, str]]:
        """(question, "wrong proved", "wrong refuted", or which other word is wrong) of each."""
        found = []
        for name, verdict in self.verdicts.items():
            proved = verdict == "proved" or (name == "inputs_read" and verdict == NOTHING)
            if proved and name in self.wrong:
                found.append((name, "wrong proved"))
            if verdict == "refuted" and name in self.right:
                found.append((name, "wrong refuted"))
            elif verdict == "refuted" and name in self.spared:
                found.append((name, "refuted, and some tables do not show it"))
            if verdict == "unknown" and REFUTED_IF in self.reasons[name] and name in self.right:
                found.append((name, "refuted if, and no table shows it"))
        return found

    def kind_of_reason(self, question: str) -> str:
        """The reason without names and numbers."""
        return re.sub(r"\d+", "N", self.reasons[question])[:110]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def call_of(made: Description) -> Call:
    """The kernel as a function, its arguments, and what is known of its tables."""
    ranges = tuple(f"{t.low} <= prefetch{k} <= {t.high}" for k, t in enumerate(made.tables))
    assume = made.assume or ranges
    return Call(function(made), tuple(shapes(made)), assume)


def said(made: Description) -> tuple[dict[str, str], dict[str, str]]:
    """The verdicts on a kernel that the real front end traced, and the reasons of what is not proved."""
    call = call_of(made)
    calls = kernels_of(call.function, call.arguments, assume=call.assume)
    (found_kernel,) = [k for k in calls if isinstance(k, Kernel) and k.pipeline == "pallas_call"]
    verdicts, reasons = {}, {}
    for name in QUESTIONS:
        found = [f for f in judge(found_kernel, names=[name]) if f.severity == "error"]
        verdict = min((f.verdict for f in found), default=None)
        verdicts[name] = NOTHING if verdict is None else verdict.value
        if verdict is not None and verdict is not Verdict.PROVED:
            worst = next(f for f in found if f.verdict is verdict)
            reasons[name] = f"{worst.subject}: {worst.reason} (line {worst.line})"
    return verdicts, reasons


def compared(seed: int) -> Compared:
    """One random kernel, judged, and run literally."""
    made = kernel(seed)
    true = truth(made)
    wrong, right, spared = (tuple(sorted(names)) for names in (true.wrong, true.right, true.spared))
    try:
        verdicts, reasons = said(made)
    except LayoutError as error:
        return Compared(seed, wrong, right, true.why, refused=str(error))
    return Compared(seed, wrong, right, true.why, verdicts, reasons, spared=spared)
