"""Pictures are readable: ink on every fill, neighbouring tiles for people who are colour-blind, and without colour."""

from __future__ import annotations

import itertools

import pytest

from layoutproof.pictures.drawing import MARKS
from layoutproof.pictures.palette import DARK, FILLS, INK_ON_FILL, LIGHT, TERMINAL, Theme
from layoutproof.pictures.svg import style

# Machado, Oliveira, Fernandes 2009, severity 1.0
PROTAN = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))
DEUTAN = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
TRITAN = ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900))
Triple = tuple[float, float, float]


def linear(colour: str) -> Triple:
    parts = [value / 255 for value in bytes.fromhex(colour[1:])]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return r, g, b


def contrast(one: str, other: str) -> float:
    """WCAG's ratio."""
    lights = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear(one), linear(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def lab(rgb: Triple) -> Triple:
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    xyz = [sum(m * max(0.0, c) for m, c in zip(row, rgb, strict=True)) for row in rows]
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (v / w for v, w in zip(xyz, (0.9505, 1, 1.089), strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one: str, other: str, seen: tuple[Triple, ...]) -> float:
    """Delta E 1976 as somebody with this vision sees it."""
    a, b = (
        lab(tuple(sum(m * c for m, c in zip(row, linear(colour), strict=True)) for row in seen))  # type: ignore[arg-type]
        for colour in (one, other)
    )
    return sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) ** 0.5


@pytest.mark.parametrize("fill", FILLS)
def test_ink_is_readable_on_every_fill(fill: str) -> None:
    assert contrast(fill, INK_ON_FILL) >= 7


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_words_are_readable_on_paper_and_plain_cells(theme: Theme) -> None:
    for ink in (theme.ink, theme.faint):
        assert contrast(ink, theme.paper) >= 4.5
    assert contrast(theme.ink, theme.plain) >= 4.5
    assert contrast(theme.alarm, theme.paper) >= 3
    assert contrast(theme.moved, theme.paper) >= 3


@pytest.mark.parametrize("seen", [PROTAN, DEUTAN, TRITAN])
def test_neighbouring_tiles_differ_for_everybody(seen: tuple[Triple, ...]) -> None:
    """Of the four fills of tiles any two are told apart with any of the three deficiencies."""
    for one, other in itertools.combinations(FILLS[:4], 2):
        assert apart(one, other, seen) > 20, (one, other)


def test_every_mark_has_a_sign_of_its_own_and_every_fill_a_terminal_colour() -> None:
    assert len({sign for sign, _ in MARKS.values()}) == len(MARKS)
    assert len(TERMINAL) == len(FILLS)


def test_light_and_dark_come_with_the_picture() -> None:
    rules = style()
    assert "@media(prefers-color-scheme:dark)" in rules
    assert LIGHT.paper in rules
    assert DARK.paper in rules
