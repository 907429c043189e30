"""Random questions about small layouts of every language, and their answers by looking at every element.

A layout is drawn as its text and, beside it, as the rule that the language's own definition gives, written here on
plain ints. Nothing of the package's languages, properties or solvers is used for the answer: `tests.properties.places`
goes through the elements of a box. Extents may be size symbols; then the rule is asked at numbers for them.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.index_map import Index, IndexMap, Memory
from layoutproof.core.result import Verdict
from layoutproof.core.space import Space
from tests.layouts import shardings_at_random
from tests.properties import places

Sizes = Mapping[str, int]
Entry = int | str
"""An extent or stride: a number, or an expression over size symbols."""

MOST_PLACES = 160
"""Elements times replicas of a layout; pairs of them are looked at one by one."""
TYPES = {"f32": 32, "bf16": 16, "s8": 8}
SIZES = ("N", "M")


@dataclass(frozen=True)
class Drawn:
    """text: what is asked.  rule: the map at some sizes, from the definition.  symbols: the sizes it depends on.

    again: draws another layout of the same shape, for those with size symbols.
    """

    language: str
    text: Any
    rule: Callable[[Sizes], IndexMap]
    symbols: tuple[str, ...] = ()
    again: Callable[[random.Random], Drawn] | None = None


@dataclass(frozen=True)
class Question:
    """A property of one layout or of two, perhaps under a condition on sizes."""

    property: str
    layouts: tuple[Drawn, ...]
    where: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def symbols(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for layout in self.layouts for name in layout.symbols))

    def allows(self, sizes: Sizes) -> bool:
        return self.where is None or bool(eval(self.where, {"__builtins__": {}}, dict(sizes)))


def value(entry: Entry, sizes: Sizes) -> int:
    return entry if isinstance(entry, int) else int(eval(entry, {"__builtins__": {}}, dict(sizes)))


def mentioned(*entries: Entry) -> tuple[str, ...]:
    return tuple(name for name in SIZES if any(isinstance(e, str) and name in e for e in entries))


def space(extents: Sequence[int], names: Sequence[str] = ()) -> Space:
    return Space(tuple(names) or tuple(f"d{k}" for k in range(len(extents))), tuple(extents))


def on_ints(
    shape: Sequence[int],
    range_: Sequence[int],
    place: Callable[[Index, Index], Sequence[int]],
    replicas: Sequence[int] = (),
    memory: Memory | None = None,
    axes: Sequence[str] = (),
) -> IndexMap:
    return IndexMap(space(shape), space(range_, axes), lambda x, c, on: tuple(place(x, c)), space(replicas), memory)


def shape(rng: random.Random, symbolic: bool = False, rank: tuple[int, int] = (1, 3)) -> tuple[Entry, ...]:
    """A few extents with at most `MOST_PLACES` elements where they are numbers."""
    count = rng.randint(*rank)
    if symbolic:
        choices: list[Entry] = ["N", "M", "N", "N + 1", "2*N", rng.randint(1, 5)]
        found = [rng.choice(choices) for _ in range(min(count, 2))]
        return tuple(found) if any(isinstance(e, str) for e in found) else ("N", *found[1:])
    extents = [rng.randint(1, 9) for _ in range(count)]
    while prod(extents) > MOST_PLACES:
        extents[rng.randrange(count)] = rng.randint(1, 3)
    return tuple(extents)


def tile_level(extents: list[int], index: list[int], tile: Sequence[int | None]) -> tuple[list[int], list[int]]:
    """One tile level of docs/tiled_layout.md: None combines a dimension with the next more minor one."""
    missing = max(0, len(tile) - len(extents))
    extents, index = [1] * missing + extents, [0] * missing + index
    kept = len(extents) - len(tile)
    head, outer, inner = extents[:kept], [], []
    entries, blocks, within = index[:kept], [], []
    extent, entry = 1, 0
    for size, own, by in zip(extents[kept:], index[kept:], tile, strict=True):
        extent, entry = extent * size, entry * size + own
        if by is None:
            continue
        outer.append(-(-extent // by))
        inner.append(by)
        blocks.append(entry // by)
        within.append(entry % by)
        extent, entry = 1, 0
    return head + outer + inner, entries + blocks + within


def xla(rng: random.Random, dims: Sequence[Entry] | None = None, symbolic: bool = False, kind: str = "f32") -> Drawn:
    """An XLA shape with its layout: any order, up to three tile levels with `*`, tail alignment."""
    dims = tuple(shape(rng, symbolic) if dims is None else dims)
    order = list(range(len(dims)))
    rng.shuffle(order)
    tiles: list[tuple[int | None, ...]] = []
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        outer = [rng.choice((1, 2, 3, 4, None)) for _ in range(rng.randint(0, 2))]
        tiles.append((*outer, rng.choice((1, 2, 3, 4, 5, 8))))
    align = rng.choice((1, 1, 1, 1, 3, 8))
    shown = "".join("(" + ",".join("*" if t is None else str(t) for t in tile) + ")" for tile in tiles)
    props = (f"T{shown}" if tiles else "") + (f"L({align})" if align > 1 else "")
    text = f"{kind}[{','.join(map(str, dims))}]{{{','.join(map(str, order))}{':' + props if props else ''}}}"

    def rule(sizes: Sizes) -> IndexMap:
        logical = [value(e, sizes) for e in dims]

        def tiled(index: Sequence[int]) -> tuple[list[int], list[int]]:
            extents, entries = [logical[d] for d in reversed(order)], [index[d] for d in reversed(order)]
            for tile in tiles:
                extents, entries = tile_level(extents, entries, tile)
            return extents, entries

        box = tiled([0] * len(dims))[0]
        allotted = -(-prod(box) // align) * align
        memory = Memory(TYPES[kind], TYPES[kind], allotted)
        return on_ints(logical, box, lambda index, replica: tiled(index)[1], (), memory)

    return Drawn("xla", text, rule, mentioned(*dims), lambda r: xla(r, dims, symbolic, kind))


def strided(
    rng: random.Random, dims: Sequence[Entry] | None = None, symbolic: bool = False, kind: str = "f32"
) -> Drawn:
    """Strides by hand: zero, negative, overlapping ones too, with an offset and a size perhaps."""
    dims = tuple(shape(rng, symbolic) if dims is None else dims)
    choices: list[Entry] = [0, 1, 1, 2, 3, 4, 5, 8, -1, -3, 12]
    strides: list[Entry] = [rng.choice(choices) for _ in dims]
    if rng.random() < 0.4:
        # row-major, in some order
        left, step = list(range(len(dims))), "1"
        rng.shuffle(left)
        for d in left:
            strides[d] = int(step) if step.isdecimal() else step
            step = f"({step})*({dims[d]})" if symbolic else str(int(step) * int(dims[d]))
    start = rng.choice((None, None, rng.randint(0, 6), "N" if symbolic else 2))
    room = rng.choice((None, None, rng.randint(1, 60), "4*N" if symbolic else 30))
    text = {"shape": list(dims), "strides": strides, "type": kind}
    text |= ({"offset": start} if start is not None else {}) | ({"size": room} if room is not None else {})

    def rule(sizes: Sizes) -> IndexMap:
        extents, steps = [value(e, sizes) for e in dims], [value(s, sizes) for s in strides]
        ends = [(e - 1) * s for e, s in zip(extents, steps, strict=True)]
        first = -sum(min(0, end) for end in ends) if start is None else value(start, sizes)
        size = first + sum(max(0, end) for end in ends) + 1 if room is None else value(room, sizes)
        place = lambda x, c: (first + sum(i * s for i, s in zip(x, steps, strict=True)),)  # noqa: E731
        return on_ints(extents, (size,), place, (), Memory(TYPES[kind], TYPES[kind], size))

    entries = [*dims, *strides, *(e for e in (start, room) if e is not None)]
    again = lambda r: strided(r, dims, symbolic, kind)  # noqa: E731
    return Drawn("strided", {"strided": text}, rule, mentioned(*entries), again)


def term(rng: random.Random, names: Sequence[str], depth: int = 2) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*names, *names, str(rng.randint(-2, 9))])
    left = term(rng, names, depth - 1)
    match rng.choice("++-*//%%ms"):
        case "/":
            return f"({left} // {rng.randint(1, 6)})"
        case "%":
            return f"({left} % {rng.randint(1, 7)})"
        case "*":
            return f"({left} * {rng.randint(-2, 4)})"
        case "m":
            return f"{rng.choice(('min', 'max'))}({left}, {term(rng, names, depth - 1)})"
        case "s":
            compared = f"{left} {rng.choice(('<', '<=', '=='))} {rng.randint(-1, 7)}"
            return f"select({compared}, {term(rng, names, depth - 1)}, {left})"
        case sign:
            return f"({left} {sign} {term(rng, names, depth - 1)})"


def written_map(rng: random.Random, dims: Sequence[Entry] | None = None, symbolic: bool = False) -> Drawn:
    """A user's map of one to three coordinates with // % min max select and constants."""
    dims = tuple(shape(rng, symbolic, (1, 2)) if dims is None else dims)
    names = "ijk"[: len(dims)]
    if rng.random() < 0.5:
        terms = [term(rng, [*names, *mentioned(*dims)]) for _ in range(rng.randint(1, 3))]
    else:
        # tiles, one digit perhaps wrong
        terms = []
        for name in names:
            by = rng.randint(1, 5)
            terms += [f"{name} // {by}", f"{name} % {by if rng.random() < 0.8 else rng.randint(1, 5)}"]
        rng.shuffle(terms)
    choices: list[Entry] = [*range(1, 10), 30]
    box = [rng.choice([*choices, "N", "N + 2"] if "N" in mentioned(*dims) else choices) for _ in terms]
    bounds = ", ".join(f"{n} < {e}" for n, e in zip(names, dims, strict=True))
    text = f"({bounds}) -> ({', '.join(terms)}{',' if len(terms) == 1 else ''}) in [{', '.join(map(str, box))}]"
    code = compile(f"({', '.join(terms)},)", "map", "eval")

    def rule(sizes: Sizes) -> IndexMap:
        select = lambda condition, one, other: one if condition else other  # noqa: E731
        known = {"__builtins__": {}, "min": min, "max": max, "select": select, **sizes}
        place = lambda x, c: eval(code, {**known, **dict(zip(names, x, strict=True))})  # noqa: E731
        return on_ints([value(e, sizes) for e in dims], [value(e, sizes) for e in box], place)

    return Drawn("map", text, rule, mentioned(*dims))


Iter = tuple[Entry, Entry, str]


def axe(
    rng: random.Random,
    dims: Sequence[Entry] | None = None,
    symbolic: bool = False,
    shard: list[Iter] | None = None,
) -> Drawn:
    """Digits with strides on two axes, replicas, an offset, perhaps a swizzle of addresses."""
    swizzle = None
    if shard is not None:
        pass
    elif symbolic:
        outer = rng.choice(("N", "N + 1", "M"))
        shard = [(outer, rng.choice((1, 2, 4, 6)), "m"), (rng.randint(1, 4), 1, "m")]
    elif dims is not None:
        step = 1
        shard = []
        for extent in reversed(dims):
            shard.insert(0, (extent, step if rng.random() < 0.8 else rng.randint(0, 6), rng.choice("mmw")))
            step *= int(extent)
    else:
        strides = (0, 1, 1, 2, 3, 4, 6, 8, 9, 12, -1, -2)
        count = rng.randint(1, 3)
        shard = [(rng.randint(1, 4), rng.choice(strides), rng.choice("mmw")) for _ in range(count)]
    replicas = [
        (rng.randint(1, 3), rng.choice((0, 1, 2, 3, 4, 8, 12)), rng.choice("mmw"))
        for _ in range(rng.choice((0, 0, 1, 1, 2)))
    ]
    offset = {axis: rng.randint(-2, 5) for axis in "mw" if rng.random() < 0.25}
    if symbolic:
        # where the largest coordinate may be below 0 the extent has to be written, and the reader says so
        smallest = dict.fromkeys(SIZES, 1)
        for axis in offset:
            own = [(value(e, smallest), value(s, smallest)) for e, s, a in (*shard, *replicas) if a == axis]
            offset[axis] = max(offset[axis], -sum((e - 1) * s for e, s in own))
    if not symbolic and dims is None and rng.random() < 0.2:
        swizzle = (rng.randint(0, 1), (atom := rng.randint(0, 2)) and rng.randint(0, atom), atom)
        shard = [(e, abs(int(s)), "m") for e, s, _ in shard]
        replicas = [(e, s, "m") for e, s, _ in replicas]
        offset = {"m": abs(offset.get("m", 0))}
    text = _iters("S", shard) + "".join(" + " + _iters("R", [r]) for r in replicas)
    text += "".join(f" + {number}@{axis}" for axis, number in offset.items())
    text += f" swizzle ({','.join(map(str, swizzle))})" if swizzle else ""
    text += f" on ({','.join(map(str, dims))},)" if dims is not None else ""

    def rule(sizes: Sizes) -> IndexMap:
        digits = [(value(e, sizes), value(s, sizes), a) for e, s, a in shard]
        logical = [value(e, sizes) for e in dims] if dims is not None else [prod(e for e, _, _ in digits)]
        plain = places.axe(logical, digits, replicas, offset)
        if swizzle is None:
            return plain
        unit, distance, count = 1 << swizzle[0], 1 << swizzle[2], 1 << swizzle[1]

        def moved(x: Index, c: Index) -> tuple[int]:
            (address,) = plain.at(x, c)
            block = address // unit
            return ((block ^ (block // distance % count)) * unit + address % unit,)

        reached = [
            moved(x, c)[0] for x in places.every(plain.domain.extents) for c in places.every(plain.replicas.extents)
        ]
        return on_ints(logical, (max(reached) + 1,), moved, plain.replicas.extents, axes=plain.range.names)  # type: ignore[arg-type]

    symbols = mentioned(*(part for e, s, _ in shard for part in (e, s)))
    return Drawn("axe", text, rule, symbols, lambda r: axe(r, dims, symbolic, shard))


def _iters(letter: str, iters: Sequence[Iter]) -> str:
    extents, strides = (",".join(parts) for parts in zip(*[(str(e), f"{s}@{a}") for e, s, a in iters], strict=True))
    return f"{letter}[({extents}):({strides})]"


def cute(
    rng: random.Random,
    dims: Sequence[Entry] | None = None,
    symbolic: bool = False,
    modes: list[list[tuple[Entry, Entry]]] | None = None,
) -> Drawn:
    """Nested modes, first leaf fastest, with swizzles of either direction, whose offset may be more than 0."""
    if modes is not None:
        pass
    elif dims is None:
        strides = (0, 1, 1, 2, 3, 4, 8, 16, *(("N", "4*N", 32) if symbolic else ()))
        modes = [
            [(rng.randint(1, 4), rng.choice(strides)) for _ in range(rng.randint(1, 2))]
            for _ in range(rng.randint(1, 2))
        ]
        if symbolic:
            mode = rng.choice(modes)
            mode[-1] = (rng.choice(("N", "N", "2*N", "N + 1")), mode[-1][1])
    else:
        modes = [[(int(extent), rng.choice((1, 2, 4, 8)))] for extent in dims]
        if rng.random() < 0.6:
            step = 1
            for mode in modes:
                mode[0] = (mode[0][0], step)
                step *= int(mode[0][0])
    swizzle, start = None, 0
    if rng.random() < 0.6:
        shift = rng.randint(-3, 3)
        swizzle = (rng.randint(0, abs(shift)), rng.randint(0, 2), shift)
        start = rng.choice((0, 0, 0, rng.randint(1, 9)))
    show = lambda which: "(" + ",".join(_mode([str(leaf[which]) for leaf in mode]) for mode in modes) + ")"  # noqa: E731
    text = f"{show(0)}:{show(1)}"
    if swizzle:
        text = f"Sw<{','.join(map(str, swizzle))}> o {start} o {text}"

    def rule(sizes: Sizes) -> IndexMap:
        known = [[(value(e, sizes), value(s, sizes)) for e, s in mode] for mode in modes]
        place = lambda x, c: (swizzled(start + sum(map(_offset, x, known)), swizzle),)  # noqa: E731
        size = 1 + start + sum((e - 1) * s for mode in known for e, s in mode)
        return on_ints([prod(e for e, _ in mode) for mode in known], (size,), place)

    symbols = mentioned(*(part for mode in modes for leaf in mode for part in leaf))
    return Drawn("cute", text, rule, symbols, lambda r: cute(r, modes=modes))


def _offset(entry: int, mode: Sequence[tuple[int, int]]) -> int:
    total = 0
    for number, (extent, stride) in enumerate(mode):
        total += (entry if number + 1 == len(mode) else entry % extent) * stride
        entry //= extent
    return total


def swizzled(offset: int, swizzle: tuple[int, int, int] | None) -> int:
    """cute/swizzle.hpp: bits of a field are xor-ed onto one `shift` lower; for a negative one, higher."""
    if swizzle is None:
        return offset
    bits, base, shift = swizzle
    field = ((1 << bits) - 1) << base + max(0, shift)
    return offset ^ (offset & field) >> shift if shift >= 0 else offset ^ (offset & field) << -shift


def _mode(leaves: Sequence[str]) -> str:
    return leaves[0] if len(leaves) == 1 else f"({','.join(leaves)})"


def linear(rng: random.Random, dims: Sequence[Entry] | None = None, symbolic: bool = False) -> Drawn:
    """Bases over exclusive or: mostly permuted bits, some zero, some of several bits."""
    outs = rng.randint(1, 2)
    widths = [rng.randint(1, 3) for _ in range(outs)]
    if dims is None:
        bits = [rng.randint(0, 3) for _ in range(rng.randint(1, 3))]
    else:
        bits = [int(extent).bit_length() - 1 for extent in dims]
    places_ = [(k, b) for k in range(outs) for b in range(widths[k])]
    rng.shuffle(places_)
    ins: dict[str, list[list[int]]] = {}
    for name, count in zip(("register", "lane", "warp"), bits, strict=False):
        ins[name] = []
        for _ in range(count):
            basis = [0] * outs
            for _ in range(rng.choice((0, 1, 1, 1, 1, 2))):
                where = places_.pop() if places_ and rng.random() < 0.8 else None
                k, b = where or (rng.randrange(outs), 0)
                basis[k] ^= 1 << (b if where else rng.randrange(widths[k]))
            ins[name].append(basis)
    sizes_ = {f"dim{k}": 1 << width for k, width in enumerate(widths)}

    def place(x: Index, c: Index) -> list[int]:
        total = [0] * outs
        for entry, bases in zip(x, ins.values(), strict=True):
            for k, basis in enumerate(bases):
                if entry >> k & 1:
                    total = [a ^ b for a, b in zip(total, basis, strict=True)]
        return total

    box = list(sizes_.values())
    rule = lambda sizes: on_ints([1 << len(b) for b in ins.values()], box, place, axes=tuple(sizes_))  # noqa: E731
    return Drawn("linear", {"linear": {"in": ins, "out": sizes_}}, rule)


def sharding(rng: random.Random, dims: Sequence[Entry] | None = None, symbolic: bool = False) -> Drawn:
    """An array over up to 24 devices, evenly or not, with subgroups; devices by list or by iota."""
    dims = tuple(shape(rng, symbolic, (1, 2)) if dims is None else dims)
    count = rng.choice((2, 3, 4, 6, 8, 12))
    tiles = shardings_at_random.factors(rng, count, 3)
    groups = [rng.choice(("replicated", "manual", "unreduced"))] if rng.random() < 0.5 else []
    while len(tiles) - len(groups) < len(dims):
        tiles.insert(0, 1)
    while len(tiles) - len(groups) > len(dims):
        first = tiles.pop(0)
        tiles[0] *= first
    if rng.random() < 0.4:
        devices = list(range(count))
        rng.shuffle(devices)
        assignment = ",".join(map(str, devices))
    else:
        reshape = shardings_at_random.factors(rng, count)
        perm = list(range(len(reshape)))
        rng.shuffle(perm)
        assignment = f"<=[{','.join(map(str, reshape))}]"
        assignment += f"T({','.join(map(str, perm))})" if len(perm) > 1 else ""
        # iota reshaped, transposed, flattened again
        turned = itertools.product(*[range(reshape[k]) for k in perm])
        devices = [_number([row[perm.index(k)] for k in range(len(perm))], reshape) for row in turned]
    sub = f" last_tile_dims={{{', '.join(groups)}}}" if groups else ""
    text = f"f32[{','.join(map(str, dims))}] sharded {{devices=[{','.join(map(str, tiles))}]{assignment}{sub}}}"

    def rule(sizes: Sizes) -> IndexMap:
        logical = [value(e, sizes) for e in dims]
        shard = [-(-d // t) for d, t in zip(logical, tiles, strict=False)]
        # replicas are numbered in the order of their devices, as XLA sorts them; so is one group of all devices
        last = tiles[len(dims)] if groups else 1
        rows = [devices[k : k + last] for k in range(0, count, last)]
        whole = groups == ["replicated"] or len(rows) == 1
        held = [sorted(row) if whole else row for row in rows]

        def place(x: Index, c: Index) -> list[int]:
            tile = _number([i // s for i, s in zip(x, shard, strict=True)], tiles[: len(dims)])
            return [held[tile][c[0] if c else 0], *(i % s for i, s in zip(x, shard, strict=True))]

        axes = ["device", *(f"local_{n}" for n in "ijk"[: len(dims)])]
        return on_ints(logical, [count, *shard], place, (last,) if last > 1 else (), axes=axes)

    return Drawn("sharding", text, rule, mentioned(*dims), lambda r: sharding(r, dims, symbolic))


def _number(entries: Sequence[int], extents: Sequence[int]) -> int:
    total = 0
    for entry, extent in zip(entries, extents, strict=True):
        total = total * extent + entry
    return total


def blockspec(rng: random.Random, dims: Sequence[Entry] | None = None, symbolic: bool = False) -> Drawn:
    """One operand of a kernel: programs, and the offsets in a block as replicas."""
    rank = rng.randint(1, 2)
    grid = [rng.randint(1, 4) for _ in range(rank)]
    block = [rng.randint(1, 3) for _ in range(rank)]
    array = [max(1, g * b + rng.choice((0, 0, 0, -1, 1))) for g, b in zip(grid, block, strict=True)]
    names = "ij"[:rank]
    index = [n if rng.random() < 0.8 else rng.choice((f"{n} // 2", f"{n} + 1", "0")) for n in names]
    text = f"f32[{','.join(map(str, array))}] blockspec ({', '.join(map(str, block))}{',' if rank == 1 else ''}) "
    text += f"({', '.join(names)}{',' if rank == 1 else ''}) -> ({', '.join(index)}{',' if rank == 1 else ''})"
    text += f" grid ({', '.join(map(str, grid))}{',' if rank == 1 else ''})"
    code = compile(f"({', '.join(index)},)", "index", "eval")

    def place(x: Index, c: Index) -> list[int]:
        starts = eval(code, {"__builtins__": {}, **dict(zip(names, x, strict=True))})
        return [s * b + o for s, b, o in zip(starts, block, c, strict=True)]

    return Drawn("blockspec", text, lambda sizes: on_ints(grid, array, place, block))


LANGUAGES: dict[str, tuple[Callable[..., Drawn], tuple[str, ...], bool]] = {
    "xla": (xla, ("injective", "in_bounds", "covers", "bijective", "padding", "same_map", "bitcast"), True),
    "strided": (strided, ("injective", "in_bounds", "covers", "bijective", "padding", "same_map", "bitcast"), True),
    "map": (written_map, ("injective", "in_bounds", "covers", "bijective", "same_map", "refines"), True),
    "axe": (
        axe,
        ("injective", "in_bounds", "covers", "bijective", "same_map", "refines", "replicas_distinct", "owners"),
        True,
    ),
    "cute": (cute, ("injective", "in_bounds", "covers", "bijective", "same_map", "same_map"), True),
    "linear": (linear, ("injective", "in_bounds", "covers", "bijective", "same_map"), False),
    "sharding": (
        sharding,
        ("injective", "in_bounds", "covers", "same_map", "refines", "owned", "replicas_distinct"),
        True,
    ),
    "blockspec": (blockspec, ("injective", "in_bounds", "covers", "replicas_distinct"), False),
}
"""How each language is drawn, what is asked of it, and whether with size symbols."""


def question(rng: random.Random) -> Question:
    """One random question."""
    draw, properties, with_sizes = LANGUAGES[rng.choice(list(LANGUAGES))]
    name = rng.choice(properties)
    symbolic = with_sizes and rng.random() < 0.15 and name not in ("bitcast", "padding")
    kind = {"kind": rng.choice(list(TYPES))} if draw in (xla, strided) else {}
    first = draw(rng, symbolic=symbolic, **kind)
    layouts = (first,)
    if name in ("same_map", "refines", "bitcast"):
        if name == "same_map" and kind and rng.random() < 0.2:
            kind = {"kind": rng.choice(list(TYPES))}
        if name != "refines" and kind and rng.random() < 0.2:
            draw = rng.choice((xla, strided))
        layouts = (first, _second(rng, draw, first, name, kind))
    where = None
    symbols = Question(name, layouts).symbols()
    if symbols and rng.random() < 0.5:
        size = symbols[0]
        conditions = [f"{size} % {rng.randint(2, 4)} == 0", f"{size} >= {rng.randint(2, 4)}", f"{size} <= 3"]
        if len(symbols) > 1:
            conditions.append(f"{symbols[0]} <= {symbols[1]}")
        where = rng.choice(conditions)
    options: dict[str, Any] = {}
    if name == "owners":
        if symbolic or set(first.rule({}).range.names) != {"m", "w"}:
            return Question("injective", layouts, where)
        options = {"owner": [rng.choice("mw")]}
    return Question(name, layouts, where, options)


def _second(rng: random.Random, draw: Callable[..., Drawn], first: Drawn, name: str, kind: Mapping[str, str]) -> Drawn:
    """A layout of the same shape: the first one again, spoilt in one number, or another one altogether."""
    if first.language == "map" or rng.random() < 0.3:
        return first
    if first.again and (first.symbols or (first.language == "cute" and rng.random() < 0.5)):
        return first.again(rng)
    if first.symbols:
        return first
    dims = first.rule({}).domain.extents
    if name == "bitcast":
        whole = prod(int(e) for e in dims)
        split = shardings_at_random.factors(rng, whole, 3) if whole > 1 else [1]
        return draw(rng, dims=split if rng.random() < 0.6 else dims, **kind)
    return draw(rng, dims=dims, **kind)


Answer = tuple[Verdict, Mapping[str, Any] | None]


def answer(question: Question, sizes: Sizes) -> Answer | None:
    """The answer at some sizes by looking at every element; None where the comparison is not defined."""
    maps = [layout.rule(sizes) for layout in question.layouts]
    if any(0 in (*m.domain.extents, *m.replicas.extents) for m in maps):
        return None
    point = VIOLATIONS[question.property](*maps, **question.options)
    return (Verdict.PROVED, None) if point is None else (Verdict.REFUTED, point)


def _in_bounds(m: IndexMap) -> places.Point | None:
    return places.outside(m, {})


def _covers(m: IndexMap) -> places.Point | None:
    found = places.hole(m)
    if found is None and m.memory is not None and m.memory.allotted > m.range.count():  # type: ignore[operator]
        return {}
    return found


def _bijective(m: IndexMap) -> places.Point | None:
    return places.collision(m) or _in_bounds(m)


def _owned(m: IndexMap) -> places.Point | None:
    return _in_bounds(m) or places.collision(m) or places.repeated(m, ("device",))


def _owners(m: IndexMap, owner: Sequence[str]) -> places.Point | None:
    return places.collision(m) or places.repeated(m, owner)


def _held(m: IndexMap, axes: Sequence[str]) -> dict[Index, int]:
    """How many elements have a place with these coordinates, for each choice of those that occur."""
    kept = [k for k, name in enumerate(m.range.names) if name in axes]
    found: Counter[Index] = Counter()
    for x in places.every(m.domain.extents):
        found.update({tuple(place[k] for k in kept) for place in places.places(m, x)})
    return found


def _bit(m: IndexMap, index: Index) -> int:
    assert m.memory is not None
    return _number(m.at(index), m.range.extents) * m.memory.bits  # type: ignore[arg-type]


def _same(one: IndexMap, other: IndexMap) -> places.Point | None:
    if one.replicas.extents or other.replicas.extents:
        return places.missing(one, other, "first_replica") or places.missing(other, one, "second_replica")
    if one.memory is None:
        return places.missing(one, other)
    differ = (index for index in places.every(one.domain.extents) if _bit(one, index) != _bit(other, index))
    return next(({"element": index} for index in differ), None)


def _bitcast(one: IndexMap, other: IndexMap) -> places.Point | None:
    assert one.memory is not None
    assert other.memory is not None
    pairs = zip(places.every(one.domain.extents), places.every(other.domain.extents), strict=True)
    moved = next(({"element": x} for x, y in pairs if _bit(one, x) != _bit(other, y)), None)
    sizes = tuple(-(-m.memory.allotted * m.memory.bits // 8) for m in (one, other) if m.memory)  # type: ignore[operator]
    return moved or (None if sizes[0] == sizes[1] else {"bytes": sizes})


VIOLATIONS: dict[str, Callable[..., places.Point | None]] = {
    "injective": places.collision,
    "in_bounds": _in_bounds,
    "covers": _covers,
    "bijective": _bijective,
    "padding": _bijective,
    "same_map": _same,
    "refines": places.missing,
    "bitcast": _bitcast,
    "owned": _owned,
    "owners": _owners,
    "replicas_distinct": places.repeated,
}
"""What violates each property, the smallest such thing."""

PARTS = ("bijective", "padding", "bitcast", "owned", "owners", "covers", "same_map")
"""Properties of several claims, which are asked one after the other."""

GRID = (1, 2, 3, 4, 5, 7)
"""Sizes at which answers for all sizes are looked at."""


def disagreement(question: Question, found: Finding, alone: bool = False) -> str:
    """How a result contradicts what looking at every element says, or "". Unknown contradicts nothing.

    alone: one engine was asked, which may refute by a later part of the property than one that it cannot decide. Over
    sizes each part is refuted by its own smallest sizes.
    """
    if found.verdict is Verdict.UNKNOWN:
        return ""
    symbols = question.symbols()
    parts = question.property in PARTS
    if not symbols:
        expected = answer(question, {})
        if expected is None:
            return "decided, although there is no element"
        other_part = parts and alone and set(found.counterexample or {}) != set(expected[1] or {})
        return _contradiction(expected, found, found.counterexample, other_part) or _wrong_figures(question, found)
    rows = sorted(itertools.product(GRID, repeat=len(symbols)), key=lambda row: (max(row), row))
    counterexample = dict(found.counterexample or {})
    at = counterexample.pop("sizes", None)
    if found.verdict is Verdict.REFUTED:
        if at is None or set(at) != set(symbols) or not question.allows(at):
            return f"refuted at sizes {at}, which are none of the question's"
        symbols, own = tuple(at), tuple(at.values())
        if max(own) > 40:
            return ""
        rows = [row for row in rows if (max(row), row) < (max(own), own)]
        if prod(own) <= 64:
            wrong = _contradiction(answer(question, at) or (Verdict.PROVED, None), found, counterexample, parts)
            if wrong:
                return f"at {at}: {wrong}"
    if found.verdict is Verdict.REFUTED and (parts or "not shown to be the smallest" in found.reason):
        return ""
    for row in rows:
        sizes = dict(zip(symbols, row, strict=True))
        if question.allows(sizes):
            expected = answer(question, sizes)
            if expected is not None and expected[0] is not Verdict.PROVED:
                return f"{found.verdict.value}, but at {sizes} refuted by {expected[1]}"
    return ""


def _contradiction(expected: Answer, found: Finding, point: Mapping[str, Any] | None, any_point: bool) -> str:
    verdict, smallest = expected
    if found.verdict is not verdict:
        return f"{found.verdict.value}, but it is {verdict.value} {smallest or ''}"
    if verdict is Verdict.PROVED or any_point or "not shown to be the smallest" in found.reason:
        return ""
    return (
        "" if dict(point or {}) == smallest else f"the smallest counterexample is {smallest}, not {dict(point or {})}"
    )


def _wrong_figures(question: Question, found: Finding) -> str:
    """The figures that are not what counting gives, or ""."""
    (m, *_) = [layout.rule({}) for layout in question.layouts]
    elements = prod(m.domain.extents)  # type: ignore[arg-type]
    counted: dict[str, object] = {"elements": elements}
    if question.property in ("replicas_distinct", "owned"):
        counted["replicas"] = prod(m.replicas.extents)  # type: ignore[arg-type]
    if question.property == "covers":
        counted["holes"] = places.holes(m)
    if m.memory is not None:
        room = m.memory.allotted
        counted |= {"padded_elements": room, "padding_elements": room - elements, "places": room}
        counted |= {"padding": room - elements, "bytes": -(-room * m.memory.bits // 8)}
    if question.property == "owners":
        (owner,) = question.options["owner"]
        held, local = _held(m, [owner]), _held(m, [name for name in m.range.names if name != owner])
        counted |= {"owners": len(held), "fewest_elements": min(held.values()), "most_elements": max(held.values())}
        counted |= {"local_places": len(local), "local_span": max(local)[0] - min(local)[0] + 1}
    wrong = {name: number for name, number in found.figures.items() if counted.get(name, number) != number}
    return f"figures {wrong}, which by counting are { ({name: counted[name] for name in wrong}) }" if wrong else ""


ENGINES = {"all": 40, "confirm": 10, "digits": 20, "bits": 8, "isl": 11, "smt": 10, "brute": 1}
"""How often each is asked alone, in a hundred; enumeration is slow."""


@dataclass(frozen=True)
class Asked:
    """A question that was asked, of which engine, what came of it, and what is wrong with that, or ""."""

    question: Question
    engine: str
    found: Finding | None
    wrong: str

    def __str__(self) -> str:
        texts = [layout.text for layout in self.question.layouts]
        return f"{self.question.property} {texts} where {self.question.where} by {self.engine}: {self.wrong}"


def ask(seed: int, number: int) -> Asked:
    """Ask the question with this number of this seed, of all engines or of one of them alone."""
    rng = random.Random(f"{seed}/{number}")
    asked = question(rng)
    (engine,) = rng.choices(list(ENGINES), list(ENGINES.values()))
    how: dict[str, Any] = {"all": {}, "confirm": {"confirm": True}}.get(engine, {"engine": engine})
    try:
        found = lp.ask(
            asked.property, *[layout.text for layout in asked.layouts], where=asked.where, **asked.options, **how
        )
    except Exception as error:  # an input that is refused is as wrong as an error of ours
        return Asked(asked, engine, None, f"{type(error).__name__}: {error}")
    return Asked(asked, engine, found, disagreement(asked, found, engine != "all"))
