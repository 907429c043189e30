"""Which program of a kernel writes or reads each element of an array: JAX's `show_program_ids`, without running it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from layoutproof.core.document import Doc
from layoutproof.core.errors import LayoutError
from layoutproof.core.numbers import INTS
from layoutproof.core.size import product
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.kernel_elements import element_map, outside, unwritten, window
from layoutproof.pallas.judge import kernel_of
from layoutproof.questions import problems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_PROGRAMS = 1_000_000
"""Programs of a grid that is walked."""
MOST_ELEMENTS = 1 << 26
"""Elements of an array that is filled in."""


@dataclass(frozen=True, slots=True, eq=False)
class ElementPrograms:
    """Who writes (or reads) each element of one operand.

    Attributes:
        kernel: With its grid.
        operand: The one that is asked about.
        last: In the array's shape the row-major number of the program that has the element last, when programs run in
            lexicographic order as in interpret mode; -1 where none has it.
        times: How many programs have each element.
        outside: The programs whose block has no element in the array.
    """

    kernel: Kernel
    operand: Operand
    last: NDArray[np.int64]
    times: NDArray[np.int64]
    outside: tuple[tuple[int, ...], ...]

    def grid(self) -> tuple[int, ...]:
        """The programs per dimension."""
        return tuple(int(INTS.size(extent)) for extent in self.kernel.grid)

    def ids(self) -> NDArray[np.int64]:
        """`last` as JAX's page shows programs: the index's entries as decimal digits, the last dimension the units.

        Returns:
            An array of the operand's shape; -1 where no program has the element.
        """
        import numpy as np

        # a grid of no dimensions has one program, number 0
        grid = self.grid() or (1,)
        at = np.unravel_index(np.maximum(self.last, 0), grid)
        digits = sum((entry * 10 ** (len(grid) - 1 - k) for k, entry in enumerate(at)), np.zeros_like(self.last))
        return np.where(self.last < 0, -1, digits)

    def blank(self) -> str:
        """The value that interpret mode has where no program has been."""
        return unwritten(self.operand.dtype)


def program_ids(layout: object, operand: str = "") -> NDArray[np.int64]:
    """Which program writes each element of an output, or reads each of an input: `show_program_ids` of JAX's page.

    Args:
        layout: A kernel, or one operand of it (`blockspec`): text or a mapping.
        operand: The name of the operand; "" for the only output with blocks, or the only operand with blocks.

    Returns:
        An array of the operand's shape. Each entry is the index of the program that has the element last, its entries
        as decimal digits; -1 where no program has it. Programs run in lexicographic order, as in interpret mode.

    Raises:
        LayoutError: There is no such operand; a size symbol has no value; tables choose its blocks; it is too large.

    >>> program_ids("s32[3,4] blockspec (1, 2) (i, j) -> (i, j) grid (3, 2) out")
    array([[ 0,  0,  1,  1],
           [10, 10, 11, 11],
           [20, 20, 21, 21]])
    """
    return programs_of(layout, operand).ids()


def programs_of(layout: object, name: str = "") -> ElementPrograms:
    """Who has each element of an operand; arguments and errors as of `program_ids`."""
    import numpy as np

    kernel = kernel_of(layout, "which program has an element")
    operand = _operand(kernel, name)
    m = element_map(kernel, operand)
    if m.sizes():
        raise LayoutError(problems.PROGRAMS_WITHOUT_VALUE(", ".join(m.sizes())))
    grid = tuple(int(INTS.size(extent)) for extent in kernel.grid)
    dims = tuple(int(INTS.size(extent)) for extent in operand.dims)
    many = int(product(grid))
    if many > MOST_PROGRAMS:
        raise LayoutError(problems.PROGRAMS_TO_WALK(kernel.name, many, MOST_PROGRAMS))
    if int(product(dims)) > MOST_ELEMENTS:
        raise LayoutError(problems.ELEMENTS_TO_FILL(operand.name, product(dims), MOST_ELEMENTS))
    last, times = np.full(dims, -1, dtype=np.int64), np.zeros(dims, dtype=np.int64)
    missing = []
    for number, program in enumerate(itertools.product(*map(range, grid))):
        if outside(kernel, operand, program):
            missing.append(program)
            continue
        at = tuple(slice(max(0, first), max(0, end)) for first, end in window(kernel, operand, program))
        last[at] = number
        times[at] += 1
    return ElementPrograms(kernel, operand, last, times, tuple(missing))


class ProgramsEntry(TypedDict):
    """Which program writes each element, or reads it."""

    operand: str
    role: str
    grid: list[int]
    ids: Annotated[list[Any], Doc("nested as the array is; null where no program has the element")]
    nobody: Annotated[int, Doc("elements that no program has")]
    several: Annotated[int, Doc("elements that more than one program has")]
    interpret: Annotated[str, Doc("what interpret mode holds where no program has been")]
    outside: Annotated[list[list[int]], Doc("programs whose block has no element in the array")]


def as_data(found: ElementPrograms) -> ProgramsEntry:
    """The same as plain data, for pictures drawn elsewhere: null where no program has an element."""
    ids = found.ids()
    return {
        "operand": found.operand.name,
        "role": found.operand.role,
        "grid": list(found.grid()),
        "ids": _nested(ids.tolist()),
        "nobody": int((found.last < 0).sum()),
        "several": int((found.times > 1).sum()),
        "interpret": found.blank(),
        "outside": [list(program) for program in found.outside],
    }


def _nested(entry: Any) -> Any:
    return [_nested(part) for part in entry] if isinstance(entry, list) else None if entry < 0 else entry


def _operand(kernel: Kernel, name: str) -> Operand:
    windowed = [operand for operand in kernel.operands if operand.windowed]
    outputs = [operand for operand in windowed if operand.role == "out"]
    found = [o for o in kernel.operands if o.name == name] if name else outputs if len(outputs) == 1 else windowed
    if len(found) == 1 and found[0].windowed:
        return found[0]
    have = ", ".join(operand.name for operand in kernel.operands)
    what = f"no operand {name!r} with blocks" if name else "several operands with blocks" if found else "no blocks"
    raise LayoutError(problems.OPERAND_MEANT(kernel.name, what, have))
