"""No block of an aliased input is fetched while an overlapping output block still waits to be written back.

Why it matters: the pipeline fetches inputs ahead and writes outputs back one step late. With aliased buffers a program
may then read what was there before the program that should have written it; which of the two it sees is a race. So is
what a program reads that another core writes.
Refuted by: the smallest programs `writer` and `reader`: the block that the writer leaves overlaps the one that the
reader begins, and between them lie no more steps than the input has buffers. Or they differ in a parallel dimension
and their blocks share an element: their order is not defined. The values that they read from tables are shown too.
The rule, w the last step of the writer's visit, r the first of the reader's: hazard iff 1 <= r - w <= buffers of the
input. Measured with JAX's TPU interpreter (its race detector, eager and late copies) for 1 to 3 buffers and distances
1 to 5; assumed for the compiler's own pipeline, which was not run, for want of a TPU. Reading before writing (r < w)
is no hazard, but for programs of a parallel dimension.
On a GPU all programs are parallel, and what each stores of its block is in the kernel's body: no proof, then unknown.
Example: grid 4, input index i -> i, output index i -> i + 1 in one buffer: program 1 needs what program 0 has just
written.
Fix: read and write the same block in one program, or do without the alias.

How it is proved: where both sides have one index map and one block, and no block is visited twice (see `revisits`), a
block that is written is read by its own program alone.
Incident: wrong values with `input_output_aliases`, on a TPU only: https://github.com/jax-ml/jax/issues/24023
Refuted:
    layoutproof ask alias_hazard '{kernel: {grid: [4], aliases: {x: o},
        inputs: [{name: x, array: "f32[40,128]", block: [8, 128], index: "(i) -> (i, 0)"}],
        outputs: [{name: o, array: "f32[40,128]", block: [8, 128], index: "(i) -> (i + 1, 0)"}]}}'
Proved:
    layoutproof ask alias_hazard '{kernel: {grid: [5], aliases: {x: o},
        inputs: [{name: x, array: "f32[40,128]", block: [8, 128], index: "(i) -> (i, 0)"}],
        outputs: [{name: o, array: "f32[40,128]", block: [8, 128], index: "(i) -> (i, 0)"}]}}'
Limits: The pipeline's own copies; `dma_order` and `body_races` are about a body's accesses to HBM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.core.claim import And, At, Claim, PlacePredicate
from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.index_map import Index, IndexMap, from_row_major, row_major
from layoutproof.core.message import Template, message_of
from layoutproof.core.numbers import Numbers, Numeral
from layoutproof.core.result import Point, Verdict
from layoutproof.core.size import product
from layoutproof.core.space import Space
from layoutproof.core.term import Term, fixed, reads
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, undecided
from layoutproof.kernel.windows import consistency_constraints, terms_map
from layoutproof.pallas.rules.revisits import leading_claim

TABLE_SHARES = Template(
    "pallas.alias_hazard_table_shares",
    "a table shares its buffer with an output: when reads see what was written is not modelled",
)
IN_THE_BODY = Template(
    "pallas.alias_hazard_in_the_body", "what each program stores of its block is in the kernel's body"
)
AT_ONCE = Template(
    "pallas.alias_hazard_at_once",
    "programs {writer} and {reader} may run at the same time, and the one writes {block} of {output}, which the "
    "other reads through {operand}",
)
FETCHED_BEFORE = Template(
    "pallas.alias_hazard_fetched_before",
    "program {writer} writes {block} of {output}, and {steps} step(s) later program {reader} needs it through "
    "{operand}, which is fetched up to {buffers} steps before",
)


TARGET = False


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """Per aliased pair with windows on both sides: the pipeline's steps, and programs that run at the same time."""
    found: list[Obligation] = []
    inputs, outputs = kernel.inputs, kernel.outputs
    for position, result in kernel.aliases:
        if position < 0:
            said = TABLE_SHARES()
            found.append(Obligation(outputs[result].name, undecided(said)))
            continue
        operand, output = inputs[position], outputs[result]
        subject = f"{operand.name} -> {output.name}"
        if not (operand.windowed and output.windowed):
            continue
        try:
            if operand.unmodelled or output.unmodelled:
                raise Unsupported(operand.unmodelled or output.unmodelled)
            found += _of(_AliasedPair(kernel, operand, output), subject)
        except Undecided as reason:
            found.append(Obligation(subject, undecided(message_of(reason)), source=output.source))
    return tuple(found)


def unasked(kernel: Kernel) -> Settled:
    """Where nothing is shared."""
    return undecided("no input with windows shares its buffer with an output")


@dataclass(frozen=True, slots=True)
class _AliasedPair:
    kernel: Kernel
    operand: Operand
    output: Operand

    @property
    def buffers(self) -> int:
        return self.operand.buffers or 2

    def seen(self, operand: Operand) -> IndexMap:
        """Program -> itself, then what the index map returns: indices, then sizes of bounded slices."""
        own = [Term("name", name) for name in self.kernel.grid_names]
        return terms_map(self.kernel, operand, [*own, *operand.terms()])

    def block(self, place: Index) -> Index:
        return place[len(self.kernel.grid) :]

    def step(self, place: Index, on: Numbers) -> Any:
        return row_major(place[: len(self.kernel.grid)], fixed(self.kernel.grid), on)


def _of(pair: _AliasedPair, subject: str) -> Iterator[Obligation]:
    kernel, output = pair.kernel, pair.output
    if kernel.platform == "tpu":
        steps = _by_tables(pair) if reads((*pair.operand.terms(), *output.terms())) else _by_steps(pair)
        yield Obligation(subject, steps, source=output.source)
    if any(kernel.grid[k] != 1 for k in kernel.parallel()) and not kernel.in_body:
        stored = IN_THE_BODY()
        leaves_open = {} if kernel.platform == "tpu" else {Verdict.REFUTED: stored}
        yield Obligation(subject, _at_once(pair), source=output.source, leaves_open=leaves_open)


def _by_steps(pair: _AliasedPair) -> Claim:
    """Without tables a program tells what its neighbours do."""
    kernel, operand, output = pair.kernel, pair.operand, pair.output
    fetched, written = pair.seen(operand), pair.seen(output)
    grid = fixed(kernel.grid)
    steps: Any = product(grid)

    def beside(m: IndexMap, by: int) -> IndexMap:
        """step -> (what the step's index map returns, that of the step `by` later, the step)."""

        def place(index: Index, replica: Index, on: Numbers) -> Index:
            step = row_major(index, grid, on)
            here, there = (from_row_major(s, grid, on) for s in (step, step + by))
            return (*pair.block(m.place(here, (), on)), *pair.block(m.place(there, (), on)), step)

        return IndexMap(m.domain, Space(), place)

    writes, reads_ = beside(written, 1), beside(fetched, -1)

    def hazard(places: tuple[Index, ...], on: Numbers) -> object:
        (*w, leaving), (*r, entering) = places
        here, after = tuple(w[: len(w) // 2]), tuple(w[len(w) // 2 :])
        there, before = tuple(r[: len(r) // 2]), tuple(r[len(r) // 2 :])
        last = on.logical_or(on.equal(leaving, on.size(steps) - 1), _differ(here, after, on))
        first = on.logical_or(on.equal(entering, 0), _differ(there, before, on))
        near = _near(entering - leaving, pair.buffers, on)
        return on.logical_and(
            on.logical_and(near, on.logical_and(last, first)), _overlap(output, here, operand, there, on)
        )

    violation = PlacePredicate((At(writes, "writer"), At(reads_, "reader")), hazard)
    points = {"writer": written.domain, "reader": fetched.domain}
    return Claim(points, violation, _explained(pair), implied_by=_one_map(pair), hint=_hint)


def _by_tables(pair: _AliasedPair) -> Claim:
    """The claim where tables choose the blocks: the neighbours' reads are points of their own."""
    operand, output = pair.operand, pair.output
    fetched, written = pair.seen(operand), pair.seen(output)
    maps = {"writer": written, "reader": fetched, "next": written, "previous": fetched}
    points, replicas = _points(maps)

    def hazard(places: tuple[Index, ...], on: Numbers) -> object:
        leaving, entering, after, before = (pair.step(place, on) for place in places)
        here, there, next_, previous = map(pair.block, places)
        beside = on.logical_and(on.equal(after, leaving + 1), on.equal(before, entering - 1))
        moved = on.logical_and(_differ(here, next_, on), _differ(there, previous, on))
        near = on.logical_and(beside, _near(entering - leaving, pair.buffers, on))
        return on.logical_and(on.logical_and(near, moved), _overlap(output, here, operand, there, on))

    operands = {"writer": output, "reader": operand, "next": output, "previous": operand}
    consistency = consistency_constraints(pair.kernel, [(operands[name], name, replicas[name]) for name in maps])
    violation = PlacePredicate(tuple(At(m, name, replicas[name]) for name, m in maps.items()), hazard)
    return Claim(points, And((*consistency, violation)) if consistency else violation, _explained(pair), hint=_hint)


def _points(maps: Mapping[str, IndexMap]) -> tuple[dict[str, Space], dict[str, str]]:
    """(The points at which maps are asked, with their reads among them, the name of the point of reads of each or
    "")."""
    replicas = {name: f"{name}_reads" if m.replicas.extents else "" for name, m in maps.items()}
    points = {name: m.domain for name, m in maps.items()}
    return points | {replicas[name]: m.replicas for name, m in maps.items() if replicas[name]}, replicas


def _at_once(pair: _AliasedPair) -> Claim:
    """Programs that differ in a parallel dimension."""
    kernel, operand, output = pair.kernel, pair.operand, pair.output
    maps = {"writer": pair.seen(output), "reader": pair.seen(operand)}
    points, replicas = _points(maps)

    def shared(places: tuple[Index, ...], on: Numbers) -> object:
        writer, reader = places
        one, other = (tuple(place[k] for k in kernel.parallel()) for place in places)
        return on.logical_and(
            _differ(one, other, on), _overlap(output, pair.block(writer), operand, pair.block(reader), on)
        )

    def explain(at: Point, on: Numbers) -> str:
        return AT_ONCE(at["writer"], at["reader"], _shown(pair, output, at, "writer", on), output.name, operand.name)

    consistency = consistency_constraints(
        kernel, [(output, "writer", replicas["writer"]), (operand, "reader", replicas["reader"])]
    )
    violation = PlacePredicate(tuple(At(m, name, replicas[name]) for name, m in maps.items()), shared)
    return Claim(points, And((*consistency, violation)) if consistency else violation, explain, hint=_hint)


def _hint(at: Point, on: Numbers) -> str:
    return "look at the two index maps: a block is safe where the program that writes it is the one that reads it"


def _explained(pair: _AliasedPair) -> Any:
    def explain(at: Point, on: Numbers) -> str:
        grid = fixed(pair.kernel.grid)
        apart = row_major(at["reader"], grid, on) - row_major(at["writer"], grid, on)
        return FETCHED_BEFORE(
            at["writer"],
            _shown(pair, pair.output, at, "writer", on),
            pair.output.name,
            apart,
            at["reader"],
            pair.operand.name,
            pair.buffers,
        )

    return explain


def _shown(pair: _AliasedPair, operand: Operand, at: Point, name: str, on: Numbers) -> str:
    place = pair.block(pair.seen(operand).place(at[name], at.get(f"{name}_reads", ()), on))
    return f"block {place[: len(operand.dims)]}"


def _one_map(pair: _AliasedPair) -> Claim | None:
    operand, output = pair.operand, pair.output
    same = list(map(str, operand.index)) == list(map(str, output.index)) and operand.block == output.block
    # windows of Element dimensions may overlap although they start elsewhere
    apart = all(block.kind in ("blocked", "squeezed") for block in output.block)
    return leading_claim(pair.kernel, output) if same and apart else None


def _near(distance: Numeral, buffers: int, on: Numbers) -> object:
    return on.logical_and(on.less(0, distance), on.less(distance, buffers + 1))


def _differ(left: Index, right: Index, on: Numbers) -> object:
    held: Any = False
    for a, b in zip(left, right, strict=True):
        held = on.logical_or(held, on.logical_not(on.equal(a, b)))
    return held


def _overlap(first: Operand, one: Index, second: Operand, other: Index, on: Numbers) -> object:
    """Two windows of one array share an element of it."""
    held: Any = True
    windows = zip(first.block, _sides(first, one, on), second.block, _sides(second, other, on), strict=True)
    for d, (a, (start, end), b, (start_, end_)) in enumerate(windows):
        if a == b and a.kind in ("blocked", "squeezed"):
            # blocks of one size are one block or share nothing
            held = on.logical_and(held, on.equal(one[d], other[d]))
            continue
        extent = on.size(first.dims[d])
        held = on.logical_and(held, on.logical_and(on.less(start, end_), on.less(start_, end)))
        # an overlap outside of the array is harmless; intervals that meet in pairs have a point in common
        for begins, ends in ((start, end), (start_, end_)):
            held = on.logical_and(
                held, on.logical_and(on.less(begins, ends), on.logical_and(on.less(begins, extent), on.less(0, ends)))
            )
    return held


def _sides(operand: Operand, returned: Index, on: Numbers) -> list[tuple[Any, Any]]:
    """Where the window starts and ends in each dimension, in the array's coordinates."""
    sizes = iter(returned[len(operand.dims) :])
    given = operand.sizes or (None,) * len(operand.dims)
    found = []
    for block, value, size in zip(operand.block, returned, given, strict=False):
        start = block.start(value, on)
        found.append((start, start + (on.size(block.size) if size is None else next(sizes))))
    return found
