"""Workers that are kept warm: processes of ours that import user code, and are replaced when a file changes.

A worker serves one set of modules, since what it imported under a name stays there. It is asked again only while every
file that it rests on is as it was (`watched`). One more, which has imported the libraries and no code of anybody's, is
made ready in the meantime, so that a new file, or an edit, does not wait for them. Whatever becomes of a worker is an
answer to the one question that it had (`compiler.child`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from typing import TypedDict

from layoutproof.compiler.child import Child, NoLongerAwaited, Reply, ask
from layoutproof.serving.watched import Stamp, changed

WARM: Mapping[str, object] = {"do": "warm"}
"""The request to import what every question needs."""
_LOOK = 0.2
"""Seconds between two looks at whether the caller still waits."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of a worker. value: plain data.  seen: the files that it opened meanwhile, as they were.

    good: whether it can be asked again.
    """

    value: object
    seen: Mapping[str, Stamp]
    good: bool


def read_answer(data: Mapping[str, object]) -> Answered:
    """An answer as a worker writes it. ValueError, TypeError or KeyError for anything else."""
    seen = data["seen"]
    if not isinstance(seen, dict):
        raise TypeError("no files")
    return Answered(data["value"], seen, bool(data["good"]))


class Ran(TypedDict):
    """What a worker answers of a tool: the object that the command prints, the same in words, an SVG or ""."""

    document: dict[str, object]
    text: str
    picture: str


class Worker:
    """A process that is asked one question at a time. modules: those that it may have imported, None for none yet."""

    def __init__(self, child: Child) -> None:
        self.modules: tuple[str, ...] | None = None
        self._seen: dict[str, Stamp] = {}
        self._next: list[object] = []
        self._progress: Callable[[object], None] = _nothing
        self._stop: Callable[[], bool] = _never
        self._answers = ask(child, self._requests(), read_answer, lambda said: self._progress(said), self._stopped)

    def _requests(self) -> Iterator[object]:
        while self._next:
            yield self._next.pop()

    def _stopped(self) -> bool:
        return self._stop()

    def ask(self, request: object, progress: Callable[[object], None], stop: Callable[[], bool]) -> Reply[Answered]:
        """Its answer. Raises NoLongerAwaited where `stop` says so.

        Then, and after a reply without a value, it is over.
        """
        self._next, self._progress, self._stop = [request], progress, stop
        reply = next(self._answers)
        if reply.value is not None:
            self._seen |= reply.value.seen
        return reply

    @property
    def stale(self) -> bool:
        """Whether a file that it rests on has changed."""
        return bool(changed(self._seen))

    def close(self) -> None:
        """Ends its process."""
        self._answers.close()


class Pool:
    """Some workers. Its methods may be called by several threads at once."""

    def __init__(self, child: Child, many: int, seconds: float) -> None:
        """child: the program of a worker.  many: workers that are kept, besides the one made ready.

        seconds: that one question may take; then its worker is ended.
        """
        self._child, self._many, self._seconds = child, many, seconds
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._ready: Future[Worker | None] | None = None
        self._over = False

    def begin(self) -> None:
        """Makes a worker ready in the background."""
        with self._lock:
            if self._ready is not None or self._over:
                return
            self._ready = ready = Future[Worker | None]()
        threading.Thread(target=self._make_ready, args=(ready,), daemon=True).start()

    def _make_ready(self, ready: Future[Worker | None]) -> None:
        worker = Worker(self._child)
        try:
            # it must not outlive the pool
            reply = worker.ask(WARM, _nothing, lambda: self._over)
        except BaseException:
            ready.set_result(None)
            return
        if reply.value is None:
            worker.close()
        ready.set_result(worker if reply.value is not None else None)

    def ask(
        self,
        request: object,
        modules: Sequence[str] = (),
        progress: Callable[[object], None] = lambda said: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Reply[object]:
        """The answer of a worker that has imported these modules, and no others, from files that are as they were.

        Raises NoLongerAwaited where `stop` says so, LayoutError where no process can be started.
        """
        worker = self._taken(tuple(modules), stop)
        until = time.monotonic() + self._seconds
        try:
            reply = worker.ask(request, progress, lambda: stop() or time.monotonic() > until)
        except BaseException as error:
            worker.close()
            if stop() or not isinstance(error, NoLongerAwaited):
                raise
            return Reply(None, f"{self._child.what} did not come to an end within {self._seconds:g} s on it", "slow")
        finally:
            self.begin()
        if reply.value is None:
            worker.close()
            return Reply(None, reply.problem, reply.cause, reply.error, reply.stderr)
        self._keep(worker, reply.value.good)
        return Reply(reply.value.value)

    def _taken(self, modules: tuple[str, ...], stop: Callable[[], bool]) -> Worker:
        while (found := self._idle_for(modules)) is not None:
            if not found.stale:
                return found
            found.close()
        with self._lock:
            ready, self._ready = self._ready, None
        worker = None if ready is None else self._awaited(ready, stop)
        if worker is not None and worker.stale:
            worker.close()
            worker = None
        worker = worker or Worker(self._child)
        worker.modules = modules
        return worker

    def _idle_for(self, modules: tuple[str, ...]) -> Worker | None:
        with self._lock:
            found = next((worker for worker in self._idle if worker.modules == modules), None)
            if found is not None:
                self._idle.remove(found)
        return found

    def _awaited(self, ready: Future[Worker | None], stop: Callable[[], bool]) -> Worker | None:
        while not stop():
            try:
                return ready.result(_LOOK)
            except NotYet:
                continue
        with self._lock:
            # for the next one
            kept = self._ready is None
            self._ready = ready if kept else self._ready
        if not kept:
            ready.add_done_callback(_closed)
        raise NoLongerAwaited

    def _keep(self, worker: Worker, good: bool) -> None:
        with self._lock:
            old = [] if good and not self._over else [worker]
            if not old:
                self._idle.append(worker)
                # the one that was not asked for longest
                old = [self._idle.pop(0)] if len(self._idle) > self._many else []
        for each in old:
            each.close()

    def close(self) -> None:
        """Ends all workers that nobody waits for."""
        with self._lock:
            self._over = True
            idle, self._idle = self._idle, []
            ready, self._ready = self._ready, None
        for worker in idle:
            worker.close()
        if ready is not None:
            _closed(ready)


def _closed(made: Future[Worker | None]) -> None:
    """Ends a worker that was made ready for nothing."""
    worker = made.result()
    if worker is not None:
        worker.close()


def _nothing(said: object) -> None:
    """Hears a message of progress, and does nothing."""


def _never() -> bool:
    return False
