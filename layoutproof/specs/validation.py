"""A document held against a pydantic model: every mistake at its line and column, in our words.

Spec files and search files are both read so: `positions` reads the YAML, a model says what may stand in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from layoutproof.core.errors import LayoutError, closest, shorten
from layoutproof.core.message import message_of, restated
from layoutproof.specs import problems
from layoutproof.specs.positions import Node

_WORDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "sequence_str": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "greater_than_equal": "a number of at least {ge}",
    "less_than_equal": "a number of at most {le}",
    "string_too_short": "some text",
    "too_short": "{min_length} entries",
    "too_long": "{max_length} entries",
    "is_instance_of": "a list",
    "literal_error": "{expected}",
    "string_pattern_mismatch": "MODULE:FUNCTION or FILE.py:FUNCTION",
}
"""The expected input, by the type of pydantic's error. Other errors have it in their message."""


class Model(BaseModel):
    """Strict: no conversion, no unknown key. Built when it is first used: a file needs few of the models there are."""

    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)


M = TypeVar("M", bound=Model)


def shown(value: object) -> str:
    """A value as a message shows it."""
    return shorten(repr(value), 60)


def validated(model: type[M], node: Node, file: str) -> tuple[M | None, list[LayoutError]]:
    """The document as an instance of the model, or None and all of its mistakes in the order of the file."""
    try:
        return model.model_validate(node.plain()), []
    except ValidationError as error:
        found: dict[tuple[int, int], LayoutError] = {}
        for detail in error.errors(include_url=False):
            line, column, problem = _explained(detail, model, node)
            found.setdefault((line, column), LayoutError(problem, file=file, line=line, column=column))
        return None, [found[place] for place in sorted(found)]


def fits(model: type[M], plain: object) -> bool:
    """Whether a value of plain data is an instance of the model."""
    try:
        model.model_validate(plain)
    except ValidationError:
        return False
    return True


def read_as(model: type[M], node: Node, file: str) -> M:
    """As `validated`. Raises LayoutError: the first mistake at its place, and the others on lines of their own."""
    found, errors = validated(model, node, file)
    if found is not None:
        return found
    first, *others = errors
    problem = restated("\n".join((first.problem, *map(str, others))), first.problem)
    raise LayoutError(problem, file=file, line=first.line, column=first.column)


def _explained(detail: Any, model: type[BaseModel], node: Node) -> tuple[int, int, str]:
    """Line, column and words of one of pydantic's errors."""
    at, owner, path = node, node, list[str]()
    for step in detail["loc"]:
        model = _model_at(model, step)
        inside = at.value.get(step) if type(at.value) is dict else None
        if type(at.value) is list and type(step) is int and step < len(at.value):
            inside = at.value[step]
        if inside is None:
            continue  # a name of pydantic's own, such as the branch of a union
        at, owner = inside, at
        path += [step] if type(step) is str else []
    line, column = at.line, at.column
    if owner.keys and detail["loc"] and detail["loc"][-1] == "[key]":
        line, column = owner.keys[path[-1]]
    if detail["type"] == "extra_forbidden" and owner.keys:
        name = str(detail["loc"][-1])
        return *owner.keys[name], problems.UNKNOWN_KEY(shorten(name, 40), _near(name, keys_of(model)))
    if detail["type"] == "missing":
        return line, column, problems.KEY_MISSING(detail["loc"][-1])
    if detail["type"] == "value_error":
        error = detail["ctx"]["error"]
        return line, column, words(error) if isinstance(error, LayoutError) else _keyed(path, message_of(error))
    known, details = _WORDS.get(detail["type"]), detail.get("ctx", {})
    wanted = detail["msg"] if known is None else known.format(**details)
    if detail["type"] == "too_short" and details["min_length"] == 1:
        wanted = "at least one entry"
    return line, column, _keyed(path, problems.EXPECTED(wanted, shown(at.plain())))


def _keyed(path: Sequence[str], problem: str) -> str:
    return restated(f"{path[-1]!r}: {problem}", problem, key=path[-1]) if path else problem


def words(error: LayoutError) -> str:
    """An error in a text, for the place in the file where the text stands: its column is that of the text."""
    return restated(f"{error.problem}: {shorten(error.text, 80)}", error.problem) if error.text else error.problem


def keys_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys that a mapping of this model may have."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _near(name: str, known: Sequence[str]) -> str:
    return closest(name, known) or problems.KNOWN_KEYS(", ".join(known))


def _model_at(model: type[BaseModel], step: object) -> type[BaseModel]:
    """The model of what stands at a key of a model, or the same where the key holds no other one."""
    for name, field in model.model_fields.items():
        if step == (field.alias or name):
            return _model_in(field.annotation) or model
    return model


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
