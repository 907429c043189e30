"""A Pallas call: its body read once, for a program with names for its ids, as what it makes of its memory.

Windows are as in `values.kernels`: what a block of the array holds, undefined beyond its end; a window of an output is
undefined whenever its block changes, and written back, as far as the array goes, by the last program that shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.bodies.values import Index, Value, dims_of, extent_term
from layoutproof.bodies.values import number as single
from layoutproof.core.dimensions import dimension
from layoutproof.core.folding import TRUE, all_of, fold, linear, negation
from layoutproof.core.products import CallMemory, Factor, LexicographicCall, Monomial, Named, Output, Sum, added
from layoutproof.core.term import ZERO, Term, size_term
from layoutproof.values.elementwise import kind_of
from layoutproof.values.relations.arrays import FloatArray, bounded, opaque
from layoutproof.values.relations.loops import LOOPS
from layoutproof.values.relations.reading import Reading, bounds, reference_of, shape_terms


def starts_of(on: Reading, block: Any, ids: Sequence[Term], spans: Sequence[tuple[int, int]]) -> list[tuple[str, Term]]:
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


def _within(term: Term, extent: Any) -> Term:
    last = extent if isinstance(extent, Term) else Term("int", extent)
    return fold("and", fold("<=", ZERO, term), fold("<", term, last))


def _window(array: FloatArray, starts: Sequence[tuple[str, Term]], dims: tuple[Any, ...]) -> FloatArray:
    """What a program sees of an input."""

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


def _memory(source: str, dims: tuple[Any, ...], dtype: Any, ids: Sequence[Term]) -> FloatArray:
    """What memory holds when a program begins."""

    def element(index: Index) -> Sum:
        held = (Monomial(factors=(Factor(source, (*index, *ids)),)),)
        return Sum(held, held)

    return FloatArray(dims, dtype, element)


def _cells(on: Reading, dims: Sequence[Any]) -> Named:
    return bounded([on.named("c") for _ in dims], [extent_term(n) for n in dims])


def _index(named: Named) -> tuple[Term, ...]:
    return tuple(Term("name", name) for name, _ in named)


def _pallas_call(on: Reading, equation: Any, operands: list[Any]) -> list[Any]:
    params = equation.params
    mapping = params["grid_mapping"]
    kind = type(params.get("compiler_params")).__module__
    if "gpu" in kind or "triton" in kind:
        raise UnsupportedOp("a kernel for a GPU")
    if on.looped:
        raise UnsupportedOp("a kernel in a long loop")
    many = mapping.dynamic
    dynamic = iter(value.number() for value in operands[:many])
    grid = [Term("int", n) if type(n) is int else next(dynamic) for n in mapping.extents]
    programs = bounded([on.named("p") for _ in grid], grid)
    ids = _index(programs)
    extents = [bounds(n) for n in grid]
    spans = [(0, max(high - 1, 0)) for _, high in extents]
    given = operands[many:]
    tables = mapping.tables
    aliases = {int(b): int(a) for a, b in params.get("input_output_aliases") or ()}
    name = on.named("call")
    variables = params["jaxpr"].invars
    refs = [reference_of(on, v.aval, f"{name}.{k}", "scratch") for k, v in enumerate(variables)]
    blocks = mapping.windows
    before, on.memory = on.memory, {}
    outer = on.programs
    # tables are no memory here: what is loaded from them is a number that nobody knows
    held: list[tuple[str, FloatArray, tuple[Term, ...] | None]] = []
    shown: list[tuple[Any, list[tuple[str, Term]], str, int | None]] = []
    for k, (view, variable) in enumerate(zip(refs[tables:], variables[tables:], strict=True)):
        source = view.reference.name
        dtype = getattr(variable.aval, "dtype", np.dtype(bool))
        dims = dims_of(variable.aval)
        block = blocks[k] if k < len(blocks) else None
        windowed = block is not None and block.memory not in ("any", "hbm")
        if block is not None and k < mapping.inputs:
            array = given[tables + k]
            if isinstance(array, FloatArray):
                starts = starts_of(on, block, ids, spans) if windowed else None
                on.memory[source] = _window(array, starts, dims) if starts is not None else array
            continue
        if kind_of(dtype) != "f" or view.reference.memory == "semaphore":
            if block is not None:
                raise UnsupportedOp(f"an output of {dtype}")
            continue
        if block is not None and not windowed:
            raise UnsupportedOp("an output that copies by hand fill")
        starts = None if block is None else starts_of(on, block, ids, spans)
        on.memory[source] = _memory(f"{source} before", dims, dtype, ids)
        held.append((source, on.memory[source], None if starts is None else tuple(start for _, start in starts)))
        if starts is not None:
            shown.append((block, starts, source, aliases.get(k - mapping.inputs)))
    inputs = {v.reference.name for k, v in enumerate(refs[tables:]) if k < mapping.inputs}
    at_first = {source: on.memory[source] for source in inputs if source in on.memory}
    on.programs = (ids, grid, spans, extents, mapping.counted)
    on.run(params["jaxpr"], refs)
    if any(on.memory[source] is not array for source, array in at_first.items()):
        raise UnsupportedOp("a store to an input")
    states = {}
    for source, begun, places in held:
        cells = _cells(on, begun.dims)
        states[source] = CallMemory(
            f"{source} before", f"{source} after", cells, on.memory[source].sum(_index(cells)), places
        )  # fmt: skip
    on.memory, on.programs = before, outer
    outputs, results = {}, []
    for block, starts, source, alias in shown:
        dims = shape_terms(block.aval.shape)
        element = _cells(on, dims)
        at = _index(element)
        shows, cell = _shows(block, starts, at)
        output = Output(f"{source} out", f"{source} after", element, shows, cell)
        if alias is not None:
            output = replace(output, **_in_place(on, blocks[alias - tables], given[alias], at, ids, spans))
        outputs[output.source] = output
        results.append(opaque(output.source, dims, block.aval.dtype))
    on.calls.append(LexicographicCall(programs, states, outputs))
    return results


def _shows(
    block: Any, starts: Sequence[tuple[str, Term]], at: Index
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
    on: Reading, block: Any, array: Any, at: Index, ids: Sequence[Term], spans: Sequence[tuple[int, int]]
) -> dict[str, Any]:  # fmt: skip
    """Of an output that takes an input's place: what is there where no program writes, and which programs read it."""
    if not isinstance(array, FloatArray):
        raise UnsupportedOp("an output in the place of a table")
    windowed = block.memory not in ("any", "hbm")
    sees = _shows(block, starts_of(on, block, ids, spans), at)[0] if windowed else ()
    return {"otherwise": array.sum(at), "sees": sees}


def _program(which: Callable[..., Value]) -> Callable[..., list[Any]]:
    def rule(on: Reading, equation: Any, operands: list[Any]) -> list[Any]:
        if on.programs is None:
            raise UnsupportedOp("a program's id outside of a kernel")
        ids, grid, spans, extents, counted = on.programs
        axis = counted[int(equation.params["axis"])]
        return [which(ids[axis], grid[axis], spans[axis], extents[axis], equation.outvars[0].aval.dtype)]

    return rule


def _dimension(on: Reading, equation: Any, operands: list[Any]) -> list[Any]:
    """A size that is a name, as a number."""
    term = size_term(dimension(equation.params["dim"]))
    return [single(term, equation.outvars[0].aval.dtype, bounds(term))]


CALLS: dict[str, Callable[..., list[Any]]] = {
    **LOOPS,
    "pallas_call": _pallas_call,
    "dim_as_value": _dimension,
    "program_id": _program(lambda at, n, span, extent, dtype: single(at, dtype, span)),
    "num_programs": _program(lambda at, n, span, extent, dtype: single(n, dtype, extent)),
}
