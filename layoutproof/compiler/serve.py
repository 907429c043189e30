"""The answering side of a child process: `serve(answer)` is all that its `main` has to do. `child.py` asks.

The two speak JSON text sequences (RFC 7464) over the pipes that were standard input and output: a record separator, one
JSON text, a line feed. Each request has one answer, and any number of messages of progress before it:

    to the child     {"memory": bytes or null}, once; then {"request": ..} for each
    from the child  {"progress": ..}, {"answer": .., "more": bool}, {"error": name, "words", "fields", "more": bool}

Every other write to standard output, that of native code included, goes to standard error. No other code reads from
standard input.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided, shorten

MARK = "\x1e"
"""The record separator. Inside of a JSON text of ASCII it is always escaped, so whatever stands before it is no part of
an answer."""

Tell = Callable[[Any], None]
"""Sends one message of progress, any plain data."""


def serve(answer: Callable[[Any, Tell], Any], again: Callable[[Any], bool] = lambda value: True) -> None:
    """Answers every request, until the asking side has no more.

    answer: of one request, both plain data; an exception in it is told as such.  again: whether this process is still
    good for another request after that answer; if not, it ends, and a new one takes over.
    """
    requests, answers = _private(sys.stdin, 0), _private(sys.stdout, 1)

    def say(message: object) -> None:
        answers.write(f"{MARK}{json.dumps(message)}\n".encode("ascii"))
        answers.flush()

    def tell(value: object) -> None:
        say({"progress": value})

    answering = threading.Event()
    watched = (os.getppid(), requests.fileno(), answering)
    threading.Thread(target=_leave_with, args=watched, daemon=True).start()
    limit(_of(requests.readline())["memory"])
    for line in requests:
        answering.set()
        try:
            value = answer(_of(line)["request"], tell)
            more = again(value)
            message = json.dumps({"answer": value, "more": more})
        except Exception as error:
            more = not isinstance(error, MemoryError)
            message = json.dumps({**_told(error), "more": more})
        # the caller has the answer and may hang up
        answering.clear()
        answers.write(f"{MARK}{message}\n".encode("ascii"))
        answers.flush()
        if not more:
            return


def limit(memory: int | None) -> None:
    """Not more than so many bytes of address space for this process, and no core files; nothing where no system can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # not on every system

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _leave_with(parent: int, pipe: int, answering: threading.Event) -> None:
    """Ends this process and its children once the caller is gone: in the middle of a long answer nothing else would.

    The caller holds its end of the pipe until it has the answer, and the system closes that end however and whenever
    the caller dies: also before this process could see who its parent is. Where another process, forked from the
    caller, has that end too, the parent changes.
    """
    while os.getppid() == parent and not (answering.is_set() and hung_up(pipe)):
        time.sleep(1.0)
    with contextlib.suppress(AttributeError, OSError):  # where a system has no groups
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)
    os._exit(1)


def hung_up(pipe: int) -> bool:
    """Whether a pipe has no writer left, also if it still holds data; False where the system cannot tell."""
    if not hasattr(select, "poll"):
        return False
    asked = select.poll()
    # Linux says it unasked, macOS does not
    asked.register(pipe, select.POLLHUP)
    return any(said & select.POLLHUP for _, said in asked.poll(0))


def _of(line: bytes) -> Any:
    return json.loads(line.rpartition(MARK.encode())[2])


def _private(stream: Any, number: int) -> Any:
    """The pipe behind a standard stream, for the protocol alone: others find nothing there, and write to stderr."""
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
    own = os.dup(number)
    if number == 0:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        return open(own, "rb")
    os.dup2(2, number)
    return open(own, "wb")


def _told(error: Exception) -> dict[str, object]:
    """An exception as plain data; errors of ours keep their fields."""
    if isinstance(error, LayoutError):
        fields = {"text": error.text, "column": error.column, "file": error.file, "line": error.line}
        return {"error": "LayoutError", "words": error.problem, "fields": fields}
    name = next((kind.__name__ for kind in type(error).__mro__ if issubclass(kind, Undecided)), "")
    words = str(error) if name else shorten(": ".join(filter(None, (type(error).__name__, str(error)))), 2000)
    return {"error": name or "Exception", "words": words, "fields": {}}
