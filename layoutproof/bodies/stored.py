"""Which elements of an output a body stores, and the claim that none is left out.

An element counts as stored where a store surely reaches it, whatever the numbers are that no term says. It counts as
missing where no store can reach it, whatever they are. Between the two the answer is unknown, so there are two claims.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.bodies import problems
from layoutproof.bodies.claims import (
    BodyClaim,
    Environment,
    TablePoint,
    closure,
    counted,
    environment,
    most,
    said,
    without_wraps,
)
from layoutproof.bodies.effects import (
    Body,
    BodyReference,
    Effect,
    Loop,
    Unknown,
    View,
    is_remote,
    loads_of,
    reads_from,
    writes_to,
)
from layoutproof.bodies.memory_state import inside
from layoutproof.bodies.order import valid
from layoutproof.bodies.terms import inlined, names_in, renaming, replaced
from layoutproof.bodies.values import Index, Lost, aligned
from layoutproof.core.claim import And, Claim, Formula, NotExists
from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.folding import TRUE, all_of, any_of, negation
from layoutproof.core.message import message_of
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample, Point
from layoutproof.core.space import Space
from layoutproof.core.term import ZERO, Term, fixed, reads
from layoutproof.kernel.kernel import Kernel, Operand, Table
from layoutproof.kernel.read_consistency import takes_every_value
from layoutproof.kernel.relations import cases
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.solvers.decide import proves


@dataclass(frozen=True, slots=True, eq=False)
class Visit:
    """The question about one output: its elements, and which programs write them together.

    element: names and extents of an element's coordinates.  programs: whether each program is asked; otherwise all of
    them write one array.  valid: the condition that the element exists, over the program and the element.
    alike: numbers that are equal in the programs of one visit.  agree: dimensions of the grid in which they are equal.
    exact: whether no other programs have the same block.
    """

    element: Space
    programs: bool = False
    valid: Term = TRUE
    alike: tuple[Term, ...] = ()
    agree: tuple[str, ...] = ()
    exact: bool = True

    @property
    def index(self) -> Index:
        """The element as terms."""
        return tuple(Term("name", name) for name in self.element.names)


def visit_of(kernel: Kernel, operand: Operand, reference: BodyReference) -> Visit:
    """The visits of an output: of one block, or of the whole array where the body moves it by manual DMA.

    Of an array that the body moves, a batch has a block for each index of the batch, whatever a target says of it.
    """
    element = Space(tuple(f"element{k}" for k in range(len(reference.dims))), reference.dims)
    if not operand.windowed and not any(term.names() for term in operand.terms()):
        return Visit(element)
    used = tuple(name for name in kernel.grid_names if any(name in term.names() for term in operand.terms()))
    by_tables = bool(reads(operand.terms()))
    bare = {term.args[0] for term in operand.index if term.op == "name"}
    told = by_tables or set(used) <= bare
    there = valid(kernel, operand, tuple(Term("name", name) for name in element.names))
    return Visit(element, True, there, () if told else operand.index, used if told else (), not by_tables)


@dataclass(frozen=True, slots=True, eq=False)
class StoredRegion:
    """The elements that one store or copy reaches.

    condition: that it reaches the element of a visit.  loops: around it.  source: file:line.
    lost: why it does not surely reach what the condition says, "" = it does.  path: the part of the condition that says
    whether it happens at all.
    """

    condition: Term
    loops: tuple[Loop, ...]
    source: str
    lost: str = ""
    path: tuple[Term, ...] = ()


def stores_into(body: Body, names: Iterable[str], element: Index) -> tuple[StoredRegion, ...]:
    """The stores and copies into the references with these names."""
    return _touching(body, names, element, writes_to)


def loads_from(body: Body, names: Iterable[str], element: Index) -> tuple[StoredRegion, ...]:
    """The loads and copies from the references with these names."""
    return _touching(body, names, element, reads_from)


def _touching(
    body: Body, names: Iterable[str], element: Index, view_of: Callable[[Effect], View | None]
) -> tuple[StoredRegion, ...]:
    wanted = frozenset(names)
    found = []
    for effect in body.effects:
        view = view_of(effect)
        if view is not None and view.reference.name in wanted:
            found.append(_store(effect, view, element))
    return tuple(found)


def _store(effect: Any, view: View, element: Index) -> StoredRegion:
    lost = problems.COPY_TO_DEVICE(effect.device) if is_remote(effect) else ""
    held = list(effect.spot.path)
    loops = list(effect.spot.loops)

    def some(count: int) -> Term:
        # of the parts that a list places each is stored by itself
        loops.append(Loop(f"part{effect.spot.number}", Term("int", count), effect.spot.source))
        return Term("name", loops[-1].name)

    found = inside(view, element, some)
    if found is None:
        lost = lost or problems.VIEW_WIDTH(view.reference.name)
    else:
        conditions, index = found
        held += conditions
        mask = getattr(effect, "mask", None)
        if mask is not None:
            try:
                held.append(mask.number(aligned(mask, view.dims or mask.dims, index)))
            except Lost as why:
                lost = lost or message_of(why)
    return StoredRegion(all_of(held), tuple(loops), effect.spot.source, lost, effect.spot.path)


def unstored(
    kernel: Kernel,
    body: Body,
    visit: Visit,
    stores: Sequence[StoredRegion],
    certain: bool,
    explain: Callable[[Point, Numbers], str],
    shown: Callable[[Point, Numbers], Counterexample] | None = None,
) -> BodyClaim:
    """The claim that every element is stored by some program of its visit.

    certain: counts what surely happens, so that a proof is one; else what can happen, so that a refutation is one.
    Raises Undecided where it cannot be said which elements there are.
    """
    stores, body = _without_wraps(kernel, body, stores, visit)
    # where tables choose the blocks, programs that do not agree may have the same one
    agree = set(visit.agree) if certain or visit.exact else set()
    other = {name: Term("name", f"other {name}") for name in kernel.grid_names if name not in agree}
    _, own, facts = closure(body, [visit.valid])
    lost: list[str] = []
    found: list[_Told] = []
    for store in stores:
        try:
            if certain and store.lost:
                raise Unsupported(store.lost)
            found.append(_told(kernel, body, store, other, set(visit.element.names)))
        except Undecided as why:
            if certain:
                lost.append(f"{why} ({store.source})")
            else:
                found.append(_Told(TRUE, (), (), (), (), ()))
    program = set(kernel.grid_names) if visit.programs else set()
    alone = not any(names_in(told.condition) and _other(told, other) for told in found) and not visit.alike
    common = list(own)
    unknowns: dict[str, Unknown] = {}
    for told in found:
        for read in told.reads:
            one = _is_table(body, read) or (certain and alone and not loads_of(body)[read.args[0].args[0]].spot.loops)
            if one and set(names_in(read)) <= program and read not in common:
                common.append(read)
        if certain and alone:
            # of the one program of a visit every number has one value, unless an iteration has its own
            unknowns |= {u.name: u for u in told.unknowns if u.fixed}
    related = _related(kernel, body, common, program)
    shared = TablePoint(kernel, body, common, list(unknowns.values()))
    found = _together(found, set(unknowns), common) if certain else found
    spaces: dict[str, Space] = {}
    if visit.programs:
        spaces["program"] = Space(kernel.grid_names, fixed(kernel.grid))
    spaces["element"] = visit.element
    if shared.space.extents:
        spaces["values"] = shared.space
    known = set(program) | set(unknowns)
    facts = [f for f in (*facts, *body.facts) if unknowns and set(names_in(f)) <= known and not reads((f,))]
    everywhere = [*related, *facts, visit.valid]
    parts: list[Formula] = [said(spaces, environment(body, spaces, {"values": shared}), everywhere, shared)]
    taken = set(common)
    lost += [_LOADED for read in common if not _is_table(body, read)]
    for told in found:
        mine = [read for read in told.reads if read not in taken]
        odd = [u for u in told.unknowns if u.name not in unknowns]
        single = TablePoint(kernel, body, mine, odd)
        lost += [_where(u.why, u.source) for u in odd]
        lost += [
            f"what {t.name} holds" if _is_table(body, r) else _LOADED for t, r in zip(single.tables, mine, strict=True)
        ]
        parts.append(_nowhere(kernel, body, visit, told, other, spaces, shared, single, certain))
    tables = {table.name for table in every_table(kernel)}
    at = environment(body, spaces, {"values": shared})

    def told_point(point: Point, on: Numbers) -> Counterexample:
        seen = point if shown is None else shown(point, on)
        return shared.shown(seen, at([point[label] for label in spaces], on))

    return BodyClaim(
        Claim(spaces, And(tuple(parts)), explain, shown=told_point),
        tuple(dict.fromkeys(t.name for t in shared.tables if t.name in tables)),
        tuple(dict.fromkeys([*lost, *(_where(u.why, u.source) for u in unknowns.values())])),
        lambda term, point, on: at([point[label] for label in spaces], on)(term),
    )


def _related(kernel: Kernel, body: Body, common: Sequence[Term], program: Collection[str]) -> list[Term]:
    """What is assumed of the entries that a visit reads, and of no others: each further entry is one more unknown.

    program: the names that such an entry may rest on; an assumption about others is left out.
    """
    told = []
    for case in cases(kernel.relations, [read for read in common if _is_table(body, read)]):
        names, found, _ = closure(body, [case])
        if names <= {*program, *kernel.parameters()} and set(found) <= set(common):
            told.append(case)
    return told


def _without_wraps(
    kernel: Kernel, body: Body, stores: Sequence[StoredRegion], visit: Visit
) -> tuple[list[StoredRegion], Body]:
    spans: dict[str, Any] = dict(zip(visit.element.names, visit.element.extents, strict=True))
    spans |= {loop.name: most(loop) for store in stores for loop in store.loops}
    ends = [*body.goes_on.values()]
    terms, body = without_wraps(kernel, body, [*ends, *(store.condition for store in stores)], spans)
    body = replace(body, goes_on=dict(zip(body.goes_on, terms, strict=False)))
    conditions = terms[len(ends) :]
    return [replace(s, condition=c) for s, c in zip(stores, conditions, strict=True)], body


_LOADED = problems.LOADED_VALUE()


def _where(why: str, source: str) -> str:
    return f"{why} ({source})" if source else why


def _is_table(body: Body, read: Term) -> bool:
    return read.args[0].args[0] not in body.loads


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """A store whose condition is one of terms over the program that stores.

    loops: which it depends on, of those around it.  ends: the conditions under which its loops go on.
    """

    condition: Term
    loops: tuple[Loop, ...]
    around: tuple[Loop, ...]
    reads: tuple[Term, ...]
    unknowns: tuple[Unknown, ...]
    ends: tuple[tuple[Loop, Term], ...]


def _told(kernel: Kernel, body: Body, store: StoredRegion, other: Mapping[str, Term], element: set[str]) -> _Told:
    """Raises Undecided where the condition speaks of more than numbers."""
    counts = [Term("<", Term("name", loop.name), loop.count) for loop in store.loops if counted(loop)]
    open_ = [loop for loop in store.loops if loop.count is None]
    if any(loop.name not in body.goes_on for loop in open_):
        raise Unsupported(problems.LOOP_END())
    terms = [all_of([store.condition, *counts]), *(body.goes_on[loop.name] for loop in open_)]
    terms = [replaced(inlined(body.definitions, term), renaming(other)) for term in terms]
    names, found, _ = closure(body, terms)
    stray = names - element - {loop.name for loop in store.loops} - set(body.unknowns) - set(kernel.grid_names)
    stray -= {term.args[0] for term in other.values()} | set(kernel.parameters())
    if stray:
        raise Unsupported(problems.COUNTER_OUTSIDE_LOOP(", ".join(sorted(stray))))
    unknowns = tuple(body.unknowns[name] for name in sorted(names) if name in body.unknowns)
    loops = tuple(loop for loop in store.loops if loop.name in names)
    return _Told(terms[0], loops, store.loops, tuple(found), unknowns, tuple(zip(open_, terms[1:], strict=True)))


def _together(found: Sequence[_Told], known: Collection[str], taken: Collection[Term]) -> list[_Told]:
    """Stores with those that one number decides in one iteration as one: where it is not said, some of them happen.

    known, taken: numbers, and reads, that have a value already.
    """
    groups: list[tuple[set[Any], list[_Told]]] = []
    for told in found:
        rests: set[Any] = {u.name for u in told.unknowns if u.name not in known}
        rests |= {read for read in told.reads if read not in taken}
        near = [g for g in groups if g[0] & rests and g[1][0].around == told.around]
        groups = [g for g in groups if g not in near]
        groups.append((rests.union(*(g[0] for g in near)), [t for g in near for t in g[1]] + [told]))
    return [_either(group) for _, group in groups]


def _either(group: Sequence[_Told]) -> _Told:
    """A store that happens where one of some does, all in the same loops."""
    if len(group) == 1:
        return group[0]
    loops = [loop for loop in group[0].around if any(loop in told.loops for told in group)]
    reads = dict.fromkeys(read for told in group for read in told.reads)
    unknowns = {u.name: u for told in group for u in told.unknowns}
    condition = any_of([told.condition for told in group])
    return _Told(condition, tuple(loops), group[0].around, tuple(reads), tuple(unknowns.values()), group[0].ends)


def _other(told: _Told, other: Mapping[str, Term]) -> list[str]:
    """The dimensions in which another program may store the element."""
    names = set(names_in(told.condition)).union(*(names_in(end) for _, end in told.ends), *map(names_in, told.reads))
    return [name for name, term in other.items() if term.args[0] in names]


def _nowhere(
    kernel: Kernel,
    body: Body,
    visit: Visit,
    told: _Told,
    other: Mapping[str, Term],
    spaces: Mapping[str, Space],
    shared: TablePoint,
    single: TablePoint,
    certain: bool,
) -> Formula:
    """No program of the visit, in no iteration, stores the element."""
    grid = dict(zip(kernel.grid_names, fixed(kernel.grid), strict=True))
    alike = [replaced(term, renaming(other)) for term in visit.alike]
    free = [n for n in other if n in _other(told, other) or any(n in names_in(term) for term in visit.alike)]
    more: dict[str, Space] = {}
    if free:
        more["other program"] = Space(tuple(str(other[n].args[0]) for n in free), tuple(grid[n] for n in free))
    if told.loops:
        more["iteration"] = Space(tuple(loop.name for loop in told.loops), tuple(map(most, told.loops)))
    values = {"other values": single.space} if single.space.extents else {}

    def formula(inner: Mapping[str, Space], terms: Sequence[Term]) -> Formula:
        everything = {**spaces, **inner}
        at: Environment = environment(body, everything, {"values": shared, "other values": single})
        return said(everything, at, terms)

    together = [Term("==", here, there) for here, there in zip(visit.alike, alike, strict=True)]
    if not certain:
        inner = {**more, **values}
        return NotExists(inner, formula(inner, [*together, told.condition]))
    if values and not single.unknowns and not told.ends and _every_value(body, told, single, more):
        # for each value there is an index at which a table that takes all of them holds it
        return NotExists({**more, **values}, formula({**more, **values}, [*together, told.condition]))
    if values:
        missed = NotExists(values, formula({**more, **values}, [negation(told.condition)]))
        return NotExists(more, And((formula(more, together), missed)))
    parts = [formula(more, [*together, told.condition])]
    for loop, goes_on in told.ends:
        # an iteration runs only where none before it has ended the loop
        earlier = {"earlier": Space(("earlier",), (most(loop),))}
        before = Term("name", "earlier")
        ended = negation(replaced(goes_on, renaming({loop.name: before})))
        if loop.name in names_in(goes_on):
            counter = Term("name", loop.name)
            inner = {**more, **earlier}
            parts.append(NotExists(earlier, formula(inner, [Term("<", before, counter), ended])))
    return NotExists(more, And(tuple(parts)))


def _every_value(body: Body, told: _Told, single: TablePoint, more: Mapping[str, Space]) -> bool:
    """Whether the table entries that the store reads are free: any value, at indices that no other read uses."""
    extents = {name: extent for space in more.values() for name, extent in zip(space.names, space.extents, strict=True)}
    whole: list[str] = []
    for table, read in zip(single.tables, single.reads, strict=True):
        bare_names = [a.args[0] for a in read.args[1:] if a.op == "name"]
        spans = tuple(extents.get(name) for name in bare_names)
        plain = spans == table.dims and len(set(bare_names)) == len(bare_names) == len(read.args) - 1
        names = bare_names if plain else sorted(set(names_in(read)) & set(extents))
        if (
            not takes_every_value(table)
            or set(names) & set(whole)
            or not (plain or _all_entries(body, read, table, more))
        ):
            return False
        whole += names
    if len({id(table) for table in single.tables}) < len(single.tables):
        return False
    bare = replaced(told.condition, lambda part: ZERO if part in single.reads else None)
    return not set(whole) & set(names_in(bare))


def _all_entries(body: Body, read: Term, table: Table, more: Mapping[str, Space]) -> bool:
    """Whether every entry of a table is read by some program in some iteration."""
    if any(reads((part,)) or set(names_in(part)) & set(body.unknowns) for part in read.args[1:]):
        return False
    entry = Space(tuple(f"entry{k}" for k in range(len(table.dims))), fixed(table.dims))
    spaces = {"entry": entry, **more}
    at = environment(body, spaces, {})
    alike = [Term("==", part, Term("name", name)) for part, name in zip(read.args[1:], entry.names, strict=True)]
    claim = Claim({"entry": entry}, NotExists(more, said(spaces, at, alike)), lambda point, on: "no program reads it")
    return proves(claim, ("isl", "brute"))
