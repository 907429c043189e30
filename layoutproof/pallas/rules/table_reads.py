"""Index maps read tables (scalar prefetch) only at indices that the tables have.

Why it matters: nothing checks such reads; past the end they give whatever scalar memory holds, and with it any block.
Refuted by: the smallest `program` that reads outside, with the values read from tables as `reads`.
Example: table t of 8 entries, grid 9, index (i) -> (t[i], 0).
Fix: let the table be as long as the grid, or clamp the index.
Incident: block ids past the end of a KV cache: https://github.com/vllm-project/tpu-inference/issues/2366
Refuted:
    layoutproof ask table_reads '{kernel: {grid: [9], tables: {t: {array: "s32[8]", assume: ["0 <= t < 5"]}},
        inputs: [{name: x, array: "f32[40,128]", block: [8, 128], index: "(i) -> (t[i], 0)"}]}}'
Proved:
    layoutproof ask table_reads '{kernel: {grid: [8], tables: {t: {array: "s32[8]", assume: ["0 <= t < 5"]}},
        inputs: [{name: x, array: "f32[40,128]", block: [8, 128], index: "(i) -> (t[i], 0)"}]}}'
Limits: Where tables are read, not what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutproof.core.claim import And, At, Claim, Outside
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point
from layoutproof.core.term import Term, fixed, reads
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, for_each_operand, undecided
from layoutproof.kernel.windows import consistent, terms_map

RANK = Template("pallas.table_reads_rank", "{read} has {indices} indices, and the table {dimensions} dimensions")
OUTSIDE = Template(
    "pallas.table_reads_outside",
    "{operand} at program {program}: reads {table} at {where}, and it has ({dims}) entries",
)


TARGET = False
READS = True


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per read in the index map of an operand with windows."""
    return for_each_operand((o for o in kernel.operands if o.windowed), lambda operand: _of(kernel, operand))


def unasked(kernel: Kernel) -> Settled:
    """Where no table is read."""
    return undecided("no index map reads a table")


def _of(kernel: Kernel, operand: Operand) -> Iterator[Obligation]:
    for read in reads((*operand.index, *(size for size in operand.sizes if size is not None))):
        yield _read(kernel, operand, read)


def _read(kernel: Kernel, operand: Operand, read: Term) -> Obligation:
    table = kernel.table(read.args[0].args[0])
    m = terms_map(kernel, operand, read.args[1:])
    if len(table.dims) != len(read.args) - 1:
        many = RANK(read, len(read.args) - 1, len(table.dims))
        return Obligation(operand.name, by_rule(many), source=operand.source)

    def explain(at: Point, on: Numbers) -> str:
        where = m.place(at["program"], at["reads"], on)
        dims = ", ".join(str(on.size(extent)) for extent in table.dims)
        return OUTSIDE(operand.name, at["program"], table.name, where, dims)

    outside = Outside(At(m, "program", "reads"), fixed(table.dims))
    consistency = consistent(kernel, operand, [("program", "reads")])
    claim = Claim(
        {"program": m.domain, "reads": m.replicas}, And((*consistency, outside)) if consistency else outside, explain
    )
    # a place that reads nothing is outside of the table whatever that holds
    return Obligation(operand.name, claim, reads=bool(reads(read.args[1:])), source=operand.source)
