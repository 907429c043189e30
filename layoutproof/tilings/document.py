"""Errors of search files with the place in the file, and functions that a file names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.specs.positions import Node


def placed(node: Node, file: str, read: Callable[[Any], Any]) -> Any:
    """What `read` makes of the value; its errors get the value's place."""
    try:
        return read(node.plain())
    except LayoutError as error:
        if error.file:
            raise
        # the column of an error inside a text is that of the text, and the caret's place is lost with it
        words = f"{error.problem}: {shorten(error.text, 80)}" if error.text else error.problem
        raise LayoutError(words, file=file, line=node.line, column=node.column) from None


def beside(value: Any, file: str) -> str:
    """A function as `module:function`, or as `file.py:function` where the file lies beside the search file."""
    where, _, name = str(value).rpartition(":")
    if not where or not name.isidentifier():
        raise LayoutError(f"a function is written MODULE:FUNCTION or FILE.py:FUNCTION, not {shorten(str(value), 80)!r}")
    path = Path(file).parent / where
    return f"{path}:{name}" if where.endswith(".py") and path.is_file() else str(value)


def at_key(node: Node, key: str, file: str, problem: str) -> LayoutError:
    """An error at a key of a mapping, or at the mapping where it has no such key."""
    line, column = (node.keys or {}).get(key, (node.line, node.column))
    return LayoutError(problem, file=file, line=line, column=column)
