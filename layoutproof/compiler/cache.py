"""Answers kept between runs: a folder of small files, each named by what was asked and by which tool.

A key holds everything an answer depends on: the question with its layouts as text, and `tool()`: version, the files of
this package, Python, and the solvers. Nothing written by another tool is ever found, let alone trusted. A file is
written beside its place and renamed, so that runs at the same time and a kill at any moment leave whole files only.
Losing the folder loses time, never a verdict.

Keys and values name files of the repository, and of installed libraries, from where these lie: `_MARKS` stands for
either folder. So another checkout, or another machine with the same secret, finds what this one kept, and reads its own
paths there. Entries of one name were made of one question by one tool: two folders are merged by copying files.

An entry is believed because of who wrote it. It starts with a message authentication code (HMAC-SHA256, RFC 2104) over
tool, key and value, by a secret that lies outside of the folder in a file of the user's own: an edited, moved or added
file is a miss. The folder is the user's alone, or it is not used at all and `refused` says why. Anything else in the
place of an entry, a pipe, a link, a file without end, is a miss.

LAYOUTPROOF_CACHE moves the folder, or turns it off with `off`; LAYOUTPROOF_CACHE_KEY is the secret where a run has to
believe what a run on another machine has kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import importlib.util
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from layoutproof.compiler import problems
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MAX_YAML, MIB, YAML_ENDS, files_in, not_own, read, repository_of
from layoutproof.core.plugins import GROUP

FOLDER = "LAYOUTPROOF_CACHE"
SECRET = "LAYOUTPROOF_CACHE_KEY"
UNUSED_DAYS = 30
MOST_ENTRY = 64 * MIB
"""Bytes of one entry."""
MOST_SOURCE = 16 * MIB
"""Bytes of one file of this package, or of a plugin's."""
LEAST_SECRET = 32
"""Characters of a secret that is given: 128 bits as hexadecimal digits."""
_OFF = ("off", "0", "none")
_BYTES = 32
_MARKS = ("\0here", "\0libraries")
"""What stands in an entry for the repository's folder, and for that of installed libraries; no path has a NUL."""


def folder() -> Path | None:
    """Where answers are kept, by the platform's convention; None when they are not."""
    given = os.environ.get(FOLDER, "")
    if given.lower() in _OFF:
        return None
    return Path(given) if given else _ours("XDG_CACHE_HOME", ".cache", "Caches", "LOCALAPPDATA", "Local")


def _ours(variable: str, linux: str, macos: str, windows: str, under: str) -> Path | None:
    """Our folder of one kind, by the platform's convention; None where this user has no home."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get(windows) or home / "AppData" / under)
    elif sys.platform == "darwin":
        base = home / "Library" / macos
    else:
        base = Path(os.environ.get(variable) or home / linux)
    return base / "layoutproof"


@contextlib.contextmanager
def unused() -> Iterator[None]:
    """Within it nothing is kept and nothing that was kept is believed, here and in processes that are started."""
    before = os.environ.get(FOLDER)
    os.environ[FOLDER] = _OFF[0]
    try:
        yield
    finally:
        if before is None:
            del os.environ[FOLDER]
        else:
            os.environ[FOLDER] = before


def refused() -> str:
    """Why answers are not kept, because another user could write them; "" for no such reason."""
    try:
        where = folder()
        if where is not None and _is_there(where):
            _secret(where, make=False)
    except LayoutError as error:
        return f"no answer is kept or believed: {error}"
    return ""


@lru_cache(maxsize=1)
def tool() -> str:
    """A digest of the answering code: this package's version and files, Python, and the versions of the engines."""
    import layoutproof

    root = Path(layoutproof.__file__).parent
    parts = [layoutproof.__version__, sys.version, sys.platform]
    for path in sorted(root.rglob("*.py")):
        parts.append(_as_it_is(path, root))
    installed = {"islpy", "z3_solver", "sympy", "numpy", "pyyaml", "pydantic", "jax", "jaxlib", "libtpu"}
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
        text = read(entry_points, MOST_SOURCE).decode(errors="replace")
    except LayoutError:
        return []
    if f"[{GROUP}" not in text:
        return []
    parts = [entry_points.parent.name, text]
    for top in sorted(set(re.findall(r"=\s*(\w+)", text))):
        found = importlib.util.find_spec(top)
        for folder in (found.submodule_search_locations or ()) if found is not None else ():
            parts += [_as_it_is(path, Path(folder)) for path in sorted(Path(folder).rglob("*.py"))]
        if found is not None and found.origin is not None:
            parts.append(_as_it_is(Path(found.origin), Path(found.origin).parent))
    return parts


def _as_it_is(path: Path, root: Path) -> str:
    """The name and contents of one file. Its time says too little: an edit can keep it, and every install sets it."""
    try:
        return f"{path.relative_to(root)} {hashlib.sha256(read(path, MOST_SOURCE)).hexdigest()}"
    except LayoutError as error:
        return f"{path} {error}"


def get(key: object) -> Any:
    """The entry of a key (anything that JSON can hold), or None."""
    try:
        where = folder()
        secret = None if where is None or not _is_there(where) else _secret(where, make=False)
        if where is None or secret is None:
            return None
        text = _text(key)
        path = _path(where, text)
        code, _, body = read(path, MOST_ENTRY, own=True).partition(b"\n")
        # before it is read: no other user's file is parsed
        if not hmac.compare_digest(_code(secret, body), code):
            return None
        kept = json.loads(body)
        # its time says when it was last of use, where it may be written
        with contextlib.suppress(OSError):
            os.utime(path)
        return _here(kept["value"]) if kept["key"] == text else None
    except (LayoutError, OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def put(key: object, value: object) -> None:
    """Keeps a value (anything that JSON can hold); quietly nothing where the folder is refused or cannot be written."""
    import tempfile

    where = folder()
    if where is None:
        return
    try:
        if not _is_there(where):
            where.mkdir(0o700, parents=True, exist_ok=True)
        secret = _secret(where, make=True)
        text, held = _text(key), _anywhere(value)
        path, body = _path(where, text), json.dumps({"key": text, "value": held}).encode()
        if secret is None or len(body) > MOST_ENTRY // 2:
            return
        mine, part = path.parent.parent, path.parent
        new = not mine.is_dir()
        for each in (mine, part):
            with contextlib.suppress(FileExistsError):
                each.mkdir(0o700)
            if not _is_there(each):
                return
        if new:
            _forget_unused(mine)
        descriptor, temporary = tempfile.mkstemp(dir=part, prefix=".new.")
    except (LayoutError, OSError, ValueError, RecursionError):
        return
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(_code(secret, body) + b"\n" + body)
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
        for path in files_in(given, YAML_ENDS) if os.path.isdir(given) else [given]:
            try:
                files[str(path)] = read(path, MAX_YAML)
            except LayoutError:
                return None
    if not files or any(map(speaks_of_code, files.values())):
        return None
    return key_of_files([*what, [str(path) for path in paths]], files)


def speaks_of_code(data: bytes) -> bool:
    """Whether a spec file may depend on more than itself: on Python code (`trace:`), or on programs and their dumps.

    One with a backslash may: escapes in YAML's quotes, or UTF-16, spell these words otherwise.
    """
    return any(word in data for word in (b"kernels", b"trace", b"programs", b"\\", b"\0"))


def remembered(key_now: Callable[[], list[object] | None], make: Callable[[], tuple[str, int]]) -> tuple[str, int]:
    """The output of a run and its exit code: from before, where nothing that it depends on changed, else made now.

    A run that ends with 2, bad input or a defect of ours, is never kept; nor is one whose files were written meanwhile.
    """
    key = key_now()
    kept = None if key is None else get(key)
    if isinstance(kept, list) and len(kept) == 2 and isinstance(kept[0], str) and kept[1] in (0, 1, 3):
        return kept[0], kept[1]
    text, code = make()
    if key is not None and code in (0, 1, 3) and key == key_now():
        put(key, [text, code])
    return text, code


def key_of_files(what: Sequence[object], files: Mapping[str, bytes]) -> list[object]:
    """A key for something that depends on these files' names and contents, in this order, and on `what`."""
    return [*what, [[name, hashlib.sha256(data).hexdigest()] for name, data in files.items()]]


def anywhere(text: str) -> str:
    """A text that is the same in every checkout: the repository's folder, and that of installed libraries, are marks.

    A path is meant where nothing of a name stands before it, and a separator, a quote or nothing after it.
    """
    for mark, path in _folders():
        if path in text:
            text = re.sub(rf"(?<![\w./\\-]){re.escape(path)}(?=[/\\\"']|$)", mark, text)
    return text


def _folders() -> list[tuple[str, str]]:
    """(mark, folder), the longer first: an environment may lie in the repository, and the other way round."""
    found = dict.fromkeys(_MARKS, "")
    # the folder where we are may be gone
    with contextlib.suppress(OSError):
        found[_MARKS[0]] = str(repository_of(Path.cwd()))
    found[_MARKS[1]] = next((entry for entry in sys.path if entry.endswith("site-packages")), "")
    # the root of a disk is the beginning of everything
    return sorted(((m, f) for m, f in found.items() if os.path.dirname(f) != f), key=lambda pair: -len(pair[1]))


def _anywhere(value: object) -> object:
    """A key or a value as an entry has it, with marks for folders. ValueError where it has some of its own."""
    if "\\u0000" in json.dumps(value):
        raise ValueError(value)
    return _changed(value, anywhere)


def _here(value: object) -> object:
    """The same with the folders of this run. ValueError where it has none of a kind."""
    folders = _folders()

    def put_back(text: str) -> str:
        for mark, path in folders:
            text = text.replace(mark, path)
        if "\0" in text:
            raise ValueError(text)
        return text

    return _changed(value, put_back)


def _changed(value: object, change: Callable[[str], str]) -> object:
    """Data as JSON has it, with each text changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_changed(each, change) for each in value]
    if isinstance(value, Mapping):
        return {change(name) if isinstance(name, str) else name: _changed(v, change) for name, v in value.items()}
    return value


def _text(key: object) -> str:
    return json.dumps([tool(), _anywhere(key)], sort_keys=True)


def _path(where: Path, text: str) -> Path:
    name = hashlib.sha256(text.encode()).hexdigest()
    return where / tool() / name[:2] / f"{name[2:]}.json"


def _code(secret: bytes, body: bytes) -> bytes:
    """The authentication code of an entry. The first word keeps it apart from other uses of the secret."""
    return hmac.new(secret, b"layoutproof answer\n" + body, hashlib.sha256).hexdigest().encode()


def _is_there(where: Path) -> bool:
    """Whether a folder of ours is there. LayoutError where it is not this user's alone, or no folder."""
    try:
        found = os.lstat(where)
    except (OSError, ValueError):
        return False
    kinds = stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode)
    if problem := not_own(found) if kinds else "it is no folder":
        raise LayoutError(problems.OTHER_FOLDER(problem, FOLDER), file=str(where))
    return True


def _secret(where: Path, make: bool) -> bytes | None:
    """The secret of a folder of answers; None where there is none. make: one is made where there is none yet.

    Raises LayoutError where it is none to rely on: too short, or in a file that is not this user's alone.
    """
    given = os.environ.get(SECRET, "")
    if given:
        if len(given) < LEAST_SECRET:
            raise LayoutError(problems.SECRET(SECRET, len(given), LEAST_SECRET))
        return hashlib.sha256(given.encode(errors="surrogateescape")).digest()
    kept = _ours("XDG_STATE_HOME", ".local/state", "Application Support", "APPDATA", "Roaming")
    if kept is None:
        return None
    path = kept / "cache.key"
    if path.resolve().is_relative_to(where.resolve()):
        raise LayoutError(problems.KEY_IN_FOLDER(FOLDER), file=str(path))
    if not os.path.lexists(path):
        if not make:
            return None
        _make_secret(path)
    return _secret_in(path)


@lru_cache(maxsize=4)
def _secret_in(path: Path) -> bytes:
    _is_there(path.parent)
    data = read(path, 1024, own=True)
    if len(data) != _BYTES:
        raise LayoutError(problems.KEY_SIZE(_BYTES), file=str(path))
    return data


def _make_secret(path: Path) -> None:
    """Puts a new secret there, whole or not at all. Of two processes that do so the first one's stays: it keeps it in
    mind, and what it wrote under it would not be believed under another.
    """
    import secrets
    import tempfile

    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    _is_there(path.parent)
    # mkstemp makes files that only their owner may read
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(_BYTES))
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:
            # a file system without hard links
            os.replace(temporary, path)
    finally:
        _unlink(temporary)


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
