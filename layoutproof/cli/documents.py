"""The output of each command with `--json`: its documents by name, and their schema.

A document is a `TypedDict` that stands beside the function that returns it, so that mypy holds the two together.
`layoutproof schema --of COMMAND` publishes what is made of them here; the tests hold what every command really prints
against them, and refuse a key that stands in none. A later version adds keys, so the published schemas allow more.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from functools import cache, reduce
from importlib import import_module
from inspect import cleandoc
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from layoutproof.core.document import VERSION, JsonObject

_FAILURE = "core.document:Failure"
_SUMMARY = "cli.arguments:SummaryDocument"
_MAY_FIX = "+answers.of_repair:RepairedEntry"
_MAY_WRITE = "+cli.arguments:WrittenEntry"
_SEARCH = "+answers.of_search:SearchDocument"

DOCUMENTS: Mapping[str, tuple[str, ...]] = {
    "ask": (f"core.finding:FindingDocument{_MAY_WRITE}",),
    "check": (f"specs.report:CheckDocument{_MAY_WRITE}", _SUMMARY),
    "ci": ("answers.of_ci:CiDocument",),
    "compile": (
        "answers.of_programs:CompileDocument+cli.arguments:FilesDocument",
        "answers.of_sweep:SweepDocument+cli.arguments:FilesDocument",
    ),
    "convert": ("cli.commands.convert:ConvertDocument",),
    "crosscheck": ("answers.of_crosscheck:CrosscheckDocument", "answers.of_facts:FactsDocument"),
    "explain": ("cli.commands.explain:PagesDocument", "cli.commands.explain:PageDocument"),
    "gate": (f"formats.json:GateDocument{_MAY_WRITE}", "cli.commands.gate:ApprovalDocument", _SUMMARY),
    "hlo": ("answers.of_dumps:HloDocument",),
    "init": ("answers.of_init:InitDocument",),
    "kernels": (f"pallas.report:KernelsDocument{_MAY_WRITE}{_MAY_FIX}", "cli.commands.kernels:SpecDocument"),
    "locate": (
        "cli.commands.locate:ElementDocument",
        "questions.inverse:ContentsDocument",
        "questions.inverse_formula:FormulaDocument",
    ),
    "same": (f"questions.same_answer:SameDocument{_MAY_FIX}",),
    "scan": ("answers.of_scan:ScanDocument",),
    "schema": ("cli.commands.schema:SchemaDocument",),
    "search": (
        f"searching.tilings_json:TilingsDocument{_SEARCH}",
        f"searching.arrays_json:ArraysDocument{_SEARCH}",
        f"answers.compiled_shardings:CompiledShardingsDocument{_SEARCH}",
        f"searching.prune:PrunedDocument{_SEARCH}",
        "cli.arguments:FilesDocument",
    ),
    "serve": ("cli.commands.serve:ServeDocument",),
    "show": ("answers.of_layout:ShowDocument",),
    "why": ("answers.of_messages:WhyDocument",),
}
"""Command -> its documents, `module:TypedDict`; keys that a command adds to an answer are joined by `+`."""


@cache
def adapter(command: str) -> TypeAdapter[Any]:
    """The type of a command's output, answers and failures, without further keys. KeyError where it has none."""
    made: dict[object, Any] = {}
    kinds = [_joined(text.split("+"), made) for text in (*DOCUMENTS[command], _FAILURE)]
    return TypeAdapter(reduce(operator.or_, kinds), config=ConfigDict(extra="forbid", strict=True))


def json_schema(command: str) -> JsonObject:
    """The JSON Schema of what a command prints."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"layoutproof {command} --json, version {VERSION}",
        **adapter(command).json_schema(schema_generator=_Described),
    }
    found: dict[str, Any] = _open(schema)
    return found


class _Described(GenerateJsonSchema):
    """Dataclasses, too, are described by their docstring, and `asdict` leaves no key of theirs out."""

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        return {**super().dataclass_schema(schema), "description": cleandoc(schema["cls"].__doc__)}

    def field_is_required(self, field: Any, total: bool) -> bool:
        return field["type"] == "dataclass-field" or super().field_is_required(field, total)


def _open(schema: Any) -> Any:
    """The schema without what forbids more keys."""
    if isinstance(schema, dict):
        return {key: _open(value) for key, value in schema.items() if key != "additionalProperties" or value}
    return list(map(_open, schema)) if isinstance(schema, list) else schema


def _joined(names: Iterable[str], made: dict[object, Any]) -> Any:
    """One document with the keys of all that are named."""
    first, *others = (
        getattr(import_module(f"layoutproof.{module}"), name) for module, _, name in (n.partition(":") for n in names)
    )
    found = _readable(first, made)
    for other in others:
        more = _readable(other, made)
        found.__annotations__ |= more.__annotations__
        found.__required_keys__ |= more.__required_keys__
    return found


def _readable(hint: Any, made: dict[object, Any]) -> Any:
    """The same type with TypedDicts of `typing_extensions`: pydantic takes those of `typing` from Python 3.12 on."""
    if is_typeddict(hint):
        if hint not in made:
            made[hint] = found = TypedDict(hint.__name__, {})  # type: ignore[operator]
            found.__doc__, found.__required_keys__ = hint.__doc__, hint.__required_keys__
            # a finding holds findings, so it is there before its keys are
            hints = get_type_hints(hint, include_extras=True)
            found.__annotations__ = {name: _readable(one, made) for name, one in hints.items()}
        return made[hint]
    parts, kind = get_args(hint), get_origin(hint)
    if not parts or kind is Literal:
        return hint
    if kind is Annotated:
        return Annotated[(_readable(parts[0], made), *parts[1:])]
    read = tuple(_readable(part, made) for part in parts)
    if kind is UnionType:
        return reduce(operator.or_, read)
    return hint.copy_with(read) if hasattr(hint, "copy_with") else kind[read]
