"""The index map of an operand from text: `(i, j) -> (i, t[j])`, over the names of the kernel's grid.

The map takes one name per grid dimension, free to differ from the grid's own; after them it may name the kernel's
tables, as an index map with scalar prefetch does: `(i, j, table) -> (table[i], j)`. Everything else that it names must
be a size symbol or a table of the kernel. A bounded dimension's result is `ds(start, size)`. Null is all zeros.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.core import problems as core_problems
from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import parse_map
from layoutproof.core.term import Term, check_kind, every, substitute, trace
from layoutproof.kernel import problems
from layoutproof.kernel.kernel import Block, Table
from layoutproof.kernel.kernel_block import check_order
from layoutproof.kernel.kernel_parts import shown, without_rounding

Index = tuple[tuple[Term, ...], tuple[Term | None, ...]]
"""One term per dimension, and the valid size of each bounded one; no sizes at all where nothing is bounded."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names in scope of an index map: the grid's dimensions, tables, size symbols.

    parameters: None = it has none; otherwise they may be named too, and no index is named as a size is.
    """

    grid: tuple[str, ...]
    tables: Mapping[str, Table]
    sizes: frozenset[str]
    parameters: frozenset[str] | None = None


def read_index(value: str | Callable[..., object] | None, block: Sequence[Block], scope: Scope) -> Index:
    """The terms of an index map, over the grid's names. LayoutError for a wrong number of names or of results.

    >>> blocks = [Block("blocked", 8), Block("squeezed", 1)]
    >>> read_index("(a, b) -> (b, t[a])", blocks, Scope(("i", "j"), {"t": Table("t", (4,))}, frozenset()))
    ((Term(j), Term(t[i])), ())
    """
    check_order(value)
    bounded = [b.kind == "bounded" for b in block]
    if value is None:
        if any(bounded):
            raise LayoutError(problems.BOUNDED_NEEDS_INDEX())
        return (Term("int", 0),) * len(block), ()
    text = value if isinstance(value, str) else ""
    if text:
        names, terms, sizes = _parse(text)
    elif callable(value):
        names, terms = trace(value)
        sizes = (None,) * len(terms)
    else:
        raise LayoutError(problems.INDEX_NO_MAP(shown(value)))
    if len(terms) != len(block):
        raise LayoutError(
            problems.INDEX_RANK(len(terms), len(block)),
            text=text,
        )
    for k, (size, wanted) in enumerate(zip(sizes, bounded, strict=True)):
        if wanted and size is None:
            raise LayoutError(problems.INDEX_NEEDS_DS(k), text=text)
        if size is not None and not wanted:
            raise LayoutError(problems.INDEX_NO_SLICE(k, block[k]), text=text)
    for name in names if scope.parameters is not None else ():
        if name in scope.sizes:
            raise LayoutError(problems.INDEX_SIZE_CLASH(name), text=text)
    renamed = _renaming(names, scope, text)
    new = tuple(_checked(term, renamed, scope, text) for term in terms)
    if not any(bounded):
        return new, ()
    return new, tuple(None if size is None else _checked(size, renamed, scope, text) for size in sizes)


def index_text(names: Sequence[str], index: Sequence[Term], sizes: Sequence[Term | None]) -> str:
    """An index map as `read_index` takes it.

    >>> index_text(("i", "j"), [Term("name", "j"), Term("int", 0)], [])
    '(i, j) -> (j, 0)'
    """
    valid = sizes or (None,) * len(index)
    results = [str(t) if s is None else f"ds({t}, {s})" for t, s in zip(index, valid, strict=True)]
    return f"({', '.join(names)}) -> ({', '.join(results)})"


def _parse(text: str) -> tuple[tuple[str, ...], tuple[Term, ...], tuple[Term | None, ...]]:
    left, arrow, body = text.partition("->")
    plain = without_rounding(body) if arrow else body
    if "ds(" not in plain.replace(" ", ""):
        # an unchanged text keeps the columns of messages
        names, terms = parse_map(text if plain == body else f"{left}->{plain}")
        return names, terms, (None,) * len(terms)
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise LayoutError(core_problems.EXPRESSION(plain.strip()[:60]), text=text) from None
    results = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    pairs = [_slice(node, text) for node in results]
    names, starts = parse_map(f"{left}-> ({', '.join(start for start, _ in pairs)},)")
    sizes = [None if size is None else parse_map(f"{left}-> ({size},)")[1][0] for _, size in pairs]
    return names, starts, tuple(sizes)


def _slice(node: ast.expr, text: str) -> tuple[str, str | None]:
    match node:
        case ast.Call(func=ast.Name(id="ds") | ast.Attribute(attr="ds"), args=args, keywords=[]):
            if len(args) != 2:
                raise LayoutError(problems.DS_ARGUMENTS(len(args)), text=text)
            return ast.unparse(args[0]), ast.unparse(args[1])
    return ast.unparse(node), None


def _renaming(names: tuple[str, ...], scope: Scope, text: str) -> dict[str, str]:
    rank, tables = len(scope.grid), tuple(scope.tables)
    if len(names) == rank:
        return dict(zip(names, scope.grid, strict=True))
    if tables and len(names) == rank + len(tables):
        return dict(zip(names, (*scope.grid, *tables), strict=True))
    also = f", and may take the {len(tables)} tables ({', '.join(tables)}) after them" if tables else ""
    raise LayoutError(
        problems.INDEX_NAMES(len(names), ", ".join(scope.grid), also),
        text=text,
    )


def _checked(term: Term, renamed: Mapping[str, str], scope: Scope, text: str) -> Term:
    for part in every(check_kind(term, condition=False)):
        if part.op == "name":
            _check_name(part.args[0], renamed, scope, text)
        elif part.op == "read":
            _check_read(part, renamed, scope, text)
    names = {Term("name", name): Term("name", new) for name, new in renamed.items()}
    return substitute(term, names, renamed)


def _check_name(name: str, renamed: Mapping[str, str], scope: Scope, text: str) -> None:
    if renamed.get(name, name) in scope.tables:
        raise LayoutError(problems.TABLE_ENTRY(name), text=text)
    sizes = scope.sizes if scope.parameters is None else scope.sizes | scope.parameters
    if name not in renamed and name not in sizes:
        known = ", ".join((*renamed, *sorted(sizes)))
        raise LayoutError(problems.INDEX_UNKNOWN(name, known or "nothing"), text=text)
    if name not in renamed and name in scope.grid:
        raise LayoutError(problems.INDEX_SIZE_CLASH(name), text=text)


def _check_read(read: Term, renamed: Mapping[str, str], scope: Scope, text: str) -> None:
    name = renamed.get(read.args[0].args[0], read.args[0].args[0])
    if name not in scope.tables:
        known = f"known: {', '.join(scope.tables)}" if scope.tables else "the kernel has no tables"
        raise LayoutError(problems.NO_TABLE(read, read.args[0], known), text=text)
    rank = len(scope.tables[name].dims)
    if len(read.args) - 1 != rank:
        raise LayoutError(problems.TABLE_RANK(read, len(read.args) - 1, rank), text=text)
