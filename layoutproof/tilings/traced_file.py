"""Search files about the user's own Python function.

search: matmul                                      a name; also source, note
target: v5e                                         and, if it matters, compiler
trace: jax.experimental.pallas.ops.tpu.matmul:matmul    or file.py:function, beside the search file
sizes: {M: 4096}                                    names for args and expressions
args: ["bf16[M,M]", "bf16[M,M]"]                    shapes, or Python literals
kwargs: {block_shape: "(bm, bn)", block_k: bk}      how the variables are passed; default: each by its own name
tune: {bm: {from: 128, to: 2048, powers_of: 2}, ..}     as for a kernel
assume: ["0 <= prefetch0 < 8"]                      of tables; with names of tune and sizes
confirm: compiler                                   has the real compiler (libtpu) take what is found; default: nobody
constraints, flops, cost, partial, vmem, headroom, step_overhead    as for a kernel; flops of all calls together

For commands, as in `arrays_file`: `SECTIONS`, `read`, `answer`; answers have `verdict`, `exit_code`, `text`, `as_json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from layoutproof.compiler.tracing import permit
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.pallas.judge import kernel_target
from layoutproof.specs.positions import Node, read_file
from layoutproof.tilings import ranges
from layoutproof.tilings import read as kernel_file
from layoutproof.tilings.cost import FIGURES
from layoutproof.tilings.document import beside, placed
from layoutproof.tilings.machines import headroom, machine
from layoutproof.tilings.problem import Shape
from layoutproof.tilings.template import Template
from layoutproof.tilings.traced import FUNCTION, Confirm, Kernels, TracedProblem, search_traced
from layoutproof.tilings.traced_compile import passed, refused
from layoutproof.tilings.traced_text import TracedAnswer

KEYS = (
    "search", "source", "note", "target", "compiler", "trace", "sizes", "args", "kwargs", "tune", "assume",
    "confirm", "constraints", "flops", "cost", "partial", "vmem", "headroom", "step_overhead",
)  # fmt: skip
SECTIONS = ("trace",)
"""A file with this key is read here."""
_NOTHING = Template({}, (), (), ())
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


def read(source: Node | str | Path, file: str = "search") -> TracedProblem:
    """The problem of a document, or of the file at a path; the module's text says what may stand in it.

    Raises LayoutError, with file, line and column, for everything that is wrong with it.
    """
    if isinstance(source, Node):
        return _read(source, file)
    return _read(read_file(source), Path(source).as_posix())


def answer(problem: TracedProblem, best: int = 3, effort: int = 1, confirm: bool = False) -> TracedAnswer:
    """The `best` candidates that are proved legal. effort: multiplies how many are traced at most.

    confirm: the real compiler is asked about what is found, also where the file does not say so.
    Raises LayoutError where the function refuses all candidates in the same words.
    """
    problem = replace(problem, confirmed=confirm or problem.confirmed)
    result = search_traced(problem, best, effort)
    if result.alike:
        # whatever the block sizes: a wrong call, and no answer about block sizes
        words = f"all {result.count} candidates fail alike: {result.alike.removeprefix(FUNCTION)}"
        file, line, column = problem.source
        raise LayoutError(words, file=file, line=line, column=column)
    return TracedAnswer(problem, result)


def _read(root: Node, file: str) -> TracedProblem:
    if type(root.value) is not dict:
        raise LayoutError("a search file is a mapping with trace, args and tune", file=file, line=1, column=1)
    for key, (line, column) in (root.keys or {}).items():
        if key not in KEYS:
            words = f"unknown key {shorten(key, 40)!r}; the keys here are {', '.join(KEYS)}"
            raise LayoutError(words, file=file, line=line, column=column)
    for key in ("trace", "args", "tune", "target"):
        if key not in root.value:
            raise LayoutError(f"{key!r} is missing", file=file, line=root.line, column=root.column)

    def at(key: str, convert: Callable[[Any], Any]) -> Any:
        node = root.value.get(key)
        return convert(None) if node is None else placed(node, file, convert)

    compiler = at("compiler", lambda value: None if value is None else str(value))
    target: str = at("target", lambda value: kernel_target(str(value), compiler).name)
    at("target", lambda _: machine(target, _NOTHING))
    at("step_overhead", lambda value: machine(target, _NOTHING, value))
    shapes: tuple[Shape, ...] = at("sizes", lambda value: (Shape({"": 1}),) if value is None else _one_shape(value))
    sizes = {name: size for name, size in shapes[0].sizes.items() if name}
    tune: dict[str, tuple[int, ...]] = at("tune", lambda value: kernel_file._domains(value, shapes))
    kernel_file.apart(root.value["tune"], tune, sizes, file)
    known = {*tune, *sizes}
    names = known | set(FIGURES)
    trace, compiles = _calls(root, at, file, tune, sizes, target)
    return TracedProblem(
        name=str(root.value["search"].plain()) if "search" in root.value else Path(file).stem,
        variables=tune,
        trace=trace,
        target=target,
        compiler=compiler,
        sizes=sizes,
        vmem=at("vmem", lambda value: None if value is None else ranges.amount(value)),
        headroom=at("headroom", headroom),
        step_overhead=at("step_overhead", lambda value: value),
        flops=at("flops", lambda v: None if v is None else ranges.expression(v, known | {"steps"})),
        cost=at("cost", lambda v: None if v is None else ranges.expression(v, names)),
        partial=at("partial", lambda v: ranges.word(v, "partial", ("masked", "none"))) == "masked",
        constraints=kernel_file.constraints(root.value.get("constraints"), file, names),
        confirm=compiles,
        confirmed=at("confirm", _confirm),
        source=(file, *root.value["trace"][1:3]),
    )


def _calls(
    root: Node, at: Callable[..., Any], file: str, tune: Mapping[str, object], sizes: Mapping[str, int], target: str
) -> tuple[Callable[[Mapping[str, int]], Kernels], Confirm]:
    """The function from values to kernels, and the one that has the compiler take candidates."""
    from layoutproof.pallas.from_jax.user import argument, calls_of

    args = at("args", lambda value: [_with_names(entry, sizes) for entry in _a_list(value, "args")])
    at("args", lambda _: [argument(entry) for entry in args if isinstance(entry, str)])
    kwargs: Mapping[str, Any] = at("kwargs", lambda value: _a_mapping(value))
    spoken = {name for value in kwargs.values() if isinstance(value, str) for name in _NAME.findall(value)}
    given = {**kwargs, **{name: name for name in tune if name not in spoken}}
    assume = at("assume", lambda value: tuple(map(str, _a_list(value or [], "assume"))))
    place = at("trace", lambda value: beside(value, file))
    at("trace", lambda _: permit(place, Path(file).parent))

    def named(values: Mapping[str, int]) -> dict[str, object]:
        return {name: _with_names(value, {**sizes, **values}) for name, value in given.items()}

    def kernels(values: Mapping[str, int]) -> Kernels:
        filled = {name: passed(value) for name, value in named(values).items()}
        said = [_with_names(text, {**sizes, **values}) for text in assume]
        return calls_of(place, args, filled, target=target, assume=said)

    def compiles(candidates: Sequence[Mapping[str, int]], enough: int) -> Sequence[str | None]:
        return refused(place, args, [named(values) for values in candidates], target, enough)

    return kernels, compiles


def _with_names(value: Any, names: Mapping[str, int]) -> Any:
    if not isinstance(value, str):
        return value
    return _NAME.sub(lambda found: str(names.get(found[0], found[0])), value)


def _confirm(value: Any) -> bool:
    if value not in (None, "compiler"):
        raise LayoutError(f"confirm is compiler, or not there, not {shorten(repr(value), 40)}")
    return value is not None


def _one_shape(value: Any) -> tuple[Shape, ...]:
    shapes = kernel_file._shapes(value)
    if len(shapes) > 1:
        raise LayoutError("a traced function is searched for one set of sizes")
    return shapes


def _a_list(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise LayoutError(f"{key} is a list, not {shorten(repr(value), 60)}")
    return value


def _a_mapping(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise LayoutError(f"kwargs is a mapping from a name to a value, not {shorten(repr(value), 60)}")
    return value
