"""`ask` with answers kept between runs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from layoutproof.compiler.cache import get, put
from layoutproof.compiler.kept import as_json, classes, from_json
from layoutproof.core.finding import Finding
from layoutproof.core.result import plain
from layoutproof.hardware.tpu_kernels import installed
from layoutproof.questions.ask import ask as prove

MIN_SECONDS_TO_CACHE = 0.005
"""Seconds a proof must have taken to be kept; the quick ones are proved again faster than read. No verdict depends on
it."""

_HELD = classes(Finding)


def ask(name: str, *layouts: object, **options: Any) -> Finding:
    """As `questions.ask.ask`, with answers kept between runs where the layouts are plain text or mappings."""
    texts = [layout for layout in layouts if isinstance(layout, str | dict)]
    # the rules of the installed compiler hold where no version is named
    speaks = installed() if options.get("target") is not None and options.get("compiler") is None else ""
    key = None if len(texts) < len(layouts) or not _plain(options) else ["ask", name, texts, options, speaks]
    kept = None if key is None else from_json(get(key), _HELD)
    if isinstance(kept, Finding):
        return kept
    start = time.perf_counter()
    answer = prove(name, *layouts, **options)
    if key is not None and time.perf_counter() - start > MIN_SECONDS_TO_CACHE:
        said = replace(answer, figures=plain(answer.figures))
        entry = as_json(said, _HELD)
        if from_json(entry, _HELD) == said:
            put(key, entry)
    return answer


def _plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(type(k) is str and _plain(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(map(_plain, value))
    return value is None or type(value) in (str, int, float, bool)
