"""The same work on one core, on many, or on a cluster that is already there: results and their order are the same.

On this machine by child processes, which import nothing of the folder where they stand and end with the run; on a
cluster by joblib (https://joblib.readthedocs.io) and its backends for Dask and for Ray.
"""

from __future__ import annotations

import base64
import contextlib
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from layoutproof.compiler import problems
from layoutproof.compiler.child import Child, Reply, ask
from layoutproof.compiler.crew import Crew, crew
from layoutproof.compiler.rounds import cores
from layoutproof.compiler.tracing import carried
from layoutproof.core.errors import InternalError, LayoutError, unknown_name

T = TypeVar("T")
R = TypeVar("R")

BACKENDS = ("dask", "ray")


@dataclass(frozen=True, slots=True)
class Workers:
    """jobs: processes, 0 for one per core.  backend: "" for this machine, else of BACKENDS.  scheduler: its address."""

    jobs: int = 1
    backend: str = ""
    scheduler: str = ""


def spread(function: Callable[[T], R], items: Sequence[T], workers: Workers) -> Iterator[R]:
    """`function` of each item, in the order of the items, each as soon as it and all before it are done.

    The function, the items, and what may be traced are sent to other processes. Raises LayoutError where a backend is
    not to be had.
    """
    if workers.backend:
        yield from _on_cluster(carried(function), items, workers)
    elif workers.jobs == 1 or len(items) < 2:
        yield from map(function, items)
    else:
        yield from _in_children(carried(function), items, workers.jobs or cores())


def apart(function: Callable[[T], R], item: T, folder: str) -> R:
    """`function` of one item, in a process of ours that runs in a folder, for what a library finds in the current one.

    Raises LayoutError as the function does.
    """
    answer: Reply[R]
    (answer,) = ask(replace(WORKER, folder=folder), [[packed(function), packed(item)]], unpacked)
    return _value(answer)


def packed(value: object) -> str:
    """A value as a text for another process of ours; functions by their names."""
    return base64.b64encode(pickle.dumps(value)).decode("ascii")


def unpacked(text: str) -> Any:
    """What `packed` made a text of. Of a process of ours alone: reading it runs what it says."""
    return pickle.loads(base64.b64decode(text))


WORKER = Child("a worker", "layoutproof.compiler.working", seconds=math.inf)


def _in_children(function: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[R]:
    """The same by so many processes, each of which takes the next item as soon as it is done with one."""
    left = iter(range(len(items)))
    answers: dict[int, Reply[R]] = {}
    does = packed(function)

    def ask_one(all_of_them: Crew) -> None:
        taken: list[int] = []

        def requests() -> Iterator[object]:
            while not all_of_them.stop():
                with all_of_them.changed:
                    number = next(left, None)
                if number is None:
                    return
                taken.append(number)
                yield [does, packed(items[number])]

        for answer in ask(WORKER, requests(), unpacked, stop=all_of_them.stop):
            with all_of_them.changed:
                answers[taken[-1]] = answer
                all_of_them.changed.notify()

    with crew(ask_one, min(jobs, len(items))) as workers:
        for number in range(len(items)):
            workers.wait(lambda at=number: at in answers)  # type: ignore[misc]
            yield _value(answers.pop(number))


def _value(answer: Reply[R]) -> R:
    if answer.error is not None:
        raise answer.error
    if answer.cause == "ended":
        raise LayoutError(problems.MEMORY_OF_JOBS(answer.problem))
    if answer.cause:
        raise InternalError(answer.problem)
    return answer.value  # type: ignore[return-value]


def _on_cluster(function: Callable[[T], R], items: Sequence[T], workers: Workers) -> Iterator[R]:
    from joblib import Parallel, delayed, parallel_config

    with _backend(workers) as settings, parallel_config(**settings):
        # without a number of jobs joblib runs everything here; not as a generator: not every backend has it
        yield from Parallel(n_jobs=-1)(delayed(function)(item) for item in items)


@contextlib.contextmanager
def _backend(workers: Workers) -> Iterator[dict[str, Any]]:
    if workers.backend == "dask":
        if not workers.scheduler:
            raise LayoutError(problems.DASK_WITHOUT_SCHEDULER())
        try:
            from distributed import Client
        except ImportError:
            raise LayoutError(problems.NO_DASK()) from None
        try:
            client = Client(workers.scheduler, timeout="10s", set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise LayoutError(problems.NO_SCHEDULER(workers.scheduler, error)) from None
        try:
            with client.as_current():
                # given an address, joblib would connect once more and never hang up
                yield {"backend": "dask", "client": client}
        finally:
            client.close()
    elif workers.backend == "ray":
        try:
            import ray
            from ray.util.joblib import register_ray
        except ImportError:
            raise LayoutError(problems.NO_RAY()) from None
        ray.init(address=workers.scheduler or "auto", ignore_reinit_error=True)
        register_ray()
        yield {"backend": "ray"}
    else:
        raise unknown_name("backend", workers.backend, BACKENDS)
