"""Mosaic kernels in custom calls, handed to the checks of Pallas kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.result import Verdict
from layoutproof.hlotext.module import Instruction

if TYPE_CHECKING:
    from layoutproof.pallas.findings import Judged
    from layoutproof.pallas.from_mosaic.mosaic_calls import Call


def check(instruction: Instruction, file: str, target: str | None) -> list[tuple[str, Verdict, str]]:
    """(instruction's name, verdict, why) of each kernel in one custom call; unknown where it cannot be read.

    It takes jaxlib's own reader of Mosaic modules: without jaxlib nothing is checked, and the reason says so.
    """
    from layoutproof.pallas.from_mosaic.mosaic_calls import call_of

    # programs call one kernel many times, and where a call stands changes nothing of what holds
    call = replace(call_of(instruction, file), name="kernel", source="")
    return [(instruction.name, verdict, why) for verdict, why in _judged(call, target)]


@lru_cache(maxsize=1024)
def _judged(call: Call, target: str | None) -> tuple[tuple[Verdict, str], ...]:
    from layoutproof.pallas.findings import judged
    from layoutproof.pallas.from_mosaic.mosaic_module import kernels_of_calls

    try:
        results = [judged(found, target=target) for found in kernels_of_calls([call])]
    except (LayoutError, Undecided) as error:
        return ((Verdict.UNKNOWN, f"not checked: {error}"),)
    return tuple((result.verdict, _why(result)) for result in results)


def _why(result: Judged) -> str:
    """Why a kernel is not proved, "" where it is."""
    from layoutproof.kernel.kernel import Unmodelled

    if isinstance(result.call, Unmodelled):
        return f"not checked: {result.call.reason}"
    if result.verdict is Verdict.PROVED:
        return ""
    bad = [f for f in result.findings if f.severity == "error" and f.verdict is result.verdict]
    return f"{bad[0].question}: {bad[0].reason}" if bad else result.foreign or "nothing was asked of it"
