"""The traffic between devices to go from one sharding to another: exact bounds, by counting missing elements.

`between` is of two shardings of an array: a device must receive the elements that it holds after and not before.
`Reshards` is of a compiled program: collectives that move data (all-gather, all-to-all, collective-permute) with
only moves between them, such as slices and copies, are one reshard. Its readers are the operations that compute with
its result, and the program's results; a device must receive at least the elements that its readers read and that it
does not hold where the reshard begins. Arrays of two devices count as the same where they are shown
equal (`replication`). Elements are counted, padding is not.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import INTS
from layoutproof.hlo import bitcasts, problems
from layoutproof.hlo.boxes import Box, common, count, reshaped, shifted, volume, whole, without
from layoutproof.hlo.collectives import groups_of, moved
from layoutproof.hlo.groups import Groups
from layoutproof.hlo.replication import Label, Replication, element
from layoutproof.hlo.scalars import computed, literal
from layoutproof.hlo.shapes import ArrayShape, Shapes
from layoutproof.hlotext.module import Header, Instruction
from layoutproof.hlotext.texts import element_of
from layoutproof.layouts.sharding.place import Shards
from layoutproof.layouts.xla import XlaLayout

MOST_DEVICES = 1 << 14
"""Devices whose parts of an array are compared."""
MOST_PIECES = 100_000
"""Boxes that are followed through one program's moves before the rest is not counted."""
_DEEP = 100
"""Moves one after the other that are followed."""

MOVING = ("all-gather", "all-to-all", "collective-permute", "collective-broadcast")
_MOVES = frozenset(
    ("copy", "convert", "bitcast", "reshape", "transpose", "slice", "dynamic-slice", "concatenate", "pad", "broadcast")
) | {"dynamic-update-slice"}
_NO_READERS = frozenset(
    (*("parameter", "get-tuple-element", "tuple", "fusion", "call", "opt-barrier", "copy-start", "copy-done"),)
)
_UNCLEAR = frozenset(
    (
        *("while", "conditional", "custom-call", "gather", "scatter", "select", "dynamic-slice", "async-start"),
        *("dynamic-update-slice", "pad", "slice", "bitcast", "send", "map", "sort", "select-and-scatter"),
        "reduce-window",
    )
)
"""Operations that may read a part of an operand only, or that this module does not look into."""
_FREE = frozenset(("constant", "iota", "partition-id", "replica-id"))
_RANGE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")
_PAD = re.compile(r"^(-?\d+)_(-?\d+)(?:_(\d+))?$")


@dataclass(frozen=True, slots=True)
class Moved:
    """The elements that a device receives, the most over all devices: at least, and by a full rematerialisation."""

    least: int
    full: int
    devices: int


def between(before: IndexMap, after: IndexMap) -> Moved:
    """The least that each device receives from the others to go from one sharding of an array to another.

    A device that one of them leaves out holds nothing there. Raises LayoutError for no shardings of known extents.

    >>> from layoutproof.registry.read import read_layout
    >>> one = read_layout("f32[16,16,16] sharded {devices=[2,1,4]<=[4,2]T(1,0)}").index_map()
    >>> two = read_layout("f32[16,16,16] sharded {devices=[1,8,1]<=[8]}").index_map()
    >>> between(one, two)
    Moved(least=448, full=3584, devices=8)
    """
    held, wanted = _held(_shards(before)), _held(_shards(after))
    total = prod(int(n) for n in _shards(before).extents if isinstance(n, int))
    nothing = tuple((0, 0) for _ in _shards(before).extents)
    devices = set(held) | set(wanted)
    least = max(volume(box) - volume(common(box, held.get(device, nothing))) for device, box in wanted.items())
    return Moved(least, max(total - volume(held.get(device, nothing)) for device in devices), len(devices))


def _shards(m: IndexMap) -> Shards:
    shards = getattr(m.place, "shards", None)
    if not isinstance(shards, Shards) or any(type(n) is not int for n in shards.extents):
        raise LayoutError(problems.NO_SHARDING())
    return shards


def _held(shards: Shards) -> dict[int, Box]:
    """The box of elements of each device."""
    if prod(shards.tiles) * prod(size for _, size in shards.replicas) > MOST_DEVICES:
        raise LayoutError(problems.MORE_DEVICES(MOST_DEVICES))
    found = {}
    for numbers in itertools.product(*[range(size) for size in shards.tiles]):
        cuts: Any = zip(numbers, shards.extents, shards.shard, strict=True)
        box = tuple((min(t * c, d), min((t + 1) * c, d)) for t, d, c in cuts)
        for replica in itertools.product(*[range(size) for _, size in shards.replicas]):
            found[shards.device((*numbers, *replica), INTS)] = box
    return found


@dataclass(frozen=True, slots=True)
class ReshardChain:
    """Collectives with nothing but moves between them.

    first: the first of them.  collectives: their names, in the order of the text.  received: bytes that a device
    receives through them.  needed: bytes that the device with most must receive at least, for what is read.
    None: unknown, and why.
    """

    first: Instruction
    collectives: tuple[str, ...]
    received: int | None
    needed: int | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class _At:
    """An array: the result of a step, in the computation of a frame. element: of its tuple, -1 for the whole."""

    frame: int
    name: str
    element: int = -1


@dataclass(frozen=True, slots=True)
class _Frame:
    """A computation that runs, and the step that runs it; -1 and "" for one that is not within another's step."""

    body: str
    caller: int = -1
    at: str = ""


@dataclass(slots=True)
class Reshards:
    """computations: all instructions of a program, by computation.  entry: the one that it starts with.  shardings: of
    its parameters, by number, as text."""

    computations: Mapping[str, Sequence[Instruction]]
    header: Header
    entry: str
    shardings: Mapping[int, str]
    shapes: Shapes = field(default_factory=Shapes)
    _steps: dict[str, dict[str, Instruction]] = field(default_factory=dict)
    _frames: list[_Frame] = field(default_factory=list)
    _known: dict[_Frame, int] = field(default_factory=dict)
    _labels: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    _reach: dict[_At, frozenset[_At]] = field(default_factory=dict)
    _groups: dict[_At, Groups] = field(default_factory=dict)
    _numbers: dict[tuple[_At, int], int] = field(default_factory=dict)
    _replication: Replication | None = None
    _pieces: int = 0

    def found(self) -> Iterator[tuple[str, ReshardChain]]:
        """(computation, reshard) of all, those of the entry, of loops and of branches."""
        names = dict.fromkeys([self.entry])
        for steps in self.computations.values():
            for of in steps:
                if of.opcode in ("while", "conditional"):
                    names.update(dict.fromkeys(name for role, name in of.calls if role != "condition"))
        for name in names:
            if name in self.computations:
                for each in self.of(name):
                    yield name, each

    def of(self, name: str) -> list[ReshardChain]:
        """The reshards of one computation that runs by itself: the entry, a loop's body, a branch.

        Where the moved data cannot be followed, its first collective stands for all of them, with the reason.
        """
        try:
            return self._of(name)
        except Undecided as error:
            moving = [of for of in self.computations[name] if _kind(of) in MOVING]
            names = tuple(of.name for of in moving)
            return [ReshardChain(moving[0], names, None, None, str(error))] if moving else []

    def _of(self, name: str) -> list[ReshardChain]:
        top = self._frame(_Frame(name))
        readers: list[tuple[_At, str]] = []
        self._readers(top, readers)
        together: dict[_At, _At] = {}

        def root(one: _At) -> _At:
            while together.setdefault(one, one) != one:
                one = together[one]
            return one

        for at, _ in readers:
            through = sorted(self._through(at), key=lambda each: self._step(each).line)
            for other in through[1:]:
                together[root(other)] = root(through[0])
            if through:
                root(through[0])
        parts: dict[_At, list[_At]] = {}
        for one in sorted(together, key=lambda each: self._step(each).line):
            parts.setdefault(root(one), []).append(one)
        found = []
        for key, members in parts.items():
            reading = [(at, why) for at, why in readers if root(next(iter(self._through(at)))) == key]
            found.append(self._reshard(members, reading))
        return found

    def _reshard(self, members: list[_At], readers: list[tuple[_At, str]]) -> ReshardChain:
        first = self._step(members[0])
        names = tuple(self._step(each).name for each in members)
        received, bits = 0, 64
        for each in members:
            got, width = self._received(each)
            received, bits = received + got, min(bits, width)
        needed, why = None, next((why for _, why in readers if why), "")
        if not why:
            try:
                needed = -(-self._needed([at for at, _ in readers]) * bits // 8)
            except Undecided as error:
                why = str(error)
        return ReshardChain(first, names, -(-received // 8), needed, why)

    def _received(self, at: _At) -> tuple[int, int]:
        """(bits that a device receives through one collective, bits of an element)."""
        of = self._step(at)
        kind = _kind(of)
        tupled = of.shape.startswith("(") and not of.opcode.endswith("-start")
        results = self.shapes.of(of.shape).arrays if tupled else (self._array(at),)
        made = sum(each.elements for each in results)
        bits = sum(each.unpadded for each in results) * 8 // made if made else 8
        groups = self._groups_of(at)
        if kind == "collective-permute":
            return (made * bits if any(a != b for a, b in groups) else 0), bits
        size = max(map(len, groups), default=0)
        given = sum(self._array(self._operand(at.frame, of, k)).elements for k in range(len(of.operands)))
        return (moved(kind, size, given, made) or 0) * bits, bits

    def _needed(self, readers: list[_At]) -> int:
        """Elements that the device with most lacks."""
        most = 0
        for device in range(self.header.devices):
            leaves: list[tuple[_At, int, Box]] = []
            for at in readers:
                self._pull(at, device, whole(self._dims(at)), leaves, 0)
            lacking: dict[tuple[_At, int], list[Box]] = {}
            for at, holder, box in leaves:
                label = self._label(at)
                if label[holder] != label[device]:
                    lacking.setdefault((at, label[holder]), []).append(box)
            most = max(most, sum(count(boxes) for boxes in lacking.values()))
        return most

    # the dataflow

    def _frame(self, frame: _Frame) -> int:
        known = self._known.get(frame)
        if known is None:
            known = self._known[frame] = len(self._frames)
            self._frames.append(frame)
        return known

    def _steps_of(self, body: str) -> dict[str, Instruction]:
        found = self._steps.get(body)
        if found is None:
            found = self._steps[body] = {of.name: of for of in self.computations.get(body, ())}
        return found

    def _step(self, at: _At) -> Instruction:
        found = self._steps_of(self._frames[at.frame].body).get(at.name)
        if found is None:
            raise Undecided(problems.NOT_THERE(at.name))
        return found

    def _operand(self, frame: int, of: Instruction, number: int) -> _At:
        """The array of an operand, past tuples, calls and waits."""
        name, indices = element_of(of.operands[number])
        if len(indices) > 1:
            raise Undecided(problems.READS_NESTED_TUPLE(of.name))
        return self._made(_At(frame, name, indices[0] if indices else -1))

    def _made(self, at: _At) -> _At:
        for _ in range(4 * _DEEP):
            of = self._step(at)
            opcode = of.opcode
            if opcode == "get-tuple-element":
                if at.element >= 0:
                    raise Undecided(problems.OF_NESTED_TUPLE(at.name))
                name, indices = element_of(of.operands[0])
                if indices:
                    raise Undecided(problems.OF_NESTED_TUPLE(at.name))
                at = _At(at.frame, name, of.index)
            elif opcode == "tuple" and at.element >= 0:
                name, indices = element_of(of.operands[at.element])
                at = _At(at.frame, name, indices[0] if indices else -1)
            elif opcode == "opt-barrier":
                at = _At(at.frame, of.operands[0], at.element)
            elif opcode == "parameter" and self._frames[at.frame].caller >= 0:
                frame = self._frames[at.frame]
                name, indices = element_of(self._step(_At(frame.caller, frame.at)).operands[of.number])
                at = _At(frame.caller, name, indices[0] if indices else at.element)
            elif opcode in ("fusion", "call"):
                body = next((name for role, name in of.calls if role in ("calls", "to_apply")), "")
                root = next((each.name for each in reversed(self.computations.get(body, ())) if each.root), "")
                at = _At(self._frame(_Frame(body, at.frame, at.name)), root, at.element)
            elif opcode == "copy-done":
                at = _At(at.frame, self._step(_At(at.frame, of.operands[0])).operands[0])
            elif opcode.endswith("-done") and opcode.removesuffix("-done") in MOVING:
                at = _At(at.frame, of.operands[0])
            else:
                return at
        raise Undecided(problems.TOO_MANY_CALLS(at.name))

    def _array(self, at: _At) -> ArrayShape:
        of = self._step(at)
        shape = self.shapes.of(of.shape)
        if of.opcode.endswith("-start") and shape.elements and len(shape.elements) > 1:
            shape = shape.elements[1]
        if at.element >= 0 and shape.elements is not None and at.element < len(shape.elements):
            shape = shape.elements[at.element]
        if len(shape.arrays) != 1 or shape.arrays[0].layout is None:
            raise Undecided(problems.NO_KNOWN_ARRAY(at.name))
        return shape.arrays[0]

    def _dims(self, at: _At) -> tuple[int, ...]:
        layout = self._array(at).layout
        return tuple(int(d) for d in layout.dims) if layout is not None else ()

    def _groups_of(self, at: _At) -> Groups:
        found = self._groups.get(at)
        if found is None:
            of = self._step(at)
            try:
                found = self._groups[at] = groups_of(of, _kind(of), self.header)
            except LayoutError as error:
                raise Undecided(f"{of.name}: {error.problem}") from None
            devices = self.header.devices
            if any(not 0 <= device < devices for group in found for device in group):
                raise Undecided(problems.UNKNOWN_DEVICE(of.name, devices))
        return found

    def _through(self, at: _At, depth: int = 0) -> frozenset[_At]:
        """The collectives that an array came through, with nothing but moves since."""
        known = self._reach.get(at)
        if known is not None:
            return known
        if depth > _DEEP:
            raise Undecided(problems.MOVED_TOO_OFTEN(at.name, _DEEP))
        of = self._step(at)
        found: frozenset[_At] = frozenset()
        if _kind(of) in MOVING:
            found = frozenset((_At(at.frame, at.name),))
            sources = range(len(of.operands))
        else:
            sources = range(self._data(at, of))
        for number in sources:
            found |= self._through(self._operand(at.frame, of, number), depth + 1)
        self._reach[at] = found
        return found

    def _data(self, at: _At, of: Instruction) -> int:
        """How many operands an array is nothing but moved from; 0 where it is made here."""
        opcode = of.opcode
        if opcode not in _MOVES:
            return 0
        try:
            if opcode in ("dynamic-slice", "dynamic-update-slice"):
                self._start(at, of, 0)
            elif opcode == "slice":
                _ranges(of)
            elif opcode == "pad":
                _edges(of)
            elif opcode == "bitcast":
                self._views(at, of)
        except Undecided:
            return 0
        many = {"concatenate": len(of.operands), "dynamic-update-slice": 2}
        return many.get(opcode, 1)

    def _readers(self, frame: int, found: list[tuple[_At, str]]) -> None:
        """The arrays that came through collectives and are read, each with why it is unknown how much of it is."""
        top = self._frames[frame].caller < 0
        for of in self.computations[self._frames[frame].body]:
            opcode = of.opcode
            if of.root and top:
                self._result(frame, of, found)
            if opcode in ("fusion", "call"):
                body = next((name for role, name in of.calls if role in ("calls", "to_apply")), "")
                if body in self.computations and self._any_through(frame, of, body):
                    self._readers(self._frame(_Frame(body, frame, of.name)), found)
                continue
            at = _At(frame, of.name)
            if opcode in _NO_READERS or _kind(of) in MOVING or opcode.endswith("-done") or self._data(at, of):
                continue
            why = problems.READS_A_PART(of.name, opcode) if opcode in _UNCLEAR else ""
            for number in range(len(of.operands)):
                for operand in self._arrays_of(frame, of.operands[number]):
                    if self._through(operand):
                        found.append((operand, why))

    def _any_through(self, frame: int, of: Instruction, body: str) -> bool:
        if any(_kind(each) in MOVING for each in self.computations[body]):
            return True
        return any(self._through(each) for text in of.operands for each in self._arrays_of(frame, text))

    def _result(self, frame: int, of: Instruction, found: list[tuple[_At, str]]) -> None:
        found += [(each, "") for each in self._arrays_of(frame, of.name) if self._through(each)]

    def _arrays_of(self, frame: int, operand: str) -> list[_At]:
        """The arrays of an operand, those of a tuple one by one."""
        name, indices = element_of(operand)
        try:
            at = self._made(_At(frame, name, indices[0] if indices else -1))
        except Undecided:
            return []
        of = self._step(at)
        if of.opcode == "tuple" and at.element < 0:
            return [each for text in of.operands for each in self._arrays_of(at.frame, text)]
        return [at]

    # which elements

    def _pull(self, at: _At, device: int, box: Box, found: list[tuple[_At, int, Box]], depth: int) -> None:
        """Where the elements of a box come from: (array that is made there, device, box of it) of each."""
        if not volume(box):
            return
        self._pieces += 1
        if self._pieces > MOST_PIECES:
            raise Undecided(problems.TOO_MANY_PIECES(MOST_PIECES))
        if depth > _DEEP:
            raise Undecided(problems.MOVED_TOO_OFTEN(at.name, _DEEP))
        of = self._step(at)
        if of.opcode in _FREE:
            return
        kind = _kind(of)
        if kind in MOVING:
            sources = self._sent(at, of, kind, device, box)
        elif self._data(at, of):
            sources = [(k, device, each) for k, each in self._before(at, of, device, box)]
        else:
            found.append((at, device, box))
            return
        for number, holder, each in sources:
            self._pull(self._operand(at.frame, of, number), holder, each, found, depth + 1)

    def _sent(self, at: _At, of: Instruction, kind: str, device: int, box: Box) -> list[tuple[int, int, Box]]:
        """(operand, device that has it, box of it) of what a collective gives a device."""
        groups = self._groups_of(at)
        number = max(at.element, 0)
        if kind == "collective-permute":
            return [(number, source, box) for source, target in groups if target == device]
        group = next((each for each in groups if device in each), None)
        if group is None:
            raise Undecided(problems.IN_NO_GROUP(of.name, device))
        if kind == "collective-broadcast":
            return [(number, group[0], box)]
        along = of.dimensions
        if kind == "all-to-all" and along is None:
            # one operand for each device of the group
            return [(group.index(device), group[at.element], box)]
        if along is None or len(along) != 1 or (of.opcode.endswith("-start") and len(of.operands) > 1):
            raise Undecided(problems.FORM_NOT_FOLLOWED(of.name, kind))
        dimension = along[0]
        extent = self._dims(at)[dimension]
        chunk = extent // len(group)
        found = []
        for position, member in enumerate(group):
            cut = list(box)
            cut[dimension] = (max(box[dimension][0], position * chunk), min(box[dimension][1], (position + 1) * chunk))
            if cut[dimension][0] >= cut[dimension][1]:
                continue
            own = group.index(device) if kind == "all-to-all" else 0
            by = [0] * len(box)
            by[dimension] = (own - position) * chunk
            found.append((number, member, shifted(tuple(cut), by)))
        return found

    def _before(self, at: _At, of: Instruction, device: int, box: Box) -> list[tuple[int, Box]]:
        """(operand, box of it) of what a move makes a box of."""
        match of.opcode:
            case "copy" | "convert":
                return [(0, box)]
            case "transpose":
                order = of.dimensions or ()
                turned = [(0, 0)] * len(box)
                for k, dimension in enumerate(order):
                    turned[dimension] = box[k]
                return [(0, tuple(turned))]
            case "broadcast":
                return [(0, tuple(box[k] for k in of.dimensions or ()))]
            case "reshape":
                source = self._dims(self._operand(at.frame, of, 0))
                return [(0, each) for each in reshaped(box, self._dims(at), source)]
            case "bitcast":
                return [(0, each) for each in self._bitcast(at, of, box)]
            case "slice":
                return [(0, shifted(box, [start for start, _ in _ranges(of)]))]
            case "dynamic-slice":
                return [(0, shifted(box, self._start(at, of, device)))]
            case "dynamic-update-slice":
                start = self._start(at, of, device)
                update = self._dims(self._operand(at.frame, of, 1))
                new = shifted(whole(update), start)
                inner = common(box, new)
                back = [-each for each in start]
                return [*((0, each) for each in without(box, new)), (1, shifted(inner, back))]
            case "pad":
                low = [each[0] for each in _edges(of)]
                inner = shifted(whole(self._dims(self._operand(at.frame, of, 0))), low)
                return [(0, shifted(common(box, inner), [-each for each in low]))]
        return self._concatenated(at, of, box)

    def _concatenated(self, at: _At, of: Instruction, box: Box) -> list[tuple[int, Box]]:
        dimension, offset, parts = (of.dimensions or (0,))[0], 0, []
        for number in range(len(of.operands)):
            extent = self._dims(self._operand(at.frame, of, number))[dimension]
            cut, by = list(box), [0] * len(box)
            cut[dimension] = (max(box[dimension][0], offset), min(box[dimension][1], offset + extent))
            by[dimension] = -offset
            if cut[dimension][0] < cut[dimension][1]:
                parts.append((number, shifted(tuple(cut), by)))
            offset += extent
        return parts

    def _bitcast(self, at: _At, of: Instruction, box: Box) -> list[Box]:
        after, before = self._views(at, of)
        dims, source = self._dims(at), self._dims(self._operand(at.frame, of, 0))
        turned = tuple(box[k] for k in after)
        extents, given = tuple(dims[k] for k in after), tuple(source[k] for k in before)
        found = []
        for each in reshaped(turned, extents, given):
            back = [(0, 0)] * len(source)
            for k, place in enumerate(before):
                back[place] = each[k]
            found.append(tuple(back))
        return found

    def _views(self, at: _At, of: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The orders of dimensions in which a bitcast is a row-major reshape, after and before."""
        one, two = self._array(self._operand(at.frame, of, 0)), self._array(at)
        how = bitcasts.judge(one, two).how
        if one.layout is None or two.layout is None or one.elements != two.elements:
            raise Undecided(problems.OPERATION_IS(of.name, how or "bitcast"))
        physical = how.startswith("transpose") or how == "reshape between transposes"
        if not physical and how not in (
            "identity",
            "reshape",
            "reshape before a transpose",
            "reshape after a transpose",
        ):
            raise Undecided(problems.OPERATION_IS(of.name, how or "bitcast"))
        after = _order(two.layout, physical or how == "reshape before a transpose")
        return after, _order(one.layout, physical or how == "reshape after a transpose")

    def _start(self, at: _At, of: Instruction, device: int) -> list[int]:
        """Where a dynamic slice or update begins on a device, within the array as HLO clamps it."""
        update = of.opcode == "dynamic-update-slice"
        outer = self._dims(self._operand(at.frame, of, 0))
        inner = self._dims(self._operand(at.frame, of, 1)) if update else self._dims(at)
        given = range(2 if update else 1, len(of.operands))
        if len(given) != len(outer):
            raise Undecided(problems.START_IN_ARRAY(of.name))
        found = []
        for number, extent, size in zip(given, outer, inner, strict=True):
            start = 0 if extent == size else self._number(self._operand(at.frame, of, number), device, 0)
            found.append(max(0, min(start, extent - size)))
        return found

    def _number(self, at: _At, device: int, depth: int) -> int:
        """An integer of one element on a device. Undecided where it does not follow from the device."""
        known = self._numbers.get((at, device))
        if known is not None:
            return known
        if depth > _DEEP:
            raise Undecided(problems.LONG_COMPUTATION(at.name))
        of = self._step(at)
        if of.opcode == "dynamic-slice":
            table = self._step(self._table(at.frame, of))
            values = literal(table.inside) if table.opcode == "constant" else None
            if values is None or not self._array(at).elements == 1:
                raise Undecided(problems.NO_NUMBER_OF_DEVICE(of.name))
            dims = self._dims(self._table(at.frame, of))
            if len(values) != prod(dims) or len(of.operands) != len(dims) + 1:
                raise Undecided(problems.TABLE_OF_OTHER_FORM(of.name))
            offset = 0
            for number, extent in enumerate(dims, 1):
                entry = self._number(self._operand(at.frame, of, number), device, depth + 1)
                offset = offset * extent + max(0, min(entry, extent - 1))
            found = values[offset]
        else:
            if self._array(at).elements != 1:
                raise Undecided(problems.NO_SINGLE_NUMBER(of.name))

            def given(number: int) -> int:
                return self._number(self._operand(at.frame, of, number), device, depth + 1)

            found = computed(of, given, device, self.header.partitions)
        self._numbers[at, device] = found
        return found

    def _table(self, frame: int, of: Instruction) -> _At:
        """The constant that a number is looked up in."""
        at = self._operand(frame, of, 0)
        for _ in range(_DEEP):
            step = self._step(at)
            if step.opcode not in ("copy", "bitcast", "reshape"):
                return at
            at = self._operand(at.frame, step, 0)
        return at

    # which devices hold the same

    def _label(self, at: _At) -> Label:
        if self._replication is None:
            self._replication = Replication(self.computations, self.header, self.entry, self.shardings, {})
            self._replication.run()
        found = element(self._labels_of(at.frame), at.name)
        if at.element >= 0:
            found = found[at.element] if isinstance(found, list) and at.element < len(found) else None
        if not isinstance(found, tuple):
            raise Undecided(problems.HOLDERS_UNKNOWN(at.name))
        return found

    def _labels_of(self, frame: int) -> Mapping[str, Any]:
        known = self._labels.get(frame)
        if known is None:
            at = self._frames[frame]
            replication = self._replication
            if replication is None:
                raise Undecided(problems.NOTHING_OF_HOLDERS())
            if at.caller < 0:
                known = replication.found.get(at.body, {})
            else:
                outer = self._labels_of(at.caller)
                given = [element(outer, operand) for operand in self._step(_At(at.caller, at.at)).operands]
                known = replication.through(at.body, given)[0]
            self._labels[frame] = known
        return known


def _kind(of: Instruction) -> str:
    return of.opcode.removesuffix("-start")


def _order(layout: XlaLayout, physical: bool) -> tuple[int, ...]:
    return tuple(layout.minor_to_major[::-1]) if physical else tuple(range(len(layout.dims)))


def _ranges(of: Instruction) -> list[tuple[int, int]]:
    """From and to of each dimension of a slice; Undecided where it skips elements."""
    found = _RANGE.findall(of.attribute("slice"))
    if any(step not in ("", "1") for *_, step in found):
        raise Undecided(problems.SKIPS_ELEMENTS(of.name))
    return [(int(start), int(end)) for start, end, _ in found]


def _edges(of: Instruction) -> list[tuple[int, int]]:
    """The padding before and after in each dimension; Undecided for interior or negative padding."""
    found = [_PAD.match(each) for each in of.attribute("padding").split("x")]
    if not all(each is not None and each[3] in (None, "0") and int(each[1]) >= 0 for each in found):
        raise Undecided(problems.PAD_OR_SLICE(of.name))
    return [(int(each[1]), int(each[2])) for each in found if each is not None]
