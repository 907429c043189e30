"""What is assumed of entries of tables together: `t[i] <= u[i + 1] if i + 1 < grid1`, for every i.

A name that is no size of the call stands for every index. Nothing is said where an index is outside of its table. The
engines have no "for every": a claim gets the cases that speak of what it reads, one for each way in which a read of the
claim is one of the relation, `t[k]` as `t[i]` with i = k and as `t[i + 1]` with i = k - 1. That is less than is
assumed, so what is proved with them is proved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from itertools import islice, product

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_condition
from layoutproof.core.term import Term, fixed, reads
from layoutproof.kernel.kernel import Kernel, Relation, Table
from layoutproof.kernel.scalar_memory import every_table

MOST_CASES = 64
"""Cases of one relation that a claim gets."""
_OF_ARGUMENT = re.compile(r"\b([^\W\d]\w*(?:\[\d+\]|\.\w+)+)(?=\s*\[)")
"""The name of an input in scalar memory, `args[1]` or `args[0].starts`, of which entries are read: `args[1][i]`."""


def parse_relation(text: str) -> Term:
    """The condition of a relation, `if` read as "or not". LayoutError for what is none.

    >>> str(parse_relation("t[i] <= t[i + 1] if i < 3"))
    'not i < 3 or t[i] <= t[i + 1]'
    >>> str(parse_relation("args[1][i] <= args[0].ends[i]"))
    'args[1][i] <= args[0].ends[i]'
    """
    written = {match[1]: "" for match in _OF_ARGUMENT.finditer(text)}
    for name in written:
        # as long as what it stands for, so that columns stay right
        plain = re.sub(r"\W", "_", name)
        while plain in text or plain in written.values():
            plain += "_"
        written[name] = plain
    plainly = _OF_ARGUMENT.sub(lambda match: written[match[1]], text)
    said, *guards = plainly.split(" if ")
    if len(guards) > 1:
        raise LayoutError(f"an assumption has one 'if', not {len(guards)}", text=text)
    condition = parse_condition(said.strip(), tables=True)
    if not reads((condition,)):
        raise LayoutError(f"{shorten(text, 60)!r} reads no table; a condition on sizes is said with where", text=text)
    if guards:
        condition = _or(Term("not", parse_condition(guards[0].strip(), tables=True)), condition)
    return _renamed(condition, {plain: name for name, plain in written.items()}) if written else condition


def _renamed(term: Term, names: Mapping[str, str]) -> Term:
    """The term with other names of the tables that it reads."""
    if term.op in ("int", "name"):
        return term
    if term.op != "read":
        return Term(term.op, *(_renamed(part, names) for part in term.args))
    table, *at = term.args
    return Term("read", Term("name", names.get(table.args[0], table.args[0])), *(_renamed(part, names) for part in at))


def relation_of(kernel: Kernel, text: str) -> Relation | None:
    """What a text says of this kernel's tables; None where it reads one that the kernel does not have.

    Raises LayoutError for a read with another number of indices than its table has dimensions, and for a name that is
    no index of a table and no size.
    """
    condition = parse_relation(text)
    tables = {table.name: table for table in every_table(kernel)}
    found = reads((condition,))
    if not all(read.args[0].args[0] in tables for read in found):
        return None
    outside: list[Term] = []
    for read in found:
        dims = fixed(tables[read.args[0].args[0]].dims)
        if len(dims) != len(read.args) - 1:
            raise LayoutError(f"{read} has {len(read.args) - 1} indices; its table has {len(dims)}", text=text)
        for at, extent in zip(read.args[1:], dims, strict=True):
            size = Term("int", extent) if type(extent) is int else extent.evaluate(lambda n: Term("name", n))  # type: ignore[union-attr]
            outside += [Term("<", at, Term("int", 0)), Term("<=", size, at)]
    sizes = set(kernel.parameters())
    names = tuple(name for name in condition.names() if name not in sizes)
    indices = {name for read in found for part in read.args[1:] for name in part.names()}
    for name in names:
        if name not in indices:
            have = f"its sizes are {', '.join(sorted(sizes))}" if sizes else "it has no sizes"
            raise LayoutError(f"{name} is neither an index of a table nor a size of the call; {have}", text=text)
    return Relation(text.strip(), reduce(_or, [*outside, condition]), names)


def tables_of(relation: Relation) -> tuple[str, ...]:
    """The names of the tables that a relation reads, each once."""
    return tuple(dict.fromkeys(str(read.args[0].args[0]) for read in reads((relation.condition,))))


def normal(relation: Relation) -> str:
    """What a relation says, whatever its indices are called.

    >>> from layoutproof.kernel.kernel import Relation
    >>> i, j = (Relation(text, parse_relation(text), (text[2],)) for text in ("t[i] < 3", "t[j] < 3"))
    >>> normal(i) == normal(j)
    True
    """
    # no index that a user writes has such a name
    indices = {name: Term("name", f"index {k}") for k, name in enumerate(relation.names)}
    return str(with_values(relation.condition, indices))


def cases(relations: Sequence[Relation], read: Sequence[Term]) -> list[Term]:
    """What relations say of what a claim reads, and of the call's sizes."""
    tables = {str(one.args[0].args[0]) for one in read}
    found: dict[str, Term] = {}
    for relation in relations:
        if not relation.names:
            of = tables_of(relation)
            if not of or tables.intersection(of):
                found[str(relation.condition)] = relation.condition
            continue
        choices: dict[str, dict[str, Term]] = {name: {} for name in relation.names}
        for pattern in reads((relation.condition,)):
            for one in read:
                if one.args[0].args[0] == pattern.args[0].args[0]:
                    for part, at in zip(pattern.args[1:], one.args[1:], strict=True):
                        matched = _matched(part, at)
                        if matched is not None and matched[0] in choices:
                            choices[matched[0]].setdefault(str(matched[1]), matched[1])
        for values in islice(product(*(by_text.values() for by_text in choices.values())), MOST_CASES):
            case = with_values(relation.condition, dict(zip(choices, values, strict=True)))
            found.setdefault(str(case), case)
    return list(found.values())


def with_values(term: Term, values: Mapping[str, Term]) -> Term:
    """A term with others in the place of names; tables keep theirs.

    >>> str(with_values(Term("read", Term("name", "t"), Term("name", "i")), {"i": Term("int", 3)}))
    't[3]'
    """
    if term.op == "name":
        return values.get(term.args[0], term)
    if term.op == "int":
        return term
    keep = term.args[: term.op == "read"]
    return Term(term.op, *keep, *(with_values(part, values) for part in term.args[len(keep) :]))


def every_case(relation: Relation, tables: Collection[Table]) -> list[Term] | None:
    """What a relation says of whole tables: one case per place of every index; None where that is too much.

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
        with_values(relation.condition, {n: Term("int", v) for n, v in zip(relation.names, at, strict=True)})
        for at in places
    ]


def _matched(part: Term, at: Term) -> tuple[str, Term] | None:
    """The name in an index of a relation, and what it is where the index is `at`: of `i`, `i + 1` and `i - 1`."""
    if part.op == "name":
        return part.args[0], at
    if part.op in ("+", "-") and part.args[0].op == "name" and part.args[1].op == "int":
        by = part.args[1].args[0] if part.op == "+" else -part.args[1].args[0]
        return part.args[0].args[0], _less(at, by)
    return None


def _less(term: Term, by: int) -> Term:
    if term.op == "int":
        return Term("int", term.args[0] - by)
    if term.op in ("+", "-") and term.args[1].op == "int":
        return _less(term.args[0], by - term.args[1].args[0] * (1 if term.op == "+" else -1))
    if not by:
        return term
    return Term("-", term, Term("int", by)) if by > 0 else Term("+", term, Term("int", -by))


def _or(left: Term, right: Term) -> Term:
    return Term("or", left, right)
