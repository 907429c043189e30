"""The words of a difference between an old and a new program: of texts, of records, and of source trees."""

from __future__ import annotations

from layoutproof.core.message import Message
from layoutproof.programs import problems
from layoutproof.values.witness import Witness, number


def elements_differ(output: str, witness: Witness, index: tuple[int, ...]) -> Message:
    """The first element that differs, and how many do.

    Args:
        output: The output's name.
        witness: The difference on float64; `ours` is the new value and `theirs` the old one.
        index: The element's index in that output, () for a single number.

    Returns:
        The message.
    """
    at = f"[{', '.join(map(str, index))}]" if index else ""
    return problems.ELEMENTS_DIFFER(
        output, at, number(witness.ours), number(witness.theirs), witness.different, witness.of
    )
