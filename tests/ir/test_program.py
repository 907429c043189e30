"""Programs as data, and what JAX's are made of."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from layoutproof.core.result import Verdict
from layoutproof.ir.codec import digest, read, written
from layoutproof.ir.program import Equation, Indexed, Leaf, MemRefType, Program, Span, Transformed, programs_in

jax = pytest.importorskip("jax")

from jax import numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from layoutproof.pallas.from_jax.programs import program_of  # noqa: E402
from tests.bodies.pitfalls import CASES  # noqa: E402

pytestmark = pytest.mark.slow

ALIKE = frozenset({"transpose_partial_store", "scratch_across_parallel"})
"""Pairs whose bodies are alike: what is wrong is the shape of the output, or what runs in parallel."""


def every(program: Program) -> Iterator[Equation]:
    for equation in program.eqns:
        yield equation
        for inner in programs_in(equation):
            yield from every(inner)


def kernel(x: Any, o: Any, s: Any) -> None:
    o[pl.ds(2, 4), :] = x[pl.ds(pl.program_id(0) % 4, 4), :]
    copy = pltpu.make_async_copy(x.at[pl.ds(0, 2)], o.at[pl.ds(0, 2)], s)
    copy.start()
    copy.wait()


def call(x: Any) -> Any:
    return pl.pallas_call(
        kernel, out_shape=x, grid=(2,), scratch_shapes=[pltpu.SemaphoreType.DMA],
        in_specs=[pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))],
        out_specs=pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)),
    )(x)  # fmt: skip


def traced() -> Program:
    return program_of(jax.make_jaxpr(call)(jax.ShapeDtypeStruct((2, 8, 128), jnp.float32)))


def body() -> Any:
    (found,) = (e for e in every(traced()) if e.primitive.name == "pallas_call")
    return found


def test_a_kernel_is_complete_without_jax() -> None:
    """Windows, memories, addresses and lines are data; nothing of it has to be asked of JAX again."""
    found = body()
    grid, inner = found.params["grid_mapping"], found.params["jaxpr"]
    assert [tuple(d.kind for d in w.block) for w in grid.windows] == [("squeezed", "blocked", "blocked")] * 2
    assert [e.primitive.name for e in grid.windows[0].index_map.eqns] == []
    assert [v.aval.memory for v in inner.invars] == ["vmem", "vmem", "semaphore"]
    (swap,) = (e for e in inner.eqns if e.primitive.name == "swap")
    assert swap.params["tree"] == (Indexed((Span(2, 4), Span(0, 128))),)
    (start,) = (e for e in inner.eqns if e.primitive.name == "dma_start")
    source = start.params["tree"][0]
    assert source == Transformed(Leaf(0), (Indexed((Span(0, 2), Span(0, 128))),))
    assert isinstance(start.invars[0].aval, MemRefType)
    lines = {str(e.source).rpartition(":")[0] for e in inner.eqns}
    assert lines == {__file__}


def test_a_program_survives_a_pickle() -> None:
    """A place is looked up before it leaves the process; functions of JAX are no part of it."""
    program = body().params["jaxpr"]
    again = pickle.loads(pickle.dumps(program))
    assert [(e.primitive, str(e.source), e.scope) for e in every(again)] == [
        (e.primitive, str(e.source), e.scope) for e in every(program)
    ]
    assert again.used == {v for e in again.eqns for v in e.invars if v in again.used} | set(again.outvars)


@pytest.mark.parametrize("depth", [40])
def test_what_is_shared_is_converted_once(depth: int) -> None:
    """Each function calls the one before twice: as a tree that is 2^40 programs."""

    def last(x: Any) -> Any:
        return jnp.sin(x)

    function = jax.jit(last)
    for _ in range(depth):
        function = jax.jit(lambda x, f=function: f(f(x)))
    seen: dict[int, Program] = {}
    todo = [program_of(jax.make_jaxpr(function)(1.0))]
    while todo:
        one = todo.pop()
        if id(one) not in seen:
            seen[id(one)] = one
            todo += [inner for e in one.eqns for inner in programs_in(e)]
    assert len(seen) <= depth + 3


def test_what_is_written_is_read() -> None:
    """The same JSON again: of a kernel with branches, loops, copies, an infinity, and of its index maps."""

    def busy(x: Any, o: Any, s: Any) -> None:
        kernel(x, o, s)
        total = jax.lax.fori_loop(0, 4, lambda k, t: t + x[k, 0], jnp.float32(0.5))
        o[0, :] = jnp.where(total > 1, jnp.full((128,), -jnp.inf), x[:].reshape(8, 128)[0])
        pl.when(pl.program_id(0) == 1)(lambda: kernel(x, o, s))

    shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    scratch = [pltpu.SemaphoreType.DMA]
    made = pl.pallas_call(busy, out_shape=shape, grid=(2,), scratch_shapes=scratch)
    (found,) = (e for e in every(program_of(jax.make_jaxpr(made)(shape))) if e.primitive.name == "pallas_call")
    for program in (found.params["jaxpr"], found.params["grid_mapping"].windows[0].index_map):
        once = written(program)
        again = written(read(json.loads(json.dumps(once))))
        assert json.dumps(again) == json.dumps(once)
    assert '"-inf"' in json.dumps(written(found.params["jaxpr"]))
    assert digest(read(json.loads(json.dumps(once)))) == digest(program)


def bodies_of(name: str, wrong: bool) -> list[Program]:
    """The bodies of the kernels of a pair, traced anew."""
    built = CASES[name].build(wrong)
    found = every(program_of(jax.make_jaxpr(built.fn)(*built.args)))
    return [equation.params["jaxpr"] for equation in found if equation.primitive.name == "pallas_call"]


@pytest.mark.parametrize("name", CASES)
def test_a_program_is_known_by_how_it_is_built(name: str) -> None:
    """Traced twice, or written and read, it is the same; its wrong twin is another one."""
    twins = []
    for wrong in (True, False):
        first, again = bodies_of(name, wrong), bodies_of(name, wrong)
        assert len(first) == len(again) > 0
        for one, other in zip(first, again, strict=True):
            assert one is not other
            assert digest(one) == digest(other) == digest(read(json.loads(json.dumps(written(one)))))
        twins.append([digest(one) for one in first])
    assert (twins[0] == twins[1]) is (name in ALIKE)


def test_lines_and_names_are_not_what_a_program_is() -> None:
    """The same steps on other lines, with other names; another number, type or order of operands is another program."""

    def one(x: Any, y: Any) -> Any:
        return jnp.sin(x) - 2 * y

    def other(first: Any, second: Any) -> Any:
        left = jnp.sin(first)
        right = 2 * second
        return left - right

    def program(function: Any, dtype: Any = jnp.float32) -> Program:
        return program_of(jax.make_jaxpr(function)(*[jax.ShapeDtypeStruct((8,), dtype)] * 2))

    assert {str(e.source) for e in program(one).eqns} != {str(e.source) for e in program(other).eqns}
    assert digest(program(one)) == digest(program(other))
    for changed in (
        program(lambda x, y: jnp.sin(x) - 3 * y),
        program(lambda x, y: jnp.sin(y) - 2 * x),
        program(lambda x, y: jnp.cos(x) - 2 * y),
        program(one, jnp.bfloat16),
    ):
        assert digest(changed) != digest(program(one))


def test_what_an_array_of_the_code_holds_is_what_a_program_is() -> None:
    """Two tables of one shape are two programs; the same one, made anew, is one."""
    tables = [np.arange(8.0) * scale for scale in (1, 1, 2)]
    one, again, other = (
        digest(program_of(jax.make_jaxpr(lambda x, t=t: x * jnp.asarray(t))(jnp.zeros(8)))) for t in tables
    )
    assert one == again != other


def scattered(x: Any, o: Any, rows: Any) -> None:
    numbers = jax.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    found = jax.lax.scatter_add(x[...], jnp.zeros((3, 1), jnp.int32), jnp.ones((3, 128)), numbers)
    o[pl.ds(pl.program_id(0) * rows, 8), :] = found


@pytest.mark.parametrize(("rows", "verdict"), [(0, Verdict.PROVED), (1, Verdict.REFUTED)])
def test_a_record_is_judged_as_the_trace_is(tmp_path: Any, rows: int, verdict: Verdict) -> None:
    """An operation on arrays that nobody models loses its result, and leaves what memory does decided; a recorder
    that took arrays for references left it all unknown."""
    from layoutproof.pallas.from_jax.record import records_of
    from layoutproof.pallas.from_jax.trace import kernels_of
    from layoutproof.pallas.judge import judge
    from layoutproof.pallas.records import read_records

    shape = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    calls = kernels_of(pl.pallas_call(lambda x, o: scattered(x, o, rows), out_shape=shape, grid=(2,)), [shape])
    (tmp_path / "calls.jsonl").write_bytes(records_of(calls))
    sides = [calls, read_records(tmp_path / "calls.jsonl")]
    told = [[(f.question, f.subject, f.verdict, f.reason) for call in side for f in judge(call)] for side in sides]
    assert told[0] == told[1]
    assert min(found for question, _, found, _ in told[1] if question == "body_in_bounds") is verdict
