"""Which picture shows which subject: a tiled array, a kernel, a sharding, threads, banks, or plain cells."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

from layoutproof.core.index_map import IndexMap
from layoutproof.core.size import product
from layoutproof.kernel.kernel import Kernel, KernelTarget
from layoutproof.layouts.axe.layout import AxeLayout
from layoutproof.layouts.cute.layout import CuteLayout
from layoutproof.layouts.linear import LinearLayout
from layoutproof.layouts.sharding.array import ShardedArray
from layoutproof.layouts.strided import StridedLayout
from layoutproof.pictures.banks import swizzle_drawing
from layoutproof.pictures.drawing import Cell, Drawing
from layoutproof.pictures.elements import Plane, chosen, element_grid, place_text, plane_of
from layoutproof.pictures.kernels import kernel_drawing
from layoutproof.pictures.overview import WHOLE, at_scale, memory_grid
from layoutproof.pictures.owners import box_drawing, inverse_grid, owned, sharding_drawing
from layoutproof.questions.evaluate import shown
from layoutproof.registry.read import read_layout

MOST = 32
"""Rows and columns of a drawn picture; where there are more, the middle is left out."""
MOST_COUNTED = 1 << 14
"""Elements among which those are looked for that share a place."""


def drawing_of(layout: object, target: KernelTarget | None = None) -> Drawing:
    """The picture of a layout or a kernel.

    Args:
        layout: As `read_layout` takes it, or a `Kernel`.
        target: Of a kernel, whose memory its blocks lie in.

    Raises:
        LayoutError: It cannot be read, or has a size without a value.
    """
    read = layout if isinstance(layout, Kernel) else read_layout(layout)
    kernel = read if isinstance(read, Kernel) else getattr(read, "kernel", None)
    if isinstance(kernel, Kernel):
        return kernel_drawing(kernel, target)
    if isinstance(read, ShardedArray):
        return sharding_drawing(read)
    if isinstance(read, AxeLayout) and not read.index_map().sizes():
        drawn = box_drawing(read) if product(read.index_map().domain.extents) > WHOLE else None
        if drawn is not None:
            return drawn
    if isinstance(read, AxeLayout | CuteLayout):
        drawn = swizzle_drawing(read)
        if drawn is not None:
            return drawn
    return at_scale(read) or _elements(plane_of(read), read)


def _elements(plane: Plane, read: object) -> Drawing:
    """Every element where it is indexed, and beside it what there is to see of memory or of threads."""
    m = plane.map
    down, across = chosen(plane.row, MOST, True), chosen(plane.column, MOST, True)
    look, facts = None, plane.facts
    owners = owned(m) if isinstance(read, AxeLayout) else None
    if owners is not None:
        facts = tuple(_joined(fact, m) for fact in facts)
        look = owners
    elif isinstance(read, StridedLayout | CuteLayout):
        look = _sharing(m)
    cells = element_grid(plane, down, across, "the array as it is indexed", look)
    other = memory_grid(plane)
    if other is None and isinstance(read, CuteLayout) and _thread_value(read):
        other = inverse_grid(
            m, 0, "read as a thread-value layout: a cell is a place with the (thread, value) that has it"
        )
    if other is None and isinstance(read, LinearLayout):
        inputs = [name for name, _ in read.inputs]
        thread = next((k for k, name in enumerate(inputs) if name != "register"), 0)
        said = (
            f"a cell is a place with the ({', '.join(inputs)}) that has it; of several, joined by |, each has a replica"
        )
        other = inverse_grid(m, thread, said)
    return Drawing(
        shown(plane.layout),
        facts,
        (cells,) if other is None else (cells, other),
        meanings={"shared": "another element is stored at the same place"},
    )


def _joined(fact: str, m: IndexMap) -> str:
    if not fact.startswith("first of "):
        return fact
    return f"{product(m.replicas.extents)} replicas, joined by |; neighbours of one colour have the same owner"


def _thread_value(layout: CuteLayout) -> bool:
    """Whether it is written as CuTe writes thread-value layouts: two modes, of which one is nested."""
    return (
        isinstance(layout.shape, tuple) and len(layout.shape) == 2 and any(isinstance(m, tuple) for m in layout.shape)
    )


def _sharing(m: IndexMap) -> Callable[[tuple[int, ...]], Cell] | None:
    """Cells that mark elements which share their place; None where there are none, or too many elements to look at."""
    if not 0 < product(m.domain.extents) <= MOST_COUNTED:
        return None
    flat = m if m.memory is None else m.flat()
    text = place_text(m)
    indices = itertools.product(*(range(int(extent)) for extent in m.domain.extents))
    counts = Counter(flat.at(index) for index in indices)
    if max(counts.values()) < 2:
        return None
    return lambda index: Cell(text(index), None, "shared" if counts[flat.at(index)] > 1 else "")
