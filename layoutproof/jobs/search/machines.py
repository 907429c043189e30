"""The numbers of a target that the cost model needs, each with where it comes from."""

from __future__ import annotations

import re
from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.jobs.search.cost import Machine
from layoutproof.jobs.search.template import Template
from layoutproof.targets.tpu import MEMORY, generation
from layoutproof.targets.tpu_chips import CHIPS

STEP_OVERHEAD = 350_000
"""Picoseconds per grid step where the user says nothing: an assumption of ours, measured by nobody here. It breaks
ties towards fewer steps; a file may say better with `step_overhead`."""

_TIME = re.compile(r"([0-9]{1,40}(?:\.[0-9]{1,40})?)\s*(ps|ns|us)")
_UNITS = {"ps": 1, "ns": 1_000, "us": 1_000_000}
_WHOLE = re.compile(r"[su]\d+|pred")


def machine(target: str, template: Template, step_overhead: Any = None) -> Machine:
    """The roofline of one TensorCore: the peak is that of the widest input of 2 or more dimensions.

    step_overhead: of the search file, e.g. "0.5us"; None = STEP_OVERHEAD. Raises LayoutError for an unknown target.
    """
    chip = CHIPS[generation(target)]
    matrices = [w.dtype for w in template.windows if w.role == "in" and len(w.dims) > 1]
    # one wide or floating operand makes the whole product one of its kind
    widest = max((ELEMENT_BITS.get(dtype, 32) for dtype in matrices), default=32)
    floating = not all(_WHOLE.fullmatch(dtype) for dtype in matrices)
    return Machine(chip.name, chip.bandwidth, chip.peak(widest, floating), _overhead(step_overhead))


def vmem_limit(target: str, asked: Any = None) -> int:
    """Bytes of VMEM that a kernel may use which asks for `asked` bytes, None = for none.

    >>> vmem_limit("v5e"), vmem_limit("v5e", 64 << 20)
    (16777216, 67108864)
    """
    limits = MEMORY[generation(target)]
    if asked is None:
        return limits.vmem_scoped
    if type(asked) is not int or asked < 1:
        raise LayoutError(f"vmem_limit is a number of bytes, not {shorten(repr(asked), 40)}")
    if asked > limits.vmem:
        raise LayoutError(f"{target} has {limits.vmem} bytes of VMEM for a kernel; {asked} are asked for")
    return asked


def sources(machine: Machine, overhead_given: bool = False) -> tuple[str, ...]:
    """Where the numbers of the model come from, one sentence each."""
    said = "the search file" if overhead_given else "an assumption of this tool, measured by nobody here"
    return (
        f"bandwidth {machine.bandwidth / 1e9:g} GB/s and peak {machine.peak / 1e12:g} T operations/s of one TensorCore "
        f"of {machine.name}: jax 0.10.2, pallas/mosaic/tpu_info.py",
        f"step overhead {machine.overhead / 1e6:g} us: {said}",
        "window bytes and VMEM limits: measured on the TPU compiler, libtpu 0.0.42.1",
    )


def _overhead(value: Any) -> int:
    if value is None:
        return STEP_OVERHEAD
    found = _TIME.fullmatch(str(value).strip())
    if value == 0 and type(value) is int:
        return 0
    if found is None:
        raise LayoutError(f"step_overhead is a time such as 350ns or 0.5us, not {shorten(repr(value), 40)}")
    return int(float(found[1]) * _UNITS[found[2]])
