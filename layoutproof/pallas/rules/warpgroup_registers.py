"""The warpgroups of a GPU's kernel, and the registers that they ask for, are as many as a multiprocessor has.

Why it matters: JAX lowers up to 16 warpgroups for a block, and a GPU starts no more than 8. Of registers that are not
there a warpgroup waits for ever, where the GPU obeys the request.
Refuted by: more than 1024 threads of a block, or 16 blocks of a cluster; `set_max_registers` of less than 24, more than
256, or no multiple of 8; warpgroups that ask for more than 65,536 registers together. One that asks for none has its
share of them. A warning: accumulators of one moment that take more than the 255 registers of a thread, so that they
spill.
Asked of every line, whether or not a program comes to it; of the sum as far as ids of the warpgroups decide.
Example: `plgpu.set_max_registers(232, action="increase")` in two warpgroups of three, where the third one gives back
none: 2 x 232 + 170 of 512 for each of 128 threads.
Figures: registers of the accumulators, of a thread.
Source: CUDA C++ Programming Guide, compute capabilities 9.0 and 10.x; PTX ISA, `setmaxnreg`; `_compute_registers` in
jax/_src/pallas/mosaic_gpu/pipeline.py:1066 and `Mesh` in core.py:1640 (jax 0.10.2).
Fix: `plgpu.set_max_registers(40, action="decrease")` in the warpgroup that only copies; fewer warpgroups; for
accumulators smaller tiles, or more warpgroups that share them.
Incident: none is known to us.
Limits: Registers beside accumulators the assembler alone knows. A multiprocessor is taken to run one block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from layoutproof.bodies.claims import not_modelled
from layoutproof.bodies.effects import Body, BodyReference, GpuInstruction, Loop, views_of
from layoutproof.bodies.mosaic_gpu import REGISTERS as SET
from layoutproof.bodies.terms import Evaluation, parts_of
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
TOGETHER = Template(
    "pallas.warpgroup_registers_together",
    "the warpgroups ask for {asked} registers for each of {threads} threads, {registers} together: there are {most}, "
    "and one of them waits for ever, or the GPU does not obey",
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
ALWAYS: tuple[tuple[Term, ...], tuple[Loop, ...]] = ((), ())
UNKNOWN = "?"
MOST_CHOSEN = 6
"""Conditions beside ids of which all combinations are looked at."""


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
    """Whether what the warpgroups have at last is there, whichever of the requests happen.

    None has more at first than an equal share of all: so many has one that asks for nothing, and one that gives back
    has no more. Were it less at first, as much less would be there for all.
    """
    each = [_Request.of(kernel, body, one) for one in asked]
    chosen = list(dict.fromkeys(one.when for one in each if one.common and one.when != ALWAYS))
    if len(chosen) > MOST_CHOSEN:
        return undecided(PERHAPS())
    for when in [None, *chosen]:
        least = sum(min(held) for held in _held(kernel, each, [when]))
        if least > ALL:
            return by_rule(
                TOGETHER(least, WARPGROUP, least * WARPGROUP, REGISTERS_FROM),
                'look at the warpgroup that needs least: set_max_registers(40, action="decrease")',
            )
    ways = (some for many in range(len(chosen) + 1) for some in combinations(chosen, many))
    fits = all(sum(max(held) for held in _held(kernel, each, some)) <= ALL for some in ways)
    return by_rule("") if fits else undecided(PERHAPS())


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


def _held(kernel: Kernel, each: Sequence[_Request], happen: Sequence[object]) -> Iterator[list[int]]:
    """Of each warpgroup what registers a thread may have at last. happen: the conditions of requests that happen."""
    warpgroups = _extent(kernel, kernel.threads)
    for warpgroup in range(warpgroups):
        last: list[GpuInstruction | None] = [None]
        for request in each:
            loops = request.one.spot.loops
            if warpgroup not in request.by or (request.common and request.when not in (ALWAYS, *happen)):
                continue
            # of two in one loop the first may come again behind the second
            again = loops and any(one is not None and loops[0] in one.spot.loops for one in last)
            last = [*(last if again or not request.common else ()), request.one]
        yield [_has(one, warpgroups) for one in last]


def _has(one: GpuInstruction | None, warpgroups: int) -> int:
    """The registers of a thread after its last request, None = it has made none."""
    share = ALL // warpgroups
    if one is None or one.registers is None:
        return share
    return one.registers if one.more else min(one.registers, share)


def _names(body: Body, term: Term) -> set[str]:
    """The names that a term rests on, through definitions; UNKNOWN for what it reads."""
    found: set[str] = set()
    todo = [term]
    while todo:
        for part in parts_of(todo.pop()):
            if part.op in ("read", "leaf", "maybe"):
                found.add(UNKNOWN)
            elif part.op == "name" and part.args[0] not in found:
                found.add(part.args[0])
                todo += [body.definitions[part.args[0]]] if part.args[0] in body.definitions else []
    return found - set(body.definitions)


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
