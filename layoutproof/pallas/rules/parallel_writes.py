"""Two programs that may run at the same time never write one element.

Why it matters: programs of a "parallel" grid dimension are spread over cores (on GPUs: all programs over blocks of
threads). Who writes last is chance, and an accumulation is lost; on one core, and in interpret mode, it looks right.
Refuted by: the smallest pair, `first` and `second`, indices of the parallel dimensions only, with the other grid
indices (and values read from tables, and offsets in the window) as `first_at`, `second_at`.
Example: output map (i) -> (0), grid 2, dimension_semantics ("parallel",): programs 0 and 1 both write block 0.
A dimension that vmap added is always parallel (jax/_src/pallas/mosaic/lowering.py, jax 0.10.2).
An output whose value is unused is reported as info.
Fix: make the dimension "arbitrary", or give every parallel program a block of its own and add up afterwards.
Incident: blocks of a grid on a GPU added up in one element, in one of JAX's own tests:
https://github.com/jax-ml/jax/pull/37183
Refuted:
    layoutproof ask parallel_writes '{kernel: {grid: [2], semantics: [parallel],
        outputs: [{name: o, array: "f32[8,128]", block: [8, 128], index: "(i) -> (0, 0)"}]}}'
Proved:
    layoutproof ask parallel_writes '{kernel: {grid: [2], semantics: [parallel],
        outputs: [{name: o, array: "f32[16,128]", block: [8, 128], index: "(i) -> (i, 0)"}]}}'
Limits: Windows; `body_races` is about other writes of the body, and about all of one for Triton that is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from layoutproof.core.claim import And, At, Claim, Equal, Formula, LexLess, PlacePredicate
from layoutproof.core.index_map import Index
from layoutproof.core.message import Template
from layoutproof.core.numbers import Numbers, Numeral
from layoutproof.core.result import Counterexample, Point, Verdict
from layoutproof.kernel.fixes import KernelFix, in_order
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, for_each_operand, undecided
from layoutproof.kernel.windows import consistent, program_map

NOT_PARALLEL = Template(
    "pallas.parallel_writes_not_parallel", "no dimension of the grid runs in parallel on a TPU{more}"
)
IN_BODY = Template("pallas.parallel_writes_in_body", "the body says what each program stores: body_races asks it")
BOTH_WRITE = Template(
    "pallas.parallel_writes_both_write",
    "{operand}: programs {programs} may run at the same time, and both write {written} {place}",
)
LOOK = Template("pallas.parallel_writes_look", "look at {dimension}, which does not choose the block of {operand}{who}")


TARGET = False


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per output with windows; none where nothing runs in parallel."""
    if not kernel.parallel() or kernel.in_body:
        return ()
    return for_each_operand((o for o in kernel.outputs if o.windowed), lambda operand: _of(kernel, operand))


def unasked(kernel: Kernel) -> Settled:
    """Where there is one program, nothing runs in parallel, or no block says what is written."""
    if all(extent == 1 for extent in kernel.grid):
        # there are no two programs
        return by_rule("")
    if kernel.in_body:
        return undecided(IN_BODY())
    if kernel.parallel():
        return undecided("no output has windows")
    more = "; on a GPU all do: ask for a target that is one, triton or mosaic_gpu" if kernel.plain else ""
    return undecided(NOT_PARALLEL(more))


def _of(kernel: Kernel, operand: Operand) -> Iterator[Obligation]:
    dims = kernel.parallel()
    written = "element" if any(block.kind in ("element", "bounded") for block in operand.block) else "block"
    m = program_map(kernel, operand, dims, elements=True)
    points = {"first": m.domain, "second": m.domain}
    replicas = ("first_at", "second_at") if m.replicas.extents else ("", "")
    if m.replicas.extents:
        points |= dict.fromkeys(replicas, m.replicas)
    first, second = At(m, "first", replicas[0]), At(m, "second", replicas[1])
    parts: tuple[Formula, ...] = (LexLess("first", "second"), Equal(first, second))
    parts += consistent(kernel, operand, [("first", replicas[0]), ("second", replicas[1])], dims, elements=True)
    if written == "element":
        # an overlap of windows outside of the array is dropped
        parts += (PlacePredicate((first,), lambda places, on: _inside(places[0], m.range.extents, on)),)

    def explain(at: Point, on: Numbers) -> str:
        place = m.place(at["first"], at.get("first_at", ()), on)
        pair = f"({', '.join(m.domain.names)}) = {at['first']} and {at['second']}"
        return BOTH_WRITE(operand.name, pair, written, place)

    def differ(at: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(d for d, a, b in zip(dims, at["first"], at["second"], strict=True) if a != b)

    def fixes(at: Counterexample) -> Iterator[KernelFix]:
        doubt = "of programs that write one element the last one decides what it is"
        yield from in_order(kernel, differ(at)[:1], doubt)
        idle = tuple(k for k in dims if all(kernel.grid_names[k] not in term.names() for term in operand.terms()))
        yield from in_order(kernel, idle, doubt)

    def hint(at: Point, on: Numbers) -> str:
        k = differ(at)[0]
        who = ": vmap made it parallel, so batch outside of the call" if k in kernel.vmapped else ""
        return LOOK(kernel.dimension(k), operand.name, who)

    severity = "error" if operand.live else "info"
    claim = Claim(points, And(parts), explain, hint=hint)
    # on a GPU a block is a pointer into the array, and programs share it to store different parts
    body = "programs share a block, and what each stores of it is in the kernel's body"
    leaves_open = {} if kernel.platform == "tpu" else {Verdict.REFUTED: body}
    yield Obligation(
        operand.name, claim, severity=severity, source=operand.source, leaves_open=leaves_open, fixes=fixes
    )


def _inside(place: Index, extents: Sequence[Numeral], on: Numbers) -> object:
    held: Any = True
    for entry, extent in zip(place, extents, strict=True):
        held = on.logical_and(held, on.logical_and(on.less(-1, entry), on.less(entry, on.size(extent))))
    return held
