"""Ctrl-C at once, also while one long operation of a library runs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_NAME = "layoutproof work"


def beside(work: Callable[[], T]) -> T:
    """What some work gives, done beside the main thread, which waits.

    Signals are handled between two steps of the main thread, and one product of large matrices is one step. Who waits
    here is interrupted at once; the work ends with the process.
    """
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name=_NAME, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.2)
    if failed:
        raise failed[0]
    return found[0]


def leave(code: int) -> None:
    """Ends the process at once where work is left beside; a library that is taken down in the middle of it aborts."""
    if any(thread.name == _NAME for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
