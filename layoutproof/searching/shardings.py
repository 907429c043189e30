"""Mesh axes to dimensions: every assignment of a mesh to arrays, ranked by what one device holds and sends.

A mesh axis cuts at most one dimension of an array, or the array is replicated along it. Arrays that name their
dimensions are cut alike where they share a name, as rules for logical axes do; dimensions without a name are free.
    memory     all shards of one device together, padding to tiles included
    even       the devices divide every dimension that they cut. JAX refuses any other sharding of an array that goes
               into or comes out of a jitted function; inside of one XLA pads the last shards
    whole      in a shard's own default layout every cut dimension is a whole number of tiles: no cut adds padding
The last two are restrictions: a problem requires any of them or none, and every answer says which, and what the best
assignment of all would take.
The order in which several axes cut one dimension changes no size; they are given in the mesh's order.

What the devices send one another is counted where a problem says which products a step computes (`x, up -> h`):
dimensions that only the inputs name are summed over, and where an axis cuts one of those every device holds a part of
each sum: one all-reduce of the output's shard over those axes, 2 (n - 1) / n of its bytes for each device
(`hlo.collectives.moved`). An axis cuts one name of a product, so no other data has to be sent. The cost is then the
bytes held, and a price for each byte sent. Backward passes are products like others: state them to have them counted.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from layoutproof.core.bounds import check_length
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.size import ceil_div
from layoutproof.hlo.collectives import moved
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.questions.cheapest import padded_bytes
from layoutproof.registry.defaults import tpu_default
from layoutproof.searching import problems

MOST = 1 << 18
"""Assignments of one group of arrays that are enumerated."""

RESTRICTIONS = {"even": "even shards", "whole": "shards of whole tiles"}
"""The possible restrictions on every shard, in words."""

REQUIRED = ("even",)
"""The default restrictions: the assignments that JAX takes."""

RULE = "arrays that share a name are cut alike, and an axis cuts one name of a product"
"""A property of every assignment that is looked at."""

Spec = tuple[tuple[str, ...], ...]
Arrays = Mapping[str, tuple[XlaLayout, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Shard:
    """The shard of an array on one device. spec: mesh axes per dimension.  layout: the shard's own default layout."""

    spec: Spec
    layout: XlaLayout
    bytes: int
    even: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Contraction:
    """One contraction of a step: arrays by name."""

    inputs: tuple[str, ...]
    output: str

    def __str__(self) -> str:
        return f"{', '.join(self.inputs)} -> {self.output}"


@dataclass(frozen=True, slots=True)
class AllReduce:
    """An all-reduce that a product needs. axes: of the mesh.  bytes: that each device receives."""

    product: Contraction
    axes: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """cost: its rank.  bytes: that one device holds.  shards: by array.  sums: the data to send."""

    cost: int
    bytes: int
    shards: Mapping[str, Shard]
    sums: tuple[AllReduce, ...] = ()

    @property
    def sent(self) -> int:
        """Bytes that each device receives from others."""
        return sum(one.bytes for one in self.sums)

    def __add__(self, other: Assignment) -> Assignment:
        """Both, of different arrays."""
        shards = {**self.shards, **other.shards}
        return Assignment(self.cost + other.cost, self.bytes + other.bytes, shards, self.sums + other.sums)


@dataclass(frozen=True, slots=True)
class ShardingAnswer:
    """best: the cheapest assignments, those within the memory only.  covered: assignments.

    require: the restrictions that were kept.  least: bytes of the smallest one that keeps them, also where it does not
    fit.  least_of_all: bytes of the smallest assignment without any restriction.
    infeasible: conditions of which none can be left out, () = there is an answer.  enough: (condition, bytes per device
    without it) of those that could be left out.  reason: why it is unknown, "" = it is known.
    price: of a byte sent, in bytes held; None where no product says what is sent.
    """

    best: tuple[Assignment, ...]
    covered: int
    memory: int
    require: tuple[str, ...] = ()
    least: int = 0
    least_of_all: int = 0
    infeasible: tuple[str, ...] = ()
    enough: tuple[tuple[str, int], ...] = ()
    reason: str = ""
    price: int | None = None


Ranked = list[Assignment]


def best_shardings(
    arrays: Arrays,
    mesh: Mapping[str, int],
    memory: int,
    target: str,
    best: int = 3,
    most: int = MOST,
    require: Sequence[str] = REQUIRED,
    products: Sequence[Contraction] = (),
    price: int = 1,
) -> ShardingAnswer:
    """The `best` assignments within `memory` bytes a device, of all those that keep the restrictions in `require`.

    arrays: shape, and the name of each dimension ("" for none).  mesh: devices per axis.  most: assignments of one
    group of arrays that are enumerated.  require: of RESTRICTIONS; () = every assignment is a candidate.
    products: the products of a step; their arrays name all their dimensions.  price: of a byte sent, in bytes held.
    Raises LayoutError for products of other arrays, and for an array that names a dimension twice.
    """
    required = tuple(word for word in RESTRICTIONS if word in require)
    _check(products, arrays)
    counted = price if products else None
    groups = _groups(arrays, products)
    covered = 1
    evaluated: list[Ranked] = []
    for group in groups:
        own = [product for product in products if product.output in group]
        choices = _choices(group, own, most)
        count = len(choices) ** len(mesh)
        covered *= count
        if count > most:
            reason = problems.TOO_MANY_ASSIGNMENTS(", ".join(group), count, most)
            return ShardingAnswer((), covered, memory, required, reason=reason, price=counted)
        evaluated.append(_every(group, own, price, choices, mesh, target))
    totals = {
        kept: _least(evaluated, kept) for n in range(len(required) + 1) for kept in itertools.combinations(required, n)
    }
    least, least_of_all = totals[required], totals[()]
    if least <= memory:
        ranked = _combined([_kept(every, required) for every in evaluated], best, memory)
        return ShardingAnswer(tuple(ranked), covered, memory, required, least, least_of_all, price=counted)
    # replicating everything keeps every restriction, so without the limit of memory there is always an answer
    infeasible = list(required)
    for word in required:
        if totals[_but(infeasible, word)] > memory:
            infeasible.remove(word)
    enough = tuple((RESTRICTIONS[word], totals[_but(infeasible, word)]) for word in infeasible)
    said = (f"{memory} bytes a device", *(RESTRICTIONS[word] for word in infeasible))
    return ShardingAnswer((), covered, memory, required, least, least_of_all, said, enough, price=counted)


def read_product(text: str) -> Contraction:
    """A product as it is written, `x, up -> h`. LayoutError for anything else.

    >>> str(read_product("x,up->h"))
    'x, up -> h'
    """
    left, arrow, output = check_length(text).partition("->")
    inputs = tuple(name.strip() for name in left.split(","))
    if not arrow or not all(name.isidentifier() for name in (*inputs, output.strip())):
        raise LayoutError(problems.PRODUCT_FORM(shorten(repr(text), 60)))
    return Contraction(inputs, output.strip())


def _check(products: Sequence[Contraction], arrays: Arrays) -> None:
    for product in products:
        for name in (*product.inputs, product.output):
            if name not in arrays:
                raise LayoutError(problems.PRODUCT_OF_UNKNOWN(product, name, ", ".join(arrays)))
            if "" in arrays[name][1]:
                raise LayoutError(problems.PRODUCT_WITHOUT_NAMES(product, name))
        known = {n for name in product.inputs for n in arrays[name][1]}
        for n in arrays[product.output][1]:
            if n not in known:
                raise LayoutError(problems.PRODUCT_DIMENSION(product, n, product.output))


def _but(words: Sequence[str], one: str) -> tuple[str, ...]:
    return tuple(word for word in words if word != one)


def _groups(arrays: Arrays, products: Sequence[Contraction]) -> list[dict[str, tuple[XlaLayout, tuple[str, ...]]]]:
    """Arrays that share names or products, directly or by others, together; dimensions without a name get their own."""
    groups: list[dict[str, tuple[XlaLayout, tuple[str, ...]]]] = []
    for array, (shape, own) in arrays.items():
        names = tuple(name or f"{array}[{d}]" for d, name in enumerate(own))
        for name in names:
            if names.count(name) > 1:
                raise LayoutError(problems.AXIS_CUTS_TWO(array, name))
        beside = {n for p in products for n in (*p.inputs, p.output) if array in (*p.inputs, p.output)}
        joined = {array: (shape, names)}
        apart = []
        for group in groups:
            if beside & set(group) or any(set(names) & set(other) for _, other in group.values()):
                joined = {**group, **joined}
            else:
                apart.append(group)
        groups = [*apart, joined]
    return groups


def _choices(group: Arrays, products: Sequence[Contraction], most: int) -> list[frozenset[str]]:
    """The sets of names that one mesh axis may cut: at most one of each array, and of each product."""
    together = [set(own) for _, own in group.values()]
    together += [{n for array in (*p.inputs, p.output) for n in group[array][1]} for p in products]
    chosen = [frozenset[str]()]
    for name in dict.fromkeys(name for _, own in group.values() for name in own):
        beside = set[str]().union(*(names for names in together if name in names))
        chosen += [names | {name} for names in chosen if not names & beside]
        if len(chosen) > most:
            break
    return chosen


def _every(
    group: Arrays,
    products: Sequence[Contraction],
    price: int,
    choices: Sequence[frozenset[str]],
    mesh: Mapping[str, int],
    target: str,
) -> Ranked:
    """All assignments with their shards, cheapest first, then those that cut least."""
    known: dict[tuple[str, Spec], Shard] = {}
    found: Ranked = []
    for picked in itertools.product(choices, repeat=len(mesh)):
        shards = {}
        for array, (shape, own) in group.items():
            spec = tuple(tuple(a for a, names in zip(mesh, picked, strict=True) if name in names) for name in own)
            if (array, spec) not in known:
                known[array, spec] = _shard(shape, spec, mesh, target)
            shards[array] = known[array, spec]
        sums = tuple(found for product in products for found in _sums(product, group, picked, mesh, shards))
        held = sum(shard.bytes for shard in shards.values())
        found.append(Assignment(held + price * sum(one.bytes for one in sums), held, shards, sums))
    return sorted(found, key=lambda one: (one.cost, sum(bool(a) for s in one.shards.values() for a in s.spec)))


def _sums(
    product: Contraction,
    group: Arrays,
    picked: Sequence[frozenset[str]],
    mesh: Mapping[str, int],
    shards: Mapping[str, Shard],
) -> list[AllReduce]:
    """The all-reduce of a product whose summed dimensions are cut, if it needs one."""
    summed = {n for array in product.inputs for n in group[array][1]} - set(group[product.output][1])
    axes = tuple(axis for axis, names in zip(mesh, picked, strict=True) if names & summed)
    held, devices = shards[product.output].bytes, prod(mesh[axis] for axis in axes)
    sent = moved("all-reduce", devices, held, held)
    return [AllReduce(product, axes, sent)] if sent else []


def _shard(shape: XlaLayout, spec: Spec, mesh: Mapping[str, int], target: str) -> Shard:
    parts = [prod(mesh[axis] for axis in axes) for axes in spec]
    held = tuple(ceil_div(int(extent), n) for extent, n in zip(shape.dims, parts, strict=True))
    layout = replace(tpu_default(replace(shape, dims=held), target), memory_space=shape.memory_space)
    even = all(int(extent) % n == 0 for extent, n in zip(shape.dims, parts, strict=True))
    tile = dict(zip(layout.minor_to_major, reversed(layout.tiles[0] if layout.tiles else ()), strict=False))
    whole = all(n == 1 or held[d] % tile.get(d, 1) == 0 for d, n in enumerate(parts))
    return Shard(spec, layout, padded_bytes(layout), even, whole)


def _kept(every: Ranked, conditions: tuple[str, ...]) -> Ranked:
    return [one for one in every if all(getattr(shard, word) for shard in one.shards.values() for word in conditions)]


def _least(groups: Sequence[Ranked], conditions: tuple[str, ...]) -> int:
    """Bytes of the smallest assignment of every group; there is one, because replicating meets all conditions."""
    return sum(min(one.bytes for one in _kept(every, conditions)) for every in groups)


def _combined(groups: Sequence[Ranked], best: int, memory: int) -> Ranked:
    """The `best` cheapest sums of one entry per group that fit. Groups are independent but for the memory, so what
    `best` others beat in cost and bytes at once cannot matter."""
    found: Ranked = [Assignment(0, 0, {})]
    for every in groups:
        pairs = [one + other for one in found for other in _unbeaten(every, best)]
        found = _unbeaten(sorted(pairs, key=lambda one: one.cost), best)
    return [one for one in found if one.bytes <= memory][:best]


def _unbeaten(ranked: Ranked, best: int) -> Ranked:
    """Those, of some in order of cost, that fewer than `best` before them are no larger than."""
    sizes: list[int] = []
    kept = []
    for one in ranked:
        if bisect_right(sizes, one.bytes) < best:
            insort(sizes, one.bytes)
            kept.append(one)
    return kept
