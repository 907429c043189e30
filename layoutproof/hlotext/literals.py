"""The text between the parentheses of a constant: as many braces and numbers as its shape has.

Source: `ParseDenseLiteral` and `SetValueInLiteral` of `hlo_parser.cc` of openxla/xla (2026-08).
"""

from __future__ import annotations

import re
from math import isinf, ldexp

from layoutproof.core.brackets import without_remarks
from layoutproof.core.errors import shorten

_SHAPE = re.compile(r"([a-z]\w*)\[([\d,]*)\]")
_PIECE = re.compile(r"[{}]|-?nan\([^()]*\)|\([^()]*\)|[^\s{},()]+|[^\s,]")
_INTEGER = re.compile(r"[su](\d+)")
_NUMBER = re.compile(
    r"[+-]?(?:0x[\da-fA-F]+(?:\.[\da-fA-F]*)?(?:p[+-]?\d+)?|\d++(?:\.\d*+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?"
    r"|inf|nan(?:\(0x[\da-fA-F]+\))?)"
)
_MANTISSA = {"f16": (10, 15), "bf16": (7, 127), "f32": (23, 127), "f64": (52, 1023)}
"""Type -> (bits of the mantissa, largest exponent). Smaller types have more special values than these rules say."""
_ONE_NAN = ("f8e4m3fn", "f8e4m3b11fnuz")
"""Types whose nan has no payload."""
_COMPLEX = re.compile(r"\(.*\)")


def wrong_literal(shape: str, text: str) -> str:
    """The mistake in a constant's value; "" for none, and for a value that is no array written out.

    shape: the constant's, as text.  text: between the parentheses.

    >>> wrong_literal("s32[2,3]{1,0}", "{ { 1, 2, 3 }, { 4, 5, 6 } }"), wrong_literal("f32[8]{0}", "{...}")
    ('', '')
    >>> wrong_literal("s32[2]{0}", "{1, 2, 3}"), wrong_literal("u8[]", "256"), wrong_literal("s32[2,2]{1,0}", "{1, 2}")
    ('3 elements where s32[2] has 2', '256 is no u8', 'nested 1 deep where s32[2,2] has 2 dimensions')
    """
    found = _SHAPE.match(shape)
    if found is None or "..." in text:
        return ""
    text = without_remarks(text)
    kind, sizes = found[1], [int(size) for size in found[2].split(",") if size]
    whole = f"{kind}[{found[2]}]"
    if 0 in sizes:
        return ""
    if not sizes:
        return _wrong_value(kind, text.strip())
    if _NUMBER.fullmatch(text.strip()) or text.strip() in ("true", "false"):
        return ""  # XLA's parser takes a number for an array of it
    counts, depth, deepest = [0] * (len(sizes) + 1), 0, 0
    for piece in _PIECE.findall(text):  # commas are for people: XLA's parser passes over them
        if piece == "{":
            depth += 1
            deepest = max(deepest, depth)
            if depth > len(sizes):
                return f"nested more than {len(sizes)} deep where {whole} has {len(sizes)} dimensions"
            counts[depth] = 0
        elif piece == "}":
            if depth == 0:
                return f"a bracket is closed that was not opened in the value of {whole}"
            if counts[depth] != sizes[depth - 1]:
                return f"{counts[depth]} elements where {whole} has {sizes[depth - 1]}"
            depth -= 1
            counts[depth] += 1
        elif depth != len(sizes):
            return f"nested {depth} deep where {whole} has {len(sizes)} dimensions"
        else:
            wrong = _wrong_value(kind, piece)
            if wrong:
                return wrong
            counts[depth] += 1
    if depth or not deepest:
        return f"the value of {whole} ends inside its brackets" if depth else f"no value for {whole}"
    return ""


def _wrong_value(kind: str, text: str) -> str:
    """Why a text is no value of an element type; "" where it is one, or the type is not looked at."""
    said = f"{shorten(text, 40)} is no {kind}"
    if kind == "pred":
        return "" if text in ("true", "false") or _NUMBER.fullmatch(text) else said
    integer = _INTEGER.fullmatch(kind)
    if integer is not None:
        try:
            value = {"true": 1, "false": 0}.get(text)
            value = int(text, 0) if value is None else value
        except ValueError:
            return said
        bits = int(integer[1])
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if kind.startswith("s") else (0, 1 << bits)
        if bits == 64:
            low, high = -(1 << 63), 1 << 64  # XLA reads either kind as the other's bits
        return "" if low <= value < high else said
    if kind.startswith("c") and kind[1:].isdigit():
        if not (_COMPLEX.fullmatch(text) or _NUMBER.fullmatch(text)):
            return said
        of = {"c64": "f32", "c128": "f64"}.get(kind, "")
        return next((f"{shorten(part, 40)} is no part of a {kind}" for part in text.strip("()").split(",")
                     if _out_of_range(of, part.strip())), "")  # fmt: skip
    if kind.startswith(("f", "bf")):
        known = _NUMBER.fullmatch(text) or text in ("true", "false")
        return "" if known and not _out_of_range(kind, text) else said
    return ""


def _out_of_range(kind: str, text: str) -> bool:
    """Whether a number is rounded to none of a floating point type, or the payload of a nan has too many bits."""
    if kind not in _MANTISSA:
        return kind in _ONE_NAN and "nan(" in text
    bits, most = _MANTISSA[kind]
    if "nan" in text:
        payload = re.search(r"0x([\da-fA-F]+)", text)
        return payload is not None and int(payload[1], 16) >= 1 << bits
    if "inf" in text or text in ("true", "false"):
        return False
    try:
        value = float.fromhex(text) if "0x" in text else float(text)
    except (ValueError, OverflowError):
        return "0x" in text
    if kind == "f64":
        return isinf(value)
    # half a step above the largest is rounded to infinity
    return abs(value) >= ldexp(2 - ldexp(1, -bits - 1), most)
