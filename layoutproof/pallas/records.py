"""Traced calls kept as files: all that is read of a call, and nothing of the code that it came from.

A record is a line of JSON: a `Kernel` field by field, and its body as `ir.codec` writes a program. So a kernel is
judged where JAX is not installed, whatever its version, and a mistake of ours is reported without the source.
`from_jax/record.py` writes them, and this file, which needs no JAX, reads them.

    {"record": 1, "jax": "0.10.2", "origin": {..}, "kernel": {..}, "body": {"types": [..], ..}}

Of a pipeline's body, "around" says what its constants are (`bodies.reading.Around`); {"refused": why} stands for one
that cannot be traced.
Of the kernel, {"term": ..} is an expression: a number, a name, [operation, ..], or of a long one {"parts": [..]}, of
which the last is the whole and {"part": k} stands for the k-th.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from layoutproof.bodies.effects import Body
from layoutproof.bodies.interpreter import Begin
from layoutproof.bodies.reading import Around, LateBody, read_body, refused_body
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_size
from layoutproof.core.files import lines
from layoutproof.core.message import message_of, restated
from layoutproof.core.operations import operation
from layoutproof.core.size import Size
from layoutproof.core.term import LONG, Term, every
from layoutproof.ir.codec import digest_of, read
from layoutproof.ir.program import Program
from layoutproof.kernel.kernel import (
    MEMORIES,
    SEMANTICS,
    Block,
    Bound,
    Kernel,
    Operand,
    Relation,
    Scratch,
    Table,
    Unmodelled,
    Work,
)
from layoutproof.kernel.relations import tables_of
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.pallas import problems

FORM = 1
"""The version of the form; a record of another one is refused."""

_NESTED = {
    "operands": Operand,
    "tables": Table,
    "scalars": Table,
    "scratch": Scratch,
    "scoped": Scratch,
    "block": Block,
    "relations": Relation,
    "bound": Bound,
    "work": Work,
}
_LEFT_OUT = ("body_reader",)


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One record. line: its number in the file.  body: the digest of its body (`ir.codec.digest_of`), shortened.

    program: reads the body of a whole call; None of a call without one that can be read.
    """

    call: Kernel | Unmodelled
    line: int
    body: str
    program: Callable[[], Program] | None = None


def read_records(path: Path) -> tuple[Kernel | Unmodelled, ...]:
    """The calls of a file of records, in order.

    Raises LayoutError, with the line, for what is no record, and for another version of the form.
    """
    with lines(path) as text:
        return tuple(each.call for each in records_in(text, path.as_posix()))


def records_in(text: Iterable[str], file: str) -> tuple[KernelRecord, ...]:
    """The records of a file's lines, in order; errors as of `read_records`."""
    found = tuple(_record(file, number, line) for number, line in enumerate(text, 1) if line.strip())
    if not found:
        raise LayoutError(problems.NO_RECORD(file))
    return found


def _record(file: str, number: int, line: str) -> KernelRecord:
    call = _call(file, number, line)
    body = json.loads(line).get("body")
    whole = body is not None and not {"refused", "around"} & body.keys()
    return KernelRecord(call, number, digest_of(body)[:16], partial(read, body) if whole else None)


def plain(value: Any) -> Any:
    """A kernel, or a part of one, as JSON has it: fields that hold their default are left out."""
    if isinstance(value, Term):
        return {"term": _of_term(value)}
    if isinstance(value, Size):
        return {"size": str(value)}
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in value]
    if not hasattr(value, "__dataclass_fields__"):
        return value
    found = {}
    for entry in fields(value):
        held = getattr(value, entry.name)
        usual = (
            held is entry.default
            or (not isinstance(held, Term | tuple) and held == entry.default)
            or (isinstance(held, tuple) and not held)
        )
        if entry.name not in _LEFT_OUT and (entry.default is MISSING or not usual):
            found[entry.name] = plain(held)
    return found


def _of_term(term: Term) -> Any:
    """A tree; of a long term its parts, each once and after those that stand in it, with {"part": k} for the k-th."""
    if term.weight <= LONG:
        return term.args[0] if term.op in ("int", "name") else [term.op, *map(_of_term, term.args)]
    parts = every(term)
    number = {id(part): {"part": k} for k, part in enumerate(parts)}
    short = ("int", "name")
    return {
        "parts": [
            part.args[0] if part.op in short else [part.op, *(number.get(id(a)) or _of_term(a) for a in part.args)]
            for part in parts
        ]
    }


def _term_of(data: object, parts: Sequence[Term] = ()) -> Term:
    match data:
        case {"parts": [_, *_] as each, **other} if not other and not parts:
            made: list[Term] = []
            for one in each:
                made.append(_term_of(one, made))
            return made[-1]
        case {"part": int(k), **other} if not other and 0 <= k < len(parts):
            return parts[k]
        case bool():
            pass
        case int():
            return Term("int", data)
        case str():
            return Term("name", data)
        case [str() as op, *args]:
            return Term(operation(op), *(_term_of(each, parts) for each in args))
    raise ValueError(problems.RECORD_TERM(shorten(str(data), 40)))


def _made(kind: type, data: Any) -> Any:
    """The object that `plain` wrote."""
    names = {entry.name for entry in fields(kind)} - set(_LEFT_OUT)
    odd = [name for name in data if name not in names]
    if odd:
        raise ValueError(problems.RECORD_FIELD(kind.__name__.lower(), shorten(repr(odd[0]), 40)))
    return kind(**{name: _field(name, value) for name, value in data.items()})


def _field(name: str, data: Any) -> Any:
    if isinstance(data, list):
        nested = _NESTED.get(name)
        return tuple(_field("", entry) if nested is None else _made(nested, entry) for entry in data)
    if isinstance(data, dict) and name in _NESTED:
        return _made(_NESTED[name], data)
    if isinstance(data, dict):
        return _term_of(data["term"]) if "term" in data else parse_size(data["size"])
    return data


def _call(file: str, number: int, line: str) -> Kernel | Unmodelled:
    place = f"{file}:{number}"
    try:
        data = json.loads(line)
        if data["record"] != FORM:
            raise LayoutError(problems.RECORD_FORM(place, shorten(repr(data["record"]), 20), FORM))
        if "unmodelled" in data:
            return Unmodelled(*(str(data["unmodelled"][name]) for name in ("name", "source", "reason")))
        kernel: Kernel = _made(Kernel, data["kernel"])
        _check(kernel)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        why = restated(shorten(said, 100), message_of(error))
        raise LayoutError(problems.RECORD_READ(place, why)) from None
    if data.get("body") is None:
        return kernel
    return replace(kernel, body_reader=LateBody(partial(_body, data["body"], f"jax {data.get('jax', '')}"), kernel))


def _check(kernel: Kernel) -> None:
    """ValueError where parts do not belong together."""
    ranks = [(len(o.dims), len(o.block), len(o.index), len(o.sizes or o.dims)) for o in kernel.operands]
    if len(kernel.grid) != len(kernel.grid_names) or any(len(set(rank)) != 1 for rank in ranks):
        raise ValueError(problems.RECORD_LENGTHS())
    scratch = (*kernel.scratch, *kernel.scoped)
    memories = [*(o.memory for o in kernel.operands), *(part.memory for part in scratch)]
    if not set(memories) <= set(MEMORIES) or not set(kernel.semantics) <= set(SEMANTICS):
        raise ValueError(problems.RECORD_NAME())
    amounts = [*kernel.grid, *(n for o in kernel.operands for n in (*o.dims, *(b.size for b in o.block)))]
    amounts += [
        *(n for table in (*kernel.tables, *kernel.scalars) for n in table.dims),
        *(n for part in scratch for n in part.dims),
    ]
    if not all(isinstance(n, Size) or (type(n) is int and n >= 0) for n in amounts):
        raise ValueError(problems.RECORD_EXTENT())
    if {o.role for o in kernel.operands} - {"in", "out"} or any(type(o.dtype) is not str for o in kernel.operands):
        raise ValueError(problems.RECORD_OPERAND())
    ranks_of = {table.name: len(table.dims) for table in every_table(kernel)}
    for relation in kernel.relations:
        bound = relation.bound
        known = set(tables_of(relation)) <= set(ranks_of)
        if not known or (bound is not None and ranks_of.get(bound.table) != len(bound.at)):
            raise ValueError(problems.RECORD_TABLE())


def _body(data: Any, version: str, kernel: Kernel, begin: Begin) -> Body:
    if "refused" in data:
        return refused_body(str(data["refused"]), kernel)
    around = [_made(Around, one) for one in data.get("around", ())]
    return read_body(lambda: read(data), kernel, version, around, begin)
