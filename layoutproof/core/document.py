"""The output of a command with `--json`: one object, whose first keys are the same for all commands.

    version     2. A later version adds keys; it renames none and takes none away
    exit_code   what the command exits with
    error       only where there is no answer: {kind, message, and where it is}

The rest are the command's own keys; `layoutproof schema --of COMMAND` prints its schema. One concept has one key
in all of them: subject, question, verdict, reason, counterexample, severity, file, line, column, figures, fix,
decided_by. Lists stand under a key of their own.

An object is written once, as a `TypedDict` beside the function that makes it: mypy holds the two together, and
`cli.documents` derives the schema from it. Keys that are there only where they say something are `NotRequired`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict, TypeVar, cast

from layoutproof.core.errors import LayoutError
from layoutproof.core.message import Message

VERSION: Final = 2

JsonObject = dict[str, Any]
"""An object of JSON or YAML as Python reads it. Who writes it and who reads it agree on its keys."""


@dataclass(frozen=True, slots=True)
class Doc:
    """The description of a key in its schema, beside its type: `Annotated[int, Doc("bytes on each device")]`.

    Pydantic, which is loaded for schemas alone, looks for the method by its name.
    """

    text: str

    def __get_pydantic_json_schema__(self, core: object, handler: Callable[[object], Mapping[str, object]]) -> object:
        return {**handler(core), "description": self.text}


@dataclass(frozen=True, slots=True)
class Exactly:
    """The exact schema beside a weaker type: one of some words, or the `asdict` of a dataclass."""

    form: object

    def __get_pydantic_core_schema__(self, source: object, handler: Any) -> object:
        return handler.generate_schema(self.form)


class _Versioned(TypedDict):
    version: Annotated[Literal[2], Doc("later versions add keys, and rename none")]


class Document(_Versioned):
    """What is in every answer."""

    exit_code: Annotated[
        int,
        Exactly(Literal[0, 1, 2, 3, 130]),
        Doc("0 all proved, 1 something refuted or denied, 2 bad input, 3 something unknown, 130 interrupted"),
    ]


class ErrorEntry(TypedDict):
    kind: Annotated[str, Exactly(Literal["input", "usage", "unknown", "internal"])]
    message: str
    id: NotRequired[Annotated[str, Doc("which message it is; it stays the same where the words are bettered")]]
    text: NotRequired[Annotated[str, Doc("what was being read")]]
    file: NotRequired[str]
    line: NotRequired[int]
    column: NotRequired[Annotated[int, Doc("from 1, in the text or the file")]]


class Failure(_Versioned):
    """Instead of an answer: nothing was asked."""

    exit_code: Annotated[int, Exactly(Literal[2, 3])]
    error: ErrorEntry


def envelope(exit_code: int) -> Document:
    """The first keys of the object that a command prints.

    >>> {**envelope(0), "subject": "f32[4]"}
    {'version': 2, 'exit_code': 0, 'subject': 'f32[4]'}
    """
    return {"version": VERSION, "exit_code": exit_code}


Entry = TypeVar("Entry", bound=Mapping[str, object])


def without_empty(entry: Entry) -> Entry:
    """The same without the keys that say nothing; all of them are `NotRequired`.

    >>> without_empty({"hint": "", "scope": "the grid"})
    {'scope': 'the grid'}
    """
    return cast(Entry, {name: value for name, value in entry.items() if value})


def error_entry(error: Exception, kind: str, message: str) -> ErrorEntry:
    """One error. kind: input, usage, unknown or internal.  message: its text where it is no LayoutError.

    >>> error_entry(LayoutError("no such layout", file="a.yaml", line=3), "input", "")
    {'kind': 'input', 'message': 'no such layout', 'file': 'a.yaml', 'line': 3}
    """
    said = error.problem if isinstance(error, LayoutError) else message
    found: ErrorEntry = {"kind": kind, "message": said, "id": said.id if isinstance(said, Message) else ""}
    if isinstance(error, LayoutError):
        found["text"], found["file"] = error.text, error.file
        found["line"], found["column"] = error.line or 0, error.column or 0
    return without_empty(found)
