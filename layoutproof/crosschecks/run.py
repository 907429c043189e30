"""Puts cases to sources, counts what they say, and makes what they disagree on as small as it gets."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from layoutproof.core.errors import LayoutError
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.random_cases import random_cases
from layoutproof.crosschecks.smaller import smallest
from layoutproof.crosschecks.source import Agree, Disagree, Skipped, Source, source, sources
from layoutproof.crosschecks.table import CrosscheckResults, Disagreement, Row

MOST_SHOWN = 3
"""Disagreements of one source that are made small and shown; all are counted."""


def run(
    title: str,
    cases: Sequence[Case],
    names: Sequence[str] = (),
    progress: Callable[[str, int, int], None] = lambda name, done, of: None,
    random: int = 0,
    seed: int = 0,
) -> CrosscheckResults:
    """A row for each source, in the order of their names.

    title: of the cases.  names: of the sources that are asked; all by default.
    progress: called with (source, done, of how many).  random, seed: so many random cases besides, of the source's own
    kind where it has one.  Raises LayoutError for an unknown source.
    """
    start = time.monotonic()
    asked = {name: source(name) for name in names or sources()}
    made = partial(_with_random, cases, random, seed)
    work = [partial(_row, name, module, made(module), progress) for name, module in asked.items()]
    return CrosscheckResults(title, tuple(_beside(work)), time.monotonic() - start)


def _beside(work: Sequence[Callable[[], Row]]) -> list[Row]:
    """The results of all, concurrently: most of them wait for a process of their own."""
    done: dict[int, Row | BaseException] = {}

    def one(k: int) -> None:
        try:
            done[k] = work[k]()
        except BaseException as error:
            done[k] = error

    # threads that an interrupted run does not join: their processes end with this one
    threads = [threading.Thread(target=one, args=(k,), daemon=True) for k in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in done.values():
        if isinstance(result, BaseException):
            raise result
    return [row for _, row in sorted(done.items()) if isinstance(row, Row)]


def _with_random(cases: Sequence[Case], random: int, seed: int, module: Source) -> list[Case]:
    make = getattr(module, "random_cases", random_cases)
    return [*cases, *(make(random, seed) if random and not module.missing() else ())]


def _row(name: str, module: Source, cases: Sequence[Case], progress: Callable[[str, int, int], None]) -> Row:
    missing = module.missing()
    if missing:
        return Row(name, missing=missing)
    agree = compared = 0
    skipped, in_part = Counter[str](), Counter[str]()
    wrong: list[tuple[Case, Disagree]] = []
    try:
        for done, (case, outcome) in enumerate(zip(cases, module.compare(cases), strict=True)):
            match outcome:
                case Agree(numbers, unanswered):
                    agree, compared = agree + 1, compared + numbers
                    in_part.update([unanswered] if unanswered else [])
                case Disagree():
                    wrong.append((case, outcome))
                case Skipped(reason) if reason:
                    skipped[reason] += 1
            progress(name, done + 1, len(cases))
    except LayoutError as error:
        return Row(name, version=module.version(), missing=str(error))
    found: list[Disagreement] = []
    kinds: set[str] = set()
    for case, disagree in wrong:
        if disagree.what not in kinds and len(found) < MOST_SHOWN:
            kinds.add(disagree.what)
            small = getattr(module, "SMALLER", True)
            least, still = smallest(module, case, disagree) if small else (case, disagree)
            found.append(Disagreement(least, case, still))
    return Row(
        name,
        module.version(),
        agree + len(wrong) + skipped.total(),
        agree,
        compared,
        len(wrong),
        tuple(found),
        dict(skipped.most_common()),
        in_part=dict(in_part.most_common()),
    )
