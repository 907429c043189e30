"""The questions that all peers are asked, and their answers by looking at every element.

A layout is one function, written as arithmetic (`expressions`), from a box of indices to places in a range, together
with the forms that some peers know it in: CuTe's shape and stride, Triton's bases, Axe's iters, a mesh, a Pallas grid.
The arithmetic comes from definitions that are not the package's: XLA's tiles from `tests/oracles/plain.py`.
The answer to a question that has several right answers (a complement, an inverse of some of the places) is held against
its definition.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from benchmarks.peers.expressions import data_of, index_of, run, text
from tests.oracles import plain

Layout = dict[str, Any]
"""shape: extents of the index.  places: an expression for each coordinate.  range: extents of the places.  ours: what
layoutproof reads.  Further forms by name: cute, linear, axe, mesh, grid."""
Question = dict[str, Any]
"""name, group; kind: one of KINDS; layouts: what it is about.  target: of a complement.  region: of a slice."""


def layout(
    place: Callable[..., Any], shape: Sequence[int], range_: Sequence[int], ours: object = None, **forms: Any
) -> Layout:
    """A layout from a Python function of the entries of an index to one coordinate or a tuple of them.

    ours: None for the function itself, as a user of layoutproof writes it.
    """
    found = place(*index_of(len(shape)))
    places = [data_of(value) for value in (found if isinstance(found, tuple) else (found,))]
    return {"shape": list(shape), "places": places, "range": list(range_), "ours": ours, **forms}


def xla(written: str, cute: object = None) -> Layout:
    """A tiled array as XLA writes it: indices to tile numbers and positions within tiles."""
    array = plain.read(written)
    order = tuple(reversed(array.minor_to_major))
    extents, index = tuple(array.dims[d] for d in order), [index_of(len(array.dims))[d] for d in order]
    for tile in array.tiles:
        extents, index = plain.cut(extents, index, tile)
    kept = [(e, i) for e, i in zip(extents, index, strict=True) if e > 1]
    made = layout(lambda *_: tuple(i for _, i in kept), array.dims, [e for e, _ in kept], written)
    return {**made, **({"cute": cute} if cute else {})}


def strided(shape: Sequence[int], strides: Sequence[int], size: int, start: int = 0) -> Layout:
    """Offsets in a memory of so many elements."""
    written = f"f32[{','.join(map(str, shape))}] strides ({','.join(map(str, strides))}) offset {start} in {size}"

    def place(*index: Any) -> Any:
        return start + sum(i * s for i, s in zip(index, strides, strict=True))

    return layout(place, shape, [size], written, **({"cute": [list(shape), list(strides), None]} if not start else {}))


def cute(shape: Any, stride: Any, swizzle: Sequence[int] | None = None, size: int = 0) -> Layout:
    """CuTe's layout on one index per mode, the first of nested ones fastest.

    size: of the memory, 0 for what it needs.
    """
    modes = list(zip(shape, stride, strict=True)) if isinstance(shape, tuple) else [(shape, stride)]

    def offset(*index: Any) -> Any:
        total: Any = sum(_mode(i, e, s) for i, (e, s) in zip(index, modes, strict=True))
        if swizzle is None:
            return total
        bits, base, shift = swizzle
        return total ^ (total // (1 << base + shift) % (1 << bits) * (1 << base))

    extents = [_size(e) for e, _ in modes]
    reached = 1 + sum((e - 1) * s for e, s in zip(_flat(shape), _flat(stride), strict=True))
    written = f"{_written(shape)}:{_written(stride)}"
    ours = written if swizzle is None else f"Sw<{','.join(map(str, swizzle))}> o 0 o {written}"
    return layout(offset, extents, [size or reached], ours, cute=[_lists(shape), _lists(stride), swizzle])


def linear(inputs: Mapping[str, Sequence[int]], size: int) -> Layout:
    """Triton's linear layout to one output: for each bit of each input, what it is combined of by exclusive or."""
    value = {"linear": {"in": {n: [[b] for b in bases] for n, bases in inputs.items()}, "out": {"offset": size}}}

    def offset(*index: Any) -> Any:
        total: Any = 0
        for entry, bases in zip(index, inputs.values(), strict=True):
            for bit, base in enumerate(bases):
                term = entry // (1 << bit) % 2 * base
                total = term if isinstance(total, int) else total ^ term
        return total

    return layout(offset, [1 << len(b) for b in inputs.values()], [size], value, linear=[dict(inputs), size])


def axe(
    D: Sequence[tuple[int, int, str]],
    R: Sequence[tuple[int, int, str]] = (),
    O: Mapping[str, int] | None = None,  # noqa: E741
) -> Layout:
    """An Axe layout: iters of the shard and of the replicas, and the offset, on named axes."""
    parts = [f"S[({','.join(str(e) for e, _, _ in D)}):({','.join(f'{s}@{a}' for _, s, a in D)})]"]
    parts += [f"R[{e}:{s}@{a}]" for e, s, a in R] + [f"{v}@{a}" for a, v in (O or {}).items()]
    form = {"D": [list(i) for i in D], "R": [list(i) for i in R], "O": dict(O or {})}
    return {"shape": [prod(e for e, _, _ in D)], "places": None, "range": None, "ours": " + ".join(parts), "axe": form}


def sharding(dims: Sequence[int], mesh: Sequence[Sequence[int]], spec: Sequence[str | None]) -> Layout:
    """An array over a mesh with the axes x and y, as JAX's NamedSharding; and as XLA writes what that is."""
    devices = np.array(mesh)
    sizes = dict(zip("xy", devices.shape, strict=True))
    tiles = [sizes[axis] if axis else 1 for axis in spec]
    order = [axis for axis in spec if axis] + [axis for axis in "xy" if axis not in spec]
    moved = devices.transpose(["xy".index(axis) for axis in order]).reshape(-1)
    rest = prod(sizes[axis] for axis in "xy" if axis not in spec)
    numbers = ",".join(map(str, (*tiles, rest)))
    written = f"{{devices=[{numbers}]{','.join(map(str, moved))} last_tile_dim_replicate}}"
    ours = f"f32[{','.join(map(str, dims))}] sharded {written}"
    form = {"dims": list(dims), "devices": devices.tolist(), "spec": list(spec)}
    return {"shape": list(dims), "places": None, "range": None, "ours": ours, "mesh": form}


def grid(array: Sequence[int], block: Sequence[int], programs: Sequence[int], index: Callable[..., Any]) -> Layout:
    """The blocks of an output that the programs of a Pallas grid write: programs to block numbers."""
    made = layout(index, programs, [-(-a // b) for a, b in zip(array, block, strict=True)])
    names = "ijkl"[: len(programs)]
    body = ", ".join(text(place, names) for place in made["places"])
    function = f"({', '.join(names)}) -> ({body})"
    ours = {"array": f"f32[{','.join(map(str, array))}]", "grid": list(programs), "block": list(block)}
    form = {"array": list(array), "block": list(block), "programs": list(programs)}
    return {**made, "ours": {"blockspec": {**ours, "index": function, "role": "out"}}, "grid": form}


def _mode(index: Any, extent: Any, stride: Any) -> Any:
    if isinstance(extent, int):
        return index * stride
    total: Any = 0
    for k, (e, s) in enumerate(zip(extent, stride, strict=True)):
        last = k == len(extent) - 1
        total = total + _mode(index if last else index % _size(e), e, s)
        index = index if last else index // _size(e)
    return total


def _size(extent: Any) -> int:
    return prod(_flat(extent))


def _flat(nested: Any) -> list[int]:
    return [nested] if isinstance(nested, int) else [leaf for part in nested for leaf in _flat(part)]


def _lists(nested: Any) -> Any:
    return nested if isinstance(nested, int) else [_lists(part) for part in nested]


def _written(nested: Any) -> str:
    return str(nested) if isinstance(nested, int) else f"({','.join(_written(part) for part in nested)})"


def question(group: str, kind: str, *layouts: Layout, name: str = "", **more: Any) -> Question:
    """One question. name: of what it is about; without one, as layoutproof writes the layouts."""
    written = [str(one["ours"] if isinstance(one["ours"], str) else name) for one in layouts]
    return {"group": group, "kind": kind, "name": name or ", ".join(written), "layouts": list(layouts), **more}


@cache
def questions() -> tuple[Question, ...]:
    """All of them, in the order of the table."""
    found = [*_tiles(), *_strides(), *_maps(), *_cute(), *_swizzles(), *_linear(), *_axe(), *_shardings(), *_grids()]
    return tuple(found)


def _tiles() -> list[Question]:
    whole = xla("f32[256,512]{1,0:T(8,128)}", [[[8, 32], [128, 4]], [[128, 4096], [1, 1024]], None])
    edge, packed = xla("f32[250,500]{1,0:T(8,128)}"), xla("bf16[48,200]{1,0:T(8,128)(2,1)}")
    column, cube = xla("s8[40,130]{0,1:T(8,128)(4,1)}"), xla("f32[5,20,130]{2,1,0:T(8,128)}")
    both = (256, 512), [131072]

    def one(i: Any, j: Any) -> Any:
        return i // 8 * 4096 + j // 128 * 1024 + i % 8 * 128 + j % 128

    def other(i: Any, j: Any) -> Any:
        return 128 * (i % 8) + j % 128 + 1024 * (j // 128 + 4 * (i // 8))

    def swapped(i: Any, j: Any) -> Any:
        return i // 8 * 1024 + j // 128 * 32768 + i % 8 * 128 + j % 128

    def broken(i: Any, j: Any) -> Any:
        return i // 8 * 4000 + j // 128 * 1000 + i % 8 * 128 + j % 128

    small = xla("f32[20,130]{1,0:T(8,128)}")
    group = "XLA tiles"
    found = [question(group, "injective", one) for one in (whole, edge, packed, column, cube)]
    found += [question(group, "covers", one) for one in (whole, edge, packed, cube)]
    found += [question(group, "in_bounds", one) for one in (whole, edge, column)]
    found += [question(group, "padding", one) for one in (small, packed, column, cube)]
    found += [question(group, "inverse", xla("f32[16,256]{1,0:T(8,128)}"))]
    found += [
        question(group, "same_map", layout(one, *both), layout(other, *both), name="T(8,128), two spellings"),
        question(
            group, "same_map", layout(one, *both), layout(swapped, *both), name="T(8,128), tiles in another order"
        ),
        question(group, "injective", layout(broken, *both), name="f32[256,512], tiles 1,000 apart"),
    ]
    return found


def _strides() -> list[Question]:
    group = "strides"
    rows, narrow = strided((64, 64), (64, 1), 4096), strided((64, 64), (63, 1), 4096)
    padded, short = strided((100, 90), (96, 1), 9600), strided((100, 90), (96, 1), 9593)
    found = [question(group, "injective", one) for one in (rows, narrow, strided((5, 7), (7, 5), 59), padded)]
    found += [question(group, "injective", strided((3, 5), (4, 1), 13)), question(group, "in_bounds", padded)]
    found += [question(group, "in_bounds", short), question(group, "in_bounds", strided((128,), (-1,), 128, 127))]
    found += [question(group, "in_bounds", strided((128,), (-1,), 128, 126)), question(group, "padding", padded)]
    found += [question(group, "covers", rows), question(group, "covers", padded)]
    found += [question(group, "inverse", strided((5, 16, 4), (4, 20, 1), 320))]
    return found


def _maps() -> list[Question]:
    group = "maps with // and %"
    turned = layout(lambda i: (i + 1) % 128, (128,), [128])
    fives, fours = layout(lambda i: 5 * i % 16, (16,), [16]), layout(lambda i: 4 * i % 16, (16,), [16])
    tile = layout(lambda i, j: (i // 4, (j + 3) % 8, i % 4), (12, 8), [3, 8, 4])
    split, back = layout(lambda i: (i // 6, i % 6), (24,), [4, 6]), layout(lambda i: 23 - i, (24,), [24])
    squares = layout(lambda i: i * i % 17, (17,), [17])
    fragment = layout(
        lambda i, j: ((8192 * i + j) // 8 % 128, 8 * ((8192 * i + j) // 1024) + j % 8), (64, 8192), [128, 4096]
    )
    named = [
        (turned, "(i + 1) % 128"),
        (fives, "5i % 16"),
        (fours, "4i % 16"),
        (squares, "i * i % 17"),
        (fragment, "T.Parallel(64, 8192)"),
        (tile, "(i // 4, (j + 3) % 8, i % 4)"),
    ]
    found = [question(group, "injective", one, name=name) for one, name in named]
    found += [question(group, "covers", one, name=name) for one, name in named[:3]]
    found += [question(group, "inverse", one, name=name) for one, name in (named[0], named[1], named[2], named[5])]
    found += [
        question(group, "inverse", split, name="(i // 6, i % 6)"),
        question(group, "inverse", back, name="23 - i"),
    ]
    again = layout(lambda i: (i - 127) % 128, (128,), [128])
    found += [question(group, "same_map", turned, again, name="(i + 1) % 128, (i - 127) % 128")]
    found += [question(group, "same_map", turned, layout(lambda i: i, (128,), [128]), name="(i + 1) % 128, i")]
    return found


def _cute() -> list[Question]:
    group = "CuTe"
    pairs = [
        (cute(20, 2), cute((5, 4), (4, 1))),
        (cute((10, 2), (16, 4)), cute((5, 4), (1, 5))),
        (cute((6, 2), (8, 2)), cute((4, 3), (3, 1))),
        (cute((4, 2, 8), (3, 12, 97)), cute(8, 8)),
        (cute((8, 8), (8, 1)), cute((4, 4), (2, 16))),
        (cute((6, 2), (1, 7)), cute((3, 2), (2, 3))),
        (cute((4, 6, 8), (2, 3, 5)), cute(6, 3)),
        (cute((8, 8, 4), (8, 7, 16)), cute((2, 2), (4, 6))),
        (cute((6, 6), (12, 16)), cute((8, 3), (3, 2))),
    ]
    found = [question(group, "compose", a, b) for a, b in pairs]
    complements = [(cute((4, 2), (1, 16)), 32), (cute((2, 2), (1, 4)), 16), (cute(4, 6), 48), (cute((2, 2), (1, 1)), 8)]
    found += [
        question(group, "complement", a, name=f"{a['ours']} in {target}", target=target) for a, target in complements
    ]
    layouts = [cute((4, 2), (1, 16)), cute((4, 8), (8, 1)), cute((2, 3, 4), (12, 4, 1)), cute((3, 2), (2, 3))]
    found += [question(group, "left_inverse", a) for a in layouts]
    nested = cute(((4, 2), (2, 4)), ((1, 16), (4, 32)), size=128)
    found += [question(group, "injective", one) for one in (nested, cute(((4, 2), (2, 4)), ((1, 8), (4, 32))))]
    found += [question(group, "injective", cute((4, 5), (4, 3)))]
    same = cute((4, 4), (1, 4)), cute(((2, 2), 4), ((1, 2), 4)), cute(((2, 2), 4), ((2, 1), 4))
    found += [question(group, "same_map", same[0], same[1]), question(group, "same_map", same[0], same[2])]
    found += [question(group, "covers", nested), question(group, "covers", cute((4, 4), (1, 5)))]
    return found


def _swizzles() -> list[Question]:
    group = "swizzles"
    atom, wide = cute((8, 64), (64, 1), (3, 3, 3)), cute((64, 64), (64, 1), (3, 4, 3))
    odd, tall = cute((6, 48), (48, 1), (3, 3, 3)), cute((16, 32), (32, 1), (2, 4, 3))
    found = [question(group, "injective", one) for one in (atom, wide, odd, tall)]
    found += [question(group, "in_bounds", one) for one in (atom, odd)]
    found += [question(group, "covers", one) for one in (wide, tall)]
    found += [question(group, "inverse", atom)]
    again = layout(lambda i, j: 64 * i + (j // 8 ^ i) * 8 + j % 8, (8, 64), [512])
    found += [question(group, "same_map", atom, again, name="Sw<3,3,3>, 64i + 8(j // 8 ^ i) + j % 8")]
    found += [question(group, "same_map", atom, cute((8, 64), (64, 1), (3, 3, 4)))]
    return found


def _linear() -> list[Question]:
    group = "linear layouts"
    turned = linear({"register": [1, 2, 16], "lane": [4, 8, 32]}, 64)
    crossed = linear({"register": [1, 2, 4], "lane": [8 ^ 1, 16 ^ 2, 32 ^ 4]}, 64)
    folded = linear({"register": [1, 2, 4], "lane": [8, 16, 8 ^ 16]}, 32)
    named = [(turned, "a permutation of 6 bits"), (crossed, "6 bits, crossed"), (folded, "6 bits onto 5")]
    found = [question(group, kind, one, name=name) for kind in ("injective", "covers") for one, name in named]
    found += [question(group, "inverse", one, name=name) for one, name in named]
    found += [question(group, "same_map", turned, turned, name="a permutation, itself")]
    found += [question(group, "same_map", turned, crossed, name="a permutation, another map")]
    return found


def _axe() -> list[Question]:
    group = "Axe"
    figure = axe([(8, 4, "laneid"), (2, 1, "warpid"), (4, 1, "laneid"), (2, 1, "m")], [(2, 4, "warpid")], {"warpid": 5})
    signed = axe(
        [(8, 4, "laneid"), (2, 1, "warpid"), (4, 1, "laneid"), (2, 1, "m")], [(2, -4, "warpid")], {"warpid": 9}
    )
    moved = axe([(8, 4, "laneid"), (2, 1, "warpid"), (4, 1, "laneid"), (2, 1, "m")], [(2, 4, "warpid")], {"warpid": 6})
    absorbed = axe([(4, 10, "m")], [(6, 1, "m")]), axe([(4, 10, "m")], [(2, 3, "m"), (3, 1, "m")])
    split = axe([(8, 1, "m")]), axe([(2, 4, "m"), (4, 1, "m")])
    found = [
        question(group, "same_map", *pair)
        for pair in (split, (figure, signed), (figure, moved), absorbed, (axe([(8, 1, "m")]), axe([(8, 2, "m")])))
    ]
    colliding = axe([(4, 1, "m")], [(2, 2, "m")])
    found += [question(group, "injective", one) for one in (figure, colliding, axe([(4, 1, "m"), (4, 2, "m")]))]
    tall = axe([(2, 1000, "m"), (2, 100, "m"), (4, 1, "m")])
    for whole, region in (
        (tall, (6, 10)),
        (tall, (4, 12)),
        (axe([(8, 1, "m")]), (2, 6)),
        (axe([(8, 1, "m")]), (6, 12)),
    ):
        name = f"{whole['ours']} [{region[0]}:{region[1]}]"
        found.append(question(group, "slice", whole, name=name, region=region))
    return found


def _shardings() -> list[Question]:
    rows = sharding((8, 12), [[0, 1], [2, 3]], ("x", None))
    same, flipped = sharding((8, 12), [[0, 2], [1, 3]], ("y", None)), sharding((8, 12), [[2, 3], [0, 1]], ("x", None))
    both, crossed = sharding((8, 12), [[0, 1], [2, 3]], ("x", "y")), sharding((8, 12), [[0, 2], [1, 3]], ("x", "y"))
    copies = sharding((8, 12), [[0, 1], [2, 3]], (None, None)), sharding((8, 12), [[3, 1], [2, 0]], (None, None))
    pairs = {
        "a mesh, the same one transposed": (rows, same),
        "a mesh, its rows swapped": (rows, flipped),
        "devices in two orders": (both, crossed),
        "copies, devices in two orders": copies,
    }
    return [question("shardings", "same_map", *pair, name=name) for name, pair in pairs.items()]


def _grids() -> list[Question]:
    group = "Pallas grids"
    named = {
        "f32[16,256] in 2x2 blocks": grid((16, 256), (8, 128), (2, 2), lambda i, j: (i, j)),
        "f32[20,256], rounded down": grid((20, 256), (8, 128), (2, 2), lambda i, j: (i, j)),
        "f32[20,256], rounded up": grid((20, 256), (8, 128), (3, 2), lambda i, j: (i, j)),
        "one program too many": grid((24, 128), (8, 128), (4,), lambda i: (i, 0)),
        "elements for blocks": grid((32, 128), (8, 128), (4,), lambda i: (8 * i, 0)),
        "one block early": grid((24, 128), (8, 128), (3,), lambda i: (i - 1, 0)),
        "backwards": grid((32, 128), (8, 128), (4,), lambda i: (3 - i, 0)),
        "every second block": grid((64, 128), (8, 128), (4,), lambda i: (2 * i, 0)),
    }
    return [question(group, kind, one, name=name) for kind in ("in_bounds", "covers") for name, one in named.items()]


def truth(asked: Question) -> Any:
    """The answer by looking at every element; for answers that are functions, the values, or None where there are none.

    None of a complement and a left inverse does not say that there is no other right answer: `right` is the definition.
    """
    first, kind = asked["layouts"][0], asked["kind"]
    if first["places"] is None:
        sets = [_places_of(one) for one in asked["layouts"]]
        if kind == "same_map":
            return sets[0] == sets[1]
        if kind == "injective":
            return all(a.isdisjoint(b) for a, b in itertools.combinations(sets[0], 2))
        begin, end = asked["region"]
        return None if end > len(sets[0]) else [dict(next(iter(places))).get("m", 0) for places in sets[0][begin:end]]
    tables = [table(one) for one in asked["layouts"]]
    if kind == "same_map":
        return bool((tables[0] == tables[1]).all())
    if kind == "compose":
        a, b = (_first_fastest(one) for one in asked["layouts"])
        return [a[x] for x in b]
    if kind == "left_inverse":
        places = _first_fastest(first)
        return places if len(set(places)) == len(places) else None
    if kind == "complement":
        places = _first_fastest(first)
        return places if len(set(places)) == len(places) else None
    return _of_one(kind, first, tables[0])


def _of_one(kind: str, first: Layout, places: Any) -> Any:
    """Of the table of one layout."""
    extents = np.array(first["range"])
    inside = ((places >= 0) & (places < extents)).all(axis=1)
    distinct = _distinct(places)
    if kind == "injective":
        return distinct == len(places)
    if kind == "in_bounds":
        return bool(inside.all())
    held = _distinct(places[inside])
    if kind == "covers":
        return held == prod(first["range"])
    if kind == "padding":
        return prod(first["range"]) - held
    if kind != "inverse":
        raise ValueError(f"unknown kind of question {kind!r}")
    if not distinct == len(places) == held == prod(first["range"]):
        return None
    index = np.indices(first["shape"]).reshape(len(first["shape"]), -1).T
    return index[np.lexsort(places.T[::-1])].tolist()


def _distinct(places: Any) -> int:
    """How many different rows there are."""
    keys = np.zeros(len(places), dtype=np.int64)
    for column in places.T:
        if len(column):
            keys = keys * (int(column.max()) - int(column.min()) + 1) + column - column.min()
    return len(np.unique(keys))


def right(asked: Question, answer: Any) -> bool:
    """Whether an answer is right.

    answer: a truth value or a number; for a function its values; None for "there is none". A function that is right
    is right even where no layout is.
    """
    if answer is None:
        return not exists(asked)
    known = truth(asked)
    if known is None:
        return False
    if asked["kind"] == "complement":
        reached = sorted(a + c for a in known for c in answer)
        return reached == list(range(asked["target"])) and answer == sorted(answer)
    if asked["kind"] == "left_inverse":
        return all(place < len(answer) and answer[place] == x for x, place in enumerate(known))
    return bool(answer == known)


def exists(asked: Question) -> bool:
    """Whether there is an answer at all: where no layout is the composition, to refuse is right."""
    known = truth(asked)
    return is_layout(known) if asked["kind"] == "compose" else known is not None


def table(one: Layout) -> Any:
    """The place of every index, row by row, last dimension fastest."""
    index = np.indices(one["shape"]).reshape(len(one["shape"]), -1)
    columns = [np.broadcast_to(run(place, list(index)), index.shape[1]) for place in one["places"]]
    return np.stack(columns, axis=1)


def _first_fastest(one: Layout) -> list[int]:
    """The offsets in CuTe's order, the first mode fastest."""
    index = np.indices(list(reversed(one["shape"]))).reshape(len(one["shape"]), -1)[::-1]
    return [int(v) for v in np.broadcast_to(run(one["places"][0], list(index)), index.shape[1])]


def is_layout(values: Sequence[int]) -> bool:
    """Whether some extents and strides give these offsets, first mode fastest.

    >>> is_layout([0, 2, 4, 3, 5, 7]), is_layout([0, 2, 4, 3, 5, 8])
    (True, False)
    """
    if len(values) <= 1:
        return list(values) in ([0], [])
    extent = 1
    # a layout with the fewest modes goes on with another stride where the first mode ends
    while extent < len(values) and values[extent] == extent * values[1]:
        extent += 1
    if len(values) % extent:
        return False
    rows = [values[k : k + extent] for k in range(0, len(values), extent)]
    return all([v - row[0] for v in row] == list(values[:extent]) for row in rows) and (
        len(rows) == 1 or is_layout([row[0] for row in rows])
    )


def _places_of(one: Layout) -> list[set[Any]]:
    """The places of each element in turn; of an Axe layout and of a sharding."""
    if "axe" in one:
        return _axe_places(**one["axe"])
    form = one["mesh"]
    devices = np.array(form["devices"])
    found = []
    for element in itertools.product(*map(range, form["dims"])):
        place: list[Any] = [slice(None), slice(None)]
        for entry, extent, axis in zip(element, form["dims"], form["spec"], strict=True):
            if axis:
                parts = devices.shape["xy".index(axis)]
                place["xy".index(axis)] = entry // -(-extent // parts)
        found.append({int(device) for device in devices[tuple(place)].reshape(-1)})
    return found


def _axe_places(D: list[list[Any]], R: list[list[Any]], O: dict[str, int]) -> list[set[Any]]:  # noqa: E741
    found = []
    for digits in itertools.product(*(range(e) for e, _, _ in D)):
        places = set()
        for copies in itertools.product(*(range(e) for e, _, _ in R)):
            place = dict(O)
            for digit, (_, stride, axis) in zip((*digits, *copies), (*D, *R), strict=True):
                place[axis] = place.get(axis, 0) + digit * stride
            places.add(tuple(sorted((axis, v) for axis, v in place.items() if v)))
        found.append(places)
    return found
