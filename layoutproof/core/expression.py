"""Reading index maps and conditions from text, with Python's own expression grammar.

Nothing is evaluated: the syntax tree is rebuilt as a `Term`, and whatever is not integer arithmetic is refused by its
place in the text.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from layoutproof.core import problems
from layoutproof.core.bounds import (
    LARGEST,
    MOST_DIGITS,
    MOST_EXTENTS,
    check_length,
    check_size,
    check_terms,
    check_text,
)
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.numbers import SizeNumbers
from layoutproof.core.operations import CONDITIONS, OPERATIONS, Op, operation
from layoutproof.core.size import Extent
from layoutproof.core.term import Term, arithmetic, check_kind, reads

LONGEST = 4096
"""Longest expression text in characters; longer ones are refused, not parsed."""


def parse_map(text: str) -> tuple[tuple[str, ...], tuple[Term, ...]]:
    """Names and results of a map written `(i, j) -> (i // 8, j // 128)`.

    Raises LayoutError, with the column, for what is not integer arithmetic on names, and for a name given twice.

    >>> parse_map("(i, j) -> (i // 8, min(j, 3))")
    (('i', 'j'), (Term(i // 8), Term(min(j, 3))))
    """
    left, arrow, right = check_length(text, LONGEST).partition("->")
    if not arrow:
        raise LayoutError(problems.MAP_ARROW(), text=text)
    parameters = _parse(left, text, 0)
    body = _parse(right, text, len(left) + 2)
    names = []
    for node in parameters.elts if isinstance(parameters, ast.Tuple) else [parameters]:
        if not isinstance(node, ast.Name):
            raise _error("left of '->' stand plain names", node, text, 0)
        names.append(node.id)
    if len(set(names)) != len(names):
        raise LayoutError(problems.MAP_NAMES_TWICE(", ".join(names)), text=text, column=1)
    results = body.elts if isinstance(body, ast.Tuple) else [body]
    if max(len(names), len(results)) > MOST_EXTENTS:
        raise LayoutError(problems.MAP_LENGTH(MOST_EXTENTS), text=text)
    terms = tuple(_build(node, text, len(left) + 2) for node in results)
    check_terms(terms, text)
    return tuple(names), terms


def parse_condition(text: str, tables: bool = False) -> Term:
    """A condition such as `N % 8 == 0 and M >= 128`. tables: whether it may read tables, `t[i] <= t[i + 1]`.

    Raises LayoutError, with the column, as `parse_map` does, and for a number where a condition must stand.

    >>> parse_condition("N % 8 == 0 and M >= 128").names()
    ('N', 'M')
    """
    term = _build(_parse(text, text, 0), text, 0)
    check_terms((term,), text)
    if term.op not in CONDITIONS:
        raise LayoutError(problems.CONDITION_NUMBER(text), text=text)
    if reads((term,)) and not tables:
        raise LayoutError(problems.CONDITION_TABLE(text), text=text)
    return check_kind(term, condition=True)


def parse_expression(text: str) -> Term:
    """An integer expression such as `2 * N + 1`.

    Raises LayoutError, with the column, as `parse_map` does, and for a condition where a number must stand.
    """
    term = _build(_parse(text, text, 0), text, 0)
    check_terms((term,), text)
    return check_kind(term, condition=False)


def parse_size(text: str) -> Extent:
    """An extent or stride: an integer, or a polynomial in size symbols such as `2*N + 1`.

    Raises LayoutError for what is no size: text that is no expression, a case distinction on sizes, a number of more
    than 20 digits, and a polynomial beyond `core.bounds`.

    >>> parse_size("2*N + 1")
    Size(2*N + 1)
    """
    plain = check_length(text, LONGEST).strip()
    if len(plain) < MOST_DIGITS and plain.isascii() and plain.isdigit() and (plain[0] != "0" or plain == "0"):
        return int(plain)
    check_text(text)
    try:
        value = parse_expression(text).evaluate({}, SizeNumbers())
    except (Undecided, TypeError) as error:
        raise LayoutError(problems.NO_SIZE(text.strip(), error)) from None
    except ZeroDivisionError:
        raise LayoutError(problems.SIZE_DIVIDES_BY_ZERO(text.strip()), text=text) from None
    return check_size(value)


def _parse(part: str, text: str, start: int) -> ast.expr:
    check_text(check_length(text, LONGEST))
    lead = len(part) - len(part.lstrip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own advice on `8or 9` is no news to our user
            # one line: the column stays meaningful, and no statement can hide behind a newline
            return ast.parse(" ".join(part.strip().splitlines()) or " ", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        column = start + lead + (getattr(error, "offset", None) or 1)
        raise LayoutError(problems.EXPRESSION(part.strip()[:60]), text=text, column=column) from None


_BINARY: Mapping[type[ast.operator], Op] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitXor: "xor",
}
_COMPARE: Mapping[type[ast.cmpop], Op] = {ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!="}
_CALLS = frozenset({"min", "max", "xor", "select", "truncdiv", "truncrem", "multiple_of", "shl"})


def _build(node: ast.expr, text: str, start: int, depth: int = 0) -> Term:
    if depth > 200:
        raise _error("the expression is nested more than 200 deep", node, text, start)

    def build(child: ast.expr) -> Term:
        return _build(child, text, start, depth + 1)

    match node:
        case ast.Constant(value=int(value)) if type(value) is int:
            if value > LARGEST:  # 0x.. says a large number in few digits
                raise _error(f"a number of more than {MOST_DIGITS} digits", node, text, start)
            return Term("int", value)
        case ast.Name(id=name):
            return Term("name", name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            term = build(operand)
            return Term("int", -term.args[0]) if term.op == "int" else -term
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Term("not", build(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            try:
                return arithmetic(_BINARY[type(op)], build(left), build(right))
            except LayoutError as error:
                raise error if error.text else _error(error.problem, node, text, start) from None
        case ast.BoolOp(op=op, values=values):
            return _joined("and" if isinstance(op, ast.And) else "or", map(build, values))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            compared = _compared(ops, [build(side) for side in (left, *comparators)])
            if compared is None:
                raise _error("only < <= > >= == != compare here", node, text, start)
            return compared
        case ast.Call(func=ast.Name(id="shl"), args=[_, by]) if not isinstance(by, ast.Constant):
            raise _error("shl shifts by a constant from 0 to 63", by, text, start)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS and _takes(name) == len(args):
            return Term(operation(name), *map(build, args))
        case ast.Call(func=ast.Name(id="cdiv"), args=[over, by], keywords=[]):
            divisor = build(by)
            return arithmetic("//", build(over) + divisor - 1, divisor)
        case ast.Subscript(value=ast.Name(id=name), slice=where):
            # a table whose values are not known: scalar prefetch
            indices = where.elts if isinstance(where, ast.Tuple) else [where]
            return Term("read", Term("name", name), *map(build, indices))
    raise _error(
        "only + - * // % ^ min max select xor, comparisons, names and integers may stand here", node, text, start
    )


def _takes(name: str) -> int:
    return len(OPERATIONS[name].operands)


def _compare(op: ast.cmpop, left: Term, right: Term) -> Term | None:
    if type(op) in _COMPARE:
        return Term(_COMPARE[type(op)], left, right)
    if isinstance(op, ast.Gt):
        return Term("<", right, left)
    return Term("<=", right, left) if isinstance(op, ast.GtE) else None


def _joined(word: Op, terms: Iterable[Term]) -> Term:
    """All of the conditions, or one of them at least, from left to right."""
    return reduce(lambda a, b: Term(word, a, b), terms)


def _compared(operators: Sequence[ast.cmpop], sides: Sequence[Term]) -> Term | None:
    """A chain such as `0 <= i < 8`; None where something stands in it that compares no numbers."""
    links = [_compare(op, a, b) for op, a, b in zip(operators, sides, sides[1:], strict=False)]
    known = [link for link in links if link is not None]
    return _joined("and", known) if len(known) == len(links) else None


def _error(problem: str, node: ast.expr, text: str, start: int) -> LayoutError:
    # the syntax tree counts bytes, from the first character that is not blank
    rest = text[start:].lstrip()
    before = rest.encode()[: max(0, node.col_offset)].decode(errors="ignore")
    return LayoutError(problem, text=text, column=len(text) - len(rest) + len(before) + 1)
