"""Terms that share parts: looked at, rewritten and evaluated once per part, however often it stands in the whole.

Terms of a body are graphs: a mask that is used twice doubles with every use when it is walked as a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

from layoutproof.bodies import problems
from layoutproof.core.budget import spend
from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.folding import all_of, fold
from layoutproof.core.numbers import INTS, Numbers, Numeral
from layoutproof.core.operations import CONDITIONS, LEAVES, NAMED, apply
from layoutproof.core.term import Term, every, rebuilt

PARTS = 32
"""Parts of a term that one step of a budget looks at."""
REWRITTEN = 8
"""Parts of a term that one step of a budget rewrites."""
HEAVY = 1_000
"""A term of more weight is worth saying by its values, where it has no more than FEW places."""
FEW = 64


@lru_cache(maxsize=256)
def parts_of(term: Term) -> tuple[Term, ...]:
    """`every`, cached: terms of memory are looked at before and after they are rewritten, and again later."""
    return tuple(every(term))


def names_in(term: Term) -> tuple[str, ...]:
    """Every name in a term, each once."""
    return tuple(dict.fromkeys(part.args[0] for part in parts_of(term) if part.op == "name"))


def parts_through(definitions: Mapping[str, Term], terms: Iterable[Term]) -> Iterator[Term]:
    """Every part of some terms, and of the terms that names in them stand for; a definition is gone through once."""
    followed: set[str] = set()
    todo = list(terms)
    while todo:
        for part in parts_of(todo.pop()):
            yield part
            if part.op == "name" and part.args[0] in definitions and part.args[0] not in followed:
                followed.add(part.args[0])
                todo.append(definitions[part.args[0]])


def replaced(term: Term, change: Callable[[Term], Term | None]) -> Term:
    """The term with each part for which `change` gives another one replaced, inner ones first.

    >>> str(replaced(Term("+", Term("name", "i"), Term("int", 1)), renaming({"i": Term("name", "j")})))
    'j + 1'
    """
    parts = parts_of(term)
    spend(1 + len(parts) // REWRITTEN)

    def changed(part: Term, made: Term) -> Term:
        other = change(made)
        return made if other is None else other

    return rebuilt(term, changed, parts)


def written(terms: Sequence[Term], definitions: Mapping[str, Term]) -> tuple[list[tuple[object, ...]], dict[str, int]]:
    """Terms and the definitions of their names as rows, and the number by which a row has each name.

    Equal for terms that differ in names only. A row is a part: its operation, and the numbers of earlier rows.

    >>> def doubled(name):
    ...     return Term("+", Term("name", name), Term("name", name))
    >>> written([doubled("i")], {})
    ([('name', 0), ('+', 0, 0), ('whole', 1)], {'i': 0})
    >>> written([doubled("j")], {})[0] == written([doubled("i")], {})[0]
    True
    """
    names: dict[str, int] = {}
    number: dict[int, int] = {}
    rows: list[tuple[object, ...]] = []

    def called(name: Term) -> int:
        return names.setdefault(name.args[0], len(names))

    def add(term: Term) -> int:
        for part in every(term):
            if id(part) in number:
                continue
            if part.op in LEAVES:
                own: tuple[object, ...] = (called(part) if part.op == "name" else part.args[0],)
            elif part.op in NAMED:
                own = (called(part.args[0]), *(number[id(a)] for a in part.args[1:]))
            else:
                own = tuple(number[id(a)] for a in part.args)
            number[id(part)] = len(number)
            rows.append((part.op, *own))
        return number[id(term)]

    wholes: list[tuple[object, ...]] = [("whole", add(term)) for term in terms]
    told = 0
    while told < len(names):
        # names grow while definitions are written
        for name in [*names][told:]:
            if name in definitions:
                wholes.append(("is", names[name], add(definitions[name])))
            told += 1
    return [*rows, *wholes], names


def tabulated(term: Term, extents: Mapping[str, object]) -> Term:
    """A heavy term over few places as a choice among its values; every other term as it is.

    extents: of names, each from 0 on: a body computes a term anew in a thousand steps for a grid of four.

    >>> i = Term("name", "i")
    >>> heavy = i
    >>> for _ in range(20):
    ...     heavy = (heavy * heavy + 1) % 5
    >>> str(tabulated(heavy, {"i": 3})), str(tabulated(heavy // 9, {"i": 3}))
    ('select(i == 0, 2, select(i == 1, 0, 1))', '0')
    """
    if term.weight <= HEAVY or term.op in CONDITIONS:
        return term
    names = names_in(term)
    sizes = [n for name in names if type(n := extents.get(name)) is int and n > 0]
    if (
        len(sizes) < len(names)
        or prod(sizes) > FEW
        or any(part.op in ("read", "leaf", "maybe") for part in every(term))
    ):
        return term
    whole: Term | None = None
    for place in reversed([*product(*map(range, sizes))]):
        try:
            value = Term("int", int(term.evaluate(dict(zip(names, place, strict=True)), INTS)))
        except (Undecided, ArithmeticError):
            return term
        here = all_of(fold("==", Term("name", name), Term("int", at)) for name, at in zip(names, place, strict=True))
        whole = value if whole is None else fold("select", here, value, whole)
    return term if whole is None else whole


def renaming(values: Mapping[str, Term]) -> Callable[[Term], Term | None]:
    """Names by other terms."""
    return lambda part: values.get(part.args[0]) if part.op == "name" else None


def inlined(definitions: Mapping[str, Term], term: Term) -> Term:
    """A term without names that are other terms."""
    while definitions.keys() & set(names_in(term)):
        term = replaced(term, renaming(definitions))
    return term


class Evaluation:
    """Terms on one kind of number, each part computed once.

    names: with values from the points.  definitions: names that are terms.  reads: the values of reads.
    """

    def __init__(
        self,
        names: Mapping[str, Numeral],
        on: Numbers,
        definitions: Mapping[str, Term] | None = None,
        reads: Mapping[Term, object] | None = None,
    ) -> None:
        self.names = names
        self.on = on
        self.definitions = definitions or {}
        self.reads = reads or {}
        self._known: dict[Term, Any] = {}
        self._defined: dict[str, Any] = {}

    def __call__(self, term: Term) -> Any:
        """The value of a term."""
        parts = parts_of(term)
        spend(1 + len(parts) // PARTS)
        for part in parts:
            if part not in self._known:
                self._known[part] = self._value(part)
        return self._known[term]

    def on_ints(self, term: Term) -> Any:
        """The value of a term on plain ints; what "and", "or" and "select" do not need is not computed."""
        if term in self._known:
            return self._known[term]
        op = term.op
        if op in ("and", "or"):
            value: Any = op == "and"
            for part in term.args:
                if bool(self.on_ints(part)) is not value:
                    value = not value
                    break
        elif op == "select":
            value = self.on_ints(term.args[1 if self.on_ints(term.args[0]) else 2])
        elif op in ("int", "name", "leaf", "maybe"):
            value = self._value(term)
        elif op == "read":
            value = self(term)
        else:
            value = apply(op, self.on, [self.on_ints(part) for part in term.args])
        self._known[term] = value
        return value

    def _value(self, part: Term) -> Any:
        if part.op == "int":
            return part.args[0]
        if part.op == "name":
            return self._named(part.args[0])
        if part.op == "read":
            return self.reads[part] if part in self.reads else self._read(part)
        if part.op in ("leaf", "maybe"):
            raise Unsupported(problems.NO_VALUE(part.op, part.args[0]))
        return apply(part.op, self.on, [self._known[a] for a in part.args])

    def _read(self, read: Term) -> Any:
        """A read whose place is written otherwise than in the claim: on ints, the known read of the same element."""
        if type(self.on) is Numbers:
            at = [self(entry) for entry in read.args[1:]]
            for other, value in self.reads.items():
                if other.args[0] == read.args[0] and [self(entry) for entry in other.args[1:]] == at:
                    return value
        raise Unsupported(problems.TABLE_CONTENTS(read, read.args[0]))

    def _named(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        if name in self.definitions:
            if name not in self._defined:
                self._defined[name] = self(self.definitions[name])
            return self._defined[name]
        return self.on.symbol(name)
