"""A map as people read it: which coordinates an index has, and its offset as one sum; as text and as LaTeX.

Index symbols stand for integers from 0 to their extent - 1, size symbols for integers >= 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.core.index_map import Index, IndexMap, row_major
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Verdict
from layoutproof.core.space import axis_names, distinct
from layoutproof.core.term import Term, arithmetic, as_term, equal, less, maximum, minimum, select
from layoutproof.pictures import problems
from layoutproof.pictures.symbolic import SympyNumbers, expression, latex_printer, merged, term_of, text_printer
from layoutproof.questions.ask import ask
from layoutproof.questions.expressions import Expressions
from layoutproof.registry.read import map_of, read_layout

if TYPE_CHECKING:
    from sympy import Expr, Symbol


def as_sympy(layout: object) -> Expressions:
    """The map of a layout as sympy has it: closed forms, simplified by what is known of an index.

    Args:
        layout: Text, a mapping `{language: value}`, an object that `read_layout` takes, or a map.

    Returns:
        The expressions. Symbols of indices are integers >= 0, those of sizes integers > 0; what sympy knows from that
        is left out of `assumptions`. An xor is a function `xor` of which sympy knows nothing.

    Raises:
        LayoutError: The layout cannot be read, or divides by zero.

    >>> as_sympy("S[(2,4,2,2,128):(2048,256,1,1024,2)] on (16,256)").place["m"]
    Mod(i, 2) + 2*(Mod(j, 128)) + 256*(Mod(floor(i/2), 4)) + 2048*floor(i/8) + 1024*floor(j/128)
    >>> as_sympy("f32[N,5]{1,0:T(8,128)}").padding
    -5*N + 1024*ceiling(N/8)
    """
    import sympy

    m = map_of(read_layout(layout))
    on = SympyNumbers()
    index, replica = _names(m)
    known, sizes = symbols(m), {name: on.symbol(name) for name in m.sizes()}
    found = coordinates(m)
    axes = distinct(m.range.names or axis_names(len(found)))
    padding = None
    if m.memory is not None:
        padding = sympy.expand(on.size(m.memory.allotted) - on.size(m.domain.count()))
    extents = zip(known.values(), (*m.domain.extents, *m.replicas.extents), strict=True)
    assumed = [sympy.Lt(symbol, on.size(extent)) for symbol, extent in extents]
    assumed += [sympy.Ge(by, 1) for by in _divisors(m, known)]
    return Expressions(
        {name: known[name] for name in index},
        {name: known[name] for name in replica},
        sizes,
        dict(zip(axes, found, strict=True)),
        None if m.memory is None else offset(m),
        padding,
        tuple([condition for condition in assumed if condition != sympy.true]),
    )


def proof(m: IndexMap) -> Finding:
    """Whether the closed forms of `as_sympy` are the map: `same_map`, asked of both as index maps."""
    if m.memory is not None:
        m, found = m.flat(), [offset(m)]
    else:
        found = coordinates(m)
    index, replica = _names(m)
    terms = tuple(map(term_of, found))

    def place(at: Index, copy: Index, on: Numbers) -> Index:
        values = dict(zip((*index, *replica), (*at, *copy), strict=True))
        return tuple([term.evaluate(values, on) for term in terms])

    return ask("same_map", m, replace(m, place=place))


def proof_text(layout: object) -> str:
    """Whether the closed forms are the map, in words.

    >>> proof_text("f32[N,5]{1,0:T(8,128)}")
    'proved equal to the map, by digits'
    """
    m = map_of(read_layout(layout))
    found = proof(m)
    if found.verdict is Verdict.PROVED:
        return f"proved equal to the map, by {found.decided_by}"
    return f"not proved equal to the map: {found.reason}"


def formula_text(layout: object) -> str:
    """The map on one line; on a second one the offset of a memory layout, in elements, or what is simpler otherwise.

    Raises LayoutError as `read_layout` does.

    >>> print(formula_text("f32[3,5]{1,0:T(2,2)}"))
    (i, j) -> (i // 2, j // 2, i % 2, j % 2)
    offset = 12*floor(i/2) + 4*floor(j/2) + 2*Mod(i,2) + Mod(j,2)
    >>> print(formula_text("S[(2,4,8):(32,1,4)] on (8,8)"))
    (i, j) -> (0 + i % 4 * 1 + i // 4 * 32 + j * 4)
    m = 32*floor(i/4) + 4*j + Mod(i,4)
    """
    m = map_of(read_layout(layout))
    index, replica, place = traced(m)
    after = f" replica ({', '.join(replica)})" if replica else ""
    lines = [f"({', '.join(index)}){after} -> ({', '.join(map(str, place))})"]
    if m.memory is not None:
        lines.append(f"offset = {_sum(offset(m))}")
    elif m.range.names:
        lines += [f"{axis} = {_sum(entry)}" for axis, entry in zip(m.range.names, coordinates(m), strict=True)]
    return "\n".join(lines)


def formula_latex(layout: object) -> str:
    r"""The offset of a memory layout, or the coordinates of another map, as LaTeX for math mode.

    >>> print(formula_latex("f32[3,5]{1,0:T(2,2)}"))
    \mathrm{offset}(i, j) = 12 \left\lfloor{\frac{i}{2}}\right\rfloor + 4 \left\lfloor{\frac{j}{2}}\right\rfloor + 2 \left(i \bmod 2\right) + \left(j \bmod 2\right)
    """  # noqa: E501
    import sympy

    m = map_of(read_layout(layout))
    index, replica, _ = traced(m)
    names = ", ".join([sympy.latex(sympy.Symbol(name)) for name in (*index, *replica)])
    if m.memory is not None:
        return rf"\mathrm{{offset}}({names}) = {_sum(offset(m), latex=True)}"
    entries = ", ".join([_sum(entry, latex=True) for entry in coordinates(m)])
    return rf"\left({names}\right) \mapsto \left({entries}\right)"


def offset(m: IndexMap) -> Expr:
    """The offset of a memory layout as a sympy expression in `symbols(m)`; it equals `place` on every index."""
    return merged(row_major(tuple(coordinates(m)), m.range.extents, SympyNumbers()))


def coordinates(m: IndexMap) -> list[Expr]:
    """Each coordinate as a sympy expression in `symbols(m)`; LayoutError where one divides by zero for every index."""
    import sympy

    index, replica, place = traced(m)
    extents = dict(zip((*index, *replica), (*m.domain.extents, *m.replicas.extents), strict=True))
    found = []
    for term in place:
        try:
            found.append(merged(expression(term, symbols(m), extents)))
        except ZeroDivisionError:
            found.append(sympy.nan)
        if found[-1].has(sympy.zoo, sympy.nan):
            raise LayoutError(problems.FORMULA_DIVIDES_BY_ZERO(term))
    return found


def symbols(m: IndexMap) -> dict[str, Symbol]:
    """The sympy symbol of each index (an integer >= 0), by name; size symbols are integers > 0."""
    import sympy

    index, replica = _names(m)
    return {name: sympy.Symbol(name, integer=True, nonnegative=True) for name in (*index, *replica)}


def _divisors(m: IndexMap, known: Mapping[str, Symbol]) -> list[Expr]:
    """The divisors that vary with an index."""
    extents = dict(zip(known, (*m.domain.extents, *m.replicas.extents), strict=True))
    found = [by for term in traced(m)[2] for by in term.divisors() if any(name in known for name in by.names())]
    return list(dict.fromkeys(expression(by, known, extents) for by in found))


def traced(m: IndexMap) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Term, ...]]:
    """Names of the index and of the replica, and `place` run on them."""
    index, replica = _names(m)
    place = m.place(
        tuple([Term("name", name) for name in index]), tuple([Term("name", name) for name in replica]), _TermNumbers()
    )
    return index, replica, tuple([as_term(entry) for entry in place])


class _TermNumbers(Numbers):
    """Places on terms: whatever is asked by name becomes an operation of the tree."""

    def symbol(self, name: str) -> Term:
        return Term("name", name)

    def select(self, condition: Term, if_true: Term | int, if_false: Term | int) -> Term:
        return select(condition, if_true, if_false)

    def minimum(self, left: Term | int, right: Term | int) -> Term:
        return minimum(left, right)

    def maximum(self, left: Term | int, right: Term | int) -> Term:
        return maximum(left, right)

    def xor(self, left: Term | int, right: Term | int) -> Term:
        return arithmetic("xor", left, right)

    def less(self, left: Term | int, right: Term | int) -> Term:
        return less(left, right)

    def equal(self, left: Term | int, right: Term | int) -> Term:
        return equal(left, right)

    def logical_and(self, left: Term, right: Term) -> Term:
        return Term("and", left, right)

    def logical_or(self, left: Term, right: Term) -> Term:
        return Term("or", left, right)

    def logical_not(self, condition: Term) -> Term:
        return Term("not", condition)


def _names(m: IndexMap) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names that no size symbol has; an index that would clash with one gets a 0."""
    names, rank = distinct((*m.domain.names, *m.replicas.names), m.sizes()), len(m.domain.names)
    return names[:rank], names[rank:]


def _sum(value: Expr, latex: bool = False) -> str:
    """A sum with its heaviest term first, the order in which an offset is computed by hand."""
    import sympy

    def weight(term: Expr) -> tuple[bool, int, Expr, str]:
        factor, rest = term.as_coeff_Mul()
        runtime = sum(1 for part in sympy.Mul.make_args(rest) if part.is_positive)
        return (rest == 1, -runtime, -abs(factor), str(rest))

    printer = latex_printer() if latex else text_printer()
    text = ""
    for term in sorted(sympy.Add.make_args(value), key=weight):
        minus = term.could_extract_minus_sign()
        sign = ("-" if minus else "") if not text else (" - " if minus else " + ")
        shown = printer.doprint(-term if minus else term)
        text += sign + (rf"\left({shown}\right)" if latex and term.func is sympy.Mod else shown)
    return text if latex else text.replace(", ", ",")
