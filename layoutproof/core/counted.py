"""Numbers that are counted of a program: bounded where a branch or a loop leaves them open, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counted:
    """A number of a program. least, most: its bounds; most is None where it is unknown.  why: the reason of either.

    >>> Counted.of(8) + Counted.of(2).branch("a branch")
    Counted(least=8, most=10, why='a branch')
    >>> Counted.of(8).often(None, "w: its trips are unknown")
    Counted(least=0, most=None, why='w: its trips are unknown')
    """

    least: int = 0
    most: int | None = 0
    why: str = ""

    @classmethod
    def of(cls, number: int) -> Counted:
        """A number that is known."""
        return cls(number, number)

    @property
    def exact(self) -> int | None:
        """The number, None where it is not known exactly."""
        return self.least if self.least == self.most else None

    def __add__(self, other: Counted) -> Counted:
        most = None if self.most is None or other.most is None else self.most + other.most
        return Counted(self.least + other.least, most, self.why or other.why)

    def often(self, times: int | None, why: str = "") -> Counted:
        """The same so many times, None = an unknown number of times, which may be none; `why` says which loop."""
        if self.most == 0:
            return self
        if times is None:
            return Counted(0, None, why or self.why)
        return Counted(self.least * times, None if self.most is None else self.most * times, self.why)

    def branch(self, why: str) -> Counted:
        """The same where it may also not be done at all."""
        return self if self.most == 0 else Counted(0, self.most, self.why or why)

    def either(self, other: Counted, why: str) -> Counted:
        """One of two, whichever."""
        if self == other:
            return self
        most = None if self.most is None or other.most is None else max(self.most, other.most)
        return Counted(min(self.least, other.least), most, self.why or other.why or why)

    def words(self, unit: str = "") -> str:
        """As a report says it.

        >>> Counted(2000, 3000).words("flops"), Counted(7, None).words()
        ('2,000 to 3,000 flops', 'at least 7')
        """
        end = f" {unit}" if unit else ""
        if self.most is None:
            return f"at least {self.least:,}{end}"
        return f"{self.least:,}{end}" if self.least == self.most else f"{self.least:,} to {self.most:,}{end}"
