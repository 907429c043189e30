"""One operand of a Pallas kernel: `f32[100,90] blockspec (10, 20) (i, j) -> (i, j) grid (10, 5)`.

The map goes from programs to elements of the array: `replicas` are the offsets in a program's block, so `covers` asks
whether every element is in some program's block, and `locate` says which elements a program sees. Blocks that reach
past the array are legal, and their places outside of it are padding: `blocks_in_bounds`, a property of kernels, knows
that, and `in_bounds` does not.

Written `ARRAY blockspec BLOCK INDEX grid GRID`, and ` out` at the end for an operand that is written; BLOCK or INDEX
None are the whole array and all zeros. Mapping form: {"blockspec": {"array": "f32[8,6]", "grid": [4, 2], "block":
[2, 3], "index": "(i, j) -> (i, j)", "role": "out"}}, or one operand of a kernel: {"blockspec": {"kernel": {..},
"operand": "x"}}. `layoutproof.kernel.kernel_text` says what may stand in each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from layoutproof.core.brackets import closing
from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import Template
from layoutproof.core.shown import Shown
from layoutproof.kernel.kernel import Kernel, Operand
from layoutproof.kernel.kernel_elements import Step, element_map, steps
from layoutproof.kernel.kernel_index import index_text
from layoutproof.kernel.kernel_parts import check_keys, read_grid, shown, within, word_of
from layoutproof.kernel.kernel_text import ROLES, read_kernel

_BAD_FORM = Template("blockspec.form", "a blockspec is written {form}, not {text}")

_KEYS = ("array", "grid", "block", "index", "role", "indexing_mode")
_FORM = "f32[100,90] blockspec (10, 20) (i, j) -> (i, j) grid (10, 5)"


@dataclass(frozen=True, slots=True, eq=False)
class BlockSpecLayout(Shown):
    """A kernel with exactly one operand, and notes about what its text spells in an old way."""

    kernel: Kernel
    notes: tuple[str, ...] = ()

    @property
    def operand(self) -> Operand:
        """The one operand."""
        return self.kernel.operands[0]

    def __str__(self) -> str:
        operand, kernel = self.operand, self.kernel
        array = f"{operand.dtype}[{','.join(map(str, operand.dims))}]"
        block = ", ".join(map(str, operand.block))
        index = index_text(kernel.grid_names, operand.index, operand.sizes)
        text = f"{array} blockspec ({block}) {index} grid ({', '.join(map(str, kernel.grid))})"
        return text + (" out" if operand.role == "out" else "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockSpecLayout) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def index_map(self) -> IndexMap:
        """Program, offset in the block -> element of the array."""
        return element_map(self.kernel, self.operand)

    def steps(self, index: tuple[int, ...]) -> list[Step]:
        """How a program comes to its elements: as `slices_for_invocation` of JAX's page on BlockSpecs does it."""
        return steps(self.kernel, self.operand, index)


def looks_like(text: str) -> bool:
    """Whether a text without a language name is meant as one operand of a kernel.

    Args:
        text: A layout without the name of a language.

    Returns:
        True where this language claims the text.
    """
    return " blockspec " in text


def read(value: object, mode: str = "strict") -> BlockSpecLayout:
    """One operand from its text or mapping.

    Args:
        value: Text, or a mapping with array, block, index, grid.
        mode: "strict" or "xla"; this language has one mode.

    Returns:
        The layout: frozen data; its `str` is its text.

    Raises:
        LayoutError: A field is wrong; the text names it.

    >>> str(read({"array": "f32[8,6]", "grid": [2, 3], "block": None, "index": None}))
    'f32[8,6] blockspec (8, 6) (i, j) -> (0, 0) grid (2, 3)'
    >>> read("f32[100,90] blockspec (10, 20) (i, j) -> (i, j) grid (10, 5)").steps((2, 4))[1:]
    [('first element', (20, 80), (100, 90)), ('end of the block', (30, 100), (100, 90))]
    """
    if isinstance(value, BlockSpecLayout):
        return value
    given = _from_text(value) if isinstance(value, str) else value
    if isinstance(given, Mapping) and "kernel" in given:
        return _of_kernel(check_keys(given, ("kernel", "operand"), "an operand of a kernel", ("operand",)))
    given = check_keys(given, _KEYS, "a blockspec", ("array", "grid"))
    row = {key: entry for key, entry in given.items() if key not in ("grid", "role")}
    role = word_of(given.get("role", "in"), ROLES, "role")
    name = {"in": "x", "out": "o"}[role]
    operand = {**row, "name": name, "role": role}
    try:
        kernel, notes = read_kernel({"grid": _grid(given), "operands": [operand], "name": "blockspec"}, ELEMENT_BITS)
    except LayoutError as error:
        # there is one operand, so a message need not say which
        problem = re.sub(r"^operands\[0\](?: '\w')?: ", "", error.problem)
        raise LayoutError(problem, text=error.text, column=error.column) from None
    return BlockSpecLayout(kernel, tuple(note.partition(": ")[2] for note in notes))


def _grid(given: Mapping[str, object]) -> Any:
    """The grid, with the names that the index map gives it where it has none of its own."""
    grid, index = given["grid"], given.get("index")
    if isinstance(grid, Mapping) or not isinstance(index, str) or "->" not in index:
        return grid
    extents, _ = read_grid(grid)
    names = [name.strip() for name in index.partition("->")[0].strip().strip("()").split(",") if name.strip()]
    if len(names) != len(extents) or not all(name.isidentifier() for name in names) or len(set(names)) < len(names):
        return grid  # reading the index map says what is wrong with it
    return dict(zip(names, extents, strict=True))


def _of_kernel(given: Mapping[str, object]) -> BlockSpecLayout:
    inner = given["kernel"]
    if isinstance(inner, Mapping) and list(inner) == ["kernel"]:
        inner = inner["kernel"]
    with within("kernel"):
        kernel, notes = read_kernel(inner, ELEMENT_BITS)
    names = tuple(operand.name for operand in kernel.operands)
    wanted = word_of(given["operand"], names, "operand")
    chosen = tuple(operand for operand in kernel.operands if operand.name == wanted)
    return BlockSpecLayout(replace(kernel, operands=chosen, aliases=()), notes)


def _from_text(text: str) -> Mapping[str, object]:
    array, found, rest = text.partition(" blockspec ")
    middle, also, tail = rest.rpartition(" grid ")
    middle = middle.strip()
    end = len("None") if middle.startswith("None") else 0
    if middle.startswith("("):
        end = closing(middle, 0, curly=False) + 1
    block, index = middle[:end], middle[end:].strip()
    grid, _, role = tail.strip().rpartition(" ")
    if role not in ROLES:
        grid, role = tail, "in"
    mapped = index == "None" or index.partition("->")[0].strip()
    if not (found and also and block and mapped and (index == "None" or "->" in index)):
        raise LayoutError(_BAD_FORM(_FORM, shown(text)), text=text)
    whole = {"block": None if block == "None" else block, "index": None if index == "None" else index}
    return {"array": array, "grid": grid, "role": role.strip(), **whole}
