"""XLA's own parser, in jaxlib: the shape texts that it takes and prints, wrong texts near them, and its bytes.

Ours is mode "xla". A text that aborts XLA is refused here; one that it refuses is refused here too. Wrong texts, each
with one character changed, are asked of the versions whose readings of them mode "xla" has. Bytes are those without
padding, as XLA's cost model counts what a copy reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from layoutproof.crosschecks.asking import Failed
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped
from layoutproof.crosschecks.texts import missing, neighbours, read_or_none, said, version
from layoutproof.crosschecks.tpu_cases import arrays as random_cases
from layoutproof.layouts.xla.shape import XlaLayout, XlaShape, XlaTuple, to_text
from layoutproof.layouts.xla.sizes import byte_size_of
from layoutproof.layouts.xla.text import parse

__all__ = ["compare", "missing", "random_cases", "version"]


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """The printed text or a refusal, of each case and its neighbours; the bytes of each case."""
    requests: list[list[tuple[str, str]]] = []
    for case in cases:
        mine = [("shape", text) for text in (case.text, *neighbours(case.text))] if _reads(case) else []
        requests.append([*mine, ("bytes", case.text)] if _counted(case) else mine)
    answers = said([request for mine in requests for request in mine])
    for mine in requests:
        outcomes = [_one(job, text, next(answers)) for job, text in mine]
        wrong = next((one for one in outcomes if isinstance(one, Disagree)), None)
        yield wrong or (Agree(len(outcomes)) if outcomes else Skipped("no text of XLA's"))


def _reads(case: Case) -> bool:
    # sizes with names are ours
    text = case.parsed if isinstance(case.parsed, XlaLayout | XlaTuple) else None
    return text is not None and not any(_symbols(text))


def _symbols(shape: XlaShape) -> Iterator[bool]:
    if isinstance(shape, XlaTuple):
        for part in shape.elements:
            yield from _symbols(part)
    elif isinstance(shape, XlaLayout):
        yield from (type(n) is not int for n, how in zip(shape.dims, shape.dynamic, strict=True) if how != "?")


def _counted(case: Case) -> bool:
    return _reads(case) and isinstance(case.parsed, XlaLayout) and not any(case.parsed.dynamic)


def _one(job: str, text: str, answer: object) -> Outcome:
    if job == "bytes":
        ours: Any = byte_size_of(parse(text, "xla"))  # type: ignore[arg-type]
        if answer is None or isinstance(answer, Failed) or ours >= 1 << 53:
            # its cost model counts in floats, and not everything can be copied
            return Agree(0)
        return Agree() if ours == answer else Disagree("bytes", str(ours), str(answer))
    shape = read_or_none(lambda each: parse(each, "xla"), text)
    mine = None if shape is None else to_text(shape)
    theirs = None if isinstance(answer, Failed) else answer
    if mine == theirs:
        return Agree()
    words = str(answer) if isinstance(answer, Failed) else "refused" if answer is None else str(answer)
    return Disagree("text", f"{text!r} is {mine or 'refused'}", words)
