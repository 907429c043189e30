"""Assumptions on entries of tables together: `t[i] <= u[i + 1] if i + 1 < grid1`, for every i.

A name that is no size of the call stands for every index, and so does `:`, of some of them `2:8`; `t[-1]` is the last
entry. Nothing is said where an index is outside of its table. The engines have no "for every": a claim gets the cases
that speak of what it reads, one for each way in which a read of the claim is one of the relation, `t[k]` as `t[i]` with
i = k and as `t[i + 1]` with i = k - 1. That is less than is assumed, so what is proved with them is proved.

Numbers between which a part of a table lies, `0 <= t[:, 2] < 8`, are a range of what is read there (`range_at`), and no
case.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, product

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_condition
from layoutproof.core.folding import any_of, conjuncts, linear, negation, shifted
from layoutproof.core.size import Extent
from layoutproof.core.term import Term, fixed, reads, rebuilt, size_term, substitute
from layoutproof.kernel import problems
from layoutproof.kernel.kernel import Bound, Kernel, Relation, Table
from layoutproof.kernel.read_consistency import range_of
from layoutproof.kernel.scalar_memory import every_table

MOST_CASES = 64
"""Cases of one relation that a claim gets."""
_OF_ARGUMENT = re.compile(r"(?<![\w.])([^\W\d]\w*+(?:\[\d+\]|\.\w+)+)(?=\s*\[)")
"""The name of an input in scalar memory, `args[1]` or `args[0].starts`, of which entries are read: `args[1][i]`."""
_SLICED = re.compile(r"\[([^\[\]:]*:[^\[\]]*)\]")
_SLICE = re.compile(r"\s*(?:(\d+)\s*)?:\s*(?:(\d+)\s*)?")


def parse_relation(text: str) -> Term:
    """The condition of a relation, `if` read as "or not". LayoutError for what is none.

    >>> str(parse_relation("t[i] <= t[i + 1] if i < 3"))
    'not i < 3 or t[i] <= t[i + 1]'
    >>> str(parse_relation("args[1][i] <= args[0].ends[i]"))
    'args[1][i] <= args[0].ends[i]'
    >>> str(parse_relation("t[:, 2:4] < 8"))
    'not (2 <= any1 and any1 < 4) or t[any0, any1] < 8'
    """
    written = {match[1]: "" for match in _OF_ARGUMENT.finditer(text)}
    for name in written:
        # as long as what it stands for, so that columns stay right
        plain = re.sub(r"\W", "_", name)
        while plain in text or plain in written.values():
            plain += "_"
        written[name] = plain
    plainly = _OF_ARGUMENT.sub(lambda match: written[match[1]], text)
    plainly, within = _unsliced(plainly, text)
    said, *guards = plainly.split(" if ")
    if len(guards) > 1:
        raise LayoutError(problems.ASSUMPTION_GUARDS(len(guards)), text=text)
    condition = parse_condition(said.strip(), tables=True)
    if not reads((condition,)):
        raise LayoutError(problems.ASSUMPTION_READS_NOTHING(shorten(text, 60)), text=text)
    guards = [" and ".join(within)] * bool(within) + guards
    for guard in guards:
        condition = any_of([negation(parse_condition(guard.strip(), tables=True)), condition])
    return substitute(condition, {}, {plain: name for name, plain in written.items()})


def _unsliced(plainly: str, text: str) -> tuple[str, list[str]]:
    """A text with a name in the place of each slice of indices, and conditions that say which indices those are."""
    fresh = (name for k in itertools.count() if (name := f"any{k}") not in plainly)
    within: list[str] = []

    def index(part: str) -> str:
        if ":" not in part:
            return part
        ends = _SLICE.fullmatch(part)
        if ends is None:
            raise LayoutError(problems.PART_RANGE(part.strip()), text=text)
        name = next(fresh)
        within.extend([f"{ends[1]} <= {name}"] * bool(ends[1]) + [f"{name} < {ends[2]}"] * bool(ends[2]))
        return name

    return _SLICED.sub(lambda found: f"[{', '.join(map(index, found[1].split(',')))}]", plainly), within


def relation_of(kernel: Kernel, text: str) -> Relation | None:
    """The relation of a text on this kernel's tables; None where it reads one that the kernel does not have.

    Raises LayoutError for a read with another number of indices than its table has dimensions, for a number that is
    outside of its dimension, and for a name that is no index of a table and no size.
    """
    condition = parse_relation(text)
    tables = {table.name: table for table in every_table(kernel)}
    found = reads((condition,))
    if not all(read.args[0].args[0] in tables for read in found):
        return None
    for read in found:
        dims = fixed(tables[read.args[0].args[0]].dims)
        if len(dims) != len(read.args) - 1:
            raise LayoutError(problems.ASSUMPTION_RANK(read, len(read.args) - 1, len(dims)), text=text)
    condition = rebuilt(condition, lambda part, made: _from_the_end(made, tables))
    found = reads((condition,))
    outside: list[Term] = []
    for read in found:
        dims = fixed(tables[read.args[0].args[0]].dims)
        for k, (at, extent) in enumerate(zip(read.args[1:], dims, strict=True)):
            if at.op == "int" and type(extent) is int and not 0 <= at.args[0] < extent:
                raise LayoutError(problems.ASSUMPTION_PLACE(read, k, extent), text=text)
            size = Term("int", extent) if type(extent) is int else extent.evaluate(lambda n: Term("name", n))  # type: ignore[union-attr]
            outside += [Term("<", at, Term("int", 0)), Term("<=", size, at)]
    sizes = set(kernel.parameters())
    names = tuple(name for name in condition.names() if name not in sizes)
    indices = {name for read in found for part in read.args[1:] for name in part.names()}
    for name in names:
        if name not in indices:
            have = f"its sizes are {', '.join(sorted(sizes))}" if sizes else "it has no sizes"
            raise LayoutError(problems.ASSUMPTION_NAME(name, have), text=text)
    return Relation(text.strip(), any_of([*outside, condition]), names, _bound(condition, tables, names))


def _from_the_end(part: Term, tables: Mapping[str, Table]) -> Term:
    """A read with indices below 0 counted from the end, as Python does: `t[-1]` is the last entry."""
    if part.op != "read" or not any(at.op == "int" and at.args[0] < 0 for at in part.args[1:]):
        return part
    pairs = zip(part.args[1:], fixed(tables[part.args[0].args[0]].dims), strict=True)
    at = [linear([(1, size_term(n))], k.args[0]) if k.op == "int" and k.args[0] < 0 else k for k, n in pairs]
    return Term("read", part.args[0], *at)


def _bound(condition: Term, tables: Mapping[str, Table], names: Collection[str]) -> Bound | None:
    """The numbers between which a condition puts a part of one table; None where it says something else."""
    guarded = _guarded(condition, names)
    if guarded is None:
        return None
    ends, said = guarded
    found = [between for part in conjuncts(said) if (between := _between(part)) is not None]
    if len(found) < len(conjuncts(said)) or len({of for of, _, _ in found}) != 1 or found[0][0].op != "read":
        return None
    name, *at = found[0][0].args
    table = tables[name.args[0]]
    places = _places(at, fixed(table.dims), ends)
    if places is None or any(type(end) is not int for end in range_of(table)):
        return None
    lows = [low for _, low, _ in found if low is not None]
    highs = [high for _, _, high in found if high is not None]
    return Bound(table.name, places, max(lows, default=None), min(highs, default=None))


_Ends = dict[str, tuple[int, int | None]]
"""Name of an index -> its first value and the end, None for that of its dimension."""


def _guarded(condition: Term, names: Collection[str]) -> tuple[_Ends, Term] | None:
    """What `X if 0 <= i and i < 8` says of the indices, and X; None where it says something else of them."""
    ends: _Ends = dict.fromkeys(names, (0, None))
    while condition.op == "or" and condition.args[0].op == "not":
        for part in conjuncts(condition.args[0].args[0]):
            between = _between(part)
            if between is None or between[0].op != "name" or between[0].args[0] not in ends:
                return None
            term, low, high = between
            ends[term.args[0]] = _narrowed(ends[term.args[0]], low, high)
        condition = condition.args[1]
    return ends, condition


def _places(at: Sequence[Term], dims: Sequence[Extent], ends: _Ends) -> tuple[tuple[int, int] | None, ...] | None:
    """Of each dimension of a table the part that is read, None for all of it; None where the indices say no part.

    at: numbers, and each index that has `ends` once.
    """
    used = [part.args[0] for part in at if part.op == "name"]
    if any(part.op not in ("int", "name") for part in at) or sorted(used) != sorted(ends):
        return None
    places: list[tuple[int, int] | None] = []
    for part, extent in zip(at, dims, strict=True):
        if part.op == "int":
            places.append((int(part.args[0]), int(part.args[0]) + 1))
            continue
        low, high = ends[part.args[0]]
        if (low, high) == (0, None):
            places.append(None)
        elif high is None and type(extent) is not int:
            return None
        else:
            places.append((low, int(extent) if high is None else high))
    return tuple(places)


def _narrowed(ends: tuple[int, int | None], low: int | None, high: int | None) -> tuple[int, int | None]:
    highs = [end for end in (ends[1], high) if end is not None]
    return max(ends[0], 0 if low is None else low), min(highs, default=None)


def _between(condition: Term) -> tuple[Term, int | None, int | None] | None:
    """(The bounded term, the lower bound, the exclusive upper bound) of a comparison: `2 <= x` is (x, 2, None)."""
    if condition.op not in ("<", "<=", "=="):
        return None
    left, right = condition.args
    more = condition.op == "<"
    if left.op == "int" and right.op != "int":
        return right, int(left.args[0]) + more, int(left.args[0]) + 1 if condition.op == "==" else None
    if right.op == "int" and left.op != "int":
        number = int(right.args[0])
        return left, number if condition.op == "==" else None, number if more else number + 1
    return None


def range_at(relations: Sequence[Relation], table: Table, at: Sequence[object]) -> tuple[Extent, Extent]:
    """The values that a table may hold at some indices: low <= value < high. See `read_consistency.range_of`.

    at: of each dimension an int or a term; what is no constant counts as any index.
    """
    low, high = range_of(table)
    for relation in relations:
        bound = relation.bound
        if bound is None or bound.table != table.name or type(low) is not int or type(high) is not int:
            continue
        if _speaks_of(bound, at):
            low = low if bound.low is None else max(low, bound.low)
            high = high if bound.high is None else min(high, bound.high)
    return low, high


def _speaks_of(bound: Bound, at: Sequence[object]) -> bool | None:
    """Whether a bound is about what stands at some indices; None where that depends on where they are."""
    told: bool | None = True
    for span, part in zip(bound.at, at, strict=True):
        place = part.args[0] if isinstance(part, Term) and part.op == "int" else part
        if span is None:
            continue
        if not isinstance(place, int):
            told = None
        elif not span[0] <= place < span[1]:
            return False
    return told


def in_parts(kernel: Kernel, table: Table) -> bool:
    """Whether parts of a table are bounded by themselves: one bound of all of it would say something else."""
    return any(relation.bound is not None and relation.bound.table == table.name for relation in kernel.relations)


def ranged(relation: Relation, read: Sequence[Term]) -> bool:
    """Whether the ranges of some reads already have all that a relation says of them."""
    bound = relation.bound
    of = [one for one in read if bound is not None and one.args[0].args[0] == bound.table]
    return bound is not None and all(_speaks_of(bound, one.args[1:]) is not None for one in of)


def tables_of(relation: Relation) -> tuple[str, ...]:
    """The names of the tables that a relation reads, each once."""
    return tuple(dict.fromkeys(str(read.args[0].args[0]) for read in reads((relation.condition,))))


def normal(relation: Relation) -> str:
    """A relation up to the names of its indices.

    >>> from layoutproof.kernel.kernel import Relation
    >>> i, j = (Relation(text, parse_relation(text), (text[2],)) for text in ("t[i] < 3", "t[j] < 3"))
    >>> normal(i) == normal(j)
    True
    """
    # no index that a user writes has such a name
    indices = {Term("name", name): Term("name", f"index {k}") for k, name in enumerate(relation.names)}
    return str(substitute(relation.condition, indices))


def cases(relations: Sequence[Relation], read: Sequence[Term]) -> list[Term]:
    """The instances of relations for a claim's reads, and for the call's sizes."""
    tables = {str(one.args[0].args[0]) for one in read}
    found: dict[str, Term] = {}
    for relation in relations:
        if ranged(relation, read):
            continue
        if not relation.names:
            of = tables_of(relation)
            if not of or (tables.intersection(of) and all(_may_be_read(one, read) for one in _entries(relation))):
                found[str(relation.condition)] = relation.condition
            continue
        for values in islice(_ways(relation, read), None if relation.bound is not None else MOST_CASES):
            case = substitute(relation.condition, {Term("name", name): at for name, at in values.items()})
            found.setdefault(str(case), case)
    return list(found.values())


def _entries(relation: Relation) -> Iterator[Term]:
    """The reads of a relation that name a part of a table by a number beside other indices, `t[0, 2]`."""
    for one in reads((relation.condition,)):
        if len(one.args) > 2 and any(part.op == "int" for part in one.args[1:]):
            yield one


def _may_be_read(entry: Term, read: Sequence[Term]) -> bool:
    """Whether a claim may read an entry: instances for other entries do not help."""
    return any(one.args[0].args[0] == entry.args[0].args[0] and not _differs(entry, one) for one in read)


def _differs(entry: Term, read: Term) -> bool:
    """Whether numbers among the indices of two reads of one table say that they are of different entries."""
    pairs = zip(entry.args[1:], read.args[1:], strict=True)
    return any(part.op == at.op == "int" and part.args[0] != at.args[0] for part, at in pairs)


def _ways(relation: Relation, read: Sequence[Term]) -> Iterator[dict[str, Term]]:
    """The bindings of a relation's names under which it applies to some reads."""
    choices: dict[str, dict[Term, None]] = {name: {} for name in relation.names}
    whole: dict[tuple[tuple[str, Term], ...], None] = {}
    for pattern in reads((relation.condition,)):
        for one in read:
            if one.args[0].args[0] != pattern.args[0].args[0]:
                continue
            if _differs(pattern, one):
                continue
            parts = zip(pattern.args[1:], one.args[1:], strict=True)
            matched = [pair for part, at in parts if (pair := _matched(part, at)) is not None and pair[0] in choices]
            for name, value in matched:
                choices[name][value] = None
            if {name for name, _ in matched} == set(choices):
                whole[tuple(matched)] = None
    # where one read says what every name is, names need no other company
    if whole:
        yield from map(dict, whole)
    else:
        for values in product(*choices.values()):
            yield dict(zip(choices, values, strict=True))


def every_case(relation: Relation, tables: Collection[Table]) -> list[Term] | None:
    """The instances of a relation for whole tables, one per place of every index; None where these are too many.

    Raises Undecided for a table whose size is not known.
    """
    known = {table.name: fixed(table.dims) for table in tables}
    ends: dict[str, int] = {}
    for read in reads((relation.condition,)):
        for part, extent in zip(read.args[1:], known[str(read.args[0].args[0])], strict=True):
            for name in part.names():
                if type(extent) is not int:
                    return None
                ends[name] = max(ends.get(name, 0), extent)
    if set(relation.names) - set(ends):
        return None
    # an index beside a constant, `i - 1`, is inside of its table for as many places at most
    spans = [range(-ends[name], 2 * ends[name]) for name in relation.names]
    places = [*islice(product(*spans), MOST_CASES * MOST_CASES + 1)]
    if len(places) > MOST_CASES * MOST_CASES:
        return None
    return [
        substitute(
            relation.condition, {Term("name", n): Term("int", v) for n, v in zip(relation.names, at, strict=True)}
        )
        for at in places
    ]


def _matched(part: Term, at: Term) -> tuple[str, Term] | None:
    """The name in an index of a relation, and what it is where the index is `at`: of `i`, `i + 1` and `i - 1`."""
    if part.op == "name":
        return part.args[0], at
    if part.op in ("+", "-") and part.args[0].op == "name" and part.args[1].op == "int":
        by = part.args[1].args[0] if part.op == "+" else -part.args[1].args[0]
        return part.args[0].args[0], shifted(at, -by)
    return None
