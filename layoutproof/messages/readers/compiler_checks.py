"""What XLA says of itself: checks of its own that fail, and constants that it takes long to compute.

Source: openxla/xla, xla/service/slow_operation_alarm.cc and constant_folding.cc; xla/status_macros.h (RET_CHECK).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layoutproof.core.errors import LayoutError
from layoutproof.hlo.shapes import read_array
from layoutproof.messages.explanation import Explanation, human
from layoutproof.messages.kinds import Kind, Told, explained
from layoutproof.messages.pasted import PastedLine

_INSTRUCTION = re.compile(r"(%?(?<![\w.\-])[\w.\-]++) = (\w+\[[\d,]*\](?:\{[^{}]*+\})?) ([\w\-]+)\(")
_NAMED = re.compile(r"^[^\S\n]*+(%?[\w.\-]+) \(displaying the full instruction", re.MULTILINE)
_SOURCE = re.compile(r'source_file="([^"]*)" source_line=(\d+)')


def _folding(match: re.Match[str], block: str) -> Told:
    instruction, named = _INSTRUCTION.search(block), _NAMED.search(block)
    what, size = "an instruction", ""
    if instruction:
        what = f"{instruction[1]}, a {instruction[3]}"
        try:
            read = read_array(instruction[2])
            size = f"; its result, {instruction[2]}, has {human(read.unpadded)} of elements" if read.layout else ""
        except LayoutError:
            size = f"; its result is {instruction[2]}"
    elif named:
        what = named[1]
    where = _SOURCE.search(block)
    at = f" (at {where[1]}:{where[2]})" if where else ""
    return Told(
        f"XLA computes {what}{at} while it compiles, since all its operands are constants{size}: compiling takes "
        f"longer, "
        "the program is right",
        (
            "pass the array that it starts from as an argument of the jitted function, in place of one that it closes "
            "over "
            "or makes itself",
            "or leave it to run time: XLA_FLAGS=--xla_disable_hlo_passes=constant_folding",
        ),
    )


def _check(match: re.Match[str], block: str) -> Told:
    where = f" at {match[1]}" if match[1] else ""
    return Told(
        "",
        (
            "try another version of libtpu or jaxlib",
            "report it to openxla/xla with the program: XLA_FLAGS=--xla_dump_to=DIR writes it",
        ),
        reason=f"a check inside of the compiler failed{where}: it is about the compiler's own state, not about sizes; "
        "what in the program leads to it, the message does not say",
    )


_KINDS: tuple[Kind, ...] = (
    (re.compile(r"Constant folding an instruction is taking > "), _folding),
    (re.compile(r"(?:RET_CHECK|LLO_CHECK) failure \(([^)\s]+)\)"), _check),
    (re.compile(r"(?<![\w./-])([\w./-]{1,400}\.(?:cc|h):\d{1,6})\] Check failed: "), _check),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """What the compiler says of itself in a text, each once.

    lines: of the text.  target: not looked at.
    """
    yield from explained("compiler", _KINDS, lines)
