"""Search files about arrays: their layouts, the shapes that waste nothing, and how a mesh should cut them.

`search_model` says what may stand in one. As in `traced_file`, `read(node or path, file)` gives the problem and
`answer(problem, best, effort)` the answer, which has `verdict`, `text()`, `as_json()`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from layoutproof.core.document import envelope
from layoutproof.core.errors import Undecided
from layoutproof.core.result import Verdict
from layoutproof.hardware.tpu_chips import chip_of
from layoutproof.searching.array_layouts import best_layouts, best_tilings, shared_order
from layoutproof.searching.arrays_text import (
    LayoutsEntry,
    PaddingEntry,
    ShardingsEntry,
    SharedEntry,
    layouts_rows,
    padding_rows,
    sharding_rows,
    shared_rows,
    tilings_rows,
)
from layoutproof.searching.document import ProblemDocument, at
from layoutproof.searching.padded_shapes import nearest_full
from layoutproof.searching.search_model import ArraysSearch
from layoutproof.searching.shardings import MOST, best_shardings
from layoutproof.specs.positions import Node, read_file
from layoutproof.specs.validation import read_as


@dataclass(frozen=True, slots=True)
class ArraysProblem:
    """said: the contents of the file.  root, file: its place, for errors."""

    name: str
    said: ArraysSearch
    root: Node
    file: str

    def at(self, section: str, array: str = "") -> AbstractContextManager[None]:
        """Errors inside get the place of a section, or of one array of it."""
        node: Node = self.root.value[section]
        return at(node.value[array] if array else node, self.file)


class UnknownEntry(TypedDict):
    unknown: str


class OrdersEntry(TypedDict):
    """The best layouts of each array, and with one order for all of them."""

    each: dict[str, LayoutsEntry]
    shared: NotRequired[SharedEntry | UnknownEntry]


class _Sections(TypedDict, total=False):
    layouts: OrdersEntry
    padding: dict[str, PaddingEntry | UnknownEntry]
    shardings: ShardingsEntry


class ArraysDocument(ProblemDocument, _Sections):
    """The best layouts, paddings and shardings of arrays."""


@dataclass(frozen=True, slots=True)
class ArraysAnswer:
    """found: one mapping per section, as `as_json` gives it.  lines: the same for people.

    verdict: PROVED, nothing better exists; REFUTED, something that is asked for does not exist; UNKNOWN otherwise.
    """

    name: str
    target: str
    found: _Sections
    lines: tuple[str, ...]
    verdict: Verdict

    def text(self, why: bool = True) -> str:
        """The answer as text."""
        rules = "rules measured on libtpu 0.0.42.1"
        return "\n".join((f"{self.name}, {self.target} ({rules}): {self.verdict.value}", *self.lines))

    def as_json(self) -> ArraysDocument:
        """The answer as plain data."""
        return {
            **envelope(self.verdict.exit_code),
            "subject": self.name,
            "target": self.target,
            "verdict": self.verdict.value,
            **self.found,
        }


def read(source: Node | str | Path, file: str = "search") -> ArraysProblem:
    """The problem of a document, or of the file at a path.

    Raises LayoutError, with file, line and column, for everything that is wrong with it.

    >>> from layoutproof.specs.positions import read_yaml
    >>> problem = read(read_yaml("{target: v5e, layouts: {x: 'bf16[16,1280,40]'}}"))
    >>> answer(problem).as_json()["layouts"]["each"]["x"]["best"][0]
    {'layout': 'bf16[16,1280,40]{1,2,0:T(8,128)(2,1)}', 'bytes': 1638400}
    """
    if isinstance(source, Node):
        return _read(source, file)
    return _read(read_file(source), Path(source).as_posix())


def _read(root: Node, file: str) -> ArraysProblem:
    said = read_as(ArraysSearch, root, file)
    return ArraysProblem(said.search or Path(file).stem, said, root, file)


def answer(problem: ArraysProblem, best: int = 3, effort: int = 1) -> ArraysAnswer:
    """Everything that the problem asks. best: how many layouts and shardings of each are given.

    effort: multiplies how many assignments of a mesh are enumerated.
    Raises LayoutError, with its place, for what a target has no rule for.
    """
    said, found, lines, verdicts = problem.said, _Sections(), list[str](), [Verdict.PROVED]
    if said.layouts:
        found["layouts"], shown, verdict = _layouts(problem, best)
        lines, verdicts = [*lines, "", "layouts", *shown], [*verdicts, verdict]
    if said.padding:
        found["padding"], shown, verdict = _padding(problem)
        lines, verdicts = [*lines, "", "padding", *shown], [*verdicts, verdict]
    if said.shardings:
        found["shardings"], shown, verdict = _shardings(problem, best, effort)
        lines, verdicts = [*lines, "", "shardings", *shown], [*verdicts, verdict]
    return ArraysAnswer(problem.name, said.target, found, tuple(lines), min(verdicts))


def _layouts(problem: ArraysProblem, best: int) -> tuple[OrdersEntry, list[str], Verdict]:
    said, rows, lines = problem.said, dict[str, LayoutsEntry](), list[str]()
    for name, array in said.layouts.items():
        with problem.at("layouts", name):
            if array.tilings:
                rows[name], shown = tilings_rows(name, best_tilings(array.tilings, said.target), best)
            else:
                rows[name], shown = layouts_rows(name, best_layouts(array.shape, said.target, array.written), best)
        lines += shown
    if said.order != "shared":
        return {"each": rows}, lines, Verdict.PROVED
    try:
        with problem.at("layouts"):
            found = shared_order({name: (array.shape, array.dims) for name, array in said.layouts.items()}, said.target)
    except Undecided as undecided:
        lines.append(f"  unknown  {undecided}")
        return {"each": rows, "shared": {"unknown": str(undecided)}}, lines, Verdict.UNKNOWN
    shared, shown = shared_rows(found)
    return {"each": rows, "shared": shared}, [*lines, *shown], Verdict.PROVED


def _padding(problem: ArraysProblem) -> tuple[dict[str, PaddingEntry | UnknownEntry], list[str], Verdict]:
    rows, lines, verdict = dict[str, PaddingEntry | UnknownEntry](), list[str](), Verdict.PROVED
    for name, array in problem.said.padding.items():
        try:
            with problem.at("padding", name):
                found = nearest_full(array.shape, problem.said.target, array.written)
        except Undecided as undecided:
            rows[name], verdict = {"unknown": str(undecided)}, min(verdict, Verdict.UNKNOWN)
            lines.append(f"  {name}  unknown: {undecided}")
            continue
        verdict = min(verdict, Verdict.REFUTED if found.full is None else Verdict.PROVED)
        rows[name], shown = padding_rows(name, found)
        lines += shown
    return rows, lines, verdict


def _shardings(problem: ArraysProblem, best: int, effort: int) -> tuple[ShardingsEntry, list[str], Verdict]:
    said = problem.said
    arrays = {name: (array.shape, array.dims) for name, array in said.shardings.items()}
    memory = chip_of(said.target).hbm if said.memory is None else said.memory
    with problem.at("shardings"):
        found = best_shardings(
            arrays, said.mesh, memory, said.target, best, MOST * effort, said.require, said.products, said.price
        )
    rows, lines = sharding_rows(found)
    verdict = Verdict.UNKNOWN if found.reason else Verdict.REFUTED if found.infeasible else Verdict.PROVED
    return rows, lines, verdict
