"""The block of an operand as text and plain data: one entry per dimension of its array, or null for the whole array.

    a size                    8  "M//4"  "Blocked(8)"  {blocked: 8}
    squeezed                  null  "None"  "Squeezed()"
    element, with padding     "Element(8)"  "Element(8, (1, 0))"  {element: 8, padding: [1, 0]}
    bounded slice             "BoundedSlice(128)"  {bounded: 128}

Jax before 0.6.1 wrote `indexing_mode=pl.Unblocked(((1, 0), (2, 0)))` for the third kind, for all dimensions at once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from layoutproof.core.errors import LayoutError, closest
from layoutproof.core.expression import parse_size
from layoutproof.core.term import Amount
from layoutproof.kernel import problems
from layoutproof.kernel.kernel import Block
from layoutproof.kernel.kernel_parts import Parser, check_keys, parts_of, read_size, shown, within

_KIND = re.compile(r"\s*(?:pl\.|pltpu\.)?([A-Za-z]\w*)\s*\((.*)\)\s*", re.DOTALL)
_PADDED = re.compile(r"(.*?),\s*(?:padding\s*=\s*)?\(\s*(-?\d{1,18})\s*,\s*(-?\d{1,18})\s*\)\s*", re.DOTALL)
_KINDS = {"Blocked": "blocked", "Squeezed": "squeezed", "Element": "element", "BoundedSlice": "bounded"}
_DIMENSION = 'a size, null, "Element(8, (1, 0))", "BoundedSlice(128)", "Blocked(8)" or "Squeezed()"'


def read_block(value: object, dims: Sequence[Amount], parse: Parser = parse_size) -> tuple[Block, ...]:
    """One `Block` per dimension of the array; null is the whole array. LayoutError where the ranks differ.

    >>> [str(b) for b in read_block("(2, None, Element(8, (1, 0)))", (7, 5, 9))]
    ['2', 'None', 'Element(8, (1, 0))']
    """
    if value is None:
        return tuple(Block("blocked", extent) for extent in dims)
    if isinstance(value, str):
        if "->" in value:
            raise _old_order()
        with within("block"):
            value = parts_of(value)
    if callable(value):
        raise _old_order()
    if not isinstance(value, Sequence):
        raise LayoutError(problems.BLOCK_NO_LIST(shown(value)))
    if len(value) != len(dims):
        raise LayoutError(problems.BLOCK_RANK(len(value), shown(list(value)), len(dims)))
    return tuple(_dimension(entry, f"block, dimension {k}", parse) for k, entry in enumerate(value))


def _old_order() -> LayoutError:
    return LayoutError(problems.BLOCK_ORDER())


def check_order(index: object) -> None:
    """Refuses a block where the index map belongs, which is BlockSpec's order of before jax 0.4.31."""
    if isinstance(index, Sequence) and not isinstance(index, str):
        raise _old_order()


def _dimension(value: object, what: str, parse: Parser) -> Block:
    if isinstance(value, Mapping):
        return _mapped(value, what, parse)
    if value is None or (isinstance(value, str) and value.strip().lower() in ("none", "null", "squeezed")):
        return Block("squeezed", 1)
    found = _KIND.fullmatch(value) if isinstance(value, str) else None
    if found is not None and found[1] == "Indirect":
        raise LayoutError(problems.INDIRECT(what))
    if found is not None and found[1][0].isupper() and found[1] not in _KINDS:
        raise LayoutError(problems.BLOCK_KIND(what, _DIMENSION, shown(value), closest(found[1], tuple(_KINDS))))
    if found is None or found[1] not in _KINDS:
        if isinstance(value, int | str) and type(value) is not bool:
            return Block("blocked", read_size(value, what, 1, parse))
        raise LayoutError(problems.BLOCK_DIMENSION(what, _DIMENSION, shown(value)))
    kind, inside = _KINDS[found[1]], found[2].strip()
    if kind == "squeezed":
        if inside:
            raise LayoutError(problems.SQUEEZED_ARGUMENT(what, shown(inside)))
        return Block("squeezed", 1)
    padded = _PADDED.fullmatch(inside) if kind == "element" else None
    low, high = (int(padded[2]), int(padded[3])) if padded else (0, 0)
    inside = padded[1] if padded else inside
    size = read_size(inside.partition("block_size=")[2] or inside, what, 1, parse)
    return Block(kind, size, *_padding(low, high, what))


def _mapped(value: Mapping[object, object], what: str, parse: Parser) -> Block:
    kinds = ("blocked", "element", "bounded")
    known = (*kinds, "padding")
    check_keys(value, known, what)
    named = [kind for kind in kinds if kind in value]
    if len(named) != 1 or ("padding" in value and named != ["element"]):
        raise LayoutError(problems.BLOCK_MAPPING(what, shown(value)))
    padding = value.get("padding", (0, 0))
    if not isinstance(padding, Sequence) or len(padding) != 2 or any(type(p) is not int for p in padding):
        raise LayoutError(problems.PADDING_FORM(what, shown(padding)))
    return Block(named[0], read_size(value[named[0]], what, 1, parse), *_padding(padding[0], padding[1], what))


def _padding(low: int, high: int, what: str) -> tuple[int, int]:
    if low < 0 or high < 0:
        raise LayoutError(problems.PADDING_NEGATIVE(what, low, high))
    return low, high


def unblocked(mode: object, block: Sequence[Block]) -> tuple[tuple[Block, ...], str]:
    """The block that an old `indexing_mode` means, and what that is called today ("" where nothing changes).

    >>> unblocked("pl.Unblocked(((1, 0),))", [Block("blocked", 2)])[0]
    (Block(kind='element', size=2, low=1, high=0),)
    """
    found = _KIND.fullmatch(mode) if isinstance(mode, str) else None
    if found is None or found[1] not in ("Blocked", "Unblocked") or (found[1] == "Blocked" and found[2].strip()):
        raise LayoutError(problems.INDEXING_MODE(shown(mode)))
    if found[1] == "Blocked":
        return tuple(block), "indexing_mode=Blocked() is gone since jax 0.6.1: a block of plain sizes is blocked"
    if any(b.kind not in ("blocked", "squeezed") for b in block):
        raise LayoutError(problems.MODE_TWICE(", ".join(map(str, block))))
    padding = _paddings(found[2], len(block))
    for k, (b, (low, high)) in enumerate(zip(block, padding, strict=True)):
        if b.kind == "squeezed" and (low, high) != (0, 0):
            raise LayoutError(problems.MODE_SQUEEZED(k, low, high))
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
        pairs = [(low, high) for low, high in ast.literal_eval(inner)]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pairs = [("", "")]
    if any(type(entry) is not int for pair in pairs for entry in pair):
        raise LayoutError(problems.UNBLOCKED_FORM(shown(text)))
    if len(pairs) != rank:
        raise LayoutError(problems.UNBLOCKED_RANK(len(pairs), rank))
    return pairs
