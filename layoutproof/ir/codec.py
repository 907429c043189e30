"""A program as JSON: written here, and read here.

A program is {"types": [..], "avals": [..], "jaxprs": [..]}. `types` are [XLA's name, kind as NumPy says it, bytes];
`avals` are [shape, type, memory], "" where it is an array; each of `jaxprs`, of which the last is the program and each
is written before those that run it, has "in", "const" and "consts", "eqns", "out", and "own" where JAX itself wrote it.
An atom is the number of a variable, or [aval, value] of a literal: null of an array, {"float": ..} of what is not
finite. An equation is [primitive, parameters, atoms, aval of each result, place, k in `SCOPES`]. Variables are numbered
as they are made: the inputs, the constants, then the results. Among parameters, {"jaxpr": k} is a nested program,
{"type": k} an element type, {"tree": ..} a tree of operands, with {"leaf": k} for each, {"is": class, ..} an object
with fields, {"list": [..]} a tuple. Anything that is no data is left out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

from layoutproof.core.document import JsonObject
from layoutproof.core.element_types import element_type
from layoutproof.core.errors import shorten
from layoutproof.ir.program import (
    Array,
    Atom,
    Bitcast,
    ElementType,
    Equation,
    Grid,
    Indexed,
    Leaf,
    Literal,
    MemRefType,
    Number,
    Other,
    Program,
    Reshaped,
    Span,
    Transformed,
    Transposed,
    Variable,
    Window,
    primitive,
    view,
)

SCOPES = ("", "pipeline", "body")
"""The scopes of an equation, as of `effects.Spot.scope`."""

_TREES = ("tree", "args_tree")
_VIEWS = (Span, Indexed, Reshaped, Transposed, Bitcast, Transformed)
_NONE = object()
"""Stands for values that are no data: meshes, shardings, windows of kernels."""


def written(program: Program, place: Callable[[str], str] = str) -> JsonObject:
    """A program as JSON has it. place: gives the text of an equation's place."""
    return _Writer(place).document(program)


def digest(program: Program) -> str:
    """A digest of a program, independent of the names of its variables and of its lines.

    Programs with the same structure and constants have one digest: two traces of one function. The windows of kernels
    are a part of it, and their index maps. Functions and meshes, which are no data, are not in it.
    """
    import numpy as np

    writer = _Writer(str, windows=True)
    found = hashlib.sha256(digest_of(writer.document(program)).encode())
    for value in (value for each in writer.known for value in each.consts if _value(value) is None):
        # keys of random numbers are no arrays of NumPy, and print their numbers
        plain = isinstance(getattr(value, "dtype", None), np.dtype)
        found.update(np.asarray(value).tobytes() if plain else str(value).encode())
    return found.hexdigest()


def digest_of(data: object) -> str:
    """The digest of a program as JSON, with the data beside it; for anything else that of its text."""
    return hashlib.sha256(json.dumps(_unplaced(data), sort_keys=True).encode()).hexdigest()


def _unplaced(data: Any) -> Any:
    """The same without the lines of the user's code, which say nothing of what it does, and each inner program once."""
    try:
        jaxprs = [{**each, "eqns": [[*of[:4], *of[5:]] for of in each["eqns"]]} for each in data["jaxprs"]]
    except (TypeError, KeyError):
        # no program, or a broken one: its reader reports the mistake
        return data
    return {**data, "jaxprs": jaxprs}


class _Writer:
    """One program. Equal types, avals and programs are written once."""

    def __init__(self, place: Callable[[str], str], windows: bool = False) -> None:
        """windows: whether the grids of kernels are written, too, which their reader takes from the call."""
        self.place, self.windows = place, windows
        self.types: dict[tuple[str, str, int], int] = {}
        self.avals: dict[tuple[tuple[int, ...], int, str], int] = {}
        self.jaxprs: list[dict[str, Any]] = []
        self.known: dict[Program, int] = {}

    def document(self, program: Program) -> JsonObject:
        """The program with all that it is written with."""
        self.number(program)
        return {"types": list(self.types), "avals": list(self.avals), "jaxprs": self.jaxprs}

    def type(self, dtype: object) -> int:
        """The number of an element type."""
        key = (element_type(dtype), str(getattr(dtype, "kind", "")), int(getattr(dtype, "itemsize", 4)))
        return self.types.setdefault(key, len(self.types))

    def aval(self, aval: object) -> int:
        """The number of what is known of a variable."""
        shape = tuple(int(n) for n in getattr(aval, "shape", ()))
        memory = aval.memory if isinstance(aval, MemRefType) else ""
        lies = (aval.lanes, aval.packing) if isinstance(aval, MemRefType) and aval.packing else ()
        key = (shape, self.type(getattr(aval, "dtype", "float32")), memory, *lies)
        return self.avals.setdefault(key, len(self.avals))

    def number(self, program: Program) -> int:
        """The number of a program, which is written now if it was not."""
        if program in self.known:
            return self.known[program]
        variables: dict[Variable, int] = {}

        def new(made: Sequence[Variable]) -> list[int]:
            for variable in made:
                variables[variable] = len(variables)
            return [self.aval(v.aval) for v in made]

        def atom(given: Any) -> Any:
            return [self.aval(given.aval), _value(given.val)] if isinstance(given, Literal) else variables[given]

        data: dict[str, Any] = {"in": new(program.invars)}
        if program.constvars:
            data["const"] = new(program.constvars)
        if program.consts:
            data["consts"] = [[self.aval(_shaped(value)), _value(value)] for value in program.consts]
        data["eqns"] = [
            [
                equation.primitive.name,
                self.parameters(equation.params),
                [atom(given) for given in equation.invars],
                new(equation.outvars),
                self.place(str(equation.source)),
                SCOPES.index(equation.scope),
            ]
            for equation in program.eqns
        ]
        data["out"] = [atom(given) for given in program.outvars]
        if program.own:
            data["own"] = 1
        self.jaxprs.append(data)
        self.known[program] = len(self.jaxprs) - 1
        return len(self.jaxprs) - 1

    def parameters(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Those parameters of an equation that are data."""
        found = {name: self.parameter(value) for name, value in params.items()}
        return {n: {"tree": data} if n in _TREES else data for n, data in found.items() if data is not _NONE}

    def parameter(self, value: Any) -> Any:
        """A parameter as data, `_NONE` where it is none."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, Integral):
            return int(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else _NONE
        if isinstance(value, Leaf):
            return {"leaf": value.number}
        if isinstance(value, Program):
            return {"jaxpr": self.number(value)}
        if hasattr(value, "itemsize") and hasattr(value, "kind"):
            return {"type": self.type(value)}
        if isinstance(value, tuple | list):
            entries = [self.parameter(entry) for entry in value]
            return _NONE if _NONE in entries else {"list": entries}
        if isinstance(value, slice):
            parts: Mapping[str, Any] = {name: getattr(value, name) for name in ("start", "stop", "step")}
        elif isinstance(value, Other):
            parts = value.parts
        elif isinstance(value, _VIEWS) or (self.windows and isinstance(value, Grid | Window)):
            parts = {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}
        else:
            return _NONE
        kind = value.kind if isinstance(value, Other) else type(value).__name__
        said = {name: self.parameter(part) for name, part in parts.items()}
        return {"is": kind, **{name: data for name, data in said.items() if data is not _NONE}}


def _value(value: Any) -> Any:
    """A constant as data: a number; None of an array, of which only the shape is written."""
    if getattr(value, "shape", ()) != ():
        return None
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    try:
        if isinstance(value, bool) or kind == "b":
            return bool(value)
        if isinstance(value, int) or kind in ("i", "u"):
            return int(value)
        number = float(value)
    except TypeError:
        return None
    return number if math.isfinite(number) else {"float": str(number)}


def _shaped(value: object) -> Array:
    """The type of a constant, as a variable's aval has it."""
    dtype = getattr(value, "dtype", None) or {bool: "bool", int: "int32"}.get(type(value), "float32")
    return Array(tuple(getattr(value, "shape", ())), dtype)


def read(data: JsonObject) -> Program:
    """The program that `written` wrote. Python's own errors where it is none."""
    kinds = [ElementType(element_type(name), str(kind), int(size)) for name, kind, size in data["types"]]
    avals = [
        _aval(tuple(int(n) for n in shape), kinds[k], str(memory), *lies) for shape, k, memory, *lies in data["avals"]
    ]
    programs: list[Program] = []
    for entry in data["jaxprs"]:
        programs.append(_program(entry, kinds, avals, programs))
    return programs[-1]


def _aval(
    shape: tuple[int, ...], kind: ElementType, memory: str, lanes: object = "", packing: object = 0
) -> Array | MemRefType:
    return MemRefType(shape, kind, memory, str(lanes), int(str(packing))) if memory else Array(shape, kind)


def _program(
    data: JsonObject, kinds: Sequence[ElementType], avals: Sequence[Array | MemRefType], inner: Sequence[Program]
) -> Program:
    variables: list[Variable] = []

    def new(of: Sequence[int]) -> tuple[Variable, ...]:
        made = tuple(Variable(avals[k]) for k in of)
        variables.extend(made)
        return made

    def atom(entry: Any) -> Atom:
        if isinstance(entry, int):
            return variables[entry]
        number = _number(avals[entry[0]], entry[1])
        return Literal(number, Array(number.shape, number.dtype))

    invars, constvars = new(data["in"]), new(data.get("const", ()))
    equations = []
    for name, params, operands, results, place, scope in data["eqns"]:
        given = tuple(map(atom, operands))
        known = {key: _parameter(value, kinds, inner) for key, value in params.items()}
        equations.append(Equation(primitive(str(name)), given, new(results), known, str(place), SCOPES[scope]))
    consts = tuple(_number(avals[k], value) for k, value in data.get("consts", ()))
    outvars = tuple(map(atom, data["out"]))
    return Program(invars, tuple(equations), outvars, constvars, consts, bool(data.get("own")))


def _number(aval: Array | MemRefType, value: object) -> Number:
    if isinstance(value, dict):
        value = float(value["float"])
    return Number(None if isinstance(value, list) else value, aval.dtype, aval.shape)


def _parameter(data: Any, kinds: Sequence[ElementType], inner: Sequence[Program]) -> Any:
    if not isinstance(data, dict):
        return data
    match data:
        case {"jaxpr": int() as k}:
            return inner[k]
        case {"type": int() as k}:
            return kinds[k]
        case {"list": entries}:
            return tuple(_parameter(entry, kinds, inner) for entry in entries)
        case {"tree": tree}:
            return _parameter(tree, kinds, inner)
        case {"leaf": k}:
            return Leaf(int(k))
        case {"is": kind, **rest}:
            return view(str(kind), {name: _parameter(value, kinds, inner) for name, value in rest.items()})
    raise ValueError(f"a parameter of another form: {shorten(str(data), 40)}")
