"""Search files about arrays: their layouts, the shapes that waste nothing, and how a mesh should cut them.

    search: attention                      a name; also source, note
    target: v5e
    sizes: {b: 16, s: 1280, h: 40}         what the names in shapes stand for
    layouts:                               the least padded bytes; a layout that is written is compared
      q: bf16[b,s,h]
      k: "bf16[16,1280,40]{2,1,0:T(8,128)(2,1)}"
    order: each                            or shared: one order of the named dimensions for all arrays
    padding: {w: "f32[1000,5]"}            the nearest larger shape that wastes nothing; a written layout is kept
    shardings: {w: "bf16[h,f]"}            arrays that share names are cut alike there
    mesh: {data: 4, model: 2}
    memory: 8GiB                           for all of them on one device; default: what the target's HBM holds
    require: [even]                        of every shard: even, whole (tiles), both, or [] = nothing; default: [even]
Any of layouts, padding and shardings may be there. A shape with a comma inside [..] is quoted in {..}.

For commands, here and in `traced_file` alike: `SECTIONS` are the keys that mark such a file, `read(node or path, file)`
gives the problem, `answer(problem, best, effort)` the answer, which has `verdict`, `exit_code`, `text()`, `as_json()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.result import Verdict
from layoutproof.hardware.tpu_chips import chip_of
from layoutproof.layouts import xla
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.specs.positions import Node, read_file
from layoutproof.tilings.array_layouts import ArrayAnswer, best_layouts, shared_order
from layoutproof.tilings.arrays_text import layouts_rows, padding_rows, sharding_rows, shared_rows
from layoutproof.tilings.document import placed
from layoutproof.tilings.padded_shapes import PaddingAnswer, nearest_full
from layoutproof.tilings.ranges import amount
from layoutproof.tilings.shardings import MOST, REQUIRED, RESTRICTIONS, ShardingAnswer, best_shardings

EXIT = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.UNKNOWN: 3}
SECTIONS = ("layouts", "padding", "shardings")
"""A file with one of these keys, and no `kernel` and no `trace`, is read here."""
KEYS = ("search", "source", "note", "target", "sizes", "order", "mesh", "memory", "require", *SECTIONS)
MOST_DEVICES = 1 << 24

Shapes = Mapping[str, tuple[XlaLayout, tuple[str, ...], bool, Node]]


@dataclass(frozen=True, slots=True)
class ArraysProblem:
    """sections: shapes by name, by key of SECTIONS.  shared: one order for all arrays.  memory: bytes of a device.

    require: restrictions of shards.  root, file: where it was written, for errors.
    """

    name: str
    target: str
    sections: Mapping[str, Shapes]
    shared: bool
    mesh: Mapping[str, int]
    memory: int
    require: tuple[str, ...]
    root: Node
    file: str


@dataclass(frozen=True, slots=True)
class ArraysAnswer:
    """found: one mapping per section, as `as_json` gives it.  lines: the same for people.

    verdict: PROVED, nothing better exists; REFUTED, something that is asked for does not exist; UNKNOWN otherwise.
    """

    name: str
    target: str
    found: Mapping[str, object]
    lines: tuple[str, ...]
    verdict: Verdict

    @property
    def exit_code(self) -> int:
        """0 proved, 1 refuted, 3 unknown."""
        return EXIT[self.verdict]

    def text(self) -> str:
        """What was found, for people."""
        rules = "rules measured on libtpu 0.0.42.1"
        return "\n".join((f"{self.name}, {self.target} ({rules}): {self.verdict.value}", *self.lines))

    def as_json(self) -> dict[str, object]:
        """What was found, as plain data."""
        return {"search": self.name, "target": self.target, "verdict": self.verdict.value, **self.found}


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
    if type(root.value) is not dict:
        words = f"a search file is a mapping with target and {', '.join(SECTIONS)}"
        raise LayoutError(words, file=file, line=1, column=1)
    for key, (line, column) in (root.keys or {}).items():
        if key not in KEYS:
            words = f"unknown key {shorten(key, 40)!r}; the keys here are {', '.join(KEYS)}"
            raise LayoutError(words, file=file, line=line, column=column)
    at = _Reader(file)
    if "target" not in root.value:
        raise at.refuse("'target' is missing", root)
    target = at(root.value["target"], lambda value: chip_of(str(value)).name)
    sizes = at(root.value.get("sizes"), _sizes)
    sections = {key: _shapes(root.value[key], key, sizes, at) for key in SECTIONS if key in root.value}
    if not sections:
        raise at.refuse(f"nothing is asked: give {', '.join(SECTIONS)}", root)
    shared = at(root.value.get("order"), lambda value: _word(value, ("each", "shared"))) == "shared"
    for array, (_, own, _, node) in sections.get("layouts", {}).items():
        if shared and "" in own:
            raise at.refuse(f"{array}: one order for all arrays needs a name for every dimension", node)
    if "shardings" in sections and "mesh" not in root.value:
        raise at.refuse("shardings need a mesh, e.g. mesh: {data: 4, model: 2}", root.value["shardings"])
    written = root.value.get("memory")
    return ArraysProblem(
        name=str(root.value["search"].plain()) if "search" in root.value else Path(file).stem,
        target=target,
        sections=sections,
        shared=shared,
        mesh=at(root.value["mesh"], _mesh) if "mesh" in root.value else {},
        memory=chip_of(target).hbm if written is None else at(written, amount),
        require=at(root.value.get("require"), _restrictions),
        root=root,
        file=file,
    )


def answer(problem: ArraysProblem, best: int = 3, effort: int = 1) -> ArraysAnswer:
    """Everything that the problem asks. best: how many layouts and shardings of each are given.

    effort: multiplies how many assignments of a mesh are enumerated.
    Raises LayoutError, with its place, for what a target has no rule for.
    """
    found: dict[str, object] = {}
    lines: list[str] = []
    verdict = Verdict.PROVED
    for section, work in (("layouts", _layouts), ("padding", _padding), ("shardings", _shardings)):
        if section in problem.sections:
            found[section], said, of_section = work(problem, best, effort)
            lines += ["", section, *said]
            verdict = min(verdict, of_section)
    return ArraysAnswer(problem.name, problem.target, found, tuple(lines), verdict)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one value; an error without a place gets that of the value."""

    file: str

    def __call__(self, node: Node | None, read: Callable[[Any], Any]) -> Any:
        return read(None) if node is None else placed(node, self.file, read)

    def refuse(self, problem: str, node: Node) -> LayoutError:
        return LayoutError(problem, file=self.file, line=node.line, column=node.column)


Section = tuple[object, list[str], Verdict]
"""What was found as plain data, as lines for people, and what is proved of it."""


def _layouts(problem: ArraysProblem, best: int, effort: int) -> Section:
    shapes, at = problem.sections["layouts"], _Reader(problem.file)
    rows: dict[str, object] = {}
    lines: list[str] = []
    for array, (shape, _, given, node) in shapes.items():
        found = at(node, partial(_best_layouts, shape, problem.target, given))
        rows[array], said = layouts_rows(array, found, best)
        lines += said
    if not problem.shared:
        return {"each": rows}, lines, Verdict.PROVED
    named = {array: (shape, own) for array, (shape, own, _, _) in shapes.items()}
    try:
        shared = at(problem.root.value["layouts"], lambda _: shared_order(named, problem.target))
    except Undecided as undecided:
        said = [f"  unknown  {undecided}"]
        return {"each": rows, "shared": {"unknown": str(undecided)}}, [*lines, *said], Verdict.UNKNOWN
    shown, said = shared_rows(shared)
    return {"each": rows, "shared": shown}, [*lines, *said], Verdict.PROVED


def _padding(problem: ArraysProblem, best: int, effort: int) -> Section:
    at = _Reader(problem.file)
    rows: dict[str, object] = {}
    lines: list[str] = []
    verdict = Verdict.PROVED
    for array, (shape, _, given, node) in problem.sections["padding"].items():
        try:
            found = at(node, partial(_nearest_full, shape, problem.target, given))
        except Undecided as undecided:
            rows[array], verdict = {"unknown": str(undecided)}, min(verdict, Verdict.UNKNOWN)
            lines.append(f"  {array}  unknown: {undecided}")
            continue
        verdict = min(verdict, Verdict.REFUTED if found.full is None else Verdict.PROVED)
        rows[array], said = padding_rows(array, found)
        lines += said
    return rows, lines, verdict


def _shardings(problem: ArraysProblem, best: int, effort: int) -> Section:
    shapes, at = problem.sections["shardings"], _Reader(problem.file)
    arrays = {array: (shape, own) for array, (shape, own, _, _) in shapes.items()}

    def work(_: object) -> ShardingAnswer:
        most = MOST * effort
        return best_shardings(arrays, problem.mesh, problem.memory, problem.target, best, most, problem.require)

    found = at(problem.root.value["shardings"], work)
    rows, lines = sharding_rows(found)
    verdict = Verdict.UNKNOWN if found.reason else Verdict.REFUTED if found.conflict else Verdict.PROVED
    return rows, lines, verdict


def _best_layouts(shape: XlaLayout, target: str, given: bool, _: object) -> ArrayAnswer:
    return best_layouts(shape, target, given)


def _nearest_full(shape: XlaLayout, target: str, given: bool, _: object) -> PaddingAnswer:
    return nearest_full(shape, target, given)


def _shapes(section: Node, key: str, sizes: Mapping[str, int], read: _Reader) -> Shapes:
    if type(section.value) is not dict or not section.value:
        raise read.refuse(f"{key} is a mapping from a name to a shape such as bf16[16,1280,40]", section)
    return {array: (*read(node, lambda value: _shape(value, sizes)), node) for array, node in section.value.items()}


def _shape(value: object, sizes: Mapping[str, int]) -> tuple[XlaLayout, tuple[str, ...], bool]:
    """(the shape with numbers, the name of each dimension or "", whether a layout was written)."""
    if not isinstance(value, str):
        raise LayoutError(f"a shape is a text such as bf16[16,1280,40], not {shorten(repr(value), 60)}")
    shape = xla.read(value)
    if not isinstance(shape, XlaLayout):
        raise LayoutError(f"only an array has a layout, not {shorten(value, 60)}")
    if any(shape.dynamic):
        raise LayoutError(f"{shorten(value, 60)} has dimensions of a size that is not known")
    dims, names = [], []
    for extent in shape.dims:
        name = "" if isinstance(extent, int) else str(extent)
        if name and name not in sizes:
            raise LayoutError(f"{name} is not in sizes; known: {', '.join(sizes) or 'none'}")
        dims.append(sizes[name] if name else extent)
        names.append(name)
    return replace(shape, dims=tuple(dims)), tuple(names), "{" in value


def _sizes(value: Any) -> Mapping[str, int]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise LayoutError(f"sizes is a mapping such as {{b: 16, s: 1280}}, not {shorten(repr(value), 60)}")
    for name, size in value.items():
        if type(size) is not int or size < 1 or not name.isidentifier():
            raise LayoutError(f"{name} is a name and a whole number of at least 1, not {shorten(repr(size), 40)}")
    return value


def _mesh(value: Any) -> Mapping[str, int]:
    if not isinstance(value, dict) or not value:
        raise LayoutError(f"mesh says how many devices each axis has, {{data: 4}}; not {shorten(repr(value), 60)}")
    devices = 1
    for axis, count in value.items():
        if type(count) is not int or count < 1:
            raise LayoutError(f"mesh axis {axis} has a whole number of devices, not {shorten(repr(count), 40)}")
        devices *= count
    if devices > MOST_DEVICES:
        raise LayoutError(f"a mesh of {devices} devices; at most {MOST_DEVICES}")
    return value


def _restrictions(value: Any) -> tuple[str, ...]:
    words = REQUIRED if value is None else tuple(value) if isinstance(value, list) else (value,)
    if not all(isinstance(word, str) and word in RESTRICTIONS for word in words):
        known = ", ".join(RESTRICTIONS)
        raise LayoutError(f"require is a list of restrictions ({known}), or [], not {shorten(repr(value), 40)}")
    return words


def _word(value: Any, words: tuple[str, ...]) -> str:
    if value is not None and value not in words:
        raise LayoutError(f"order is {' or '.join(words)}, not {shorten(repr(value), 40)}")
    return words[0] if value is None else str(value)
