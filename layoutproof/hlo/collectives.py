"""Collectives: their devices, dimension, reduction, and bytes.

Source: `hlo_instruction.h` and `collective_ops_utils.cc` (GetCollectiveOpGroupMode) of openxla/xla at 183fa00cb5
(2026-08-22).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hlo import groups, problems
from layoutproof.hlo.shapes import Shape
from layoutproof.hlotext.module import Header, Instruction

REDUCTIONS = ("all-reduce", "reduce-scatter")
KINDS = (
    *REDUCTIONS,
    *("all-gather", "all-to-all", "ragged-all-to-all", "collective-permute", "collective-broadcast", "send", "recv"),
)
"""Opcodes; each also as `-start`, which is followed by a `-done` that moves nothing more."""
OPCODES = frozenset((*KINDS, *(f"{kind}-start" for kind in KINDS)))
_UNORDERED = ("all-reduce",)
"""Of these the order of devices within a group says nothing: the others give pieces by their place in the group."""


@dataclass(frozen=True, slots=True)
class CollectiveText:
    """The text of one without its shapes. kind: the opcode without `-start`.  over: groups, or source and target, by
    device.

    along: dimensions and other attributes that place the pieces.  reduction: the operations of its computation.
    """

    kind: str
    over: str
    along: str = ""
    reduction: str = ""

    def __str__(self) -> str:
        parts = (self.along, self.reduction and f"reduced by {self.reduction}", self.over and f"over {self.over}")
        return " ".join((self.kind, *filter(None, parts)))

    @property
    def reduces(self) -> bool:
        """Whether values of several devices become one."""
        return self.kind in REDUCTIONS


def read_back(kind: str, text: str) -> CollectiveText:
    """What `str` of one has printed, read back. kind: its opcode without `-start`.

    >>> one = CollectiveText("reduce-scatter", "{0,1}", "dimensions={0}", "add parameter parameter")
    >>> read_back("reduce-scatter", str(one)) == one
    True
    """
    rest, _, over = text.removeprefix(kind).partition(" over ")
    along, _, reduction = rest.partition(" reduced by ")
    return CollectiveText(kind, over, along.strip(), reduction)


def collective(of: Instruction, header: Header, bodies: Mapping[str, str]) -> CollectiveText:
    """The collective of an instruction of `OPCODES`. bodies: the operations of each computation, for its reduction.

    Groups of a form that is not read stand as their text, so that they are compared as such.
    """
    kind = of.opcode.removesuffix("-start")
    reduction = next((bodies.get(name, name) for role, name in of.calls if role == "to_apply"), "")
    along = [f"{name}={of.attribute(name)}" for name in _ALONG if of.attribute(name)]
    return CollectiveText(kind, _over(of, kind, header), " ".join(along), reduction)


_ALONG = ("dimensions", "split_dimension", "slice_sizes", "is_host_transfer")


def given_by(of: Instruction, shape: Shape) -> Shape:
    """The result of a collective: of its start that is the second part of its shape, but for an all-reduce."""
    started = of.opcode.endswith("-start") and of.opcode != "all-reduce-start"
    return shape.elements[1] if started and shape.elements and len(shape.elements) > 1 else shape


def groups_of(of: Instruction, kind: str, header: Header) -> groups.Groups:
    """Which devices talk to each other; of a collective-permute (from, to) each; none of send and recv.

    kind: the opcode without `-start`. Raises LayoutError for groups of a form that is not read.
    """
    linked = bool(of.attribute("channel_id"))
    if kind in ("send", "recv"):
        return ()
    if kind == "collective-permute":
        mode = "partition" if linked else "replica"
        given = groups.pairs(of.attribute("source_target_pairs"))
        spread = [groups.devices([pair], header.replicas, header.partitions, mode) for pair in given]
        return tuple(sorted(pair for many in spread for pair in many))
    text, (mode, whole) = groups.groups_text(of.said), _mode(of, kind, header)
    if not text and of.attribute("replica_groups"):
        raise LayoutError(problems.GROUPS_OF_OTHER_FORM())
    found = groups.devices(groups.read_groups(text or "{}", whole), header.replicas, header.partitions, mode)
    return tuple(sorted(tuple(sorted(group)) for group in found)) if kind in _UNORDERED else found


def _mode(of: Instruction, kind: str, header: Header) -> tuple[str, int]:
    """(what a number in the groups counts, how many there are)."""
    if not of.attribute("channel_id"):
        return "replica", header.replicas
    if of.attribute("use_global_device_ids") == "true":
        return "device", header.devices
    if kind in ("all-to-all", "ragged-all-to-all", "collective-broadcast"):
        return "partition", header.partitions
    return "all partitions", header.replicas


def _over(of: Instruction, kind: str, header: Header) -> str:
    try:
        return groups.words(groups_of(of, kind, header))
    except LayoutError:
        return f"{_mode(of, kind, header)[0]}s {groups.groups_text(of.said) or shorten(of.said, 400)}"


def moved(kind: str, size: int, operands: int, results: int) -> int | None:
    """Bytes that each device of a group has to receive from the others, at the least; None where its text does not say.

    size: devices in a group.  operands, results: bytes of them on one device.  An all-reduce is a reduce-scatter and an
    all-gather. Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69 (2009), section 2.

    >>> moved("all-gather", 4, 256, 1024), moved("all-reduce", 4, 1024, 1024), moved("all-reduce", 1, 8, 8)
    (768, 1536, 0)
    """
    if kind == "ragged-all-to-all" or kind in ("send", "recv"):
        return None
    if kind in ("collective-permute", "collective-broadcast"):
        return operands
    if size <= 1:
        return 0
    whole = {"all-gather": results, "all-reduce": 2 * operands}.get(kind, operands)
    return whole * (size - 1) // size
