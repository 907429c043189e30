"""What one pasted message means, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict


@dataclass(frozen=True, slots=True)
class MessageArray:
    """One array that a message names.

    shape: with its layout, as it is computed with.  printed: its size in the message's own words, "" where there is
    none.  size, unpadded: bytes as they are computed here, with and without padding; -1 where they cannot be.
    agrees: whether `size` is what the message prints; None where it prints none.  count: arrays of this shape.
    padded: each dimension that grows, in words.  made_by: the operation, its name and its source line.  kind: of the
    allocation.  fixes: what would take fewer bytes, each with its bytes.  note: what else there is to say.
    """

    shape: str
    printed: str = ""
    size: int = -1
    unpadded: int = -1
    agrees: bool | None = None
    count: int = 1
    padded: tuple[str, ...] = ()
    made_by: str = ""
    kind: str = ""
    fixes: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One message.

    kind: of the message, e.g. "out of HBM".  line: where it starts in the text, from 1.  said: the message in short.
    cause: one sentence; "" where it is not known.  reason: why it is not known.  needs: what would settle it.
    arrays: those that it names.  fixes: what to do, each computed or measured.  notes: what is left to know.
    source: of the rule that the cause rests on.
    """

    kind: str
    line: int
    said: str
    cause: str = ""
    reason: str = ""
    arrays: tuple[MessageArray, ...] = ()
    fixes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""

    def findings(self) -> tuple[Finding, ...]:
        """Whether the cause is known, and each size that is not what was printed."""
        verdict = Verdict.PROVED if self.cause else Verdict.UNKNOWN
        scope = "the text of the message; sizes are computed anew"
        first = Finding("message", self.kind, self.reason, line=self.line, verdict=verdict, scope=scope)
        wrong = [
            Finding("size", each.shape, f"printed as {each.printed}, computed as {human(each.size)}", line=self.line)
            for each in self.arrays
            if each.agrees is False
        ]
        return (first, *wrong)


_STEPS = (("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10))


def human(size: int) -> str:
    """Bytes as XLA prints them in these reports: every size of the messages in `tests/cases/messages` is so written.

    >>> [human(n) for n in (0, 900, 4096, 65536, 50331648, 34359738368)]
    ['0B', '900B', '4.0K', '64.0K', '48.00M', '32.00G']
    """
    for unit, step in _STEPS:
        if size >= step:
            return f"{size / step:.{1 if unit == 'K' else 2}f}{unit}"
    return f"{size}B"


def joined(words: Sequence[str]) -> str:
    """Words as a list in a sentence.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def made_of(parts: Mapping[str, int]) -> str:
    """What a total is made of, the largest first; parts of nothing are left out.

    >>> made_of({"reserved": 4096, "arguments": 1 << 30, "output": 0})
    'arguments 1.00G and reserved 4.0K'
    """
    return joined(
        [f"{name} {human(size)}" for name, size in sorted(parts.items(), key=lambda part: -part[1]) if size > 0]
    )
