"""Refusals of a walk: operations and forms that it does not model."""

from __future__ import annotations


class NotModelled(Exception):
    """Something that has no value here. what: in words.  place: `file:line`, "" if unknown."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what)
        self.what, self.place = what, place


class OutOfBounds(Exception):
    """A load or a store beyond what it is of. what: in words.  place: `file:line`."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what)
        self.what, self.place = what, place

    @property
    def said(self) -> str:
        """The whole of it, in words."""
        return f"an access out of bounds: {self.what}"


class Apart(OutOfBounds):
    """An output that is declared the same on several devices, and is not."""

    @property
    def said(self) -> str:
        """The whole of it, in words."""
        return self.what


class ChainTooShort(Exception):
    """The chain of fields is too short for what is nested."""


TOO_DEEP = "exponentials and logarithms nested in a way that no level holds"
"""The reason where `ChainTooShort` is raised for every length of the chain."""


class Collision(Exception):
    """Two sets have the same number by chance: the point is drawn again."""


class Ended(Exception):
    """Ends a walk once its observer has seen enough."""


OFFER = "--reduced compares them at the smallest sizes that keep every kind of program"
"""The reason where something is too large."""
