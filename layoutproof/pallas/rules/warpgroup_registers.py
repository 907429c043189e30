"""The warpgroups of a GPU's kernel, and the registers that they ask for, are as many as a multiprocessor has.

Why it matters: JAX lowers up to 16 warpgroups for a block, and a GPU starts no more than 8. Of registers that are not
there a warpgroup waits for ever, where the GPU obeys the request.
Refuted by: more than 1024 threads of a block, or 16 blocks of a cluster; `set_max_registers` of less than 24, more than
256, or no multiple of 8; a warpgroup that waits for ever for its registers, as there are those that all begin with: an
equal share of 65,536 each, rounded down to a multiple of 8 for each thread; a warpgroup that gives back to more than it
has, or that asks for less than it has got by another request, which the assembler or the GPU refuses. A warning:
accumulators of one moment that take more than the 255 registers of a thread, so that they spill.
Asked of every line, whether or not a program comes to it. Requests are taken in every order in which they may come.
Example: `plgpu.set_max_registers(232, action="increase")` in two warpgroups of three, where the third one gives back
none: 2 x 232 + 170 of 512 for each of 128 threads.
Figures: registers of the accumulators, of a thread.
Source: CUDA C++ Programming Guide, compute capabilities 9.0 and 10.x; PTX ISA, `setmaxnreg`; `_compute_registers` in
jax/_src/pallas/mosaic_gpu/pipeline.py:1066 and `Mesh` in core.py:1640 (jax 0.10.2). Each way to be refuted was seen on
an H200 (`benchmarks/on_gpu.py`).
Fix: `plgpu.set_max_registers(40, action="decrease")` in the warpgroup that only copies; fewer warpgroups; for
accumulators smaller tiles, or more warpgroups that share them.
Incident: none is known to us.
Limits: Registers beside accumulators the assembler alone knows. A multiprocessor is taken to run one block. Whether a
warpgroup waits for another one before it gives registers back is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from math import prod

from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.effects import Body, BodyReference, GpuInstruction, Loop, views_of
from layoutproof.bodies.mosaic_gpu import REGISTERS as SET
from layoutproof.bodies.terms import Evaluation, inlined, names_in, parts_of
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.message import Template
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term
from layoutproof.hardware.mosaic_gpu import (
    CLUSTER,
    CLUSTER_FROM,
    LEAST_REGISTERS,
    MOST_REGISTERS,
    OF_THREAD,
    REGISTERS,
    REGISTERS_FROM,
    REGISTERS_STEP,
    SETMAXNREG_FROM,
    THREADS,
    THREADS_FROM,
    WARPGROUP,
)
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, by_rule, undecided

TARGET = False
BODY = True
SETTLED_BY = "let ids of warpgroups alone decide which of them sets its registers"

TOO_MANY = Template(
    "pallas.warpgroup_registers_threads", "{warpgroups} warpgroups are {threads} threads: a GPU starts at most {source}"
)
CLUSTERS = Template(
    "pallas.warpgroup_registers_cluster", "the cluster has {blocks} blocks: a GPU starts at most {source}"
)
AMOUNT = Template(
    "pallas.warpgroup_registers_amount", "{registers} registers are none that a thread can ask for: {source}"
)
NO_NUMBER = Template("pallas.warpgroup_registers_no_number", "how many registers are asked for depends on data")
WAITS = Template(
    "pallas.warpgroup_registers_waits",
    "warpgroup {warpgroup} asks for {registers} registers of a thread, and the others have {held} of {all} for each of "
    "{threads} threads, of which it has {has}: it waits for ever ({source})",
)
REFUSED = Template(
    "pallas.warpgroup_registers_refused",
    "warpgroup {warpgroup} {action} to {registers} registers of a thread, and it has {has}: the assembler refuses "
    "that, or the GPU stops at an illegal instruction ({source})",
)
PERHAPS = Template(
    "pallas.warpgroup_registers_perhaps", "which warpgroups set their registers depends on more than their ids"
)
SPILLS = Template(
    "pallas.warpgroup_registers_spills",
    "accumulators of {shapes} take {registers} registers of each thread at once, and it has {most}: they spill",
)

ALL = REGISTERS // WARPGROUP
"""Registers of a multiprocessor, for each thread of one warpgroup."""
HINT = 'look at the warpgroup that needs least: set_max_registers(40, action="decrease")'
ALWAYS: tuple[tuple[Term, ...], tuple[Loop, ...]] = ((), ())
UNKNOWN = "?"
MOST_CHOSEN, MOST_PLACES = 6, 20_000
"""Conditions beside ids of which all combinations are looked at; places of a pool."""


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """Of threads, of clusters, of each request, of all together, of accumulators: as far as there are any."""
    if kernel.platform != "mosaic_gpu":
        return ()
    body: Body | None = kernel.body
    asked = [] if body is None else [one for one in body.instructions if one.name == SET]
    found = [*_started(kernel)]
    found += [Obligation("registers", _amount(one), source=one.spot.source) for one in asked]
    if body is not None and asked and all(one.registers for one in asked):
        found.append(Obligation("registers", _together(kernel, body, asked), source=asked[0].spot.source))
    if body is not None:
        found += _accumulators(body)
    return (*found, *(not_modelled(kernel, body) if body is not None and asked else ()))


def unasked(kernel: Kernel) -> Settled:
    """Where there is one warpgroup without accumulators, that sets no registers."""
    return undecided("one warpgroup of a GPU at most, without accumulators")


def _extent(kernel: Kernel, name: str) -> int:
    extents = dict(zip(kernel.grid_names, kernel.grid, strict=True))
    extent = extents.get(name, 1)
    return extent if isinstance(extent, int) else 1


def _started(kernel: Kernel) -> Iterator[Obligation]:
    """Whether a GPU can start blocks of so many threads, and clusters of so many blocks."""
    warpgroups = _extent(kernel, kernel.threads)
    if warpgroups > 1:
        threads = warpgroups * WARPGROUP
        why = TOO_MANY(warpgroups, threads, THREADS_FROM) if threads > THREADS else ""
        yield Obligation("threads", by_rule(why, "look at num_threads"), source=kernel.source)
    blocks = prod(_extent(kernel, name) for name in kernel.together if name != kernel.threads)
    if blocks > 1:
        why = CLUSTERS(blocks, CLUSTER_FROM) if blocks > CLUSTER else ""
        yield Obligation("cluster", by_rule(why, "look at the cluster"), source=kernel.source)


def _amount(one: GpuInstruction) -> Settled:
    many = one.registers
    if many is None:
        return undecided(NO_NUMBER())
    right = LEAST_REGISTERS <= many <= MOST_REGISTERS and many % REGISTERS_STEP == 0
    return by_rule("" if right else AMOUNT(many, SETMAXNREG_FROM), "look at set_max_registers")


def _together(kernel: Kernel, body: Body, asked: Sequence[GpuInstruction]) -> Settled:
    """Whether each warpgroup gets what it asks for, whichever of the requests happen."""
    each = [_Request.of(kernel, body, one) for one in asked]
    chosen = list(dict.fromkeys(one.when for one in each if one.common and one.when != ALWAYS))
    warpgroups = _extent(kernel, kernel.threads)
    if len(chosen) > MOST_CHOSEN:
        return undecided(PERHAPS())
    ways = [some for many in range(len(chosen) + 1) for some in combinations(chosen, many)]
    share = min(ALL // warpgroups // REGISTERS_STEP * REGISTERS_STEP, MOST_REGISTERS)
    if all(_Pool(_steps(warpgroups, each, some, 2), share).always() for some in ways):
        return by_rule("")
    for some in ways[: len(chosen) + 1]:
        # of a loop it is not known how often it runs
        stuck = [_Pool(_steps(warpgroups, each, some, turns), share).never() for turns in (1, 2)]
        if stuck[0] is not None and stuck[1] is not None:
            return by_rule(_said(stuck[0], share * warpgroups), HINT)
    return undecided(PERHAPS())


def _said(stuck: _Stuck, all_: int) -> str:
    """Why a warpgroup does not go on. all_: registers of a thread of each warpgroup together."""
    if stuck.refused:
        action = "asks for more, up" if stuck.more else "gives back down"
        return REFUSED(stuck.warpgroup, action, stuck.registers, stuck.has, SETMAXNREG_FROM)
    return WAITS(stuck.warpgroup, stuck.registers, stuck.held, all_, WARPGROUP, stuck.has, REGISTERS_FROM)


Step = tuple[int, bool, bool]
"""A request of a warpgroup: the registers, whether it asks for more, and whether it surely comes."""


def _steps(warpgroups: int, each: Sequence[_Request], happen: Sequence[object], turns: int) -> list[tuple[Step, ...]]:
    """Of each warpgroup its requests in order. happen: conditions of requests that happen.  turns: of a loop."""
    found = []
    for warpgroup in range(warpgroups):
        own = [r for r in each if warpgroup in r.by and (not r.common or r.when in (ALWAYS, *happen))]
        steps: list[Step] = []
        for loop, turn in groupby(own, lambda request: request.one.spot.loops[:1]):
            made = [(request.one.registers or 0, request.one.more, request.common) for request in turn]
            steps += made * (turns if loop else 1)
        found.append(tuple(steps))
    return found


@dataclass(frozen=True)
class _Stuck:
    """A request with which it does not go on.

    registers: it asks for them, more or fewer.  has: what the warpgroup has.  held: what the others have.
    refused: whether no GPU does it, else it waits.
    """

    warpgroup: int
    registers: int
    more: bool
    has: int
    held: int
    refused: bool


class _Pool:
    """The registers of a block, in all orders in which its warpgroups ask for them and give them back.

    A place is, of each warpgroup, how many requests it has made, what it has, and whether the next one has come.
    steps: of each warpgroup.  share: of each, and so of all together; a thread begins with no more than 255 of it.
    """

    def __init__(self, steps: Sequence[tuple[Step, ...]], share: int) -> None:
        self.steps, self.all = steps, share * len(steps)
        begin = tuple((0, min(share, OF_THREAD), False) for _ in steps)
        self.seen = {begin}
        self.ends: list[tuple[_At, ...]] = []
        todo = [begin]
        while todo and len(self.seen) <= MOST_PLACES:
            place = todo.pop()
            stops = any(self._refused(k, at) for k, at in enumerate(place))
            following = [] if stops else [after for k in range(len(place)) for after in self._after(place, k)]
            self.ends += [] if following else [place]
            todo += [after for after in following if after not in self.seen]
            self.seen.update(following)
        self.whole = not todo

    def _refused(self, k: int, at: _At) -> bool:
        """Whether the next request of a warpgroup surely comes, and is one that no GPU does.

        With what a warpgroup begins the assembler decides: an H200 runs a first request for less than that.
        """
        made, has, come = at
        if made == len(self.steps[k]):
            return False
        registers, more, sure = self.steps[k][made]
        return (sure or come) and (registers < has and made > 0 if more else registers > has)

    def _after(self, place: tuple[_At, ...], k: int) -> Iterator[tuple[_At, ...]]:
        """The places after the next step of one warpgroup; none where it waits, or has ended."""
        made, has, come = place[k]
        if made == len(self.steps[k]):
            return
        registers, more, sure = self.steps[k][made]
        if not come and not sure:
            yield (*place[:k], (made + 1, has, False), *place[k + 1 :])
            yield (*place[:k], (made, has, True), *place[k + 1 :])
            return
        after = max(has, registers) if more else registers
        if after <= has or sum(one[1] for one in place) - has + after <= self.all:
            yield (*place[:k], (made + 1, after, False), *place[k + 1 :])

    def _stuck(self, place: tuple[_At, ...]) -> _Stuck | None:
        """Of a place where nothing goes on a request that is refused, or else waits; None at the end."""
        left = [(k, at) for k, at in enumerate(place) if at[0] < len(self.steps[k])]
        refused = [(k, at) for k, at in left if self._refused(k, at)]
        for k, (made, has, _) in refused or left:
            registers, more, _ = self.steps[k][made]
            return _Stuck(k, registers, more, has, sum(one[1] for one in place) - has, bool(refused))
        return None

    def always(self) -> bool:
        """Whether all come to their end in every order."""
        return self.whole and not any(map(self._stuck, self.ends))

    def never(self) -> _Stuck | None:
        """What does not go on, in every order; None where there is another one."""
        stuck = [self._stuck(place) for place in sorted(self.ends)]
        return None if not self.whole or None in stuck else stuck[-1]


_At = tuple[int, int, bool]


@dataclass(frozen=True)
class _Request:
    """A request, and when it happens.

    by: which warpgroups make it.  when: on what else it depends, conditions and loops.  common: whether that is the
    same for all warpgroups.
    """

    one: GpuInstruction
    by: frozenset[int]
    when: tuple[tuple[Term, ...], tuple[Loop, ...]]
    common: bool

    @staticmethod
    def of(kernel: Kernel, body: Body, one: GpuInstruction) -> _Request:
        """What its path says."""
        by, others = set(range(_extent(kernel, kernel.threads))), []
        for condition in one.spot.path:
            if _names(body, condition) <= {kernel.threads}:
                by = {k for k in by if Evaluation({kernel.threads: k}, INTS, body.definitions).on_ints(condition)}
            else:
                others.append(condition)
        ends = [body.goes_on.get(loop.name, loop.count) for loop in one.spot.loops]
        apart = {kernel.threads, *body.unknowns, UNKNOWN}
        common = not any(end is None or _names(body, end) & apart for end in [*others, *ends])
        return _Request(one, frozenset(by), (tuple(others), one.spot.loops), common)


def _names(body: Body, term: Term) -> set[str]:
    """The names that a term rests on, through definitions; UNKNOWN for what it reads."""
    whole = inlined(body.definitions, term)
    reads = any(part.op in ("read", "leaf", "maybe") for part in parts_of(whole))
    return {*names_in(whole), *([UNKNOWN] if reads else [])}


@dataclass
class _Live:
    """An accumulator, with its registers of a thread, from the first to the last effect that touches it."""

    of: BodyReference
    registers: int
    first: int
    last: int


def _accumulators(body: Body) -> Iterator[Obligation]:
    """Whether the accumulators of each moment fit into the registers of a thread."""
    live: dict[str, _Live] = {}
    sources: dict[str, str] = {}
    for effect in body.effects:
        for view in views_of(Body(effects=(effect,))):
            of = view.reference
            if of.memory != "regs" or of.dtype not in ELEMENT_BITS:
                continue
            bits = prod(of.dims) * ELEMENT_BITS[of.dtype]
            one = live.setdefault(of.name, _Live(of, -(-bits // (32 * WARPGROUP)), effect.spot.number, 0))
            one.last = effect.spot.number
            sources.setdefault(of.name, effect.spot.source)
    if not live:
        return
    moments = [[two for two in live.values() if two.first <= one.first <= two.last] for one in live.values()]
    largest = max(moments, key=lambda moment: sum(one.registers for one in moment))
    registers = sum(one.registers for one in largest)
    shapes = ", ".join(f"{one.of.dtype}[{','.join(map(str, one.of.dims))}]" for one in largest)
    why = SPILLS(shapes, registers, OF_THREAD) if registers > OF_THREAD else ""
    yield Obligation(
        "accumulators",
        by_rule(why, "look at the tile: smaller, or shared by more warpgroups"),
        severity="warning",
        source=sources[largest[0].of.name],
        figures={"registers": registers},
    )
