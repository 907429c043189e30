"""Every element of every output is in some program's block, so everything that the caller gets has been written.

Why it matters: an element that no program writes keeps the old contents of the memory. `grid=(n // b,)` leaves the tail
out in silence; interpret mode shows NaN for floats, hardware does not.
Refuted by: the smallest `block` (for Element and bounded windows: element) that no program has.
Example: array f32[1000], block 256, grid 3: block 3, elements [768, 1000), is never written.
Where a table chooses blocks, every value has to occur among the entries that programs read: `t is onto`, or of a grid
whose size only the running program knows `t[:grid1] is onto`. That is assumed, or follows from what else is: the table
begins with the least value, rises by one at most, and ends with the greatest, as the groups of a grouped product do
where none is empty (`offsets[i] < offsets[i + 1]`). Where a group may be empty, its rows are named, with such a table.
An output whose value is unused is reported as info. An aliased output keeps the input's values where nothing is
written, so a hole is a warning there. Whether the body stores into each block that it gets is asked by
`outputs_stored`; so is an output that several pipelines of a body write, or parts of it that the body cut out: one may
write what another leaves out.
Source: JAX's page "Grids and BlockSpecs".
Fix: grid = pl.cdiv(array, block) in every dimension.
Incident: a grid made from the wrong dimension left pieces of the result unwritten:
https://github.com/jax-ml/jax/issues/25379; others confirmed by running: BUGS-FOUND.md.
Refuted:
    layoutproof ask outputs_covered "f32[1000] blockspec (256,) (i) -> (i,) grid (3,) out"
Proved:
    layoutproof ask outputs_covered "f32[1000] blockspec (256,) (i) -> (i,) grid (4,) out"
Limits: That a program has the block, not that its body stores it (`outputs_stored`).
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutproof.core.claim import Claim, Uncovered
from layoutproof.core.message import Template, restated
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample, Point, Verdict
from layoutproof.kernel.fixes import KernelFix, uncovered
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, for_each_operand, undecided
from layoutproof.kernel.windows import reachable_blocks
from layoutproof.pallas.segments import covering, left_out, too_few
from layoutproof.solvers.decide import decide

UNWRITTEN = Template("pallas.outputs_covered_unwritten", "no program writes {operand}[{parts}] ({kind} {number})")
TOO_FEW = Template(
    "pallas.outputs_covered_too_few",
    "some block of {operand} is written by no program: {programs} programs choose theirs, and it has {blocks} blocks",
)
LOOK = Template(
    "pallas.outputs_covered_look",
    "look at the grid ({grid}), and at what the index map of {operand} returns, ({terms})",
)


TARGET = False


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per output whose windows alone say what is written of it."""
    return for_each_operand(
        (o for o in kernel.outputs if o.windowed and not o.part), lambda operand: _of(kernel, operand)
    )


def unasked(kernel: Kernel) -> Settled:
    """Where no block says what is written."""
    return undecided("no output has windows")


def _of(kernel: Kernel, operand: Operand) -> Iterator[Obligation]:
    m, open_ = reachable_blocks(covering(kernel, operand), operand)
    aliased = kernel.outputs.index(operand) in [out for _, out in kernel.aliases]
    severity = "info" if not operand.live else "warning" if aliased else "error"
    empty = left_out(kernel, operand) if Verdict.PROVED in open_ else ""
    if empty:
        depends, _, _ = open_[Verdict.PROVED].partition("; ")
        open_ = {Verdict.PROVED: restated(f"{depends}: {empty}", empty, which=depends)}
    named = "element" if any(b.kind in ("element", "bounded") for b in operand.block) else "block"

    def hole(at: Point, on: Numbers) -> str:
        parts = []
        for k, (entry, block) in enumerate(zip(at[named], operand.block, strict=True)):
            if block.kind != "blocked":
                parts.append(str(entry))
                continue
            start = block.start(entry, on)
            parts.append(f"{start}:{min(start + on.size(block.size), on.size(operand.dims[k]))}")
        return UNWRITTEN(operand.name, ", ".join(parts), named, at[named])

    def fixes(at: Counterexample) -> Iterator[KernelFix]:
        for dimension in range(len(operand.dims)):
            yield from uncovered(kernel, operand, dimension)

    def hint(at: Point, on: Numbers) -> str:
        return _look(kernel, operand)

    # all possible values of a table count at once: a place that is not reached so never is
    asked = Claim({named: m.range}, Uncovered(m, named), hole, hint=hint)
    few = too_few(kernel, operand) if Verdict.PROVED in open_ else None
    if few is not None and decide(asked).point is None:
        # no block is left out by every table, and tables choose which blocks are written, not how many
        claim = Settled(Verdict.REFUTED, TOO_FEW(operand.name, *few), _look(kernel, operand))
        yield Obligation(operand.name, claim, reads=False, severity=severity, source=operand.source)
        return
    yield Obligation(operand.name, asked, severity=severity, source=operand.source, leaves_open=open_, fixes=fixes)


def _look(kernel: Kernel, operand: Operand) -> str:
    return LOOK(", ".join(map(str, kernel.grid)), operand.name, ", ".join(map(str, operand.index)))
