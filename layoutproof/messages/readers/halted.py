"""What a TPU says when it stops: a copy outside of memory, a semaphore that is not 0, a program that never ends.

Source: messages of libtpu 0.0.42.1 and 0.0.52, as public threads have them; the questions that prove that a kernel does
none of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layoutproof.messages.explanation import Explanation
from layoutproof.messages.kinds import Kind, Told, explained
from layoutproof.messages.pasted import PastedLine

_COPY = re.compile(r"dma\.(\w{2,20})_to_(\w{2,20})")
_SIZE = re.compile(r"size_in_granules=\*/(\d{1,12})|dma_size_in_bytes=\*/(\d{1,15})")
_HLO = re.compile(r"\bhlo: (\S{1,80})")


def _kernel(block: str) -> str:
    named = _HLO.search(block)
    return f" in {named[1]}" if named else ""


def _outside(match: re.Match[str], block: str) -> Told:
    copy = _COPY.search(block)
    what = f"a copy from {copy[1]} to {copy[2]}" if copy else "an access"
    return Told(
        f"{what}{_kernel(block)} lies outside of its memory: an index map, pl.ds or a page table gives a place that is "
        "not there",
        (
            "layoutproof kernels proves or refutes it for all programs, with the first that leaves (blocks_in_bounds, "
            "body_in_bounds); --assume states what tables may hold",
            "interpret mode clamps such places, so that its numbers look right",
        ),
    )


def _semaphore(match: re.Match[str], block: str) -> Told:
    return Told(
        f"the kernel ends{_kernel(block)} while a semaphore of it is not 0: a copy or a signal was not waited for, or "
        "counts more than the waits take",
        (
            "a wait for each start: copy.wait(), wait_send() and wait_recv() under the condition of the start, and as "
            "many semaphore_wait as signals arrive",
            "layoutproof kernels names the copy and its line (dma_order, semaphores_drained)",
        ),
    )


def _stopped(match: re.Match[str], block: str) -> Told:
    return Told(
        "",
        (
            "layoutproof kernels on the kernels of the program: places, waits and semaphores that stop a chip are "
            "refuted with the program that does it",
            "the lines after it name what was checked: paste them, too",
        ),
        reason="the chip stopped, and these lines do not say at which check",
    )


_KINDS: tuple[Kind, ...] = (
    (
        re.compile(
            r"BoundsCheck\w{0,40} ?\d{0,9} ?\[deref of|[Oo]ut-of-bounds (?:DMA|access|memory)|DMA.{0,80}out of bounds"
        ),
        _outside,
    ),
    (
        re.compile(
            r"[Ss]emaphore.{0,80}(?:non-?zero|not zero|is not 0)|non-?zero (?:value )?(?:on |of )?(?:the )?semaphore"
        ),
        _semaphore,
    ),
    (
        re.compile(r"Accelerator device halted prematurely|[Cc]ore halted unexpectedly|halted unexpectedly at tag"),
        _stopped,
    ),
)


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """What a chip that stopped says, each once.

    lines: of the text.  target: not looked at.
    """
    known = tuple(explained("device halted", _KINDS, lines))
    # a line that says that the chip stopped has no cause; where another one has it, that is what the text is about
    yield from ([each for each in known if each.cause] or known)[:1]
