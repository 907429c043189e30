"""What `lp.same` answers, and how it is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal, TypedDict

from layoutproof.core.document import Doc, Document, Exactly, envelope
from layoutproof.core.finding import Answer, Finding, PointEntry, VerdictWord, split_place
from layoutproof.core.result import Verdict, plain
from layoutproof.pallas.report import place as shown_place
from layoutproof.questions import problems
from layoutproof.values.compare import Comparison
from layoutproof.values.prefixes import Begin
from layoutproof.values.relations.reading import LARGEST
from layoutproof.values.uniform import Blocks

QUESTION = "same"


class PremiseEntry(TypedDict):
    question: str
    subject: str
    verdict: VerdictWord
    reason: str


class ExponentEntry(TypedDict):
    place: str
    at_most_zero: bool
    beside_a_literal: Annotated[bool, Doc("whether the maximum also holds a number of the code")]


class SumEntry(TypedDict):
    place: str
    dtype: Annotated[str, Doc("the type that it is kept in")]
    terms: Annotated[int, Doc("how many are added at once; 0 of a sum that is carried in memory")]
    unit_roundoff: float


class BlocksEntry(TypedDict):
    """An axis of a grid, or a loop, along which the answer holds for any number of blocks."""

    axis: Annotated[int, Doc("of the grid; -1 of a loop")]
    reduced: Annotated[bool, Doc("whether outputs are the same blocks at every step; else they go along, as of a scan")]
    steps: list[Annotated[str, Exactly(Literal["first", "middle", "last", "ragged"])]]
    along: Annotated[list[str], Doc("axes of arguments that grow by a block with each program")]
    compared: Annotated[list[int], Doc("the numbers of blocks at which the two were compared")]
    loop: Annotated[str, Doc("file:line of a loop, else empty")]


class ReducedEntry(TypedDict):
    """One argument that was compared at a smaller size."""

    argument: Annotated[str, Doc("its name, such as args[0]")]
    given: list[int]
    shape: Annotated[list[int], Doc("at which it was compared")]


class SameDocument(Document):
    """Whether a function computes what its reference computes."""

    subject: str
    verdict: VerdictWord
    reason: str
    file: str
    line: int
    counterexample: Annotated[PointEntry | None, Doc("the output's position and the first element that differs")]
    figures: Annotated[dict[str, Any], Doc("points; of a difference how many elements and rows, and both values")]
    points: Annotated[int, Doc("random points at which no difference was found")]
    axioms: Annotated[list[str], Doc("functions that are taken to obey few laws")]
    chance: Annotated[str, Doc("what is proved of the chance that a difference is missed")]
    drawn: Annotated[list[str], Doc("integers that were not given")]
    notes: list[str]
    begins: Annotated[
        dict[str, Any] | None,
        Exactly(Begin | None),
        Doc("of a difference that float64 shows: where it begins in the kernel"),
    ]
    hint: Annotated[str, Doc("of a difference: a part of an input that reaches the element on one side alone")]
    second_witness: Annotated[str, Doc("of a difference: what JAX computes of it, kernels in its interpreter")]
    decided_by: Annotated[str, Doc("points, relations, or float64, which shows a difference; empty of unknown")]
    operands: Annotated[str, Doc("of a difference of sums of products: which products, and how often on each side")]
    exponents: Annotated[list[ExponentEntry], Doc("of the function, where no difference was found")]
    sums: Annotated[list[SumEntry], Doc("of the function, where no difference was found")]
    scope: str
    reduced: Annotated[list[ReducedEntry], Doc("with --reduced: the arguments that were compared at smaller sizes")]
    sizes: Annotated[list[str], Doc("names of sizes, where the answer is about all of them")]
    smallest: Annotated[dict[str, int], Doc("of a difference, the smallest sizes at which there is one")]
    blocks: Annotated[
        list[BlocksEntry],
        Doc("axes of the kernel's grid along which it is the same for any number of blocks, by induction"),
    ]
    premises: Annotated[list[PremiseEntry], Doc("what the comparison rests on")]


@dataclass(frozen=True, slots=True)
class Same(Answer):
    """The comparison of a function with its reference.

    Attributes:
        function: Its name.
        reference: The reference's name.
        comparison: The values compared, at points and on float64.
        premises: The findings about the function's kernels, at the given sizes, on which that rests.
        reduced: Of each argument that was compared at a smaller size (name, the given shape, the smaller one).
        sizes: Names of sizes, where it is about all of them.
        where: The conditions on these.
        smallest: Of a difference, the smallest sizes at which there is one.
        blocks: Axes of the function's kernel along which the answer holds for any number of blocks.
    """

    function: str
    reference: str
    comparison: Comparison
    premises: tuple[Finding, ...] = ()
    reduced: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    sizes: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    smallest: Mapping[str, int] = field(default_factory=dict)
    blocks: tuple[Blocks, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Refuted where the values are, or a premise is; unknown where one of them is; else proved or sampled."""
        return min([self.comparison.verdict, *(f.verdict for f in self.premises)])

    @property
    def reason(self) -> str:
        """Why it is refuted or unknown, in one sentence; "" where it is proved or sampled."""
        if self.comparison.verdict is self.verdict:
            return self.comparison.reason
        first = min(self.premises, key=lambda f: f.verdict)
        values = ""
        if self.comparison.verdict is Verdict.SAMPLED:
            values = f"; where it holds, no difference at {self.comparison.points} random points"
        if self.comparison.verdict is Verdict.PROVED:
            values = "; where it holds, the values are proved to be the same"
        return problems.RESTS_ON_PREMISE(first.question, first.verdict.value, first.reason, values)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One."""
        begins = self.comparison.begins
        place = self.comparison.place or ("" if begins is None else begins.place or begins.stored)
        if self.comparison.verdict is not self.verdict:
            first = min(self.premises, key=lambda f: f.verdict)
            place = f"{first.file}:{first.line}" if first.file else ""
        file, line, column = split_place(place)
        witness = self.comparison.witness
        # a difference that another engine shows is none of points
        figures: dict[str, Any] = {"points": self.comparison.points} if self.comparison.points else {}
        figures |= {"sizes": dict(self.smallest)} if self.smallest else {}
        if witness is not None:
            figures |= {
                "different": witness.different, "elements": witness.of, "rows": witness.rows,
                "value": _shown(witness.ours), "reference_value": _shown(witness.theirs), "seed": witness.seed,
                "scale": witness.scale,
            }  # fmt: skip
            figures |= {"large": witness.large} if witness.large else {}
        point = None
        if witness is not None and self.verdict is Verdict.REFUTED:
            point = {"output": (witness.output,), "element": witness.index}
        elif self.comparison.differs is not None and self.verdict is Verdict.REFUTED:
            output, element = self.comparison.differs
            point = {"output": (output,), "element": element}
        hints = [self.comparison.hint]
        if begins is not None and self.comparison.verdict is self.verdict:
            hints.insert(0, f"it begins at {_told(begins)}")
        finding = Finding(
            QUESTION, f"{self.function} = {self.reference}", self.reason, file=file, line=line, column=column,
            verdict=self.verdict, counterexample=point, figures=figures,
            decided_by=self.decided_by, scope=self.scope, hint="; ".join(filter(None, hints)),
            assumes=tuple(f"{question}: {came.value}" for question, came in self._worst().items()),
        )  # fmt: skip
        return (finding,)

    @property
    def decided_by(self) -> str:
        """The engine: points or relations, float64 of a difference that it shows; "" where none decides."""
        if self.verdict is Verdict.SAMPLED:
            return "points"
        return "float64" if self.comparison.witness is not None else self.comparison.decided_by

    @property
    def scope(self) -> str:
        """The scope of the answer, in words."""
        at = "at the smaller sizes of `--reduced`" if self.reduced else "at these sizes"
        if self.sizes:
            held = f" where {' and '.join(self.where)}" if self.where else ""
            at = f"for all {', '.join(self.sizes)} from 1 to {LARGEST:,}{held}"
        return f"over the reals, {at}: rounding is not asked"

    @property
    def exit_code(self) -> int:
        """0 proved or sampled, 1 refuted, 3 unknown."""
        return self.verdict.exit_code

    def __str__(self) -> str:
        found = self.comparison
        lines = []
        at = ", ".join(f"{name} {list(shape)}" for name, _, shape in self.reduced)
        pair = f"{self.function} = {self.reference}" + (f" at {at}" if at else "")
        if self.verdict is Verdict.SAMPLED:
            axioms = f" (axioms: {', '.join(found.axioms)})" if found.axioms else ""
            lines.append(f"sampled   {pair}   no difference at {found.points} random points{axioms}")
            lines.append(f"  scope         {self.scope}")
            lines.append(f"  chance        {self.chance}")
            lines += self._stability()
        elif self.verdict is Verdict.PROVED:
            lines.append(f"proved    {pair}   every element is the same sum of products")
            lines.append(f"  scope         {self.scope}")
            lines.append(f"  by            {self.decided_by}")
            lines += self._stability()
        else:
            place = self.findings[0]
            where = shown_place(f"{place.file}:{place.line}") if place.file else ""
            lines.append(f"{self.verdict.value:<9} {pair}   {where}".rstrip())
            lines.append(f"  because       {self.reason}")
            if self.smallest:
                lines.append(f"  smallest      {', '.join(f'{name} = {n}' for name, n in self.smallest.items())}")
            if found.witness is not None:
                how = f"inputs of seed {found.witness.seed}, "
                among = ", ".join(f"{x:g}" for x in found.witness.among)
                how += f"between {among}, and beyond" if among else f"standard deviation {found.witness.scale:g}"
                how += f"; {found.witness.large} large" if found.witness.large else ""
                lines.append(f"  replayed on   float64, {how}")
            elif found.decided_by and self.verdict is Verdict.REFUTED:
                lines.append("  replayed on   plain integers: the products of the element, counted on both sides")
            if found.second:
                lines.append(f"  second        JAX's interpreter: {found.second}")
            if found.operands and found.operands != self.reason:
                lines.append(f"  operands      {found.operands}")
            if found.begins is not None:
                lines.append(f"  begins at     {_told(found.begins)}")
            if found.hint:
                lines.append(f"  hint          {found.hint}")
        lines += [f"  blocks        {_any_number(b)}" for b in self.blocks]
        lines += [f"  drawn         {said}" for said in found.drawn]
        lines += [f"  note          {said}" for said in found.notes]
        rests = "; ".join(f"{', '.join(names)}: {v.value}" for v, names in self._rests_on().items())
        if rests:
            lines.append(f"  rests on      {rests}")
        counts = ", ".join(
            f"{int(v is self.verdict)} {v.value}"
            for v in (Verdict.PROVED, Verdict.SAMPLED, Verdict.REFUTED, Verdict.UNKNOWN)
        )
        return "\n".join([*lines, f"1 pair: {counts}"])

    def _worst(self) -> dict[str, Verdict]:
        """The questions that it rests on, each once, at the worst of what came of it."""
        found: dict[str, Verdict] = {}
        for f in self.premises:
            found[f.question] = min(f.verdict, found.get(f.question, f.verdict))
        return found

    def _rests_on(self) -> dict[Verdict, list[str]]:
        """Likewise, by what came of them."""
        found = self._worst()
        by_verdict = {v: [question for question, came in found.items() if came is v] for v in Verdict}
        return {v: names for v, names in by_verdict.items() if names}

    def _stability(self) -> list[str]:
        """The lines about exponents and sums."""
        found, lines = self.comparison, []
        high = [e.place for e in found.exponents if not e.bounded]
        beside = [e.place for e in found.exponents if e.bounded and e.beside]
        if found.exponents and not high and not beside:
            lines.append("  stable        every exponent is at most 0")
        if high:
            at = ", ".join(shown_place(p) for p in high)
            lines.append(
                f"  not bounded   {at}: nothing shows that the exponent is at most 0; e^x overflows float32 at 89"
            )
        if beside:
            at = ", ".join(shown_place(p) for p in beside)
            lines.append(
                f"  not scaled    {at}: the maximum also holds a number of the code, such as one that it starts at; "
                "where all others are far below that, every exponential is 0"
            )
        if found.sums:
            worst = max(found.sums, key=lambda s: s.roundoff)
            alike = [s for s in found.sums if s.dtype == worst.dtype]
            most = max(alike, key=lambda s: s.terms)
            terms = (
                f", {most.terms:,} terms at once: relative error of up to {most.bound:.2g} of the sum of magnitudes"
                if most.terms else ""
            )  # fmt: skip
            carried = ", ".join(shown_place(s.place) for s in alike if not s.terms)
            terms += f"; carried from step to step at {carried}" if carried else ""
            lines.append(f"  sums kept in  {worst.dtype} at {shown_place(most.place)}{terms}")
        return lines

    @property
    def chance(self) -> str:
        """The proved bound on the chance of missing a difference, in words; "" where nothing is drawn."""
        if self.verdict is Verdict.PROVED:
            return ""
        if not self.comparison.axioms:
            return (
                f"a difference of degree d is missed with a chance of at most (d / 2^{self.comparison.bits})"
                f"^{self.comparison.points} for each element (Schwartz and Zippel)"
            )
        return f"no proved bound: few laws are known of {', '.join(self.comparison.axioms)}"

    def as_dict(self) -> SameDocument:
        """What `layoutproof same --json` prints."""
        (finding,), begins = self.findings, self.comparison.begins
        return {
            **envelope(self.exit_code),
            "subject": finding.subject, "verdict": self.verdict.value, "reason": self.reason,
            "file": finding.file, "line": finding.line, "counterexample": plain(finding.counterexample),
            "figures": dict(finding.figures), "points": self.comparison.points,
            "axioms": list(self.comparison.axioms), "chance": self.chance,
            "drawn": list(self.comparison.drawn), "notes": list(self.comparison.notes),
            "begins": None if begins is None else {**asdict(begins), "program": list(begins.program)},
            "hint": self.comparison.hint, "second_witness": self.comparison.second,
            "decided_by": self.decided_by, "operands": self.comparison.operands,
            "exponents": [
                {"place": e.place, "at_most_zero": e.bounded, "beside_a_literal": e.beside}
                for e in self.comparison.exponents
            ],
            "sums": [
                {"place": s.place, "dtype": s.dtype, "terms": s.terms, "unit_roundoff": s.roundoff}
                for s in self.comparison.sums
            ],
            "scope": finding.scope,
            "reduced": [
                {"argument": name, "given": list(given), "shape": list(shape)} for name, given, shape in self.reduced
            ],
            "sizes": list(self.sizes),
            "smallest": dict(self.smallest),
            "blocks": [
                {
                    "axis": b.axis, "reduced": b.reduced, "steps": list(b.kinds), "along": list(b.along),
                    "compared": list(b.compared), "loop": b.loop,
                }
                for b in self.blocks
            ],
            "premises": [
                {"question": f.question, "subject": f.subject, "verdict": f.verdict.value, "reason": f.reason}
                for f in self.premises
            ],
        }  # fmt: skip


def _any_number(b: Blocks) -> str:
    """Along which axis any number of blocks gives the same, in words."""
    axis = "reduced" if b.reduced else "carried"
    kinds = ", ".join(b.kinds[:-1]) + f" and {b.kinds[-1]}"
    over = f"the loop at {shown_place(b.loop)}" if b.loop else f"program_id({b.axis})"
    return f"any number along the {axis} axis (induction over {over}: {kinds} steps)"


def _told(begins: Begin) -> str:
    """Where a difference begins, in words."""
    if not begins.place:
        stored = f"; the element is stored at {shown_place(begins.stored)}" if begins.stored else ""
        return f"a place that is not known{stored}"
    last = f" to {begins.until.rpartition(':')[2]}, at one of these stores" if begins.until else ""
    program = f" of program {begins.program}" if begins.program else ""
    return f"{shown_place(begins.place)}{last}{program}"


def _shown(x: float) -> float | str:
    return x if x == x and abs(x) != float("inf") else str(x)
