"""An input that shares its buffer with an output is never fetched while the block that it needs is on its way out.

Why it matters: the pipeline fetches inputs ahead and writes outputs back one step late. With aliased buffers a program
may then read what was there before the program that should have written it; which of the two it sees is a race.
Refuted by: the smallest programs `writer` and `reader`: the block that the writer leaves overlaps the one that the
reader begins, and between them lie no more steps than the input has buffers.
The rule, w the last step of the writer's visit, r the first of the reader's: hazard iff 1 <= r - w <= buffers of the
input. Measured with JAX's TPU interpreter (its race detector, eager and late copies) for 1 to 3 buffers and distances
1 to 5; assumed for the compiler's own pipeline, which nobody could run without a TPU. Reading before writing (r < w)
is no hazard.
Example: grid 4, input index i -> i, output index i -> i + 1 in one buffer: program 1 needs what program 0 has just
written.
Mend: read and write the same block in one program, or do without the alias.

How it is proved: where both sides have one index map and one block, and no block is visited twice (see `revisits`), a
block that is written is read by its own program alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layoutproof.core.claim import At, Claim, When
from layoutproof.core.index_map import Index, IndexMap, from_row_major, row_major
from layoutproof.core.kernel import Kernel, Operand
from layoutproof.core.numbers import Numbers
from layoutproof.core.obligation import Obligation
from layoutproof.core.result import Point
from layoutproof.core.size import product
from layoutproof.core.space import Space
from layoutproof.core.term import reads
from layoutproof.core.windows import program_map

TARGET = False


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per aliased pair with windows on both sides."""
    if kernel.platform != "tpu":
        return ()
    found: list[Obligation] = []
    inputs, outputs = kernel.inputs, kernel.outputs
    for position, result in kernel.aliases:
        if position < 0:
            said = "a table shares its buffer with an output: when reads see what was written is not modelled"
            found.append(Obligation(outputs[result].name, unknown=said))
            continue
        operand, output = inputs[position], outputs[result]
        subject = f"{operand.name} -> {output.name}"
        if not (operand.windowed and output.windowed):
            continue
        if operand.unmodelled or output.unmodelled:
            found.append(Obligation(subject, unknown=operand.unmodelled or output.unmodelled))
        elif reads((*operand.index, *output.index)):
            found += _same_only(subject, operand, output)
        else:
            found += _of(kernel, operand, output, subject)
    return tuple(found)


def _same_only(subject: str, operand: Operand, output: Operand) -> Iterator[Obligation]:
    same = list(map(str, operand.index)) == list(map(str, output.index)) and operand.block == output.block
    said = (
        "" if same else "the two index maps differ and read tables: which steps touch one block depends on their values"
    )
    yield Obligation(subject, unknown=said, source=output.source)


def _of(kernel: Kernel, operand: Operand, output: Operand, subject: str) -> Iterator[Obligation]:
    buffers = operand.buffers or 2
    fetched, written = program_map(kernel, operand), program_map(kernel, output)
    steps: Any = product(kernel.grid)

    def beside(m: IndexMap, by: int) -> IndexMap:
        """step -> (window of the step, window of the step `by` later)."""

        def place(index: Index, copy: Index, on: Numbers) -> Index:
            sizes = tuple(on.size(extent) for extent in kernel.grid)
            here = from_row_major(row_major(index, kernel.grid, on), sizes, on)
            there = from_row_major(row_major(index, kernel.grid, on) + by, sizes, on)
            return (*m.place(here, (), on), *m.place(there, (), on), row_major(index, kernel.grid, on))

        return IndexMap(m.domain, Space(), place)

    rank = len(operand.dims)
    writes, reads_ = beside(written, 1), beside(fetched, -1)

    def hazard(places: tuple[Index, ...], on: Numbers) -> Any:
        w, r = places
        last = on.either(on.equal(w[-1], on.size(steps) - 1), _differ(w[:rank], w[rank:-1], on))
        first = on.either(on.equal(r[-1], 0), _differ(r[:rank], r[rank:-1], on))
        distance = r[-1] - w[-1]
        near = on.both(on.less(0, distance), on.less(distance, buffers + 1))
        return on.both(on.both(near, on.both(last, first)), _overlap(output, w[:rank], operand, r[:rank], on))

    def explain(at: Point, on: Numbers) -> str:
        block = written.place(at["writer"], (), on)
        apart = row_major(at["reader"], kernel.grid, on) - row_major(at["writer"], kernel.grid, on)
        return (
            f"program {at['writer']} writes block {block} of {output.name}, and {apart} step(s) later program "
            f"{at['reader']} needs it through {operand.name}, which is fetched up to {buffers} steps before"
        )

    claim = Claim(
        {"writer": written.domain, "reader": fetched.domain},
        When((At(writes, "writer"), At(reads_, "reader")), hazard),
        explain,
        implied_by=_one_map(kernel, operand, output),
    )
    yield Obligation(
        subject, claim, source=output.source, mend=lambda at, on: "read and write one block in one program"
    )


def _one_map(kernel: Kernel, operand: Operand, output: Operand) -> Claim | None:
    from layoutproof.properties.kernel.revisits import leading_claim

    same = list(map(str, operand.index)) == list(map(str, output.index)) and operand.block == output.block
    # windows of Element dimensions may overlap although they start elsewhere
    apart = all(block.kind in ("blocked", "squeezed") for block in output.block)
    return leading_claim(kernel, output) if same and apart else None


def _differ(left: Index, right: Index, on: Numbers) -> Any:
    held: Any = False
    for a, b in zip(left, right, strict=True):
        held = on.either(held, on.opposite(on.equal(a, b)))
    return held


def _overlap(first: Operand, start: Index, second: Operand, other: Index, on: Numbers) -> Any:
    held: Any = True
    for a, x, b, y in zip(first.block, start, second.block, other, strict=True):
        one = x * on.size(a.size) if a.kind == "blocked" else x - a.low
        two = y * on.size(b.size) if b.kind == "blocked" else y - b.low
        held = on.both(held, on.both(on.less(one, two + on.size(b.size)), on.less(two, one + on.size(a.size))))
    return held
