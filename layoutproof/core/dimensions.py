"""Dimensions of arrays whose sizes are names, from their texts as `jax.export.symbolic_shape` has them."""

from __future__ import annotations

import ast
import re
from typing import Any

from layoutproof.core.errors import Unsupported
from layoutproof.core.size import Extent, symbol

OURS = re.compile(r"[a-z]{1,32}[0-9]{1,32}")
"""Names that are numbered here: of grid dimensions (g0), of loops, of numbers from data. No size has such a name."""


def dimension(n: object) -> Extent:
    """An extent: an int as it is, anything else by its text.

    Raises Unsupported for what is no polynomial with floors. Source: jax/_src/export/shape_poly.py, jax 0.10.2.

    >>> dimension(8), dimension("2*K + 1"), dimension("floordiv(K + 127, 128)")
    (8, Size(2*K + 1), Size(ceil(K/128)))
    """
    if isinstance(n, int):
        return int(n)
    try:
        return _value(ast.parse(str(n).replace("^", "**"), mode="eval").body)  # type: ignore[no-any-return]
    except (SyntaxError, ValueError, RecursionError):
        raise Unsupported(f"has the dimension {str(n)[:80]}, which is not read") from None


def _value(node: ast.AST) -> Any:
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name) if not OURS.fullmatch(name):
            return symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _value(operand) * -1
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left) + _value(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _value(left) + _value(right) * -1
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left) * _value(right)
        case ast.Call(func=ast.Name(id="floordiv"), args=[left, right]):
            return _value(left) // _value(right)
        case ast.Call(func=ast.Name(id="mod"), args=[left, right]):
            over, by = _value(left), _value(right)
            return over + over // by * by * -1
    raise ValueError(ast.dump(node))
