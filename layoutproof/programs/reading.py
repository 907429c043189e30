"""From the text of a compiled program to its record, in one pass, without keeping the text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import lines as text_of
from layoutproof.core.size import product
from layoutproof.hlo import copies, memory
from layoutproof.hlo.collectives import OPCODES, collective, given_by, groups_of, moved
from layoutproof.hlo.executions import Executions, Runs
from layoutproof.hlo.followed import Followed
from layoutproof.hlo.replication import tiles_of
from layoutproof.hlo.shapes import ArrayShape, Shape, Shapes, bytes_of
from layoutproof.hlo.work import Where, WorkDone, WorkReader
from layoutproof.hlotext.events import ComputationBegin, End, Event, ModuleEnd
from layoutproof.hlotext.lines import events
from layoutproof.hlotext.module import Header, Instruction
from layoutproof.hlotext.texts import element_of, logical
from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET as KERNEL
from layoutproof.programs import problems
from layoutproof.programs.record import (
    Collective,
    Copy,
    Custom,
    KernelCall,
    MemoryStats,
    Often,
    Padding,
    Place,
    PricedOperation,
    ProgramValue,
    Provenance,
    Record,
    Reshard,
    Schedule,
    WorkPlace,
)
from layoutproof.programs.totals import MOST_OPERATIONS, most_first, with_totals

MOST_PADDING = 20
"""Layouts that a record lists, those first of which most bytes hold no element."""
MOST_UNKNOWN = 100
"""Things that could not be told, of which a record has the words."""
MOST_GROUPS = 4096
"""Devices among whose groups whole mesh axes are looked for."""

_CYCLES = re.compile(r'(?<!"bundle_analysis_data":\{)"estimated_cycles":"(\d+)"')
"""The price of an operation; told to simulate its schedule, libtpu writes another number of that name beside it."""
_VMEM = re.compile(r'"used_scoped_memory_configs":\[[^\[\]]*?"memory_space":"1","offset":"\d+","size":"(\d+)"')
_TALKS = re.compile(r'"(?:has_communication":true|collective_id":"?\d)')
_KERNEL_NAME = re.compile(r"kernel_name\W{1,4}([\w.$-]+)")
_MOVING = frozenset((*copies.OPCODES, "bitcast", "tuple", "get-tuple-element"))
"""Opcodes of a fusion that computes nothing: XLA:CPU wraps a transpose so."""
_HANDED_ON = frozenset(("bitcast", "get-tuple-element", "opt-barrier"))


def read_program(path: Path, made: Provenance = Provenance()) -> Record:  # noqa: B008
    """The record of a dump, packed by gzip or not. Raises LayoutError where it is none, or wrong, or cut short."""
    with text_of(path) as lines:
        return record_of(lines, str(path), made)


def record_of(
    lines: Iterable[str],
    file: str = "",
    made: Provenance = Provenance(),  # noqa: B008
    shardings: Sequence[str] = (),
    schedule: Mapping[str, int] = {},
) -> Record:
    """The record of a compiled program's text.

    file: the name in errors.  made: the facts that the text does not have.  shardings: of the parameters, by the
    compiler: a text may leave them out.  schedule: the name of an operation to its cycles by the compiler's schedule.
    Raises LayoutError for a text that is no module, for a second one, and for the first mistake in it.
    """
    digest = hashlib.sha256()

    def counted() -> Iterator[str]:
        for line in lines:
            digest.update(line.encode(errors="backslashreplace"))
            yield line

    reader = Reader(file, made, shardings, schedule)
    for event in events(counted(), file):
        reader.take(event)
    return reader.record(digest.hexdigest()[:32])


@dataclass(slots=True)
class _Moves:
    move: copies.Move
    first: Instruction
    sized: bool
    count: int = 0


@dataclass(slots=True)
class _Buffers:
    array: ArrayShape
    first: Instruction
    count: int = 0


@dataclass(slots=True)
class _Customs:
    first: Instruction
    count: int = 0
    effect: bool = False


@dataclass(slots=True)
class _ComputationContents:
    """The contents of one computation, until its trip count is known."""

    entry: bool = False
    only_moves: bool = False
    shapes: dict[str, Shape] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    uses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    collectives: list[tuple[Instruction, tuple[Shape, ...], Shape]] = field(default_factory=list)
    moves: dict[tuple[str, str, str, str], _Moves] = field(default_factory=dict)
    kernels: list[Instruction] = field(default_factory=list)
    operations: list[tuple[Place, str, int]] = field(default_factory=list)
    scheduled: list[tuple[Place, str, int]] = field(default_factory=list)
    unscheduled: list[Place] = field(default_factory=list)
    customs: dict[str, _Customs] = field(default_factory=dict)
    buffers: dict[str, _Buffers] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


class Reader:
    """Takes the events of one module, and makes its record. Other readers can share the events."""

    __slots__ = (
        *("bodies", "computations", "entry", "executions", "file", "followed", "header", "inner", "judged", "made"),
        *("now", "parameters", "results", "schedule", "shapes", "shardings", "whole", "words", "work"),
    )

    def __init__(
        self,
        file: str = "",
        made: Provenance = Provenance(),  # noqa: B008
        shardings: Sequence[str] = (),
        schedule: Mapping[str, int] = {},
    ) -> None:
        self.file, self.made, self.shardings, self.schedule = file, made, tuple(shardings), schedule
        self.followed = Followed()
        self.header = Header("")
        self.whole = False
        self.shapes = Shapes()
        self.executions = Executions()
        self.work = WorkReader()
        self.computations: dict[str, _ComputationContents] = {}
        self.now, self.entry = _ComputationContents(), ""
        self.inner: set[str] = set()
        self.words: list[str] = []
        self.bodies: dict[str, str] = {}
        self.judged: dict[tuple[object, ...], copies.Move] = {}
        self.parameters: dict[int, tuple[Instruction, Shape]] = {}
        self.results: tuple[Shape | None, tuple[str, ...]] = (None, ())

    def take(self, event: Event) -> None:
        """One event. Raises the LayoutError that is one, and for a second module."""
        kind = type(event)
        if kind is Instruction:
            self._instruction(event)  # type: ignore[arg-type]
        elif isinstance(event, ComputationBegin):
            self.now = self.computations[event.name] = _ComputationContents(event.entry)
            self.followed.begin(event.name)
            self.work.begin(event.name)
            self.words = []
            self.executions.begin(event.name, event.entry)
            self.entry = event.name if event.entry else self.entry
        elif isinstance(event, End):
            self._end()
        elif isinstance(event, Header):
            if self.header.name:
                raise LayoutError(problems.SECOND_MODULE(), file=self.file, line=event.line)
            self.header = self.followed.header = event
        elif isinstance(event, ModuleEnd):
            self.whole = event.whole
        elif isinstance(event, LayoutError):
            raise event
        else:
            problem = problems.BUFFER_ASSIGNMENT()
            raise LayoutError(problem, file=self.file, line=event.line)

    def _instruction(self, of: Instruction) -> None:
        now, opcode = self.now, of.opcode
        self.followed.instruction(of)
        self.executions.instruction(of)
        try:
            shape = self.shapes.of(of.shape)
        except LayoutError as error:
            raise LayoutError(f"{shorten(of.name, 40)}: {error.problem}", text=error.text).at(
                self.file, of.line
            ) from None
        now.shapes[of.name] = shape
        where = (self.header.source(of), _unescaped(of.op_name).rpartition("/")[0])
        self.work.instruction(of, where, shape, self._operand)
        if opcode != "parameter":
            self.words.append(opcode)
        elif now.entry:
            self.parameters[of.number] = (of, shape)
            now.origins[of.name] = f"parameter {of.number}"
        if opcode in _HANDED_ON and of.operands:
            now.origins[of.name] = now.origins.get(of.operands[0], "")
            now.uses[of.name] = of.operands
        elif opcode == "tuple":
            now.uses[of.name] = of.operands
        if of.root and now.entry:
            self.results = (shape, of.operands if opcode == "tuple" else (of.name,))
        for array in memory.own(of, shape, now.entry):
            buffers = now.buffers.get(array.text)
            if buffers is None:
                buffers = now.buffers[array.text] = _Buffers(array, of)
            buffers.count += 1
            if array.unknown:
                now.unknown.append(f"{of.name}: {array.unknown}")
        if opcode in copies.OPCODES and of.operands:
            self._move(of, shape)
        elif opcode in OPCODES:
            now.collectives.append((of, tuple(filter(None, (self._operand(name) for name in of.operands))), shape))
        elif opcode == "custom-call":
            if of.target == KERNEL:
                now.kernels.append(of)
            else:
                customs = now.customs.setdefault(of.target, _Customs(of))
                customs.count += 1
                customs.effect |= of.attribute("custom_call_has_side_effect") == "true"
        self._cycles(of, now)
        if opcode != "call" and "=" in of.attributes:
            self.inner.update(callee for role, callee in of.calls if role in memory.INSIDE)

    def _cycles(self, of: Instruction, now: _ComputationContents) -> None:
        """The cycles that the compiler says of it; a kernel has its own."""
        found = _CYCLES.search(of.attributes) if '"estimated_cycles":"' in of.attributes else None
        price = 0 if found is None else int(found[1])
        if price:
            now.operations.append((self._place(of), of.opcode, price))
        if of.name in self.schedule and of.target != KERNEL:
            now.scheduled.append((self._place(of), of.opcode, self.schedule[of.name]))
        elif price:
            now.unscheduled.append(self._place(of))

    def _end(self) -> None:
        self.executions.end()
        name = next(reversed(self.computations))
        self.bodies[name] = " ".join(sorted(self.words)) if len(self.words) < 100 else ""
        now = self.now
        now.only_moves = bool(now.moves) and set(self.words) <= _MOVING
        if not now.entry:
            now.shapes = {}

    def _place(self, of: Instruction) -> Place:
        return Place(of.name, of.line, _unescaped(of.op_name), self.header.source(of))

    def _operand(self, operand: str) -> Shape | None:
        shape = self.now.shapes.get(operand)
        if shape is not None:
            return shape
        name, indices = element_of(operand)
        shape = self.now.shapes.get(name)
        for index in indices:
            elements = shape.elements if shape is not None else None
            shape = elements[index] if elements is not None and index < len(elements) else None
        return shape

    def _move(self, of: Instruction, target: Shape) -> None:
        source = self._operand(of.operands[0])
        if of.opcode == "copy-start" and target.elements:
            target = target.elements[0]
        if source is None or len(source.arrays) != len(target.arrays):
            return
        permutation = of.dimensions if of.opcode == "transpose" else None
        for one, other in zip(source.arrays, target.arrays, strict=True):
            if one.layout is None and other.layout is None and not (one.unknown or other.unknown):
                continue
            judged = (of.opcode, one.text, other.text, permutation)
            move = self.judged.get(judged)
            if move is None:
                move = self.judged[judged] = copies.judge(of.opcode, one, other, permutation)
            if move.kind == "free":
                continue
            boundary = self.now.origins.get(of.operands[0], "") if self.now.entry else ""
            key = (of.opcode, one.text, other.text, boundary)
            moves = self.now.moves.get(key)
            if moves is None:
                moves = self.now.moves[key] = _Moves(move, of, not (one.unknown or other.unknown))
            moves.count += 1

    def record(self, digest: str = "") -> Record:
        """The record, once all events were taken. Raises LayoutError where there was no whole module."""
        if not self.whole or not self.entry:
            raise LayoutError(problems.NO_ENTRY(), file=self.file)
        runs = {name: self.executions.of(name) for name in self.computations}
        outer = [found for name, found in self.computations.items() if name not in self.inner and runs[name].times != 0]
        unknown = [words for found in outer for words in found.unknown]
        operations, cycles = self._operations(runs)
        buffers = self._padding(runs)
        parameters, results = self._values()
        places, uncounted = self._places(runs)
        record = Record(
            self.header.name,
            self.made,
            self.header.devices,
            MemoryStats(),
            cycles=cycles,
            priced=len(operations),
            parameters=parameters,
            results=results,
            collectives=tuple(self._collectives(runs)),
            copies=tuple(self._copies(runs)),
            kernels=tuple(self._kernels(runs)),
            operations=tuple(operations[:MOST_OPERATIONS]),
            padded=sum(each.bytes for each in buffers),
            unpadded=sum(each.unpadded for each in buffers),
            padding=tuple(buffers[:MOST_PADDING]),
            customs=tuple(self._customs(runs)),
            reshards=tuple(self._reshards(runs)),
            unknown=tuple(dict.fromkeys(unknown))[:MOST_UNKNOWN],
            digest=digest,
            schedule=self._schedule(runs),
        )
        return with_totals(record, places, uncounted)

    def _places(self, runs: Mapping[str, Runs]) -> tuple[list[WorkPlace], list[str]]:
        """The work of each place, and the instructions whose work is not counted."""
        found: dict[tuple[Where, Runs], WorkDone] = {}
        uncounted: list[str] = []
        applied = self.work.applied()
        for name, run in runs.items():
            if run.times == 0 or name in applied:
                continue
            parts = [self.work.arithmetic(name)]
            parts += [] if name in self.inner else [self.work.traffic(name)]
            for where, done in (pair for part in parts for pair in part.items()):
                found.setdefault((where, run), WorkDone()).add(done)
            uncounted += self.work.unknown(name)
        places = [
            WorkPlace(
                *where, Often(run.times, run.sometimes, run.why), dict(done.products), done.flops,
                done.transcendentals, done.moved, done.hbm,
            )
            for (where, run), done in found.items()
            if done != WorkDone()
        ]  # fmt: skip
        return places, uncounted

    def _running(self, runs: Mapping[str, Runs]) -> Iterator[tuple[_ComputationContents, Often]]:
        """Computations that run, each with how often; those inside of an instruction's own memory too."""
        for name, found in self.computations.items():
            if runs[name].times != 0:
                yield found, Often(runs[name].times, runs[name].sometimes, runs[name].why)

    def _operations(self, runs: Mapping[str, Runs]) -> tuple[list[PricedOperation], int | None]:
        return most_first(
            PricedOperation(place, opcode, cycles, often)
            for found, often in self._running(runs)
            for place, opcode, cycles in found.operations
        )

    def _schedule(self, runs: Mapping[str, Runs]) -> Schedule | None:
        """None where the compiler says nothing of it."""
        operations, cycles = most_first(
            PricedOperation(place, opcode, cycles, often)
            for found, often in self._running(runs)
            for place, opcode, cycles in found.scheduled
        )
        if not operations:
            return None
        why = next((each.often.why for each in operations if each.often.times is None), "")
        without = [place for found, _ in self._running(runs) for place in found.unscheduled]
        if without:
            cycles, why = None, problems.NOT_SCHEDULED(without[0], len(without))
        return Schedule(cycles, tuple(operations[:MOST_OPERATIONS]), len(operations), why)

    def _padding(self, runs: Mapping[str, Runs]) -> list[Padding]:
        sums: dict[str, Padding] = {}
        for name, found in self.computations.items():
            if name in self.inner or runs[name].times == 0:
                continue
            for text, buffers in found.buffers.items():
                array = buffers.array
                if array.layout is None:
                    continue
                known = sums.get(text)
                total = buffers.count + (0 if known is None else known.count)
                first = self._place(buffers.first) if known is None else known.place
                sums[text] = Padding(text, total, total * array.padded, total * array.unpadded, first)
        return sorted(sums.values(), key=lambda each: each.unpadded - each.bytes)

    def _collectives(self, runs: Mapping[str, Runs]) -> Iterator[Collective]:
        for found, often in self._running(runs):
            for of, operands, shape in found.collectives:
                kind = of.opcode.removesuffix("-start")
                sides = [[a for each in operands for a in each.arrays], list(given_by(of, shape).arrays)]
                given, made = map(bytes_of, sides)
                try:
                    groups = groups_of(of, kind, self.header)
                    size = max(map(len, groups), default=0)
                    axes = axes_of(groups, self.made.mesh, kind == "collective-permute")
                except LayoutError:
                    size, axes = None, None
                larger = received = None
                if given is not None and made is not None and len(operands) == len(of.operands):
                    larger = max(given, made)
                    received = None if size is None else moved(kind, size, given, made)
                does = str(collective(of, self.header, self.bodies))
                before, after = (tuple(logical(array.text) for array in side) for side in sides)
                yield Collective(self._place(of), kind, does, size, axes, before, after, larger, received, often)

    def _reshards(self, runs: Mapping[str, Runs]) -> Iterator[Reshard]:
        """Where fewer bytes would do, and where it is unknown."""
        said = {number: of.sharding for number, (of, _) in self.parameters.items()}
        if len(self.shardings) == len(said):
            said = {number: text or self.shardings[number] for number, text in said.items()}
        for name, each in self.followed.reshards(self.entry, said, self.shapes):
            run = runs[name]
            if run.times != 0:
                often = Often(run.times, run.sometimes, run.why)
                yield Reshard(self._place(each.first), each.collectives, each.received, each.needed, often, each.why)

    def _copies(self, runs: Mapping[str, Runs]) -> list[Copy]:
        made: dict[tuple[object, ...], Copy] = {}
        for name, found in self.computations.items():
            fused = name in self.inner
            if runs[name].times == 0 or (fused and not found.only_moves):
                continue
            often = Often(runs[name].times, runs[name].sometimes, runs[name].why)
            every = sorted(found.moves.items(), key=lambda pair: -pair[1].move.size)
            # a fusion of nothing but moves is one move
            for (opcode, source, target, origin), moves in every[:1] if fused else every:
                kind = moves.move.kind
                boundary = origin or (self._result_of(moves.first.name) if found.entry else "")
                one = Copy(
                    self._place(moves.first),
                    opcode.removesuffix("-start"),
                    kind,
                    source,
                    target,
                    moves.move.size if moves.sized else None,
                    moves.count,
                    often,
                    boundary,
                    moves.move.reason if kind == "unknown" else "",
                )
                key = (one.opcode, kind, source, target, often, boundary)
                known = made.get(key)
                made[key] = one if known is None else replace(known, count=known.count + moves.count)
        return sorted(made.values(), key=lambda each: -(each.bytes or 0) * each.count * (each.often.times or 1))

    def _result_of(self, name: str) -> str:
        """`result 0` where that is what an instruction of the entry makes, through views; else ""."""
        entry = self.computations[self.entry]
        for number, operand in enumerate(self.results[1]):
            seen = operand
            for _ in range(8):
                if seen == name:
                    return f"result {number}"
                if seen not in entry.uses or len(entry.uses[seen]) != 1:
                    break
                seen = entry.uses[seen][0]
        return ""

    def _kernels(self, runs: Mapping[str, Runs]) -> Iterator[KernelCall]:
        for found, often in self._running(runs):
            for of in found.kernels:
                vmem = _VMEM.search(of.attributes)
                at = max(of.attributes.find("backend_config="), 0)
                whole = "\0".join((of.shape, of.said, _body(of.attributes[at:])))
                named = _KERNEL_NAME.search(of.attributes)
                name = named[1] if named else re.sub(r"\.\d+$", "", of.name)
                digest = hashlib.sha256(whole.encode(errors="backslashreplace")).hexdigest()[:32]
                talks = _TALKS.search(of.attributes) is not None
                yield KernelCall(self._place(of), name, int(vmem[1]) if vmem else None, digest, often, talks)

    def _customs(self, runs: Mapping[str, Runs]) -> list[Custom]:
        made: dict[str, Custom] = {}
        for found, _ in self._running(runs):
            for target, one in found.customs.items():
                known = made.get(target)
                if known is None:
                    known = Custom(target, 0, self._place(one.first))
                made[target] = replace(known, count=known.count + one.count, effect=known.effect or one.effect)
        return list(made.values())

    def _values(self) -> tuple[tuple[ProgramValue, ...], tuple[ProgramValue, ...]]:
        donated = self.header.donations()
        devices = self.header.devices
        aliases: dict[int, int] = {}
        given = []
        for number, (of, shape) in sorted(self.parameters.items()):
            words = donated.get((number, ()), "")
            if words.startswith("result {") and (found := re.match(r"result \{(\d*)\}", words)):
                aliases[int(found[1] or 0)] = number
            held = 1 if devices == 1 else holders(of.sharding, devices)
            name, sizes = _unescaped(of.op_name), _sizes(shape.arrays)
            given.append(ProgramValue(number, name, shape.text, *sizes, "", of.sharding, held, words))
        shape_of_all = self.results[0]
        made: Sequence[Shape] = ()
        if shape_of_all is not None:
            made = shape_of_all.elements if shape_of_all.elements is not None else (shape_of_all,)
        results = tuple(
            ProgramValue(
                k, "", each.text, *_sizes(each.arrays), devices=1 if devices == 1 else None, alias=aliases.get(k)
            )
            for k, each in enumerate(made)
        )
        return tuple(given), results


def holders(text: str, devices: int) -> int | None:
    """How many devices hold each element, by a sharding as XLA prints it; None where it does not say.

    >>> holders("{replicated}", 4), holders("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", 4), holders("", 4)
    (4, 2, None)
    """
    found = tiles_of(text)
    if found is None:
        return None
    if found.kind == "replicated":
        return devices
    if found.kind == "maximal":
        return 1
    if found.tiles is None or set(found.subgroups) - {"replicated"}:
        return None
    return int(product(found.tiles.dims[len(found.tiles.dims) - len(found.subgroups) :]))


def axes_of(groups: Sequence[Sequence[int]], mesh: Mapping[str, int], pairs: bool = False) -> tuple[str, ...] | None:
    """The axes of a mesh along which the devices of each group lie; None where they are not whole axes of it.

    mesh: axis -> size; devices are numbered along it, the last axis fastest.  pairs: each group is (from, to), and the
    axes are those along which something moves.

    >>> mesh = {"data": 2, "model": 2}
    >>> axes_of(((0, 1), (2, 3)), mesh), axes_of(((0, 2), (1, 3)), mesh), axes_of(((0, 3), (1, 2)), mesh)
    (('model',), ('data',), None)
    >>> axes_of(((0, 1), (1, 0)), mesh, pairs=True)
    ('model',)
    """
    count = int(product(mesh.values())) if mesh else 0
    if not mesh or count > MOST_GROUPS or any(not 0 <= n < count for group in groups for n in group):
        return None
    sizes = list(mesh.values())
    strides = [int(product(sizes[k + 1 :])) for k in range(len(sizes))]
    if pairs:
        moving = [
            any(one // stride % size != other // stride % size for one, other in groups)
            for size, stride in zip(sizes, strides, strict=True)
        ]
        return tuple(name for name, moves in zip(mesh, moving, strict=True) if moves)
    wanted = {frozenset(group) for group in groups}
    split = [k for k, size in enumerate(sizes) if size > 1]
    for many in range(len(split) + 1):
        for chosen in combinations(split, many):
            fixed = [k for k in split if k not in chosen]
            made: dict[tuple[int, ...], list[int]] = {}
            for device in range(count):
                made.setdefault(tuple(device // strides[k] % sizes[k] for k in fixed), []).append(device)
            if {frozenset(group) for group in made.values()} == wanted:
                return tuple(name for k, name in enumerate(mesh) if k in chosen)
    return None


def _sizes(arrays: Sequence[ArrayShape]) -> tuple[int | None, int | None]:
    """(bytes allotted, bytes of the elements alone)."""
    unknown = any(array.unknown for array in arrays)
    return (None, None) if unknown else (sum(a.padded for a in arrays), sum(a.unpadded for a in arrays))


def _unescaped(text: str) -> str:
    r"""A name as the user's program has it.

    >>> _unescaped(r"params[\'w\']")
    "params['w']"
    """
    return re.sub(r"\\(.)", r"\1", text)


def _body(config: str) -> str:
    """A kernel's configuration without what the compiler has added to it."""
    return re.sub(r'"(?:used_scoped_memory_configs|retry_config)":(?:\[[^\]]*+\]?|\{[^}]*+\}?),?', "", config)
