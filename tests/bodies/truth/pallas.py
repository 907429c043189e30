"""A described kernel as a function of arrays that calls `pl.pallas_call`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from tests.bodies.truth.description import (
    Description,
    E,
    For,
    Let,
    Ref,
    Scoped,
    Signal,
    Start,
    Store,
    View,
    Wait,
    When,
)

DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "i32": jnp.int32, "bool": jnp.bool_}

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "min": jnp.minimum,
    "max": jnp.maximum,
    "and": jnp.logical_and,
    "or": jnp.logical_or,
}

Names = dict[str, Any]


def _evaluate(e: E, names: Names) -> Any:
    if e.op in BINARY:
        return BINARY[e.op](_evaluate(e.args[0], names), _evaluate(e.args[1], names))
    match e.op, e.args:
        case "int", (value,):
            return jnp.int32(value)
        case "float", (value,):
            return jnp.float32(value)
        case "pid", (k,):
            return names[f"p{k}"]
        case "name", (name,):
            return names[name]
        case "load", (view, mask):
            if mask is not None:
                return pltpu.load(_view(view, names), mask=_evaluate(mask, names))
            return names[view.ref][_indices(view, names)]
        case "not", (a,):
            return jnp.logical_not(_evaluate(a, names))
        case "select", (condition, a, b):
            return jnp.where(*(_evaluate(x, names) for x in (condition, a, b)))
        case "iota", (dimension,):
            return lax.broadcasted_iota(jnp.int32, e.shape, dimension)
        case "full", (a,):
            return jnp.full(e.shape, _evaluate(a, names), DTYPES[e.dtype])
        case "astype", (a,):
            return _evaluate(a, names).astype(DTYPES[e.dtype])
        case "multiple_of", (a, by):
            return pl.multiple_of(_evaluate(a, names), by)
        case (("sum" | "amax" | "amin"), (a, axis)):
            return {"sum": jnp.sum, "amax": jnp.max, "amin": jnp.min}[e.op](_evaluate(a, names), axis, keepdims=True)
        case "total", (a,):
            return jnp.sum(_evaluate(a, names))
        case "cumsum", (a, axis, back):
            return lax.cumsum(_evaluate(a, names), axis=axis, reverse=back)
        case "rev", (a, axis):
            return lax.rev(_evaluate(a, names), (axis,))
        case "roll", (a, shift, axis):
            return pltpu.roll(_evaluate(a, names), _evaluate(shift, names), axis)
        case "concat", (pieces, axis):
            return jnp.concatenate([_evaluate(a, names) for a in pieces], axis)
        case "slice", (a, starts):
            return lax.slice(_evaluate(a, names), starts, [s + n for s, n in zip(starts, e.shape, strict=True)])
        case "reshape", (a,):
            return _evaluate(a, names).reshape(e.shape)
        case "transpose", (a,):
            return _evaluate(a, names).T
        case "broadcast", (a,):
            return jnp.broadcast_to(_evaluate(a, names), e.shape)
        case "dot", (a, b):
            return jnp.dot(_evaluate(a, names), _evaluate(b, names), preferred_element_type=jnp.float32)
        case "cond", (condition, a, b):
            branches = [lambda x=x: _evaluate(x, names) for x in (a, b)]
            return lax.cond(_evaluate(condition, names), *branches)
        case "loop", (counter, count, carried, start, step, kind):
            first = _evaluate(start, names)

            def body(i: Any, value: Any) -> Any:
                return _evaluate(step, {**names, counter: i, carried: value})

            stop = _evaluate(count, names) if count.op != "int" else count.args[0]
            if kind == "fori":
                return lax.fori_loop(0, stop, body, first)
            return lax.while_loop(lambda c: c[0] < stop, lambda c: (c[0] + 1, body(*c)), (jnp.int32(0), first))[1]
    raise ValueError(e.op)


def _start(e: E, names: Names) -> Any:
    return e.args[0] if e.op == "int" else _evaluate(e, names)


def _indices(view: View, names: Names) -> Any:
    if not view.slices:
        return ...
    return tuple(
        _start(s.start, names)
        if s.single
        else pl.ds(_start(s.start, names), s.size, **({} if s.stride == 1 else {"stride": s.stride}))
        for s in view.slices
    )


def _view(view: View, names: Names) -> Any:
    return names[view.ref].at[_indices(view, names)] if view.slices else names[view.ref]


def _run(body: tuple[Any, ...], names: Names) -> None:
    names = dict(names)
    for statement in body:
        match statement:
            case Let(name, value):
                names[name] = _evaluate(value, names)
            case Store(view, value, mask):
                if mask is not None:
                    pltpu.store(_view(view, names), _evaluate(value, names), mask=_evaluate(mask, names))
                else:
                    names[view.ref][_indices(view, names)] = _evaluate(value, names)
            case When(condition, then, ()):
                pl.when(_evaluate(condition, names))(lambda then=then: _run(then, names))  # type: ignore[misc]
            case When(condition, then, otherwise):
                branches = [lambda part=part: _run(part, names) for part in (then, otherwise)]
                lax.cond(_evaluate(condition, names), *branches)
            case For():
                _loop(statement, names)
            case Start(source, target, semaphore):
                _copy(source, target, semaphore, names).start()
            case Wait(source, target, semaphore):
                _copy(source, target, semaphore, names).wait()
            case Signal(semaphore, amount, False):
                pl.semaphore_signal(_view(semaphore, names), amount)
            case Signal(semaphore, amount, True):
                pl.semaphore_wait(_view(semaphore, names), amount)
            case Scoped(refs, inner):

                def scoped(*given: Any, inner: Any = inner, refs: Any = refs) -> None:
                    _run(inner, {**names, **{ref.name: g for ref, g in zip(refs, given, strict=True)}})

                pl.run_scoped(scoped, *map(_memory, refs))


def _copy(source: View, target: View, semaphore: View, names: Names) -> Any:
    return pltpu.make_async_copy(_view(source, names), _view(target, names), _view(semaphore, names))


def _loop(loop: For, names: Names) -> None:
    first, last = (e.args[0] if e.op == "int" else _evaluate(e, names) for e in (loop.start, loop.stop))

    def step(i: Any, carried: Any) -> Any:
        _run(loop.body, {**names, loop.name: i})
        return carried

    if loop.kind == "unrolled":
        for i in range(first, last):
            _run(loop.body, {**names, loop.name: jnp.int32(i)})
    elif loop.kind == "fori":
        lax.fori_loop(first, last, step, 0)
    else:
        lax.while_loop(lambda i: i < last, lambda i: (step(i, 0), i + 1)[1], jnp.int32(first))


def _memory(ref: Ref) -> Any:
    match ref.memory:
        case "smem":
            return pltpu.SMEM(ref.shape, DTYPES[ref.dtype])
        case "dma":
            return pltpu.SemaphoreType.DMA(ref.shape) if ref.shape else pltpu.SemaphoreType.DMA
        case "signal":
            return pltpu.SemaphoreType.REGULAR(ref.shape) if ref.shape else pltpu.SemaphoreType.REGULAR
    return pltpu.VMEM(ref.shape, DTYPES[ref.dtype])


def _spec(ref: Ref, made: Description) -> Any:
    if not ref.block:
        return pl.BlockSpec(memory_space=pl.ANY)

    def index(*ids: Any) -> Any:
        names: Names = {f"p{k}": p for k, p in enumerate(ids[: len(made.grid)])}
        names |= {t.name: table for t, table in zip(made.tables, ids[len(made.grid) :], strict=True)}
        return tuple(_start(e, names) for e in ref.index)

    sizes: list[Any] = []
    for d, (kind, size) in enumerate(ref.block):
        if kind == "squeezed":
            sizes.append(None)
        elif kind == "element":
            sizes.append(pl.Element(size, (ref.low, ref.high) if d == 0 else (0, 0)))
        else:
            sizes.append(size)
    return pl.BlockSpec(tuple(sizes), index)


def function(made: Description) -> Callable[..., Any]:
    """A function of the tables and the inputs; `interpret` is handed to `pallas_call`."""
    refs = [*made.tables, *made.inputs, *made.outputs, *made.scratch]

    def body(*given: Any) -> None:
        names: Names = {ref.name: g for ref, g in zip(refs, given, strict=True)}
        names |= {f"p{k}": pl.program_id(k) for k in range(len(made.grid))}
        _run(made.body, names)

    semantics = tuple("parallel" if k < made.parallel else "arbitrary" for k in range(len(made.grid)))

    def call(*arrays: Any, interpret: Any = False) -> Any:
        return pl.pallas_call(
            body,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=len(made.tables),
                grid=made.grid,
                in_specs=[_spec(ref, made) for ref in made.inputs],
                out_specs=[_spec(ref, made) for ref in made.outputs],
                scratch_shapes=[_memory(ref) for ref in made.scratch],
            ),
            out_shape=[jax.ShapeDtypeStruct(ref.shape, DTYPES[ref.dtype]) for ref in made.outputs],
            input_output_aliases={len(made.tables) + a: b for a, b in made.aliases},
            compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
            interpret=interpret,
        )(*arrays)

    return call


def shapes(made: Description) -> list[Any]:
    """The arguments of the function, as shapes."""
    tables = [jax.ShapeDtypeStruct(t.dims, jnp.int32) for t in made.tables]
    return [*tables, *(jax.ShapeDtypeStruct(ref.shape, DTYPES[ref.dtype]) for ref in made.inputs)]
