"""Answers kept between runs: a folder of small files, each named by what was asked and by which tool.

A key holds everything an answer depends on: the question with its layouts as text, and `tool()`: version, the files of
this package, Python, and the solvers. Nothing written by another tool is ever found, let alone trusted. A file is
written beside its place and renamed, so that runs at the same time and a kill at any moment leave whole files only; it
starts with a checksum, and one that does not fit is ignored. Losing the folder loses time, never a verdict.

LAYOUTPROOF_CACHE moves it, or turns it off with `off`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MAX_YAML, YAML_ENDS, files_in, read
from layoutproof.core.plugins import GROUP

UNUSED_DAYS = 30
_OFF = ("off", "0", "none")


def folder() -> Path | None:
    """Where answers are kept, by the platform's convention; None when they are not."""
    given = os.environ.get("LAYOUTPROOF_CACHE", "")
    if given.lower() in _OFF:
        return None
    if given:
        return Path(given)
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "layoutproof"


@lru_cache(maxsize=1)
def tool() -> str:
    """What answers: a digest of this package's version and files, Python, and the solvers' versions."""
    import layoutproof

    root = Path(layoutproof.__file__).parent
    parts = [layoutproof.__version__, sys.version, sys.platform]
    for path in sorted(root.rglob("*.py")):
        seen = path.stat()
        parts.append(f"{path.relative_to(root)} {seen.st_size} {seen.st_mtime_ns}")
    installed = {"islpy", "z3_solver", "sympy", "numpy", "pyyaml", "pydantic", "jax", "jaxlib"}
    for entry in dict.fromkeys(sys.path):
        # the folders' names say name and version; importlib.metadata takes four times as long to import
        if entry and os.path.isdir(entry):
            names = [name for name in os.listdir(entry) if name.endswith(".dist-info")]
            parts += sorted(name for name in names if name.partition("-")[0].lower() in installed)
            for name in sorted(names):
                parts += _files_of_plugins(Path(entry) / name / "entry_points.txt")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _files_of_plugins(entry_points: Path) -> list[str]:
    """The package, and its files as they are, that adds languages, properties, targets or forms behind entry points."""
    try:
        text = entry_points.read_text("utf-8")
    except OSError:
        return []
    if f"[{GROUP}" not in text:
        return []
    parts = [entry_points.parent.name, text]
    for top in sorted(set(re.findall(r"=\s*(\w+)", text))):
        found = importlib.util.find_spec(top)
        for folder in (found.submodule_search_locations or ()) if found is not None else ():
            parts += _as_they_are(Path(folder))
        if found is not None and found.origin is not None:
            parts += _as_they_are(Path(found.origin))
    return parts


def _as_they_are(path: Path) -> list[str]:
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]


def get(key: object) -> Any:
    """What is kept under a key (anything that JSON can hold), or None."""
    path = _path(key)
    if path is None:
        return None
    try:
        data = path.read_bytes()
        digest, _, body = data.partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        kept = json.loads(body)
        return kept["value"] if kept["key"] == _text(key) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def put(key: object, value: object) -> None:
    """Keeps a value (anything that JSON can hold); quietly nothing where the folder cannot be written."""
    path = _path(key)
    if path is None:
        return
    body = json.dumps({"key": _text(key), "value": value}).encode()
    try:
        if not path.parent.is_dir():
            new = not path.parent.parent.is_dir()
            path.parent.mkdir(parents=True, exist_ok=True)
            if new:
                _forget_unused(path.parent.parent)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new.")
    except OSError:
        return
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        os.replace(temporary, path)
    except OSError:
        _unlink(temporary)
    except BaseException:
        _unlink(temporary)
        raise


def key_of_paths(what: Sequence[object], paths: Sequence[str]) -> list[object] | None:
    """A key for something that depends on `what` and on the spec files at these paths, found as `specs.check` does.

    None where that is not all it depends on: a file is missing, or one of them `speaks_of_code`.
    """
    files: dict[str, bytes] = {}
    for given in map(Path, paths):
        for path in files_in(given, YAML_ENDS) if given.is_dir() else [given]:
            try:
                files[str(path)] = read(path, MAX_YAML)
            except LayoutError:
                return None
    if not files or any(map(speaks_of_code, files.values())):
        return None
    return key_of_files([*what, [str(path) for path in paths]], files)


def speaks_of_code(data: bytes) -> bool:
    """Whether a spec file may depend on more than itself: on Python code (`trace:`), or on programs and their dumps."""
    return any(word in data for word in (b"kernels", b"trace", b"programs"))


def remembered(key: list[object] | None, make: Callable[[], tuple[str, int]]) -> tuple[str, int]:
    """What a run printed and its exit code: from before, where nothing that it depends on changed, else made now.

    What ends with 2, bad input or a defect of ours, is never kept.
    """
    kept = None if key is None else get(key)
    if isinstance(kept, list) and len(kept) == 2 and isinstance(kept[0], str) and kept[1] in (0, 1, 3):
        return kept[0], kept[1]
    text, code = make()
    if key is not None and code in (0, 1, 3):
        put(key, [text, code])
    return text, code


def key_of_files(what: Sequence[object], files: Mapping[str, bytes]) -> list[object]:
    """A key for something that depends on these files' names and contents, in this order, and on `what`."""
    return [*what, [[name, hashlib.sha256(data).hexdigest()] for name, data in files.items()]]


def _text(key: object) -> str:
    return json.dumps(key, sort_keys=True)


def _path(key: object) -> Path | None:
    where = folder()
    if where is None:
        return None
    name = hashlib.sha256(_text(key).encode()).hexdigest()
    return where / tool() / name[:2] / f"{name[2:]}.json"


def _forget_unused(mine: Path) -> None:
    """Removes what other versions of the tool left, when nothing was added there for a month."""
    import shutil

    for other in mine.parent.iterdir():
        # only folders that are named as ours are: the cache may have been moved into a folder with other things
        ours = len(other.name) == 32 and set(other.name) <= set("0123456789abcdef")
        if ours and other != mine and time.time() - other.stat().st_mtime > UNUSED_DAYS * 86400:
            shutil.rmtree(other, ignore_errors=True)


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
