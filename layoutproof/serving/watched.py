"""The files that a process rests on: every file and folder that it has opened, as it was at that moment.

A process that imported a file, or read one while it imported, says what was there then. Who asks it again looks first
whether that is still so. Python itself reports what is opened (audit events, PEP 578): modules, their compiled forms,
folders in which the import system looked, data that user code read. What is not there is noted, too, and may appear.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import stat
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from layoutproof.core.opens import imported, opening

Stamp = list[int | str]
"""A file as it was: a list of numbers and texts, `ABSENT`, or `YOUNG`."""

ABSENT: Stamp = ["absent"]
YOUNG: Stamp = ["young"]
"""Of a file that changed in the moment in which it was opened: it may have changed once more since, unseen."""
_MOMENT = 50_000_000
"""Nanoseconds within which a file system may give two changes one time. Linux counts in steps of 1 to 10 ms."""
_SYSTEM = ("/proc/", "/sys/", "/dev/")
_COMPILED = ".pyc"


def stamp(path: str) -> Stamp:
    """A file or folder as it is now. Of a folder what in it can be imported, of a file what every change of it changes.

    >>> stamp("/no/such/file")
    ['absent']
    """
    try:
        found = os.stat(path)
        # the last change of its entry, which no program can set back as it can the time of its contents
        young = abs(time.time_ns() - found.st_ctime_ns) < _MOMENT
        if stat.S_ISDIR(found.st_mode):
            return ["folder", 0 if young else found.st_ctime_ns, _names(path)]
    except (OSError, ValueError):
        return ABSENT
    return YOUNG if young else [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _names(folder: str) -> str:
    """A digest of the names in a folder that an import may find."""
    ends = tuple(importlib.machinery.all_suffixes())
    held = sorted(n for n in os.listdir(folder) if n.endswith(ends) or (n.isidentifier() and n != "__pycache__"))
    return hashlib.sha256("\0".join(held).encode(errors="surrogatepass")).hexdigest()[:16]


def changed(seen: Mapping[str, Stamp]) -> str:
    """The first path that is no longer as it was, "" where all are."""
    return next((path for path, was in seen.items() if not _stands(path, was)), "")


def _stands(path: str, was: Stamp) -> bool:
    if was == YOUNG:
        return False
    if was[0] != "folder":
        return stamp(path) == was
    try:
        # most folders are as they were, and need not be read
        if os.stat(path).st_ctime_ns == was[1]:
            return True
    except OSError:
        return False
    return stamp(path)[::2] == was[::2]


class Opened:
    """What this process opens, from when `begin` is called. Folders that are its own are not looked at."""

    def __init__(self, own: Sequence[str] = ()) -> None:
        """own: paths of folders of ours, whose contents decide nothing."""
        self._own = (*_SYSTEM, *(os.path.join(os.path.realpath(path), "") for path in own))
        self._seen: dict[str, Stamp] = {}
        self._told: set[str] = set()
        libraries = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
        # this package is large, and may be worked on where it lies
        libraries.append(str(Path(__file__).resolve().parents[1]))
        self._libraries = tuple(os.path.join(folder, "") for folder in libraries)

    def begin(self) -> None:
        """From here on, until the process ends: Python takes no such hook away."""
        for path in imported():
            self._note(path)
        sys.addaudithook(self._hear)

    def told(self) -> dict[str, Stamp]:
        """What was not told before."""
        new = {path: was for path, was in list(self._seen.items()) if path not in self._told}
        self._told |= new.keys()
        return new

    def _hear(self, event: str, given: tuple[object, ...]) -> None:
        if (found := opening(event, given)) is None:
            return
        if found.writes:
            self._seen.pop(found.path, None)
        else:
            self._note(self._source(found.path) if found.path.endswith(_COMPILED) else found.path)

    def _note(self, path: str) -> None:
        if path in self._seen or path.startswith(self._own):
            return
        # before it is looked at, which opens folders
        self._seen[path] = ABSENT
        self._seen[path] = stamp(path)

    def _source(self, path: str) -> str:
        """The source of a compiled module, or itself where it has none.

        One that is no library's is refused, and its source is read: Python takes it for current where the source was
        changed twice within a second and kept its size.
        """
        try:
            source = importlib.util.source_from_cache(path)
        except ValueError:
            return path
        if not source.startswith(self._libraries) and f"{os.sep}site-packages{os.sep}" not in source:
            raise FileNotFoundError(f"{path} is compiled anew")
        return source
