"""Tokens of sharding text, and the two pieces that V1/V2 and V3 share: integer lists and metadata.

Source: openxla/xla `xla/hlo/parser/hlo_lexer.cc` (LexToken), `hlo_parser.cc` (ParseSingleOrListMetadata,
ParseIotaTileAssignmentArray).
"""

from __future__ import annotations

import re

from layoutproof.core.cursor import tokens
from layoutproof.layouts.sharding import problems
from layoutproof.layouts.xla import problems as xla_problems
from layoutproof.layouts.xla.lexer import MAX_RANK, SKIPPED, XlaCursor

# A name directly followed by '=' is one token, an attribute: XLA refuses a space between the two.
_NAME = r"""[A-Za-z_][A-Za-z0-9_.\-]*+=?|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'"""
TOKEN = tokens(_NAME, r"<=|[\[\](){},:=?]", skipped=SKIPPED)

_METADATA = {
    **dict.fromkeys(("op_type", "op_name", "source_file", "deduplicated_name", "scheduling_name"), "string"),
    **dict.fromkeys(("source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id"), "int"),
    "profile_type": "list",
}


def cursor_at(text: str, strict: bool, at: int = 0) -> XlaCursor:
    """A cursor over sharding text that starts at offset `at` of `text`."""
    return XlaCursor(text, strict, pattern=TOKEN, at=at)


def quoted(cursor: XlaCursor, what: str) -> str:
    """The text in quotes here."""
    if cursor.kind != "name" or cursor.word[0] not in "'\"":
        raise cursor.expected(what)
    word = re.sub(r"\\(.)", r"\1", cursor.word[1:-1])
    cursor.advance()
    return word


def integers(cursor: XlaCursor, what: str) -> list[int]:
    """One or more integers with commas between them."""
    found = [cursor.integer(what)]
    while cursor.kind == ",":
        cursor.advance()
        found.append(cursor.integer(what))
    return found


def extents(cursor: XlaCursor, what: str) -> list[int]:
    """`integers` that are the extents of a box: as many as XLA arrays have dimensions at most."""
    start = cursor.start
    found = integers(cursor, what)
    if len(found) > MAX_RANK:
        raise cursor.refuse(xla_problems.RANK(MAX_RANK), start)
    return found


def iota_parts(cursor: XlaCursor) -> tuple[list[int], list[int]]:
    """`[r0,r1,..]T(p0,p1,..)`: the transpose is there exactly when the reshape has two dimensions or more."""
    cursor.take("[", "and the dimensions that the devices 0,1,.. are reshaped to")
    reshape = extents(cursor, "an integer, a dimension of the reshape")
    cursor.take("]", "after the reshape dimensions")
    if len(reshape) == 1:
        return reshape, [0]
    if cursor.kind != "name" or cursor.word != "T":
        raise cursor.expected(f"T( and the transpose: a reshape to {len(reshape)} dimensions needs one")
    cursor.advance()
    cursor.take("(", "and the transpose")
    start = cursor.start
    perm = integers(cursor, "an integer, a dimension number in T(..)")
    for number in perm:
        if not 0 <= number < len(reshape):
            raise cursor.refuse(problems.TILE_NAME(number, len(reshape) - 1), start)
    if len(perm) != len(reshape):
        raise cursor.refuse(problems.TILE_PERM(len(perm), len(reshape)), start)
    if len(set(perm)) != len(perm):
        # of [2,2]T(0,0) XLA has the devices of T(1,0), of [2,3]T(0,0) it aborts
        named = ",".join(map(str, perm))
        what = f"T({named}) is not a permutation of 0..{len(reshape) - 1}: XLA aborts on it, or takes another order"
        raise cursor.refuse(what, start)
    cursor.take(")", "after the transpose")
    return reshape, perm


def metadata(cursor: XlaCursor) -> list[str]:
    """The operations of `metadata={..}` or `metadata={{..}, {..}}`, each as the text between its braces."""
    if cursor.kind != "{":
        raise cursor.expected("{ and the metadata")
    if cursor.peek() != "{":
        return [_operation(cursor)]
    cursor.advance()
    found = [_operation(cursor)]
    while cursor.kind == ",":
        cursor.advance()
        found.append(_operation(cursor))
    cursor.take("}", "after the list of metadata")
    return found


def _operation(cursor: XlaCursor) -> str:
    cursor.take("{", "and the metadata of one operation")
    parts: list[str] = []
    names: set[str] = set()
    while cursor.kind != "}":
        if parts and cursor.kind == ",":
            cursor.advance()
        name = cursor.word[:-1]
        if cursor.kind != "name" or name not in _METADATA or not cursor.word.endswith("="):
            raise cursor.expected(f"metadata, one of {', '.join(f'{n}=' for n in _METADATA)}")
        if name in names:
            raise cursor.refuse(problems.GIVEN_TWICE(name))
        names.add(name)
        parts.append(_value(cursor, name))
    cursor.advance()
    return " ".join(parts)


def _value(cursor: XlaCursor, name: str) -> str:
    start = cursor.start
    cursor.advance()
    match _METADATA[name]:
        case "string":
            if cursor.kind != "name" or cursor.word[0] != '"':
                raise cursor.expected(f'a text in "quotes" for {name}')
            cursor.advance()
        case "int":
            cursor.integer(f"an integer for {name}")
        case _:
            cursor.take("{", f"and integers for {name}")
            if cursor.kind != "}":
                integers(cursor, f"an integer for {name}")
            cursor.take("}", f"after {name}")
    return cursor.text[start : cursor.start].rstrip(" \t\r\n,}") + ("}" if _METADATA[name] == "list" else "")
