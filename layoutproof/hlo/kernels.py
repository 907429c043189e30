"""Mosaic kernels in custom calls, handed to the checks of Pallas kernels.

`check` asks about grid and BlockSpecs, `check_body` about what the body does; the gate asks the second of what changed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.hlo import problems
from layoutproof.hlotext.module import Instruction

if TYPE_CHECKING:
    from layoutproof.pallas.findings import Judged
    from layoutproof.pallas.from_mosaic.mosaic_calls import MosaicCall


KERNEL = "kernel"
"""The question of a kernel as a whole: of one that is proved, and of one that could not be read."""


def check(instruction: Instruction, file: str, target: str | None) -> list[Finding]:
    """The worst finding of each kernel in one custom call; unknown where it cannot be read.

    It takes jaxlib's own reader of Mosaic modules: without jaxlib nothing is checked, and the reason says so.
    """
    from layoutproof.pallas.from_mosaic.mosaic_calls import call_of

    # programs call one kernel many times, and where a call stands changes nothing of what holds
    call = replace(call_of(instruction, file), name="kernel", source="")
    name = f"kernel {instruction.name}"
    return [replace(found, subject=name, file=file, line=instruction.line) for found in _judged(call, target)]


@lru_cache(maxsize=1024)
def _judged(call: MosaicCall, target: str | None) -> tuple[Finding, ...]:
    from layoutproof.pallas.findings import judged
    from layoutproof.pallas.from_mosaic.mosaic_module import kernels_of_calls
    from layoutproof.pallas.judge import GRID

    try:
        return tuple(_worst(judged(found, target=target, only=GRID)) for found in kernels_of_calls([call]))
    except (LayoutError, Undecided) as error:
        return (_unknown(problems.NOT_CHECKED(error)),)


def check_body(instruction: Instruction) -> tuple[Finding, ...]:
    """Of each question about the bodies of one custom call the worst finding; those that are proved are left out."""
    from layoutproof.pallas.from_mosaic.mosaic_calls import call_of

    return _bodies(replace(call_of(instruction, ""), name="kernel", source=""))


@lru_cache(maxsize=1024)
def _bodies(call: MosaicCall) -> tuple[Finding, ...]:
    from layoutproof.kernel.kernel import Unmodelled
    from layoutproof.pallas.from_mosaic.mosaic_module import kernels_of_calls
    from layoutproof.pallas.judge import worst_of_body

    try:
        # of what cannot be read at all, `check` says why
        read = [kernel for kernel in kernels_of_calls([call]) if not isinstance(kernel, Unmodelled)]
        return tuple(found for kernel in read for found in worst_of_body(kernel))
    except (LayoutError, Undecided) as error:
        return (_unknown(problems.BODY_NOT_CHECKED(error)),)


def _worst(of: Judged) -> Finding:
    """Why a kernel is not proved; a finding without a reason where it is."""
    from layoutproof.kernel.kernel import Unmodelled

    if isinstance(of.call, Unmodelled):
        return _unknown(problems.NOT_CHECKED(of.call.reason))
    if of.verdict is Verdict.PROVED:
        return Finding(KERNEL, "", verdict=Verdict.PROVED)
    bad = (f for f in of.findings if f.severity == "error" and f.verdict is of.verdict)
    return next(bad, _unknown(of.foreign or problems.NOTHING_ASKED()))


def _unknown(reason: str) -> Finding:
    return Finding(KERNEL, "", reason, verdict=Verdict.UNKNOWN)
