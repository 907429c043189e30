"""What the benchmarks share: timing a question over inputs it has not seen, and the table of ratios."""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any


def median_us(question: Callable[[Any], object], inputs: Sequence[Any]) -> float:
    """Median time of one question over inputs it has not seen, in microseconds."""
    question(inputs[0])
    times = []
    for value in inputs[1:]:
        start = time.perf_counter()
        question(value)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def show(rows: Sequence[tuple[str, str, float]], as_json: bool) -> None:
    """Print (group, what, microseconds) rows; the last column is the ratio to the first row of the group."""
    if as_json:
        print(json.dumps([dict(zip(("group", "what", "microseconds"), row, strict=True)) for row in rows]))
        return
    system = f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
    print(f"{system}, {time.strftime('%Y-%m-%d')}")
    print("| group | what | time | x |\n|---|---|---:|---:|")
    first: dict[str, float] = {}
    for group, what, micro in rows:
        ratio = micro / first.setdefault(group, micro)
        shown = f"{micro:.1f} us" if micro < 1000 else f"{micro / 1000:.1f} ms"
        print(f"| {group} | {what} | {shown} | {ratio:.2f} |")
