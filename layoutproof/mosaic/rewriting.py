"""Rewrites of a kernel tried: each is made of the traced call, compiled, its numbers compared, and its figures kept.

Only one that was compiled, whose results are those of the kernel as it is, and that lessens a figure and increases none
is called a fix. One that moves the work out of the kernel is one where the array is made in its new form.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.compiler.child import Reply
from layoutproof.compiler.rounds import ask_in_rounds
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import shorten
from layoutproof.mosaic.ask import (
    PROFILE_SECONDS,
    PROFILED,
    SECONDS,
    CompilerQuestion,
    child,
    request_of,
)
from layoutproof.mosaic.compiling import flags
from layoutproof.pallas.compiled import Compiled, KernelFigures, Outcome, TriedRewrite

MOST = 16
"""Rewrites of one kernel that are compiled."""
SHARE = {"cycles": 0.02, "moves": 0.05, "vmem": 0.02, "around": 0.02}
"""Figure -> the share of it by which it has to change; of cycles around the kernel a share of all cycles."""
LEAST_MOVES = 4
"""Operations that only move data by which their count has to change at the least."""

_Answers = list[Reply[JsonObject]]


def tried(
    one: CompilerQuestion,
    report: Compiled,
    library: str = "",
    seconds: float = SECONDS,
    memory: int | None = None,
    progress: Callable[[str, str], None] = lambda title, what: None,
) -> Compiled:
    """The same report with the rewrites that were tried.

    Args:
        one: The kernel.
        report: The compiler's report on it. Of a kernel that it refuses nothing is tried.
        library: As of `ask.compiled`.
        seconds: That one compilation may take.
        memory: Bytes of address space of the compiler's process, None for no limit.
        progress: Called with a kernel's title and what is done now.

    Returns:
        The report with its `rewrites`, the best first.
    """
    if not report.accepted:
        return report
    with tempfile.TemporaryDirectory(prefix="layoutproof-") as folder:
        plain, profile = (os.path.join(folder, name) for name in ("plain", "profile"))
        first = child(flags(plain, False), library, seconds, memory)
        second = child(flags(profile, True), library, min(seconds, PROFILE_SECONDS), memory)
        asked = request_of(one, library, plain, False)
        # one process: all of them write into one folder
        said = ask_in_rounds(first, _plan(asked), dict, lambda n, what: progress(one.title, str(what)), jobs=1)
        made = [k for k, answer in enumerate(said[1:]) if answer.value is not None and not answer.value["refused"]]
        cycles: dict[int, int | None] = {}
        if report.estimate.cycles is not None and one.target in PROFILED and made:
            more = request_of(one, library, profile, True)
            answers = ask_in_rounds(second, _round([{**more, "rewrite": k} for k in made]), dict, jobs=1)
            cycles = {k: (answer.value or {}).get("cycles") for k, answer in zip(made, answers, strict=True)}
    if said[0].value is None:
        return report
    was = _figures(said[0].value, report.estimate.cycles)
    names = said[0].value["rewrites"]
    tries = zip(names, said[1:], strict=False)
    found = [judged(words, was, answer, cycles.get(k)) for k, (words, answer) in enumerate(tries)]
    return replace(report, rewrites=tuple(sorted(found, key=lambda each: each.rank)))


def _plan(asked: JsonObject) -> Generator[Sequence[JsonObject], _Answers, _Answers]:
    """The kernel as it is, with the list of its rewrites, then each of these."""
    (base,) = yield [{**asked, "rewrites": True}]
    many = 0 if base.value is None else min(MOST, len(base.value["rewrites"]))
    if not many:
        return [base]
    answers = yield [{**asked, "rewrite": k} for k in range(many)]
    return [base, *answers]


def _round(requests: Sequence[JsonObject]) -> Generator[Sequence[JsonObject], _Answers, _Answers]:
    answers = yield requests
    return answers


def _figures(said: JsonObject, cycles: int | None) -> KernelFigures:
    moves = sum(n for *_, counts in (said.get("moves") or {"lines": []})["lines"] for n in counts.values())
    vmem = said.get("vmem")
    return KernelFigures(cycles, said["around"], moves, said["bundles"], None if vmem is None else vmem["total"])


def judged(words: JsonObject, was: KernelFigures, answer: Reply[JsonObject], cycles: int | None) -> TriedRewrite:
    """What came of a rewrite.

    Args:
        words: The rewrite as `Rewrite.as_dict` gives it.
        was: The figures of the kernel as it is.
        answer: The compiler's for the rewritten kernel, with `numbers`: how its results differ.
        cycles: The compiler's estimate for the rewritten kernel.

    Returns:
        The rewrite with its verdict; one whose numbers differ, or were not compared, has failed.
    """
    about: dict[str, Any] = {
        name: str(words[name]) for name in ("kind", "operation", "place", "before", "after", "what", "write")
    }
    said = answer.value
    if said is None or said["refused"]:
        why = answer.problem if said is None else " ".join(str(said["refused"]).split())
        return TriedRewrite(**about, verdict="failed", was=was, problem=shorten(why, 300))
    now = _figures(said, cycles)
    if said["numbers"] is None or said["numbers"]:
        why = said["numbers"] or f"its numbers are not compared: {said['uncompared']}"
        return TriedRewrite(**about, verdict="failed", was=was, now=now, problem=why)
    if (was.cycles is None) != (now.cycles is None):
        why = "the compiler gives no estimate of its cycles"
        return TriedRewrite(**about, verdict="failed", was=was, now=now, problem=why)
    less, more = _changed(was, now)
    floor = SHARE["around"] * ((was.cycles or 0) + was.around)
    longer = now.around - was.around > floor
    verdict: Outcome
    pays = (was.cycles or 0) + was.around - (now.cycles or 0) - now.around > floor
    if longer and not pays:
        verdict = "given" if less and not more else "worse"
    else:
        verdict = "trade" if less and more else "helped" if less else "worse" if more else "same"
    return TriedRewrite(
        **about, verdict=verdict, was=was, now=now, less=tuple(less), more=(*more, *(["around"] if longer else []))
    )


def _changed(was: KernelFigures, now: KernelFigures) -> tuple[list[str], list[str]]:
    """The figures that are less, and those that are more, by enough to count."""
    less: list[str] = []
    more: list[str] = []
    for name in ("cycles", "moves", "vmem"):
        one, other = getattr(was, name), getattr(now, name)
        least = max(SHARE[name] * (one or 0), LEAST_MOVES if name == "moves" else 0)
        if one is not None and other is not None and abs(other - one) > least:
            (less if other < one else more).append(name)
    if less and "cycles" not in (*less, *more) and (now.cycles or 0) > (was.cycles or 0):
        # fewer moves, and yet no shorter schedule
        more.append("cycles")
    return less, more
