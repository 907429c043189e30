"""The events of reading a dump; a LayoutError among them is a mistake at its line."""

from __future__ import annotations

from typing import NamedTuple

from layoutproof.core.errors import LayoutError
from layoutproof.hlotext.module import Header, Instruction


class ComputationBegin(NamedTuple):
    """A computation begins."""

    name: str
    entry: bool
    line: int


class End(NamedTuple):
    """The computation ends, whole."""

    line: int


class ModuleEnd(NamedTuple):
    """The module ends. whole: nothing was wrong with it."""

    whole: bool
    line: int


class Allocation(NamedTuple):
    """One allocation of a buffer assignment. size: in bytes.  what: the rest of its line."""

    number: int
    size: int
    what: str
    line: int


class AllocatedValue(NamedTuple):
    """One value in an allocation. size, offset: in bytes.  shape: its text.  name: instruction and tuple index."""

    name: str
    size: int
    offset: int
    shape: str
    allocation: int
    line: int


Event = Header | ComputationBegin | Instruction | End | ModuleEnd | Allocation | AllocatedValue | LayoutError
