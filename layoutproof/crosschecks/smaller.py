"""A case on which a source disagrees, made smaller as long as it still disagrees about the same thing.

Candidates come from the text: a number in it made smaller, a bracket with what is in it left out. What no longer reads
is no candidate. Each round puts all candidates to the source at once, and keeps the smallest one that disagrees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Disagree, Source
from layoutproof.registry.read import read_layout

ROUNDS = 24
"""How often a case is made smaller, at most."""
MOST = 48
"""Candidates of one round."""

_NUMBER = re.compile(r"(?<![A-Za-z0-9_@])[0-9]+")
_GROUP = re.compile(r"[A-Z]?\([^()]*\)")


def smallest(source: Source, case: Case, found: Disagree) -> tuple[Case, Disagree]:
    """The smallest case that is found, and the disagreement on it. Kernels of a user's function stay as they are."""
    for _ in range(ROUNDS):
        candidates = list(smaller(case))[:MOST]
        still = [
            (each, outcome)
            for each, outcome in zip(candidates, source.compare(candidates), strict=True)
            if isinstance(outcome, Disagree) and outcome.what == found.what
        ]
        if not still:
            break
        case, found = min(still, key=lambda row: size(row[0].text))
    return case, found


def size(text: str) -> tuple[int, int]:
    """What "smaller" means: fewer characters, then smaller numbers."""
    return len(text), sum(map(int, _NUMBER.findall(text)))


def smaller(case: Case) -> Iterator[Case]:
    """Cases with less in their text, which still read; none of a pair or a kernel of a user's function.

    >>> from layoutproof.registry.read import read_layout
    >>> text = "f32[2]{0:T(2)}"
    >>> [each.text for each in smaller(Case("layout", text, read_layout(text)))][:3]
    ['f32[0]{0:T(2)}', 'f32[1]{0:T(2)}', 'f32[2]{0:T(1)}']
    """
    if case.kind != "layout":
        return
    seen = {case.text}
    for text in _texts(case.text):
        if text in seen or size(text) >= size(case.text):
            continue
        seen.add(text)
        try:
            layout = read_layout(text)
        except (LayoutError, Undecided):
            continue
        yield Case(case.kind, str(layout), layout, case.origin)


def _texts(text: str) -> Iterator[str]:
    for number in _NUMBER.finditer(text):
        value = int(number[0])
        for less in dict.fromkeys((0, 1, value // 2, value - 1)):
            if less < value:
                yield f"{text[: number.start()]}{less}{text[number.end() :]}"
    for group in _GROUP.finditer(text):
        yield text[: group.start()] + text[group.end() :]
