"""From a condition over a body's names to a claim that the engines decide.

The points of such a claim are the `program`, the `iteration` of the loops around an effect, an `element`, and
`values`: entries read from tables, and unknowns. Reads of one table at equal indices are equal
(`kernel.read_consistency`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from layoutproof.bodies import problems
from layoutproof.bodies.effects import Body, BodyReference, Loop, Unknown, loads_of, short_place
from layoutproof.bodies.sums import with_sums
from layoutproof.bodies.terms import PARTS, Evaluation, parts_of, parts_through, replaced, written
from layoutproof.bodies.wraps import Bounds, bounds, without
from layoutproof.core import problems as core_problems
from layoutproof.core.budget import spend
from layoutproof.core.claim import At, Claim, PlacePredicate
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import Unsupported
from layoutproof.core.folding import all_of
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample, Point
from layoutproof.core.space import Space
from layoutproof.core.term import Term, fixed
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.obligation import Obligation, undecided
from layoutproof.kernel.read_consistency import consistent_reads, range_of
from layoutproof.kernel.relations import cases, range_at, ranged
from layoutproof.kernel.scalar_memory import every_table

LONGEST_LOOP = 1 << 31
"""Iterations of a loop whose end only a condition says: its counter is an int32."""


@dataclass(frozen=True, slots=True, eq=False)
class BodyClaim:
    """A claim about a body, and what its answer rests on.

    claim: for the engines.  tables: names of those of `every_table` that it reads.  lost: why numbers in it are not
    known, each once: a refutation that rests on one is none.  value: evaluates a term at a point of the claim, on ints.
    reads: the entries of tables that it reads.  alone: the claim without relations of tables, which is smaller; None
    where there are none.
    """

    claim: Claim
    tables: tuple[str, ...]
    lost: tuple[str, ...]
    value: Callable[[Term, Point, Numbers], Any] = field(repr=False)
    reads: tuple[Term, ...] = ()
    alone: Claim | None = None


def asked(
    kernel: Kernel,
    body: Body,
    violation: Sequence[Term],
    loops: Sequence[Loop] = (),
    elements: Mapping[str, int] | None = None,
    explain: Callable[[Point, Numbers, Callable[[Term], Any]], str] | None = None,
    extra: Sequence[Term] = (),
    programs: Mapping[str, Sequence[str]] | None = None,
    place: Sequence[Term] = (),
) -> BodyClaim:
    """The claim that no program, iteration, element and values make all of `violation` true.

    loops: around the effect; those that it does not depend on are left out.  elements: further names, each below its
    extent.  explain: point, numbers, and a function that gives terms their value there -> sentence.  extra: terms whose
    values `explain` wants.  programs: where there are several, the name of each in the counterexample and the names
    of its ids (see `beside`).  place: the element as the counterexample has it; () = as `elements` say it.
    Raises Unsupported where the condition says `maybe` or speaks of a leaf.
    """
    body = with_sums(kernel, body)
    programs = {"program": kernel.grid_names} if programs is None else programs
    spans = {loop.name: most(loop) for loop in loops} | dict(elements or {})
    spans |= {n: k for ids in programs.values() for n, k in zip(ids, kernel.grid, strict=True) if type(k) is int}
    (whole, *more_terms), body = without_wraps(kernel, body, [all_of([*violation]), *extra, *place], spans)
    extra, place = more_terms[: len(extra)], more_terms[len(extra) :]
    wanted = [whole, *extra, *place]
    wanted, (names, reads, facts) = _with_counts(body, wanted, loops)
    related = cases(kernel.relations, [read for read in reads if read.args[0].args[0] not in body.loads])
    alone = None
    if related:
        # ranges of single reads are no conditions, and cost nothing
        unrelated = replace(kernel, relations=tuple(each for each in kernel.relations if ranged(each, reads)))
        alone = asked(unrelated, body, violation, loops, elements, explain, extra, programs, place).claim
        names, reads, facts = closure(body, [*wanted, *related], loops={loop.name for loop in loops})
    own = {name for ids in programs.values() for name in ids}
    inner = [loop for loop in loops if loop.name in names]
    known = {loop.name for loop in inner}
    more = {name: extent for name, extent in (elements or {}).items() if name in names}
    more |= {name: extent for name, extent in body.witnesses.items() if name in names}
    unknowns = [body.unknowns[name] for name in sorted(names) if name in body.unknowns]
    stray = names - own - known - set(more) - {u.name for u in unknowns} - set(body.definitions)
    sizes = set(kernel.parameters())
    if stray - sizes:
        raise Unsupported(problems.COUNTER_OUTSIDE_LOOP(", ".join(sorted(stray - sizes))))
    spaces = {label: Space(tuple(ids), fixed(kernel.grid)) for label, ids in programs.items()}
    if inner:
        spaces["iteration"] = Space(tuple(loop.name for loop in inner), tuple(most(loop) for loop in inner))
    if more:
        spaces["element"] = Space(tuple(more), tuple(more.values()))
    values = TablePoint(kernel, body, reads, unknowns)
    if reads or unknowns:
        spaces["values"] = values.space
    assumed = [Term("<", Term("name", loop.name), loop.count) for loop in inner if counted(loop)]
    at = environment(body, spaces, {"values": values})

    def sentence(point: Point, on: Numbers) -> str:
        return explain(point, on, at([point[label] for label in spaces], on)) if explain is not None else ""

    def shown(point: Point, on: Numbers) -> Counterexample:
        run = at([point[label] for label in spaces], on)
        seen = {**point, "element": tuple(int(run(entry)) for entry in place)} if place else point
        return values.shown(seen, run)

    told = [*assumed, *related, *facts, whole]
    key = _key(spaces, told, values, body.definitions)
    claim = Claim(spaces, said(spaces, at, told, values), sentence, shown=shown, key=key)
    of_call = {table.name for table in every_table(kernel)}
    tables = values.tables
    return BodyClaim(
        claim,
        tuple(dict.fromkeys(name for name in (_filled(body, t) for t in tables) if name in of_call)),
        tuple(
            dict.fromkeys([*(u.why for u in unknowns), *(_loaded(body, t) for t in tables if t.name not in of_call)])
        ),
        lambda term, point, on: at([point[label] for label in spaces], on)(term),
        tuple(read for read, table in zip(reads, tables, strict=True) if table.name in of_call),
        alone,
    )


def without_wraps(
    kernel: Kernel, body: Body, terms: Sequence[Term], spans: Mapping[str, int]
) -> tuple[list[Term], Body]:
    """Terms, and the body, without what says of how many bits numbers are, wherever those hold them.

    That is under what is assumed of tables.

    spans: how far names go from 0, beside those of the body.
    """
    made: dict[str, Table] = {}

    def reads(read: Term) -> tuple[int, int] | None:
        low, high = range_at(kernel.relations, table_of(kernel, body, read, made), read.args[1:])
        return (low, high - 1) if type(low) is int and type(high) is int else None

    known = {name: (0, max(n - 1, 0)) for name, n in spans.items() if type(n) is int}
    known |= {name: (0, max(n - 1, 0)) for name, n in body.witnesses.items()}
    within = bounds(kernel, body, known, reads)
    if not body.definitions:
        return without(terms, within), body
    if not isinstance(body, Body):
        # an interpreter on its way
        body = Body(
            tuple(body.references),
            tuple(body.effects),
            body.unknowns,
            loads=body.loads,
            witnesses=body.witnesses,
            facts=tuple(body.facts),
            kept=body.kept,
            definitions=body.definitions,
        )
    body = replace(body, definitions=_Unwrapped(body.definitions, within))
    return without(terms, within), body


class _Unwrapped(Mapping[str, Term]):
    """Definitions as `without_wraps` has them: each is rewritten once it is asked for, of many mostly few are."""

    def __init__(self, definitions: Mapping[str, Term], within: Bounds) -> None:
        self.definitions, self.within = definitions, within
        self.known: dict[str, Term] = {}

    def __getitem__(self, name: str) -> Term:
        if name not in self.known:
            (self.known[name],) = without([self.definitions[name]], self.within)
        return self.known[name]

    def __contains__(self, name: object) -> bool:
        return name in self.definitions

    def __iter__(self) -> Iterator[str]:
        return iter(self.definitions)

    def __len__(self) -> int:
        return len(self.definitions)


def not_modelled(kernel: Kernel, body: Body) -> list[Obligation]:
    """The unknown of a question about a body with unmodelled parts; none where all is modelled.

    Of several refusals at one line the first is named: the others mostly follow from it.
    """
    first: dict[str, str] = {}
    for what, at in body.unmodelled:
        first.setdefault(at, what)
    if not first:
        return []
    parts = [problems.SAID_AT(what, short_place(at)) if at else what for at, what in first.items()]
    said = parts[0] if len(parts) == 1 else " and ".join(parts)
    return [Obligation(kernel.name, undecided(core_problems.NOT_MODELLED(said)), source=next(iter(first)))]


class TablePoint:
    """Entries read from tables, and unknowns, as one point of a claim."""

    def __init__(self, kernel: Kernel, body: Body, reads: Sequence[Term], unknowns: Sequence[Unknown]) -> None:
        self.reads, self.unknowns = tuple(reads), tuple(unknowns)
        made: dict[str, Table] = {}
        self.tables = tuple(table_of(kernel, body, read, made) for read in reads)
        self.ranges = tuple(
            range_at(kernel.relations, table, read.args[1:]) for table, read in zip(self.tables, reads, strict=True)
        )
        extents = [high - low for low, high in self.ranges] + [u.high - u.low for u in unknowns]
        labels = [*(f"read{k}" for k in range(len(self.reads))), *(u.name for u in unknowns)]
        self.space = Space(tuple(labels), tuple(extents))
        self.body = body

    def put(self, named: dict[str, object], seen: dict[Term, object], place: Index, on: Numbers) -> None:
        """Adds the values at a place to those of names, and of reads."""
        for unknown, value in zip(self.unknowns, place[len(self.reads) :], strict=True):
            named[unknown.name] = value + unknown.low
        for read, (low, _), value in zip(self.reads, self.ranges, place, strict=False):
            seen[read] = value if type(low) is int and low == 0 else value + on.size(low)

    def shown(self, point: Counterexample, run: Evaluation) -> Counterexample:
        """A point with what it reads of tables by name, `{"reads": {"prefetch0[3]": 8}}`, in place of its values."""
        entries: dict[str, int] = {}
        single = {r.name for r in self.body.references if not r.dims}
        for table, read in zip(self.tables, self.reads, strict=True):
            loaded = _reference(self.body, table.name)
            name = table.name if loaded is None else loaded.name
            at = ", ".join(str(run(part)) for part in read.args[1:])
            entries[name if name in single else f"{name}[{at}]"] = int(run(read))
        kept = {label: place for label, place in point.items() if label != "values"}
        return {**kept, "reads": entries} if entries else kept

    def parts(self) -> int:
        """How large a term would be that says what `consistent` does."""
        tables = [id(table) for table in self.tables]
        return sum(tables[:k].count(table) for k, table in enumerate(tables)) * PARTS // 4

    def consistent(self, run: Evaluation, on: Numbers) -> object:
        """Whether some tables hold all these values."""
        rows = [
            (table, tuple(run(a) for a in read.args[1:]), run(read))
            for table, read in zip(self.tables, self.reads, strict=True)
        ]
        return consistent_reads(rows, on) if rows else True


def _key(
    spaces: Mapping[str, Space], terms: Sequence[Term], values: TablePoint, definitions: Mapping[str, Term]
) -> str:
    """A digest of all that decides whether there are places in some spaces where all of some terms hold.

    It is the same whatever the names are that interpreters and questions make for counters, unknowns and loads.
    """
    rows, names = written([*terms, *values.reads], definitions)
    places = [(label, [names.get(name, -1) for name in space.names], space.extents) for label, space in spaces.items()]
    inside = {name for space in spaces.values() for name in space.names}
    tables = {table.name for table in values.tables}
    # all others are sizes, whose names an answer has
    sizes = {name: k for name, k in names.items() if not (name in inside or name in definitions or name in tables)}
    lowest = [*(low for low, _ in values.ranges), *(unknown.low for unknown in values.unknowns)]
    kinds = [(names[table.name], replace(table, name="")) for table in values.tables]
    return hashlib.blake2b(repr((rows, places, sizes, lowest, kinds)).encode(), digest_size=16).hexdigest()


Environment = Callable[[Sequence[Index], Numbers], Evaluation]


def environment(body: Body, spaces: Mapping[str, Space], values: Mapping[str, TablePoint]) -> Environment:
    """The evaluator of terms at places of some spaces, in their order, with each name as a coordinate.

    values: of the spaces that hold values, by label.
    """

    def at(places: Sequence[Index], on: Numbers) -> Evaluation:
        named: dict[str, Any] = {}
        seen: dict[Term, Any] = {}
        for (label, space), place in zip(spaces.items(), places, strict=True):
            if label in values:
                values[label].put(named, seen, place, on)
            else:
                named |= dict(zip(space.names, place, strict=True))
        return Evaluation(named, on, body.definitions, seen)

    return at


def said(
    spaces: Mapping[str, Space], at: Environment, terms: Sequence[Term], consistent: TablePoint | None = None
) -> PlacePredicate:
    """The formula that all of some conditions hold. consistent: values that tables have to hold together."""

    parts = sum(len(parts_of(term)) for term in terms) + (0 if consistent is None else consistent.parts())
    weight = 1 + parts // PARTS

    def condition(places: tuple[Index, ...], on: Numbers) -> object:
        run = at(places, on)
        held = True if consistent is None else consistent.consistent(run, on)
        if type(on) is Numbers:
            # a search on ints comes here once per point
            spend(weight)
            with suppress(RecursionError):
                return held and all(map(run.on_ints, terms))
        for term in terms:
            held = on.logical_and(held, run(term))
        return held

    return PlacePredicate(tuple(At(_identity(space), label) for label, space in spaces.items()), condition, weight)


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """A second program beside the first, of the same body.

    body: of both, for `asked`.  programs: the names of the two, with the names of their ids.  other: a term of the
    first program -> the same of the second.  loops: likewise.
    """

    body: Body
    programs: Mapping[str, tuple[str, ...]]
    other: Callable[[Term], Term] = field(repr=False)
    loops: Callable[[Sequence[Loop]], tuple[Loop, ...]] = field(repr=False)


def beside(kernel: Kernel, body: Body) -> Beside:
    """Two programs of one body: `first`, in the body's own names, and `second`, whose names are others.

    Numbers of the call are the same for both: sizes, and entries of its tables.
    """
    shared = set(kernel.parameters())

    def changed(name: str) -> str:
        return name if name in shared else f"{name}_2"

    def change(part: Term) -> Term | None:
        if part.op == "name":
            return Term("name", changed(part.args[0]))
        if part.op == "read" and part.args[0].args[0] in body.loads:
            return Term("read", Term("name", changed(part.args[0].args[0])), *part.args[1:])
        return None

    known: dict[Term, Term] = {}

    def other(term: Term) -> Term:
        if term not in known:
            known[term] = replaced(term, change)
        return known[term]

    def loops(around: Sequence[Loop]) -> tuple[Loop, ...]:
        return tuple(Loop(changed(o.name), None if o.count is None else other(o.count), o.source) for o in around)

    both = replace(
        body,
        unknowns={
            **body.unknowns,
            **{
                changed(k): replace(u, name=changed(k), facts=tuple(map(other, u.facts)))
                for k, u in body.unknowns.items()
            },
        },
        definitions={**body.definitions, **{changed(k): other(term) for k, term in body.definitions.items()}},
        loads={**body.loads, **{changed(k): replace(t, name=changed(k)) for k, t in body.loads.items()}},
        witnesses={**body.witnesses, **{changed(k): extent for k, extent in body.witnesses.items()}},
        facts=(*body.facts, *map(other, body.facts)),
        kept={**body.kept, **{changed(k): kept for k, kept in body.kept.items()}},
    )
    ids = {"first": kernel.grid_names, "second": tuple(map(changed, kernel.grid_names))}
    return Beside(both, ids, other, loops)


def _loaded(body: Body, table: Table) -> str:
    found = _reference(body, table.name) or next((r for r in body.references if r.name == table.name), None)
    of = "memory" if found is None else found.name
    return f"what the body loads from {of}"


def _reference(body: Body, load: str) -> BodyReference | None:
    """The reference that a load reads."""
    found = loads_of(body).get(load)
    return None if found is None else found.view.reference


def _identity(space: Space) -> IndexMap:
    return IndexMap(space, Space(), lambda index, copy, on: index)


def _with_counts(
    body: Body, terms: Sequence[Term], loops: Sequence[Loop]
) -> tuple[list[Term], tuple[set[str], list[Term], list[Term]]]:
    """Terms, and those that say how often the loops run that they rest on, with the `closure` of all."""
    wanted, inside = [*terms], {loop.name for loop in loops}
    found = closure(body, wanted, inside)
    while more := [
        one.count for one in loops if one.name in found[0] and one.count and counted(one) and one.count not in wanted
    ]:
        wanted += more
        found = closure(body, wanted, inside)
    return wanted, found


def counted(loop: Loop) -> bool:
    """Whether a term says how often a loop runs, and no plain number."""
    return loop.count is not None and loop.count.op != "int"


def most(loop: Loop) -> int:
    """How often a loop runs at most."""
    return int(loop.count.args[0]) if loop.count is not None and loop.count.op == "int" else LONGEST_LOOP


def table_of(kernel: Kernel, body: Body, read: Term, made: dict[str, Table]) -> Table:
    """The table that a read reads, of the kernel or of what the body loads. made: those of one claim, by name."""
    name = read.args[0].args[0]
    if name not in made:
        known = {table.name: table for table in every_table(kernel)}
        if name in body.loads:
            made[name] = _bounded(kernel, body, name)
        else:
            made[name] = known.get(name) or _of_input(next(r for r in body.references if r.name == name))
    return made[name]


def _of_input(reference: BodyReference) -> Table:
    """A block of an input in scalar memory of which nothing can be said: it reaches past the end of the array."""
    dtype, bits = reference.dtype, ELEMENT_BITS[reference.dtype]
    low, high = (0, 2) if dtype == "pred" else (None, None)
    return Table(reference.name, reference.dims or (1,), bits, low, high, signed=dtype[0] == "s", dtype=dtype)


def _bounded(kernel: Kernel, body: Body, name: str) -> Table:
    """The table of a load, within the bounds of the caller's values that the body's stores preserve."""
    table, kept = body.loads[name], body.kept.get(name)
    filled = None if kept is None else next((t for t in every_table(kernel) if t.name == kept.reference), None)
    if kept is None or filled is None or table.low is not None or table.signed != filled.signed:
        return table
    low, high = range_of(filled)
    if type(low) is not int or low < 0:
        return table
    inside = [most for most in kept.highs if type(high) is int and high <= most]
    if kept.least is not None and type(high) is int and high >= kept.least:
        inside.append(high)
    if not inside and not kept.sign:
        return table
    return replace(table, low=0, high=min(inside, default=1 << (table.bits - 1)))


def _filled(body: Body, table: Table) -> str:
    """The table of the call that decides what a table of a claim holds."""
    return body.kept[table.name].reference if table.name in body.kept else table.name


def _reached(body: Body, term: Term) -> set[str]:
    """Names in a term, through definitions."""
    return {part.args[0] for part in parts_through(body.definitions, [term]) if part.op == "name"}


def closure(body: Body, terms: Sequence[Term], loops: Collection[str] = ()) -> tuple[set[str], list[Term], list[Term]]:
    """Names and reads that some terms rest on, through definitions, and the facts about the unknowns among them.

    Facts that speak of a loop which is not among `loops` are left out. Raises Unsupported for `maybe` and leaves.
    """
    names: set[str] = set()
    reads: dict[Term, None] = {}
    facts: list[Term] = []
    todo = list(terms)
    waiting = [(fact, {p.args[0] for p in parts_of(fact) if p.op == "name"}) for fact in body.facts]
    told_of: set[str] = set()
    loaded = dict(body.loaded) if isinstance(body, Body) else {}

    def speaks_of_here(fact: Term) -> bool:
        return all(not name.startswith("loop") or name in loops for name in _reached(body, fact))

    while todo:
        for part in parts_of(todo.pop()):
            if part.op == "maybe":
                raise Unsupported(str(part.args[0]))
            if part.op == "leaf":
                raise Unsupported(problems.WHETHER_DEFINED(part.args[0]))
            if part.op == "read":
                reads[part] = None
            if part.op == "name" and part.args[0] not in names:
                names.add(part.args[0])
                if part.args[0] in body.definitions:
                    todo.append(body.definitions[part.args[0]])
        if not todo:
            unknown = names & set(body.unknowns)
            told = [fact for fact, of in waiting if of & unknown]
            waiting = [(fact, of) for fact, of in waiting if not of & unknown]
            told += [fact for name in sorted(unknown - told_of) for fact in body.unknowns[name].facts]
            told_of |= unknown
            of_loads = [str(read.args[0].args[0]) for read in reads]
            told += [fact for name in of_loads if name in loaded for fact in loaded.pop(name)]
            told = [fact for fact in told if speaks_of_here(fact)]
            facts += told
            todo += told
    return names, list(reads), facts
