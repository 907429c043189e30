"""`ask` with answers kept between runs."""

from __future__ import annotations

import json
import time
from typing import Any

from layoutproof.compiler.cache import get, put
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict, plain
from layoutproof.hardware.tpu_kernels import installed
from layoutproof.questions.ask import ask as prove

MIN_SECONDS_TO_CACHE = 0.005
"""Seconds a proof must have taken to be kept; the quick ones are proved again faster than read. No verdict depends on
it."""


def ask(name: str, *layouts: object, **options: Any) -> Finding:
    """As `questions.ask.ask`, with answers kept between runs where the layouts are plain text or mappings."""
    texts = [layout for layout in layouts if isinstance(layout, str | dict)]
    # the rules of the installed compiler hold where no version is named
    speaks = installed() if options.get("target") is not None and options.get("compiler") is None else ""
    key = None if len(texts) < len(layouts) or not _plain(options) else ["ask", name, texts, options, speaks]
    kept = None if key is None else get(key)
    if kept is not None:
        result = _result(kept)
        if result is not None:
            return result
    start = time.perf_counter()
    answer = prove(name, *layouts, **options)
    if key is not None and time.perf_counter() - start > MIN_SECONDS_TO_CACHE:
        entry = _entry(answer)
        if entry is not None:
            put(key, entry)
    return answer


def _entry(answer: Finding) -> dict[str, Any] | None:
    """A result as JSON holds it; None when that would not give the same result back."""
    point = answer.counterexample
    entry = {
        "question": answer.question,
        "subject": answer.subject,
        "verdict": answer.verdict.value,
        "counterexample": None
        if point is None
        else [[k, v if isinstance(v, dict) else list(v)] for k, v in point.items()],
        "reason": answer.reason,
        "decided_by": answer.decided_by,
        "figures": plain(answer.figures),
        "scope": answer.scope,
        "derivation": list(answer.derivation),
    }
    try:
        return entry if json.loads(json.dumps(entry)) == entry else None
    except (TypeError, ValueError):
        return None


def _result(entry: Any) -> Finding | None:
    try:
        point = entry["counterexample"]
        return Finding(
            entry["question"],
            entry["subject"],
            entry["reason"],
            verdict=Verdict(entry["verdict"]),
            counterexample=None if point is None else {k: v if isinstance(v, dict) else tuple(v) for k, v in point},
            decided_by=entry["decided_by"],
            figures=entry["figures"],
            scope=entry["scope"],
            derivation=tuple(entry["derivation"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(type(k) is str and _plain(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(map(_plain, value))
    return value is None or type(value) in (str, int, float, bool)
