"""The answer of a search over a traced function, for people and as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from layoutproof.compiler.libtpu import version
from layoutproof.core.document import Doc, envelope
from layoutproof.core.errors import shorten
from layoutproof.core.result import Verdict
from layoutproof.tilings.compiled_text import stage_lines
from layoutproof.tilings.compiler_stage import no_estimate, order, tally, vmem
from layoutproof.tilings.document import CertificateEntry, ProblemDocument
from layoutproof.tilings.legal import Partial, partials_of
from layoutproof.tilings.machines import machine, sources
from layoutproof.tilings.tilings_json import (
    Because,
    ChosenEntry,
    ModelFigures,
    PartialEntry,
    RankEntry,
    SetAsideEntry,
    StageEntry,
    because_json,
    figures_json,
    partial_json,
)
from layoutproof.tilings.tilings_text import FOOTER, counted_words, partial_notes
from layoutproof.tilings.traced import TracedCandidate, TracedFound, TracedProblem, kept_free

BODY = "VMEM is that of windows and scratch; what a kernel's body holds besides is not counted"
COMPUTE = "the time counts what the matrix products of the body compute, and nothing else that it does"
UNCOUNTED = "compute not counted, so that HBM and steps alone make up the time: {}"
CONFIRMED = "{} compiled what was found, and refused what it says; nothing was measured on a chip"
UNKNOWN_BODY = "what the best one's body does is not part of this verdict; unknown: {}; `layoutproof kernels` judges it"
STATED = "the cost is what the problem states; steps and bytes are those of the blocks"
TABLES = "blocks that tables choose count as if no two entries were equal"
ALIKE = (
    "a candidate that was not traced decides as one that was traced, and its grid, blocks and scratch are the terms of "
    "that one; what is shown was traced itself"
)


class TracedEntry(ChosenEntry, ModelFigures):
    """One candidate. Figures are sums over its calls, but vmem is that of the largest."""

    partial_blocks: list[PartialEntry]
    exact_vmem: Annotated[int | None, Doc("by the compiler, where it was asked")]
    estimate: RankEntry | None
    no_estimate: Annotated[str, Doc("why there is no estimate")]


class TracedDocument(ProblemDocument):
    """The best arguments of a traced function."""

    reason: str
    best: list[TracedEntry]
    refused: dict[str, int]
    because: Because
    not_judged: Annotated[int, Doc("candidates that were not looked at")]
    set_aside: SetAsideEntry
    compute: Annotated[str, Doc("`counted`, or why the cost is that of the traffic alone")]
    unknown: dict[str, int]
    certificate: CertificateEntry
    compiler: StageEntry
    notes: list[str]


@dataclass(frozen=True, slots=True)
class TracedAnswer:
    """What a search over a traced function found, and how it is shown.

    best: rows at most, None = all.  within: none that costs more than so many times the first, None = any.
    """

    problem: TracedProblem
    result: TracedFound
    best: int | None = None
    within: float | None = None

    @property
    def verdict(self) -> Verdict:
        """PROVED: nothing that costs less is legal.  REFUTED: no candidate is legal.  UNKNOWN otherwise."""
        if self.result.unknown:
            return Verdict.UNKNOWN
        return Verdict.PROVED if self.result.found else Verdict.REFUTED

    def text(self, why: bool = True) -> str:
        """What was found, for people. why: with the model, its sources, and everything that was refused."""
        result = self.result
        count = f"{result.count} candidates, {result.looked_at} looked at"
        count += f", {result.traced} traced" if result.traced < result.looked_at else ""
        lines = [f"{self.problem.name}, {self.problem.target}, {count}: {self.verdict.value}"]
        lines += [f"  {rank}.  {self._line(one)}" for rank, one in enumerate(self.rows, 1)]
        lines += [f"  {line}" for line in partial_notes(self._partials())]
        lines += self._compilers_order()
        most = 8 if why or not result.found else 0
        for reason, n in result.refused.most_common(most):
            lines += self._refused(reason, n)
        left = list(result.refused.most_common()[most:]) if most else []
        if left:
            lines.append(f"  refused  {sum(n for _, n in left)}  for {len(left)} other reasons")
        if result.refused and not most:
            lines.append(f"  refused  {counted_words(result.refused)}")
        if result.unjudged:
            lines.append(f"  not judged  {result.unjudged}  they cost more than the last of these")
        lines += self._set_aside()
        lines += [f"  unknown  {n}  {shorten(reason, 160)}" for reason, n in result.undecided.most_common(4)]
        if result.compute:
            lines.append(f"  {UNCOUNTED.format(result.compute)}")
        if result.unknown:
            lines.append(f"  unknown  {shorten(result.unknown, 300)}")
        else:
            lines.append(self._proof())
        if not why:
            unasked = self.problem.confirmed and not self._asked
            said = [f"  model  {one}" for one in self.said()[: 1 + unasked]]
            return "\n".join([*lines, *said, f"  time  {FOOTER}"])
        return "\n".join([*lines, *(f"  model  {said}" for said in self.said())])

    def _refused(self, reason: str, count: int) -> list[str]:
        """One reason, with what was found of the first candidate that it refuses, and what would do."""
        lines = [f"  refused  {count}  {shorten(reason, 160)}"]
        found = self.result.because.get(reason)
        if found is None:
            return lines
        lines.append(f"           because  {shorten(found.reason, 240)}")
        lines += [f"           fix      {shorten(found.fix, 240)}"] if found.fix else []
        return [*lines, f"           explain  layoutproof explain {found.question}"]

    def _set_aside(self) -> list[str]:
        """How many candidates headroom sets aside, and which is the cheapest of them; [] where it sets none aside."""
        aside, found = self.result.aside, self.result.found
        if not aside:
            return []
        first = min(aside, key=lambda one: one.cost)
        chosen = ", ".join(f"{name}={first.values[name]}" for name in self.problem.variables)
        less = sum(one.cost < found[-1].cost for one in aside) if found else 0
        fewer = f", {less} of them cheaper than the last of these" if less else ""
        lines = [f"  set aside  {len(aside)}  VMEM model above {self._kept()} % of the limit{fewer}, e.g. {chosen}"]
        return [
            *lines,
            "             nothing is proved of them: --compile has the compiler decide, --headroom says how many",
        ]

    def _kept(self) -> str:
        """The percentages of VMEM that kernels may take, for people."""
        kernels = (kernel for one in [*self.result.found, *self.result.aside] for kernel in one.kernels)
        return " or ".join(map(str, sorted({100 - kept_free(self.problem, kernel).percent for kernel in kernels})))

    @property
    def rows(self) -> list[TracedCandidate]:
        """What is shown: by the compiler's estimates where it has one of each that was found, else by the cost."""
        found = self.result.found
        places = order([one.compiled for one in found])
        ordered = [found[place.at] for place in places] if len(places) == len(found) else found
        return [one for one in ordered if self.within is None or one.cost <= self.within * found[0].cost][: self.best]

    def _line(self, one: TracedCandidate) -> str:
        chosen = ", ".join(f"{name}={one.values[name]}" for name in self.problem.variables)
        row = one.figures
        cost = f"{row['time'] / 1e6:.2f} us by the model" if self.problem.cost is None else f"cost {one.cost}"
        exact = vmem(one.compiled)
        held = (
            f"{row['vmem']} bytes of VMEM (windows and scratch only)"
            if exact is None
            else f"{exact} bytes of VMEM by the compiler"
        )
        return f"{chosen}  {cost}, {row['bytes']} bytes of HBM, {row['steps']} steps, {held}"

    def _compilers_order(self) -> list[str]:
        """How what is shown stands by the compiler's estimates, and what has none; [] where it was not asked."""
        found, rows = self.result.found, self.rows
        ranks = {id(found[place.at]): place for place in order([one.compiled for one in found])}
        lines = []
        for word, said in stage_lines([one.compiled for one in rows], self.result.told, self.problem.target):
            lines.append(f"  {word}  {said}")
            for row, one in enumerate(rows if word == "estimate" else [], 1):
                place = ranks.get(id(one))
                if place is not None:
                    tied = " tie" if place.tied else ""
                    lines.append(f"            {place.rank}{tied}  row {row}, {place.cycles} cycles")
        return lines

    def _proof(self) -> str:
        result = self.result
        if not result.found:
            return f"  none  each of the {result.count} candidates is refused for what stands above"
        set_aside = sum(one.cost <= result.found[-1].cost for one in result.aside)
        last = [one.values for one in result.ranked].index(result.found[-1].values)
        # whoever is unknown and may cost less than the first makes the whole answer unknown
        unknown = result.undecided.total()
        before = last + 1 - len(result.found) - unknown - set_aside
        illegal = f"{before} that cost no more than the last of these are shown illegal, " if before else ""
        illegal += f"{set_aside} are set aside, and nothing is proved of them, " if set_aside else ""
        illegal += f"{unknown} that cost no less than the first are unknown, " if unknown else ""
        return f"  certificate  enumerated: all {result.count} candidates; {illegal}no other costs less"

    def as_json(self) -> TracedDocument:
        """What was found, as plain data."""
        result = self.result
        kind = "unknown" if result.unknown else "enumerated"
        rows = self.rows
        places = order([one.compiled for one in result.found])
        ranks: dict[int, RankEntry] = {
            id(result.found[place.at]): {"rank": place.rank, "tied": place.tied, "cycles": place.cycles}
            for place in places
        }
        return {
            **envelope(self.verdict.exit_code),
            "subject": self.problem.name,
            "target": self.problem.target,
            "verdict": self.verdict.value,
            "reason": result.unknown,
            "best": [
                {
                    "values": dict(one.values),
                    "cost": one.cost,
                    **figures_json(one.figures),
                    "partial_blocks": partial_json(over),
                    "exact_vmem": vmem(one.compiled),
                    "estimate": ranks.get(id(one)),
                    "no_estimate": no_estimate(one.compiled) if one.compiled else "",
                }
                for one, over in zip(rows, self._partials(), strict=True)
            ],
            "refused": dict(result.refused),
            "because": because_json(result.because),
            "not_judged": result.unjudged,
            "set_aside": {
                "count": len(result.aside),
                "why": f"VMEM model above {self._kept()} % of the limit" if result.aside else "",
                "candidates": [
                    {"values": dict(one.values), "cost": one.cost, "vmem": one.figures["vmem"]} for one in result.aside
                ],
            },
            "compute": result.compute or "counted",
            "unknown": dict(result.undecided),
            "certificate": {"kind": kind, "covered": result.looked_at, "of": result.count, "reason": result.unknown},
            "compiler": {"asked": self._asked, "said": self._compiler(), "candidates": tally(result.told)},
            "notes": list(self.said()),
        }

    @property
    def _asked(self) -> bool:
        return self.problem.confirmed and not self.result.unasked and bool(self.result.found or self.result.refused)

    def _compiler(self) -> str:
        if self._asked:
            return f"{version()}, ahead of time, the function itself"
        why = self.result.unasked or ("there is nothing to compile" if self.problem.confirmed else "not wanted")
        return f"not asked: {why}"

    def _partials(self) -> list[tuple[Partial, ...]]:
        """For each row, what reaches over the edge of an array."""
        return [tuple(p for kernel in one.kernels for p in partials_of(kernel)) for one in self.rows]

    def said(self) -> tuple[str, ...]:
        """What the figures rest on, one sentence each."""
        found, problem = self.rows, self.problem
        said = [CONFIRMED.format(version()) if self._asked else BODY]
        if problem.confirmed and not self._asked:
            said.append(f"compiler {self._compiler()}")
        said += [] if self.result.compute else [COMPUTE]
        kinds = (kept_free(problem, kernel) for one in [*found, *self.result.aside] for kernel in one.kernels)
        none = [] if problem.headroom is None else [problem.headroom]
        for kept in () if problem.confirmed else dict.fromkeys(kinds) or none:
            said.append(f"headroom {kept.percent}% of VMEM, kept free for registers that spill; {kept.source}")
        if self.result.traced < self.result.looked_at:
            said.append(ALIKE)
        if problem.cost is not None:
            said.append(STATED)
        if any(one.read for one in found):
            said.append(TABLES)
        for one in found[:1]:
            if one.body:
                more = f", and {len(one.body) - 1} more" if one.body[1:] else ""
                said.append(UNKNOWN_BODY.format(shorten(one.body[0], 160) + more))
            numbers = machine(problem.target, one.kernels[0], problem.step_overhead)
            said += sources(numbers, problem.step_overhead is not None)
        return tuple(said)
