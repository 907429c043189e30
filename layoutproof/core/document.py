"""What a command prints with `--json`: one object, whose first keys are the same for all of them.

    version     2. A later version adds keys; it renames none and takes none away
    exit_code   what the command exits with
    error       only where there is no answer: {kind, message, and where it is}

The rest are the command's own keys; `layoutproof schema --of COMMAND` prints its schema. What is one thing has one key
in all of them: subject, question, verdict, reason, counterexample, severity, file, line, column, figures, fix,
decided_by. Lists stand under a key of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layoutproof.core.errors import LayoutError

VERSION = 2


def document(exit_code: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """The object that a command prints.

    >>> document(0, {"subject": "f32[4]"})
    {'version': 2, 'exit_code': 0, 'subject': 'f32[4]'}
    """
    return {"version": VERSION, "exit_code": exit_code, **body}


def error_entry(error: Exception, kind: str, message: str) -> dict[str, Any]:
    """One error. kind: input, usage, unknown or internal.  message: what it says where it is no LayoutError.

    >>> error_entry(LayoutError("no such layout", file="a.yaml", line=3), "input", "")
    {'kind': 'input', 'message': 'no such layout', 'file': 'a.yaml', 'line': 3}
    """
    if not isinstance(error, LayoutError):
        return {"kind": kind, "message": message}
    places = {"text": error.text, "file": error.file, "line": error.line, "column": error.column}
    return {"kind": kind, "message": error.problem, **{name: place for name, place in places.items() if place}}
