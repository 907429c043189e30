"""A compiled program as the gate compares it: one frozen value, whatever it was read from.

`program` makes it from a dump, `records` from a record, `lock_programs` from the lines of a lock. Shapes stay texts.
None stands for what the source does not say: it is no change where neither side says it, and unknown where one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from layoutproof.core.errors import shorten
from layoutproof.hlo.collectives import CollectiveText
from layoutproof.hlotext.module import Instruction
from layoutproof.programs.record import MemoryStats, Often, Provenance, Schedule


def title(base: str, op_name: str) -> str:
    """An instruction in words. base: its name without numbers.  op_name: of the user's program, "" where unknown.

    >>> title("fusion", "jit(step)/add"), title("fusion", "")
    ('fusion (jit(step)/add)', 'fusion')
    """
    return f"{base} ({op_name})" if op_name else base


@dataclass(frozen=True, slots=True)
class EntryValue:
    """A parameter or a result of the entry. number: its position in its own program; -1 of one that only the other
    program has (`entry.aligned`).

    op_name: its name in the user's program.  base: its instruction's name.  whole: the global shape, "" where the text
    has each device's part alone.  copies: how many devices hold each element.
    """

    number: int
    shape: str
    sharding: str = ""
    op_name: str = ""
    base: str = ""
    line: int = 1
    whole: str = ""
    copies: int | None = None

    @property
    def name(self) -> str:
        """Its name for people."""
        return self.op_name or self.base


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective where it stands. operands, results: shapes without layouts.  size: bytes, on each device, of its
    operands or of its results, whichever are more.  depth: how many loops run it.  alone: whether nothing else uses its
    channel.  often: how often it runs.  axes: of the mesh.  place: for people, "" for its name without numbers.
    """

    what: CollectiveText
    base: str = ""
    op_name: str = ""
    line: int = 0
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    size: int | None = 0
    depth: int | None = 0
    alone: bool | None = True
    often: Often | None = None
    axes: tuple[str, ...] | None = None
    place: str = ""


def bytes_in_words(size: int | None) -> str:
    """An amount for people.

    >>> bytes_in_words(8), bytes_in_words(None)
    ('8 bytes', 'an unknown number of bytes')
    """
    return "an unknown number of bytes" if size is None else f"{size} bytes"


def often_in_words(often: Often | None) -> str:
    """How often something runs, to be put after what runs; "" where the source does not say.

    >>> often_in_words(Often(3)), often_in_words(Often(1, sometimes=True)), often_in_words(None)
    (', 3 times a run', ', at most once a run', '')
    """
    if often is None:
        return ""
    if often.times is None:
        return f", in a loop whose trips are unknown ({shorten(often.why, 60)})"
    return f", {'at most ' * often.sometimes}{'once' if often.times == 1 else f'{often.times} times'} a run"


KernelData = dict[str, object] | str
"""A kernel as plain data, or the reason why it cannot be read."""
Verdicts = tuple[tuple[str, str], ...]
"""(verdict, why) of each finding about a kernel."""


@dataclass(frozen=True, slots=True)
class Inside:
    """The identity of a Mosaic kernel. digest: of its module, or of the kernel's whole text where the module cannot be
    read: one different byte may be another kernel.

    verdicts: of each kernel, of grid and BlockSpecs.  body: the unproved questions about the bodies; None where they
    were not asked.
    """

    kernels: tuple[KernelData, ...]
    digest: str
    verdicts: Verdicts
    body: Verdicts | None = None


@dataclass(frozen=True, slots=True)
class LayoutDemands:
    """A custom call. operands: layouts that it demands, () where it states none.  said: aliases, side effects.

    written: digest of the whole text of a Mosaic kernel.  source: the instruction, None of a locked one.  inside: what
    a kernel was when it was locked, else None.  vmem: bytes that a kernel takes.  cycles: each time it runs.
    place: for people, "" for its name without numbers.
    """

    target: str
    base: str = ""
    op_name: str = ""
    line: int = 0
    operands: tuple[str, ...] = ()
    result: str = ""
    said: str = ""
    written: str = ""
    source: Instruction | None = None
    inside: Inside | None = None
    vmem: int | None = None
    cycles: int | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class LayoutCopy:
    """A copy whose result is laid out differently from its operand. parameter: of the entry, that it copies, or -1.

    size: bytes of its result; of a record, that all such copies read and write.  where: its computation and its name
    there, or the boundary of the program that it copies; "" of a locked one.  often: how often it runs.
    reason: why it is unknown whether elements move.  place: for people, "" for its name without numbers.
    """

    source: str
    target: str
    size: int | None
    parameter: int
    base: str
    op_name: str
    line: int = 0
    where: tuple[str, str] = ("", "")
    often: Often | None = None
    reason: str = ""
    place: str = ""


def total(of: Exchange | LayoutCopy) -> int | None:
    """Bytes in a run of the program; those of each time where the source does not say how often it runs.

    >>> copies = [LayoutCopy("a", "b", 8, -1, "", "", often=often) for often in (Often(3), Often(None), None)]
    >>> [*map(total, copies)]
    [24, None, 8]
    """
    times = 1 if of.often is None else of.often.times
    return None if of.size is None or times is None else of.size * times


class BitcastPair(NamedTuple):
    """A bitcast of an array, with its two shapes, memory spaces left out."""

    source: str
    target: str
    title: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """What the gate compares of a compiled program.

    Attributes:
        name, line: Of its module.
        made: Its compiler, and the program before it was compiled.
        memory, cycles: The compiler's own figures.
        schedule: The cycles by the compiler's schedule; None where they are not asked for.
        devices: Their number, by what it counts: partitions and replicas, or devices.
        scheduled: Whether its text is final.
        donations: (parameter, index of the element) -> what becomes of its buffer.
        parameters, results: Of the entry, in order.
        exchanges: Collectives.
        customs: Custom calls; of a record, kernels alone.
        copies: Those that change a layout.
        bitcasts: Of arrays.
        computes: A lock file's digest of all computed values, as `labels.computes` makes it.
    """

    name: str = ""
    line: int = 1
    made: Provenance = Provenance()
    memory: MemoryStats = MemoryStats()
    cycles: int | None = None
    schedule: Schedule | None = None
    devices: Mapping[str, int] | None = field(default_factory=dict)
    scheduled: bool | None = False
    donations: Mapping[tuple[int, tuple[int, ...]], str] | None = field(default_factory=dict)
    parameters: Sequence[EntryValue] = ()
    results: Sequence[EntryValue] = ()
    exchanges: Sequence[Exchange] | None = ()
    customs: Sequence[LayoutDemands] | None = ()
    copies: Sequence[LayoutCopy] = ()
    bitcasts: Sequence[BitcastPair] | None = ()
    computes: str = ""

    def reordered(self, parameters: Sequence[EntryValue], results: Sequence[EntryValue]) -> Self:
        """The same with its parameters and results in another order, and all that speaks of these by position."""
        numbers = {each.number: k for k, each in enumerate(parameters) if each.number >= 0}
        donations = {(numbers.get(of, of), index): words for (of, index), words in (self.donations or {}).items()}
        return replace(
            self,
            parameters=parameters,
            results=results,
            donations=None if self.donations is None else donations,
            copies=[replace(each, parameter=numbers.get(each.parameter, each.parameter)) for each in self.copies],
        )
