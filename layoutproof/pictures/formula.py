"""A map as people read it: which coordinates an index has, and its offset as one sum; as text and as LaTeX.

Index symbols stand for integers from 0 to their extent - 1, size symbols for integers >= 1.
"""

from __future__ import annotations

from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap, row_major
from layoutproof.core.numbers import Numbers
from layoutproof.core.term import Term, arithmetic, as_term, equal, less, maximum, minimum, select
from layoutproof.pictures.symbolic import SympyNumbers, expression, latex_printer, merged, text_printer
from layoutproof.registry.read import map_of, read_layout


def formula_text(layout: object) -> str:
    """The map on one line; for a memory layout its offset, in elements, on a second one.

    Raises LayoutError as `read_layout` does.

    >>> print(formula_text("f32[3,5]{1,0:T(2,2)}"))
    (i, j) -> (i // 2, j // 2, i % 2, j % 2)
    offset = 12*floor(i/2) + 4*floor(j/2) + 2*Mod(i,2) + Mod(j,2)
    """
    m = map_of(read_layout(layout))
    index, replica, place = traced(m)
    after = f" replica ({', '.join(replica)})" if replica else ""
    lines = [f"({', '.join(index)}){after} -> ({', '.join(map(str, place))})"]
    if m.memory is not None:
        lines.append(f"offset = {_sum(offset(m))}")
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


def offset(m: IndexMap) -> Any:
    """The offset of a memory layout as a sympy expression in `symbols(m)`; it equals `place` on every index."""
    return merged(row_major(tuple(coordinates(m)), m.range.extents, SympyNumbers()))


def coordinates(m: IndexMap) -> list[Any]:
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
            raise LayoutError(f"{term} divides by zero, so it has no formula")
    return found


def symbols(m: IndexMap) -> dict[str, Any]:
    """The sympy symbol of each index (an integer >= 0), by name; size symbols are integers > 0."""
    import sympy

    index, replica = _names(m)
    return {name: sympy.Symbol(name, integer=True, nonnegative=True) for name in (*index, *replica)}


def traced(m: IndexMap) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Term, ...]]:
    """Names of the index and of the replica, and `place` run on them."""
    index, replica = _names(m)
    place = m.place(
        tuple([Term("name", name) for name in index]), tuple([Term("name", name) for name in replica]), _TermNumbers()
    )
    return index, replica, tuple([as_term(entry) for entry in place])


class _TermNumbers(Numbers):
    """Places on terms: whatever is asked by name becomes an operation of the tree."""

    def symbol(self, name: str) -> Any:
        return Term("name", name)

    def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        return select(condition, if_true, if_false)

    def minimum(self, left: Any, right: Any) -> Any:
        return minimum(left, right)

    def maximum(self, left: Any, right: Any) -> Any:
        return maximum(left, right)

    def xor(self, left: Any, right: Any) -> Any:
        return arithmetic("xor", left, right)

    def less(self, left: Any, right: Any) -> Any:
        return less(left, right)

    def equal(self, left: Any, right: Any) -> Any:
        return equal(left, right)

    def logical_and(self, left: Any, right: Any) -> Any:
        return Term("and", left, right)

    def logical_or(self, left: Any, right: Any) -> Any:
        return Term("or", left, right)

    def logical_not(self, condition: Any) -> Any:
        return Term("not", condition)


def _names(m: IndexMap) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names that no size symbol has; an index that would clash with one gets a 0."""
    taken = set(m.sizes())
    names: list[str] = []
    for name in (*m.domain.names, *m.replicas.names):
        while name in taken:
            name += "0"
        taken.add(name)
        names.append(name)
    rank = len(m.domain.names)
    return tuple(names[:rank]), tuple(names[rank:])


def _sum(value: Any, latex: bool = False) -> str:
    """A sum with its heaviest term first, the order in which an offset is computed by hand."""
    import sympy

    def weight(term: Any) -> tuple[bool, int, Any, str]:
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
