"""A lock file from outside: its name, its first line, and which files it is of. What its lines say is for `lock`."""

from __future__ import annotations

import json
import re

from layoutproof.changes.states import File
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import MIB

NAME = "layoutproof.lock"
VERSION = 2
HEAD = f"# {NAME} {VERSION}: written by layoutproof gate --lock, of"
_HEAD = re.compile(rf"# {re.escape(NAME)} ([1-9][0-9]{{0,8}}): written by layoutproof gate --lock, of (.*)")
RENEW = "layoutproof gate --lock"
"""The command that writes a lock file anew."""
MIGRATE = "layoutproof migrate"
"""The command that makes this version's files of earlier ones."""
MAX_LOCK = 64 * MIB


def known(file: File) -> bool:
    """Whether a lock says anything of a file."""
    return file.is_spec or file.is_dump or file.is_program


def version_of(text: str, file: str) -> int:
    """The version of a lock file, 1 to `VERSION`. LayoutError, which names it, for a newer one, and for other texts."""
    return _first_line(text, file)[0]


def paths_of(text: str, file: str, earlier: bool = False) -> list[str]:
    """The paths that a lock file is of. LayoutError where it does not say so, and for other versions.

    earlier: whether an earlier version is taken too: what it did not say is then unknown.
    """
    version, paths = _first_line(text, file)
    if version < VERSION and not earlier:
        problem = f"a lock file of version {version}, and this layoutproof reads {VERSION}; migrate it with: {MIGRATE}"
        raise LayoutError(problem, file=file, line=1)
    return paths


def _first_line(text: str, file: str) -> tuple[int, list[str]]:
    first = text.partition("\n")[0].rstrip("\r")
    head = _HEAD.fullmatch(first)
    try:
        version, paths = (0, None) if head is None else (int(head[1]), json.loads(head[2]))
    except (ValueError, RecursionError):
        version, paths = 0, None
    if version > VERSION:
        problem = f"a lock file of version {version}, which is newer: this layoutproof reads {VERSION}; update it"
        raise LayoutError(problem, file=file, line=1)
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths) or not paths:
        raise LayoutError(f"not a lock file: its first line is {shorten(first)!r}", file=file, line=1)
    return version, paths
