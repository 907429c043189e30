"""Eighty texts of public threads that nobody here had seen when they were chosen, 2026-11-28: useful, or what to paste.

The first pass, before a reader was changed for them: 25 had a cause, two of these a wrong one, 19 were called unknown
with what to paste, and 36 were not read.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import layoutproof as lp

CASES = [
    json.loads(line)
    for line in (Path(__file__).resolve().parents[1] / "cases" / "fresh_messages.jsonl").read_text().splitlines()
]
CLASSES = {"sharding", "donation", "lowering"}


@pytest.mark.parametrize("case", CASES, ids=[f"{k}-{case['thread']}" for k, case in enumerate(CASES)])
def test_a_text_has_its_cause_or_says_what_to_paste(case: dict[str, str]) -> None:
    messages = lp.why(case["text"]).messages
    causes = [message.cause for message in messages if message.cause]
    if case["cause"]:
        assert any(cause.startswith(case["cause"]) for cause in causes)
        assert all(message.fixes for message in messages if message.cause)
    else:
        assert not causes
        assert messages[0].reason.startswith(case["reason"])


def test_how_many_are_useful() -> None:
    """Sixty and more; a third of all and more are of sharding, donation and lowering."""
    assert len(CASES) == 80
    assert sum(bool(case["cause"]) for case in CASES) == 67
    counted = Counter(case["class"] for case in CASES)
    assert sum(counted[name] for name in CLASSES) >= len(CASES) / 3
    assert all("#" in case["thread"] for case in CASES)


def test_a_rerun_under_debug_nans_is_one_message() -> None:
    (message,) = lp.why(next(case["text"] for case in CASES if case["thread"] == "jax-ml/jax#12514")).messages
    assert message.cause.startswith("jax_debug_nans runs a call again")
