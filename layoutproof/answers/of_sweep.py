"""`lp.sweep`: one function compiled at many points, a row for each, and the cheapest one that fits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, NotRequired, TypedDict

from layoutproof.answers.sweep_picture import sweep_drawing
from layoutproof.answers.sweep_text import cheapest_lines, lines_of, markdown_of, took
from layoutproof.compiler.workers import Workers
from layoutproof.core.amounts import amount, size
from layoutproof.core.counted import Counted
from layoutproof.core.document import Doc, Document, Exactly, envelope
from layoutproof.core.errors import LayoutError, unknown_name
from layoutproof.core.finding import Answer, Finding, FindingEntry, as_dict, exit_code, text, wrong_input
from layoutproof.core.result import Verdict
from layoutproof.pictures.drawing import Drawing
from layoutproof.pictures.picture import svg_picture
from layoutproof.programs.compile import CPU, LONGEST, QUESTION, Asked, Made
from layoutproof.programs.kept_rows import KeptRows, key_of, state_of
from layoutproof.programs.ranking import RANKS, TOO_LARGE, Cheapest, cheapest, state
from layoutproof.programs.sweep import (
    COMPILED,
    UNKNOWN,
    WRONG,
    Axes,
    SweepPoint,
    SweepRow,
    all_axes,
    points,
    sizes_of,
    swept,
)


class CountedEntry(TypedDict):
    """A number with its bounds."""

    least: int
    most: Annotated[int | None, Doc("null where it is open above")]
    why: Annotated[str, Doc("the reason where the two differ")]


class RowEntry(TypedDict):
    """One point of a sweep."""

    at: Annotated[dict[str, str], Doc("axis -> its value here")]
    state: Annotated[
        str,
        Doc("fits, too_large, compiled (how much memory there is, is unknown), refused, bad_input or unknown"),
    ]
    reason: Annotated[str, Doc("of the compiler, or why nothing is known; empty where it is compiled")]
    target: str
    compiler: str
    devices: int | None
    peak: Annotated[int | None, Doc("bytes of main memory on one device, as the claim peak_memory counts them")]
    limit: Annotated[int | None, Doc("bytes that a device has")]
    sent: Annotated[
        dict[str, CountedEntry],
        Doc("axes of the mesh, joined by +, ? where they are unknown -> bytes of collectives on one device and step"),
    ]
    cycles: Annotated[int | None, Doc("the compiler's own estimate, of what it prices")]
    flops: CountedEntry | None
    bound_ps: Annotated[CountedEntry | None, Doc("picoseconds that a step takes at the least, by the chip's rates")]
    binds: Annotated[str, Doc("the term of the bound that is the largest")]
    seconds: Annotated[float, Doc("of the compiler, by the clock; 0 where its answer was kept from before")]
    cpu_seconds: Annotated[float, Doc("processor time of tracing, compiling and reading")]
    command: Annotated[str, Doc("makes its record")]


class CheapestEntry(TypedDict):
    """The cheapest row of those that compute the same."""

    sizes: Annotated[dict[str, str], Doc("of arguments; rows of other sizes compute something else")]
    row: Annotated[int | None, Doc("by number, from 0; null where there is none")]
    among: Annotated[int, Doc("rows that were compared")]
    unbounded: Annotated[int, Doc("rows that fit and were not compared, as their bound is open")]
    reason: NotRequired[Annotated[str, Doc("why there is none")]]
    first: NotRequired[Annotated[int, Doc("where all bounds are open: the first by what is certain of them")]]


class SweepDocument(Document):
    """One function compiled at many points."""

    program: str
    axes: dict[str, list[str]]
    rows: Annotated[list[RowEntry], Doc("one for each point, the last axis fastest")]
    rank: Annotated[str, Exactly(str), Doc("what the cheapest is by: time, chip-time or peak")]
    cheapest: Annotated[list[CheapestEntry], Doc("one for each combination of sizes")]
    kept: Annotated[int, Doc("rows that an earlier run left, with --resume")]
    findings: Annotated[list[FindingEntry], Doc("each point that does not fit, is refused, wrong or unknown")]


@dataclass(frozen=True, slots=True)
class Sweep(Answer):
    """What came of every point.

    program: that was compiled.  axes: with their values.  rows: one for each point, the last axis fastest.
    sizes: the axes along which something else is computed.  memory: bytes of a device, None = the chip's own.
    rank: what the cheapest is by.  kept: how many rows an earlier run left.
    """

    program: str
    axes: Axes
    rows: tuple[SweepRow, ...]
    sizes: frozenset[str] = frozenset()
    memory: int | None = None
    rank: str = "time"
    kept: int = 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Each point that does not fit, is refused, is wrong, or of which nothing is known."""
        return tuple(found for row in self.rows if (found := self._finding(row)) is not None)

    @property
    def exit_code(self) -> int:
        """0 all compiled and none too large, 1 one is too large or refused, 2 bad input, 3 something unknown."""
        return exit_code(self.findings)

    @property
    def cheapest(self) -> tuple[Cheapest, ...]:
        """The cheapest row that fits, for each combination of sizes."""
        return cheapest(self.rows, self.sizes, self.rank, self.memory)

    def __str__(self) -> str:
        table = lines_of(self.program, self.axes, self.rows, self.memory, self.kept)
        best = cheapest_lines(self.rows, self.cheapest, self.rank)
        return "\n\n".join(["\n".join(table), "\n".join(best), took(self.rows), *map(text, self.findings)])

    def markdown(self) -> str:
        """The table with what follows from it, as GitHub-flavoured Markdown."""
        return markdown_of(self.program, self.axes, self.rows, self.memory, self.cheapest, self.rank, self.kept)

    def picture(self) -> Drawing:
        """The points as cells: what each takes, and its bound on time."""
        return sweep_drawing(self.program, self.axes, self.rows, self.memory, self.cheapest, self.kept)

    def svg(self) -> str:
        """The same as one SVG document."""
        return svg_picture(self.picture())

    def as_dict(self) -> SweepDocument:
        """What `layoutproof compile --sweep --json` prints.

        Returns:
            Plain data: dicts, lists, text and numbers.
        """
        return {
            **envelope(self.exit_code),
            "program": self.program,
            "axes": {name: list(values) for name, values in self.axes.items()},
            "rows": [_entry(row, self.memory) for row in self.rows],
            "rank": self.rank,
            "cheapest": list(map(_cheapest_entry, self.cheapest)),
            "kept": self.kept,
            "findings": list(map(as_dict, self.findings)),
        }

    def _finding(self, row: SweepRow) -> Finding | None:
        subject = f"{self.program} at {', '.join(f'{n}={v}' for n, v in row.at.items())}"
        found = state(row, self.memory)
        if found == TOO_LARGE and row.outcome == COMPILED:
            peak, limit = row.peak or 0, row.limit(self.memory) or 0
            reason = f"it takes {size(peak)} of a device, {peak - limit} bytes more than the {size(limit)} that it has"
            return Finding(QUESTION, subject, reason, verdict=Verdict.REFUTED, figures={"bytes": peak})
        if row.outcome == COMPILED:
            return None
        if row.outcome == WRONG:
            return replace(wrong_input(subject, row.reason), question=QUESTION)
        verdict = Verdict.UNKNOWN if row.outcome == UNKNOWN else Verdict.REFUTED
        return Finding(QUESTION, subject, row.reason, verdict=verdict)


def _entry(row: SweepRow, memory: int | None) -> RowEntry:
    def bounded(found: Counted) -> CountedEntry:
        return {"least": found.least, "most": found.most, "why": found.why}

    def counted(found: Counted | None) -> CountedEntry | None:
        return None if found is None else bounded(found)

    return {
        "at": dict(row.at), "state": state(row, memory), "reason": row.reason, "target": row.target,
        "compiler": row.compiler, "devices": row.devices, "peak": row.peak, "limit": row.limit(memory),
        "sent": {axes: bounded(each) for axes, each in row.sent.items()}, "cycles": row.cycles,
        "flops": counted(row.flops), "bound_ps": counted(row.bound), "binds": row.binds,
        "seconds": round(row.seconds, 3), "cpu_seconds": round(row.cpu, 3), "command": row.command,
    }  # fmt: skip


def _cheapest_entry(found: Cheapest) -> CheapestEntry:
    entry: CheapestEntry = {
        "sizes": dict(found.sizes), "row": found.row, "among": found.among, "unbounded": found.unbounded,
    }  # fmt: skip
    if found.first is not None:
        entry["first"] = found.first
    return {**entry, "reason": found.why} if found.why else entry


def sweep(
    program: str,
    *args: object,
    axes: Mapping[str, Sequence[object]],
    target: str = CPU,
    topology: str = "",
    mesh: Mapping[str, int] | None = None,
    in_specs: Sequence[str] = (),
    out_specs: Sequence[str] = (),
    donate: Sequence[int] = (),
    flags: Mapping[str, str] | None = None,
    libtpu: str | PathLike[str] = "",
    memory: int | str | None = None,
    rank: str = "time",
    resume: str | PathLike[str] | None = None,
    jobs: int = 1,
    backend: str = "",
    scheduler: str = "",
    seconds: float = LONGEST,
    **kwargs: object,
) -> Sweep:
    """Compile one function at every point of some axes, and say which points fit and which is the cheapest.

    Each point is compiled as `compile` does it, and its row has the figures of that record. A point that is refused or
    unknown is a row with its reason.

    Args:
        program: As `compile` takes it: `package.module:function` or `file.py:function`.
        args: As of `compile`; a dimension may be the name of an axis, as in "bf16[B,1024]" or "bf16[8*B]".
        axes: The name of each axis to its values: `target`, `topology`, `mesh` (mappings or texts; one size may be -1,
            which takes what the topology has left), `libtpu`, `in0` and `out0` (the sharding of argument or result 0),
            the name of a size, or of an argument that the function takes by name.
        target: As of `compile`, likewise all up to `libtpu`: what is the same at all points.
        topology: Chips, such as "2x2".
        mesh: Axis to size.
        in_specs: For each argument "P('data', None)".
        out_specs: The same for each result.
        donate: Arguments, by number.
        flags: Options of the compiler.
        libtpu: Where another libtpu is.
        memory: Bytes of a device, or a text such as "14GiB"; the chip's HBM by default.
        rank: What the cheapest is by: "time", "chip-time" or "peak".
        resume: A file for the rows: those that it has are not compiled again, and new ones are added at once.
        jobs: Processes that compile at once, 0 for one per core.
        backend: "dask" or "ray", for a cluster that is already there.
        scheduler: Its address.
        seconds: That one point may take.
        kwargs: Of the function, as args.

    Returns:
        The rows with `cheapest`; `str` the table, `markdown()`, `picture()` and `svg()`.

    Raises:
        LayoutError: An axis is none, or the cluster or the file is not to be had. A mistake in one point is a row.

    >>> sweep("m:f", "f32[B]", axes={"B": ["x"]})
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: B is a size of an argument, a whole number; 'x' is none
    """
    base = Asked(
        program, args, kwargs, target, topology, dict(mesh or {}), tuple(in_specs), tuple(out_specs), tuple(donate),
        dict(flags or {}), str(libtpu),
    )  # fmt: skip
    said = {name: tuple(map(_text, values)) for name, values in axes.items()}
    limit = None if memory is None else amount(memory)
    return swept_over(
        base, said, memory=limit, rank=rank, resume=resume, workers=Workers(jobs, backend, scheduler), seconds=seconds
    )


def _text(value: object) -> str:
    return ",".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, Mapping) else str(value)


@dataclass(slots=True)
class _SweepProgress:
    """How many rows are there, of how many; for who looks at it."""

    total: int
    tell: Callable[[int, int], None] | None
    done: int = field(default=0)

    def one(self) -> None:
        self.done += 1
        if self.tell is not None:
            self.tell(self.done, self.total)


def swept_over(
    base: Asked,
    axes: Axes,
    together: Sequence[Mapping[str, str]] = ({},),
    *,
    memory: int | None = None,
    rank: str = "time",
    resume: str | PathLike[str] | None = None,
    workers: Workers,
    seconds: float = LONGEST,
    space: int | None = None,
    leave: Sequence[str] = (),
    each: Callable[[int, Made], None] = lambda number, made: None,
    step: Callable[[Asked, str], None] = lambda asked, what: None,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """The same for what the command line makes of its options.

    together: as of `points`.  space: bytes of address space that the compiler may use.  leave: files that the run
    writes, as of `state_of`.
    each: is called with what was compiled now and its number.  step, progress: with what is done now, and how far.
    """
    if rank not in RANKS:
        raise unknown_name("rank", rank, RANKS)
    given = points(base, axes, together)
    columns = all_axes(axes, together)
    rows: dict[int, SweepRow] = {}
    count = _SweepProgress(len(given), progress)
    with contextlib.ExitStack() as stack:
        kept = None if resume is None else stack.enter_context(KeptRows(Path(resume)))
        keys = _keys(given, "" if kept is None else state_of(base.program, [str(resume), *leave]), kept is not None)
        for number, key in keys.items():
            if kept is not None and (row := kept.get(key)) is not None:
                # another sweep may have called the same point otherwise
                rows[number] = replace(row, at=given[number].at)
                count.one()
        before = len(rows)
        left = [number for number in range(len(given)) if number not in rows]
        found = swept([given[number] for number in left], workers, seconds, space, step)
        for number, (row, one) in zip(left, found, strict=True):
            rows[number] = row
            if kept is not None and number in keys:
                kept.put(keys[number], row)
            if one is not None:
                each(number, one)
            count.one()
    ordered = tuple(rows[number] for number in range(len(given)))
    return Sweep(base.program, columns, ordered, sizes_of(base, columns), memory, rank, before)


def _keys(given: Sequence[SweepPoint], state: str, wanted: bool) -> dict[int, str]:
    """The key of each point that is a program, by number."""

    def all_of_them() -> Iterator[tuple[int, str]]:
        for number, point in enumerate(given):
            # what is wrong with it is said again
            with contextlib.suppress(LayoutError):
                if isinstance(point.asked, Asked):
                    yield number, key_of(point.asked, state)

    return dict(all_of_them()) if wanted else {}
