"""What an audit of one file found, as data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from layoutproof.core.errors import LayoutError
from layoutproof.core.result import Verdict
from layoutproof.hlo.bitcasts import Bitcast
from layoutproof.hlo.consistency import Contradiction
from layoutproof.hlo.copies import Move
from layoutproof.hlo.shapes import Array


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands first. op_name, source: of the user's program, "" where the text does not say."""

    name: str
    line: int
    op_name: str = ""
    source: str = ""


@dataclass(slots=True)
class Buffers:
    """All results of one shape that take memory: how many, and the first of them."""

    array: Array
    first: Place
    count: int = 0


@dataclass(slots=True)
class Moves:
    """All copies, transposes or reshapes between the same two layouts outside of fusions.

    parameter: the entry parameter that the first of them copies, -1 for none.
    """

    opcode: str
    source: Array
    target: Array
    move: Move
    first: Place
    count: int = 0
    parameter: int = -1


@dataclass(slots=True)
class Casts:
    """All bitcasts between the same two shapes."""

    source: Array
    target: Array
    cast: Bitcast
    first: Place
    count: int = 0


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an entry. sharding: in words, "" for none."""

    number: int
    shape: str
    place: Place
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


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something unknown: what it is, why, where first, how often."""

    what: str
    why: str
    line: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class SizeDifference:
    """A size of XLA's own that differs from ours, in bytes."""

    name: str
    shape: str
    theirs: int
    ours: int
    line: int


@dataclass(slots=True)
class Audit:
    """One file. Sums are over everything that instructions make, not what lives at one time."""

    file: str
    programs: list[ProgramSummary] = field(default_factory=list)
    computations: int = 0
    instructions: int = 0
    buffers: dict[tuple[str, str], Buffers] = field(default_factory=dict)
    moves: dict[tuple[object, ...], Moves] = field(default_factory=dict)
    fused_moves: Counter[str] = field(default_factory=Counter)
    casts: dict[tuple[str, str], Casts] = field(default_factory=dict)
    roots: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    wrong_kernels: list[str] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    contradicted: int = 0
    unknown: dict[tuple[str, str], Unknown] = field(default_factory=dict)
    compared: int = 0
    differences: list[SizeDifference] = field(default_factory=list)
    allocated: int = 0
    errors: list[LayoutError] = field(default_factory=list)

    def refuted(self) -> list[Casts]:
        """Bitcasts that lose or invent an element."""
        return [each for each in self.casts.values() if each.cast.verdict is Verdict.REFUTED]

    def add_unknown(self, what: str, why: str, line: int) -> None:
        """One more unknown."""
        before = self.unknown.get((what, why))
        first, count = (line, 0) if before is None else (before.line, before.count)
        self.unknown[what, why] = Unknown(what, why, first, count + 1)

    @property
    def exit_code(self) -> int:
        """2 for text that is wrong, 1 for anything refuted, 3 for anything unknown or an empty report, else 0."""
        if self.errors:
            return 2
        if self.refuted() or self.contradicted or self.differences or self.wrong_kernels:
            return 1
        return 3 if self.unknown or not (self.programs or self.compared) else 0
