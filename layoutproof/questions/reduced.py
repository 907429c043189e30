"""The smallest sizes of a function's arguments at which its kernels have every kind of program that they have.

Kinds of programs are the first, a middle and the last one of each axis of a grid, and whether the last block is ragged;
likewise of loops. Block sizes are constants of the code and stay as they are, so sizes are tried, and what is traced at
them says whether they keep the kinds. Equal extents of the arguments are one dimension and stay equal, different ones
stay different where they can, and none becomes 1. Where an extent is a constant of the
code, too, the code is not written for another one, and it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from layoutproof.core.errors import LayoutError
from layoutproof.ir.program import Equation, Literal, Program, programs_in
from layoutproof.questions import problems
from layoutproof.values.meshes import PRIMITIVES as OVER_CORES
from layoutproof.values.points import MASKED
from layoutproof.values.work import MOST_STEPS, steps_of

LEAST = 3
"""First, middle, last."""
BLOCKS, TRIED = 4, 40
"""Blocks of one dimension at most, and sizes that are tried for one dimension."""
Dims = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Kinds:
    """Of one kernel or loop. extents: of its grid, -1 of what the running program says.

    operands: of each windowed array and each of its dimensions (extent of a block, of the array).
    """

    extents: tuple[int, ...]
    operands: tuple[Dims, ...] = ()

    def kept(self, other: Kinds) -> bool:
        """Whether the other one has all these kinds, and no more programs."""
        if len(self.extents) != len(other.extents) or len(self.operands) != len(other.operands):
            return False
        pairs = zip(self.extents, other.extents, strict=True)
        return all(min(n, LEAST) <= m <= n for n, m in pairs) and all(
            len(a) == len(b) and all(map(_alike, a, b)) for a, b in zip(self.operands, other.operands, strict=True)
        )


def _alike(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two dimensions are cut alike: whole, or into the same blocks, the last one whole or ragged."""
    if one[0] == one[1]:
        return other[0] == other[1]
    return one[0] == other[0] and (one[1] % one[0] == 0) == (other[1] % other[0] == 0)


def equations_in(program: Program) -> Iterator[Equation]:
    """The equations of a program, each before those of the programs inside of it."""
    for equation in program.eqns:
        yield equation
        for inner in programs_in(equation):
            yield from equations_in(inner)


def kinds_in(program: Program) -> list[Kinds]:
    """The kernels and the loops of a program, in order, with those inside of others."""
    found = []
    for equation in equations_in(program):
        if equation.primitive.name == "pallas_call":
            grid = equation.params["grid_mapping"]
            operands = tuple(
                tuple((extent, int(n)) for (_, extent, _), n in zip(w.block, w.aval.shape, strict=True))
                for w in grid.windows
            )
            found.append(Kinds(tuple(n if isinstance(n, int) else -1 for n in grid.extents), operands))
        elif equation.primitive.name == "scan":
            found.append(Kinds((int(equation.params["length"]),)))
    return found


def _constants(program: Program) -> set[float]:
    """The numbers that a program states, and the extents of what it makes."""
    found: set[float] = set()
    for equation in equations_in(program):
        found.update(n for v in equation.outvars for n in getattr(v.aval, "shape", ()) if isinstance(n, int))
        literals = (v.val for v in equation.invars if isinstance(v, Literal))
        found.update(float(x) for x in literals if getattr(x, "shape", ()) == () and _is_number(x))
    return found


def _of_all(programs: Sequence[Program]) -> set[float]:
    return {number for program in programs for number in _constants(program)}


def _is_number(x: object) -> bool:
    return getattr(getattr(x, "dtype", None), "kind", "f" if isinstance(x, int | float) else "") in ("i", "u", "f")


def _states(constants: set[float], extent: int) -> bool:
    """Whether an extent is among some constants, or what masks and means make of it."""
    near = 1e-6
    return any(abs(c - said) <= near * said for said in (extent, extent - 1, 1 / extent) for c in constants)


PLAIN = (0.0, 1.0, 2.0, 0.5)
"""Numbers of formulas, which are those of no size."""
POWERS = (1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
PARTS = sorted({a / b for a in (1, 2, 3, 4, 5, 6, 7, 8) for b in (1, 3, 5, 7)} | {2.0**k for k in range(-16, 17)})
"""The factors on a size where the code states a part of it, or its number of blocks."""


def explained(
    given: Sequence[Program],
    smaller: Sequence[Program],
    shapes: Sequence[tuple[int, ...]],
    small: Sequence[tuple[int, ...]],
) -> tuple[float, int] | None:
    """(A number of the programs, the given size that may explain it), None where there is none.

    given, smaller: the programs at the given shapes and at the small ones. A number computed from sizes differs between
    the two; a number that is the same in both, and a part, a multiple, a power or a root of a size that has changed,
    or of the product of two, may have been written for that size.
    """
    own = {float(b) for program in given for kinds in kinds_in(program) for dims in kinds.operands for b, _ in dims}
    own |= {float(n) for shape in small for n in shape}
    both = _of_all(given) & _of_all(smaller)
    pairs = zip(shapes, small, strict=True)
    sizes = sorted({n for one, other in pairs for n, m in zip(one, other, strict=True) if n != m})
    products = {a * b: a for a in sizes for b in sizes}
    for said in sorted(abs(c) for c in both if abs(c) < MASKED and abs(c) not in (*PLAIN, *own)):
        for size, of in {**products, **{n: n for n in sizes}}.items():
            made = (part * float(size) ** power for power in POWERS for part in PARTS)
            if any(abs(said - m - off) <= 1e-6 * m for m in made for off in (0, -1, 1) if off == 0 or m > 2):
                return said, of
    return None


def smallest(
    shapes: Sequence[tuple[int, ...]], fixed: set[int], traced: Callable[[list[tuple[int, ...]]], Sequence[Program]]
) -> tuple[list[tuple[int, ...]], str]:
    """(The shapes, why they are the given ones), found by replacing one extent after the other by smaller ones.

    fixed: extents that stay.  traced: the programs of the function and of its reference at some shapes; LayoutError
    where there are none, or they do not fit.
    """
    given = kinds_in(traced(list(shapes))[0])
    if not given:
        return list(shapes), problems.REDUCED_NOTHING_KEPT()
    blocks = {b for kinds in given for dims in kinds.operands for b, n in dims if 1 < b < n}
    chosen: dict[int, int] = {}
    for extent in sorted({n for shape in shapes for n in shape} - fixed, reverse=True):
        # two extents that are the same one say nothing of which is which
        for size in sorted(_sizes(extent, blocks), key=lambda n: n in chosen.values()):
            trial = {**chosen, extent: size}
            try:
                programs = traced(_at(shapes, trial))
            except LayoutError:
                continue
            if not _kept(given, kinds_in(programs[0])):
                continue
            stated = _of_all(programs)
            if not any(_states(stated, n) for n in trial if n not in trial.values()):
                chosen = trial
                break
    if not chosen:
        return list(shapes), (problems.REDUCED_NO_SMALLER())
    return _at(shapes, chosen), ""


def halved(
    shapes: Sequence[tuple[int, ...]],
    fixed: set[int],
    traced: Callable[[list[tuple[int, ...]]], Sequence[Program]],
) -> tuple[list[tuple[int, ...]], str]:
    """(The shapes, why they are the given ones), no smaller than a walk needs; every kind of program is kept.

    All extents from `PAIR` on that are even are halved, together where that can be traced, else one of them, until a
    walk takes no more than `MOST_STEPS`. So a multiple of another extent stays one, as far as it can.
    fixed, traced: as of `smallest`.
    """
    given = kinds_in(traced(list(shapes))[0])
    chosen: dict[int, int] = {}
    extents = sorted({n for shape in shapes for n in shape} - fixed, reverse=True)
    while max(map(work_of, traced(_at(shapes, chosen)))) > MOST_STEPS:
        left = [n for n in extents if (m := chosen.get(n, n)) >= 2 * PAIR and m % 2 == 0]
        for those in (left, *([n] for n in left)):
            trial = {**chosen, **{n: chosen.get(n, n) // 2 for n in those}}
            try:
                programs = traced(_at(shapes, trial))
            except LayoutError:
                continue
            stated = _of_all(programs)
            kept = _kept(given, kinds_in(programs[0]))
            if those and kept and not any(_states(stated, n) for n in trial if n not in trial.values()):
                chosen = trial
                break
        else:
            return list(shapes), problems.HALVED_TOO_LARGE()
    return _at(shapes, chosen), "" if chosen else problems.HALVED_SMALL_ENOUGH()


def _kept(given: Sequence[Kinds], found: Sequence[Kinds]) -> bool:
    """Whether smaller programs have all kinds of the given ones."""
    return len(found) == len(given) and all(a.kept(b) for a, b in zip(given, found, strict=True))


PAIR = 4
"""Extents are not halved below it: of fewer elements sums, means and maxima are special."""


def work_of(program: Program) -> int:
    """Steps that a walk over a program takes, about, as `steps_of` counts them."""
    total = 0
    for equation in program.eqns:
        inner = sum(map(work_of, programs_in(equation)))
        if equation.primitive.name in OVER_CORES:
            meshes, bodies = equation.params["meshes"], equation.params["jaxprs"]
            each = zip(meshes, bodies, strict=True)
            inner = sum(work_of(body) * prod(n for _, n in axes) for (_, axes), body in each)
        elif equation.primitive.name == "scan":
            inner *= int(equation.params["length"])
        elif equation.primitive.name == "pallas_call":
            inner *= prod(n for n in equation.params["grid_mapping"].extents if isinstance(n, int))
        elif equation.primitive.name == "partitioned":
            inner *= int(equation.params["devices"])
        total += inner + steps_of(equation)
    return total


def _at(shapes: Sequence[tuple[int, ...]], chosen: Mapping[int, int]) -> list[tuple[int, ...]]:
    return [tuple(chosen.get(n, n) for n in shape) for shape in shapes]


def _sizes(extent: int, blocks: set[int]) -> list[int]:
    """Smaller sizes, in order: as far beyond some blocks as the extent is, and ragged of the same blocks."""
    near = {k * b + extent % b for b in {*blocks, 1} for k in range(BLOCKS + 1)} | {extent >> k for k in range(1, 12)}
    cut = [b for b in blocks if b < extent]
    # of one element any index is the right one
    found = [n for n in near if 1 < n < extent and all((n % b == 0) == (extent % b == 0) for b in cut)]
    return sorted(found)[:TRIED]
