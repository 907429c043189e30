"""The lines of a pasted text, without what loggers put before them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

_PREFIXES = (
    # of processes of vLLM and Ray
    re.compile(r"\([A-Z]\w*[^()\n]{0,60}\bpid=\d+[^()\n]{0,60}\) ?"),
    # absl and glog
    re.compile(r"[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [\w./-]+:\d+\] ?"),
    # TensorFlow
    re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [EWIF]\s+(?:\d+ )?[\w./-]+:\d+\] ?"),
    # logging of Python as vLLM sets it up
    re.compile(r"(?:ERROR|WARNING|INFO|CRITICAL) (?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d \[[^\]\n]{1,80}\] ?"),
    # a Markdown quotation
    re.compile(r"> ?"),
)


@dataclass(frozen=True, slots=True)
class PastedLine:
    """One line. number: from 1, in what was pasted.  text: without a logger's prefix; the indentation stays."""

    number: int
    text: str


def lines_of(text: str) -> tuple[PastedLine, ...]:
    r"""The lines of a text. A text that Python printed as a literal, with `\n` in it, is taken apart at these.

    >>> [line.text for line in lines_of("E0531 10:54:04.832741 2609008 a.cc:569] [spmd] x\n  y")]
    ['[spmd] x', '  y']
    >>> [(line.number, line.text) for line in lines_of("Error('Total hbm usage:\\n    program 1.0G')")]
    [(1, "Error('Total hbm usage:"), (1, "    program 1.0G')")]
    """
    found = []
    for number, line in enumerate(_ESCAPES.sub("", text).splitlines(), 1):
        parts = line.split("\\n") if "\\n    " in line or line.count("\\n") > 2 else [line]
        found += [PastedLine(number, _without_prefix(part.replace("\\'", "'"))) for part in parts]
    return tuple(found)


def _without_prefix(line: str) -> str:
    at = 0
    while match := next((m for prefix in _PREFIXES if (m := prefix.match(line, at))), None):
        at = match.end()
    return line[at:].rstrip()


WRAPPED = 3
"""Lines over which a sentence may go, where whoever pasted it had it wrapped."""


def search(pattern: re.Pattern[str], lines: Sequence[PastedLine], at: int) -> re.Match[str] | None:
    """The match of a pattern that starts in a line, and may go on in the next ones; blanks stand for line ends.

    >>> search(re.compile("in memory space (hbm)"), lines_of("out of memory in\\nmemory space hbm"), 0)[1]
    'hbm'
    """
    first = lines[at].text
    match = pattern.search(first)
    if match is None:
        match = pattern.search(unwrapped(lines, at))
    return match if match is not None and match.start() < len(first) else None


def unwrapped(lines: Sequence[PastedLine], at: int) -> str:
    """A line and those over which its sentence may go, as one.

    >>> unwrapped(lines_of("out of memory in\\n  memory space hbm"), 0)
    'out of memory in memory space hbm'
    """
    return " ".join([lines[at].text, *[line.text.strip() for line in lines[at + 1 : at + WRAPPED]]])
