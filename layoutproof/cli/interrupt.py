"""Ctrl-C ends a command within a second, also while its main thread is in the middle of one long operation."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

GRACE = 0.5
"""Seconds that the main thread has to hear of it."""


def listen(code: int) -> None:
    """From here on Ctrl-C ends this process with `code`, whatever its main thread does.

    Python handles a signal between two steps of its main thread, and one product of large matrices is one step; an
    exception in a finaliser is lost, and a traceback is shown. A thread hears of the signal at once, and ends the
    process where nothing is raised in time. Where Ctrl-C is ignored, or has another handler, nothing changes.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    if threading.current_thread() is not threading.main_thread():
        return
    heard = threading.Event()
    told, tells = os.pipe()
    os.set_blocking(tells, False)

    def raised(number: int, frame: FrameType | None) -> NoReturn:
        heard.set()
        raise KeyboardInterrupt

    def lost(of: sys.UnraisableHookArgs) -> None:
        if issubclass(of.exc_type, KeyboardInterrupt):
            heard.clear()
            os.write(tells, bytes([signal.SIGINT]))
        else:
            sys.__unraisablehook__(of)

    def watch() -> None:
        while number := os.read(told, 1):
            if number[0] == signal.SIGINT and not heard.wait(GRACE):
                with contextlib.suppress(OSError):
                    os.write(2, b"interrupted\n")
                os._exit(code)

    threading.Thread(target=watch, name="Ctrl-C", daemon=True).start()
    sys.unraisablehook = lost
    signal.set_wakeup_fd(tells, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, raised)


def leave(code: int) -> NoReturn:
    """Ends the process at once: a library that is taken down in the middle of its work aborts, or is waited for."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
