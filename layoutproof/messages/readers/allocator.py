"""What a running program asked of a device's memory and did not get: TPU and GPU allocators, one array too many.

Source of the forms: messages of XLA:TPU's and XLA:GPU's runtimes in public threads, 2020 to 2026
(`tests/cases/messages`). Each names one request, most of them how much was free.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from layoutproof.core.errors import shorten
from layoutproof.messages.explanation import Explanation, human
from layoutproof.messages.pasted import PastedLine, search
from layoutproof.messages.sizes_text import SIZE, size_of

_TPU = re.compile(
    rf"Attempting to (?P<how>allocate|reserve) {SIZE}(?: at the bottom of memory)?\.(?:.{{0,20}}?"
    rf"That was not possible\. There are {SIZE} free"
    rf"(?:.{{0,80}}?largest contiguous region of free memory is {SIZE})?)?",
    re.DOTALL,
)
_DEVICE = re.compile(r"Could not allocate (?P<bytes>\d{1,15}) bytes in memory (?P<where>[\w:]*(?:HBM|hbm)\w*)")
_GPU = re.compile(
    rf"(?:Failed to allocate request for|[Ff]ailed to allocate|ran out of memory trying to allocate"
    rf"|[Oo]ut of memory (?:while trying to allocate|allocating)) {SIZE}(?: bytes)?(?! entries|-byte)"
)
_ORDINAL = re.compile(r"on device ordinal (\d+)|Allocator \((\w+)\)")
_REPORT = re.compile(r"BufferAssignment|Peak buffers")
"""What begins a report of buffers, which says more of the same request."""
_NO_FAILURE = re.compile(r"The caller indicates that this is not a failure")

_LIVE = "jax.live_arrays() lists what lives; layoutproof compile says what a program takes with its arguments"
_DONATE = "what lives takes the rest: donate what a step replaces (donate_argnums), delete what is not used again"
_POOL = (
    "the memory may be there and taken: by another process (nvidia-smi), or by JAX's own pool "
    "(XLA_PYTHON_CLIENT_MEM_FRACTION)"
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The requests that failed in a text, each once.

    lines: of the text.  target: not looked at.
    """
    found: dict[str, tuple[Explanation, int]] = {}
    for at in range(len(lines)):
        one = _explained(lines, at)
        if one is not None:
            said = one.said if one.cause == "" else one.cause
            first, count = found.get(said, (one, 0))
            found[said] = (first, count + 1)
    for one, count in found.values():
        yield one if count == 1 else replace(one, notes=(*one.notes, f"it is printed {count} times"))


def _explained(lines: Sequence[PastedLine], at: int) -> Explanation | None:
    line = lines[at]
    if match := search(_TPU, lines, at):
        return _on_tpu(line, match)
    if match := search(_DEVICE, lines, at):
        asked = int(match["bytes"])
        free = f"does not fit into what is free of {match['where']}"
        cause = f"while running: an array of {human(asked)} ({asked} bytes) {free}"
        return _explanation("out of HBM", line, match, cause, (_DONATE, _LIVE))
    if match := search(_GPU, lines, at):
        if any(_REPORT.search(each.text) for each in lines[at : at + 3]):
            return None
        asked = size_of(match[1] + match[2])
        if not match[2] and "bytes" not in match[0]:
            return None
        where = _ORDINAL.search(line.text)
        on = f" of {'GPU ' + where[1] if where[1] else where[2]}" if where else ""
        if search(_NO_FAILURE, lines, at):
            cause = (
                f"{human(asked)} more would have been used where they are free{on}: XLA tried it and goes on with "
                "less, so this is no failure"
            )
            return _explanation("out of device memory", line, match, cause, ())
        cause = f"while running: one request of {human(asked)} does not fit into what is free{on}"
        return _explanation("out of device memory", line, match, cause, (_DONATE, _LIVE, _POOL))
    return None


def _on_tpu(line: PastedLine, match: re.Match[str]) -> Explanation:
    what = "the temporaries of a program that is loaded" if match["how"] == "reserve" else "one array"
    take = "take" if match["how"] == "reserve" else "takes"
    asked = size_of(match[2] + match[3])
    if match[4] is None:
        cause = (
            f"while running: {what} {take} {human(asked)}, and less is free; how much, the message does not say here"
        )
    else:
        free, largest = size_of(match[4] + match[5]), size_of(match[6] + match[7]) if match[6] else -1
        lack = f"and no piece of the {human(free)} free is as long"
        if asked > free:
            lack = f"and {human(free)} are free, {human(asked - free)} too few"
        elif largest >= 0:
            lack = f"and the longest free piece has {human(largest)} of {human(free)}: memory is in pieces"
        cause = f"while running: {what} {take} {human(asked)}, {lack}"
    return _explanation("out of HBM", line, match, cause, (_DONATE, _LIVE))


def _explanation(kind: str, line: PastedLine, match: re.Match[str], cause: str, fixes: tuple[str, ...]) -> Explanation:
    return Explanation(kind, line.number, shorten(line.text[match.start() :].strip(), 160), cause, fixes=fixes)
