"""Answers of `lp.same` that are kept between runs: who asks again what did not change waits for the tracing alone.

An answer rests on both programs as they are traced, with the arrays that are given and the lines that it names, on the
kernels that are found in them, and on the options; the cache adds the versions of this package, of JAX and of what
decides. A refutation is not kept: it is shown again each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from layoutproof.compiler.cache import get, put
from layoutproof.compiler.kept import as_json, classes, from_json
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.questions.same_answer import Same
from layoutproof.questions.same_plan import Plan, TracedPair
from layoutproof.questions.same_premises import Call
from layoutproof.values.compare import Comparison
from layoutproof.values.prefixes import Begin
from layoutproof.values.stability import Exponent, KeptSum
from layoutproof.values.uniform import Blocks
from layoutproof.values.witness import Witness

T = TypeVar("T")
_HELD = classes(Same, Comparison, Witness, Begin, Blocks, Exponent, KeptSum, Finding)


def kept(plan: Plan, asked: Sequence[tuple[TracedPair, Sequence[Call]]], make: Callable[[], Same]) -> Same:
    """The stored answer, or the answer of `make`.

    asked: of the given sizes, and of smaller ones where these are compared: both programs, and the kernels.
    """

    def lasts(answer: Same) -> bool:
        return answer.verdict is not Verdict.REFUTED and not answer.comparison.again

    return _kept(_key(plan, asked), Same, make, lasts)


def kept_of_any(plan: Plan, said: object, pairs: Sequence[TracedPair], make: Callable[[], Blocks]) -> Blocks:
    """The same for an answer about any number of blocks: two functions may agree at the given sizes and differ beyond.

    said: the question.  pairs: at the given sizes, and at a size that is a name.
    """
    return _kept(_key(plan, [(pair, ()) for pair in pairs], ("blocks", said)), Blocks, make, lambda found: True)


def _kept(key: list[object] | None, kind: type[T], make: Callable[[], T], lasts: Callable[[T], bool]) -> T:
    found = None if key is None else from_json(get(key), _HELD)
    if isinstance(found, kind):
        return found
    answer = make()
    held = as_json(answer, _HELD)
    if key is not None and lasts(answer) and from_json(held, _HELD) == answer:
        put(key, held)
    return answer


def _key(plan: Plan, asked: Sequence[tuple[TracedPair, Sequence[Call]]], said: object = ()) -> list[object] | None:
    """Everything that an answer depends on; None where a part of a program has no digest."""
    from layoutproof.pallas.from_jax.digests import digest

    # the functions themselves are in the pairs
    parts: list[Any] = [said, replace(plan, calls=(), arrays=())]  # type: ignore[arg-type]
    for pair, found in asked:
        texts = [(repr(call), str(getattr(call, "body_reader", ""))) for call in found]
        parts += [pair.jaxprs, pair.arrays, pair.outputs, texts]
    whole = digest(*parts)
    return None if whole is None else ["same", whole]
