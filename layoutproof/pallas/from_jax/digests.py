"""A digest of a jaxpr: of everything that it holds, with the lines it comes from, so that two alike are one program.

It is the same in every checkout: a file of the repository counts from where that lies.

A program that may not be read whole has no digest, and two such programs are never taken for one.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from inspect import isfunction
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutproof.compiler.cache import anywhere
from layoutproof.pallas.from_jax.adapter import is_tracer, place_of
from layoutproof.pallas.from_jax.of_jax import JaxAtom, JaxAval

if TYPE_CHECKING:
    from jax.extend.core import Jaxpr

NOT_RUN = ("fwd_jaxpr_thunk", "bwd", "out_trees", "jvp_jaxpr_fun")
"""Parameters of functions with a derivative of their own: the derivative is in a jaxpr, and these never run."""

_LIBRARIES = ("jax", "jaxlib", "numpy", "ml_dtypes")


class NotRead(Exception):
    """A part of a program that is not known to be read whole."""


def digest(*parts: object) -> str | None:
    """A digest of jaxprs, arrays and plain values; None where one holds what is not read whole.

    >>> digest(("a", 1)) == digest(("a", 1.0)), digest(print)
    (False, None)
    """
    found = hashlib.sha256()
    try:
        for part in parts:
            for text in _parts(part):
                found.update(len(text).to_bytes(8, "little") + text)
    except (NotRead, RecursionError):
        return None
    return found.hexdigest()


def _parts(value: object) -> Iterator[bytes]:
    """The contents of a value, as bytes; each kind begins with its own word."""
    if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
        yield from _program(value)
    elif is_tracer(value):
        yield f"tracer {_kind(value.aval)}".encode()
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes | enum.Enum):
        yield anywhere(f"{type(value).__name__} {value!r}").encode(errors="surrogatepass")
    elif isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        held = np.asarray(value)
        if held.dtype.hasobject:
            raise NotRead
        yield f"array {held.dtype} {held.shape}".encode()
        yield np.ascontiguousarray(held).tobytes()
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for key, each in value.items():
            yield from _parts(key)
            yield from _parts(each)
    elif isinstance(value, tuple | list):
        yield f"{type(value).__qualname__} {len(value)}".encode()
        for each in value:
            yield from _parts(each)
    elif isinstance(value, set | frozenset):
        yield from _parts(sorted(map(str, value)))
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
        for each in fields(value):
            yield from _parts(getattr(value, each.name))
    else:
        yield _said(value)


def _said(value: object) -> bytes:
    """An object of JAX or NumPy that says all that it holds; a text that leaves something out is none."""
    # a function of JAX itself, whose version is known, that closes over nothing
    kind: Any = value if isfunction(value) else type(value)
    text = "" if isfunction(value) else repr(value)
    whole = getattr(value, "__closure__", None) is None and " at 0x" not in text and "..." not in text
    if not whole or str(kind.__module__).partition(".")[0] not in _LIBRARIES:
        raise NotRead
    return anywhere(f"{kind.__module__}.{kind.__qualname__} {text}").encode(errors="surrogatepass")


def _program(value: Jaxpr) -> Iterator[bytes]:
    jaxpr = getattr(value, "jaxpr", value)
    yield from _parts(tuple(getattr(value, "consts", ())))
    numbers: dict[Any, int] = {}

    def variable(v: JaxAtom) -> bytes:
        return f"{numbers.setdefault(v, len(numbers))} {_kind(v.aval)}".encode()

    def used(v: JaxAtom) -> Iterator[bytes]:
        if hasattr(v, "val"):
            yield _kind(v.aval).encode()
            yield from _parts(v.val)
        else:
            yield variable(v)

    yield b"program"
    for v in (*jaxpr.constvars, b"|", *jaxpr.invars):
        yield v if isinstance(v, bytes) else variable(v)
    for equation in jaxpr.eqns:
        # the scopes say what is assumed of tables
        spot = anywhere(f"{place_of(equation.source_info)} {equation.source_info.name_stack}")
        yield f"equation {equation.primitive.name} {len(equation.invars)} {spot}".encode()
        for v in equation.invars:
            yield from used(v)
        for v in equation.outvars:
            yield variable(v)
        for name, held in equation.params.items():
            yield name.encode()
            if name not in NOT_RUN:
                yield from _parts(held)
    yield b"results"
    for v in jaxpr.outvars:
        yield from used(v)


def _kind(aval: JaxAval) -> str:
    text = f"{type(aval).__qualname__} {aval} {getattr(aval, 'memory_space', '')} {getattr(aval, 'weak_type', '')}"
    if "..." in text or " at 0x" in text:
        raise NotRead
    return text
