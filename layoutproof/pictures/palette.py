"""The colours of pictures: readable with dark ink, told apart by people who are colour-blind, light and dark.

The first four are those of neighbouring tiles: any two of them are at least 20 apart in CIELAB for protan, deutan and
tritan readers, and dark ink has a contrast of 7 on each fill.
"""

from __future__ import annotations

from dataclasses import dataclass

FILLS = ("#75c7f0", "#f6eeac", "#de9cab", "#7fb464", "#e89a62", "#c3d04a", "#d9d9d9", "#c3a7e6")
"""Fills of cells by number; a larger number begins again."""
TERMINAL = (117, 229, 181, 107, 173, 149, 252, 183)
"""The same in the 256-colour palette of terminals, black on each of them readable."""
INK_ON_FILL = "#1a1a1a"


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of all but the fills. alarm: of violations.  moved: of moved elements."""

    paper: str
    ink: str
    faint: str
    line: str
    plain: str
    hatch: str
    alarm: str
    moved: str


LIGHT = Theme("#ffffff", "#1a1a1a", "#595959", "#ffffff", "#f0f0f0", "#b0b0b0", "#b3261e", "#0b57d0")
DARK = Theme("#14171a", "#ececec", "#b4b4b4", "#14171a", "#2b3036", "#6a6f75", "#ff8a80", "#8ab4f8")


def distinct(number: int) -> int:
    """The colour of an owner by its number: after as many as there are colours they begin again, shifted.

    So owners that stand below each other in rows of eight, or of a multiple, differ.

    >>> distinct(7) % len(FILLS), distinct(8) % len(FILLS), distinct(16) % len(FILLS)
    (7, 3, 6)
    """
    return number + 3 * (number // len(FILLS))


def fill(colour: int) -> str:
    """The fill of a number."""
    return FILLS[colour % len(FILLS)]
