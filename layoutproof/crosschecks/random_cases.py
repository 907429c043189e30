"""Cases at random, from a seed: layouts of every language, and kernels. The same seed gives the same cases for ever."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from layoutproof.crosschecks.case import Case, layout_case

PACKED = (("s4", 4), ("u4", 4), ("u2", 2), ("s1", 1), ("u1", 1), ("pred", 1))
"""Element types, and the bits that an element takes where several share a byte."""


def random_cases(count: int, seed: int) -> Iterator[Case]:
    """So many cases, the languages in turn.

    >>> [str(case) for case in random_cases(2, 0)]
    ['s8[5,3]{1,0:T(2,*,4)L(8)}', 'bf16[4] strides (-1)']
    """
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        yield layout_case(TURNS[number % len(TURNS)](rng), f"seed {seed} number {number}")


def xla(rng: random.Random) -> str:
    """XLA's tiled layouts: any order, up to three levels of tiles, combined dimensions, tail alignment, packed bits."""
    dims = _shape(rng, 0, 4)
    order = rng.sample(range(len(dims)), len(dims))
    levels = rng.choice((0, 1, 1, 1, 2, 2, 3))
    tiles = []
    for _ in range(levels):
        outer = [rng.choice(("1", "2", "3", "4", "8", "*")) for _ in range(rng.randint(0, 2))]
        tiles.append(f"({','.join([*outer, rng.choice(('1', '2', '4', '5', '8'))])})")
    props = "T" + "".join(tiles) if tiles else ""
    element = rng.choice(("f32", "bf16", "s8", "pred", "f64", "s4"))
    element, bits = rng.choice(PACKED) if element == "s4" else (element, 0)
    props += f"L({rng.choice((3, 8))})" if tiles and rng.random() < 0.1 else ""
    props += f"E({bits})" if bits and dims else ""
    if not dims and not props:
        return f"{element}[]"
    return f"{element}[{_list(dims)}]{{{_list(order)}{':' if props else ''}{props}}}"


def tpu(rng: random.Random) -> str:
    """The layout that the TPU compiler gives a random shape."""
    from layoutproof.registry.defaults import tpu_default

    element = rng.choice(("f32", "bf16", "s8", "s4", "pred"))
    dims = [rng.choice((1, 2, 3, 5, 8, 16, 40, 100, 128, 130, 256)) for _ in range(rng.randint(1, 3))]
    while prod(dims) > 1 << 14:
        dims[rng.randrange(len(dims))] = rng.choice((1, 2, 8))
    return str(tpu_default(f"{element}[{_list(dims)}]", rng.choice(("v2", "v5e", "7x"))))


def strided(rng: random.Random) -> str:
    """Strides by hand: zero, negative, overlapping."""
    dims = _shape(rng, 0, 3)
    strides = [rng.choice((0, 1, 1, 2, 3, 4, 5, 8, -1, -3, 12)) for _ in dims]
    start = f" offset {rng.randint(30, 60)}" if rng.random() < 0.3 else ""
    return f"{rng.choice(('f32', 's8', 'bf16'))}[{_list(dims)}] strides ({_list(strides)}){start}"


def cute(rng: random.Random) -> str:
    """Nested modes, first leaf fastest, with swizzles."""
    modes = [
        [(rng.randint(1, 4), rng.choice((0, 1, 1, 2, 3, 4, 8, 16))) for _ in range(rng.randint(1, 3))]
        for _ in range(rng.randint(1, 3))
    ]
    shape, stride = ("(" + ",".join(_mode([leaf[k] for leaf in mode]) for mode in modes) + ")" for k in (0, 1))
    shift = rng.randint(-3, 3)
    swizzle = f"Sw<{rng.randint(0, abs(shift))},{rng.randint(0, 2)},{shift}> o 0 o " if rng.random() < 0.4 else ""
    return f"{swizzle}{shape}:{stride}"


def axe(rng: random.Random) -> str:
    """Digits on two axes, replicas, offsets; a swizzle of addresses where there is one axis."""
    swizzled = rng.random() < 0.3
    axes, strides = ("m", (0, 1, 2, 3, 4, 8)) if swizzled else ("mmw", (0, 1, 1, 2, 3, 4, 6, 8, -1, -2))

    def iters(letter: str, low: int, high: int) -> str:
        found = [(rng.randint(1, 5), rng.choice(strides), rng.choice(axes)) for _ in range(rng.randint(low, high))]
        extents, steps = _list([e for e, _, _ in found]), ",".join(f"{s}@{a}" for _, s, a in found)
        return f"{letter}[({extents}):({steps})]" if found else ""

    parts = [iters("S", 1, 4), *filter(None, [iters("R", 0, 2)])]
    parts += [f"{rng.randint(0, 5)}@{rng.choice(axes)}"] if rng.random() < 0.4 else []
    atom = rng.randint(0, 3)
    mixing = f" swizzle ({rng.randint(0, 2)},{rng.randint(0, atom)},{atom})" if swizzled else ""
    return " + ".join(parts) + mixing


def linear(rng: random.Random) -> str:
    """Bases over exclusive or: permuted bits, some zero, some of several bits."""
    outs = [(f"dim{k}", rng.randint(1, 4)) for k in range(rng.randint(1, 2))]
    lines = []
    for name in ("register", "lane", "warp")[: rng.randint(1, 3)]:
        count = rng.randint(0, 3)
        for b in range(count):
            lines.append(f"{name}={1 << b} -> ({_list([rng.randrange(1 << width) for _, width in outs])})")
        lines += [] if count else [f"{name} is a size 1 dimension"]
    sizes = ", ".join(f"{name} (size {1 << width})" for name, width in outs)
    return "; ".join([*lines, f"where out dims are: [{sizes}]"])


def written_map(rng: random.Random) -> str:
    """A user's map: sums, products with numbers, // % min max select."""
    dims = _shape(rng, 1, 3, 200)
    names = "ijk"[: len(dims)]
    terms = [_term(rng, names, 2) for _ in range(rng.randint(1, 3))]
    bounds = ", ".join(f"{n} < {e}" for n, e in zip(names, dims, strict=True))
    return f"({bounds}) -> ({', '.join(terms)}{',' if len(terms) == 1 else ''})"


def sharding(rng: random.Random) -> str:
    """An array over up to eight devices, mostly evenly: tiles with subgroups, or a mesh."""
    count = rng.choice((2, 3, 4, 6, 8, 8))
    sizes = _factors(rng, count)
    rank = rng.randint(1, 3)
    devices = list(range(count))
    rng.shuffle(devices)
    dims = [rng.choice((1, 2, 3)) for _ in range(rank)]
    if rng.random() < 0.5:
        tiles = [1] * rank
        for size in sizes:
            tiles[rng.randrange(rank)] *= size
        group = rng.choice((1, 1, 2)) if count % 2 == 0 and tiles[0] % 2 == 0 else 1
        tiles[0] //= group
        turned = rng.sample(range(len(sizes)), len(sizes))
        of = f"<=[{_list(sizes)}]T({_list(turned)})" if len(sizes) > 1 else f"<=[{count}]"
        of = _list(devices) if rng.random() < 0.3 else of
        tail = " last_tile_dim_replicate" if group > 1 else ""
        text = f"{{devices=[{_list([*tiles, *([group] if group > 1 else [])])}]{of}{tail}}}"
    else:
        names = "abc"[: len(sizes)]
        held: list[list[int]] = [[] for _ in range(rank)]
        for k in rng.sample(range(len(sizes)), len(sizes)):
            where = rng.randrange(rank + 1)
            if where < rank:
                held[where].append(k)
        tiles = [prod(sizes[k] for k in axes) for axes in held]
        mesh = ",".join(f"'{n}'={s}" for n, s in zip(names, sizes, strict=True))
        order = f", device_ids=({_list(devices)})" if devices != sorted(devices) and rng.random() < 0.4 else ""
        shown = ", ".join("{" + ", ".join(f"'{names[k]}'" for k in axes) + "}" for axes in held)
        text = f"{{mesh[{mesh}]{order}, [{shown}]}}"
    uneven = rng.random() < 0.2
    extents = [d * t + (rng.randint(0, 2) if uneven else 0) for d, t in zip(dims, tiles, strict=True)]
    return f"f32[{_list(extents)}] sharded {text}" + (f" on {count} devices" if "devices=" not in text else "")


def block(rng: random.Random) -> str:
    """One operand of a kernel: blocks that stay in the array, or reach over its end."""
    grid = [rng.randint(1, 4) for _ in range(rng.randint(1, 2))]
    names = "ij"[: len(grid)]
    dims, sizes, index = [], [], []
    for _ in range(rng.randint(1, 3)):
        extent = rng.randint(1, 9)
        kind = rng.choice(("blocked", "blocked", "squeezed"))
        size = rng.randint(1, 4)
        last = -(-extent // size) - 1 if kind == "blocked" else extent - 1
        dims.append(extent)
        sizes.append(str(size) if kind == "blocked" else "None")
        index.append(f"min(max({_term(rng, names, 1)}, 0), {last})")
    comma = "," if len(sizes) == 1 else ""
    role = rng.choice(("", " out"))
    shown = f"({', '.join(names)}) -> ({', '.join(index)}{comma})"
    return f"s32[{_list(dims)}] blockspec ({', '.join(sizes)}{comma}) {shown} grid ({_list(grid)}){role}"


def kernel(rng: random.Random) -> dict[str, object]:
    """A kernel with an input and an output, perhaps with programs that may run at once."""
    grid = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
    names = "ijk"[: len(grid)]

    def operand(name: str) -> dict[str, object]:
        dims, sizes, index = [], [], []
        for _ in range(rng.randint(1, 2)):
            extent, size = rng.randint(1, 9), rng.randint(1, 5)
            squeezed = rng.random() < 0.2
            last = extent - 1 if squeezed else -(-extent // size) - 1
            dims.append(extent)
            sizes.append(None if squeezed else size)
            index.append(f"min(max({_term(rng, names, 1)}, 0), {last})")
        comma = "," if len(index) == 1 else ""
        shown = f"({', '.join(names)}{',' if len(names) == 1 else ''}) -> ({', '.join(index)}{comma})"
        return {"name": name, "array": f"s32[{_list(dims)}]", "block": sizes, "index": shown}

    semantics = ["parallel" if rng.random() < 0.5 else "arbitrary" for _ in grid]
    first = semantics.index("arbitrary") if "arbitrary" in semantics else len(grid)
    # parallel dimensions come first, as the interpreter demands
    semantics = [word if k < first else "arbitrary" for k, word in enumerate(semantics)]
    named = dict(zip(names, grid, strict=True))
    return {"kernel": {"grid": named, "inputs": [operand("x")], "outputs": [operand("o")], "semantics": semantics}}


def _shape(rng: random.Random, low: int, high: int, most: int = 2000) -> list[int]:
    dims = [rng.randint(1, 9) for _ in range(rng.randint(low, high))]
    while prod(dims) > most:
        dims[rng.randrange(len(dims))] = rng.randint(1, 3)
    return dims


def _term(rng: random.Random, names: Sequence[str], depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*names, *names, str(rng.randint(0, 9))])
    left, right = _term(rng, names, depth - 1), _term(rng, names, depth - 1)
    match rng.choice("+-*/%ms"):
        case "/":
            return f"({left}) // {rng.randint(1, 6)}"
        case "%":
            return f"({left}) % {rng.randint(1, 7)}"
        case "*":
            return f"({left}) * {rng.randint(-2, 4)}"
        case "m":
            return f"{rng.choice(('min', 'max'))}({left}, {right})"
        case "s":
            return f"select({left} {rng.choice(('<', '<=', '=='))} {rng.randint(-1, 7)}, {right}, {left})"
        case sign:
            return f"({left}) {sign} ({right})"


def _factors(rng: random.Random, number: int) -> list[int]:
    found = []
    while number > 1:
        found.append(rng.choice([k for k in range(2, number + 1) if number % k == 0]))
        number //= found[-1]
    return found[:3] if len(found) <= 3 else found or [1]


def _mode(leaves: Sequence[int]) -> str:
    return str(leaves[0]) if len(leaves) == 1 else f"({_list(leaves)})"


def _list(numbers: Sequence[object]) -> str:
    return ",".join(map(str, numbers))


LANGUAGES: Mapping[str, Callable[[random.Random], Any]] = {
    "xla": xla,
    "tpu": tpu,
    "strided": strided,
    "cute": cute,
    "axe": axe,
    "linear": linear,
    "map": written_map,
    "sharding": sharding,
    "blockspec": block,
    "kernel": kernel,
}
"""One case of each kind, as `read_layout` takes it."""

_ROUND = (
    *("xla", "strided", "cute", "axe", "linear", "map", "sharding", "tpu", "blockspec"),
    *("xla", "sharding", "cute", "axe", "xla", "map", "sharding", "tpu", "linear", "xla"),
)
TURNS = tuple(LANGUAGES[name] for name in (*_ROUND, *_ROUND, "kernel"))
"""A kernel takes as long to run as dozens of layouts, so there are fewer."""
