"""What a collective does: which devices, along which dimension, with which reduction, and how many bytes.

Source: `hlo_instruction.h` and `collective_ops_utils.cc` (GetCollectiveOpGroupMode) of openxla/xla at 183fa00cb5
(2026-08-22).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hlo import groups
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
class Collective:
    """What one says, shapes aside. kind: the opcode without `-start`.  over: groups, or source and target, by device.

    along: dimensions and what else says which piece goes where.  reduction: the operations of its computation.
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


def collective(of: Instruction, header: Header, bodies: Mapping[str, str]) -> Collective:
    """What an instruction of `OPCODES` does. bodies: the operations of each computation, for its reduction.

    Groups of a form that is not read stand as their text, so that they are compared as such.
    """
    kind = of.opcode.removesuffix("-start")
    reduction = next((bodies.get(name, name) for role, name in of.calls if role == "to_apply"), "")
    along = [f"{name}={of.attribute(name)}" for name in _ALONG if of.attribute(name)]
    return Collective(kind, _over(of, kind, header), " ".join(along), reduction)


_ALONG = ("dimensions", "split_dimension", "slice_sizes", "is_host_transfer")


def _over(of: Instruction, kind: str, header: Header) -> str:
    linked = bool(of.attribute("channel_id"))
    if kind in ("send", "recv"):
        return ""
    if kind == "collective-permute":
        mode = "partition" if linked else "replica"
        given = groups.pairs(of.attribute("source_target_pairs"))
        spread = [groups.devices([pair], header.replicas, header.partitions, mode) for pair in given]
        return groups.words(tuple(sorted(pair for many in spread for pair in many)))
    text = groups.groups_text(of.said)
    if not linked:
        mode, whole = "replica", header.replicas
    elif of.attribute("use_global_device_ids") == "true":
        mode, whole = "device", header.replicas * header.partitions
    elif kind in ("all-to-all", "ragged-all-to-all", "collective-broadcast"):
        mode, whole = "partition", header.partitions
    else:
        mode, whole = "all partitions", header.replicas
    try:
        if not text and of.attribute("replica_groups"):
            raise LayoutError("groups of a form that is not read")
        found = groups.read_groups(text or "{}", whole)
        found = groups.devices(found, header.replicas, header.partitions, mode)
    except LayoutError:
        return f"{mode}s {text or shorten(of.said, 400)}"
    if kind in _UNORDERED:
        found = tuple(sorted(tuple(sorted(group)) for group in found))
    return groups.words(found)
