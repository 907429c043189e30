"""Shared parts of all searches: first keys of the answer, errors with the place in the file, functions of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, NotRequired, TypedDict

from layoutproof.core.document import Doc, Document, Exactly
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import VerdictWord
from layoutproof.pallas.from_jax import problems as traced_problems
from layoutproof.specs.positions import Node
from layoutproof.specs.validation import words


class ProblemDocument(Document):
    """The first keys of every answer of a search."""

    subject: str
    target: str
    verdict: VerdictWord


class CertificateEntry(TypedDict):
    """The proof that nothing is better, or its state. Its further keys depend on the problem."""

    kind: Annotated[str, Exactly(Literal["enumerated", "bounds", "z3", "closed form", "unknown"])]
    covered: Annotated[int, Doc("candidates that it speaks of, 0 for z3")]
    of: NotRequired[Annotated[int, Doc("all candidates, of a traced function")]]
    sets: NotRequired[Annotated[int, Doc("of names, for an order that arrays share")]]
    require: NotRequired[Annotated[list[str], Doc("of every shard")]]
    boxes: NotRequired[Annotated[int, Doc("boxes and single candidates that were bounded")]]
    cheaper_but_not_legal: NotRequired[Annotated[dict[str, int], Doc("candidates by reason")]]
    counterexample: NotRequired[Annotated[dict[str, int] | None, Doc("legal, and costs less: the answer is wrong")]]
    reason: NotRequired[Annotated[str, Doc("why it is unknown")]]


@contextmanager
def at(node: Node, file: str) -> Iterator[None]:
    """A LayoutError inside that has no place gets that of the value."""
    try:
        yield
    except LayoutError as error:
        if error.line is not None or error.file not in ("", file):
            raise
        raise LayoutError(words(error), file=file, line=node.line, column=node.column) from None


def beside(value: str, file: str) -> str:
    """A function as `module:function`, or as `file.py:function` where the file lies beside the search file."""
    where, _, name = value.rpartition(":")
    if not where or not name.isidentifier():
        raise LayoutError(traced_problems.FUNCTION_FORM(shorten(value, 80)))
    path = Path(file).parent / where
    return f"{path}:{name}" if where.endswith(".py") and os.path.isfile(path) else value


def at_key(node: Node, key: str, file: str, problem: str) -> LayoutError:
    """An error at a key of a mapping, or at the mapping where it has no such key."""
    line, column = (node.keys or {}).get(key, (node.line, node.column))
    return LayoutError(problem, file=file, line=line, column=column)
