"""One known bug of JAX, XLA or libtpu, and what is said of it under a version.

A bug is said only where its pattern is found and the version has it, or may have it. No bug says that code is wrong:
the code is right, and a version of something below it is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from layoutproof.hardware.facts import numbers

PACKAGES = ("jax", "jaxlib", "libtpu")
"""What versions are of."""
SUBJECTS = ("kernel", "program", "refusal")
"""What a pattern looks at: a Pallas call, a compiled program, the words in which a compiler refuses one."""


@dataclass(frozen=True, slots=True)
class KnownBug:
    """One bug.

    Attributes:
        name: Of the bug, the same for ever: its thread, or a few words.
        title: The bug in one sentence.
        subject: What its pattern looks at, one of SUBJECTS.
        pattern: The pattern's name in `in_kernels` or `in_programs`; of a refusal a regular expression.
        package: Whose versions have it, one of PACKAGES.
        first: The oldest version in which it was seen.
        last: The newest version in which it was seen.
        effect: What happens, and under which condition that a pattern cannot see.
        way_out: What to do.
        link: Where it was reported, or its heading in BUGS-FOUND.md.
        evidence: Who saw it in these versions.
        fixed: The oldest newer version in which it was seen to be gone; "" = none is known to us.
        platform: "cpu", "tpu" or "gpu", "" = any.
        severity: "warning", or "info" where the pattern is common in code that it does not hurt.
    """

    name: str
    title: str
    subject: Literal["kernel", "program", "refusal"]
    pattern: str
    package: Literal["jax", "jaxlib", "libtpu"]
    first: str
    last: str
    effect: str
    way_out: str
    link: str
    evidence: str
    fixed: str = ""
    platform: str = ""
    severity: Literal["warning", "info"] = "warning"

    def versions(self) -> str:
        """The versions in words.

        >>> _EXAMPLE.versions()
        'jaxlib 0.10.2 to 0.11.0, gone in 0.11.1'
        """
        seen = self.first if self.first == self.last else f"{self.first} to {self.last}"
        return f"{self.package} {seen}, " + (f"gone in {self.fixed}" if self.fixed else "no fix is known to us")


@dataclass(frozen=True, slots=True)
class BugSeen:
    """A bug whose pattern is found under a version that has it, or may.

    bug: which.  subject: an operand, an instruction.  source: file:line, "" = unknown.  surely: whether the version
    lies between two in which it was seen.
    """

    bug: KnownBug
    subject: str
    source: str = ""
    surely: bool = True

    @property
    def severity(self) -> str:
        """As of the bug; info where nobody saw it in this version."""
        return self.bug.severity if self.surely else "info"

    @property
    def reason(self) -> str:
        """The bug in one sentence, with its versions and where it was reported."""
        seen = self.bug.versions() if self.surely else f"{self.bug.versions()}; in this version nobody looked"
        return f"{self.bug.title}: {self.bug.effect} ({seen}; {self.bug.link})"


def has(bug: KnownBug, version: str) -> bool | None:
    """Whether a version has a bug.

    Args:
        bug: The bug.
        version: Of its package, "" = unknown.

    Returns:
        True between the first and the last version in which it was seen; False before, and from its fix on, and where
        the version is unknown; None in between, where nobody looked.

    >>> [has(_EXAMPLE, version) for version in ("0.10.1", "0.10.2", "0.11.0", "0.11.1", "")]
    [False, True, True, False, False]
    """
    at = numbers(version)
    if not at or at < numbers(bug.first) or (bug.fixed and at >= numbers(bug.fixed)):
        return False
    return True if at <= numbers(bug.last) else None


def seen(bug: KnownBug, version: str, places: Iterable[tuple[str, str]]) -> BugSeen | None:
    """What is said of a bug: its first place, None where the version has not got it, or there is no place.

    Args:
        bug: The bug.
        version: Of its package.
        places: Each as its subject and source, made where it is asked for.

    Returns:
        The bug at its first place.
    """
    surely = has(bug, version)
    if surely is False:
        return None
    place = next(iter(places), None)
    return None if place is None else BugSeen(bug, *place, surely is True)


_EXAMPLE = KnownBug(
    "example", "an example", "program", "wide", "jaxlib", "0.10.2", "0.11.0", "it crashes", "take another", "", "",
    fixed="0.11.1",
)  # fmt: skip
