"""The best assignments of a search over shardings, each compiled with the function that its file names.

An assignment is the shardings of the arguments, which are a point of a sweep together (`programs.sweep`). What the
compiler refuses, or what then does not fit, is left out of the best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, TypedDict

from layoutproof.answers import problems
from layoutproof.answers.of_sweep import CheapestEntry, RowEntry, Sweep, swept_over
from layoutproof.answers.sweep_text import cheapest_lines, lines_of, took
from layoutproof.compiler.tracing import permit
from layoutproof.compiler.workers import Workers
from layoutproof.core.document import Doc, envelope
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding, exit_code, wrong_input
from layoutproof.core.result import Verdict
from layoutproof.core.visible import visible
from layoutproof.kernel.kernel_print import array_text
from layoutproof.programs.compile import Asked
from layoutproof.programs.ranking import FITS, TOO_LARGE, state
from layoutproof.programs.sweep import REFUSED, WRONG, SweepRow, sized
from layoutproof.searching import arrays_json, arrays_text
from layoutproof.searching.arrays_answer import ArraysAnswer
from layoutproof.searching.arrays_file import ArraysProblem
from layoutproof.searching.arrays_json import ArraysDocument
from layoutproof.searching.document import beside
from layoutproof.searching.shardings import Assignment, ShardingAnswer

Point = Mapping[str, str]


class CompiledAssignmentsEntry(TypedDict):
    """What the compiler says of the cheapest assignments."""

    program: str
    assignments: Annotated[int, Doc("that are compiled, the cheapest by the search")]
    left: Annotated[int, Doc("assignments that are not compiled, those that the search excludes too")]
    rows: Annotated[list[RowEntry], Doc("each assignment at each point of program's sweep")]
    cheapest: Annotated[list[CheapestEntry], Doc("by the bound on the time of a step, of the rows that fit")]
    kept: Annotated[int, Doc("rows that an earlier run left in the file of --resume")]


class CompiledShardingsDocument(ArraysDocument):
    """Shardings that are compiled: `shardings.best` are those that the compiler does not refuse."""

    compiled: CompiledAssignmentsEntry
    reason: Annotated[str, Doc("why the compiler leaves it unknown, or none fits")]


@dataclass(frozen=True, slots=True)
class CompiledShardings:
    """The answer about arrays, and what came of the assignments.

    found: by arithmetic alone.  points: of each of its best assignments, in their order.  sweep: None = nothing was
    compiled, and `why` says the reason.  file, line: of the program.
    """

    found: ArraysAnswer
    points: tuple[Point, ...]
    program: str
    sweep: Sweep | None
    why: str
    file: str
    line: int

    @property
    def shardings(self) -> ShardingAnswer:
        """As the search found them."""
        assert self.found.shardings is not None
        return self.found.shardings

    @property
    def taken(self) -> tuple[bool | None, ...]:
        """Of each assignment whether it fits at a point of the sweep, None = unknown."""
        return tuple(_taken(self._rows_of(point), self.sweep) for point in self.points)

    @property
    def left(self) -> int:
        """Assignments that are not compiled."""
        return self.shardings.covered - (0 if self.sweep is None else len(self.points))

    @property
    def answer(self) -> ArraysAnswer:
        """The answer without the assignments that the compiler refuses, still in the order of their cost."""
        kept = zip(self.shardings.best, self.taken, strict=True)
        best = tuple(one for one, taken in kept if taken is not False)
        return replace(self.found, shardings=replace(self.shardings, best=best))

    @property
    def verdict(self) -> Verdict:
        """PROVED: what costs less than the first of the best is refused by the compiler, which takes that one.
        REFUTED: it refuses all there are, or the search has none.  UNKNOWN otherwise."""
        first = next((taken for taken in self.taken if taken is not False), False)
        if not self.points or first:
            return self.found.verdict
        none = Verdict.UNKNOWN if first is None or self.left else Verdict.REFUTED
        return min(self.found.verdict, none)

    @property
    def reason(self) -> str:
        """Why the compiler leaves it unknown, or none fits; "" for neither."""
        first = next((k for k, taken in enumerate(self.taken) if taken is not False), None)
        if not self.points or (first is not None and self.taken[first]):
            return ""
        if first is None:
            return problems.NO_SHARDING_FITS(len(self.points), self.left)
        said = (row.reason for row in self._rows_of(self.points[first]) if row.reason)
        return self.why or next(said, problems.PEAK_NOT_SAID())

    @property
    def mistakes(self) -> tuple[Finding, ...]:
        """Points that are wrong by themselves, such as a mesh of more devices than the topology has."""
        rows = [] if self.sweep is None else [row for row in self.sweep.rows if row.outcome == WRONG]
        found = {row.reason: wrong_input(_at(row), row.reason, file=self.file, line=self.line) for row in rows}
        return tuple(found.values())

    def text(self, why: bool = True) -> str:
        """The answer as text; of arrays there is no shorter one."""
        lines = [arrays_text.text(self.answer, self.verdict), "", "compiled"]
        if self.sweep is None:
            return "\n".join([*lines, f"  nothing  {self.why}"])
        sweep = self.sweep
        lines += [*lines_of(self.program, sweep.axes, sweep.rows, sweep.memory, sweep.kept), ""]
        said = {row.reason: row for row in reversed(sweep.rows) if row.reason}
        for reason, row in reversed(said.items()):
            alike = sum(other.reason == reason for other in sweep.rows) - 1
            more = f" and {alike} more" if alike else ""
            lines.append(f"{state(row, sweep.memory).replace('_', ' ')}  {_at(row)}{more}: {visible(reason)}")
        lines += cheapest_lines(sweep.rows, sweep.cheapest, sweep.rank)
        lines.append(f"not compiled  {problems.NOT_COMPILED_SHARDINGS(self.left, self.shardings.covered)}")
        lines += [f"{self.verdict.value}  {self.reason}"] if self.reason else []
        return "\n".join([*lines, took(sweep.rows)])

    def as_json(self) -> CompiledShardingsDocument:
        """The answer as plain data."""
        said = None if self.sweep is None else self.sweep.as_dict()
        code = exit_code([Finding("search", self.found.name, verdict=self.verdict), *self.mistakes])
        return {
            **arrays_json.as_json(self.answer), **envelope(code), "verdict": self.verdict.value, "reason": self.reason,
            "compiled": {
                "program": self.program, "assignments": 0 if said is None else len(self.points), "left": self.left,
                "rows": [] if said is None else said["rows"], "cheapest": [] if said is None else said["cheapest"],
                "kept": 0 if said is None else said["kept"],
            },
        }  # fmt: skip

    def _rows_of(self, point: Point) -> list[SweepRow]:
        rows = () if self.sweep is None else self.sweep.rows
        return [row for row in rows if all(row.at[name] == value for name, value in point.items())]


def compiled_shardings(
    problem: ArraysProblem, found: ArraysAnswer, jobs: int = 1, resume: str | PathLike[str] | None = None,
    progress: Callable[[str, str], None] | None = None,
) -> CompiledShardings:  # fmt: skip
    """The best assignments compiled, at each point of the program's sweep.

    found: the answer of `arrays_file`.  jobs, resume: as of `sweep`.  progress: called with the program, and with what
    is done now.
    Raises LayoutError, with the place, where the program names no array or something is wrong with its function.
    """
    said = problem.said.program
    assert said is not None
    assert found.shardings is not None
    line = problem.root.value["program"].line

    def told(asked: Asked, what: str) -> None:
        if progress is not None:
            progress(asked.title, what)

    with problem.at("program"):
        place = beside(said.function, problem.file)
        points = tuple(_point(one, said.args, said.out) for one in found.shardings.best)
        if points and not points[0]:
            raise LayoutError(problems.PROGRAM_OF_NO_ARRAY(", ".join(problem.said.shardings)))
        answer = CompiledShardings(found, points, place, None, "", problem.file, line)
        if not points:
            return replace(answer, why=problems.NO_SHARDING_FOUND())
        try:
            rule = permit(place, Path(problem.file).parent)
        except Undecided as refused:
            return replace(answer, why=str(refused))
        shapes = {name: array_text(a.shape.element_type, a.shape.dims) for name, a in problem.said.shardings.items()}
        base = Asked(
            place, tuple(sized(_filled(each, shapes), problem.said.sizes) for each in said.args),
            target=problem.said.target, topology=said.topology, mesh=problem.said.mesh, donate=said.donate, rule=rule,
        )  # fmt: skip
        alike = [point for k, point in enumerate(points) if point not in points[:k]]
        sweep = swept_over(
            base, said.sweep, alike, memory=problem.said.memory, resume=resume, workers=Workers(jobs), step=told
        )
    return replace(answer, sweep=sweep)


def _point(one: Assignment, args: Sequence[object], outs: Sequence[object]) -> dict[str, str]:
    """The axes of a sweep, `in0` and so on, for the arguments and results that name arrays of an assignment."""
    specs = {name: shard.partition for name, shard in one.shards.items()}
    sides = {"in": args, "out": outs}
    return {
        f"{side}{k}": _spec(value, specs)
        for side, given in sides.items() for k, value in enumerate(given) if _names(value, specs)
    }  # fmt: skip


def _names(value: object, known: Mapping[str, str]) -> bool:
    """Whether an argument is an array of the search, or holds one."""
    if isinstance(value, Mapping):
        return any(_names(part, known) for part in value.values())
    if isinstance(value, list):
        return any(_names(part, known) for part in value)
    return isinstance(value, str) and value in known


def _filled(value: object, shapes: Mapping[str, str]) -> object:
    """An argument with the shapes of the arrays that it names."""
    if isinstance(value, Mapping):
        return {name: _filled(part, shapes) for name, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, shapes) for part in value]
    return shapes.get(value, value) if isinstance(value, str) else value


def _spec(value: object, specs: Mapping[str, str]) -> str:
    """The sharding of an argument as `compile` takes it; what is no array of the search is replicated."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {_spec(part, specs)}' for name, part in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(_spec(part, specs) for part in value)}]"
    return specs.get(value, "P()") if isinstance(value, str) else "P()"


def _taken(rows: Sequence[SweepRow], sweep: Sweep | None) -> bool | None:
    states = {state(row, None if sweep is None else sweep.memory) for row in rows}
    if FITS in states:
        return True
    return False if states and states <= {TOO_LARGE, REFUSED} else None


def _at(row: SweepRow) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.at.items())
