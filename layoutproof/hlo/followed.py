"""The instructions of a program of several devices, kept while its text is read, so that its reshards can be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from layoutproof.hlo import problems
from layoutproof.hlo.reshards import MOVING, ReshardChain, Reshards
from layoutproof.hlo.shapes import Shapes
from layoutproof.hlotext.module import Header, Instruction

MOST_FOLLOWED = 500_000
"""Instructions of one program that are kept; in memory each takes about half a kilobyte."""


class Followed:
    """One program while it is read. Of a program of one device, which sends nothing, nothing is kept."""

    __slots__ = ("header", "many", "moving", "name", "steps")

    def __init__(self, header: Header = Header("")) -> None:  # noqa: B008
        self.header = header
        self.many, self.name = 0, ""
        self.steps: dict[str, list[Instruction]] = {}
        self.moving: dict[str, list[Instruction]] = {}

    def begin(self, name: str) -> None:
        """A computation begins."""
        self.name, self.steps[name] = name, []

    def instruction(self, of: Instruction) -> None:
        """One instruction of it."""
        if self.many == 0 and self.header.devices == 1:
            self.many = -1
        if self.many < 0:
            return
        self.many += 1
        if of.opcode.removesuffix("-start") in MOVING:
            self.moving.setdefault(self.name, []).append(of)
        if self.many <= MOST_FOLLOWED:
            self.steps[self.name].append(of)
        elif self.many == MOST_FOLLOWED + 1:
            self.steps = {}

    def reshards(self, entry: str, shardings: Mapping[int, str], shapes: Shapes) -> Iterator[tuple[str, ReshardChain]]:
        """(computation, reshard) of those for which fewer bytes would do, and of those of which it is unknown.

        entry: the computation that the program starts with.  shardings: of its parameters, by number, as text.
        """
        if not self.moving:
            return
        if self.many > MOST_FOLLOWED:
            why = problems.TOO_LARGE_TO_FOLLOW(self.many, MOST_FOLLOWED)
            for name, each in self.moving.items():
                yield name, ReshardChain(each[0], tuple([of.name for of in each]), None, None, why)
            return
        for name, found in Reshards(self.steps, self.header, entry, shardings, shapes).found():
            if found.needed is None or found.received != found.needed:
                yield name, found
