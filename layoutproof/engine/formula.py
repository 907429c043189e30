"""A map as people read it: which coordinates an index has, and its offset as one sum; as text and as LaTeX.

Index symbols stand for integers from 0 to their extent - 1, size symbols for integers >= 1.
"""

from __future__ import annotations

from typing import Any

from layoutproof.core.index_map import IndexMap, row_major
from layoutproof.core.numbers import Numbers
from layoutproof.core.size import Size, surely_less
from layoutproof.core.term import Term, as_term, select
from layoutproof.engine.read import map_of, read_layout


def formula_text(layout: object) -> str:
    """The map on one line; for a memory layout its offset, in elements, on a second one.

    Raises LayoutError as `read_layout` does.

    >>> print(formula_text("f32[3,5]{1,0:T(2,2)}"))
    (i, j) -> (i // 2, j // 2, i % 2, j % 2)
    offset = 12*floor(i/2) + 4*floor(j/2) + 2*Mod(i,2) + Mod(j,2)
    """
    m = map_of(read_layout(layout))
    index, copy, place = traced(m)
    after = f" copy ({', '.join(copy)})" if copy else ""
    lines = [f"({', '.join(index)}){after} -> ({', '.join(map(str, place))}{',' if len(place) == 1 else ''})"]
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
    index, copy, _ = traced(m)
    names = ", ".join([sympy.latex(sympy.Symbol(name)) for name in (*index, *copy)])
    if m.memory is not None:
        return rf"\mathrm{{offset}}({names}) = {_sum(offset(m), latex=True)}"
    entries = ", ".join([_sum(entry, latex=True) for entry in coordinates(m)])
    return rf"\left({names}\right) \mapsto \left({entries}\right)"


def offset(m: IndexMap) -> Any:
    """The offset of a memory layout as a sympy expression in `symbols(m)`; it equals `place` on every index."""
    on = _sympy_numbers()
    return _merged(row_major(tuple(coordinates(m)), m.range.extents, on))


def coordinates(m: IndexMap) -> list[Any]:
    """Each coordinate as a sympy expression in `symbols(m)`."""
    on = _sympy_numbers()
    index, copy, place = traced(m)
    known = symbols(m)
    extents = dict(zip((*index, *copy), (*m.domain.extents, *m.copies.extents), strict=True))
    return [_expression(term, known, extents, on)[0] for term in place]


def symbols(m: IndexMap) -> dict[str, Any]:
    """The sympy symbol of each index (an integer >= 0), by name; size symbols are integers > 0."""
    import sympy

    index, copy = _names(m)
    return {name: sympy.Symbol(name, integer=True, nonnegative=True) for name in (*index, *copy)}


def traced(m: IndexMap) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Term, ...]]:
    """Names of the index and of the copy, and `place` run on them."""
    index, copy = _names(m)
    place = m.place(
        tuple([Term("name", name) for name in index]), tuple([Term("name", name) for name in copy]), _TermNumbers()
    )
    return index, copy, tuple([as_term(entry) for entry in place])


class _TermNumbers(Numbers):
    """Places on terms: whatever is asked by name becomes an operation of the tree."""

    def symbol(self, name: str) -> Any:
        return Term("name", name)

    def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        return select(condition, if_true, if_false)

    def minimum(self, left: Any, right: Any) -> Any:
        return Term("min", as_term(left), as_term(right))

    def maximum(self, left: Any, right: Any) -> Any:
        return Term("max", as_term(left), as_term(right))

    def xor(self, left: Any, right: Any) -> Any:
        return Term("xor", as_term(left), as_term(right))

    def less(self, left: Any, right: Any) -> Any:
        return Term("<", as_term(left), as_term(right))

    def equal(self, left: Any, right: Any) -> Any:
        return Term("==", as_term(left), as_term(right))

    def both(self, left: Any, right: Any) -> Any:
        return Term("and", left, right)

    def either(self, left: Any, right: Any) -> Any:
        return Term("or", left, right)

    def opposite(self, condition: Any) -> Any:
        return Term("not", condition)


def _names(m: IndexMap) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names that no size symbol has; an index that would clash with one is marked with underscores."""
    taken = set(m.sizes())
    names: list[str] = []
    for name in (*m.domain.names, *m.copies.names):
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    rank = len(m.domain.names)
    return tuple(names[:rank]), tuple(names[rank:])


def _sympy_numbers() -> Numbers:
    import sympy

    class Xor(sympy.Function):  # type: ignore[misc]
        """Bitwise exclusive or; sympy's own is for truth values."""

        @classmethod
        def eval(cls, left: Any, right: Any) -> Any:
            return sympy.Integer(int(left) ^ int(right)) if left.is_Integer and right.is_Integer else None

    Xor.__name__ = "xor"

    class SympyNumbers(Numbers):
        def size(self, extent: Any) -> Any:
            return extent if type(extent) is int else self._polynomial(extent)

        def _polynomial(self, size: Any) -> Any:
            if type(size) is int:
                return sympy.Integer(size)
            return sympy.Add(*[c * sympy.Mul(*[self._atom(a) for a in mono]) for mono, c in size.terms])

        def _atom(self, atom: Any) -> Any:
            if atom.over is None:
                return self.symbol(atom.text)
            if atom.text.startswith("ceil("):
                return sympy.ceiling(self._polynomial(atom.over - (atom.divisor - 1)) / atom.divisor)
            return sympy.floor(self._polynomial(atom.over) / atom.divisor)

        def symbol(self, name: str) -> Any:
            return sympy.Symbol(name, integer=True, positive=True)

        def select(self, condition: Any, if_true: Any, if_false: Any) -> Any:
            return sympy.Piecewise((if_true, condition), (if_false, True))

        def minimum(self, left: Any, right: Any) -> Any:
            return sympy.Min(left, right)

        def maximum(self, left: Any, right: Any) -> Any:
            return sympy.Max(left, right)

        def xor(self, left: Any, right: Any) -> Any:
            return Xor(sympy.sympify(left), sympy.sympify(right))

        def less(self, left: Any, right: Any) -> Any:
            return sympy.Lt(left, right)

        def equal(self, left: Any, right: Any) -> Any:
            return sympy.Eq(left, right)

        def both(self, left: Any, right: Any) -> Any:
            return sympy.And(left, right)

        def either(self, left: Any, right: Any) -> Any:
            return sympy.Or(left, right)

        def opposite(self, condition: Any) -> Any:
            return sympy.Not(condition)

    return SympyNumbers()


def _expression(term: Term, known: dict[str, Any], extents: dict[str, Any], on: Numbers) -> tuple[Any, Any]:
    """A term in sympy, and a number it stays below (None: not known) given that it is >= 0.

    The bound is what makes the formula of f32[8,128]{1,0:T(8,128)} read `128*i + j`.
    """
    import sympy

    op, args = term.op, term.args
    if op == "int":
        return sympy.Integer(args[0]), args[0] + 1 if args[0] >= 0 else None
    if op == "name":
        if args[0] not in extents:
            return on.symbol(args[0]), None
        extent = extents[args[0]]
        return (sympy.Integer(0), 1) if extent == 1 else (known[args[0]], extent)
    parts = [_expression(arg, known, extents, on) for arg in args]
    values = [value for value, _ in parts]
    if op in ("//", "%"):
        (left, below), by = parts[0], values[1]
        if not by.is_Integer:
            return (sympy.floor(left / by) if op == "//" else sympy.Mod(left, by)), None
        if below is not None and not surely_less(by, below):
            pass
    return _apply(op, parts, on)
