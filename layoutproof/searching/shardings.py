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

Arrays that are fully sharded (FSDP; Zhao and others, arXiv 2304.11277, section 3) are held in more parts than products
use: an axis that cuts no name of theirs may cut a dimension of what is held. Each product that takes such an array
gathers it (an all-gather of its shard); one that gives it adds up the parts where they are held (a reduce-scatter in
place of an all-reduce, over the axes that cut both). What is gathered for a product is not counted as held.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

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
RULE_OF_HELD = "; what fsdp names may be held in more parts, and what is gathered of it is not counted as held"
"""The rest of the rule where arrays are fully sharded."""

ExchangeKind = Literal["all-gather", "all-reduce", "reduce-scatter"]
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

    @property
    def partition(self) -> str:
        """The spec as JAX writes it, `P(None, 'data')`."""
        each = ["None" if not axes else repr(axes[0]) if len(axes) == 1 else repr(axes) for axes in self.spec]
        return f"P({', '.join(each)})"


@dataclass(frozen=True, slots=True)
class Contraction:
    """One contraction of a step: arrays by name."""

    inputs: tuple[str, ...]
    output: str

    def __str__(self) -> str:
        return f"{', '.join(self.inputs)} -> {self.output}"


@dataclass(frozen=True, slots=True)
class ShardExchange:
    """A collective that a product needs.

    kind: `all-gather`, `all-reduce` or `reduce-scatter`.  array: whose shards are sent.  axes: of the mesh.
    bytes: that each device receives.
    """

    kind: ExchangeKind
    product: Contraction
    array: str
    axes: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """cost: its rank.  bytes: that one device holds.  shards: by array.  exchanges: the data to send."""

    cost: int
    bytes: int
    shards: Mapping[str, Shard]
    exchanges: tuple[ShardExchange, ...] = ()

    @property
    def sent(self) -> int:
        """Bytes that each device receives from others."""
        return sum(one.bytes for one in self.exchanges)

    def __add__(self, other: Assignment) -> Assignment:
        """Both, of different arrays."""
        shards = {**self.shards, **other.shards}
        exchanges = self.exchanges + other.exchanges
        return Assignment(self.cost + other.cost, self.bytes + other.bytes, shards, exchanges)


@dataclass(frozen=True, slots=True)
class ShardingAnswer:
    """best: the cheapest assignments, those within the memory only.  covered: assignments.

    require: the restrictions that were kept.  least: bytes of the smallest one that keeps them, also where it does not
    fit.  least_of_all: bytes of the smallest assignment without any restriction.
    infeasible: conditions of which none can be left out, () = there is an answer.  enough: (condition, bytes per device
    without it) of those that could be left out.  reason: why it is unknown, "" = it is known.
    price: of a byte sent, in bytes held; None where no product says what is sent.  rule: of every assignment.
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
    rule: str = RULE


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
    fsdp: Sequence[str] = (),
) -> ShardingAnswer:
    """The `best` assignments within `memory` bytes a device, of all those that keep the restrictions in `require`.

    arrays: shape, and the name of each dimension ("" for none).  mesh: devices per axis.  most: assignments of one
    group of arrays that are enumerated.  require: of RESTRICTIONS; () = every assignment is a candidate.
    products: the products of a step; their arrays name all their dimensions.  price: of a byte sent, in bytes held.
    fsdp: arrays of products that may be held in more parts than products use.
    Raises LayoutError for products of other arrays, for an array that names a dimension twice, and for one in `fsdp`
    that is in no product.
    """
    required = tuple(word for word in RESTRICTIONS if word in require)
    _check(products, arrays, fsdp)
    rule = RULE + RULE_OF_HELD if fsdp else RULE
    counted = price if products else None
    groups = _groups(arrays, products)
    covered = 1
    evaluated: list[Ranked] = []
    for group in groups:
        own = [product for product in products if product.output in group]
        choices = _choices(group, own, most)
        held = [name for name in fsdp if name in group]
        count = len(choices) ** len(mesh) * (sum((1 + len(group[name][1])) ** len(mesh) for name in held) or 1)
        if count > most:
            reason = problems.TOO_MANY_ASSIGNMENTS(", ".join(group), count, most)
            return ShardingAnswer((), covered * count, memory, required, reason=reason, price=counted, rule=rule)
        ranked, many = _every(group, own, price, choices, mesh, target, held, best)
        covered *= many
        evaluated.append(ranked)
    totals = {
        kept: _least(evaluated, kept) for n in range(len(required) + 1) for kept in itertools.combinations(required, n)
    }
    least, least_of_all = totals[required], totals[()]
    if least <= memory:
        ranked = _combined([_kept(every, required) for every in evaluated], best, memory)
        ordered = [replace(one, shards={name: one.shards[name] for name in arrays}) for one in ranked]
        return ShardingAnswer(tuple(ordered), covered, memory, required, least, least_of_all, price=counted, rule=rule)
    # replicating everything keeps every restriction, so without the limit of memory there is always an answer
    infeasible = list(required)
    for word in required:
        if totals[_but(infeasible, word)] > memory:
            infeasible.remove(word)
    enough = tuple((RESTRICTIONS[word], totals[_but(infeasible, word)]) for word in infeasible)
    said = (f"{memory} bytes a device", *(RESTRICTIONS[word] for word in infeasible))
    return ShardingAnswer((), covered, memory, required, least, least_of_all, said, enough, price=counted, rule=rule)


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


def _check(products: Sequence[Contraction], arrays: Arrays, fsdp: Sequence[str]) -> None:
    spoken = {name for product in products for name in (*product.inputs, product.output)}
    for name in fsdp:
        if name not in spoken:
            raise LayoutError(problems.FSDP_IN_NO_PRODUCT(name))
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
    fsdp: Sequence[str],
    best: int,
) -> tuple[Ranked, int]:
    """All assignments with their shards, cheapest first, then those that cut least; and how many there are.

    How one array of `fsdp` is held changes nothing of the others, so what `best` others beat in cost and bytes, and
    which keep the same restrictions, is left out.
    """
    known: dict[tuple[str, Spec], Shard] = {}

    def shard(array: str, spec: Spec) -> Shard:
        if (array, spec) not in known:
            known[array, spec] = _shard(group[array][0], spec, mesh, target)
        return known[array, spec]

    found: Ranked = []
    many = 0
    for picked in itertools.product(choices, repeat=len(mesh)):
        specs = {
            array: tuple(tuple(a for a, names in zip(mesh, picked, strict=True) if name in names) for name in own)
            for array, (_, own) in group.items()
        }
        ranked, count = [Assignment(0, 0, {})], 1
        for array, spec in specs.items():
            held = _held(spec, mesh) if array in fsdp else [spec]
            count *= len(held)
            options = []
            for each in held:
                sent = tuple(_exchanges(array, spec, each, products, group, picked, mesh, shard))
                size = shard(array, each).bytes
                cost = size + price * sum(one.bytes for one in sent)
                options.append(Assignment(cost, size, {array: shard(array, each)}, sent))
            ranked = [one + other for one in ranked for other in options]
            ranked = _unbeaten_alike(ranked, best) if len(held) > 1 else ranked
        found += ranked
        many += count
    return sorted(found, key=_rank), many


def _rank(one: Assignment) -> tuple[int, int]:
    """The order of assignments: by cost, then those that cut least."""
    return one.cost, sum(bool(axes) for shard in one.shards.values() for axes in shard.spec)


def _held(spec: Spec, mesh: Mapping[str, int]) -> list[Spec]:
    """How an array may be held that products use so: each axis that does not cut it may cut one of its dimensions."""
    free = [axis for axis in mesh if all(axis not in axes for axes in spec)]
    found = []
    for at in itertools.product([None, *range(len(spec))], repeat=len(free)):
        more = dict(zip(free, at, strict=True))
        found.append(tuple(tuple(a for a in mesh if a in axes or more.get(a) == d) for d, axes in enumerate(spec)))
    return found


def _exchanges(
    array: str,
    used: Spec,
    held: Spec,
    products: Sequence[Contraction],
    group: Arrays,
    picked: Sequence[frozenset[str]],
    mesh: Mapping[str, int],
    shard: Callable[[str, Spec], Shard],
) -> Iterator[ShardExchange]:
    """What products send of one array: its shards to those that take it, parts of its sums from those that give it."""
    apart = {axis for axes in held for axis in axes} - {axis for axes in used for axis in axes}
    for product in products:
        if product.output == array:
            summed = {n for name in product.inputs for n in group[name][1]} - set(group[array][1])
            axes = [axis for axis, names in zip(mesh, picked, strict=True) if names & summed]
            # the parts are scattered first: what is left is summed over smaller shards
            scattered = tuple(tuple(a for a in dim if a not in apart or a in axes) for dim in held)
            yield from _exchange(
                "reduce-scatter", product, array, [a for a in axes if a in apart], mesh, shard(array, used)
            )
            rest = [a for a in axes if a not in apart]
            yield from _exchange("all-reduce", product, array, rest, mesh, shard(array, scattered))
        if array in product.inputs:
            yield from _exchange(
                "all-gather", product, array, [a for a in mesh if a in apart], mesh, shard(array, used)
            )


def _exchange(
    kind: ExchangeKind, product: Contraction, array: str, axes: Sequence[str], mesh: Mapping[str, int], whole: Shard
) -> Iterator[ShardExchange]:
    """A collective over some axes, if it sends anything. whole: what a device has of the array before or after it."""
    sent = moved(kind, prod(mesh[axis] for axis in axes), whole.bytes, whole.bytes)
    if sent:
        yield ShardExchange(kind, product, array, tuple(axes), sent)


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


def _unbeaten_alike(found: Ranked, best: int) -> Ranked:
    """Those that fewer than `best` others, which keep the same restrictions, beat in cost and bytes."""
    alike: defaultdict[tuple[bool, bool], Ranked] = defaultdict(list)
    for one in sorted(found, key=_rank):
        shards = one.shards.values()
        alike[all(s.even for s in shards), all(s.whole for s in shards)].append(one)
    return [one for ranked in alike.values() for one in _unbeaten(ranked, best)]


def _unbeaten(ranked: Ranked, best: int) -> Ranked:
    """Those, of some in order of cost, that fewer than `best` before them are no larger than."""
    sizes: list[int] = []
    kept = []
    for one in ranked:
        if bisect_right(sizes, one.bytes) < best:
            insort(sizes, one.bytes)
            kept.append(one)
    return kept
