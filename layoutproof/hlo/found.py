"""The findings of an audit of one file, as data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Finding, exit_code, wrong_input
from layoutproof.core.result import Verdict
from layoutproof.hlo import problems
from layoutproof.hlo.bitcasts import BitcastAnswer
from layoutproof.hlo.consistency import Contradiction
from layoutproof.hlo.copies import Move
from layoutproof.hlo.executions import Runs
from layoutproof.hlo.reshards import ReshardChain
from layoutproof.hlo.shapes import ArrayShape

ONCE = Runs(1)


@dataclass(frozen=True, slots=True)
class Location:
    """Where something stands first. op_name, source: of the user's program, "" where the text does not say."""

    name: str
    line: int
    op_name: str = ""
    source: str = ""


@dataclass(slots=True)
class Buffers:
    """All results of one shape that take memory: how many, and the first of them.

    given, results: the entry's parameters and results among them, by number. Their layout is the user's to choose; the
    compiler chose that of all others.
    """

    array: ArrayShape
    first: Location
    count: int = 0
    given: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Moves:
    """All copies, transposes or reshapes between the same two layouts outside of fusions.

    parameter: the entry parameter that the first of them copies, -1 for none.  runs: how often each of them does.
    """

    opcode: str
    source: ArrayShape
    target: ArrayShape
    move: Move
    first: Location
    count: int = 0
    parameter: int = -1
    runs: Runs = ONCE


@dataclass(slots=True)
class Talks:
    """All collectives that do the same and run as often.

    kind: the opcode without `-start`.  does: its words in full.  bytes: the larger side on each device, each time.
    moved: the least that each device has to receive, each time.  None: unknown.
    """

    kind: str
    does: str
    bytes: int | None
    moved: int | None
    runs: Runs
    first: Location
    count: int = 0


@dataclass(frozen=True, slots=True)
class Resharded:
    """Collectives with nothing but moves between them through which a device receives more than its readers need, or of
    which that is unknown, and how often they run."""

    what: ReshardChain
    runs: Runs
    first: Location


@dataclass(slots=True)
class Casts:
    """All bitcasts between the same two shapes."""

    source: ArrayShape
    target: ArrayShape
    cast: BitcastAnswer
    first: Location
    count: int = 0


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an entry. sharding: in words, "" for none."""

    number: int
    shape: str
    location: Location
    unpadded: int
    padded: int
    sharding: str = ""


@dataclass(frozen=True, slots=True)
class ProgramSummary:
    """One module's interface. whole: nothing was wrong with its text."""

    name: str
    line: int
    scheduled: bool
    partitions: int
    parameters: tuple[Parameter, ...]
    result: str
    whole: bool


@dataclass(slots=True)
class Audit:
    """One file. Sums are over everything that instructions make, not what lives at one time."""

    file: str
    programs: list[ProgramSummary] = field(default_factory=list)
    computations: int = 0
    instructions: int = 0
    buffers: dict[tuple[str, str], Buffers] = field(default_factory=dict)
    moves: dict[tuple[object, ...], Moves] = field(default_factory=dict)
    talks: dict[tuple[object, ...], Talks] = field(default_factory=dict)
    reshards: list[Resharded] = field(default_factory=list)
    fused_moves: Counter[str] = field(default_factory=Counter)
    casts: dict[tuple[str, str], Casts] = field(default_factory=dict)
    roots: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    wrong_kernels: list[Finding] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    contradicted: int = 0
    unknown: dict[tuple[str, str, str], Finding] = field(default_factory=dict)
    compared: int = 0
    differences: list[Finding] = field(default_factory=list)
    allocated: int = 0
    errors: list[LayoutError] = field(default_factory=list)

    def refuted(self) -> list[Casts]:
        """Bitcasts that lose or invent an element."""
        return [each for each in self.casts.values() if each.cast.verdict is Verdict.REFUTED]

    def add_unknown(self, question: str, subject: str, reason: str, line: int) -> None:
        """One more thing that is unknown; the first of its kind is kept, with how many there are."""
        key = (question, subject, reason)
        first = self.unknown.get(key)
        if first is None:
            self.unknown[key] = self.finding(question, subject, reason, line, verdict=Verdict.UNKNOWN)
        else:
            self.unknown[key] = replace(first, figures=_often(first.figures.get("count", 1) + 1))

    def finding(self, question: str, subject: str, reason: str, line: int, **more: Any) -> Finding:
        """Something that is found in this file."""
        return Finding(question, subject, reason, file=self.file, line=line, **more)

    def findings(self) -> list[Finding]:
        """All that is unknown, refuted or wrong, the worst last."""
        casts = [
            self.finding(
                "bitcast",
                f"{each.source.text} -> {each.target.text}",
                each.cast.reason,
                each.first.line,
                counterexample=each.cast.element,
                decided_by=each.cast.decided_by,
                figures=_often(each.count),
            )
            for each in self.refuted()
        ]
        buffers = []
        for each in self.contradictions:
            sides = {"first": each.first, "second": each.second}
            why = " is not ".join(shorten(side, 60) for side in sides.values())
            long = {name: side for name, side in sides.items() if len(side) > 60}
            buffers.append(self.finding("contradiction", each.what, why, each.line, figures=long))
        if self.contradicted > len(buffers):
            more = problems.MORE_WITH_TWO_LAYOUTS(self.contradicted - len(buffers))
            buffers.append(self.finding("contradiction", "other buffers", more, 0))
        errors = [wrong_input("dump", e.problem, "", e.file or self.file, line=e.line or 0) for e in self.errors]
        nothing = [self.finding("program", "the file", problems.NO_PROGRAM(), 0, verdict=Verdict.UNKNOWN)] * (
            not (self.programs or self.compared or self.errors)
        )
        return [*nothing, *self.unknown.values(), *self.differences, *casts, *buffers, *self.wrong_kernels, *errors]

    @property
    def exit_code(self) -> int:
        """By the rule of all commands; 3 where nothing was asked."""
        return exit_code(self.findings())


def _often(count: int) -> dict[str, int]:
    """How many times, where that is more than once."""
    return {"count": count} if count > 1 else {}
