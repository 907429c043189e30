"""The asking side of the TPU compiler: many questions in one program, and what kills it found by halves.

One program has many parameters, so the compiler's fixed costs are paid once for all of them. A program that it refuses,
or on which it aborts or does not come to an end, is asked again in two halves, until the one question is alone that it
is about: an abort is what came of that question, and no other is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from layoutproof.compiler import libtpu
from layoutproof.compiler.child import Child, Reply, ask
from layoutproof.core.document import JsonObject

Q = TypeVar("Q")
R = TypeVar("R")

_OWN_CHECK = re.compile(r"LLO_CHECK failure(?: \([^()]*\))?[^()]*[^()\s]")
"""How the compiler says that its code generator has broken a rule of its own."""
LONGEST = 120.0
"""Seconds that the compiler may take for one program."""


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer to one question. words: of the compiler.  aborted: it died of it, did not come to an end, or gave up.

    It gives up where a check of its own code fails, which says nothing about what was asked.
    """

    words: str
    aborted: bool = False

    def __str__(self) -> str:
        return f"aborted: {self.words}" if self.aborted else f"refused: {self.words}"


@dataclass(frozen=True, slots=True)
class BatchedProgram(Generic[Q]):
    """Questions that are asked as one program. request: the message for some of them."""

    questions: Sequence[Q]
    request: Callable[[Sequence[Q]], list[Any]]


def child(library: str = "") -> Child:
    """The process that answers. library: of the compiler, "" = the one in use."""
    return Child(libtpu.WHAT, "layoutproof.crosschecks.compiling", libtpu.environment(library), LONGEST)


def answers(requests: Sequence[list[object]], library: str = "") -> Iterator[Any]:
    """The compiler's answer to each request, or a Failed, in their order, each as soon as it is there."""
    for answer in ask(child(library), requests, dict):
        yield told(answer)


def told(answer: Reply[JsonObject]) -> object:
    """The answer, or a Failed."""
    if answer.value is None:
        return Failed(answer.problem, aborted=answer.cause != "raised")
    if "said" in answer.value:
        return answer.value["said"]
    own = _OWN_CHECK.search(answer.value["refused"])
    if own is not None:
        return Failed(f"the TPU compiler gave up on it: {own[0]}", aborted=True)
    return Failed(answer.value["refused"])


def of_programs(
    programs: Sequence[BatchedProgram[Q]],
    unpack: Callable[[Sequence[Q], Any], Sequence[R] | None],
    library: str = "",
) -> list[list[R | Failed]]:
    """The answer to every question of every program, in their order.

    unpack: the answers to each question of a program by its answer, or None where it can only be told by asking each
    alone. Of a single question it is never None.
    """
    found: list[list[R | Failed]] = [[Failed("not asked")] * len(p.questions) for p in programs]
    parts = [(k, 0, len(p.questions)) for k, p in enumerate(programs) if p.questions]
    while parts:
        requests = [programs[k].request(programs[k].questions[a:b]) for k, a, b in parts]
        again = []
        for (k, a, b), said in zip(parts, answers(requests, library), strict=True):
            failed = isinstance(said, Failed)
            rows = None if failed else unpack(programs[k].questions[a:b], said)
            if rows is not None:
                found[k][a:b] = rows
            elif b - a == 1:
                found[k][a] = said if failed else Failed("an answer of no known form")
            else:
                middle = (a + b) // 2
                again += [(k, a, middle), (k, middle, b)]
        parts = again
    return found


@contextmanager
def session(library: str = "") -> Iterator[Callable[[list[object]], object]]:
    """Within it one request after the other, each of which may depend on what was said before."""
    asked: list[Any] = []

    def requests() -> Iterator[object]:
        while True:
            yield asked.pop()

    with closing(ask(child(library), requests(), dict)) as found:

        def one(request: list[object]) -> Any:
            asked.append(request)
            return told(next(found))

        yield one
