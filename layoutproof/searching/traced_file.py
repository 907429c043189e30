"""The problem of a search file about the user's own function. `search_model` says what may stand in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from layoutproof.compiler.tracing import permit
from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.recorded import Recorded, plain
from layoutproof.mosaic.ask import CompilerQuestion, asked
from layoutproof.searching import problems
from layoutproof.searching.alike import Kernels
from layoutproof.searching.compiler_stage import Report, reports
from layoutproof.searching.document import at, at_key, beside
from layoutproof.searching.problem import Confirm, Problem, TracedFunction, WeightedSizes
from layoutproof.searching.search_model import TraceSearch
from layoutproof.searching.tilings import TracedCandidate
from layoutproof.specs.positions import Node, read_file
from layoutproof.specs.validation import read_as

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


def read(source: Node | str | Path, file: str = "search") -> Problem:
    """The problem of a document, or of the file at a path.

    Raises LayoutError, with file, line and column, for everything that is wrong with it.
    """
    if isinstance(source, Node):
        return _read(source, file)
    return _read(read_file(source), Path(source).as_posix())


def _read(root: Node, file: str) -> Problem:
    said = read_as(TraceSearch, root, file)
    trace, compiles = _calls(said, root, file)
    line, column = root.value["trace"][1:3]
    return Problem(
        name=said.search or Path(file).stem,
        variables=said.tune,
        kernels=TracedFunction(trace, compiles),
        target=said.target,
        compiler=said.compiler,
        shapes=said.sizes or (WeightedSizes({}),),
        limit=said.vmem or 0,
        headroom=said.headroom,
        step_overhead=said.step_overhead,
        flops=said.flops,
        cost=said.cost,
        partial=said.partial != "none",
        constraints=said.constraints,
        confirmed=said.confirm is not None,
        source=file,
        line=line,
        column=column,
    )


def _calls(said: TraceSearch, root: Node, file: str) -> tuple[Callable[[Mapping[str, int]], Kernels], Confirm]:
    """The function from values to kernels, and the one that has the compiler take candidates."""
    from layoutproof.pallas.from_jax.user import argument, calls_of, named_function

    sizes, assume = said.names, said.assume or ()
    args = [_with_names(entry, sizes) for entry in said.args]
    with at(root.value["args"], file):
        for text in (entry for entry in args if isinstance(entry, str)):
            argument(text)
    kwargs = said.kwargs or {}
    spoken = {name for value in kwargs.values() if isinstance(value, str) for name in _NAME.findall(value)}
    for name in said.tune:
        if name in kwargs and name not in spoken:
            what = problems.TUNED_AND_PASSED(name, shorten(repr(kwargs[name]), 40))
            raise at_key(root.value["kwargs"], name, file, what)
    given = {**kwargs, **{name: name for name in said.tune if name not in spoken}}
    with at(root.value["trace"], file):
        place = beside(said.trace, file)
        rule = permit(place, Path(file).parent)
        # a missing file or function is no matter of candidates; a refused trace is a reason of each
        with suppress(Undecided), named_function(place, rule):
            pass

    def named(values: Mapping[str, int]) -> dict[str, object]:
        return {name: _with_names(value, {**sizes, **values}) for name, value in given.items()}

    def kernels(values: Mapping[str, object]) -> Kernels:
        filled = {name: _filled(_with_names(value, sizes), values) for name, value in given.items()}
        # assumptions on tables are in no amount of a call
        told = [
            _with_names(text, {**sizes, **{name: plain(value) for name, value in values.items()}}) for text in assume
        ]
        return calls_of(place, args, filled, target=said.target, assume=told, rule=rule)

    def compiles(candidates: Sequence[TracedCandidate], enough: int, **asking: Any) -> Sequence[Report]:
        return reports([partial(questions, one) for one in candidates], enough, **asking)

    def questions(one: TracedCandidate) -> list[CompilerQuestion]:
        filled = {name: passed(value) for name, value in named(one.values).items()}
        calls = [(k, kernel) for k, kernel in enumerate(one.kernels) if kernel.pipeline == "pallas_call"]
        return [asked(place, args, filled, kernel, k, said.target) for k, kernel in calls]

    return kernels, compiles


def passed(value: object) -> object:
    """A keyword argument: an array's shape, or a Python literal; other texts stay texts."""
    from layoutproof.pallas.from_jax.user import argument

    if not isinstance(value, str):
        return value
    try:
        return argument(value)
    except LayoutError:
        return value


def _filled(value: object, values: Mapping[str, Any]) -> object:
    """A keyword argument with numbers, plain or recorded, for names; of a text that holds them, their text."""
    if isinstance(value, str) and any(type(number) is Recorded for number in values.values()):
        with suppress(SyntaxError, ValueError):
            return _built(ast.parse(value.strip(), mode="eval").body, values)
    return passed(_with_names(value, values))


def _built(tree: ast.expr, values: Mapping[str, object]) -> object:
    """The value of a literal with names. ValueError for what is none."""
    match tree:
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.Tuple(elts=parts):
            return tuple(_built(part, values) for part in parts)
        case ast.List(elts=parts):
            return [_built(part, values) for part in parts]
        case ast.Dict(keys=keys, values=held) if None not in keys:
            return {_built(k, values): _built(v, values) for k, v in zip(keys, held, strict=True) if k is not None}
    return ast.literal_eval(tree)


def _with_names(value: Any, names: Mapping[str, int]) -> Any:
    if not isinstance(value, str):
        return value
    return _NAME.sub(lambda found: str(names.get(found[0], found[0])), value)
