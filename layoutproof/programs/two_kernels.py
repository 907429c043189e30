"""Whether a Pallas kernel computes what it computed: two records of it, walked over at the same points.

A record has all that is read of a call, its body too (`pallas.records`), and nothing of the code that it came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Verdict
from layoutproof.core.term import every
from layoutproof.from_hlo.kernels import in_numpy
from layoutproof.from_hlo.shapes import dtype_of
from layoutproof.ir.program import Array, Dimension, Equation, Grid, Program, Variable, Window, primitive
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.pallas.records import KernelRecord
from layoutproof.programs import problems
from layoutproof.programs.differing import elements_differ
from layoutproof.programs.functions import Computed, attempted
from layoutproof.programs.same_source import difference, misfit
from layoutproof.questions.reduced import work_of
from layoutproof.values.pair import Input
from layoutproof.values.parting import parting
from layoutproof.values.walk import Prepared
from layoutproof.values.work import MOST_STEPS

if TYPE_CHECKING:
    from jax.typing import ArrayLike

NAMES = ("the new record", "the old record")


def computed(old: KernelRecord, new: KernelRecord) -> Computed:
    """The comparison of the values of two records of a call. It never raises: a failed comparison is unknown."""
    return attempted(lambda: _computed(old, new))


def _computed(old: KernelRecord, new: KernelRecord) -> Computed:
    (ours, inputs), (before, _) = (_program(of, name) for of, name in zip((new, old), NAMES, strict=True))
    if odd := misfit(ours, before, range(len(before.invars)), NAMES):
        return Computed("unknown", odd)
    work = max(map(work_of, (ours, before)))
    if work > MOST_STEPS:
        return Computed("unknown", problems.TOO_MANY_STEPS(work, MOST_STEPS))
    found, _ = difference((ours, before), inputs, Prepared(foreign=True), NAMES)
    if found.verdict is Verdict.SAMPLED:
        return Computed("same", "", found.points, "points", notes=found.drawn)
    witness = found.witness
    if found.verdict is not Verdict.REFUTED or witness is None:
        return Computed("unknown", found.reason, place=found.place)
    here, there = parting((ours, before), inputs, witness.output)
    outputs = [o.name for o in _kernel(new, NAMES[0]).operands if o.role == "out"]
    name = outputs[witness.output]
    return Computed(
        "other", elements_differ(name, witness, witness.index),
        found.points, "float64", name, here, there, notes=found.drawn, digest=new.body, digest_before=old.body,
        figures={"different": witness.different, "elements": witness.of},
    )  # fmt: skip


def _kernel(record: KernelRecord, name: str) -> Kernel:
    """The kernel of a record. LayoutError where there is none, or one that says more than a walk knows."""
    of = record.call
    if not isinstance(of, Kernel):
        raise LayoutError(problems.CALL_NOT_MODELLED(name, of.reason))
    for odd, what in (
        (of.pipeline != "pallas_call", "is of a pipeline in a body, whose arrays are the body's"),
        (bool(of.axes), "is of a kernel on a mesh of devices"),
        (any(type(n) is not int for n in of.grid), "has a grid that only the running program knows"),
        (any(type(n) is not int for o in of.operands for n in o.dims), "has sizes that are names"),
        (any(any(size is not None for size in o.sizes) for o in of.operands), "has blocks of bounded sizes"),
        (any(o.unmodelled for o in of.operands), "has an index map beyond the model"),
        (any(p.op == "read" for o in of.operands for p in every(*o.index)), "has blocks that a table chooses"),
        (record.program is None, "has no body"),
    ):
        if odd:
            raise LayoutError(f"{name} {what}")
    return of


def _program(record: KernelRecord, name: str) -> tuple[Program, list[Input]]:
    """The call of a record as a program of its arrays, and what is drawn for these."""
    of = _kernel(record, name)
    assert record.program is not None
    body = in_numpy(record.program())
    inputs = [o for o in of.operands if o.role == "in"]
    outputs = [o for o in of.operands if o.role == "out"]
    tables = len(of.tables)
    scratch = tuple(v.aval for v in body.invars[tables + len(of.operands) :])
    windows = tuple(Window(_block(o), _map(of, o), _array(o.dims, o.dtype), o.memory) for o in of.operands)
    counted = tuple(k for k in range(len(of.grid)) if k not in of.vmapped)
    grid = Grid(tuple(of.grid), 0, tables, len(inputs), windows, scratch, counted)
    given: dict[str, Variable] = {}
    for each in of.tables:
        given[each.name] = Variable(_array(each.dims, each.dtype))
    for operand in inputs:
        # one array may be given twice
        given[operand.name] = given.get(operand.same_as) or Variable(_array(operand.dims, operand.dtype))
    results = tuple(Variable(_array(o.dims, o.dtype)) for o in outputs)
    params = {
        "grid_mapping": grid, "jaxpr": body, "compiler_params": None,
        "input_output_aliases": tuple((a + tables, b) for a, b in of.aliases),
    }  # fmt: skip
    call = Equation(primitive("pallas_call"), tuple(given.values()), results, params, of.source)
    arrays = {variable: name for name, variable in reversed(given.items())}
    invars = tuple(reversed(arrays))
    drawn = [Input(arrays[v], tuple(v.aval.shape), v.aval.dtype) for v in invars]
    return Program(invars, (call,), results), drawn


def _array(dims: Sequence[Any], dtype: str) -> Array:
    return Array(tuple(map(int, dims)), dtype_of(dtype))


def _block(of: Operand) -> tuple[Dimension, ...]:
    return tuple(Dimension(b.kind, int(b.size), int(b.low)) for b in of.block)


def _map(of: Kernel, operand: Operand) -> Program:
    """The index map of an operand, which a record has as terms, as a program of the grid's numbers."""
    import numpy as np

    whole = Array((), np.dtype(np.int32))
    ids = tuple(Variable(whole) for _ in of.grid)
    results = tuple(Variable(whole) for _ in operand.index)

    def compute(values: Sequence[ArrayLike]) -> list[ArrayLike]:
        names = dict(zip(of.grid_names, map(int, values), strict=True))
        return [np.int32(term.evaluate(names, INTS)) for term in operand.index]

    made = Equation(primitive("an index map"), ids, results, {}, operand.source, compute=compute)
    return Program(ids, (made,) if results else (), results)
