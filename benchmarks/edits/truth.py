"""What float64 says of an edited kernel, without layoutproof: JAX's own interpreter of Pallas beside the reference.

Floats of the file are float64, inputs are drawn at several scales. Two are the same where no element is further apart
than a millionth; numbers that are not finite count where the inputs are of ordinary size, since what overflows at large
ones may be the same over the reals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jax.experimental.pallas import tpu as pltpu

from benchmarks.wrong_kernels import columns

SCALES = (1.0, 1e-3, 30.0, -1.0, -300.0)
"""Standard deviations; of those below 0 all numbers are at most that far below 0."""
FAR, ROUNDED = 1e-6, 1e-12


@dataclass(frozen=True)
class Truth:
    """differs: whether float64 tells them apart.  scale: at which scale first.  words: what it shows."""

    differs: bool
    scale: float = 0.0
    words: str = ""


def shown(
    function: Callable[..., Any], reference: Callable[..., Any], given: Any, modules: Sequence[ModuleType]
) -> Truth:
    """The truth of one kernel. given: of `columns.arrays`, what has `arguments`.  modules: whose floats are widened."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(jax.enable_x64(True))
        for module in modules:
            stack.enter_context(columns.widened(module))
        for scale in SCALES:
            arrays = columns.arrays(given, abs(scale), seed=1, wide=True)
            arrays = [-abs(a) + scale if scale < 0 and a.dtype.kind == "f" else a for a in arrays]
            ours, theirs = columns.interpreted(function, arrays), columns.referred(reference, arrays)
            if [a.shape for a in ours] != [b.shape for b in theirs]:
                raise ValueError("other shapes")
            for a, b in zip(ours, theirs, strict=True):
                if words := apart(a, b, abs(scale)):
                    return Truth(True, scale, words)
    return Truth(False)


def apart(ours: Any, theirs: Any, scale: float) -> str:
    """Where two differ, in words. scale: of the inputs; differences that are nothing beside it are rounding.

    What is not finite counts up to scale 1.
    """
    known = np.isfinite(theirs)
    if not known.any():
        return ""
    floor = 1e-3 * np.median(np.abs(theirs[known]))
    with np.errstate(all="ignore"):
        size = np.maximum(np.maximum(np.abs(ours), np.abs(theirs)), floor)
        far = np.abs(ours - theirs) > np.maximum(FAR * size, ROUNDED * scale)
    far = known & np.where(np.isfinite(ours), far, scale <= 1)
    if not far.any():
        return ""
    return f"{int(far.sum())} of {far.size} elements, the first {ours[far][0]:.9g} for {theirs[far][0]:.9g}"


def strictly(function: Callable[..., Any], reference: Callable[..., Any], given: Any) -> str:
    """What JAX's interpreter of TPU kernels shows: windows as the pipeline keeps them, copies on wait, races."""
    arrays = columns.arrays(given)
    with columns.heard() as said:
        try:
            ours = columns.interpreted(function, arrays, columns.strict())
        except Exception as error:
            pltpu.reset_tpu_interpret_mode_state()
            if "out-of-bounds" not in str(error).lower().replace(" ", "-"):
                raise
            return "an access out of bounds"
    words = columns.apart(ours, columns.referred(reference, arrays), 1e-3)
    return "a race" if "RACE DETECTED" in said.getvalue() else words
