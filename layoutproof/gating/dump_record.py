"""The record of an HLO dump: the data that the gate compares, and all that a lock file keeps of a dump.

Dumps are read into it by `program`, lines of a lock file by `lock_programs`. Shapes stay texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from layoutproof.hlo.collectives import CollectiveText
from layoutproof.hlotext.module import Instruction


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
    has each device's part alone.
    """

    number: int
    shape: str
    sharding: str = ""
    op_name: str = ""
    base: str = ""
    line: int = 1
    whole: str = ""

    @property
    def name(self) -> str:
        """Its name for people."""
        return self.op_name or self.base


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective where it stands. operands, results: shapes without layouts.  size: bytes, on each device, of its
    operands or of its results, whichever are more.  depth: how many loops run it.  alone: whether nothing else uses its
    channel.
    """

    what: CollectiveText
    base: str = ""
    op_name: str = ""
    line: int = 0
    operands: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    size: int = 0
    depth: int = 0
    alone: bool = True


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
    a kernel was when it was locked, else None.
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


@dataclass(frozen=True, slots=True)
class LayoutCopy:
    """A copy whose result is laid out differently from its operand. parameter: of the entry, that it copies, or -1.

    size: bytes of its result.  where: its computation and its name there, "" of a locked one.
    """

    source: str
    target: str
    size: int
    parameter: int
    base: str
    op_name: str
    line: int = 0
    where: tuple[str, str] = ("", "")


class BitcastPair(NamedTuple):
    """A bitcast of an array, with its two shapes, memory spaces left out."""

    source: str
    target: str
    title: str = ""
    line: int = 0


@dataclass(slots=True)
class DumpRecord:
    """The compared data of a module besides its instructions.

    Attributes:
        name, line: Of the module.
        replicas, partitions, scheduled: Of its header.
        donations: (parameter, index of the element) -> what becomes of its buffer.
        parameters, results: Of the entry, in order.
        exchanges: Collectives.
        customs: Custom calls.
        copies: Those that change a layout.
        bitcasts: Of arrays.
        computes: A lock file's digest of all computed values, as `labels.computes` makes it.
        unsaid: Whether a lock file says nothing of devices, donations, collectives and custom calls.
    """

    name: str = ""
    line: int = 1
    replicas: int = 1
    partitions: int = 1
    scheduled: bool = False
    donations: dict[tuple[int, tuple[int, ...]], str] = field(default_factory=dict)
    parameters: list[EntryValue] = field(default_factory=list)
    results: list[EntryValue] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    customs: list[LayoutDemands] = field(default_factory=list)
    copies: list[LayoutCopy] = field(default_factory=list)
    bitcasts: list[BitcastPair] = field(default_factory=list)
    computes: str = ""
    unsaid: bool = False

    def reordered(self, parameters: Sequence[EntryValue], results: Sequence[EntryValue]) -> Self:
        """The same with its parameters and results in another order, and all that speaks of these by position."""
        numbers = {each.number: k for k, each in enumerate(parameters) if each.number >= 0}
        return replace(
            self,
            parameters=list(parameters),
            results=list(results),
            donations={(numbers.get(of, of), index): words for (of, index), words in self.donations.items()},
            copies=[replace(each, parameter=numbers.get(each.parameter, each.parameter)) for each in self.copies],
        )
