"""No text makes a regular expression of ours go over it again and again: shown of each pattern, for every text.

Seconds show nothing on a busy machine, and a count of lines does not see what an engine does within one of them. So it
is forbidden by construction: `tests/patterns.py` looks for a word that can be pumped in two ways.
"""

from __future__ import annotations

import re

import pytest

from tests.patterns import ambiguity, uses

pytestmark = pytest.mark.slow

OURS = ("crosschecks/", "mosaic/dumps.py", "pallas/from_jax/run_call.py")
"""What reads only what a compiler or an interpreter that we started says of code which ran, or runs, as the caller."""


@pytest.mark.commit
def test_no_pattern_can_be_made_to_go_back() -> None:
    """A quadratic pattern is repaired where it stands, by classes that exclude one another or by a cursor."""
    found = [
        f"{use.where} {use.name or 'a pattern'}: {wrong}"
        for use in uses()
        if not use.where.removeprefix("layoutproof/").startswith(OURS)
        and (wrong := ambiguity(use.pattern, use.flags, use.search, use.whole))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("faulty", "sound", "search"),
    [
        (r"\w+\[", r"\b\w+\[", True),
        (r"\s+$", r"(?<!\s)\s+$", True),
        (r"\{[^}]*\}", r"\{[^{}]*\}", True),
        (r"/\*.*?\*/", r"/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?", True),
        (r'"(?:[^"\\]|\\.)*"', r'"(?:[^"\\]|\\.?)*+("?)', True),
        (r"(?m)^\s*:", r"(?m)^[^\S\n]*:", True),
        (r"(?i)\w+error", r"(?i)\b\w+error", True),
        (r"(?:^|, )k=\{[^}]*\}", r"(?:^|, )k=\{[^{}]*\}", True),
        (r"a(?:[^y]*y)?", r"a(?:[^ay]*y)?", True),
        (r"\s*\s*x", r"\s*x", False),
        (r"(?:\d+x)*\w+ ", r"(?:\d+x)*+[a-z]\w* ", False),
        (r"\((.*?)\) -> .* x", r"\(([^()]*)\) -> .* x", False),
        (r"(?:a|a)*b", r"(?:a|c)*b", False),
        (r"(?:,\s*\d*\s*)*\)", r"(?:,\s*(?:\d+\s*)?)*\)", False),
    ],
)
def test_what_goes_back_is_found(faulty: str, sound: str, search: bool) -> None:
    """A planted fault is found, and its right twin is not."""
    assert ambiguity(faulty, 0, search)
    assert not ambiguity(sound, 0, search)


def test_what_is_found_can_be_pumped() -> None:
    """The word that is named makes the engine go back: on a text of it, each half costs less than half of the whole."""
    assert ambiguity(r"\{[^}]*\}") == "each place begins anew what runs on: '{a'"
    assert re.compile(r"\{[^{}]*\}").search("{a" * 100_000) is None
