"""The parts of a kernel as text and plain data: sizes, arrays, grids, the dimensions of a block.

    size      8   "M"   "2*M + 1"   "M//128"   "(M + 127)//128"   "ceil(M/128)"   "cdiv(M, 128)"
    array     "f32[7,5]"   "bf16[M,K]"
    grid      [4, 2]   {i: 4, j: 2}   "(4, 2)"   8
    block     [2, null]   "(2, None)"   null = the whole array; one dimension is a size, null, "Squeezed()",
              "Blocked(8)", "Element(8, (1, 0))", "BoundedSlice(128)", {element: 8, padding: [1, 0]}, {bounded: 128}

Every reader raises LayoutError with the value, the rule and what is known.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_size
from layoutproof.core.kernel import Block
from layoutproof.core.size import Extent, surely_less
from layoutproof.core.space import dimension_names

T = TypeVar("T")
_ARRAY = re.compile(r"\s*([a-z][a-z0-9_]*)\s*\[([^\[\]]*)\]\s*")
_ROUNDED = re.compile(r"\b(ceil|floor|cdiv)\s*\(")
_KIND = re.compile(r"\s*(?:pl\.|pltpu\.)?([A-Za-z]\w*)\s*\((.*)\)\s*", re.DOTALL)
_PADDED = re.compile(r"(.*?),\s*(?:padding\s*=\s*)?\(\s*(-?\d+)\s*,\s*(-?\d+)\s*\)\s*", re.DOTALL)
_KINDS = {"Blocked": "blocked", "Squeezed": "squeezed", "Element": "element", "BoundedSlice": "bounded"}
_DIMENSION = 'a size, null, "Element(8, (1, 0))", "BoundedSlice(128)", "Blocked(8)" or "Squeezed()"'


def check_keys(value: object, known: Sequence[str], what: str, needed: Iterable[str] = ()) -> Mapping[str, Any]:
    """The mapping itself, when it has only known keys and all that are needed.

    >>> check_keys({"gird": 4}, ("grid", "inputs"), "a kernel")
    Traceback (most recent call last):
    ...
    layoutproof.core.errors.LayoutError: a kernel has no 'gird'; did you mean 'grid'? Known: grid, inputs
    """
    if not isinstance(value, Mapping):
        raise LayoutError(f"{what} is a mapping with {', '.join(known)}; found {shown(value)}")
    for key in value:
        if key not in known:
            near = closest(str(key), known)
            raise LayoutError(f"{what} has no {shown(key)};{near} Known: {', '.join(known)}")
    for key in needed:
        if key not in value:
            raise LayoutError(f"{what} needs {key!r}; it has {', '.join(map(str, value)) or 'nothing'}")
    return value


def word_of(value: object, known: Sequence[str], what: str) -> str:
    """One of some known words; LayoutError lists them."""
    if isinstance(value, str) and value in known:
        return value
    raise LayoutError(f"{what} is one of {', '.join(known)}, not {shown(value)}{closest(str(value), known)}")


def closest(word: str, known: Sequence[str]) -> str:
    """` did you mean 'x'?`, or "" when nothing is near."""
    import difflib

    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return f" did you mean {near[0]!r}?" if near else ""


def shown(value: object) -> str:
    """A value as a message shows it."""
    return shorten(repr(value), 60)


def within(where: str, reader: Callable[[], T]) -> T:
    """What `reader` returns; its LayoutError says that it happened in `where`."""
    try:
        return reader()
    except LayoutError as error:
        raise LayoutError(f"{where}: {error.problem}", text=error.text, column=error.column) from None


def read_size(value: object, what: str, least: int | None = None) -> Extent:
    """An int or a size expression, rounded quotients included; `least`: what it must surely be at least.

    >>> read_size("cdiv(M, 128)", "grid")
    Size(ceil(M/128))
    """
    if type(value) is int:
        size: Any = value
    elif isinstance(value, str):
        size = within(what, lambda: parse_size(without_rounding(value)))
    else:
        raise LayoutError(f"{what} is an integer or a size expression such as M//128, not {shown(value)}")
    if least is not None and not surely_less(least - 1, size):
        raise LayoutError(f"{what} must be at least {least}, not {size}")
    return size  # type: ignore[no-any-return]


def without_rounding(text: str) -> str:
    """The same expression with ceil(a/b), floor(a/b) and cdiv(a, b) written with // only."""
    if _ROUNDED.search(text) is None:
        return text
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text  # whoever reads the expression next says what is wrong, and where
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
    if not (inner[:1] in ("(", "[") and closing(inner, 0) == len(inner) - 1):
        raise LayoutError("a list is written (2, 3)", text=text)
    parts, depth = [""], 0
    for letter in inner[1:-1]:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if not parts[-1].strip():
        parts.pop()  # `(2,)`, and `()`
    return [part.strip() for part in parts]


def closing(text: str, start: int) -> int:
    """Where the bracket opened at `start` is closed; -1 where it is not."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "([") - (text[place] in ")]")
        if depth == 0:
            return place
    return -1


def read_array(value: object, types: Mapping[str, int], what: str = "array") -> tuple[str, tuple[Extent, ...]]:
    """Element type and extents of `f32[7,5]`. types: the known element types.

    >>> read_array("bf16[M,128]", {"bf16": 16})
    ('bf16', (Size(M), 128))
    """
    found = _ARRAY.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise LayoutError(f"{what} is written f32[7,5] (a layout does not belong there), not {shown(value)}")
    if found[1] not in types:
        near = closest(found[1], tuple(types))
        raise LayoutError(f"{what}: unknown element type {found[1]!r};{near} write for instance f32, bf16, s32 or pred")
    entries = parts_of(f"({found[2]})")
    return found[1], tuple(read_size(e, f"{what}, dimension {k}", 0) for k, e in enumerate(entries))


def read_grid(value: object) -> tuple[tuple[Extent, ...], tuple[str, ...]]:
    """Extents and names of a grid. Sizes below 1 are read: that they run nothing is for a property to say.

    >>> read_grid({"i": 4, "b": "M//8"})
    ((4, Size(floor((M)/8))), ('i', 'b'))
    """
    if isinstance(value, Mapping):
        names = tuple(name_of(name, "a grid dimension") for name in value)
        return tuple(read_size(size, f"grid, {name!r}") for name, size in value.items()), names
    if isinstance(value, str) and value.strip()[:1] in ("(", "["):
        value = within("grid", lambda: parts_of(str(value)))
    entries = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    extents = tuple(read_size(entry, f"grid, dimension {k}") for k, entry in enumerate(entries))
    return extents, dimension_names(len(extents))


def name_of(value: object, what: str) -> str:
    """A name that index maps may use; LayoutError for anything else."""
    if isinstance(value, str) and value.isidentifier() and not keyword.iskeyword(value):
        return value
    raise LayoutError(f"{what} is named by letters, digits and '_', not {shown(value)}")


def read_block(value: object, dims: Sequence[Extent]) -> tuple[Block, ...]:
    """One `Block` per dimension of the array; null is the whole array. LayoutError where the ranks differ.

    >>> [str(b) for b in read_block("(2, None, Element(8, (1, 0)))", (7, 5, 9))]
    ['2', 'None', 'Element(8, (1, 0))']
    """
    if value is None:
        return tuple(Block("blocked", extent) for extent in dims)
    if isinstance(value, str):
        if "->" in value:
            raise _old_order()
        value = within("block", lambda: parts_of(str(value)))
    if callable(value):
        raise _old_order()
    if not isinstance(value, Sequence):
        raise LayoutError(f"block is a list of dimensions such as [2, 3], or null for the whole array; not {shown(value)}")
    if len(value) != len(dims):
        raise LayoutError(
            f"block has {len(value)} dimensions, {shown(list(value))}, and the array has {len(dims)}; "
            "a block has one per dimension of its array, null to squeeze it"
        )
    return tuple(_dimension(entry, f"block, dimension {k}") for k, entry in enumerate(value))


def _old_order() -> LayoutError:
    return LayoutError(
        "block is a list of dimensions and index a map; BlockSpec(index_map, block_shape) is the order before "
        "jax 0.4.31, today it is BlockSpec(block_shape, index_map)"
    )


def check_order(index: object) -> None:
    """Refuses a block where the index map belongs, which is BlockSpec's order of before jax 0.4.31."""
    if isinstance(index, Sequence) and not isinstance(index, str):
        raise _old_order()


def _dimension(value: object, what: str) -> Block:
    if isinstance(value, Mapping):
        return _mapped(value, what)
    if value is None or (isinstance(value, str) and value.strip().lower() in ("none", "null", "squeezed")):
        return Block("squeezed", 1)
    found = _KIND.fullmatch(value) if isinstance(value, str) else None
    if found is not None and found[1] == "Indirect":
        raise LayoutError(f"{what}: Indirect gathers single elements by an array of indices, which is not modelled")
    if found is None or found[1] not in _KINDS:
        if isinstance(value, int | str) and type(value) is not bool:
            return Block("blocked", read_size(value, what, 1))
        raise LayoutError(f"{what} is {_DIMENSION}; not {shown(value)}")
    kind, inside = _KINDS[found[1]], found[2].strip()
    if kind == "squeezed":
        if inside:
            raise LayoutError(f"{what}: Squeezed() takes nothing, not {shown(inside)}")
        return Block("squeezed", 1)
    padded = _PADDED.fullmatch(inside) if kind == "element" else None
    low, high = (int(padded[2]), int(padded[3])) if padded else (0, 0)
    inside = padded[1] if padded else inside
    size = read_size(inside.partition("block_size=")[2] or inside, what, 1)
    return Block(kind, size, *_padding(low, high, what))


def _mapped(value: Mapping[Any, Any], what: str) -> Block:
    kinds = ("blocked", "element", "bounded")
    known = (*kinds, "padding")
    check_keys(value, known, what)
    named = [kind for kind in kinds if kind in value]
    if len(named) != 1 or ("padding" in value and named != ["element"]):
        raise LayoutError(f"{what} is {{element: 8, padding: [1, 0]}}, {{bounded: 128}} or {{blocked: 8}}, not {shown(value)}")
    padding = value.get("padding", (0, 0))
    if not isinstance(padding, Sequence) or len(padding) != 2 or any(type(p) is not int for p in padding):
        raise LayoutError(f"{what}: padding is two integers, [low, high], not {shown(padding)}")
    return Block(named[0], read_size(value[named[0]], what, 1), *_padding(*padding, what))


def _padding(low: int, high: int, what: str) -> tuple[int, int]:
    if low < 0 or high < 0:
        raise LayoutError(f"{what}: padding is at least 0 elements, not ({low}, {high})")
    return low, high


def unblocked(mode: object, block: Sequence[Block]) -> tuple[tuple[Block, ...], str]:
    """The block that an old `indexing_mode` means, and what that is called today ("" where nothing changes).

    >>> unblocked("pl.Unblocked(((1, 0),))", [Block("blocked", 2)])[0]
    (Block(kind='element', size=2, low=1, high=0),)
    """
    found = _KIND.fullmatch(mode) if isinstance(mode, str) else None
    if found is None or found[1] not in ("Blocked", "Unblocked") or (found[1] == "Blocked" and found[2].strip()):
        raise LayoutError(
            f"indexing_mode is Blocked(), Unblocked() or Unblocked(((low, high), ..)), not {shown(mode)}; "
            "since jax 0.6.1 a block says Element(size, (low, high)) instead"
        )
    if found[1] == "Blocked":
        return tuple(block), "indexing_mode=Blocked() is gone since jax 0.6.1: a block of plain sizes is blocked"
    if any(b.kind not in ("blocked", "squeezed") for b in block):
        raise LayoutError(f"indexing_mode and {', '.join(map(str, block))} say the same thing twice; leave the mode out")
    padding = _paddings(found[2], len(block))
    for k, (b, (low, high)) in enumerate(zip(block, padding, strict=True)):
        if b.kind == "squeezed" and (low, high) != (0, 0):
            raise LayoutError(f"indexing_mode: dimension {k} is squeezed and cannot be padded by ({low}, {high})")
    new = tuple(
        b if b.kind == "squeezed" else Block("element", b.size, *_padding(low, high, "indexing_mode"))
        for b, (low, high) in zip(block, padding, strict=True)
    )
    return new, f"indexing_mode=Unblocked(..) is called Element since jax 0.6.1: block ({', '.join(map(str, new))})"


def _paddings(text: str, rank: int) -> list[tuple[int, int]]:
    inner = text.strip().removeprefix("padding=").strip()
    if inner in ("", "None"):
        return [(0, 0)] * rank
    try:
        pairs = [(int(low), int(high)) for low, high in ast.literal_eval(inner)]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise LayoutError(f"the padding of Unblocked is written ((1, 0), (2, 0)), not {shown(text)}") from None
    if len(pairs) != rank:
        raise LayoutError(f"Unblocked pads {len(pairs)} dimensions, and the block has {rank}")
    return pairs
