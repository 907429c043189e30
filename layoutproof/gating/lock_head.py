"""A lock file from outside: its name, its first line, and the files that it records. `lock` reads its lines."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import MIB
from layoutproof.gating import problems
from layoutproof.gating.states import File

NAME = "layoutproof.lock"
VERSION = 2
HEAD = f"# {NAME} {VERSION}: written by layoutproof gate --lock, of"
_HEAD = re.compile(rf"# {re.escape(NAME)} ([1-9][0-9]{{0,8}}): written by layoutproof gate --lock, of (.*)")
RENEW = "layoutproof gate --lock"
"""The command that writes a lock file anew."""
MAX_LOCK = 64 * MIB


def known(file: File) -> bool:
    """Whether a lock says anything of a file."""
    return file.is_spec or file.is_dump or file.is_program


def renewed(paths: Sequence[str]) -> str:
    """The command that writes a lock file of these paths anew.

    >>> renewed(["specs"]), renewed(["specs", "dumps/my step.txt"])
    ('layoutproof gate --lock', "layoutproof gate --lock specs 'dumps/my step.txt'")
    """
    return RENEW if list(paths) == ["specs"] else f"{RENEW} {shlex.join(paths)}"


def paths_of(text: str, file: str) -> list[str]:
    """The paths that a lock file is of. LayoutError where it does not say so, and for other versions."""
    first = text.partition("\n")[0].rstrip("\r")
    head = _HEAD.fullmatch(first)
    try:
        version, paths = (0, None) if head is None else (int(head[1]), json.loads(head[2]))
    except (ValueError, RecursionError):
        version, paths = 0, None
    if version > VERSION:
        problem = problems.LOCK_NEWER(version, VERSION)
        raise LayoutError(problem, file=file, line=1)
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths) or not paths:
        raise LayoutError(problems.NO_LOCK_FILE(shorten(first)), file=file, line=1)
    if version < VERSION:
        problem = problems.LOCK_OLDER(version, VERSION)
        raise LayoutError(problems.WRITE_ANEW(problem, renewed(paths)), file=file, line=1)
    return paths
