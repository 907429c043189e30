"""What a run that takes long says of itself: a progress bar on stderr, and words for who listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Listener = Callable[[str], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
Progress = Callable[[int, int], None]
PATIENCE = 2.0
"""Seconds before a progress bar appears."""


@contextmanager
def progress_bar(what: str, shown: bool) -> Iterator[Progress | None]:
    """Gives what is to be called with how many are done and of how many; rich is imported only when a bar appears."""
    if not shown:
        yield None
        return
    start = time.monotonic()
    bar: list[Any] = []

    def progress(done: int, total: int) -> None:
        if not bar and time.monotonic() - start > PATIENCE:
            from rich.console import Console
            from rich.progress import Progress as Bar

            bar.append(Bar(console=Console(stderr=True), transient=True))
            bar[0].add_task(what, total=total)
            bar[0].start()
        if bar:
            bar[0].update(bar[0].task_ids[0], completed=done, total=total)

    try:
        yield progress
    finally:
        if bar:
            bar[0].stop()


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Within it that is told what is done now, in words, instead of a terminal."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def listener() -> Listener | None:
    """Who is told what is done now, None for whoever looks at the terminal."""
    return _LISTENER.get()
