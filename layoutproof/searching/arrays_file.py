"""Search files about arrays: their layouts, the shapes that waste nothing, and how a mesh should cut them.

`search_model` says what may stand in one. As in `traced_file`, `read(node or path, file)` gives the problem and
`answer(problem, best, effort)` the answer.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from layoutproof.core.errors import Undecided
from layoutproof.hardware.tpu_chips import chip_of
from layoutproof.searching.array_layouts import ArrayAnswer, SharedAnswer, best_layouts, best_tilings, shared_order
from layoutproof.searching.arrays_answer import ArraysAnswer
from layoutproof.searching.document import at
from layoutproof.searching.padded_shapes import PaddingAnswer, nearest_full
from layoutproof.searching.search_model import ArraysSearch
from layoutproof.searching.searched import Searched
from layoutproof.searching.shardings import MOST, ShardingAnswer, best_shardings
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


def answer(problem: ArraysProblem, best: int = 3, effort: int = 1) -> Searched:
    """Everything that the problem asks. best: how many layouts and shardings of each are given.

    effort: multiplies how many assignments of a mesh are enumerated.
    Raises LayoutError, with its place, for what a target has no rule for.
    """
    said = problem.said
    layouts = {name: _layouts(problem, name) for name in said.layouts}
    return Searched(
        ArraysAnswer(
            problem.name,
            said.target,
            best,
            layouts,
            _shared(problem) if said.layouts and said.order == "shared" else None,
            {name: _padding(problem, name) for name in said.padding},
            _shardings(problem, best, effort) if said.shardings else None,
        )
    )


def _layouts(problem: ArraysProblem, name: str) -> ArrayAnswer:
    array, target = problem.said.layouts[name], problem.said.target
    with problem.at("layouts", name):
        if array.tilings:
            return best_tilings(array.tilings, target)
        return best_layouts(array.shape, target, array.written)


def _shared(problem: ArraysProblem) -> SharedAnswer | str:
    arrays = {name: (array.shape, array.dims) for name, array in problem.said.layouts.items()}
    try:
        with problem.at("layouts"):
            return shared_order(arrays, problem.said.target)
    except Undecided as undecided:
        return str(undecided)


def _padding(problem: ArraysProblem, name: str) -> PaddingAnswer | str:
    array = problem.said.padding[name]
    try:
        with problem.at("padding", name):
            return nearest_full(array.shape, problem.said.target, array.written)
    except Undecided as undecided:
        return str(undecided)


def _shardings(problem: ArraysProblem, best: int, effort: int) -> ShardingAnswer:
    said = problem.said
    arrays = {name: (array.shape, array.dims) for name, array in said.shardings.items()}
    memory = chip_of(said.target).hbm if said.memory is None else said.memory
    with problem.at("shardings"):
        return best_shardings(
            arrays,
            said.mesh,
            memory,
            said.target,
            best,
            MOST * effort,
            said.require,
            said.products,
            said.price,
            said.fsdp,
        )
