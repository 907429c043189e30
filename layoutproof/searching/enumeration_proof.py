"""The proof of a search of one candidate of a traced function after the other, and the premises of its figures."""

from __future__ import annotations

from dataclasses import replace

from layoutproof.compiler.libtpu import version
from layoutproof.core.errors import shorten
from layoutproof.searching import problems
from layoutproof.searching.answer import CompilerStage, Line, Others, TilingAnswer
from layoutproof.searching.machines import SET_ASIDE, machine, sources
from layoutproof.searching.problem import Problem
from layoutproof.searching.tilings import Enumerated, Tilings

BODY = problems.BODY_NOT_COUNTED()
COMPUTE = problems.PRODUCTS_ALONE()
CONFIRMED = "{} compiled what was found, and refused what it says; nothing was measured on a chip"
UNKNOWN_BODY = "what the best one's body does is not part of this verdict; unknown: {}; `layoutproof kernels` judges it"
STATED = problems.STATED_COST()
TABLES = problems.TABLES_OF_BLOCKS()
ALIKE = problems.DECIDES_ALIKE()


def proved(answer: TilingAnswer, found: Tilings) -> TilingAnswer:
    """The answer with its proof, the premises of its figures, and the state of every candidate that is not shown."""
    how = found.enumerated
    traced = f", {how.traced} traced" if how.traced < how.looked_at else ""
    aside = [one.candidate for one in how.aside]
    cheaper = sum(one.cost < found.found[-1].cost for one in aside) if found.found else 0
    kind = "unknown" if answer.reason else "enumerated"
    return replace(
        answer,
        examined=f", {how.looked_at} looked at{traced}",
        proof=_proof(found, how),
        certificate={"kind": kind, "covered": how.looked_at, "of": found.asked, "reason": answer.reason},
        model=tuple(("model", said) for said in _model(found, how, answer.stage)),
        others=Others(
            how.refused,
            how.undecided,
            how.because,
            len(aside),
            _aside(found.problem, how),
            tuple(aside),
            cheaper,
            how.unjudged,
        ),
        compute=how.compute,
    )


def asked(found: Tilings) -> tuple[bool, str]:
    """(whether the compiler was asked; which one was asked what, or why it was not)."""
    how = found.enumerated
    if not how.unasked and (found.found or how.refused):
        return True, problems.FUNCTION_ASKED(version())
    return False, problems.NOT_ASKED(how.unasked or problems.NOTHING_TO_COMPILE())


def _proof(found: Tilings, how: Enumerated) -> tuple[Line, ...]:
    """The proof that all candidates were looked at, and the state of those that cost no more than the last row."""
    if found.unknown:
        return (("unknown", shorten(found.unknown, 300)),)
    if not found.found:
        return (("none", problems.EACH_REFUSED(found.asked)),)
    set_aside = sum(one.cost <= found.found[-1].cost for one in how.aside)
    last = [one.values for one in how.ranked].index(found.found[-1].values)
    # an unknown that may cost less than the first makes the whole answer unknown
    unknown = sum(how.undecided.values())
    before = last + 1 - len(found.found) - unknown - set_aside
    illegal = f"{before} that cost no more than the last of these are shown illegal, " if before else ""
    illegal += f"{set_aside} are set aside, and nothing is proved of them, " if set_aside else ""
    illegal += f"{unknown} that cost no less than the first are unknown, " if unknown else ""
    return (("certificate", problems.ENUMERATED(found.asked, illegal)),)


def _aside(problem: Problem, how: Enumerated) -> str:
    """Why candidates are set aside, "" = none is; with the percentages of VMEM that kernels may take."""
    if not how.aside:
        return ""
    kernels = (kernel for one in (*how.taken, *how.aside) for kernel in one.kernels)
    shares = sorted({100 - problem.kept_free(kernel).percent for kernel in kernels})
    return SET_ASIDE.format(" or ".join(map(str, shares))).removeprefix("set aside: ")


def _model(found: Tilings, how: Enumerated, stage: CompilerStage | None) -> list[str]:
    """The premises of the figures, one sentence each."""
    problem, rows = found.problem, [how.taken[k] for k in found.shown]
    said = [CONFIRMED.format(version()) if stage and stage.asked else BODY]
    said += [f"compiler {stage.said}"] if stage and not stage.asked else []
    said += [] if how.compute else [COMPUTE]
    kinds = (problem.kept_free(kernel) for one in [*rows, *how.aside] for kernel in one.kernels)
    none = [] if problem.headroom is None else [problem.headroom]
    for kept in () if problem.confirmed else dict.fromkeys(kinds) or none:
        said.append(problems.HEADROOM_OF_REGISTERS(kept.percent, kept.source))
    said += [ALIKE] if how.traced < how.looked_at else []
    said += [STATED] if problem.cost is not None else []
    said += [TABLES] if any(one.read for one in rows) else []
    for one in rows[:1]:
        if one.body:
            more = f", and {len(one.body) - 1} more" if one.body[1:] else ""
            said.append(UNKNOWN_BODY.format(shorten(one.body[0], 160) + more))
        numbers = machine(problem.target, one.kernels[0], problem.step_overhead)
        said += sources(numbers, problem.step_overhead is not None)
    return said
