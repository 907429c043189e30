"""A traced call as a record, the form that `pallas/records.py` says: written here, read there without JAX."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.ir.program import (
    Bitcast,
    Equation,
    Indexed,
    Leaf,
    Literal,
    Memory,
    Other,
    Program,
    Reshaped,
    Span,
    Transformed,
    Transposed,
    Variable,
)
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas.from_jax.bodies import TracedBody
from layoutproof.pallas.records import FORM, SCOPES, plain


def record_of(call: Kernel | Unmodelled, origin: Mapping[str, Any] | None = None) -> str:
    """A line of JSON, with its line end. origin: where the call comes from, kept as it is."""
    import jax

    said: dict[str, Any] = {"record": FORM, "jax": jax.__version__}
    if origin:
        said["origin"] = dict(origin)
    if isinstance(call, Unmodelled):
        said["unmodelled"] = {"name": call.name, "source": _short(call.source), "reason": call.reason}
    else:
        said["kernel"] = _shortened(plain(call))
        traced = call.body_reader
        said["body"] = _body(traced) if isinstance(traced, TracedBody) else None
    return json.dumps(said, separators=(",", ":"), allow_nan=False) + "\n"


def records_of(calls: Sequence[Kernel | Unmodelled]) -> bytes:
    """A file of records of calls that were traced here.

    Raises LayoutError where a call was not traced, but read from a file: such a call has no body to record.
    """
    odd = [call.name for call in calls if isinstance(call, Kernel) and not _traced(call)]
    if odd:
        raise LayoutError(f"{odd[0]} was read from a file; what JAX traces can be recorded")
    return "".join(map(record_of, calls)).encode()


def _body(traced: TracedBody) -> dict[str, Any]:
    if traced.refused:
        return {"refused": traced.refused}
    body = _Recorder().of(traced.program)
    return {**body, "around": [plain(one) for one in traced.around]} if traced.around else body


def _traced(call: Kernel) -> bool:
    # kernels of GPUs have no body that is read
    return call.body_reader is None or isinstance(call.body_reader, TracedBody)


def _shortened(data: dict[str, Any]) -> dict[str, Any]:
    """A kernel's data whose places name no folder of this machine."""
    for part in (data, *data["operands"]):
        if "source" in part:
            part["source"] = _short(part["source"])
    return data


def _short(place: str) -> str:
    """`file:line` below the folder that Python imports the file from, or that is worked in; else the file's name.

    >>> _short(""), _short("<string>:3")
    ('', '<string>:3')
    """
    file, colon, line = place.rpartition(":")
    if not colon or file.startswith("<"):
        return place
    path = Path(file).absolute()
    folders = [Path(folder).absolute() for folder in {*sys.path, "."}]
    inside = [path.relative_to(folder).as_posix() for folder in folders if path.is_relative_to(folder)]
    return f"{min(inside, key=len, default=path.name)}:{line}"


class _Recorder:
    """One body. Equal types, variables and programs are written once."""

    def __init__(self) -> None:
        self.types: dict[tuple[str, str, int], int] = {}
        self.avals: dict[tuple[tuple[int, ...], int, str], int] = {}
        self.jaxprs: list[dict[str, Any]] = []
        self.known: dict[Program, int] = {}
        self.places: dict[str, str] = {}

    def of(self, program: Program) -> dict[str, Any]:
        """The body as data."""
        self.number(program)
        return {"types": list(self.types), "avals": list(self.avals), "jaxprs": self.jaxprs}

    def type(self, dtype: Any) -> int:
        """The number of an element type."""
        key = (str(dtype), str(getattr(dtype, "kind", "")), int(getattr(dtype, "itemsize", 4)))
        return self.types.setdefault(key, len(self.types))

    def aval(self, aval: Any) -> int:
        """The number of what is known of a variable."""
        shape = tuple(int(n) for n in getattr(aval, "shape", ()))
        memory = aval.memory if isinstance(aval, Memory) else ""
        key = (shape, self.type(getattr(aval, "dtype", "float32")), memory)
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
            return [self.aval(given.aval), _number(given.val)] if isinstance(given, Literal) else variables[given]

        data: dict[str, Any] = {"in": new(program.invars)}
        if program.constvars:
            data["const"] = new(program.constvars)
        if program.consts:
            data["consts"] = [[self.aval(_Shaped(value)), _number(value)] for value in program.consts]
        data["eqns"] = [
            [
                equation.primitive.name,
                self.parameters(equation),
                [atom(given) for given in equation.invars],
                new(equation.outvars),
                self.place(equation),
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

    def place(self, equation: Equation) -> str:
        """`file:line` of an equation, without the folders of this machine."""
        place = str(equation.source)
        if place not in self.places:
            self.places[place] = _short(place)
        return self.places[place]

    def parameters(self, equation: Equation) -> dict[str, Any]:
        """Those parameters of an equation that are data."""
        found: dict[str, Any] = {}
        for name, value in equation.params.items():
            data = self.value(value)
            if data is not _NONE:
                found[name] = {"tree": data} if name in ("tree", "args_tree") else data
        return found

    def value(self, value: Any) -> Any:
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
            entries = [self.value(entry) for entry in value]
            return _NONE if _NONE in entries else {"list": entries}
        if isinstance(value, slice):
            return {"is": "slice", **{name: self.value(getattr(value, name)) for name in ("start", "stop", "step")}}
        if isinstance(value, Other):
            parts = {name: self.value(part) for name, part in value.parts.items()}
            return {"is": value.kind, **{name: data for name, data in parts.items() if data is not _NONE}}
        if not isinstance(value, Span | Indexed | Reshaped | Transposed | Bitcast | Transformed):
            return _NONE
        parts = {entry.name: self.value(getattr(value, entry.name)) for entry in dataclasses.fields(value)}
        return {"is": type(value).__name__, **{name: data for name, data in parts.items() if data is not _NONE}}


def _number(value: Any) -> Any:
    """A constant as data: a number; null for an array, of which only the shape is written.

    One that is not finite is written in words: nobody reckons with it, and a body with another one is another body.
    """
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


class _Shaped:
    """A constant as a variable's aval has it."""

    def __init__(self, value: Any) -> None:
        self.shape = tuple(getattr(value, "shape", ()))
        self.dtype = getattr(value, "dtype", None) or {bool: "bool", int: "int32"}.get(type(value), "float32")


_NONE = object()
"""What is no data: functions, meshes, shardings."""
