"""The inverse of a layout as a formula: each entry of the index as a sum of digits read from the coordinates.

Digits that outweigh all smaller ones together are read back by `//` and `%` (mixed radix). The formula is a claim like
any other: run on the place of each element, it gives that element. So is the condition under which a place holds one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypedDict

from layoutproof.core.claim import And, At, Claim, Differ, Formula, PlacePredicate
from layoutproof.core.document import Doc, Document
from layoutproof.core.errors import InternalError, Undecided, Unsupported
from layoutproof.core.folding import linear
from layoutproof.core.index_map import Index, IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import Extent, divide, surely_less
from layoutproof.core.space import Space, distinct
from layoutproof.core.term import Term, arithmetic, size_term
from layoutproof.questions import problems
from layoutproof.solvers.decide import decide
from layoutproof.solvers.digits import DIGITS, placed
from layoutproof.solvers.digits.number import Digit, DigitSum, ascending, decodes, leaves_of, magnitude


class FormulaEntry(TypedDict):
    """The element at a place as a formula."""

    subject: str
    coordinates: list[str]
    element: Annotated[dict[str, str], Doc("each entry of the index as text, by the dimension's name")]
    replica: dict[str, str]
    condition: Annotated[str, Doc("when a place of the range holds an element; empty where every one does")]
    decided_by: str


class FormulaDocument(Document, FormulaEntry):
    """The element at a place as a formula, with `--at` and names alone."""


@dataclass(frozen=True, slots=True)
class InverseFormula:
    """The element at a place, for all places and sizes at once.

    Attributes:
        subject: The layout.
        coordinates: Names of the place's coordinates, integers.
        element: Each entry of the index, by the dimension's name, as text with `+ - * // %`.
        replica: The same for the axes of replicas.
        condition: When a place of the range holds an element; "" where every place does.
        decided_by: The engines that proved that the formula gives each element back from its place.
    """

    subject: str
    coordinates: tuple[str, ...]
    element: dict[str, str]
    replica: dict[str, str]
    condition: str
    decided_by: str

    def as_dict(self) -> FormulaEntry:
        """The same as plain data.

        Returns:
            A dict of texts.
        """
        return {
            "subject": self.subject, "coordinates": list(self.coordinates), "element": self.element,
            "replica": self.replica, "condition": self.condition, "decided_by": self.decided_by,
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{self.subject}  at ({', '.join(self.coordinates)})"]
        lines += [f"  {name} = {text}" for name, text in (*self.element.items(), *self.replica.items())]
        lines.append(
            f"  an element is there where {self.condition}"
            if self.condition
            else "  an element is at every place of the range"
        )
        return "\n".join([*lines, f"  proved by {self.decided_by}"])


def formula_of(m: IndexMap, names: Sequence[str], subject: str) -> InverseFormula:
    """The inverse of a map over its coordinates, called `names`.

    Raises Undecided, with the reason, where there is no such formula and where it cannot be proved.

    >>> from layoutproof.registry.read import map_of, read_layout
    >>> found = formula_of(map_of(read_layout("f32[N,M]{1,0:T(8,128)}")), ("p", "q", "r", "s"), "")
    >>> found.element, found.condition
    ({'i': 'p * 8 + r', 'j': 'q * 128 + s'}, 'i < N and j < M')
    """
    if any(not surely_less(0, extent) for extent in (*m.domain.extents, *m.replicas.extents)):
        raise Unsupported(problems.FORMULA_OF_NO_ELEMENT())
    axes = distinct(names, taken=(*m.domain.names, *m.replicas.names, *m.sizes()))
    index, replica = inverse_terms(m, [Term("name", name) for name in axes])
    by = _given_back(m, index, replica, axes)
    condition = _condition(m, index, replica, axes)
    element = dict(zip(m.domain.names, map(str, index), strict=True))
    again = {} if replica is None else dict(zip(m.replicas.names, map(str, replica), strict=True))
    return InverseFormula(subject, axes, element, again, condition, by)


def inverse_terms(m: IndexMap, coordinates: Sequence[Term]) -> tuple[tuple[Term, ...], tuple[Term, ...] | None]:
    """The index and the replica from the coordinates; None for a replica that they do not tell. Raises Undecided."""
    try:
        roots, place = placed(m, DIGITS)
        known = _digits(place, coordinates)
    except Undecided as undecided:
        raise Unsupported(problems.FORMULA_UNDECIDED(undecided)) from None
    rank = len(m.domain.extents)
    hidden = [leaf for leaf in leaves_of(roots) if leaf not in known]
    if any(leaf.dimension < rank for leaf in hidden):
        name = next(m.domain.names[leaf.dimension] for leaf in hidden if leaf.dimension < rank)
        raise Unsupported(problems.FORMULA_DIGITS(name))
    entries = [Term("int", 0)] * (rank + len(m.replicas.extents))
    for root in roots:
        if all(leaf in known for leaf in root.leaves()):
            entries[root.dimension] = linear((leaf.weight, known[leaf]) for leaf in root.leaves())
    told = not any(leaf.dimension >= rank for leaf in hidden)
    return tuple(entries[:rank]), tuple(entries[rank:]) if told else None


def _digits(place: Sequence[object], coordinates: Sequence[Term]) -> dict[Digit, Term]:
    """Each digit that can be read back, as an expression over the coordinates."""
    known: dict[Digit, Term] = {}
    waiting = [
        (entry.over_leaves(), entry.constant, coordinate)
        for entry, coordinate in zip(place, coordinates, strict=True)
        if type(entry) is DigitSum
    ]
    progress = True
    while progress and waiting:
        progress, later = False, []
        for form, constant, coordinate in waiting:
            unknown = {d: c for d, c in form.items() if d not in known}
            if not decodes(unknown):
                later.append((form, constant, coordinate))
                continue
            progress = True
            told = [(c * -1, known[d]) for d, c in form.items() if d in known]
            known |= _read([(1, coordinate), *told], constant * -1, unknown)
        waiting = later
    return known


def _read(parts: Sequence[tuple[Any, Term]], constant: Any, form: dict[Digit, Any]) -> dict[Digit, Term]:
    """The digits of a sum in which each outweighs all lighter ones together."""
    steps = ascending(form)
    found: dict[Digit, Term] = {}
    for digit, step in steps:
        if not surely_less(0, step):
            # counted from its last value, it goes up
            constant = constant + step * (digit.extent - 1) * -1
    whole = rest = linear(parts, constant)
    above: Any = None
    for digit, step in reversed(steps):
        size = magnitude(step)
        if above is not None and divide(above, size)[1] != 0:
            # above is no multiple of this step, so what is left of it must be looked at first
            whole = rest
        value = rest if size == 1 else arithmetic("//", rest, size_term(size))
        found[digit] = value if surely_less(0, step) else arithmetic("-", size_term(digit.extent - 1), value)
        rest, above = arithmetic("%", whole, size_term(size)), size
    return found


def _map(
    domain: Space, range_: Space, terms: Sequence[Term], names: Sequence[str], symbols: tuple[str, ...]
) -> IndexMap:
    def place(index: Index, replica: Index, on: Numbers) -> Index:
        values = dict(zip(names, index, strict=True))
        return tuple([term.evaluate(values, on) for term in terms])

    return IndexMap(domain, range_, place, symbols=symbols)


def _given_back(m: IndexMap, index: Sequence[Term], replica: Sequence[Term] | None, names: Sequence[str]) -> str:
    """The engines that prove that each element, and its replica, comes back from each of its places. Or Undecided."""
    terms = [*index, *(replica or ())]
    box = (
        m.domain if replica is None else Space(m.domain.names + m.replicas.names, m.domain.extents + m.replicas.extents)
    )
    back = _map(m.range, box, terms, names, m.sizes())
    made = IndexMap(
        m.domain, box, lambda x, c, on: back.place(m.place(x, c, on), (), on), m.replicas, symbols=m.sizes()
    )
    own = IndexMap(m.domain, box, lambda x, c, on: x if replica is None else x + c, m.replicas)
    name = "replica" if m.replicas.extents else ""
    points = {"element": m.domain} | ({name: m.replicas} if name else {})
    claim = Claim(points, Differ(At(made, "element", name), At(own, "element", name)), symbols=m.sizes())
    found = decide(claim)
    if found.reason:
        raise Unsupported(problems.FORMULA_UNPROVED(found.reason))
    if found.point is not None:
        raise InternalError(f"the inverse's formula is wrong at {found.point}: please report this")
    return found.by


def _condition(m: IndexMap, index: Sequence[Term], replica: Sequence[Term] | None, names: Sequence[str]) -> str:
    """When a place of the range holds an element.

    That is: its element exists, and is stored at this place. A condition that holds for every place of the range is
    left out.
    """
    kept: list[tuple[str, Term]] = []
    for name, term, extent in zip(m.domain.names, index, m.domain.extents, strict=True):
        if not _everywhere(m, names, [_within(term, extent)]):
            low = "" if _everywhere(m, names, [_not_below(term)]) else "0 <= "
            kept.append((f"{low}{name} < {extent}", _within(term, extent)))
    if replica is None:
        return " and ".join([*(text for text, _ in kept), "one of its places is this one"])
    for name, term, extent in zip(m.replicas.names, replica, m.replicas.extents, strict=True):
        if not _everywhere(m, names, [_within(term, extent)]):
            kept.append((f"0 <= {name} < {extent}", _within(term, extent)))
    returns = _returns(m, index, replica, names, [holds for _, holds in kept])
    return " and ".join([*(text for text, _ in kept), *(() if returns else ("its place is this one",))])


def _within(term: Term, extent: Extent) -> Term:
    return Term("and", _not_below(term), Term("<", term, size_term(extent)))


def _not_below(term: Term) -> Term:
    return Term("<", Term("int", -1), term)


def _everywhere(m: IndexMap, names: Sequence[str], conditions: Sequence[Term]) -> bool:
    """Whether conditions on the coordinates hold of every place of the range, for all sizes."""
    itself = IndexMap(m.range, m.range, lambda x, c, on: x, symbols=m.sizes())

    def broken(places: tuple[Index, ...], on: Numbers) -> object:
        values = dict(zip(names, places[0], strict=True))
        held = [condition.evaluate(values, on) for condition in conditions]
        return on.logical_not(held[0] if len(held) == 1 else on.logical_and(held[0], held[1]))

    return _proved(m, PlacePredicate((At(itself, "place"),), broken))


def _returns(
    m: IndexMap, index: Sequence[Term], replica: Sequence[Term], names: Sequence[str], conditions: Sequence[Term]
) -> bool:
    """Whether each place of the range with the conditions is the place of its element."""
    back = _map(m.range, m.range, [*index, *replica], names, m.symbols)
    rank = len(index)

    def place(at: Index, replica: Index, on: Numbers) -> Index:
        entries = back.place(at, replica, on)
        return m.place(entries[:rank], entries[rank:], on)

    there = IndexMap(m.range, m.range, place, symbols=m.sizes())
    itself = IndexMap(m.range, m.range, lambda x, c, on: x, symbols=m.sizes())
    differ = Differ(At(there, "place"), At(itself, "place"))
    if _proved(m, differ):
        return True

    def held(places: tuple[Index, ...], on: Numbers) -> object:
        values = dict(zip(names, places[0], strict=True))
        found: Any = None
        for condition in conditions:
            value = condition.evaluate(values, on)
            found = value if found is None else on.logical_and(found, value)
        return found

    if not conditions:
        return False
    return _proved(m, And((PlacePredicate((At(itself, "place"),), held), differ)))


def _proved(m: IndexMap, violation: Formula) -> bool:
    if not m.range.extents:
        return False
    found = decide(Claim({"place": m.range}, violation, symbols=m.sizes()))
    return not found.reason and found.point is None


def flattened(m: IndexMap) -> IndexMap:
    """A memory's map to its offset; its digits are those of the coordinates, by row-major order."""
    flat = m.flat()
    return replace(flat, range=Space(("offset",), flat.range.extents))
