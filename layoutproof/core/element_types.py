"""Element types by XLA's names, and how wide they are."""

from __future__ import annotations

import re

from layoutproof.core import problems
from layoutproof.core.errors import LayoutError, closest, shorten

ELEMENT_BITS: dict[str, int] = {
    "pred": 8,
    **{f"{sign}{bits}": bits for sign in "su" for bits in (1, 2, 4, 8, 16, 32, 64)},
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "c64": 64,
    "c128": 128,
    **dict.fromkeys(("f8e5m2", "f8e4m3", "f8e4m3fn", "f8e4m3b11fnuz", "f8e3m4", "f8e5m2fnuz", "f8e4m3fnuz"), 8),
    "f8e8m0fnu": 8,
    "f4e2m1fn": 4,
    "f6e2m3fn": 6,
    "f6e3m2fn": 6,
}
"""Width of one element in bits (xla_data.proto). XLA *stores* sub-byte types in one byte unless E(n) says otherwise."""


def element_bits(name: str) -> int:
    """Bits of one element. LayoutError says the nearest.

    >>> element_bits("bf16")
    16
    """
    try:
        return ELEMENT_BITS[name]
    except KeyError:
        raise LayoutError(problems.ELEMENT_TYPE(shorten(str(name), 30), near_type(name))) from None


def integer_range(bits: int, signed: bool) -> tuple[int, int]:
    """The numbers that so many bits hold: low <= number < high.

    >>> integer_range(8, True), integer_range(8, False)
    ((-128, 128), (0, 256))
    """
    return (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)


def near_type(word: object) -> str:
    """`; did you mean 'f32'?` of a name that NumPy or JAX uses, or that is nearly one; else how types are written.

    >>> near_type("float32"), near_type("uint8"), near_type("x")
    ("; did you mean 'f32'?", "; did you mean 'u8'?", '; write for instance f32, bf16, s8 or pred')
    """
    lower = str(word)[:40].lower()
    short = _NAMES.get(lower) or re.sub("^i(?=[0-9])", "s", lower)
    near = f"; did you mean {short!r}?" if short in ELEMENT_BITS else closest(lower, ELEMENT_BITS)
    return near or "; write for instance f32, bf16, s8 or pred"


def element_type(dtype: object) -> str:
    """XLA's name of an element type of NumPy or JAX; the given name where XLA has none of it (semaphores, keys).

    >>> element_type("float32"), element_type("int4"), element_type("float8_e4m3fn"), element_type("key<fry>")
    ('f32', 's4', 'f8e4m3fn', 'key<fry>')
    """
    name = str(dtype)
    return _NAMES.get(name, name)


def dtype_name(element_type: str) -> str:
    """NumPy's name, or that of ml_dtypes, of XLA's element type; the given name where it is none.

    >>> dtype_name("pred"), dtype_name("s8"), dtype_name("bf16"), dtype_name("f8e4m3fn")
    ('bool', 'int8', 'bfloat16', 'float8_e4m3fn')
    """
    found = re.fullmatch(r"([suf]|bf|c|pred)(\d*)(e.*)?", element_type)
    if found is None:
        return element_type
    return _LONG[found[1]] + found[2] + (f"_{found[3]}" if found[3] else "")


_SHORT = {"int": "s", "uint": "u", "float": "f", "bfloat": "bf", "complex": "c", "bool": "pred"}
_LONG = {short: long for long, short in _SHORT.items()}
_NAMES = {dtype_name(name): name for name in ELEMENT_BITS}
