"""Which devices hold the same values: a forward pass over a program that runs on several devices.

What is shown equal is equal; two devices that are not shown equal may be equal all the same. A value's label is one
number per device: equal numbers, equal values. The rules are those of HLO's semantics: an operation of equal operands
gives equal results, a collective makes its results of the whole group, and what a loop carries is what it starts with
and what every trip hands on. Source: openxla/xla `xla/service/hlo_replication_analysis.cc`, with labels in place of
one bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError
from layoutproof.core.size import product
from layoutproof.hlo.collectives import OPCODES, groups_of
from layoutproof.hlotext.module import Header, Instruction
from layoutproof.hlotext.texts import element_of
from layoutproof.layouts import sharding
from layoutproof.layouts.sharding.mesh import to_tiles
from layoutproof.layouts.sharding.model import NamedSharding, TileSharding
from layoutproof.layouts.sharding.tiles import listed

Label = tuple[int, ...]
Value = Label | list["Value"] | None
"""Of an array, of a tuple; None where it is unknown."""
_EVERYWHERE = frozenset(("constant", "iota"))
_UNTOLD = frozenset(
    ("rng", "rng-bit-generator", "infeed", "recv", "send", "custom-call", "conditional", "async-start", "recv-done")
)
_MOST_ROUNDS = 64
"""Times that a loop's body is gone through; each splits a label at least."""


def tiles_of(text: str) -> TileSharding | None:
    """A sharding in XLA's own terms, of a mesh what XLA converts it to; None for what is no sharding of one array.

    >>> str(tiles_of("{mesh[], [{}, {}]}")), tiles_of("somewhere")
    ('{replicated}', None)
    """
    try:
        found = sharding.read(text) if text else None
        found = to_tiles(found) if isinstance(found, NamedSharding) else found
    except LayoutError:
        return None
    return found if isinstance(found, TileSharding) else None


def held_alike(text: str, devices: int) -> Label | None:
    """The label of an array that is sharded so; None where the sharding does not say.

    >>> held_alike("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", 4), held_alike("{replicated}", 2)
    ((0, 0, 1, 1), (0, 0))
    """
    found = tiles_of(text)
    if found is None:
        return None
    if found.kind == "replicated":
        return (0,) * devices
    if found.tiles is None or set(found.subgroups) - {"replicated"}:
        return None
    order = listed(found.tiles)
    if sorted(order) != list(range(devices)):
        return None
    alike = int(product(found.tiles.dims[len(found.tiles.dims) - len(found.subgroups) :]))
    tile = {device: k // alike for k, device in enumerate(order)}
    return canonical([tile[device] for device in range(devices)])


def canonical(keys: Sequence[object]) -> Label:
    """One number for each different key, in the order in which they come.

    >>> canonical(["b", "a", "b"])
    (0, 1, 0)
    """
    seen: dict[object, int] = {}
    return tuple([seen.setdefault(key, len(seen)) for key in keys])


@dataclass(slots=True)
class Replication:
    """computations: the instructions of each, by name.  entry: where the program starts.  shardings: of the entry's
    parameters, by number, as text."""

    computations: Mapping[str, Sequence[Instruction]]
    header: Header
    entry: str
    shardings: Mapping[int, str]
    found: dict[str, dict[str, Value]]
    """Labels of each computation that was gone through: the entry, and what loops run."""

    @property
    def devices(self) -> int:
        """How many run the program."""
        return self.header.devices

    def run(self) -> None:
        """Goes through the program once."""
        self.found[self.entry], _ = self.through(self.entry, None)

    def through(self, name: str, given: Sequence[Value] | None) -> tuple[dict[str, Value], Value]:
        """(labels of a computation's instructions, that of its result). given: its parameters', None for the entry."""
        labels: dict[str, Value] = {}
        root: Value = None
        for of in self.computations.get(name, ()):
            if of.opcode == "parameter":
                if given is None:
                    found: Value = held_alike(self.shardings.get(of.number, ""), self.devices)
                else:
                    found = given[of.number] if of.number < len(given) else None
            else:
                found = self._of(of, [element(labels, operand) for operand in of.operands])
            labels[of.name] = found
            root = found if of.root else root
        return labels, root

    def _of(self, of: Instruction, given: list[Value]) -> Value:
        opcode, devices = of.opcode, self.devices
        if opcode in _EVERYWHERE:
            return (0,) * devices
        if opcode in ("partition-id", "replica-id"):
            many = self.header.partitions
            return canonical([d % many if opcode == "partition-id" else d // many for d in range(devices)])
        if opcode == "tuple":
            return given
        if opcode == "get-tuple-element":
            inner = given[0] if given else None
            return inner[of.index] if isinstance(inner, list) and 0 <= of.index < len(inner) else None
        if opcode == "opt-barrier":
            return given[0] if given else None
        if opcode in _UNTOLD:
            return None
        if opcode in OPCODES:
            return self._collective(of, given)
        if opcode == "while":
            return self._loop(of, given[0] if given else None)
        if opcode in ("fusion", "call"):
            called = next((name for role, name in of.calls if role in ("calls", "to_apply")), "")
            return self.through(called, given)[1] if called in self.computations else None
        return self._meet(given)

    def _meet(self, given: Sequence[Value]) -> Value:
        flat: list[Label] = []
        for each in given:
            if each is None:
                return None
            if isinstance(each, list):
                inner = self._meet(each)
                if not isinstance(inner, tuple):
                    return None
                flat.append(inner)
            else:
                flat.append(each)
        if not flat:
            return None
        first = flat[0]
        return first if all(each == first for each in flat) else canonical(list(zip(*flat, strict=True)))

    def _collective(self, of: Instruction, given: list[Value]) -> Value:
        kind = of.opcode.removesuffix("-start")
        try:
            groups = groups_of(of, kind, self.header)
        except LayoutError:
            return None
        if any(not 0 <= device < self.devices for group in groups for device in group):
            return None
        results: list[Value] = [self._through_groups(kind, groups, each) for each in given]
        if of.shape.startswith("(") and not of.opcode.endswith("-start"):
            # an all-to-all of several operands mixes them
            return results if kind != "all-to-all" else [self._meet(results)] * len(results)
        return results[0] if len(results) == 1 else results

    def _through_groups(self, kind: str, groups: Sequence[Sequence[int]], given: Value) -> Value:
        if not isinstance(given, tuple):
            return None
        keys: list[object] = [("none",)] * self.devices
        if kind == "collective-permute":
            for source, target in groups:
                keys[target] = given[source]
            return canonical(keys)
        for group in groups:
            whole = tuple(given[device] for device in group)
            for position, device in enumerate(group):
                same = kind in ("all-reduce", "all-gather", "collective-broadcast")
                keys[device] = whole if same else (whole, position)
        return canonical(keys)

    def _loop(self, of: Instruction, start: Value) -> Value:
        body = dict(of.calls).get("body", "")
        if body not in self.computations:
            return None
        carried = start
        for _ in range(_MOST_ROUNDS):
            self.found[body], after = self.through(body, [carried])
            new = self._joined(carried, after)
            if new == carried:
                return carried
            carried = new
        return None

    def _joined(self, one: Value, two: Value) -> Value:
        if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
            return [self._joined(a, b) for a, b in zip(one, two, strict=True)]
        if isinstance(one, tuple) and isinstance(two, tuple):
            return self._meet([one, two])
        return None


def element(labels: Mapping[str, Value], operand: str) -> Value:
    """The label of an operand; `x#1` is element 1 of x."""
    name, indices = element_of(operand)
    found = labels.get(name)
    for index in indices:
        found = found[index] if isinstance(found, list) and index < len(found) else None
    return found
