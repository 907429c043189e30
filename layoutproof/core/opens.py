"""What this process opens, as Python reports it while it runs (audit events, PEP 578)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import NamedTuple


class Opening(NamedTuple):
    """A file or folder in the moment before it is opened."""

    path: str
    """Absolute."""
    folder: bool
    """Whether its names are listed."""
    reads: bool
    writes: bool


def opening(event: str, given: tuple[object, ...]) -> Opening | None:
    """What an audit event opens, if it opens anything that has a path.

    event: its name, and `given` its values, as `sys.addaudithook` passes them.

    Modules and their compiled forms are opened as files, libraries of machine code at their import. What other
    processes open, and what libraries open by themselves, is not reported.

    >>> opening("open", ("/a/data.npy", "r+", os.O_RDWR))
    Opening(path='/a/data.npy', folder=False, reads=True, writes=True)
    >>> opening("open", (3, "r", os.O_RDONLY)) is None
    True
    """
    if event == "open":
        path, flags = given[0], given[2]
        access = flags if isinstance(flags, int) else os.O_RDONLY
        writes = bool(access & (os.O_WRONLY | os.O_RDWR))
        reads = not access & (os.O_WRONLY | os.O_TRUNC)
    elif event in ("os.listdir", "os.scandir"):
        path, reads, writes = "." if given[0] is None else given[0], True, False
    elif event == "import" and given[1]:
        path, reads, writes = given[1], True, False
    else:
        return None
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    return Opening(os.path.abspath(os.fsdecode(path)), event.startswith("os."), reads, writes)


def imported() -> Iterator[str]:
    """The files of the modules that are there, opened before anybody listened."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield os.path.abspath(file)
