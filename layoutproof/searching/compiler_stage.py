"""The second stage of a search: the TPU compiler asked of the best candidates, with the user's own bodies.

The first stage is a roofline, which knows nothing of bodies. The compiler says of each candidate whether it takes it,
what of VMEM it needs to the byte, and, of some kernels, how many cycles it expects. They are compared by the larger of
those cycles and of the cycles in which HBM moves their bytes, where a clock can be derived (`mosaic.bounds`), elsewhere
by the cycles alone. Two estimates within 5 % of each other are a tie: the published best sizes of 12 problems lie up to
4 % from the best estimate in 11 of them. No estimate is a normal answer, and costs a candidate nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from layoutproof.compiler import libtpu
from layoutproof.compiler.crew import Crew, crew
from layoutproof.compiler.rounds import cores
from layoutproof.core.errors import Unsupported
from layoutproof.mosaic.ask import CompilerQuestion, compiled
from layoutproof.mosaic.bounds import flops_a_cycle
from layoutproof.pallas.compiled import Compiled
from layoutproof.searching import problems
from layoutproof.searching.neighbours import NOT_ASKED, Neighbours

TIE = 5
"""Percent by which two estimates may differ and say nothing about which is faster."""

ASKED = 10
"""Candidates that the compiler takes before its estimates are compared, where more are not wanted."""

PATIENCE = 8
"""Candidates that may be refused, or get no answer, for each that is wanted, at effort 1."""

Report = tuple[Compiled, ...]
"""The compiler's answer on each kernel of one candidate."""


def accepted(report: Report) -> bool | None:
    """Whether the compiler takes all kernels of a candidate; None if unknown."""
    said = {one.accepted for one in report}
    return False if False in said else None if None in said or not report else True


def words(report: Report) -> str:
    """Why the compiler refuses a candidate, or why it gave no answer; "" where it takes it."""
    refused = [one.words for one in report if one.accepted is False]
    return next(iter([*refused, *(one.problem for one in report if one.problem)]), "")


def skipped(report: Report) -> bool:
    """Whether a candidate was not asked about, because a smaller one did not fit."""
    return any(one.problem.startswith(NOT_ASKED) for one in report)


def tally(of: Sequence[Report]) -> dict[str, int]:
    """How many candidates were asked about, accepted, refused, left unknown, and not asked about.

    >>> tally([(Compiled("k", "v5e"),), (Compiled("k", "v5e", problem=f"{NOT_ASKED}too large"),)])
    {'asked': 1, 'accepted': 1, 'refused': 0, 'unknown': 0, 'skipped': 1}
    """
    said = [accepted(report) for report in of if not skipped(report)]
    return {
        "asked": len(said),
        "accepted": said.count(True),
        "refused": said.count(False),
        "unknown": said.count(None),
        "skipped": len(of) - len(said),
    }


def vmem(report: Report) -> int | None:
    """Bytes of VMEM that the largest kernel takes, exactly; None where they are not known of all."""
    totals = [one.vmem.total for one in report if one.vmem is not None]
    return max(totals) if totals and len(totals) == len(report) else None


def cycles(report: Report) -> int | None:
    """The estimate of all kernels together, each at least what its traffic needs; None where one has none."""
    each = [one.estimate.ranked for one in report]
    known = [one for one in each if one is not None]
    return sum(known) if known and len(known) == len(each) else None


def no_estimate(report: Report) -> str:
    """Why there is no estimate of a candidate, "" where there is one."""
    if cycles(report) is not None:
        return ""
    return next((one.estimate.reason for one in report if one.estimate.reason), problems.COMPILER_NOT_ASKED())


@dataclass(frozen=True, slots=True)
class CompilerRank:
    """One candidate in the compiler's order. at: its number among those that were given, from 0.

    rank: from 1; ties share it.  tied: whether another one has the same.
    """

    at: int
    rank: int
    tied: bool
    cycles: int


def order(reports: Sequence[Report], cycles_of: Callable[[Report], int | None] = cycles) -> tuple[CompilerRank, ...]:
    """The candidates with an estimate, the fewest cycles first; a tie is with the first of its rank.

    cycles_of: the measure of a candidate, None = it has no estimate.

    >>> from layoutproof.pallas.compiled import Estimate
    >>> of = lambda n: (Compiled("k", "v5e", estimate=Estimate(n)),)
    >>> [(place.at, place.rank, place.tied) for place in order([of(1050), of(2000), of(1000), of(None)])]
    [(2, 1, True), (0, 1, True), (1, 3, False)]
    """
    known = [(many, at) for at, report in enumerate(reports) if (many := cycles_of(report)) is not None]
    ranks: list[tuple[int, int, int]] = []
    first = rank = 0
    for number, (many, at) in enumerate(sorted(known), 1):
        if number == 1 or 100 * many > (100 + TIE) * first:
            first, rank = many, number
        ranks.append((at, rank, many))
    shared = [rank for _, rank, _ in ranks]
    return tuple(CompilerRank(at, rank, shared.count(rank) > 1, many) for at, rank, many in ranks)


def compared_by(target: str) -> str:
    """The measure of the order, in words."""
    if flops_a_cycle(target):
        return problems.LARGER_OF_BOTH()
    return problems.CYCLES_ALONE(target)


def reports(
    candidates: Sequence[Callable[[], Sequence[CompilerQuestion | Compiled]]],
    enough: int,
    progress: Callable[[str, str], None] = lambda title, what: None,
    learned: Neighbours | None = None,
) -> list[Report]:
    """The compiler's answers on candidates, from the first on, several at a time, until it has taken so many.

    candidates: for each the questions, or the known answer.  Each core has two processes, one that compiles and one
    that estimates; a question without an answer within its time limit does not affect the others.
    progress: called with a candidate's place from 1, how many were taken until then, and the current step.
    learned: the known VMEM of candidates, which grows; once one is taken, candidates that cannot fit by it are skipped.
    Returns the reports of the first ones, as many as were asked about. Raises Undecided where no compiler can be
    asked, and whatever making a question raises.
    """
    missing = libtpu.missing()
    if missing:
        raise Unsupported(problems.COMPILER_MISSING(libtpu.WHAT, missing))
    known = Neighbours() if learned is None else learned
    lock = threading.Lock()
    found: dict[int, list[Compiled]] = {}
    lengths: dict[int, int] = {}

    def taken() -> int:
        return sum(
            len(found[number]) == lengths.get(number) and accepted(tuple(found[number])) is True
            for number in list(found)
        )

    def next_of(numbers: Iterator[int], enough: int) -> tuple[int, Sequence[CompilerQuestion | Compiled]] | None:
        """The next candidate and its questions. One thread after the other traces the user's function."""
        with lock:
            number = next(numbers, None) if taken() < enough else None
            if number is None:
                return None
            questions = candidates[number]()
            known.taken |= taken() > 0
            over = [why for one in questions if isinstance(one, CompilerQuestion) and (why := known.too_large(one))]
            if over:
                questions = [Compiled("", "", problem=over[0])]
            found[number], lengths[number] = [], len(questions)
            return number, questions

    def ask_all(numbers: Iterator[int], enough: int) -> None:
        def work(threads: Crew) -> None:
            own: list[tuple[int, CompilerQuestion]] = []

            def asked() -> Iterator[CompilerQuestion]:
                while not threads.stop() and (following := next_of(numbers, enough)) is not None:
                    number, questions = following
                    for question in questions:
                        if isinstance(question, Compiled):
                            found[number].append(question)
                            continue
                        own[:] = [(number, question)]
                        yield question

            def tell(title: str, what: str) -> None:
                progress(f"candidate {own[0][0] + 1}, {taken()} of {enough} taken: {title}", what)

            for report in compiled(asked(), progress=tell, stop=threads.stop):
                number, question = own[0]
                found[number].append(report)
                with lock:
                    known.learn(question, report)

        with crew(work, max(1, min(cores(), len(candidates)))) as threads:
            threads.wait()

    ask_all(iter(range(len(candidates))), enough)
    if known.fell:
        # its premise does not hold for this kernel
        ask_all(iter([number for number, said in sorted(found.items()) if skipped(tuple(said))]), len(candidates) + 1)
    return [tuple(found[number]) for number in range(len(found))]
