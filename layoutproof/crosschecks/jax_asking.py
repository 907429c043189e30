"""Cases sent to a child process in batches: a case that ends the process is skipped, with how it ended."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from layoutproof.compiler.child import Child, ask
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Outcome, Skipped, of_data

SECONDS = 300.0
"""The time limit of one batch, start and compilation included."""
MEMORY = 16 << 30
"""Bytes of address space of the child; JAX reserves several GiB that it never touches."""


def jax_missing() -> str:
    """The missing packages for asking JAX; "" for none."""
    return "" if importlib.util.find_spec("jax") else "not installed (pip install jax)"


def gpu_missing() -> str:
    """The missing parts for asking a GPU."""
    plugins = [entry.name for entry in importlib.metadata.entry_points(group="jax_plugins")]
    if jax_missing() or any("cuda" in name or "rocm" in name for name in plugins):
        return jax_missing()
    return "not installed: JAX has no plugin for a GPU here (pip install 'jax[cuda12]')"


def tpu_missing() -> str:
    """The missing parts for asking a TPU."""
    if jax_missing() or importlib.util.find_spec("libtpu") is None:
        return jax_missing() or "not installed: JAX has no plugin for a TPU here (pip install 'jax[tpu]')"
    there = any(Path("/dev").glob("accel*")) or any(Path("/dev").glob("vfio/[0-9]*"))
    return "" if there else "no TPU in this machine"


def jax_version(where: str) -> str:
    """JAX with its version, and where it runs."""
    return f"jax {importlib.metadata.version('jax')}, {where}"


def jax_child(name: str, memory: int | None = MEMORY, **environment: str) -> Child:
    """A process that asks JAX. name: of the question, in errors.  memory: bytes of address space, None = no limit."""
    return Child(name, "layoutproof.crosschecks.in_jax", environment, SECONDS, memory)


def asked(
    child: Child, what: str, platform: str, cases: Sequence[Case], batch: int, own: Callable[[Case], bool]
) -> Iterator[Outcome]:
    """One outcome for each case.

    what, platform: as `in_jax` takes them.  batch: cases of one request.  own: whether a case is sent at all.
    """
    mine = [own(case) for case in cases]
    sent = [case for case, is_sent in zip(cases, mine, strict=True) if is_sent]
    answers = _answers(child, what, platform, [sent[k : k + batch] for k in range(0, len(sent), batch)])
    for is_sent in mine:
        yield next(answers) if is_sent else Skipped("")


def sendable(case: Case) -> str:
    """The text that the child reads a case from: of a user's kernel its mapping, not the name of a function."""
    if case.call is None:
        return case.text
    return json.dumps({"kernel": case.parsed.mapping()})


def _answers(child: Child, what: str, platform: str, batches: Sequence[Sequence[Case]]) -> Iterator[Outcome]:
    requests = [{"what": what, "platform": platform, "cases": list(map(sendable, some))} for some in batches]
    for some, answer in zip(batches, ask(child, requests, lambda value: list(map(of_data, value))), strict=True):
        if answer.value is not None and len(answer.value) == len(some):
            yield from answer.value
        elif len(some) > 1:
            # one of them ends it; the others are to be compared all the same
            yield from _answers(child, what, platform, [[case] for case in some])
        else:
            yield Skipped(answer.problem or "no answer of a known form")
