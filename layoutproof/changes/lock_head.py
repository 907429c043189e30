"""A lock file from outside: its name, its first line, and which files it is of. What its lines say is for `lock`."""

from __future__ import annotations

import json

from layoutproof.changes.states import File
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import MIB

NAME = "layoutproof.lock"
HEAD = "# layoutproof.lock 2: written by layoutproof gate --lock, of"
_HEADS = (HEAD, HEAD.replace(" 2:", " 1:"))
"""Version 1 said less of dumps: what it did not say is unknown."""
MAX_LOCK = 64 * MIB


def known(file: File) -> bool:
    """Whether a lock says anything of a file."""
    return file.is_spec or file.is_dump


def paths_of(text: str, file: str) -> list[str]:
    """The paths that a lock file is of. LayoutError where it does not say so."""
    first = text.partition("\n")[0]
    head = next((each for each in _HEADS if first.startswith(each)), None)
    try:
        found = None if head is None else json.loads(first.removeprefix(head))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(path, str) for path in found) or not found:
        raise LayoutError(f"not a lock file of this version: its first line is {shorten(first)!r}", file=file, line=1)
    return found
