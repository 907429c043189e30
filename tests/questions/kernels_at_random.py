"""Small kernels at random, and what a literal walk over their grids says. Nothing here uses the product's maps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from layoutproof.core.expression import parse_map
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Block, Kernel, Operand, Table

NAMES = "ijk"


def operand(name: str, role: str, dims: tuple[int, ...], block: tuple[Block, ...], index: str) -> Operand:
    return Operand(name, role, dims, "f32", block, parse_map(index)[1])


def kernel(grid: tuple[int, ...], *operands: Operand, semantics: tuple[str, ...] = (), tables: tuple[Table, ...] = ()):
    return Kernel("k", grid, tuple(NAMES[: len(grid)]), operands, semantics=semantics, tables=tables)


def any_kernel(rng: random.Random, element: bool = False) -> Kernel:
    """One input and one output over a grid of up to three dimensions; indices are mostly right, often a bit wrong."""
    grid = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3)))
    semantics = tuple(rng.choice(("parallel", "arbitrary")) for _ in grid)
    operands = [any_operand(rng, name, role, grid, element) for name, role in (("x", "in"), ("o", "out"))]
    return kernel(grid, *operands, semantics=semantics)


def any_operand(rng: random.Random, name: str, role: str, grid: tuple[int, ...], element: bool) -> Operand:
    dims, block, index = [], [], []
    for _ in range(rng.randint(1, 2)):
        k = rng.randrange(len(grid))
        size = rng.randint(1, 3)
        term = any_term(rng, grid, k)
        kind = rng.choice(("blocked", "squeezed", "element") if element else ("blocked", "blocked", "squeezed"))
        if kind == "squeezed":
            size = 1
        if kind == "element":
            term = f"{size} * ({term})" if rng.random() < 0.7 else term
        block.append(Block(kind, size))
        dims.append(max(1, grid[k] * size - rng.randint(0, size) + (rng.random() < 0.1) * size))
        index.append(term)
    return operand(name, role, tuple(dims), tuple(block), f"({', '.join(NAMES[: len(grid)])}) -> ({', '.join(index)},)")


def any_term(rng: random.Random, grid: tuple[int, ...], k: int) -> str:
    i, j = NAMES[k], NAMES[rng.randrange(len(grid))]
    forms = [i] * 8 + [f"{grid[k] - 1} - {i}", f"{i} + 1", f"{i} - 1", "0", f"{i} // 2", f"{i} % 2", f"{i} + {j}"]
    forms += [f"min({i}, {j})", f"max({i} - 1, 0)", f"select({i} < {j}, {i}, {j})", f"2 * {i}"]
    return rng.choice(forms)


def programs(k: Kernel) -> Iterator[tuple[int, ...]]:
    """All programs in the order of a sequential grid."""
    return itertools.product(*(range(int(extent)) for extent in k.grid))


def value(term: Term, names: dict[str, int]) -> int:
    """A term on ints, written out once more."""
    op, args = term.op, term.args
    if op == "int":
        return int(args[0])
    if op == "name":
        return names[args[0]]
    a = [value(x, names) for x in args]
    simple = {"+": lambda: a[0] + a[1], "-": lambda: a[0] - a[1], "*": lambda: a[0] * a[1], "//": lambda: a[0] // a[1]}
    simple |= {"%": lambda: a[0] % a[1], "min": lambda: min(a), "max": lambda: max(a), "<": lambda: a[0] < a[1]}
    simple |= {"select": lambda: a[1] if a[0] else a[2]}
    return int(simple[op]())


def starts(k: Kernel, o: Operand, program: tuple[int, ...]) -> tuple[int, ...]:
    """The first element of the window in every dimension, without padding."""
    names = dict(zip(k.grid_names, program, strict=True))
    found = []
    for term, block in zip(o.index, o.block, strict=True):
        at = value(term, names)
        found.append(at * int(block.size) if block.kind == "blocked" else at)
    return tuple(found)


def window(k: Kernel, o: Operand, program: tuple[int, ...]) -> set[tuple[int, ...]]:
    """The elements of the array that the program's window holds."""
    sides = [
        [e for e in range(start, start + int(block.size)) if 0 <= e < int(extent)]
        for start, block, extent in zip(starts(k, o, program), o.block, o.dims, strict=True)
    ]
    return set(itertools.product(*sides))
