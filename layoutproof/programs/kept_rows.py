"""The rows of a sweep in a file, one JSON object a line, so that an interrupted sweep goes on where it was.

A row is found again by everything that it depends on: the whole request, the compiler with its version, JAX, this
package, the variables that count, and the code that the function may import (its repository, and its own package).
Code elsewhere that is installed counts by its version.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from layoutproof.compiler import cache, libtpu, reads
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MAX_TEXT, read, repository_of, write_whole
from layoutproof.core.packages import package_version
from layoutproof.programs import problems
from layoutproof.programs.compile import CPU, Asked, checked, request_of
from layoutproof.programs.sweep import UNKNOWN, SweepRow

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def state_of(program: str, leave: Sequence[str]) -> str:
    """A digest of what all rows of a program depend on besides their requests. leave: files that the run writes."""
    left = [os.path.abspath(path) for path in leave]
    roots = {repository_of(Path.cwd()), *_folders(program)}
    code = [reads.whole(root, left) for root in sorted(roots)]
    return _digest([cache.tool(), reads.surroundings(), code])


def key_of(asked: Asked, state: str) -> str:
    """The name of a row. Raises LayoutError where its target or its libtpu is not there."""
    sound = checked(asked)
    version = package_version("jaxlib") if sound.target == CPU else libtpu.version(_library(sound))
    return _digest([state, request_of(sound), libtpu.with_flags(version, libtpu.told()), package_version("jax")])


class KeptRows:
    """The rows of a file: those that are there, and a line for each new one as soon as it is known.

    Of what is unknown nothing is kept: a limit of time or an abort may not come again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, SweepRow] = {}
        self._stream: TextIO | None = None

    def __enter__(self) -> KeptRows:
        whole = b""
        if self.path.exists():
            data = read(self.path, MAX_TEXT)
            # a run that is killed may leave half of its last line
            whole = data[: data.rfind(b"\n") + 1]
            for number, line in enumerate(whole.splitlines(), 1):
                key, row = _row(line, str(self.path), number)
                self.rows[key] = row
        write_whole(self.path, whole)
        try:
            self._stream = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise LayoutError(f"{error.strerror}", file=str(self.path)) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._stream is not None:
            self._stream.close()

    def get(self, key: str) -> SweepRow | None:
        """The row of a key; None where there is none yet."""
        return self.rows.get(key)

    def put(self, key: str, row: SweepRow) -> None:
        """Write a row, at once."""
        if row.outcome != UNKNOWN and self._stream is not None:
            self._stream.write(json.dumps({"key": key, "row": asdict(row)}, ensure_ascii=False) + "\n")
            self._stream.flush()


def _row(line: bytes, file: str, number: int) -> tuple[str, SweepRow]:
    from pydantic import ValidationError

    try:
        said: Any = json.loads(line)
        key, row = said["key"], said["row"]
        if not isinstance(key, str) or not isinstance(row, Mapping):
            raise TypeError
        return key, _adapter().validate_python({k: v for k, v in row.items() if k in SweepRow.__dataclass_fields__})
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError):
        why = problems.NO_ROW()
        raise LayoutError(why, file=file, line=number) from None


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[SweepRow]:
    from pydantic import TypeAdapter

    return TypeAdapter(SweepRow)


def _library(asked: Asked) -> str:
    return libtpu.library_at(asked.libtpu) if asked.libtpu else ""


def _folders(program: str) -> list[Path]:
    """The folder of a file with a function or of an exported program; of a module, that of its outermost package."""
    where, colon, _ = program.rpartition(":")
    if not colon or where.endswith(".py"):
        return [Path(where or program).resolve().parent]
    try:
        found = importlib.util.find_spec(where.partition(".")[0])
    except (ImportError, ValueError):
        return []
    if found is None:
        return []
    places = list(found.submodule_search_locations or ())
    if not places and found.has_location and found.origin:
        places = [os.path.dirname(found.origin)]
    # what is installed counts by its version
    return [Path(each).resolve() for each in places if "site-packages" not in Path(each).parts]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode(errors="surrogateescape")).hexdigest()
