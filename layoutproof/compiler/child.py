"""Questions asked of a process of its own, for what can abort, hang or use up the memory: `ask(child, requests)`.

Every Python process of ours is started here, workers too: none looks for libraries in the folder where it stands, which
may be a stranger's, and each ends with the process that started it. The program that answers calls `serve.serve`.
Whatever becomes of it is an answer: its own, or words that say why there is none, for that one request; the requests
after it go to a new process. Nothing is lost and nothing is asked twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from layoutproof.compiler import problems
from layoutproof.compiler.serve import MARK
from layoutproof.core import errors
from layoutproof.core.errors import LayoutError, Undecided, shorten

A = TypeVar("A")

GRACE = 5.0
"""Seconds that a process has to end by itself once it has no more requests."""
MOST_ANSWER = 1 << 30
"""Bytes of one answer."""
MOST_STDERR = 1 << 16
"""Bytes of standard error that are kept, the last ones."""
_WAKE = 0.2
"""Seconds between two looks at whether the process is still there; its end alone usually says so at once."""

_FATAL = re.compile(r"F\d{4} [\d:.]+\s+\d+ (.*)")
"""How absl says what it dies of: after F, date, time and thread, which change from run to run."""

_SIGNALS = {
    "SIGABRT": "it gave up by itself",
    "SIGBUS": "it read or wrote memory that is not there",
    "SIGFPE": "it divided by zero",
    "SIGILL": "it has an instruction that this processor does not know",
    "SIGKILL": "it was killed, as the system does when memory runs out",
    "SIGSEGV": "it read or wrote memory that is not its own",
    "SIGTERM": "it was asked to end",
    "SIGXCPU": "its processor time is used up",
}


@dataclass(frozen=True, slots=True)
class Child:
    """A program that answers in a process of its own.

    what: who that is, in errors, e.g. "the TPU compiler".  program: a module, as for `python -m`, or a script's path.
    environment: variables besides those of this process.  seconds: that one answer may take, start included; then the
    process is killed.  memory: bytes of address space that it may use, None = no limit.  python: another interpreter,
    as that of a virtual environment; `paths` are then the folders in which it looks for modules before its own.
    folder: in which it runs, "" for the current one.

    It finds the modules that this process finds, but those of the current folder after all others: they must not shadow
    installed ones.
    """

    what: str
    program: str | Path
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 60.0
    memory: int | None = None
    python: Path | None = None
    paths: tuple[str, ...] = ()
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Reply(Generic[A]):
    """The outcome of one request.

    value: the answer, None where there is none.  problem: then why, in words.  cause: "raised" (the program has raised
    an error), "ended" (its process has), "slow" (it took too long and was killed) or "garbled" (no answer of the form
    that was asked for); "" for an answer.  error: a LayoutError, or an Undecided of some kind, that the program raised.
    stderr: the last of what the process wrote to standard error until it ended; "" while it lives.
    """

    value: A | None
    problem: str = ""
    cause: Literal["", "raised", "ended", "slow", "garbled"] = ""
    error: LayoutError | Undecided | None = None
    stderr: str = ""


class NoLongerAwaited(Exception):
    """The caller no longer waits for the answer."""


def ask(
    child: Child,
    requests: Iterable[object],
    read: Callable[[Any], A],
    progress: Callable[[Any], None] = lambda value: None,
    stop: Callable[[], bool] = lambda: False,
) -> Generator[Reply[A], None, None]:
    """One answer for each request, in their order, each as soon as it is there.

    requests: plain data.  read: makes an answer of the plain data that came; an exception in it makes the answer
    "garbled".
    progress: is called with each message of progress.  Closing the iterator ends the process; so does `stop`, which
    is polled while an answer is waited for, for callers in another thread.
    Raises LayoutError where no process can be started, Stopped where `stop` says so.
    """
    process: _Process | None = None
    try:
        for request in requests:
            if process is None:
                process = _Process(child)
            answer, more = _one(process, child, request, read, progress, stop)
            if not more:
                process.close()
                process = None
            yield answer
        if process is not None:
            process.close(GRACE)
            process = None
    finally:
        if process is not None:
            process.close()


def _one(
    process: _Process,
    child: Child,
    request: object,
    read: Callable[[object], A],
    progress: Callable[[object], None],
    stop: Callable[[], bool],
) -> tuple[Reply[A], bool]:
    """(the answer to one request, whether the process may be asked again)."""
    until = time.monotonic() + child.seconds
    process.send({"request": request})
    while True:
        line = process.receive(until, stop)
        if line is _LATE:
            told = process.end()[1]
            words = f"{child.what} did not come to an end within {child.seconds:g} s on it"
            return Reply(None, words, "slow", stderr=told), False
        if line is _ENDED:
            code, told = process.end()
            return Reply(None, ended(child, code, told), "ended", stderr=told), False
        if line is _TOO_LONG:
            words = f"{child.what} gave an answer of more than {MOST_ANSWER >> 20} MiB on it"
            return Reply(None, words, "garbled", stderr=process.end()[1]), False
        try:
            message = json.loads(line)
            if "progress" in message:
                progress(message["progress"])
                continue
            more = message["more"]
            if "error" in message:
                return _raised(child, message), more
            return Reply(read(message["answer"])), more
        except (LayoutError, ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
            said = shorten(f"{type(error).__name__}: {error}", 200)
            return Reply(None, f"{child.what} gave no answer of a known form on it: {said}", "garbled"), False


def _raised(child: Child, message: Mapping[str, Any]) -> Reply[A]:
    kind, words = message["error"], message["words"]
    if kind == "LayoutError":
        return Reply(None, words, "raised", LayoutError(words, **message["fields"]))
    if kind != "Exception":
        made = getattr(errors, kind, Undecided)
        return Reply(None, words, "raised", made(words) if issubclass(made, Undecided) else Undecided(words))
    much = f"; it may use {child.memory >> 20} MiB" if child.memory and words.startswith("MemoryError") else ""
    return Reply(None, f"{child.what} failed on it: {shorten(words, 300)}{much}", "raised")


def ended(child: Child, code: int | None, stderr: str) -> str:
    """In words, how a process ended. code: as `Popen.returncode` has it, None where we had to kill
    it because it had closed its output.  stderr: its output there.

    >>> reader = Child("the reader", "m", memory=1 << 30)
    >>> ended(reader, -6, "F1122 10:00:00.0 1 x.cc:9] Check failed: ok\\n*** stack ***\\n")
    'the reader ended by SIGABRT on it (it gave up by itself): x.cc:9] Check failed: ok'
    >>> ended(reader, -6, "what(): std::bad_alloc")
    'the reader ended by SIGABRT on it (it may use 1024 MiB): what(): std::bad_alloc'
    >>> ended(reader, 3, "")
    'the reader ended with exit code 3 on it'
    """
    said = last_words(stderr)
    quoted = f": {said}" if said else ""
    starved = child.memory is not None and any(word in stderr for word in ("bad_alloc", "MemoryError", "out of memory"))
    why = f"it may use {(child.memory or 0) >> 20} MiB" if starved else ""
    if code is None:
        return f"{child.what} closed its output without an answer to it{quoted}"
    if code >= 0:
        return f"{child.what} ended with exit code {code} on it{f' ({why})' if why else ''}{quoted}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    why = why or _SIGNALS.get(name, "")
    return f"{child.what} ended by {name} on it{f' ({why})' if why else ''}{quoted}"


def last_words(stderr: str) -> str:
    """The line of standard error that says most: where native code gave up, or else the last one that is not empty."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    # stack frames come after what absl writes when it dies
    fatal = [found[1] for line in lines if (found := _FATAL.fullmatch(line))]
    return shorten((fatal[:1] or lines[-1:] or [""])[0], 300)


def _libraries_first() -> list[str]:
    """Where this process finds modules, the current folder last, unless layoutproof itself is run out of it.

    As it is found from here: the process may run in another folder.
    """
    # "." of a folder that was deleted stays as it is
    here, own = os.path.realpath("."), str(Path(__file__).resolve().parents[2])
    paths = [os.path.join(here, path) for path in sys.path if path]
    return sorted(paths, key=lambda path: os.path.realpath(path) == here != own)


class _Sign:
    """Something else than a line."""


_ENDED, _LATE, _TOO_LONG = _Sign(), _Sign(), _Sign()


class _Process:
    """One running process, its pipes served by threads, so that neither side ever waits for the other's pipe."""

    def __init__(self, child: Child) -> None:
        run = ["-m", child.program] if isinstance(child.program, str) else [str(child.program)]
        paths = os.pathsep.join(_libraries_first() if child.python is None else filter(None, child.paths))
        # of what it starts in turn, a library's own processes included, none looks in its folder either
        safe = {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
        try:
            self.popen = subprocess.Popen(
                [child.python or sys.executable, "-P", *run],
                env={**os.environ, **child.environment, **safe},
                cwd=child.folder or None,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # its own group, so that what it has started ends with it; Ctrl-C reaches us, and we end it
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise LayoutError(problems.NO_PYTHON_PROCESS(child.what, error)) from None
        self.lines: queue.Queue[bytes | _Sign] = queue.Queue(maxsize=1000)
        self.outgoing: queue.Queue[bytes | None] = queue.Queue()
        self.told = self.printed = b""
        self.closed = False
        jobs = (self._listen, self._overhear, self._talk)
        self.threads = [threading.Thread(target=job, daemon=True) for job in jobs]
        for thread in self.threads:
            thread.start()
        self.send({"memory": child.memory})

    def send(self, message: object) -> None:
        """Puts a message into the pipe, without waiting until it is read."""
        self.outgoing.put(f"{MARK}{json.dumps(message)}\n".encode("ascii"))

    def receive(self, until: float, stop: Callable[[], bool]) -> Any:
        """The JSON text of its next message, or _LATE at a time of the monotonic clock, _ENDED, _TOO_LONG.

        Raises Stopped.
        """
        gone = False
        while True:
            left = until - time.monotonic()
            try:
                return self.lines.get(timeout=max(0.0, min(left, _WAKE)))
            except queue.Empty:
                if stop():
                    raise NoLongerAwaited from None
                # a process that it has started may hold its pipe open for ever
                if gone:
                    return _ENDED
                gone = self.popen.poll() is not None
                if left <= 0:
                    return _LATE

    def end(self) -> tuple[int | None, str]:
        """Kills it where it still runs. Its exit code, None where we killed it; the last that it wrote to stderr."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            # a process that has closed its pipes is about to end by itself, and its own code says more than ours
            if not self.threads[0].is_alive():
                self.popen.wait(1.0)
        code = self.popen.poll()
        self.close()
        return code, (self.told or self.printed).decode("utf-8", "replace")

    def close(self, grace: float = 0.0) -> None:
        """Ends it: it has so many seconds to do so by itself."""
        self.closed = True
        self.outgoing.put(None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if grace:
                self.popen.wait(grace)
        if self.popen.poll() is None:
            with contextlib.suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(self.popen.pid, signal.SIGKILL)
                else:
                    self.popen.kill()
        self.popen.wait()
        for thread in self.threads:
            # a child of it may hold a pipe open: then its thread goes on until that ends too
            thread.join(1.0)

    def _talk(self) -> None:
        # it may be gone, or never read: who waits for its answer hears of that
        with contextlib.suppress(OSError, ValueError), self.popen.stdin as pipe:  # type: ignore[union-attr]
            while (message := self.outgoing.get()) is not None:
                pipe.write(message)
                pipe.flush()

    def _listen(self) -> None:
        mark = MARK.encode()
        with contextlib.suppress(OSError, ValueError), self.popen.stdout as pipe:  # type: ignore[union-attr]
            while line := pipe.readline(MOST_ANSWER):
                _, found, text = line.rpartition(mark)
                if found and line.endswith(b"\n"):
                    self._put(text)
                elif found and len(line) >= MOST_ANSWER:
                    self._put(_TOO_LONG)
                else:
                    # no message: output from before the protocol began
                    self.printed = (self.printed + line)[-MOST_STDERR:]
        self._put(_ENDED)

    def _put(self, line: bytes | _Sign) -> None:
        while not self.closed:
            with contextlib.suppress(queue.Full):
                self.lines.put(line, timeout=_WAKE)
                return

    def _overhear(self) -> None:
        with contextlib.suppress(OSError, ValueError), self.popen.stderr as pipe:  # type: ignore[union-attr]
            while part := pipe.read1(1 << 16):  # type: ignore[union-attr]
                self.told = (self.told + part)[-MOST_STDERR:]
