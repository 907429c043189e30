"""One function compiled at many points: meshes, topologies, targets, sizes, remat policies, and a row for each.

A point is a `compile.Asked` like any other, so whatever a row says is what `layoutproof compile` says of it; `command`
makes it again. A point that is refused, or of which nothing is known, is a row too, with the reason.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

from layoutproof.compiler.workers import Workers, spread
from layoutproof.core.counted import Counted
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.result import Verdict
from layoutproof.hardware.tpu_chips import CHIPS, generation
from layoutproof.programs import problems
from layoutproof.programs.compile import CPU, LONGEST, Asked, Made, made
from layoutproof.programs.record import Record
from layoutproof.programs.shardings import OPEN, read_mesh
from layoutproof.programs.step_time import step_time

MOST = 10_000
"""Points of one sweep."""
ROUND = 32
"""Points that a cluster is given at once: their rows are there together."""
COMPILED, NO_ROOM, REFUSED, WRONG, UNKNOWN = "compiled", "no_room", "refused", "bad_input", "unknown"
"""What came of a point: a record, the compiler finds no room in HBM, it refuses for another reason, the point is
wrong by itself (its mesh has not as many devices as the topology), or nobody knows (a limit of time, an abort)."""

_NO_ROOM = re.compile(r"CompileTimeHbmOom|[Oo]ut of memory (?:in memory space hbm|on HBM)")
"""Of the compiler's words where a program does not fit. Source: libtpu 0.0.52 (E1000), and threads of
`tests/cases/messages.jsonl` for earlier versions."""
_SHARDING = re.compile(r"(in|out)(\d{1,3})")
_SHAPE = re.compile(r"\b([A-Za-z]\w*)\s*\[([A-Za-z0-9_*,\s]*)\]")
_SIZE = re.compile(r"(?:([0-9]{1,9})\s*\*\s*)?([A-Za-z_]\w*)")
_AXIS = re.compile(r"[A-Za-z_]\w*")

Axes = Mapping[str, Sequence[str]]
"""The name of each axis -> its values as text, in order."""


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One point of a sweep. at: axis -> value, as given.  asked: what is compiled; the problem where it is none."""

    at: Mapping[str, str]
    asked: Asked | LayoutError


@dataclass(frozen=True, slots=True)
class SweepRow:
    """What came of one point. All bytes are bytes on one device; None stands for what is unknown.

    Attributes:
        at: Axis of the sweep -> its value here.
        outcome: Of COMPILED, NO_ROOM, REFUSED, WRONG and UNKNOWN.
        reason: Why there is no record.
        target: The chip.
        compiler: Its name and version.
        devices: How many run the program together.
        peak: Bytes of main memory during a run, as the claim `peak_memory` counts them.
        sent: Axes of the mesh, joined by `+` -> bytes of collectives in a step, as the claim `collectives` counts them;
            `?` for those whose axes are unknown.
        cycles: The compiler's own estimate, of what it prices.
        flops: Of one device in a step.
        bound: The least picoseconds of a step, open above where a part of its work is not counted; None without a chip.
        binds: The term that is the largest.
        seconds: Of the compiler, by the clock; 0 where its answer was kept from before.
        cpu: Seconds of processor time for the point: tracing, compiling, reading.
        command: What makes its record.
    """

    at: Mapping[str, str]
    outcome: str
    reason: str = ""
    target: str = ""
    compiler: str = ""
    devices: int | None = None
    peak: int | None = None
    sent: Mapping[str, Counted] = field(default_factory=dict)
    cycles: int | None = None
    flops: Counted | None = None
    bound: Counted | None = None
    binds: str = ""
    seconds: float = 0.0
    cpu: float = 0.0
    command: str = ""

    def limit(self, given: int | None) -> int | None:
        """Bytes that a device has for it: those that are given, else the chip's HBM; None where neither is known."""
        return given if given is not None or self.target not in CHIPS else CHIPS[self.target].hbm

    def fits(self, given: int | None = None) -> bool | None:
        """Whether it fits into main memory. given: bytes of a device, None = those of the chip."""
        limit = self.limit(given)
        if self.outcome == NO_ROOM:
            return False
        return None if self.outcome != COMPILED or self.peak is None or limit is None else self.peak <= limit

    @property
    def chip_time(self) -> Counted | None:
        """Picoseconds of all devices together, at the least."""
        return None if self.bound is None or self.devices is None else self.bound.often(self.devices)


def points(base: Asked, axes: Axes, together: Sequence[Mapping[str, str]] = ({},)) -> list[SweepPoint]:
    """Every point of a sweep, the last axis fastest.

    Args:
        base: What is the same at all of them.
        axes: By name. `target`, `topology`, `mesh` and `libtpu` are those of `compile`; `in0` is the sharding of
            argument 0, `out0` that of result 0. The name of a size that stands in the shape of an argument
            (`bf16[B,1024]`, `bf16[8*B]`) takes whole numbers. Any other name is an argument that the function takes by
            name. One axis of a mesh may have the size -1: it takes what the topology has left.
        together: Values of further axes that belong together, one mapping for each: shardings of several arguments.
            Each is asked at every point of `axes`, the first one first.

    Returns:
        The points; one that contradicts itself has its problem in place of a program.

    Raises:
        LayoutError: There is no axis, an axis without values or with one twice, a size that is no whole number, values
            that belong together without one of their axes or twice, or more than MOST points.
    """
    columns = all_axes(axes, together)
    if not columns:
        raise LayoutError(problems.NO_AXIS())
    for number, one in enumerate(together):
        if set(one) != set(columns) - set(axes) or one in together[:number]:
            raise LayoutError(problems.NOT_TOGETHER(number + 1, ", ".join(n for n in columns if n not in axes)))
    sizes = sizes_of(base, columns)
    for name, values in columns.items():
        if not _AXIS.fullmatch(name):
            raise LayoutError(problems.AXIS_NAME(shorten(name, 40)))
        if not values:
            raise LayoutError(problems.AXIS_WITHOUT_VALUES(name))
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise LayoutError(problems.VALUE_TWICE(name, shorten(twice, 40)))
        wrong = next((v for v in values if name in sizes and not re.fullmatch(r"[1-9]\d{0,17}", v)), None)
        if wrong is not None:
            raise LayoutError(problems.SIZE_FORM(name, shorten(wrong, 40)))
    many = len(together) * prod(map(len, axes.values()))
    if many > MOST:
        raise LayoutError(problems.TOO_MANY_POINTS(many, MOST))
    return [
        _point(base, {**one, **dict(zip(axes, values, strict=True))}, sizes)
        for one in together for values in itertools.product(*axes.values())
    ]  # fmt: skip


def all_axes(axes: Axes, together: Sequence[Mapping[str, str]] = ({},)) -> dict[str, Sequence[str]]:
    """The axes of values that belong together, and those that are multiplied, each with its values once.

    >>> all_axes({"B": ["8"]}, [{"in0": "P('x')", "in1": "P()"}, {"in0": "P()", "in1": "P()"}])
    {'in0': ("P('x')", 'P()'), 'in1': ('P()',), 'B': ['8']}
    """
    names = dict.fromkeys(name for one in together for name in one)
    return {**{name: tuple(dict.fromkeys(one[name] for one in together if name in one)) for name in names}, **axes}


def sizes_of(base: Asked, axes: Axes) -> frozenset[str]:
    """The axes that are sizes of arguments: what is computed differs along them."""
    named = {
        size[2] for text in _texts([list(base.args), dict(base.kwargs)]) for shape in _SHAPE.finditer(text)
        for part in shape[2].split(",") if (size := _SIZE.fullmatch(part.strip()))
    }  # fmt: skip
    return frozenset(name for name in axes if name in named)


def read_axis(text: str) -> tuple[str, tuple[str, ...]]:
    """An axis as it is written: values stand between commas, or between semicolons where they have commas themselves.

    >>> read_axis("B=8,16"), read_axis("mesh=data=4,model=2; data=8")
    (('B', ('8', '16')), ('mesh', ('data=4,model=2', 'data=8')))

    Raises LayoutError for what is none.
    """
    name, equals, values = text.partition("=")
    if not equals or not name.strip():
        raise LayoutError(problems.AXIS_FORM(shorten(text, 60)))
    whole = ";" in values or name.strip() == "mesh" or _SHARDING.fullmatch(name.strip())
    return name.strip(), tuple(part.strip() for part in values.split(";" if whole else ","))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from itertools.chain.from_iterable(map(_texts, value.values()))
    elif isinstance(value, list | tuple):
        yield from itertools.chain.from_iterable(map(_texts, value))


def _point(base: Asked, at: dict[str, str], sizes: frozenset[str]) -> SweepPoint:
    try:
        return SweepPoint(at, _asked(base, at, sizes))
    except LayoutError as error:
        return SweepPoint(at, error)


def _asked(base: Asked, at: Mapping[str, str], sizes: frozenset[str]) -> Asked:
    """The program of one point. LayoutError where its values do not fit together."""
    said: dict[str, Any] = {name: at[name] for name in ("target", "topology", "libtpu") if name in at}
    numbers = {name: int(at[name]) for name in sizes}
    sides = {"in": list(base.ins), "out": list(base.outs)}
    kwargs = {name: sized(value, numbers) for name, value in base.kwargs.items()}
    for name, value in at.items():
        if found := _SHARDING.fullmatch(name):
            side = sides[found[1]]
            side += ["P()"] * (int(found[2]) + 1 - len(side))
            side[int(found[2])] = value
        elif name not in said and name != "mesh" and name not in sizes:
            kwargs[name] = value
    name = f"{base.name or base.program} at {', '.join(f'{n}={v}' for n, v in at.items())}"
    asked = replace(
        base, **said, args=tuple(sized(value, numbers) for value in base.args), kwargs=kwargs, ins=tuple(sides["in"]),
        outs=tuple(sides["out"]), name=name,
    )  # fmt: skip
    mesh = read_mesh(at["mesh"], unsized=True) if "mesh" in at else asked.mesh
    return replace(asked, mesh=_filled(mesh, asked))


def sized(value: object, numbers: Mapping[str, int]) -> object:
    """An argument with numbers for the names of its sizes.

    >>> sized({"x": "bf16[8*B,M]", "n": 3}, {"B": 2})
    {'x': 'bf16[16,M]', 'n': 3}
    """
    if isinstance(value, Mapping):
        return {key: sized(part, numbers) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(sized(part, numbers) for part in value)
    if not isinstance(value, str):
        return value

    def size(part: str) -> str:
        found = _SIZE.fullmatch(part.strip())
        known = found is not None and found[2] in numbers
        return str(int(found[1] or 1) * numbers[found[2]]) if found is not None and known else part

    return _SHAPE.sub(lambda shape: f"{shape[1]}[{','.join(map(size, shape[2].split(',')))}]", value)


def _filled(mesh: Mapping[str, int], asked: Asked) -> dict[str, int]:
    """A mesh whose open axis has its size."""
    if OPEN not in mesh.values():
        return dict(mesh)
    if asked.target == CPU:
        raise LayoutError(problems.CPU_MESH_OPEN())
    target = generation(asked.target)
    try:
        chips = prod(map(int, asked.topology.split("x"))) if asked.topology else 1
    except ValueError:
        raise LayoutError(problems.TOPOLOGY_FORM(shorten(asked.topology, 40))) from None
    devices = chips * (CHIPS[target].devices if asked.topology else 1)
    others = prod(size for size in mesh.values() if size != OPEN)
    if devices % others:
        raise LayoutError(problems.DEVICES_NOT_DIVIDED(others, devices, asked.topology or "one chip"))
    return {axis: devices // others if size == OPEN else size for axis, size in mesh.items()}


def swept(
    given: Sequence[SweepPoint],
    workers: Workers,
    seconds: float = LONGEST,
    memory: int | None = None,
    progress: Callable[[Asked, str], None] = lambda asked, what: None,
) -> Iterator[tuple[SweepRow, Made | None]]:
    """The row of each point, in their order, each as soon as it is there, and what was compiled for it.

    workers: this process's one child, several, or a cluster.  seconds, memory: that one point may take.
    Raises LayoutError where a cluster is not to be had.
    """
    asked = [each.asked for each in given if isinstance(each.asked, Asked)]
    found = _made(asked, workers, seconds, memory, progress)
    for each in given:
        if isinstance(each.asked, LayoutError):
            yield SweepRow(each.at, WRONG, each.asked.problem), None
        else:
            one = next(found)
            yield row_of(each.at, one), one


def _made(
    asked: Sequence[Asked], workers: Workers, seconds: float, memory: int | None,
    progress: Callable[[Asked, str], None],
) -> Iterator[Made]:  # fmt: skip
    if workers.jobs == 1 and not workers.backend:
        yield from made(asked, seconds, memory, progress)
        return
    one = partial(_one, seconds=seconds, memory=memory)
    step = ROUND if workers.backend else max(1, len(asked))
    for start in range(0, len(asked), step):
        yield from spread(one, asked[start : start + step], workers)


def _one(asked: Asked, seconds: float, memory: int | None) -> Made:
    (found,) = made([asked], seconds, memory)
    return found


def row_of(at: Mapping[str, str], one: Made) -> SweepRow:
    """The row of a point. one: what came of it."""
    command, record, problem = one.asked.command(), one.record, one.problem
    if record is None:
        reason = "" if problem is None else problem.reason
        outcome = UNKNOWN
        if problem is not None and problem.bad_input:
            outcome = WRONG
        elif problem is not None and problem.verdict is Verdict.REFUTED:
            outcome = NO_ROOM if _NO_ROOM.search(reason) else REFUSED
        return SweepRow(at, outcome, reason or problems.NOTHING_SAID(), one.asked.target, cpu=one.cpu, command=command)
    bound, binds = bound_of(record)
    return SweepRow(
        at, COMPILED, "", record.made.target, record.made.compiler, record.devices, record.memory.taken,
        sent_of(record), record.cycles, None if record.work is None else record.work.flops, bound, binds,
        one.seconds, one.cpu, command,
    )  # fmt: skip


def sent_of(record: Record) -> dict[str, Counted]:
    """Bytes of the collectives of a step, by the axes of the mesh; of each its larger side.

    >>> sent_of(Record("step"))
    {}
    """
    found: dict[str, Counted] = {}
    for each in record.collectives:
        over = "?" if each.axes is None else "+".join(each.axes)
        why = problems.BYTES_UNKNOWN(each.place)
        one = (
            Counted(0, None, why) if each.bytes is None else each.often.counted(each.bytes, "a part stands in a branch")
        )
        if over or each.bytes:
            found[over or "no axis"] = found.get(over or "no axis", Counted()) + one
    for kernel in record.kernels:
        if kernel.communicates:
            found["?"] = found.get("?", Counted()) + Counted(0, None, problems.TALKS_ITSELF(kernel.place))
    return found


def bound_of(record: Record) -> tuple[Counted | None, str]:
    """(The least picoseconds of a step, the term that binds); (None, "") where no chip is named.

    What is not counted of the work leaves it open above, as for the claim `step_time_bound`.
    """
    found = step_time(record) if record.made.target in CHIPS else None
    return (None, "") if found is None else (found.bound, found.binds)
