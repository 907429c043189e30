"""The TPU compiler's report on one kernel, as plain data, as text and as JSON. `mosaic` asks the compiler.

All of it is the compiler's own word ahead of time, for the version that it names: nothing was measured on a chip, and
figures of two versions are not compared. Counts of operations are of the code as it stands: a loop's body counts once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypedDict

from layoutproof.core.document import Doc, Exactly
from layoutproof.core.visible import visible
from layoutproof.kernel.kernel import CompilerAnswer

KIB, MIB = 1 << 10, 1 << 20
_SCOPED = re.compile(r"Scoped allocation with size \S+ and limit \S+ exceeded scoped vmem limit by \S+[KMG]")
MOST_REWRITES = 3
"""Rewrites that helped, which the text shows of a kernel."""
MOST_LINES = 5
"""Source lines, and relayouts, that the text shows of a kernel; JSON has all."""


@dataclass(frozen=True, slots=True)
class Part:
    """One allocation in VMEM. kind: window, scratch, spill or other.  what: in words.  bytes: with all its buffers.

    Of an array that is there as a whole the kind is input or output.
    """

    kind: Literal["window", "scratch", "spill", "other", "input", "output"]
    what: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line of source, and what the compiled kernel does for it: file and line, "" and 0 = unknown.

    reloads: loads of registers that had spilled.  packs, unpacks: conversions between element widths, and of tiles.
    rotates: moves along sublanes or lanes.  Each counts operations of the code.
    """

    file: str = ""
    line: int = 0
    reloads: int = 0
    packs: int = 0
    unpacks: int = 0
    rotates: int = 0

    @property
    def moves(self) -> int:
        """Operations that only move data between or within registers."""
        return self.packs + self.unpacks + self.rotates


@dataclass(frozen=True, slots=True)
class Vmem:
    """The exact VMEM of the kernel. total: bytes, the sum of the parts.  limit: that it may take.

    slots: registers that spill have, as the code names them.  whole: operands and results that the compiler puts into
    VMEM as a whole, copied there before the kernel or back after it; they have no windows, and the total and the limit
    leave them out.
    """

    total: int
    limit: int
    parts: tuple[Part, ...]
    slots: int = 0
    whole: tuple[Part, ...] = ()

    def of(self, kind: str) -> int:
        """Bytes of all parts of one kind."""
        return sum(part.bytes for part in self.parts if part.kind == kind)

    def sentence(self, lines: Sequence[Line] = (), own: str = "") -> str:
        """The whole in one sentence. lines: where it spills.  own: the kernel's file, whose name is left out.

        >>> Vmem(17125376, 1 << 24, (Part("window", "", 14680064), Part("spill", "", 2445312))).sentence(
        ...     [Line("mm.py", 8, reloads=9)], "mm.py")
        '16.33 MiB of 16: windows 14.00, register spills 2.33 (line 8)'
        """
        # amounts below a MiB are in KiB
        unit, name = (MIB, "MiB") if self.total >= MIB else (KIB, "KiB")
        words = (("window", "windows"), ("scratch", "scratch"), ("spill", "register spills"), ("other", "other"))
        shown = []
        for kind, word in words:
            many = self.of(kind)
            where = _places(lines, own) if kind == "spill" else ""
            shown += [f"{word} {many / unit:.2f}{where}"] if many else []
        limit = f"{self.limit / MIB:.2f}".rstrip("0").rstrip(".") + (" MiB" if name == "KiB" else "")
        return f"{self.total / unit:.2f} {name} of {limit}: {', '.join(shown) or 'nothing'}{self._beside()}"

    def _beside(self) -> str:
        """The arrays that are there as a whole, in words.

        >>> Vmem(0, 1 << 25, (), 0, (Part("input", "input 0, f32[8,128]", 4096),))._beside()
        '; besides, input 0 is there as a whole, 4.00 KiB'
        """
        if not self.whole:
            return ""
        names = [part.what.partition(",")[0] for part in self.whole]
        many = sum(part.bytes for part in self.whole)
        size = f"{many / MIB:.2f} MiB" if many >= MIB else f"{many / KIB:.2f} KiB"
        listed = ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
        return f"; besides, {listed} {'are' if len(names) > 1 else 'is'} there as a whole, {size}"


@dataclass(frozen=True, slots=True)
class Relayout:
    """Vectors that the compiler moves from one layout in registers to another, at one line.

    vector: `bf16[512,128]`.  before, after: the layouts as the compiler writes them.  count: of them at this line.
    reason: why it is unknown whether it costs something; "" where it does.
    """

    vector: str
    before: str
    after: str
    count: int = 1
    file: str = ""
    line: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The compiler's own estimate of the kernel's cycles on the core that runs most of its programs.

    cycles: None where there is none, and `reason` says why.  unseen: the work that the figure leaves out, in words.
    at_least: a lower bound on cycles by its traffic with HBM and its products, 0 where they are not known.
    cores: among which the compiler splits a parallel dimension of the grid.
    """

    cycles: int | None = None
    reason: str = ""
    unseen: tuple[str, ...] = ()
    at_least: int = 0
    cores: int = 1

    @property
    def ranked(self) -> int | None:
        """The measure that compares candidates: the larger of the two."""
        return None if self.cycles is None else max(self.cycles, self.at_least)


Outcome = Literal["helped", "given", "same", "worse", "trade", "failed"]


@dataclass(frozen=True, slots=True)
class KernelFigures:
    """What a kernel costs by its compiler, to compare it with another form of it.

    cycles: the estimate for the kernel alone, None where there is none.  around: cycles of what runs before and after
    it, copies of its operands and results.  moves: operations of the code that only move data, reloads of spills too.
    bundles: instruction words of the code.  vmem: bytes.
    """

    cycles: int | None = None
    around: int = 0
    moves: int = 0
    bundles: int | None = None
    vmem: int | None = None


@dataclass(frozen=True, slots=True)
class SourceRewrite:
    """A rewrite of one operation of a user's source, in words.

    operation: the primitive that moves data: reshape, transpose, slice.  place: its `file:line`.  before, after: the
    array that it takes and gives.  what: the change in words.  write: the same in JAX.
    """

    kind: str
    operation: str
    place: str
    before: str
    after: str
    what: str
    write: str


@dataclass(frozen=True, slots=True)
class TriedRewrite(SourceRewrite):
    """A rewrite of a kernel that was compiled, and its figures beside those of the kernel as it is.

    verdict: helped, `given` where it helps if the array is made in its
    new form (else what runs around the kernel takes longer), same, worse, a trade of one for another, failed.
    less, more: what changed.  now: None where it was not compiled; `problem` says why, or how its numbers differ.
    """

    verdict: Outcome
    was: KernelFigures
    now: KernelFigures | None = None
    less: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_fix(self) -> bool:
        """Whether it is worth writing."""
        return self.verdict in ("helped", "given")

    @property
    def rank(self) -> tuple[bool, float, int, int]:
        """The more useful, the smaller: cycles with what is around, then moves."""
        now = self.now or self.was
        total = (now.cycles or 0) + (now.around if self.verdict == "helped" else 0)
        return (not self.is_fix, total, now.moves, now.bundles or 0)

    def changes(self) -> str:
        """The figures that differ, before and after.

        >>> was, now = KernelFigures(900, 0, 64), KernelFigures(600, 0, 0)
        >>> TriedRewrite("first", "reshape", "", "", "", "", "", "helped", was, now).changes()
        'cycles 900 -> 600 (-33 %), moves 64 -> 0'
        """
        was, now = self.was, self.now or self.was
        parts = []
        for name in ("cycles", "moves", "bundles"):
            one, other = getattr(was, name), getattr(now, name)
            if one != other and one is not None and other is not None:
                share = f" ({100 * (other / one - 1):+.0f} %)" if name == "cycles" and one else ""
                parts.append(f"{name} {one:,} -> {other:,}{share}")
        if was.vmem != now.vmem and was.vmem is not None and now.vmem is not None:
            parts.append(f"VMEM {was.vmem / KIB:,.0f} -> {now.vmem / KIB:,.0f} KiB")
        if was.around != now.around:
            parts.append(f"copies around it {was.around:,} -> {now.around:,} cycles")
        return ", ".join(parts) or "no figure changes"


@dataclass(frozen=True, slots=True)
class Explained:
    """The meaning of a compiler's message: its cause in one sentence, "" = not known, and a sufficient change."""

    cause: str
    fixes: tuple[str, ...] = ()


class EstimateEntry(TypedDict):
    cycles: Annotated[int | None, Doc("null where there is no estimate, and reason says why")]
    reason: str
    unseen: Annotated[list[str], Doc("what the figure leaves out")]
    at_least: Annotated[int, Doc("cycles that traffic with HBM and products take at the least; 0 = not known")]
    cores: Annotated[int, Doc("among which the compiler splits a parallel dimension; cycles are of the busiest")]
    ranked: Annotated[int | None, Doc("the larger of the two")]


class CompiledEntry(TypedDict):
    """The compiler's report on one kernel for one target. Figures of two versions are not compared."""

    kernel: str
    target: str
    compiler: Annotated[str, Doc("with its version")]
    jax: str
    refused: Annotated[str, Doc("the compiler's words")]
    explained: list[Annotated[dict[str, Any], Exactly(Explained)]]
    problem: Annotated[str, Doc("why there is no answer")]
    vmem: Annotated[dict[str, Any] | None, Exactly(Vmem | None)]
    lines: list[Annotated[dict[str, Any], Exactly(Line)]]
    relayouts: Annotated[
        list[Annotated[dict[str, Any], Exactly(Relayout)]], Doc("in registers; those that cost something or may")
    ]
    free: Annotated[int, Doc("other relayouts, proved to move nothing")]
    estimate: EstimateEntry
    source: str
    rewrites: Annotated[
        list[Annotated[dict[str, Any], Exactly(TriedRewrite)]], Doc("with --try: what was tried, the best first")
    ]
    answer: Annotated[str, Exactly(Literal["accepted", "refused", "unknown"])]
    sentence: Annotated[str, Doc("the VMEM in one sentence")]


@dataclass(frozen=True, slots=True)
class Compiled:
    """One kernel, asked of one compiler for one target.

    Attributes:
        kernel: Its name.
        target: As it is spelled here.
        compiler: With its version: `libtpu 0.0.52`.
        jax: Its version.
        refused: The compiler's words, "" where it takes the kernel.
        explained: Their meaning.
        problem: Why there is no answer, "" where there is: not installed, the time limit, an abort.
        vmem: None where it is not known; of a kernel that is refused for its memory, the memory that it needs.
        lines: That spill, pack, unpack or rotate, the most first; those at no known line are one entry without a file.
        relayouts: In the body, those that cost something, and those of which that is not known.
        free: How many other relayouts were proved to move nothing.
        estimate: Of the cycles.
        source: The kernel's own `file:line`.
        rewrites: That were tried, the best first.
    """

    kernel: str
    target: str
    compiler: str = ""
    jax: str = ""
    refused: str = ""
    explained: tuple[Explained, ...] = ()
    problem: str = ""
    vmem: Vmem | None = None
    lines: tuple[Line, ...] = ()
    relayouts: tuple[Relayout, ...] = ()
    free: int = 0
    estimate: Estimate = Estimate()
    source: str = ""
    rewrites: tuple[TriedRewrite, ...] = ()

    @property
    def accepted(self) -> bool | None:
        """Whether the compiler takes the kernel, None if unknown."""
        return None if self.problem else not self.refused

    @property
    def word(self) -> str:
        """The same in a word."""
        return {None: "unknown", True: "accepted", False: "refused"}[self.accepted]

    @property
    def words(self) -> str:
        """The compiler's words without what is around them: the sentence that says what is wrong with its memory."""
        found = _SCOPED.search(self.refused)
        return found[0] if found else " ".join(self.refused.split()).removeprefix("JaxRuntimeError: ")

    def answer(self) -> CompilerAnswer:
        """The same as rules of kernels take it."""
        first = self.explained[0] if self.explained else Explained("")
        total = None if self.vmem is None else self.vmem.total
        fix = "; ".join(first.fixes)
        return CompilerAnswer(self.words, self.compiler, self.problem, total, self.sentence, first.cause, fix)

    @property
    def sentence(self) -> str:
        """Its VMEM in one sentence, "" where it is not known."""
        return "" if self.vmem is None else self.vmem.sentence(self.lines, self.source.rpartition(":")[0])

    def text(self) -> str:
        """The command's output about it, without a last line feed; the finding says why it is refused."""
        return "\n".join(map(visible, self._rows()))

    def _rows(self) -> Iterator[str]:
        own = self.source.rpartition(":")[0]
        by = ", ".join(filter(None, (self.target, self.compiler)))
        yield f"  compiled {by}: {self.word}{f': {self.problem}' if self.problem else ''}"
        if self.vmem is not None:
            would = "would take " if self.refused else ""
            yield f"    VMEM     {would}{self.sentence}"
        yield from _listed("moves", [_line(each, own) for each in self.lines])
        yield from _listed("relayout", [_relayout(each, own) for each in self.relayouts])
        if self.problem or self.refused:
            return
        made = self.estimate
        if made.cycles is None:
            yield f"    cycles   no estimate: {made.reason}"
            yield from _rewrites(self.rewrites, own)
            return
        more = f"; traffic with HBM and products take at least {made.at_least:,}" if made.at_least > made.cycles else ""
        core = f" for the busiest of {made.cores} cores" if made.cores > 1 else ""
        yield f"    cycles   {made.cycles:,} by the compiler's estimate{core}{more}"
        if made.unseen:
            yield f"             not in it: {'; '.join(made.unseen)}"
        yield from _rewrites(self.rewrites, own)

    def as_dict(self) -> CompiledEntry:
        """The same for programs."""
        made = self.estimate
        estimate: EstimateEntry = {
            "cycles": made.cycles, "reason": made.reason, "unseen": list(made.unseen), "at_least": made.at_least,
            "cores": made.cores, "ranked": made.ranked,
        }  # fmt: skip
        return {
            "kernel": self.kernel, "target": self.target, "compiler": self.compiler, "jax": self.jax,
            "refused": self.refused, "explained": list(map(asdict, self.explained)), "problem": self.problem,
            "vmem": None if self.vmem is None else asdict(self.vmem), "lines": list(map(asdict, self.lines)),
            "relayouts": list(map(asdict, self.relayouts)), "free": self.free, "estimate": estimate,
            "source": self.source, "rewrites": list(map(asdict, self.rewrites)), "answer": self.word,
            "sentence": self.sentence,
        }  # fmt: skip


def _rewrites(tried: Sequence[TriedRewrite], own: str) -> Iterator[str]:
    """Those that helped, with what causes the moves, and how many others there are."""
    fixes = [each for each in tried if each.is_fix]
    for each in fixes[:MOST_REWRITES]:
        file, _, line = each.place.rpartition(":")
        where = _at(file, int(line), own) if line.isdigit() else "no line known"
        yield f"    rewrite  {where}: {each.operation} {each.before} -> {each.after}"
        yield f"             {each.what}: {each.changes()}"
        if each.verdict == "given":
            yield "             only where the array is made so; else copies around the kernel take what it saves"
        yield f"             write {each.write}"
    others = len(tried) - min(len(fixes), MOST_REWRITES)
    if others:
        yield f"    tried    {others} other rewrite{'s' if others > 1 else ''}; --json has them"


def _places(lines: Sequence[Line], own: str) -> str:
    """Where registers spill, the most first: ` (lines 8 and 12)`."""
    spilled = [line for line in lines if line.reloads and line.line]
    shown = [_at(line.file, line.line, own).removeprefix("line ") for line in spilled[:2]]
    if not shown:
        return ""
    more = f" and {len(spilled) - 2} more" if len(spilled) > 2 else ""
    joined = (", " if more else " and ").join(shown)
    return f" (line{'s' if len(spilled) > 1 else ''} {joined}{more})"


def _at(file: str, line: int, own: str) -> str:
    if not line:
        return "no line known"
    return f"line {line}" if file == own else f"{file.removeprefix(os.getcwd() + os.sep)}:{line}"


def _line(each: Line, own: str) -> str:
    counts = ((each.reloads, "reloads of spills"), (each.packs, "packs"), (each.unpacks, "unpacks"))
    parts = [f"{many:,} {word}" for many, word in (*counts, (each.rotates, "rotates")) if many]
    return f"{_at(each.file, each.line, own)}: {', '.join(parts)}"


def _relayout(each: Relayout, own: str) -> str:
    many = f", {each.count} times" if each.count > 1 else ""
    unsure = f"; whether that costs something is not known: {each.reason}" if each.reason else ""
    return f"{_at(each.file, each.line, own)}: {each.vector} {each.before} -> {each.after}{many}{unsure}"


def _listed(name: str, rows: Sequence[str]) -> Iterator[str]:
    for k, row in enumerate(rows[:MOST_LINES]):
        yield f"    {name if k == 0 else '':<8} {row}"
    if len(rows) > MOST_LINES:
        yield f"             and {len(rows) - MOST_LINES} more"
