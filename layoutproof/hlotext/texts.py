"""Texts within a line of HLO: brackets, operands, and the shapes of values, with nothing of them read as a layout."""

from __future__ import annotations

import re
from collections.abc import Iterator

from layoutproof.core.brackets import between_commas, closing, without_remarks

_NAMED = re.compile(r"%([\w.\-]+(?:#\d+)*)")
_BARE = re.compile(r"(?:^|[\s,)\]}])([A-Za-z_][\w.\-]*(?:#\d+)*)\s*(?=,|$)")
_ARRAY = re.compile(r"(?<!\w)[a-z]\w*+\[[^\[\]]*+\](?:\{[^{}]*+\})?")
_LAYOUT = re.compile(r"\{[^{}]*+\}")
_BLANK = re.compile(r"\s+")
_SPACE = re.compile(r"S\(\d+\)")


def balanced(text: str, start: int) -> str:
    """The text from the bracket at `start` to the one that closes it, strings skipped; "" where none does.

    >>> balanced('x={a="}", b={1}} y', 2)
    '{a="}", b={1}}'
    """
    return text[start : closing(text, start) + 1]


def parts(text: str) -> list[str]:
    """The parts between commas outside of brackets, comments left out; [] of an empty text.

    >>> parts("f32[2,3]{1,0:T(8,128)}, /*index=1*/(s32[], f32[])")
    ['f32[2,3]{1,0:T(8,128)}', '(s32[], f32[])']
    """
    found = between_commas(without_remarks(text))
    return [] if found == [""] else found


def operand_names(inside: str) -> tuple[str, ...]:
    """Names of the operands in the text between an opcode's parentheses; with or without `%`, with or without shapes.

    >>> operand_names("f32[2]{0} %x.1, f32[2]{0} %y"), operand_names("x.1, /*index=1*/f32[2]{0:T(128)} y")
    (('x.1', 'y'), ('x.1', 'y'))
    >>> operand_names("%while.2#1, %x")
    ('while.2#1', 'x')
    """
    named = _NAMED.findall(inside)
    if named or not inside:
        return tuple(named)
    return tuple(_BARE.findall(without_remarks(inside)))


def element_of(operand: str) -> tuple[str, tuple[int, ...]]:
    """The instruction that an operand names, and which element of its tuple, from the outermost.

    jaxlib 0.12.0.1 prints so what earlier versions print as a get-tuple-element of its own.

    >>> element_of("while.2#1"), element_of("x")
    (('while.2', (1,)), ('x', ()))
    """
    if "#" not in operand:
        return operand, ()
    name, *indices = operand.split("#")
    return name, tuple(map(int, indices))


def element_text(shape: str, indices: tuple[int, ...]) -> str:
    """The text of an element of a tuple's shape; "" where it has none.

    >>> element_text("(s32[], (f32[2]{0}, u8[]))", (1, 0)), element_text("f32[2]{0}", (1,))
    ('f32[2]{0}', '')
    """
    for index in indices:
        inner = parts(shape[1:-1]) if shape.startswith("(") and shape.endswith(")") else []
        shape = inner[index] if index < len(inner) else ""
    return shape


def arrays(shape: str) -> Iterator[str]:
    """The texts of the arrays in a shape, tuples taken apart.

    >>> list(arrays("(f32[3]{0}, (u32[]{:S(2)}, token[]))"))
    ['f32[3]{0}', 'u32[]{:S(2)}', 'token[]']
    """
    if shape.startswith("("):
        yield from _ARRAY.findall(shape)
    elif shape:
        yield shape


def without_space(shape: str) -> str:
    """A shape's text without its memory space.

    >>> without_space("f32[8,128]{1,0:T(8,128)S(1)}"), without_space("s32[4]{0:S(2)}")
    ('f32[8,128]{1,0:T(8,128)}', 's32[4]{0}')
    """
    return _SPACE.sub("", shape).replace(":}", "}").replace("{}", "") if "S(" in shape else shape


def compatible(one: str, other: str) -> bool:
    """Whether two texts are of one shape, whatever their layouts, comments and blanks; of buffers True.

    >>> compatible("(f32[2]{0}, /*index=1*/s32[])", "(f32[2], s32[])"), compatible("f32[1]", "f32[1,2,3]{2,1,0}")
    (True, False)
    """
    if one == other or "b(" in one or "b(" in other:
        return True
    first, second = (_BLANK.sub("", logical(without_remarks(text))).replace("<=", "") for text in (one, other))
    return first == second


def logical(shape: str) -> str:
    """A shape's text without layouts."""
    return _LAYOUT.sub("", shape)
