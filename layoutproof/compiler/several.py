"""`child.ask` of several processes at once: the answers in the order of the requests, whoever was first."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from layoutproof.compiler.child import Answer, Child, ask

A = TypeVar("A")


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ask_several(
    child: Child,
    requests: Sequence[Any],
    read: Callable[[Any], A],
    progress: Callable[[int, Any], None] = lambda number, value: None,
    jobs: int = 0,
) -> list[Answer[A]]:
    """One answer for each request, in their order.

    progress: is called with a request's number and each message of progress, and with None once it is answered; one
    call at a time.  jobs: processes at most, 0 = one for each processor.  Raises what `ask` raises.
    """
    answers: list[Answer[A] | None] = [None] * len(requests)
    numbers = iter(range(len(requests)))
    lock = threading.Lock()
    raised: list[BaseException] = []

    def work() -> None:
        now = [0]

        def taken() -> Any:
            while not raised:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                now[0] = number
                yield requests[number]

        def tell(value: Any) -> None:
            with lock:
                progress(now[0], value)

        try:
            for answer in ask(child, taken(), read, tell):
                answers[now[0]] = answer
                tell(None)
        except BaseException as error:
            raised.append(error)

    # the processes end with this one: a thread that waits for an answer holds nothing up
    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs or cores(), len(requests)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
    return [answer for answer in answers if answer is not None]
