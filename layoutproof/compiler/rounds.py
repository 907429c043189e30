"""Questions whose answers lead to more questions: `ask_in_rounds`, each round by several processes at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Generic, TypeVar

from layoutproof.compiler.child import Child, NoLongerAwaited, Reply, ask

A = TypeVar("A")
R = TypeVar("R")


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ask_in_rounds(
    child: Child,
    plan: Generator[Sequence[object], list[Reply[A]], R],
    read: Callable[[Any], A],
    progress: Callable[[int, Any], None] = lambda number, value: None,
    jobs: int = 0,
) -> R:
    """Runs a plan and returns its result: it yields the requests of a round, and is sent their answers, in their order.

    One process answers in all rounds; others help where a round has several requests. progress: is called with a
    request's number in its round and each message of progress, and with None once it is answered; one call at a time.
    jobs: processes at most, 0 = one for each processor.  Raises what `ask` and the plan raise.
    """
    lock = threading.Lock()
    raised: list[BaseException] = []
    returned: list[R] = []
    now: _Round[A] = _Round(next(plan))

    def told(taken: list[int]) -> Callable[[object], None]:
        def tell(value: object) -> None:
            with lock:
                progress(taken[-1], value)

        return tell

    def requests(of: _Round[A], taken: list[int]) -> Iterator[object]:
        while not raised:
            with lock:
                number = next(of.left, None)
            if number is None:
                return
            taken.append(number)
            yield of.requests[number]

    def help_with(of: _Round[A]) -> None:
        taken: list[int] = []
        try:
            for answer in ask(child, requests(of, taken), read, told(taken), lambda: bool(raised)):
                of.answers[taken[-1]] = answer
                told(taken)(None)
        except NoLongerAwaited:
            return
        except BaseException as error:
            raised.append(error)

    def led(taken: list[int]) -> Iterator[object]:
        """The requests of all rounds, those that others do not take."""
        nonlocal now
        while True:
            many = min(jobs or cores(), len(now.requests)) - 1
            # their processes end with this one: a thread that waits for an answer holds nothing up
            helpers = [threading.Thread(target=help_with, args=(now,), daemon=True) for _ in range(many)]
            for helper in helpers:
                helper.start()
            yield from requests(now, taken)
            for helper in helpers:
                helper.join()
            if raised:
                raise raised[0]
            try:
                now = _Round(plan.send([now.answers[number] for number in range(len(now.requests))]))
            except StopIteration as end:
                returned.append(end.value)
                return

    taken: list[int] = []
    try:
        for answer in ask(child, led(taken), read, told(taken)):
            # the round that was asked: the next one begins when its first request is taken
            now.answers[taken[-1]] = answer
            told(taken)(None)
    except BaseException as error:
        # Ctrl-C, say: the helpers stop too
        raised.append(error)
        raise
    return returned[0]


class _Round(Generic[A]):
    """The requests of one round, those not yet taken, and the answers so far."""

    __slots__ = ("answers", "left", "requests")

    def __init__(self, requests: Sequence[object]) -> None:
        self.requests = requests
        self.left = iter(range(len(requests)))
        self.answers: dict[int, Reply[A]] = {}
