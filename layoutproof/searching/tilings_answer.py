"""The answer of a search for tilings: its rows, what the compiler says, and what is proved of all other candidates.

How the candidates were gone through decides what a proof can say: `boxes_proof` and `enumeration_proof` add that.
"""

from __future__ import annotations

from layoutproof.searching import boxes_proof, enumeration_proof
from layoutproof.searching.answer import CompilerStage, Tiling, TilingAnswer
from layoutproof.searching.legal import Partial, partials, partials_of
from layoutproof.searching.tilings import Enumerated, Tilings
from layoutproof.searching.tilings_text import learned_lines, stage_lines


def tilings_answer(found: Tilings) -> TilingAnswer:
    """The whole answer; every candidate of a declared kernel that is not shown is gone through for it."""
    answer = TilingAnswer(
        found.problem,
        verdict=found.verdict,
        reason=found.unknown,
        candidates=found.asked,
        rows=tuple(_row(found, k) for k in found.shown),
        stage=_stage(found),
    )
    if isinstance(found.how, Enumerated):
        return enumeration_proof.proved(answer, found)
    return boxes_proof.proved(answer, found)


def _row(found: Tilings, k: int) -> Tiling:
    """One of those that were found, as it is shown, with its findings and the compiler's answer on it."""
    one, how = found.found[k], found.how
    reply = None if found.replies is None else found.replies[k]
    findings = () if isinstance(how, Enumerated) else how.findings[k]
    return Tiling(one.values, one.cost, one.figures, one.limits, _partials(found, k), findings, reply)


def _partials(found: Tilings, k: int) -> tuple[Partial, ...]:
    """The blocks of one candidate that reach over the edge of an array; of several shapes the last that says it."""
    problem, how, values = found.problem, found.how, found.found[k].values
    if isinstance(how, Enumerated):
        return tuple(p for kernel in how.taken[k].kernels for p in partials_of(kernel))
    over = {
        (p.operand, p.dimension): p
        for shape, judged in zip(problem.shapes, how.findings[k], strict=True)
        for p in partials(problem.bind(shape, values), judged)
    }
    return tuple(over.values())


def _stage(found: Tilings) -> CompilerStage | None:
    """The questions to the compiler, and the measure that its estimates compare."""
    if found.replies is None:
        return None
    from layoutproof.searching.compiled import weighed

    shown = [found.replies[k].report for k in found.shown if not found.replies[k].stand_in]
    if isinstance(found.how, Enumerated):
        asked, said = enumeration_proof.asked(found)
        lines = (*stage_lines(shown, found.told, found.problem.target), *learned_lines(found.how.learned))
        return CompilerStage(asked, said, found.told, lines, learned=found.how.learned)
    lines = stage_lines(shown, found.told, found.problem.target, weighed(found.problem))
    return CompilerStage(
        bool(found.told),
        boxes_proof.asked(found),
        found.told,
        (*lines, *learned_lines(found.how.learned)),
        tuple((one.values, message) for one, message in found.how.refusals),
        tuple((one.values, why) for one, why in found.how.unanswered),
        found.how.learned,
    )
