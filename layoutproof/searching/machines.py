"""The numbers of a target that the cost model needs, each with where it comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hardware.tpu_chips import chip_of
from layoutproof.hardware.tpu_memory import SPILLS
from layoutproof.hardware.tpu_tiles import vmem_bytes
from layoutproof.kernel.kernel import Kernel
from layoutproof.searching import problems
from layoutproof.searching.cost import Machine

STEP_OVERHEAD = 350_000
"""Picoseconds per grid step where the user says nothing: an assumption of ours, not measured. It breaks
ties towards fewer steps; a file may say better with `step_overhead`."""

REGISTER = 4096
"""Bytes of a vector register, 8 x 128 of 32 bits."""

STORES = "registers of 4 KiB that it stores in a cycle of the compiler's simulation, libtpu 0.0.52"

BODIES = {
    "elementwise": (1.00, "gelu, casts, transposes, concatenations and reshapes on v5e, libtpu 0.0.52"),
    "matmul": (1.34, "a grouped product with blocks of 2048 x 640 x 256 on v5e, libtpu 0.0.52"),
    "reduction": (1.50, "a layer norm of 256 x 4096 on v5e, libtpu 0.0.52"),
    "attention": SPILLS,
}
"""By the kind of a kernel's body: the most VMEM that a compiled kernel took, against its windows and scratch, and which
did. The rest are registers that spill, which no formula knows; it bounds nothing. `tpu_memory.SPILLS` is the worst."""

LARGEST, EVERY = (4.7, 3 << 20), (1.8, 1 << 19)
"""Of a body of attention, the most that a compiled kernel took beyond its windows and scratch.

The first is times the largest product, the second times all products that are worked on at once, and each has bytes
that are added. Both are bounds, so that the less of them counts. By its windows alone nothing bounds it: the total is
up to 3.75 times windows and scratch. Measured on 313 configurations of five kernels, v5e and v6e, libtpu 0.0.52,
2026-11-29 (`benchmarks/legal_spills.py`).
"""

LOADED = 2.0
"""Of a body of matrix products without exponentials, the same by the largest block of its inputs, in bytes, of elements
of 16 bits at the least. Measured there; it is a bound beside that of `BODIES`."""

SET_ASIDE = "set aside: VMEM model above {} % of the limit"
"""The reason of candidates that headroom leaves out: nothing is proved of them, and the compiler may take them."""

_TIME = re.compile(r"([0-9]{1,40}(?:\.[0-9]{1,40})?)\s*(ps|ns|us)")
_UNITS = {"ps": 1, "ns": 1_000, "us": 1_000_000}
_WHOLE = re.compile(r"[su]\d+|pred")


@dataclass(frozen=True, slots=True)
class Headroom:
    """The VMEM kept free for register spills. percent: of the limit.  source: of the figure."""

    percent: int
    source: str

    @property
    def aside(self) -> str:
        """The reason of a candidate that takes more."""
        return SET_ASIDE.format(100 - self.percent)


def of_body(kind: str | None) -> Headroom:
    """The headroom of a kernel whose body is of this kind, None = unknown: then that of the worst kind.

    >>> of_body("matmul").percent, of_body(None).percent
    (26, 55)
    """
    found = headroom(kind)
    return found if kind is None else Headroom(found.percent, found.source.replace("in the file", "by its body"))


def of_products(held: int, products: int) -> int:
    """At most so many bytes of VMEM a body of attention takes beyond windows and scratch.

    held: bytes of its largest product.  products: of all that are worked on at once.

    >>> of_products(1 << 20, 2 << 20), of_products(1 << 20, 1 << 30)
    (4299162, 8074036)
    """
    return min(ceil(times * many) + more for (times, more), many in ((LARGEST, held), (EVERY, products)))


def of_loaded(kernel: Kernel) -> int | None:
    """At most so many bytes a body of matrix products takes beyond windows and scratch; None where it is not known."""
    largest = 0
    for operand in kernel.inputs:
        sizes = [n for block in operand.block if type(n := block.size) is int]
        if operand.memory != "vmem" or len(sizes) < len(operand.block):
            return None
        bits = max(16, ELEMENT_BITS.get(operand.dtype, 32))
        largest = max(largest, vmem_bytes(sizes, bits))
    return ceil(LOADED * largest)


def fits(kernel: Kernel | None, used: int, limit: int, kept: Headroom) -> bool:
    """Whether by what was measured a kernel fits whose body is of no attention: `lp.legal` and `search` ask this alone.

    kernel: None where only the share counts.  used: bytes of its windows and scratch, of `limit`.  kept: the share that
    its kind of body needs free. Of matrix products their largest input says it too: what fits by either fits.
    """
    if kernel is not None and kernel.work is not None and kernel.work.kind == "matmul":
        more = of_loaded(kernel)
        if more is not None and used + more <= limit:
            return True
    return 100 * used <= limit * (100 - kept.percent)


def headroom(value: object) -> Headroom:
    """The headroom that a search file states: a percentage, a kind of body in BODIES, or None = that of the worst kind.

    Raises LayoutError for anything else.

    >>> headroom("matmul").percent, headroom("10%").percent, headroom(None).percent
    (26, 10, 55)
    """
    if value is not None and not (isinstance(value, str) and value in BODIES):
        text = str(value).strip().removesuffix("%")
        if re.fullmatch("[0-9]{1,2}", text) is None:
            known = ", ".join(BODIES)
            raise LayoutError(problems.HEADROOM_FORM(known, shorten(repr(value), 40)))
        return Headroom(int(text), problems.HEADROOM_STATED())
    ratio, worst = BODIES[value] if isinstance(value, str) else SPILLS
    said = f"the largest total measured is {ratio:.2f} x windows and scratch ({worst})"
    whose = "the file says nothing, so that of the worst kind of body" if value is None else f"{value} in the file"
    return Headroom(ceil(100 * (1 - 1 / ratio)), f"{whose}: {said}")


def machine(target: str, kernel: Kernel, overhead: int | None = None) -> Machine:
    """The roofline of one TensorCore: the peak is that of the widest input of 2 or more dimensions.

    overhead: picoseconds of one grid step, None = STEP_OVERHEAD. Raises LayoutError for an unknown target.
    """
    chip = chip_of(target)
    matrices = [o.dtype for o in kernel.inputs if len(o.dims) > 1]
    # one wide or floating operand makes the whole product one of its kind
    widest = max((ELEMENT_BITS.get(dtype, 32) for dtype in matrices), default=32)
    floating = not all(_WHOLE.fullmatch(dtype) for dtype in matrices)
    step = STEP_OVERHEAD if overhead is None else overhead
    # the clock is the peak by the operations of a cycle
    stores = chip.stores * REGISTER * chip.bf16 // (2 * chip.multiplies) if chip.multiplies else 0
    return Machine(chip.name, chip.bandwidth, chip.peak(widest, floating), step, stores)


def vmem_limit(target: str, asked: object = None) -> int:
    """Bytes of VMEM that a kernel may use which asks for `asked` bytes, None = for none.

    >>> vmem_limit("v5e"), vmem_limit("v5e", 64 << 20)
    (16777216, 67108864)
    """
    chip = chip_of(target)
    if asked is None:
        return chip.vmem_scoped
    if type(asked) is not int or asked < 1:
        raise LayoutError(problems.VMEM_LIMIT_FORM(shorten(repr(asked), 40)))
    if asked > chip.vmem:
        raise LayoutError(problems.VMEM_LIMIT_ABOVE(target, chip.vmem, asked))
    return asked


def sources(machine: Machine, overhead_given: bool = False) -> tuple[str, ...]:
    """Where the numbers of the model come from, one sentence each."""
    said = "the search file" if overhead_given else "an assumption of this tool, not measured"
    return (
        problems.SOURCE_OF_PEAKS(machine.bandwidth / 1e9, machine.peak / 1e12, machine.name),
        problems.SOURCE_OF_OVERHEAD(machine.overhead / 1e6, said),
        *([problems.SOURCE_OF_STORES(machine.stores / 1e12, STORES)] if machine.stores else []),
        problems.SOURCE_OF_LIMITS(),
    )


def picoseconds(value: object) -> int:
    """A time as a search file writes it, such as 350ns or 0.5us, or 0. LayoutError for anything else.

    >>> picoseconds("0.5us")
    500000
    """
    found = _TIME.fullmatch(str(value).strip())
    if value == 0 and type(value) is int:
        return 0
    if found is None:
        raise LayoutError(problems.OVERHEAD_FORM(shorten(repr(value), 40)))
    return int(float(found[1]) * _UNITS[found[2]])
