"""A Pallas call: its body read once, for a program with names for its ids, as what it makes of its memory.

Windows are as in `values.kernels`: what a block of the array holds, undefined beyond its end; a window of an output is
undefined whenever its block changes, and written back, as far as the array goes, by the last program that shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.effects import View
from layoutproof.bodies.passes import BodyValue, as_array
from layoutproof.bodies.values import Index, Value, dims_of, extent_term
from layoutproof.bodies.values import number as single
from layoutproof.core.dimensions import dimension
from layoutproof.core.folding import TRUE, all_of, fold, linear, negation
from layoutproof.core.products import CallMemory, Factor, LexicographicCall, Monomial, Named, Output, Sum, added
from layoutproof.core.term import ZERO, Term, size_term
from layoutproof.ir.program import Dtype, Equation, Grid, Variable, Window, is_for_gpu
from layoutproof.values.elementwise import kind_of
from layoutproof.values.relations.arrays import FloatArray, bounded, opaque
from layoutproof.values.relations.loops import LOOPS
from layoutproof.values.relations.reading import Reading, ReadingRule, bounds, reference_of, shape_terms


def starts_of(
    on: Reading, block: Window, ids: Sequence[Term], spans: Sequence[tuple[int, int]]
) -> list[tuple[str, Term]]:
    """Of each dimension of an array: (kind, where the block starts)."""
    dtype = np.dtype(np.int32)
    given = [single(k, dtype, span) for k, span in zip(ids, spans, strict=True)]
    if len(block.index_map.invars) > len(given):
        raise UnsupportedOp("a call whose blocks tables choose")
    found = iter(on.run(block.index_map, given[: len(block.index_map.invars)]))
    result = []
    for kind, extent, low in block.block:
        at = next(found).number()
        if kind == "blocked":
            at = ZERO if at is ZERO else fold("*", at, extent_term(*shape_terms((extent,))))
        elif kind == "element":
            at = linear([(1, at)], -low)
        elif kind != "squeezed":
            raise UnsupportedOp(f"a block dimension {kind}")
        result.append((kind, at))
    return result


def _within(term: Term, extent: int | Term) -> Term:
    last = extent if isinstance(extent, Term) else Term("int", extent)
    return fold("and", fold("<=", ZERO, term), fold("<", term, last))


def _window(array: FloatArray, starts: Sequence[tuple[str, Term]], dims: tuple[int, ...]) -> FloatArray:
    """The window of an input in a program."""

    def element(index: Index) -> Sum:
        inner = iter(index)
        at = tuple(
            start if kind == "squeezed" else linear([(1, start), (1, next(inner))]) for kind, start in starts
        )  # fmt: skip
        parts = [_within(term, n) for term, n in zip(at, array.dims, strict=True)]
        there = all_of(parts)
        beyond = tuple(Monomial(when=(negation(part),)) for part in parts if part is not TRUE)
        return added(array.sum(at).under(there), Sum((), beyond))

    return FloatArray(dims, array.dtype, element)


def _memory(source: str, dims: tuple[int, ...], dtype: Dtype, ids: Sequence[Term]) -> FloatArray:
    """The contents of memory when a program begins."""

    def element(index: Index) -> Sum:
        held = (Monomial(factors=(Factor(source, (*index, *ids)),)),)
        return Sum(held, held)

    return FloatArray(dims, dtype, element)


def _cells(on: Reading, dims: Sequence[int]) -> Named:
    return bounded([on.named("c") for _ in dims], [extent_term(n) for n in dims])


def _index(named: Named) -> tuple[Term, ...]:
    return tuple(Term("name", name) for name, _ in named)


@dataclass(frozen=True)
class _Memory:
    """A memory that programs fill. block: of an output.  starts: of its window in a program, None where it is scratch.

    begun: the contents when a program begins.  alias: the operand whose place an output takes.
    """

    source: str
    begun: FloatArray
    block: Window | None
    starts: list[tuple[str, Term]] | None
    alias: int | None


def _pallas_call(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    params = equation.params
    mapping = params["grid_mapping"]
    if is_for_gpu(equation):
        raise UnsupportedOp("a kernel for a GPU")
    if on.looped:
        raise UnsupportedOp("a kernel in a long loop")
    many, tables = mapping.dynamic, mapping.tables
    dynamic = iter(as_array(value).number() for value in operands[:many])
    grid = [Term("int", n) if type(n) is int else next(dynamic) for n in mapping.extents]
    programs = bounded([on.named("p") for _ in grid], grid)
    ids = _index(programs)
    extents = [bounds(n) for n in grid]
    spans = [(0, max(high - 1, 0)) for _, high in extents]
    aliases = {int(b): int(a) for a, b in params.get("input_output_aliases") or ()}
    name = on.named("call")
    refs = [reference_of(on, v.aval, f"{name}.{k}", "scratch") for k, v in enumerate(params["jaxpr"].invars)]
    before, outer, on.memory = on.memory, on.programs, {}
    # tables are no memory here: a load from them is an unknown number
    variables = params["jaxpr"].invars[tables:]
    _fill_inputs(on, mapping, operands[many + tables :], variables, refs[tables:], ids, spans)
    at_first = dict(on.memory)
    filled = _filled(on, mapping, variables, refs[tables:], ids, spans, aliases)
    on.memory.update((each.source, each.begun) for each in filled)
    on.programs = (ids, grid, spans, extents, mapping.counted)
    on.run(params["jaxpr"], refs)
    if any(on.memory[source] is not array for source, array in at_first.items()):
        raise UnsupportedOp("a store to an input")
    states = {}
    for each in filled:
        cells = _cells(on, each.begun.dims)
        places = None if each.starts is None else tuple(start for _, start in each.starts)
        after = on.memory[each.source].sum(_index(cells))
        states[each.source] = CallMemory(f"{each.source} before", f"{each.source} after", cells, after, places)
    on.memory, on.programs = before, outer
    outputs, results = {}, []
    for each in filled:
        if each.block is None or each.starts is None:
            continue
        dims = shape_terms(each.block.aval.shape)
        element = _cells(on, dims)
        at = _index(element)
        shows, cell = _shows(each.block, each.starts, at)
        output = Output(f"{each.source} out", f"{each.source} after", element, shows, cell)
        if each.alias is not None:
            block, array = mapping.windows[each.alias - tables], operands[many + each.alias]
            output = replace(output, **_in_place(on, block, array, at, ids, spans))
        outputs[output.source] = output
        results.append(opaque(output.source, dims, each.block.aval.dtype))
    on.calls.append(LexicographicCall(programs, states, outputs))
    return results


def _fill_inputs(
    on: Reading, mapping: Grid, given: Sequence[BodyValue], variables: Sequence[Variable], refs: Sequence[View],
    ids: Index, spans: Sequence[tuple[int, int]],
) -> None:  # fmt: skip
    """Puts floats of the arguments in the memory of a program, each as its window."""
    for block, array, variable, view in zip(mapping.windows[: mapping.inputs], given, variables, refs, strict=False):
        if isinstance(array, FloatArray):
            starts = starts_of(on, block, ids, spans) if block.windowed else None
            held = array if starts is None else _window(array, starts, dims_of(variable.aval))
            on.memory[view.reference.name] = held


def _filled(
    on: Reading, mapping: Grid, variables: Sequence[Variable], refs: Sequence[View], ids: Index,
    spans: Sequence[tuple[int, int]], aliases: Mapping[int, int],
) -> list[_Memory]:  # fmt: skip
    """The memories of floats that programs fill: outputs and scratch."""
    found = []
    blocks = mapping.windows
    for k, (view, variable) in enumerate(zip(refs, variables, strict=True)):
        if k < mapping.inputs:
            continue
        block = blocks[k] if k < len(blocks) else None
        dtype = getattr(variable.aval, "dtype", np.dtype(bool))
        if kind_of(dtype) != "f" or view.reference.memory == "semaphore":
            if block is not None:
                raise UnsupportedOp(f"an output of {dtype}")
            continue
        if block is not None and not block.windowed:
            raise UnsupportedOp("an output that copies by hand fill")
        source = view.reference.name
        begun = _memory(f"{source} before", dims_of(variable.aval), dtype, ids)
        starts = None if block is None else starts_of(on, block, ids, spans)
        found.append(_Memory(source, begun, block, starts, aliases.get(k - mapping.inputs)))
    return found


def _shows(
    block: Window, starts: Sequence[tuple[str, Term]], at: Index
) -> tuple[tuple[Term, ...], tuple[Term, ...]]:  # fmt: skip
    """Of an element of the array: whether a program's window has it, and where it is in it."""
    shows, cell = [], []
    for (how, start), (_, extent, _), e in zip(starts, block.block, at, strict=True):
        if how == "squeezed":
            shows.append(fold("==", e, start))
            continue
        off = linear([(1, e), (-1, start)])
        shows.append(_within(off, extent))
        cell.append(off)
    return tuple(shows), tuple(cell)


def _in_place(
    on: Reading, block: Window, array: BodyValue, at: Index, ids: Sequence[Term], spans: Sequence[tuple[int, int]]
) -> dict[str, Any]:  # fmt: skip
    """Of an output that takes an input's place: what is there where no program writes, and which programs read it."""
    if not isinstance(array, FloatArray):
        raise UnsupportedOp("an output in the place of a table")
    sees = _shows(block, starts_of(on, block, ids, spans), at)[0] if block.windowed else ()
    return {"otherwise": array.sum(at), "sees": sees}


def _program(which: Callable[..., Value]) -> ReadingRule:
    def rule(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
        if on.programs is None:
            raise UnsupportedOp("a program's id outside of a kernel")
        ids, grid, spans, extents, counted = on.programs
        axis = counted[int(equation.params["axis"])]
        return [which(ids[axis], grid[axis], spans[axis], extents[axis], equation.outvars[0].aval.dtype)]

    return rule


def _dimension(on: Reading, equation: Equation, operands: list[BodyValue]) -> Sequence[BodyValue]:
    """A size that is a name, as a number."""
    term = size_term(dimension(equation.params["dim"]))
    return [single(term, equation.outvars[0].aval.dtype, bounds(term))]


CALLS: dict[str, ReadingRule] = {
    **LOOPS,
    "pallas_call": _pallas_call,
    "dim_as_value": _dimension,
    "program_id": _program(lambda at, n, span, extent, dtype: single(at, dtype, span)),
    "num_programs": _program(lambda at, n, span, extent, dtype: single(n, dtype, extent)),
}
