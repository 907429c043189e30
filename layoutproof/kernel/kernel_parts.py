"""The small parts of a kernel as text and plain data: names, sizes, arrays, grids.

    size      8   "M"   "2*M + 1"   "M//128"   "(M + 127)//128"   "ceil(M/128)"   "cdiv(M, 128)"
    array     "f32[7,5]"   "bf16[M,K]"
    grid      [4, 2]   {i: 4, j: 2}   "(4, 2)"   8

`kernel_block` reads blocks, `kernel_index` index maps, `kernel_text` operands and whole kernels. Every reader raises
LayoutError with the value, the rule and what is known.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from layoutproof.core.brackets import between_commas, closing
from layoutproof.core.cursor import TextSpan
from layoutproof.core.element_types import near_type
from layoutproof.core.errors import LayoutError, closest, shorten
from layoutproof.core.expression import parse_expression, parse_size
from layoutproof.core.message import located
from layoutproof.core.size import Size, surely_less
from layoutproof.core.space import dimension_names
from layoutproof.core.term import Amount, Term, reads
from layoutproof.kernel import problems

Parser = Callable[[str], Amount]
"""How the text of a size is read."""

_ARRAY = re.compile(r"\s*([a-z][a-z0-9_]*)\s*\[([^\[\]]*)\]\s*")
_ROUNDED = re.compile(r"\b(ceil|floor|cdiv)\s*\(")


def check_keys(value: object, known: Sequence[str], what: str, needed: Iterable[str] = ()) -> Mapping[str, object]:
    """The mapping itself, when it has only known keys and all that are needed.

    >>> check_keys({"gird": 4}, ("grid", "inputs"), "a kernel")
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: a kernel has no 'gird'; did you mean 'grid'?; known: grid, inputs
    """
    if not isinstance(value, Mapping):
        raise LayoutError(problems.PART_NO_MAPPING(what, ", ".join(known), shown(value)))
    for key in value:
        if key not in known:
            near = closest(str(key), known)
            raise LayoutError(problems.PART_UNKNOWN_KEY(what, shown(key), near, ", ".join(known)))
    for key in needed:
        if key not in value:
            raise LayoutError(problems.PART_MISSING_KEY(what, key, ", ".join(map(str, value)) or "nothing"))
    return value


def word_of(value: object, known: Sequence[str], what: str) -> str:
    """One of some known words; LayoutError lists them."""
    if isinstance(value, str) and value in known:
        return value
    raise LayoutError(problems.PART_CHOICE(what, ", ".join(known), shown(value), closest(str(value), known)))


def shown(value: object) -> str:
    """A value as a message shows it."""
    return shorten(repr(value), 60)


def list_of(value: object, what: str) -> Sequence[object]:
    """The list itself; LayoutError for anything else."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    raise LayoutError(problems.PART_NO_LIST(what, shown(value)))


@contextmanager
def within(where: str) -> Iterator[None]:
    """A LayoutError raised inside says that it happened in `where`."""
    try:
        yield
    except LayoutError as error:
        raise LayoutError(located(where, error.problem), text=error.text, column=error.column) from None


def read_size(value: object, what: str, least: int | None = None, parse: Parser = parse_size) -> Any:
    """An int or a size expression, rounded quotients included; `least`: a lower bound that it must surely keep.

    parse: `parse_amount` where names stand for numbers that are still to be chosen; then `least` waits for `bind`.

    >>> read_size("cdiv(M, 128)", "grid"), read_size("cdiv(M, bm)", "grid", parse=parse_amount)
    (Size(ceil(M/128)), Term((M + bm - 1) // bm))
    """
    if type(value) is int or isinstance(value, Size):
        size: Any = value
    elif isinstance(value, str):
        with within(what):
            size = parse(without_rounding(value) if parse is parse_size else value)
    else:
        raise LayoutError(problems.SIZE_NO_NUMBER(what, shown(value)))
    if least is not None and not isinstance(size, Term) and not surely_less(least - 1, size):
        raise LayoutError(problems.SIZE_LEAST(what, least, size))
    return size


def parse_amount(text: str) -> Term:
    """A size whose names are parameters, kept as it is written: `cdiv(M, bm)`. LayoutError as `parse_expression`."""
    # cdiv is read as it stands: who compares amounts as texts knows one way of writing it
    plain = text if "cdiv" in text and "ceil" not in text and "." not in text else without_rounding(text)
    term = parse_expression(plain)
    if reads((term,)):
        raise LayoutError(problems.SIZE_READS_TABLE(text), text=text)
    return term


def without_rounding(text: str) -> str:
    """The same expression with ceil(a/b), floor(a/b) and cdiv(a, b) written with // only."""
    if _ROUNDED.search(text) is None:
        return text
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text  # the next reader of the expression reports the mistake and its place
    return ast.unparse(_Rounded().visit(tree))


class _Rounded(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        match name, node.args:
            case "cdiv", [left, right]:
                return _up(left, right)
            case "ceil", [ast.BinOp(left=left, op=ast.Div(), right=right)]:
                return _up(left, right)
            case "floor", [ast.BinOp(left=left, op=ast.Div(), right=right)]:
                return ast.BinOp(left, ast.FloorDiv(), right)
        return node


def _up(left: ast.expr, right: ast.expr) -> ast.expr:
    less_one = ast.BinOp(right, ast.Sub(), ast.Constant(1))
    return ast.BinOp(ast.BinOp(left, ast.Add(), less_one), ast.FloorDiv(), right)


def parts_of(text: str) -> list[str]:
    """The entries of a text such as `(2, Element(8, (1, 0)))`, split at the outer commas.

    >>> parts_of("(2, Element(8, (1, 0)),)")
    ['2', 'Element(8, (1, 0))']
    """
    inner = text.strip()
    if not (inner[:1] in ("(", "[") and closing(inner, 0, curly=False) == len(inner) - 1):
        raise TextSpan.whole(text).refuse(problems.LIST_FORM())
    parts = between_commas(inner[1:-1], curly=False)
    # `(2,)`, and `()`
    return parts if parts[-1] else parts[:-1]


def read_array(
    value: object, types: Mapping[str, int], what: str = "array", parse: Parser = parse_size
) -> tuple[str, tuple[Amount, ...]]:
    """Element type and extents of `f32[7,5]`. types: the known element types.

    >>> read_array("bf16[M,128]", {"bf16": 16})
    ('bf16', (Size(M), 128))
    """
    found = _ARRAY.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise LayoutError(problems.ARRAY_FORM(what, shown(value)))
    if found[1] not in types:
        raise LayoutError(problems.ARRAY_TYPE(what, found[1], near_type(found[1])))
    entries = parts_of(f"({found[2]})")
    return found[1], tuple(read_size(e, f"{what}, dimension {k}", 0, parse) for k, e in enumerate(entries))


def read_grid(value: object, parse: Parser = parse_size) -> tuple[tuple[Amount, ...], tuple[str, ...]]:
    """Extents and names of a grid. Sizes below 1 are read: that they run nothing is for a property to say.

    >>> read_grid({"i": 4, "b": "M//8"})
    ((4, Size(floor(M/8))), ('i', 'b'))
    """
    if isinstance(value, Mapping):
        names = tuple(name_of(name, "a grid dimension") for name in value)
        return tuple(read_size(size, f"grid, {name!r}", parse=parse) for name, size in value.items()), names
    if isinstance(value, str) and value.strip()[:1] in ("(", "["):
        with within("grid"):
            value = parts_of(value)
    entries = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    extents = tuple(read_size(entry, f"grid, dimension {k}", parse=parse) for k, entry in enumerate(entries))
    return extents, dimension_names(len(extents))


def name_of(value: object, what: str) -> str:
    """A name that index maps may use; LayoutError for anything else."""
    if isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value):
        return value
    raise LayoutError(problems.PART_NAME(what, shown(value)))
