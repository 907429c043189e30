"""The answer of a search over a traced function: its rows, its proof, the premises of its figures."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.compiler.libtpu import version
from layoutproof.core.errors import shorten
from layoutproof.searching.answer import CompilerStage, Line, Others, Tiling, TilingAnswer, shown_order
from layoutproof.searching.compiled import CompilerReply
from layoutproof.searching.compiler_stage import order
from layoutproof.searching.legal import partials_of
from layoutproof.searching.machines import SET_ASIDE, machine, sources
from layoutproof.searching.tilings_text import stage_lines
from layoutproof.searching.traced import TracedCandidate, TracedFound, kept_free

BODY = "VMEM is that of windows and scratch; what a kernel's body holds besides is not counted"
COMPUTE = "the time counts what the matrix products of the body compute, and nothing else that it does"
CONFIRMED = "{} compiled what was found, and refused what it says; nothing was measured on a chip"
UNKNOWN_BODY = "what the best one's body does is not part of this verdict; unknown: {}; `layoutproof kernels` judges it"
STATED = "the cost is what the problem states; steps and bytes are those of the blocks"
TABLES = "blocks that tables choose count as if no two entries were equal"
ALIKE = (
    "a candidate that was not traced decides as one that was traced, and its grid, blocks and scratch are the terms of "
    "that one; what is shown was traced itself"
)


def answer_of(found: TracedFound) -> TilingAnswer:
    """The whole answer."""
    problem, shown = found.problem, _shown(found)
    rows = tuple(_row(one, reply) for one, reply in shown)
    stage = _stage(found, shown)
    kind = "unknown" if found.unknown else "enumerated"
    traced = f", {found.traced} traced" if found.traced < found.looked_at else ""
    aside = [one.candidate for one in found.aside]
    cheaper = sum(one.cost < found.found[-1].cost for one in aside) if found.found else 0
    return TilingAnswer(
        problem,
        verdict=found.verdict,
        reason=found.unknown,
        candidates=found.count,
        examined=f", {found.looked_at} looked at{traced}",
        rows=rows,
        proof=_proof(found),
        certificate={"kind": kind, "covered": found.looked_at, "of": found.count, "reason": found.unknown},
        model=tuple(("model", said) for said in _model(found, stage, [one for one, _ in shown])),
        others=Others(
            found.refused,
            found.undecided,
            found.because,
            len(aside),
            _aside(found),
            tuple(aside),
            cheaper,
            found.unjudged,
        ),
        compute=found.compute,
        stage=stage,
    )


def _shown(found: TracedFound) -> list[tuple[TracedCandidate, CompilerReply | None]]:
    """The shown rows, the best first, each with the compiler's answer, None = it is not wanted."""
    every = found.found
    places = {place.at: place for place in order([one.compiled for one in every])}
    cycles = [places[at].cycles for at in sorted(places)]
    chosen = shown_order([one.cost for one in every], cycles, found.within, found.best)
    if not found.problem.confirmed:
        return [(every[at], None) for at in chosen]
    return [
        (every[at], CompilerReply(every[at].values, every[at].compiled, found.unasked, place=places.get(at)))
        for at in chosen
    ]


def _row(one: TracedCandidate, reply: CompilerReply | None) -> Tiling:
    over = tuple(p for kernel in one.kernels for p in partials_of(kernel))
    return Tiling(one.values, one.cost, (one.figures,), (one.limit,), over, (), reply)


def _stage(found: TracedFound, shown: Sequence[tuple[TracedCandidate, CompilerReply | None]]) -> CompilerStage | None:
    """The questions to the compiler, and the measure that its estimates compare."""
    if not found.problem.confirmed:
        return None
    asked = not found.unasked and bool(found.found or found.refused)
    said = f"{version()}, ahead of time, the function itself"
    if not asked:
        said = f"not asked: {found.unasked or 'there is nothing to compile'}"
    lines = stage_lines([one.compiled for one, _ in shown], found.told, found.problem.target)
    return CompilerStage(asked, said, found.told, lines)


def _proof(found: TracedFound) -> tuple[Line, ...]:
    """The proof that all candidates were looked at, and the state of those that cost no more than the last row."""
    if found.unknown:
        return (("unknown", shorten(found.unknown, 300)),)
    if not found.found:
        return (("none", f"each of the {found.count} candidates is refused for what stands below"),)
    set_aside = sum(one.cost <= found.found[-1].cost for one in found.aside)
    last = [one.values for one in found.ranked].index(found.found[-1].values)
    # an unknown that may cost less than the first makes the whole answer unknown
    unknown = found.undecided.total()
    before = last + 1 - len(found.found) - unknown - set_aside
    illegal = f"{before} that cost no more than the last of these are shown illegal, " if before else ""
    illegal += f"{set_aside} are set aside, and nothing is proved of them, " if set_aside else ""
    illegal += f"{unknown} that cost no less than the first are unknown, " if unknown else ""
    return (("certificate", f"enumerated: all {found.count} candidates; {illegal}no other costs less"),)


def _aside(found: TracedFound) -> str:
    """Why candidates are set aside, "" = none is; with the percentages of VMEM that kernels may take."""
    if not found.aside:
        return ""
    kernels = (kernel for one in [*found.found, *found.aside] for kernel in one.kernels)
    shares = sorted({100 - kept_free(found.problem, kernel).percent for kernel in kernels})
    return SET_ASIDE.format(" or ".join(map(str, shares))).removeprefix("set aside: ")


def _model(found: TracedFound, stage: CompilerStage | None, rows: Sequence[TracedCandidate]) -> list[str]:
    """The premises of the figures, one sentence each."""
    problem = found.problem
    said = [CONFIRMED.format(version()) if stage and stage.asked else BODY]
    said += [f"compiler {stage.said}"] if stage and not stage.asked else []
    said += [] if found.compute else [COMPUTE]
    kinds = (kept_free(problem, kernel) for one in [*rows, *found.aside] for kernel in one.kernels)
    none = [] if problem.headroom is None else [problem.headroom]
    for kept in () if problem.confirmed else dict.fromkeys(kinds) or none:
        said.append(f"headroom {kept.percent}% of VMEM, kept free for registers that spill; {kept.source}")
    said += [ALIKE] if found.traced < found.looked_at else []
    said += [STATED] if problem.cost is not None else []
    said += [TABLES] if any(one.read for one in rows) else []
    for one in rows[:1]:
        if one.body:
            more = f", and {len(one.body) - 1} more" if one.body[1:] else ""
            said.append(UNKNOWN_BODY.format(shorten(one.body[0], 160) + more))
        numbers = machine(problem.target, one.kernels[0], problem.step_overhead)
        said += sources(numbers, problem.step_overhead is not None)
    return said
