"""One walk over a program: every equation is computed on a kind of number, in the order in which it is written.

Integers and truth values that follow from the code alone are known, and computed by NumPy at their own width; so are
floats of the code. Everything else is data, arrays of the kind of number. The walk takes what JAX's eager evaluation
would take, Pallas kernels included: their programs one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, cast

from layoutproof.core.errors import failure, shorten
from layoutproof.ir.program import Equation, Literal, MemRefType, Program, Variable, programs_in
from layoutproof.values import (
    complexes,
    contractions,
    control,
    devices,
    elementwise,
    kernels,
    meshes,
    mosaic_gpu,
    movement,
    references,
    subcores,
    systems,
    triton,
)
from layoutproof.values.fields import Depth
from layoutproof.values.kinds import Array, D, Data, Kind, NumberKind, Shaped
from layoutproof.values.known import Complex, DeviceParts, Known, are_known, data_of, known_of
from layoutproof.values.literals import FEW, Reading, value_of
from layoutproof.values.memory import CopyUnderWay
from layoutproof.values.refusals import OFFER, ChainTooShort, Collision, Ended, NotModelled, OutOfBounds
from layoutproof.values.state import Auditing, BlockKey, DevicesTogether, GridPosition, Rule, Starts, Watching
from layoutproof.values.work import EACH, MOST_STEPS, steps_of

MOST_EQUATIONS = 20_000_000
"""Equations that one walk computes."""

SHARE = 16
"""The part of `MOST_STEPS` that a loop may take whose end is a number drawn from all of its type."""

PRIMITIVES: Mapping[str, Rule] = {
    **elementwise.PRIMITIVES,
    **movement.PRIMITIVES,
    **contractions.PRIMITIVES,
    **complexes.MAKERS,
    **systems.PRIMITIVES,
    **references.PRIMITIVES,
    **control.PRIMITIVES,
    **kernels.PRIMITIVES,
    **meshes.PRIMITIVES,
    **subcores.PRIMITIVES,
    **triton.PRIMITIVES,
    **mosaic_gpu.PRIMITIVES,
    **devices.PRIMITIVES,
}
"""Primitive -> (walk, equation, operands) -> results."""

TOGETHER = frozenset({*control.PRIMITIVES, *devices.PRIMITIVES})
"""Primitives that take what all devices hold; every other one is computed for each device."""

KERNELS = frozenset({*meshes.PRIMITIVES, "pallas_call"})
"""Primitives that run a kernel."""

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("sort", "top_k", "approx_top_k"), "an order of data"),
    **dict.fromkeys(
        ("random_bits", "threefry2x32", "prng_random_bits", "prng_seed"), "random numbers of a key that is data"
    ),
    "a constant that the text leaves out": "a constant that the text leaves out: have large constants printed",
    "device_id": "several devices",
}
"""Primitives that are known and not modelled, and why."""


Step = tuple[Equation, tuple[tuple[Variable | Literal, Known | Complex | None], ...]]
"""An equation, and of each operand (its variable, None) or (the literal itself, its number)."""


class Prepared:
    """Programs made ready, each once, for all walks over them.

    starts: of the index maps whose tables are known, the blocks of each program: kept by `kernels`.  tick: is called
    for each program that is walked, (the grid, its ids).  readings: as of `points.Points`.  foreign: whether the
    programs are unchecked: one walk takes `MOST_STEPS` at most, and results must have the stated shapes.
    exhausted: whether a walk took more; then there are no others.  trips: of each loop that runs until something holds,
    how many steps it had at the most.  levels: how long the chain of fields had to be so far, with which a walk begins.
    """

    def __init__(
        self,
        tick: Callable[[tuple[int, ...], tuple[int, ...]], None] = lambda grid, ids: None,
        readings: Mapping[float, Reading] = MappingProxyType({}),
        foreign: bool = False,
    ) -> None:
        self.tick, self.readings, self.foreign = tick, readings, foreign
        # the same as numbers of float64
        self.numbers = {x: value_of(reading) for x, reading in readings.items()}
        self._plans: dict[Program, tuple[list[Known | Complex], tuple[Step, ...]]] = {}
        self._used: dict[Program, frozenset[Equation]] = {}
        self._steps: dict[Program, int] = {}
        self.starts: dict[BlockKey, tuple[Starts, bool]] = {}
        self.trips: dict[Equation, int] = {}
        self._walked: set[Program] = set()
        self.levels = 1
        self.exhausted = False
        self._compared: set[float] = set()

    def deeper(self, depth: Depth) -> Depth | None:
        """A longer chain, with which later walks begin, too; None where there is none."""
        found = depth.deeper()
        self.levels = self.levels if found is None else max(self.levels, found.levels)
        return found

    def compares_with(self, more: Collection[float]) -> bool:
        """Notes numbers of the code that values are compared with; whether some are new, and not too many in all."""
        new = not self._compared.issuperset(more)
        self._compared.update(more)
        return new and len(self._compared) <= FEW

    def compared_with(self) -> Collection[float]:
        """These, none where they are too many: a table of numbers orders nothing."""
        return self._compared if len(self._compared) <= FEW else ()

    def ended(self, walked: set[Program], trips: Mapping[Equation, int]) -> None:
        """Notes the equations of a completed walk; refused ones were not compared."""
        self._walked |= walked
        for loop, steps in trips.items():
            self.trips[loop] = max(self.trips.get(loop, 0), steps)

    def walked(self, program: Program) -> bool:
        """Whether some walk that came to its end ran it."""
        return program in self._walked

    def is_used(self, program: Program, equation: Equation) -> bool:
        """Whether a walk over a program computes an equation: its results are used."""
        if program not in self._used:
            self._used[program] = frozenset(e for e, _ in self.plan(program)[1])
        return equation in self._used[program]

    def steps(self, program: Program) -> int:
        """Steps of a program, without those of the programs inside of it."""
        if program not in self._steps:
            self._steps[program] = sum(EACH + steps_of(equation) for equation, _ in self.plan(program)[1])
        return self._steps[program]

    def plan(self, program: Program) -> tuple[list[Known | Complex], tuple[Step, ...]]:
        """(its constants, the equations whose results are used, or that touch memory)."""
        if program not in self._plans:
            steps = tuple(
                (e, tuple((a, known_of(a.val) if isinstance(a, Literal) else None) for a in e.invars))
                for e in _used(program)
            )
            self._plans[program] = [known_of(c) for c in program.consts], steps
        return self._plans[program]


def _used(program: Program) -> list[Equation]:
    """The equations of a program whose results are used, or that touch memory."""
    wanted = {v for v in program.outvars if isinstance(v, Variable)}
    found = []
    for equation in reversed(program.eqns):
        touches = any(isinstance(v.aval, MemRefType) for v in equation.invars)
        if touches or equation.effects or not wanted.isdisjoint(equation.outvars):
            found.append(equation)
            wanted.update(v for v in equation.invars if isinstance(v, Variable))
    return found[::-1]


class Walk:
    """The state of one walk. numbers: the kind of number.  prepared: the programs of all walks.

    audit: what is told of exponentials and sums, as of `stability.Audit`; None where it is not asked.
    inside: whether so far every block had an element in its array, no masked access left its memory, and no place
    rested on how data compare. An access without a mask that leaves its memory ends the walk.  flying: the copies that
    are not waited for.  ordered: whether so far nothing was touched that a copy in flight moves, and each wait had the
    bytes of whole copies.  race: of what was touched first in spite of it, in words.  defined: whether so far no
    integer was read that was never written, and is in no result: of floats it is seen what rests on them.  complete:
    whether there was none, read or not.
    mesh: the axes of devices on which the equation runs, with their extents.  device: the one of them that is walked
    alone now, None where all go together.  warp: of the warps of a warpgroup the one that is walked, (axis, number,
    number among what goes together), None where all do the same.  lockstep: the devices that run a kernel and reach one
    another.  watch: is told of programs, loads and stores, and may turn them, as of `watch.Watch`.  walked: the
    programs that it ran.
    trips: of each loop that runs until something holds, how many steps it had at the most.
    """

    def __init__(
        self, numbers: NumberKind[D], prepared: Prepared, audit: Auditing | None = None, watch: Watching | None = None
    ) -> None:
        self.numbers, self.watch = cast(Kind, numbers), watch
        self.prepared = prepared
        self.audit = audit
        self.programs: GridPosition | None = None
        self.program: Program | None = None
        self.equation: Equation | None = None
        self.seen = 0
        self.steps = 0
        self.inside = True
        self.flying: list[CopyUnderWay] = []
        self.ordered = True
        self.race = ""
        self.defined = self.complete = True
        self.mesh: tuple[tuple[str, int], ...] = ()
        self.device: int | None = None
        self.warp: tuple[str, int, int] | None = None
        self.lockstep: DevicesTogether | None = None
        self.around: list[Equation | None] = []
        self.walked: set[Program] = set()
        self.trips: dict[Equation, int] = {}

    def place(self) -> str:
        """`file:line` of the equation that is computed, or of the one that it is in."""
        for equation in (self.equation, *reversed(self.around)):
            if equation is not None and (found := str(equation.source)):
                return found
        return ""

    def refuse(self, what: str) -> NotModelled:
        """The exception to raise."""
        return NotModelled(what, self.place())

    def data(self, value: Shaped) -> Data:
        """A value as data."""
        return data_of(self.numbers, value)

    def is_used(self, variable: Variable) -> bool:
        """Whether a result of the current equation is used."""
        return self.program is not None and variable in self.program.used

    def is_long(self) -> bool:
        """Whether a walk over what is not checked took a good part of its steps."""
        return self.prepared.foreign and self.steps > MOST_STEPS // SHARE

    def run(self, inner: Program, arguments: Sequence[Shaped]) -> list[Shaped]:
        """The results of a program for some values."""
        consts, steps = self.prepared.plan(inner)
        foreign = self.prepared.foreign
        if foreign:
            # together, what runs on all devices is computed for each
            self.steps += self.prepared.steps(inner) * (devices.count(self.mesh) if self.device is None else 1)
            if self.steps > MOST_STEPS or self.prepared.exhausted:
                self.prepared.exhausted = True
                raise self.refuse(f"more than {MOST_STEPS:,} steps")
        values: dict[Any, Any] = dict(zip(inner.constvars, consts, strict=False))
        values.update(zip(inner.given, arguments, strict=True))
        around, outer, self.program = self.equation, self.program, inner
        self.walked.add(inner)
        self.around.append(around)
        for equation, atoms in steps:
            self.equation = equation
            operands = [values[variable] if literal is None else literal for variable, literal in atoms]
            for variable, result in zip(equation.outvars, self._results(equation, operands), strict=True):
                if foreign and tuple(result.shape) != tuple(variable.aval.shape):
                    what = f"{equation.primitive.name} gives {list(result.shape)}"
                    raise self.refuse(f"{what}, where {list(variable.aval.shape)} is said")
                values[variable] = result
        if self.audit is not None:
            self.audit.body(inner)
        self.equation, self.program = around, outer
        self.around.pop()
        if not self.around:
            self.prepared.ended(self.walked, self.trips)
        return [known_of(a.val) if isinstance(a, Literal) else values[a] for a in inner.outvars]

    def _on_each_device(self, name: str, operands: Sequence[Shaped]) -> bool:
        """Whether an equation runs on every device of a mesh, each with what it holds."""
        if not self.mesh or self.device is not None:
            return False
        return name in KERNELS or (name not in TOGETHER and any(isinstance(o, DeviceParts) for o in operands))

    def _results(self, equation: Equation, operands: list[Shaped]) -> Sequence[Shaped]:
        self.seen += 1
        if self.seen > MOST_EQUATIONS:
            raise self.refuse(f"more than {MOST_EQUATIONS:,} equations; {OFFER}")
        name = equation.primitive.name
        of_complex = name in complexes.PRIMITIVES and any(isinstance(o, Complex) for o in operands)
        rule = (complexes.PRIMITIVES if of_complex else PRIMITIVES).get(name)
        try:
            # a kernel may ask on which device it runs
            if self._on_each_device(name, operands):
                how = devices.together if name in KERNELS and reaches_devices(equation) else devices.each
                return how(self, lambda given: self._results(equation, given), operands)
            if rule is not None:
                results = rule(self, equation, operands)
                if self.watch is not None and name == "dynamic_slice":
                    self.watch.read(self, results[0])
                return results
            if equation.compute is not None and operands and are_known(operands):
                return evaluated(equation.compute, operands)
        except (NotModelled, OutOfBounds) as refusal:
            refusal.place = refusal.place or self.place()
            raise
        except (ChainTooShort, Collision, Ended, MemoryError, RecursionError):
            raise
        except Exception as error:
            # a form of an operation that is not read: it is unknown, with our own words for it
            if self.prepared.foreign:
                raise self.refuse(f"{name} is not computed as it is written: {shorten(str(error), 120)}") from error
            raise self.refuse(f"{name}: {failure(error)}") from error
        raise self.refuse(REFUSED.get(name, name if " " in name else f"the primitive {name}"))


@lru_cache(maxsize=256)
def reaches_devices(equation: Equation) -> bool:
    """Whether an equation, or one in it, speaks of another device or waits for what it sends."""
    name = equation.primitive.name
    if name == "get_barrier_semaphore":
        return True
    tree = equation.params.get("tree" if name in ("dma_start", "dma_wait") else "args_tree")
    if name in ("dma_start", "dma_wait", "semaphore_signal") and isinstance(tree, tuple):
        return len(tree) > 4 and tree[4 if name != "semaphore_signal" else 3] is not None
    return any(reaches_devices(inner) for program in programs_in(equation) for inner in program.eqns)


def evaluated(compute: Callable[[Sequence[Array]], list[Array]], operands: Sequence[Known]) -> list[Shaped]:
    """An equation of numbers that are known, computed where it comes from."""
    sampled = any(o.sampled for o in operands)
    return [known_of(f, sampled) for f in compute([o.array for o in operands])]
