"""NumPy: each language's own definition a second time, and the bytes of packed arrays. Nothing here uses `place`."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.definitions import definition, last_program
from layoutproof.crosschecks.places import compared, ours, packed, reason, same_array
from layoutproof.crosschecks.source import Disagree, Outcome, Skipped, both
from layoutproof.layouts.xla import XlaLayout


def version() -> str:
    """NumPy's."""
    return f"numpy {importlib.metadata.version('numpy')}"


def missing() -> str:
    """Nothing: it is a dependency."""
    return ""


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Every place of every element; of XLA's layouts every byte of a packed array; of kernels who writes what."""
    for case in cases:
        try:
            yield _compared(case)
        except (LayoutError, Undecided) as error:
            yield Skipped(reason(error))


def _compared(case: Case) -> Outcome:
    if case.kind == "pair":
        return Skipped("")
    if case.kind == "kernel":
        return _written(case.parsed)
    said = ours(case.parsed)
    found = compared(said, definition(case.parsed))
    if isinstance(found, Disagree) or not isinstance(case.parsed, XlaLayout):
        return found
    try:
        return both(found, packed_bytes(case.parsed))
    except (LayoutError, Undecided):
        # a layout that cannot be packed has places all the same
        return found


def packed_bytes(layout: XlaLayout) -> Outcome:
    """The bytes of a packed array of random bits, against the same array padded, reshaped and transposed."""
    from layoutproof.questions.evaluate import pack

    words, image = packed(layout)
    return same_array("packed byte", pack(layout, words), image)


def _written(layout: Any) -> Outcome:
    """Of each output with blocks, the program that writes each element last."""
    from layoutproof.questions.programs import programs_of

    found: Outcome = Skipped("no output with blocks")
    for operand in layout.kernel.outputs:
        if operand.windowed:
            theirs = last_program(layout.kernel, operand)
            found = both(
                found, same_array("program that wrote it last", programs_of(layout, operand.name).last, theirs)
            )
    return found
