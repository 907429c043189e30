"""What a frame of Python does next, as far as its source says it: it raises, or it asserts.

By lines, of which each version of Python keeps the same; where a line holds parts of several statements, nothing is
said.
"""

from __future__ import annotations

import ast
import functools
import linecache
from types import FrameType

_NESTED = (ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.comprehension, ast.NamedExpr, ast.Lambda)
"""Parts of an asserted equality that may compare numbers themselves."""


def raises(frame: FrameType) -> bool:
    """Whether a frame evaluates a `raise`, which nothing that it finds there keeps it from."""
    return isinstance(_statement(frame.f_code.co_filename, frame.f_lineno), ast.Raise)


def asserts_equal(frame: FrameType) -> bool:
    """Whether the only comparison of the statement that a frame evaluates is an equality with a shape that it asserts.

    A number that it names otherwise, such as `assert rows == 128`, is a condition of the code.
    """
    found = _statement(frame.f_code.co_filename, frame.f_lineno)
    if not isinstance(found, ast.Assert) or not isinstance(found.test, ast.Compare):
        return False
    sides = (found.test.left, *found.test.comparators)
    nested = any(isinstance(part, _NESTED) for side in sides for part in ast.walk(side))
    shapes = any(_is_shape(side) for side in sides)
    return [type(op) for op in found.test.ops] == [ast.Eq] and found.msg is None and not nested and shapes


def _is_shape(side: ast.expr) -> bool:
    """`x.shape`, or a part of it."""
    side = side.value if isinstance(side, ast.Subscript) else side
    return isinstance(side, ast.Attribute) and side.attr == "shape"


def _statement(file: str, line: int) -> ast.stmt | None:
    """The only statement that has parts on a line, None where there is none, or several."""
    found = _statements(file).get(line, ())
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=64)
def _statements(file: str) -> dict[int, list[ast.stmt]]:
    """The statements of each line of a file; of those that hold others the first lines only."""
    lines: dict[int, list[ast.stmt]] = {}
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return lines
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        held = [part.lineno for part in ast.walk(node) if part is not node and isinstance(part, ast.stmt)]
        end = node.end_lineno or node.lineno
        for line in range(node.lineno, max(node.lineno, min(held, default=end + 1) - 1) + 1):
            lines.setdefault(line, []).append(node)
    return lines
