"""Places on sympy expressions, simplified by what is known of an index: 0 <= index < extent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import Undecided, Unsupported
from layoutproof.core.numbers import Numbers, SizeNumbers
from layoutproof.core.operations import Op
from layoutproof.core.size import Atom, Extent, ceil_div, surely_less
from layoutproof.core.term import Term

if TYPE_CHECKING:
    from sympy import Basic, Expr, Symbol
    from sympy.logic.boolalg import Boolean
    from sympy.printing.latex import LatexPrinter
    from sympy.printing.str import StrPrinter


class SympyNumbers(Numbers):
    """sympy expressions; size symbols are integers > 0, and `xor` is a function sympy knows nothing about."""

    def size(self, extent: Extent) -> Expr:
        import sympy

        if isinstance(extent, int):
            return sympy.Integer(extent)
        return sympy.Add(*[c * sympy.Mul(*[self._atom(atom) for atom in mono]) for mono, c in extent.terms])

    def _atom(self, atom: Atom) -> Expr:
        import sympy

        if atom.over is None:
            return self.symbol(atom.text)
        if atom.text.startswith("ceil("):
            return sympy.ceiling(self.size(atom.over - (atom.divisor - 1)) / self.size(atom.divisor))
        return sympy.floor(self.size(atom.over) / self.size(atom.divisor))

    def symbol(self, name: str) -> Symbol:
        import sympy

        return sympy.Symbol(name, integer=True, positive=True)

    def select(self, condition: Boolean, if_true: Expr, if_false: Expr) -> Expr:
        import sympy

        return sympy.Piecewise((if_true, condition), (if_false, True))

    def minimum(self, left: Expr, right: Expr) -> Expr:
        import sympy

        return sympy.Min(left, right)

    def maximum(self, left: Expr, right: Expr) -> Expr:
        import sympy

        return sympy.Max(left, right)

    def xor(self, left: Expr, right: Expr) -> Expr:
        import sympy

        if left.is_Integer and right.is_Integer:
            return sympy.Integer(int(left) ^ int(right))
        return sympy.Function("xor", integer=True)(left, right)

    def less(self, left: Expr, right: Expr) -> Boolean:
        import sympy

        return sympy.Lt(left, right)

    def equal(self, left: Expr, right: Expr) -> Boolean:
        import sympy

        return sympy.Eq(left, right)

    def logical_and(self, left: Boolean, right: Boolean) -> Boolean:
        import sympy

        return sympy.And(left, right)

    def logical_or(self, left: Boolean, right: Boolean) -> Boolean:
        import sympy

        return sympy.Or(left, right)

    def logical_not(self, condition: Boolean) -> Boolean:
        import sympy

        return sympy.Not(condition)


def expression(term: Term, symbols: Mapping[str, Symbol], extents: Mapping[str, Extent]) -> Expr:
    """A term in sympy, equal to it for every index below its extent and all sizes >= 1.

    symbols, extents: the sympy symbol and the extent of each index; every other name is a size.

    >>> import sympy
    >>> i = sympy.Symbol("i", integer=True, nonnegative=True)
    >>> name = Term("name", "i")
    >>> expression(name // 8 + name % 8, {"i": i}, {"i": 8})
    i
    """
    return _bounded(term, symbols, extents, SympyNumbers())[0]


def _bounded(
    term: Term, symbols: Mapping[str, Symbol], extents: Mapping[str, Extent], on: SympyNumbers
) -> tuple[Expr, Expr]:
    """(value, below): where below is not None, 0 <= value < below for all indices and sizes."""
    import sympy

    op, args = term.op, term.args
    if op == "int":
        return sympy.Integer(args[0]), args[0] + 1 if args[0] >= 0 else None
    if op == "name" and args[0] in extents:
        extent = extents[args[0]]
        return (sympy.Integer(0), 1) if extent == 1 else (symbols[args[0]], extent)
    if not any(name in extents for name in term.names()):
        try:
            size = term.evaluate({}, SizeNumbers())
        except Undecided:
            pass
        else:
            return on.size(size), size + 1 if surely_less(-1, size) else None
    parts = [_bounded(arg, symbols, extents, on) for arg in args]
    below = _below(op, [bound for _, bound in parts], args[-1])
    if op in ("//", "%") and args[1].op == "int" and parts[0][1] is not None:
        value, bound = parts[0]
        if surely_less(bound - 1, args[1].args[0]):
            return (value, bound) if op == "%" else (sympy.Integer(0), 1)
    if op == "%" and any(part.is_Mul and part.has(sympy.Mod) for part in sympy.Add.make_args(parts[0][0])):
        # sympy 1.14 evaluates Mod(2*Mod(j, 5), 3) to Mod(2*Mod(j, 5)**2, 3), which is another number
        value, by = parts[0][0], parts[1][0]
        return value - by * sympy.floor(value / by), below
    names = {str(k): value for k, (value, _) in enumerate(parts)}
    return Term(op, *[Term("name", name) for name in names]).evaluate(names, on), below


def _below(op: str, bounds: list[Extent | None], last: Term) -> Extent | None:
    if op == "%" and last.op == "int":
        return int(last.args[0])
    known = [bound for bound in bounds if bound is not None]
    below: Extent | None = None
    if len(known) < len(bounds):
        return None
    if op == "+":
        below = known[0] + known[1] - 1
    if op == "*":
        below = (known[0] - 1) * (known[1] - 1) + 1
    if op == "//" and last.op == "int":
        below = ceil_div(known[0], last.args[0])
    return below


def merged(value: Expr) -> Expr:
    """The same number as an expanded sum, with the digits of one number joined to it again.

    n*floor(x/n) + Mod(x, n) is x, n*floor(Mod(x, k)/n) + Mod(x, n) is Mod(x, k) where n divides k, and
    n*Mod(floor(x/n), k) + Mod(x, n) is Mod(x, n*k); floor(floor(x/n)/k) is floor(x/(n*k)).
    """
    import sympy

    value = sympy.expand(value)
    nested = value.replace(sympy.floor, _flat_floor)
    value = value if nested == value else sympy.expand(nested)
    while True:
        for high, by, low, both in _digits_of(value):
            whole, part = value.coeff(high), value.coeff(low)
            if part != 0 and sympy.expand(part * by - whole) == 0:
                value = sympy.expand(value - whole * high - part * low + part * both)
                break
        else:
            return value


def _flat_floor(inside: Expr) -> Expr:
    """floor(inside), where inside is floor(x/n)/k: floor(x/(n*k))."""
    import sympy

    over, by = inside.as_numer_denom()
    if by.is_Integer and isinstance(over, sympy.floor):
        return sympy.floor(over.args[0] / by)
    return sympy.floor(inside)


def _digits_of(value: Expr) -> list[tuple[Expr, Expr, Expr, Expr]]:
    """(high, n, low, x): high and low are digits of x == n*high + low."""
    import sympy

    found = []
    for high in sorted(value.atoms(sympy.floor, sympy.Mod), key=str):
        quotient, modulus = (high, None) if isinstance(high, sympy.floor) else high.args
        if not isinstance(quotient, sympy.floor):
            continue
        over, by = quotient.args[0].as_numer_denom()
        inner = over
        if modulus is None and isinstance(over, sympy.Mod) and by.is_Integer and over.args[1] % by == 0:
            inner = over.args[0]
        # sympy 1.14 evaluates a remainder of a remainder to another number
        if by.is_Integer and not inner.has(sympy.Mod):
            both = over if modulus is None else sympy.Mod(over, by * modulus)
            found.append((high, by, sympy.Mod(inner, by), both))
    return found


def term_of(value: Basic) -> Term:
    """A sympy expression as a term again: what `Term` says in Python's integers.

    Raises Unsupported for what is no integer operation of a term.

    >>> import sympy
    >>> term_of(sympy.floor((sympy.Symbol("i", integer=True) + 1) / 4))
    Term((1 + i) // 4)
    """
    import sympy

    kinds: list[tuple[Any, Op]] = [
        *((sympy.Add, "+"), (sympy.Mul, "*"), (sympy.Min, "min"), (sympy.Max, "max"), (sympy.Mod, "%")),
        *((sympy.And, "and"), (sympy.Or, "or"), (sympy.Not, "not"), (sympy.Lt, "<"), (sympy.Le, "<=")),
        *((sympy.Eq, "=="), (sympy.Ne, "!=")),
    ]
    if value.is_Integer:
        return Term("int", int(value))
    if value.is_Symbol:
        return Term("name", value.name)
    if isinstance(value, sympy.floor | sympy.ceiling):
        over, by = value.args[0].as_numer_denom()
        return Term("//", term_of(over + by - 1 if isinstance(value, sympy.ceiling) else over), term_of(by))
    if isinstance(value, sympy.Gt | sympy.Ge):
        return term_of(value.reversed)
    if isinstance(value, sympy.Pow) and value.exp.is_Integer and value.exp > 0:
        return reduce(lambda left, right: Term("*", left, right), [term_of(value.base)] * int(value.exp))
    if isinstance(value, sympy.Piecewise):
        *some, (last, _) = value.args
        return reduce(
            lambda rest, case: Term("select", term_of(case[1]), term_of(case[0]), rest), some[::-1], term_of(last)
        )
    if getattr(value.func, "__name__", "") == "xor":
        return Term("xor", *map(term_of, value.args))
    if value in (sympy.true, sympy.false):
        return Term("==", Term("int", 0), Term("int", 0 if value == sympy.true else 1))
    for kind, op in kinds:
        if isinstance(value, kind):
            parts = list(map(term_of, value.args))
            return Term(op, *parts) if op == "not" else reduce(lambda left, right: Term(op, left, right), parts)
    raise Unsupported(f"{value} is no integer operation of a term")


def text_printer() -> StrPrinter:
    """sympy's text, with Mod as a function like any other and one fraction inside a floor."""
    import sympy
    from sympy.printing.str import StrPrinter

    class Text(StrPrinter):  # type: ignore[misc]
        def parenthesize(self, item: Basic, level: int, strict: bool = False) -> str:
            # sympy brackets Mod(i, 2) as if it were an operator
            return str(self._print(item) if item.func is sympy.Mod else super().parenthesize(item, level, strict))

        def _print_floor(self, value: Expr) -> str:
            over, by = value.args[0].as_numer_denom()
            inside = f"({self._print(over)})" if over.is_Add else self._print(over)
            return f"{value.func.__name__}({inside}/{self._print(by)})"

        _print_ceiling = _print_floor

    return Text()


def latex_printer() -> LatexPrinter:
    """sympy's LaTeX, with one fraction inside a floor and no brackets around it."""
    import sympy
    from sympy.printing.latex import LatexPrinter

    class Latex(LatexPrinter):  # type: ignore[misc]
        def _needs_mul_brackets(self, value: Expr, first: bool = False, last: bool = False) -> bool:
            if isinstance(value, sympy.floor | sympy.ceiling):
                return False
            return bool(super()._needs_mul_brackets(value, first, last))

        def _inside(self, value: Expr) -> str:
            over, by = value.args[0].as_numer_denom()
            return rf"\frac{{{self._print(over)}}}{{{self._print(by)}}}"

        def _print_floor(self, value: Expr, exp: Expr | None = None) -> str:
            return self._power(rf"\left\lfloor{{{self._inside(value)}}}\right\rfloor", exp)

        def _print_ceiling(self, value: Expr, exp: Expr | None = None) -> str:
            return self._power(rf"\left\lceil{{{self._inside(value)}}}\right\rceil", exp)

        def _power(self, text: str, exp: Expr | None) -> str:
            return text if exp is None else f"{text}^{{{exp}}}"

    return Latex()
