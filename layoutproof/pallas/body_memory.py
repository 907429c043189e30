"""Shared parts of the properties of memory: deciding its contents, and replaying a violation literally."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from layoutproof.bodies.claims import BodyClaim
from layoutproof.bodies.effects import Access, Body, BodyReference, StartedCopy
from layoutproof.bodies.memory_state import States, reasons
from layoutproof.bodies.order import following, last_of_core, other_block, valid
from layoutproof.bodies.walk import Answer, BodyWalk, Origin
from layoutproof.core.budget import effort
from layoutproof.core.claim import Claim
from layoutproof.core.errors import InternalError
from layoutproof.core.numbers import INTS
from layoutproof.core.result import Point
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.read_consistency import range_of, restricted
from layoutproof.kernel.relations import range_at
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.pallas import problems
from layoutproof.pallas.points import READS
from layoutproof.solvers.decide import ENGINES, Decision, candidate_holds, decide

Place = tuple[int, ...]
Ask = Callable[[BodyWalk], tuple[Answer, Origin | None]]
"""Asks a walk whether something undefined is somewhere, and where it comes from."""
MOST_TRIED = 200
"""Programs and elements that are looked at one by one where the smallest candidate turns out to be none."""


@dataclass(eq=False)
class Deciding:
    """Claims about memory and their answers. engines: that are asked.  by: those that decided so far."""

    engines: tuple[str, ...] = ENGINES
    by: dict[str, None] = field(default_factory=dict)
    last: Decision | None = None

    def proves(self, claim: BodyClaim) -> bool:
        """Whether a claim is proved."""
        if claim.alone is not None and self._quickly(claim.alone):
            return True
        self.last = decide(claim.claim, self.engines, effort=effort())
        if self.last.by:
            self.by.setdefault(self.last.by)
        return self.last.point is None and not self.last.reason

    def holds(self, claim: BodyClaim) -> bool:
        """Whether an engine that is quick at it proves a claim: of many that are tried, most fail."""
        return any(self._quickly(one) for one in (claim.alone, claim.claim) if one is not None)

    def _quickly(self, claim: Claim) -> bool:
        engine = candidate_holds(claim)
        if engine:
            self.by.setdefault(engine)
        return bool(engine)

    def names(self) -> str:
        """The engines in words, a rule where none was asked."""
        return "+".join(dict.fromkeys(part for by in self.by for part in by.split("+"))) or "rule"


def none_left(kernel: Kernel, operand: Operand, reference: BodyReference, states: States) -> bool:
    """Whether, each time that the window of an output goes out, no element of the array in it is as states say.

    It goes out after the last program of a core, and where the next one has another block.
    """
    at = tuple(Term("name", f"at{k}") for k in range(len(reference.dims)))
    elements = {f"at{k}": n for k, n in enumerate(reference.dims)}
    after, some, more = following(kernel)

    def left(when: Sequence[Term]) -> list[Term]:
        return [*when, valid(kernel, operand, at), states.at_exit(reference)]

    ways = [[last_of_core(kernel)], [some, other_block(kernel, operand, after)]]
    return all(states.impossible(lambda when=when: left(when), {**elements, **more})[1] for when in ways)  # type: ignore[misc]


def named(claim: BodyClaim, point: Point) -> dict[str, int]:
    """The numbers of a point by the names of its spaces."""
    found: dict[str, int] = {}
    for label, space in claim.claim.points.items():
        found |= dict(zip(space.names, point[label], strict=True))
    return found


@dataclass(eq=False)
class Tables:
    """Contents of tables for a walk. known: whether any entry is.

    taken: the entries looked up, as a counterexample shows them.
    """

    held: Callable[[str, Place], int | None] = lambda name, at: None
    known: bool = False
    taken: dict[str, int] = field(default_factory=dict)

    def __call__(self, name: str, at: Place) -> int | None:
        """The value of an entry, None = not known."""
        value = self.held(name, at)
        if value is not None:
            self.taken[f"{name}[{', '.join(map(str, at))}]"] = value
        return value


def entries_needed(ask: Ask, walk: Callable[[Tables], BodyWalk], tables: Tables) -> dict[str, Any]:
    """The point `reads` with the entries of tables that a walk needed for its violation; {} where it needed none.

    A violation of a walk without tables is one for all tables.
    """
    if not tables.known or replayed(ask, [walk(Tables())]) is not None:
        return {}
    taken = Tables(tables.held, tables.known)
    replayed(ask, [walk(taken)])
    return {READS: taken.taken} if taken.taken else {}


def tables_at(kernel: Kernel, claim: BodyClaim | None, point: Point | None) -> Tables:
    """Contents of tables that hold at a point what the claim read there, and elsewhere the least that is assumed."""
    known: dict[tuple[str, Place], int] = {}
    if claim is not None and point is not None and "sizes" not in point:
        for read in claim.reads:
            at = tuple(int(claim.value(a, point, INTS)) for a in read.args[1:])
            known[str(read.args[0].args[0]), at] = int(claim.value(read, point, INTS))
    tables = {table.name: table for table in every_table(kernel)}

    def held(name: str, at: Place) -> int | None:
        if (name, at) in known:
            return known[name, at]
        table = tables.get(name)
        if table is None or restricted(table) or table.monotone or table.injective or table.onto:
            return None
        low, _ = range_at(kernel.relations, table, [Term("int", n) for n in at])
        nothing = table.low is None and low == range_of(table)[0]
        return None if nothing else int(INTS.size(low))

    return Tables(held, bool(tables))


def unbounded(kernel: Kernel, claim: BodyClaim) -> list[str]:
    """Tables of a claim of which nothing is assumed."""
    return [t.name for t in every_table(kernel) if t.name in claim.tables and (t.low is None or t.high is None)]


def places_to_try(kernel: Kernel, extents: Sequence[int]) -> Iterator[tuple[Place, Place]]:
    """Programs and elements, corners of both, smallest first."""
    grid = [INTS.size(n) if type(n) is int else 0 for n in kernel.grid]
    if not all(grid):
        return
    programs = product(*(_ends(n) for n in grid))
    elements = corners(extents)
    yield from islice(((p, e) for p in programs for e in elements), MOST_TRIED)


def corners(extents: Sequence[int]) -> list[Place]:
    """Some elements near the corners of what has these extents, smallest first."""
    return [*islice(product(*(_ends(n) for n in extents)), 16)]


def _ends(extent: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(n for n in (0, 1, extent - 2, extent - 1) if 0 <= n < extent))


def why_unknown(states: States, claim: BodyClaim | None, condition: Term | None) -> str:
    """Why neither a proof nor a replayed refutation was found."""
    if states.reason:
        return states.reason
    found = [*(reasons(condition) if condition is not None else ()), *(claim.lost if claim is not None else ())]
    if claim is not None and claim.tables:
        found.append(f"what {' and '.join(claim.tables)} holds")
    if found:
        return problems.DEPENDS(" and ".join(dict.fromkeys(found[:3])))
    return problems.NO_REPLAY()


def source_of(origin: Origin, body: Body) -> str:
    """file:line of the load through which something undefined came in."""
    return origin.effect.spot.source if origin.effect is not None else ""


def program_ids(kernel: Kernel, term: Term) -> str:
    """A term as the body writes it: `pl.program_id(0)` for the grid's names, without the ones that vmap added."""
    from layoutproof.bodies.terms import renaming, replaced

    own = [kernel.grid_names[k] for k in kernel.counted]
    ids: Mapping[str, Any] = {n: Term("name", f"pl.program_id({k})") for k, n in enumerate(own)}
    return str(replaced(term, renaming(ids)))


def storing(store: Access | StartedCopy, program: Place, within: Mapping[str, int], element: Place) -> Ask:
    """Asks whether a store or copy leaves something undefined at an element. within: iterations of its loops."""
    return lambda walk: walk.stores(store, program, within, element)


def loading(load: Access | StartedCopy, program: Place, within: Mapping[str, int], element: Place) -> Ask:
    """Asks whether a load or copy reads something undefined at an element. within: iterations of its loops."""
    return lambda walk: walk.loads(load, program, within, element)


def replayed(ask: Ask, walks: Sequence[BodyWalk]) -> Origin | None:
    """Where something undefined comes from, by the first walk that says so; None where none does."""
    for walk in walks:
        try:
            answer, origin = ask(walk)
        except InternalError:
            continue
        if answer and origin is not None:
            return origin
    return None
