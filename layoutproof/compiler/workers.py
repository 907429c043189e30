"""The same work on one core, on many, or on a cluster that is already there: results and their order are the same.

All of it through joblib (https://joblib.readthedocs.io): its own processes, or its backends for Dask and for Ray.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from layoutproof.compiler.tracing import carried
from layoutproof.core.errors import LayoutError, unknown_name

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
        # takes a quarter of a second to import, so only who asks for several processes pays
        from joblib import Parallel, delayed

        pool = Parallel(n_jobs=workers.jobs or -1, return_as="generator")
        work = partial(_in, os.getcwd(), carried(function))
        yield from pool(delayed(work)(item) for item in items)


def _in(folder: str, function: Callable[[T], R], item: T) -> R:
    """The work of one item in a folder: processes that joblib keeps stand where the run stood that started them."""
    os.chdir(folder)
    return function(item)


def _on_cluster(function: Callable[[T], R], items: Sequence[T], workers: Workers) -> Iterator[R]:
    from joblib import Parallel, delayed, parallel_config

    with _backend(workers) as settings, parallel_config(**settings):
        # without a number of jobs joblib runs everything here; not as a generator: not every backend has it
        yield from Parallel(n_jobs=-1)(delayed(function)(item) for item in items)


@contextlib.contextmanager
def _backend(workers: Workers) -> Iterator[dict[str, Any]]:
    if workers.backend == "dask":
        if not workers.scheduler:
            raise LayoutError("--backend dask needs --scheduler, the address of the cluster, e.g. tcp://10.0.0.1:8786")
        try:
            from distributed import Client
        except ImportError:
            raise LayoutError("--backend dask needs Dask: pip install distributed") from None
        try:
            client = Client(workers.scheduler, timeout="10s", set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise LayoutError(f"no Dask scheduler answers at {workers.scheduler}: {error}") from None
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
            raise LayoutError("--backend ray needs Ray: pip install ray") from None
        ray.init(address=workers.scheduler or "auto", ignore_reinit_error=True)
        register_ray()
        yield {"backend": "ray"}
    else:
        raise unknown_name("backend", workers.backend, BACKENDS)
