"""A whole kernel as a layout object: what `read_layout` returns and the properties of kernels are asked of."""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import Template
from layoutproof.core.shown import Shown
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.kernel_elements import Step, element_map, steps
from layoutproof.kernel.kernel_parts import shown
from layoutproof.kernel.kernel_print import kernel_lines, mapping_of
from layoutproof.kernel.kernel_text import read_kernel

_OPERAND_NEEDED = Template(
    "kernel.operand_needed",
    "a kernel has one map per operand; ask a property of kernels, or name an operand: {{blockspec: "
    "{{kernel: .., operand: x}}}}; {name} has {names}",
)
_KERNEL_FORM = Template("kernel.kernel_form", "a kernel is a mapping with grid, inputs and outputs, not {value}")


@dataclass(frozen=True, slots=True, eq=False)
class KernelLayout(Shown):
    """A kernel, and notes about what its text spells in an old way."""

    kernel: Kernel
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(kernel_lines(self.kernel))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelLayout) and self.mapping() == other.mapping()

    def __hash__(self) -> int:
        return hash(str(self))

    def mapping(self) -> dict[str, object]:
        """The mapping that reads as this kernel."""
        return mapping_of(self.kernel)

    def index_map(self) -> IndexMap:
        """Of a kernel with one windowed operand: program, offset in the block -> element. LayoutError otherwise."""
        return element_map(self.kernel, self._only())

    def steps(self, index: tuple[int, ...]) -> list[Step]:
        """How a program comes to its elements."""
        return steps(self.kernel, self._only(), index)

    def _only(self) -> Operand:
        windowed = [operand for operand in self.kernel.operands if operand.windowed]
        if len(windowed) != 1:
            names = ", ".join(operand.name for operand in self.kernel.operands)
            raise LayoutError(_OPERAND_NEEDED(self.kernel.name, names))
        return windowed[0]


def from_value(value: object) -> KernelLayout:
    """A kernel from its mapping or from a `Kernel`; LayoutError otherwise."""
    if isinstance(value, KernelLayout):
        return value
    if isinstance(value, Kernel):
        return KernelLayout(value)
    if not isinstance(value, dict):
        raise LayoutError(_KERNEL_FORM(shown(value)))
    return KernelLayout(*read_kernel(value, ELEMENT_BITS))
