"""Files of a user: regular ones only, at most a bound, and a LayoutError for everything else.

Every command reads a user's file through here. A plain `open` of a pipe without a writer waits for ever, a device may
never end, and a sparse file of a few bytes on disk may have any size: the kind and the size of a path's target are
checked before anything is read.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from layoutproof.core import problems
from layoutproof.core.errors import LayoutError

MIB = 1 << 20
STDIN = "-"
"""The path that means standard input, where a command reads texts by the line."""
MAX_TEXT = 512 * MIB
"""Bytes of a program's text, unpacked."""
MAX_LINE = 32 * MIB
"""Characters of one line of it; constants of real programs reach some MiB."""
MAX_LINES = 1 << 24
"""Of it; a line of a program has more than a letter, and line ends are what packs best."""

YAML_ENDS = (".yaml", ".yml")
"""How the names of spec and search files end."""
MAX_YAML = 4 * MIB
DUMP_ENDS = (".txt", ".hlo", ".txt.gz", ".hlo.gz")
"""How the names of dumps end."""
PROGRAM_ENDS = (".json",)
"""How the names of records of compiled programs end."""
RECORD_ENDS = (".jsonl", ".jsonl.gz")
"""How the names of records of traced Pallas calls end."""

PYPROJECT = "pyproject.toml"
MAX_CONFIG = 4 * MIB
"""Bytes of a pyproject.toml."""
MOST_PARTS = 100
"""Of one key of it, `a.b.c`."""
_OF_KEY = r"""([\w\-]++|"[^"\n]*+"|'[^'\n]*+')|[^\S\n]++|[^\w\-]"""

_GZIP = b"\x1f\x8b"
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_OWN_LINKS: ContextVar[bool] = ContextVar("own links", default=False)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read(path: str | Path, most: int, own: bool = False) -> bytes:
    """The contents of a regular file of at most `most` bytes.

    own: only of a file that is this user's alone, and no link; `not_own` says what that is.
    Raises LayoutError, with the file, for everything else: no file, a pipe, a device, a larger file, one that the
    system does not let us read.
    """
    with _opened(path, most, own) as stream:
        try:
            # what /proc calls an empty file may go on for ever
            data = stream.read(most + 1)
        except OSError as error:
            raise _refused(path, _said(error)) from error
    if data is None:
        raise _refused(path, "it has nothing to read now")
    if len(data) > most:
        raise _refused(path, _too_large(most))
    return data


def not_own(found: os.stat_result) -> str:
    """Why a file, by its `os.lstat`, which follows no link, is not this user's alone; "" where it is.

    The owner of a link chooses its target, and everyone who may write to a folder chooses its files. Where the system
    has no numeric user ids only a link is refused.
    """
    if stat.S_ISLNK(found.st_mode):
        return "it is a link"
    if not hasattr(os, "geteuid"):
        return ""
    if found.st_uid != os.geteuid():
        return f"it belongs to another user, number {found.st_uid}"
    if found.st_mode & 0o077:
        mode = "700" if stat.S_ISDIR(found.st_mode) else "600"
        return f"others may read or write it, by its mode {stat.S_IMODE(found.st_mode):o}: `chmod {mode}` it"
    return ""


def read_json(path: str | Path, most: int) -> Any:
    """The value in a JSON file of at most `most` bytes. Raises LayoutError, with the file, where it is no JSON."""
    import json  # here, and others below: they take a cold command milliseconds, and most need none of them

    data = read(path, most)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise LayoutError(problems.NO_JSON(error), file=str(path)) from None


def toml_of(data: str | bytes, place: str) -> dict[str, Any]:
    """The table in a TOML text. Raises LayoutError, which begins with `place`, where it is no TOML.

    Python's reader takes time quadratic in the parts of one key, `a.b.c`: they are counted first.

    >>> toml_of("a.b = 1", "pyproject.toml")
    {'a': {'b': 1}}
    """
    import tomllib

    try:
        text = data.decode() if isinstance(data, bytes) else data
        if _parts(text) <= MOST_PARTS:
            return tomllib.loads(text)
    except RecursionError:
        raise LayoutError(problems.TOML_TOO_DEEP(place)) from None
    except ValueError as error:  # TOMLDecodeError, UnicodeDecodeError, and a number of thousands of digits
        raise LayoutError(problems.NOT_TOML(place, error)) from None
    raise LayoutError(problems.TOML_KEY(place, MOST_PARTS))


def _parts(text: str) -> int:
    """Of the longest of what may be keys."""
    longest, parts, dotted = 1, 1, False
    for found in re.finditer(_OF_KEY, text):
        if found[0] == ".":
            dotted = not dotted
        elif found[1]:
            parts, dotted = parts + 1 if dotted else 1, False
            longest = max(longest, parts)
        elif not found[0].isspace() or found[0] == "\n":
            dotted = False
    return longest


def not_there(given: str | Path) -> LayoutError:
    """The error of a path where nothing is."""
    return LayoutError(problems.NO_FILE(given, unless_named(given)))


def unless_named(*paths: str | Path) -> str:
    """The advice where the folder that commands read by default holds nothing; else "".

    >>> unless_named("specs"), unless_named("a.yaml")
    ('; it is read where no path is given: name your files, as in `layoutproof check my.yaml`', '')
    """
    hint = "; it is read where no path is given: name your files, as in `layoutproof check my.yaml`"
    return hint if [*map(str, paths)] == ["specs"] else ""


@contextmanager
def own_links(only: bool) -> Iterator[None]:
    """Within it, where `only`, a link that leads out of its repository is not read through: a stranger may have made
    it, and of what lies elsewhere on the machine a report would quote a line.
    """
    token = _OWN_LINKS.set(only)
    try:
        yield
    finally:
        _OWN_LINKS.reset(token)


def repository_of(folder: Path) -> Path:
    """The nearest folder upwards that has .git, else the nearest that has a pyproject.toml, else the folder itself."""
    above = (folder, *folder.parents)
    for mark in (".git", PYPROJECT):
        found = next((f for f in above if (f / mark).exists()), None)
        if found is not None:
            return found
    return folder


def _leads_out(path: str | Path) -> bool:
    """Whether a link in a path leads out of the repository of the current folder, or out of that which the path names.

    Its `.git` counts as outside too: the settings there can hold the token of the checkout.
    """
    named, real = Path(os.path.abspath(path)), Path(os.path.realpath(path))
    if named == real:
        return False
    here = repository_of(Path.cwd())
    if (here / ".git").exists() and named.is_relative_to(here):
        root = here
    else:
        # the outermost one: a folder that a link leads to may be a repository itself
        alone = Path.cwd() if named.is_relative_to(Path.cwd()) else named.parent
        root = next((f for f in reversed(named.parents) if (f / ".git").exists()), alone)
    inside = Path(os.path.realpath(root))
    return not real.is_relative_to(inside) or ".git" in real.relative_to(inside).parts


def named(path: str) -> Path:
    """A path that a file names, not the user. Where only own links are followed, it has to lie in the repository of the
    current folder and outside of its `.git`: a report would quote a line of any other file.
    """
    if _OWN_LINKS.get():
        root, real = Path(os.path.realpath(repository_of(Path.cwd()))), Path(os.path.realpath(path))
        # where the command stands at the top of the machine everything would be within
        inside = real.is_relative_to(root) and root != Path(root.anchor)
        if not inside or ".git" in real.relative_to(root).parts:
            raise _refused(path, "it lies outside of the repository; with --no-trace a file names what is in it")
    return Path(path)


def files_in(folder: Path, ends: Sequence[str]) -> list[Path]:
    """The files below a folder with such an ending, sorted; links to folders are not followed.

    Files that cannot be read are among them, and so are folders that cannot be listed: reading one raises the reason,
    so that no file is skipped in silence.
    """
    unlisted: list[Path] = []
    walk = os.walk(folder, onerror=lambda error: unlisted.append(Path(error.filename)))
    found = [Path(where, name) for where, _, names in walk for name in names if name.endswith(tuple(ends))]
    return sorted([*found, *unlisted])


def listed(folder: Path) -> list[Path]:
    """The entries of a folder, sorted. LayoutError where it cannot be listed."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise _refused(folder, _said(error)) from None


@contextmanager
def lines(path: str | Path) -> Iterator[Iterator[str]]:
    """The lines of a program's text, one at a time, line ends as `\\n`: a file's, or standard input's for `-`.

    Gzip is unpacked on the way; byte order marks of UTF-8 and UTF-16 are understood, other bytes that are no UTF-8
    become replacement characters. Raises LayoutError as `read` does, and in the middle of the lines where a
    line is longer than `MAX_LINE`, the whole than `MAX_TEXT` or `MAX_LINES`, or a packed file broken.
    """
    with _stdin() if str(path) == STDIN else _opened(path, MAX_TEXT) as stream, _text(stream, path) as text:
        yield _bounded(text, path)


def lines_of(text: str, name: str) -> Iterator[str]:
    """The lines of a text that is at hand, as `lines` gives those of a file, within the same bounds. name: of errors.

    >>> list(lines_of("HloModule m\\r\\n}", "the text"))
    ['HloModule m\\n', '}']
    """
    return _bounded(io.StringIO(text, newline=None), name)


def unpacked(data: bytes, most: int = MAX_TEXT) -> bytes:
    """The bytes of a program's text as UTF-8 without a mark, unpacked where gzip packed it; equal texts, equal bytes.

    LayoutError for a broken packed file, for one that unpacks to more than `most` bytes, and for too many lines.

    >>> import gzip
    >>> unpacked(gzip.compress(b"HloModule m")), unpacked("\\ufeffHloModule m".encode("utf-16"))
    (b'HloModule m', b'HloModule m')
    """
    if data.startswith(_GZIP):
        import gzip
        import zlib

        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                data = stream.read(most + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise LayoutError(problems.NOT_GZIP(error)) from None
        if len(data) > most:
            raise LayoutError(problems.UNPACKED(_too_large(most)))
    if data.count(b"\n") > MAX_LINES:
        raise LayoutError(_too_many_lines())
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace").removeprefix("\ufeff").encode()
    return data


def _opened(path: str | Path, most: int, own: bool = False) -> BinaryIO:
    """A regular file of at most `most` bytes, open. LayoutError for anything else. own: no link, and of this user."""
    names = ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY", *(["O_NOFOLLOW"] if own else []))
    flags = sum(getattr(os, name, 0) for name in names)
    if _OWN_LINKS.get() and _leads_out(path):
        raise _refused(path, "a link out of the repository; with --no-trace none is followed")
    try:
        found = os.lstat(path) if own else os.stat(path)
    except (OSError, ValueError) as error:
        raise _refused(path, _said(error)) from error
    # before it is opened: opening a device can do something
    _regular(path, found, most, own)
    try:
        stream = os.fdopen(os.open(path, os.O_RDONLY | flags), "rb")
    except (OSError, ValueError) as error:
        raise _refused(path, _said(error)) from error
    try:
        # it may have been exchanged in between
        _regular(path, os.fstat(stream.fileno()), most, own)
    except BaseException:
        stream.close()
        raise
    return stream


def _stdin() -> BinaryIO:
    """Standard input as a stream of its own, which the caller closes."""
    if sys.stdin is None:
        raise LayoutError(problems.NO_STANDARD_INPUT())
    try:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    except (OSError, ValueError):  # a test's or a notebook's stream, which is no file
        return io.BytesIO(sys.stdin.buffer.read(MAX_TEXT))


def _regular(path: str | Path, found: os.stat_result, most: int, own: bool) -> None:
    if own and (problem := not_own(found)):
        raise _refused(path, problem)
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), "nothing that holds text")
        raise _refused(path, f"{kind}, not a file")
    if found.st_size > most:
        raise _refused(path, _too_large(most))


def _text(stream: BinaryIO, path: str | Path) -> io.TextIOWrapper:
    import gzip
    import zlib

    try:
        buffered: Any = io.BufferedReader(stream)
        if buffered.peek(2)[:2] == _GZIP:
            buffered = io.BufferedReader(gzip.GzipFile(fileobj=buffered))
        first = buffered.peek(3)
    except (OSError, EOFError, zlib.error) as error:
        raise _refused(path, f"not a whole file: {_said(error)}") from None
    encoding = next((encoding for mark, encoding in _MARKS if first.startswith(mark)), "utf-8")
    return io.TextIOWrapper(buffered, encoding=encoding, errors="replace")


def _bounded(text: TextIO, path: str | Path) -> Iterator[str]:
    import zlib

    number, total = 0, 0
    while True:
        try:
            line = text.readline(MAX_LINE + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise _refused(path, f"not a whole file: {_said(error)}", number + 1) from None
        if not line:
            return
        number += 1
        total += len(line)
        if len(line) > MAX_LINE:
            raise _refused(path, f"a line of more than {MAX_LINE // MIB} MiB", number)
        if total > MAX_TEXT:
            raise _refused(path, _too_large(MAX_TEXT), number)
        if number > MAX_LINES:
            raise _refused(path, _too_many_lines(), number)
        yield line


def _too_many_lines() -> str:
    return f"more than {MAX_LINES:,} lines"


def _too_large(most: int) -> str:
    return f"larger than {most // MIB} MiB"


def _said(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _refused(path: str | Path, why: str, line: int | None = None) -> LayoutError:
    return LayoutError(why, file="<stdin>" if str(path) == STDIN else Path(path).as_posix(), line=line)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file in one step: no reader ever sees half of it. LayoutError when there is no such folder.

    A device or a pipe, /dev/stdout among them, is written into: a file in its place would take it from everybody. A
    link is replaced and not followed, since a stranger may have put it there.
    """
    if not path.parent.is_dir():
        raise LayoutError(problems.NO_FOLDER(path, path.parent))
    if _is_device(path):
        with open(path, "wb") as stream:
            stream.write(data)
        return
    import tempfile

    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        # a temporary file is private to its owner; a picture is not
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _is_device(path: Path) -> bool:
    """Whether a path names what no file can stand in for. The links in /dev are the system's."""
    try:
        found = os.stat(path) if path.absolute().parts[1:2] == ("dev",) else os.lstat(path)
    except (OSError, ValueError):
        return False
    return not any(kind(found.st_mode) for kind in (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK))
