"""Mesh axes to dimensions: every assignment of a mesh to arrays, ranked by the bytes that one device holds.

A mesh axis cuts at most one dimension of an array, or the array is replicated along it. Arrays that name their
dimensions are cut alike where they share a name, as rules for logical axes do; dimensions without a name are free.
    memory     all shards of one device together, padding to tiles included
    even       the devices divide every dimension that they cut. JAX refuses any other sharding of an array that goes
               into or comes out of a jitted function; inside of one XLA pads the last shards
    whole      in a shard's own default layout every cut dimension is a whole number of tiles: no cut adds padding
The last two are restrictions: a problem requires any of them or none, and every answer says which, and what the best
assignment of all would take.
The order in which several axes cut one dimension changes no size; they are given in the mesh's order. What the devices
then have to send one another is not counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.core.errors import LayoutError
from layoutproof.core.size import ceil_div, product
from layoutproof.layouts.xla.shape import XlaLayout
from layoutproof.questions.cheapest import padded_bytes
from layoutproof.registry.defaults import tpu_default

MOST = 1 << 18
"""Assignments of one group of arrays that are enumerated."""

RESTRICTIONS = {"even": "even shards", "whole": "shards of whole tiles"}
"""What a problem may require of every shard, with the words for it."""

REQUIRED = ("even",)
"""What is required unless the problem says otherwise: the assignments that JAX takes."""

Spec = tuple[tuple[str, ...], ...]
Arrays = Mapping[str, tuple[XlaLayout, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Shard:
    """What one device holds of an array. spec: mesh axes per dimension.  layout: the shard's own default layout."""

    spec: Spec
    layout: XlaLayout
    bytes: int
    even: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class ShardingAnswer:
    """best: shards by array, fewest bytes per device first, those within the memory only.  covered: assignments.

    require: the restrictions that were kept.  least: bytes of the best one that keeps them, also where it does not fit.
    least_of_all: bytes of the best assignment without any restriction.
    conflict: conditions of which none can be left out, () = there is an answer.  enough: (condition, bytes per device
    without it) of those that could be left out.  reason: why it is unknown, "" = it is known.
    """

    best: tuple[Mapping[str, Shard], ...]
    covered: int
    memory: int
    require: tuple[str, ...] = ()
    least: int = 0
    least_of_all: int = 0
    conflict: tuple[str, ...] = ()
    enough: tuple[tuple[str, int], ...] = ()
    reason: str = ""


Ranked = list[tuple[int, dict[str, Shard]]]


def best_shardings(
    arrays: Arrays,
    mesh: Mapping[str, int],
    memory: int,
    target: str,
    best: int = 3,
    most: int = MOST,
    require: Sequence[str] = REQUIRED,
) -> ShardingAnswer:
    """The `best` assignments within `memory` bytes a device, of all those that keep the restrictions in `require`.

    arrays: shape, and the name of each dimension ("" for none).  mesh: devices per axis.  most: assignments of one
    group of arrays that are enumerated.  require: of RESTRICTIONS; () = every assignment is a candidate.
    """
    required = tuple(word for word in RESTRICTIONS if word in require)
    groups = _groups(arrays)
    covered = 1
    evaluated: list[Ranked] = []
    for group in groups:
        choices = _choices(group, most)
        count = len(choices) ** len(mesh)
        covered *= count
        if count > most:
            what = f"{', '.join(group)}: {count} assignments; at most {most} are enumerated"
            reason = f"{what}. Name fewer dimensions alike, or fewer axes"
            return ShardingAnswer((), covered, memory, required, reason=reason)
        evaluated.append(_every(group, choices, mesh, target))
    totals = {
        kept: _least(evaluated, kept) for n in range(len(required) + 1) for kept in itertools.combinations(required, n)
    }
    least, least_of_all = totals[required], totals[()]
    if least <= memory:
        ranked = _combined([_kept(every, required) for every in evaluated], best)
        fitting = tuple(found for size, found in ranked if size <= memory)
        return ShardingAnswer(fitting, covered, memory, required, least, least_of_all)
    # replicating everything keeps every restriction, so without the limit of memory there is always an answer
    conflict = list(required)
    for word in required:
        if totals[_but(conflict, word)] > memory:
            conflict.remove(word)
    enough = tuple((RESTRICTIONS[word], totals[_but(conflict, word)]) for word in conflict)
    said = (f"{memory} bytes a device", *(RESTRICTIONS[word] for word in conflict))
    return ShardingAnswer((), covered, memory, required, least, least_of_all, said, enough)


def _but(words: Sequence[str], one: str) -> tuple[str, ...]:
    return tuple(word for word in words if word != one)


def _groups(arrays: Arrays) -> list[dict[str, tuple[XlaLayout, tuple[str, ...]]]]:
    """Arrays that share names, directly or by others, together; dimensions without a name get one of their own."""
    groups: list[dict[str, tuple[XlaLayout, tuple[str, ...]]]] = []
    for array, (shape, own) in arrays.items():
        names = tuple(name or f"{array}[{d}]" for d, name in enumerate(own))
        for name in names:
            if names.count(name) > 1:
                raise LayoutError(f"{array} has two dimensions {name}; a mesh axis could not cut one of them alone")
        joined = {array: (shape, names)}
        apart = []
        for group in groups:
            if any(set(names) & set(other) for _, other in group.values()):
                joined = {**group, **joined}
            else:
                apart.append(group)
        groups = [*apart, joined]
    return groups


def _choices(group: Arrays, most: int) -> list[frozenset[str]]:
    """The sets of names that one mesh axis may cut: at most one of each array."""
    chosen = [frozenset[str]()]
    for name in dict.fromkeys(name for _, own in group.values() for name in own):
        beside = {n for _, own in group.values() if name in own for n in own}
        chosen += [names | {name} for names in chosen if not names & beside]
        if len(chosen) > most:
            break
    return chosen


def _every(group: Arrays, choices: Sequence[frozenset[str]], mesh: Mapping[str, int], target: str) -> Ranked:
    """All assignments with their shards, fewest bytes first, then those that cut least."""
    known: dict[tuple[str, Spec], Shard] = {}
    found: Ranked = []
    for picked in itertools.product(choices, repeat=len(mesh)):
        shards = {}
        for array, (shape, own) in group.items():
            spec = tuple(tuple(a for a, names in zip(mesh, picked, strict=True) if name in names) for name in own)
            if (array, spec) not in known:
                known[array, spec] = _shard(shape, spec, mesh, target)
            shards[array] = known[array, spec]
        found.append((sum(shard.bytes for shard in shards.values()), shards))
    return sorted(found, key=lambda entry: (entry[0], sum(bool(a) for s in entry[1].values() for a in s.spec)))


def _shard(shape: XlaLayout, spec: Spec, mesh: Mapping[str, int], target: str) -> Shard:
    parts = [product(mesh[axis] for axis in axes) for axes in spec]
    held = tuple(ceil_div(int(extent), n) for extent, n in zip(shape.dims, parts, strict=True))
    layout = replace(tpu_default(replace(shape, dims=held), target), memory_space=shape.memory_space)
    even = all(int(extent) % n == 0 for extent, n in zip(shape.dims, parts, strict=True))
    tile = dict(zip(layout.minor_to_major, reversed(layout.tiles[0] if layout.tiles else ()), strict=False))
    whole = all(n == 1 or held[d] % tile.get(d, 1) == 0 for d, n in enumerate(parts))
    return Shard(spec, layout, padded_bytes(layout), even, whole)


def _kept(every: Ranked, conditions: tuple[str, ...]) -> Ranked:
    return [entry for entry in every if all(getattr(shard, word) for shard in entry[1].values() for word in conditions)]


def _least(groups: Sequence[Ranked], conditions: tuple[str, ...]) -> int:
    """Bytes of the best assignment of every group; there is one, because replicating meets all conditions."""
    return sum(_kept(every, conditions)[0][0] for every in groups)


def _combined(groups: Sequence[Ranked], best: int) -> Ranked:
    """The `best` sums of one entry per group. Groups are independent, so the best of each are all that can matter."""
    found: Ranked = [(0, {})]
    for every in groups:
        pairs = [(a + b, {**one, **other}) for a, one in found for b, other in every[:best]]
        found = sorted(pairs, key=lambda entry: entry[0])[:best]
    return found
