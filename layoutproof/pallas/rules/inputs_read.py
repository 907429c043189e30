"""Every element of every input is in some program's window, so that no remainder is left out of the result.

Why it matters: `grid=(.., k // bk)` never reads the tail of the reduced dimension. Every block is in bounds, every
output is written, interpret mode shows no NaN, and the numbers are wrong: JAX's own matmul of f32[1024,1000] and
f32[1000,1024] at block 256 leaves 232 of 1000 products out of each sum.
Refuted by: the smallest `element` that no program reads. It is an error where the trailing remainder of a dimension,
what is left when its block divides it, is read by no program while all its other tiles are. It is a warning where the
last block alone is left out in another way: by an index map that chooses (`jnp.minimum(i, last - 1)`), or whole, by a
grid or a loop of the body that stops one block early. Other unread parts are info: a kernel may well need
only some blocks of an input (causal attention, every second block, block 0, the block before: `jnp.maximum(i - 1, 0)`).
A remainder of an input that shares its buffer with an output is a warning: unread elements keep their values.
An array that the body moves by manual DMA is read by its copies, pipelines among them; a window that is the whole
array by the loads of its parts: a loop of `n // step` steps leaves a remainder out, too. Other windows count as read
as a whole.
Not asked of inputs that tables or loaded values address, of parts that the body cut out of an array for a pipeline, and
of arrays that several pipelines have. An array that is given twice is read by either.
Example: array f32[1000], block 256, grid 1000 // 256 = 3: elements [768, 1000) are never read.
Source: JAX's page "Grids and BlockSpecs".
Fix: grid = pl.cdiv(array, block), and mask what the last block has too much.
Incident: JAX's own matmul of K = 300 at block 256 adds up 256 of 300 products: BUGS-FOUND.md.
Refuted:
    layoutproof ask inputs_read "f32[1000] blockspec (256,) (i) -> (i,) grid (3,)"
Proved:
    layoutproof ask inputs_read "f32[1000] blockspec (256,) (i) -> (i,) grid (4,)"
Limits: That a window holds an element, not that the body uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layoutproof.core.claim import And, At, Claim, Formula, PlacePredicate, SizeCondition, Uncovered
from layoutproof.core.errors import Undecided
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.message import Template, message_of
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.result import Point
from layoutproof.core.size import Extent, ceil_div, surely_less
from layoutproof.core.space import Space
from layoutproof.core.term import Term, every, fixed, reads, size_term
from layoutproof.kernel.fixes import uncovered
from layoutproof.kernel.kernel import Block, Kernel, Operand
from layoutproof.kernel.obligation import Obligation, Settled, for_each_operand, undecided
from layoutproof.kernel.windows import program_map
from layoutproof.pallas import problems
from layoutproof.pallas.body_reads import FEWEST, is_read_elsewhere, read_by_body

TAIL = Template(
    "pallas.inputs_read_tail", "no program reads {tail}, what is left behind its {many} whole block{plural}"
)
LOOK_AT_MAP = Template(
    "pallas.inputs_read_look_at_map", "look at what the index map of {operand} returns in dimension {dimension}: {term}"
)


TARGET = False
CHOICES = frozenset({"select", "min", "max"})
"""Operations with which an index map may leave blocks out on purpose, unless its grid falls short."""


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One per input whose windows alone say what is read of it, and one per input of which the body reads parts."""
    by_windows = for_each_operand((o for o in kernel.inputs if _told(o)), lambda operand: [_of(kernel, operand)])
    own = (o for o in kernel.inputs if not (o.unmodelled or is_read_elsewhere(kernel, o)))
    by_hand = for_each_operand(own, lambda operand: read_by_body(kernel, operand))
    return by_windows + by_hand


def unasked(kernel: Kernel) -> Settled:
    """Where no block says what is read."""
    return undecided("of no input the windows alone say what is read")


def _told(operand: Operand) -> bool:
    terms = (*operand.index, *(size for size in operand.sizes if size is not None))
    return operand.windowed and not operand.part and not reads(terms)


def _of(kernel: Kernel, operand: Operand) -> Obligation:
    m = program_map(kernel, operand, elements=True)
    named = "element" if any(b.kind in ("element", "bounded") for b in operand.block) else "block"

    def first(at: Point, on: Numbers) -> Point:
        pairs = zip(at[named], operand.block, strict=True)
        return {"element": tuple(int(b.start(v, on)) if b.kind == "blocked" else v for v, b in pairs)}

    def explain(at: Point, on: Numbers) -> str:
        return problems.UNREAD_ELEMENT(operand.name, list(first(at, on)["element"]))

    claim = Claim({named: m.range}, Uncovered(m, named), explain, shown=first)
    graver = tuple(_tails(kernel, operand))
    return Obligation(operand.name, claim, severity="info", source=operand.source, graver=graver)


def _tails(kernel: Kernel, operand: Operand) -> Iterator[Obligation]:
    """The questions whose violation is an error: the remainder of one dimension."""
    others = [o for o in kernel.inputs if o is not operand and _array(o) == _array(operand)]
    if not all(map(_told, others)):
        return
    # the last dimension first: the smallest element is in its remainder
    for d in reversed(range(len(operand.dims))):
        try:
            found = _tail(kernel, operand, d, others)
        except Undecided as reason:
            found = Obligation(operand.name, undecided(message_of(reason)), source=operand.source)
        if found is not None:
            yield found


def _array(operand: Operand) -> str:
    return operand.same_as or operand.name


def _tail(kernel: Kernel, operand: Operand, d: int, others: list[Operand]) -> Obligation | None:
    block, term = operand.block[d], operand.index[d]
    extent, size = fixed((operand.dims[d], block.size))
    valid = operand.sizes[d] if operand.sizes else None
    tiled = block.kind == "blocked" or (block.kind == "element" and not (block.low or block.high))
    tiled = tiled or (block.kind == "bounded" and valid is not None and valid.op == "int" and valid.args[0] == size)
    used = [name for name in kernel.grid_names if name in term.names()]
    if not tiled or not used or not surely_less(0, size):
        return None
    whole: Any = extent // size
    rest: Any = ceil_div(extent, size) - whole
    if whole == 0:
        return None
    short = any(kernel.grid[kernel.grid_names.index(name)] == whole for name in used)
    severity = "warning" if kernel.inputs.index(operand) in [a for a, _ in kernel.aliases] else "error"
    if (_ops(term) & CHOICES and not short) or (type(rest) is int and rest == 0):
        # `max(i - 1, 0)` reads the block before, and a clamp from above is meant to read the last one
        if block.kind != "blocked" or _ops(term) & CHOICES == {"max"}:
            return None
        if type(whole) is not int or type(rest) is not int or whole + rest < FEWEST:
            return None
        severity, whole, rest = "warning", whole + rest - 1, 1
    elif whole == 1 and not _goes_on(kernel, used, term, block):
        return None
    tile = term if block.kind == "blocked" else Term("//", term, size_term(size))
    box = Space(tuple(used), fixed(kernel.grid[kernel.grid_names.index(name)] for name in used))
    tiles = IndexMap(box, Space(("tile",), (whole,)), _placed(used, tile, 0))
    after = IndexMap(box, Space(("tail",), (rest,)), _placed(used, tile, whole))
    # sizes for which there is no whole tile have no remainder either
    some: tuple[Formula, ...] = (
        () if type(extent) is int else (SizeCondition(Term("<=", size_term(size), size_term(extent))),)
    )
    unread: Formula = Uncovered(after, "tail")

    def first(at: Point, on: Numbers) -> Point:
        return {
            "element": tuple(int(on.size(whole) * on.size(size)) if k == d else 0 for k in range(len(operand.dims)))
        }

    def explain(at: Point, on: Numbers) -> str:
        start, many = first(at, on)["element"][d], int(on.size(whole))
        tail = f"elements {start}:{on.size(extent)} of dimension {d} of {operand.name}"
        return TAIL(tail, many, "s" if many > 1 else "")

    beside = [Claim({"tile": tiles.range}, Uncovered(tiles, "tile"))]
    beside += [_no_other(kernel, other, d, whole * size, extent) for other in others]
    if block.kind != "blocked":
        beside.append(_aligned(kernel, operand, d, size))
    return Obligation(
        operand.name,
        Claim(
            {"tail": after.range},
            And((unread, *some)) if some else unread,
            explain,
            hint=lambda at, on: LOOK_AT_MAP(operand.name, d, term),
            shown=first,
            provided=tuple(beside),
        ),
        severity=severity,
        source=operand.source,
        fixes=lambda at: uncovered(kernel, operand, d),
    )


def _goes_on(kernel: Kernel, used: list[str], term: Term, block: Block) -> bool:
    """Whether one more program along some grid dimension would read the second tile: of one tile that tells the cause.

    `2 * i` with one program reads tile 0, and would never read tile 1.
    """
    ends = {name: kernel.grid[kernel.grid_names.index(name)] for name in used}
    if not all(type(extent) is int for extent in ends.values()):
        return True
    second = 1 if block.kind == "blocked" else block.size
    return any(term.evaluate({**dict.fromkeys(used, 0), name: ends[name]}, INTS) == second for name in used)


def _placed(names: list[str], tile: Term, behind: Extent) -> Any:
    def place(at: Index, replica: Index, on: Numbers) -> Index:
        value = tile.evaluate(dict(zip(names, at, strict=True)), on)
        return (value - on.size(behind),)

    return place


def _no_other(kernel: Kernel, other: Operand, d: int, start: Extent, end: Extent) -> Claim:
    """No program reads an element from `start` on through another operand of the same array."""
    m, block = program_map(kernel, other), other.block[d]

    def seen(places: tuple[Index, ...], on: Numbers) -> object:
        begin = block.start(places[0][d], on)
        return on.logical_and(on.less(on.size(start), begin + on.size(block.size)), on.less(begin, on.size(end)))

    return Claim({"program": m.domain}, PlacePredicate((At(m, "program"),), seen))


def _aligned(kernel: Kernel, operand: Operand, d: int, size: Extent) -> Claim:
    """All windows start at multiples of their size, as blocks do."""
    m = program_map(kernel, operand)

    def odd(places: tuple[Index, ...], on: Numbers) -> object:
        return on.logical_not(on.equal(places[0][d] % on.size(size), 0))

    return Claim({"program": m.domain}, PlacePredicate((At(m, "program"),), odd))


def _ops(term: Term) -> frozenset[str]:
    return frozenset(part.op for part in every(term) if part.op not in ("int", "name"))
