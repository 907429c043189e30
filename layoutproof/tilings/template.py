"""A kernel with holes: block sizes that are still to be chosen, as expressions over tile variables and sizes.

The mapping is that of the kernel language (`layouts/kernel`), with names where numbers will stand: `block: [bm, bk]`,
`grid: ["cdiv(M, bm)", ..]`. `instance` puts numbers in and has the language read the result, so every rule of the
language holds for every candidate; the terms kept here serve to bound and rank candidates without building each one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from layoutproof.core.element_types import element_bits
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_expression, parse_map
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel

_NAME = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*\b")
_ARRAY = re.compile(r"\s*([a-z][a-z0-9]*)\s*\[(.*)\]\s*")
_TEXTS = ("grid", "inputs", "outputs", "operands", "scratch", "scoped", "vmem_limit", "tables")


@dataclass(frozen=True, slots=True)
class Window:
    """One operand of a template. dims: of the array; block: None where squeezed; both in elements.

    index: of the index map, over `names`.  uses: for each dimension, the grid dimensions that choose its block.
    straight: every coordinate is a constant, one grid index, or one entry of a table, and no grid index chooses two;
    then fetches and bytes have a closed form.  looked_up: dimensions whose coordinate is an entry of a table.
    """

    name: str
    role: str
    dtype: str
    bits: int
    dims: tuple[Term, ...]
    block: tuple[Term | None, ...]
    names: tuple[str, ...]
    index: tuple[Term, ...]
    uses: tuple[frozenset[int], ...]
    straight: bool
    looked_up: frozenset[int]
    buffers: int | None
    memory: str


@dataclass(frozen=True, slots=True)
class Template:
    """A kernel over names. grid: programs per dimension.  scratch: (bits, dims, memory).

    covered: for each window the dimensions that the grid covers by the way its extents are written.
    """

    mapping: Mapping[str, Any]
    grid: tuple[Term, ...]
    windows: tuple[Window, ...]
    scratch: tuple[tuple[int, tuple[Term, ...], str], ...]
    covered: tuple[frozenset[int], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "covered", tuple(_covered(self.grid, window) for window in self.windows))

    def names(self) -> tuple[str, ...]:
        """Every size and tile variable that stands in it."""
        terms = [*self.grid, *(t for _, dims, _ in self.scratch for t in dims)]
        own: list[str] = []
        for window in self.windows:
            terms += [*window.dims, *(t for t in window.block if t is not None)]
            own += [name for term in window.index for name in term.names() if name not in window.names]
        return tuple(dict.fromkeys([*(name for term in terms for name in term.names()), *own]))

    def clear(self) -> str:
        """Why its texts cannot be filled in, or "": a name of an index map is also a size or a variable."""
        for window in self.windows:
            for name in window.names:
                if name in self.names():
                    return f"{window.name}: {name} names a grid index and a size; rename one of them"
        return ""

    def instance(self, values: Mapping[str, int]) -> Kernel:
        """The kernel with numbers put in. LayoutError where the kernel language refuses it."""
        from layoutproof.layouts.kernel import read

        try:
            return read(self.filled(values)).kernel
        except ZeroDivisionError:
            raise LayoutError("a size of the kernel divides by 0") from None

    def filled(self, values: Mapping[str, int]) -> dict[str, Any]:
        """The mapping of the kernel language with numbers put in."""
        filled = {k: _filled(v, values) if k in _TEXTS else v for k, v in self.mapping.items()}
        grid = self.mapping.get("grid")
        if isinstance(grid, Mapping):
            filled["grid"] = {name: _filled(extent, values) for name, extent in grid.items()}
        return filled


def read_template(mapping: object) -> Template:
    """A template from the mapping of the kernel language. LayoutError for expressions that cannot be read."""
    if not isinstance(mapping, Mapping):
        raise LayoutError(f"kernel: a mapping with grid, inputs and outputs; found {shorten(repr(mapping), 60)}")
    grid = mapping.get("grid", [])
    names = tuple(grid) if isinstance(grid, Mapping) else None
    terms = _terms(list(grid.values()) if isinstance(grid, Mapping) else grid)
    windows = []
    for key, role in (("inputs", "in"), ("outputs", "out"), ("operands", "")):
        for operand in _rows(mapping, key):
            windows.append(_window(operand, role, len(terms), names))
    # the language puts inputs before outputs, and what is at the same place is the same operand
    windows.sort(key=lambda window: window.role != "in")
    scratch = tuple(_scratch(entry) for key in ("scratch", "scoped") for entry in _rows(mapping, key))
    return Template(mapping, terms, tuple(windows), scratch)


def _covered(grid: Sequence[Term], window: Window) -> frozenset[int]:
    """The dimensions of which all is moved: one grid extent is the dimension over its block, rounded up."""
    found = set()
    for d, (dim, block, used) in enumerate(zip(window.dims, window.block, window.uses, strict=True)):
        if len(used) != 1 or max(used) >= len(grid):
            continue
        (k,) = used
        blocks = dim if block is None else Term("//", Term("-", Term("+", dim, block), Term("int", 1)), block)
        if str(grid[k]) == str(blocks):
            found.add(d)
    return frozenset(found)


def _rows(mapping: Mapping[Any, Any], key: str) -> Sequence[Any]:
    rows = mapping.get(key)
    if rows is None:
        return ()
    if not isinstance(rows, list | tuple):
        raise LayoutError(f"{key} is a list, not {shorten(repr(rows), 60)}")
    return rows


def _window(operand: Any, role: str, rank: int, names: tuple[str, ...] | None) -> Window:
    if not isinstance(operand, Mapping) or not isinstance(operand.get("array"), str):
        raise LayoutError(f"an operand is a mapping with array, block and index; found {shorten(repr(operand), 60)}")
    dtype, dims = _array(operand["array"])
    role = role or str(operand.get("role", "in"))
    name = str(operand.get("name", role))
    if operand.get("indexing_mode") is not None:
        raise LayoutError(f"{name}: what an Unblocked operand moves is not modelled here; write its block in blocks")
    block = operand.get("block")
    if block is not None and not isinstance(block, list | tuple):
        raise LayoutError(f"{name}: block is a list of sizes such as [bm, bk], not {shorten(repr(block), 60)}")
    buffers = operand.get("buffers")
    if buffers is not None and (type(buffers) is not int or buffers < 1):
        raise LayoutError(f"{name}: buffers is a number of at least 1, not {shorten(repr(buffers), 40)}")
    sizes: tuple[Term | None, ...] = dims if block is None else tuple(_block(entry) for entry in block)
    text = operand.get("index")
    own: tuple[str, ...] = names or tuple(f"g{k}" for k in range(rank))
    index: tuple[Term, ...] = (Term("int", 0),) * len(dims)
    if text is not None:
        if not isinstance(text, str):
            raise LayoutError(f"{name}: index is a map such as (i, j) -> (i, j), not {shorten(repr(text), 60)}")
        own, index = parse_map(text)
    if not len(sizes) == len(dims) == len(index):
        raise LayoutError(f"{name}: {len(dims)} dimensions, {len(sizes)} block sizes and {len(index)} block indices")
    place = {n: k for k, n in enumerate(own)}
    uses = tuple(frozenset(place[n] for n in term.names() if n in place) for term in index)
    chosen = [k for used in uses for k in used]
    plain = [t.op in ("int", "name") or (t.op == "read" and all(a.op == "name" for a in t.args)) for t in index]
    return Window(
        name=name,
        role=role,
        dtype=dtype,
        bits=element_bits(dtype),
        dims=dims,
        block=sizes,
        names=own,
        index=index,
        uses=uses,
        straight=all(plain) and len(chosen) == len(set(chosen)),
        looked_up=frozenset(d for d, term in enumerate(index) if term.op == "read"),
        buffers=buffers,
        memory=str(operand.get("memory", "vmem")),
    )


def _scratch(entry: Any) -> tuple[int, tuple[Term, ...], str]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("array"), str):
        raise LayoutError(f"scratch is a list of {{array: 'f32[bm,bn]'}}; found {shorten(repr(entry), 60)}")
    dtype, dims = _array(entry["array"])
    return vmem_bits(dtype), dims, str(entry.get("memory", "vmem"))


def vmem_bits(dtype: str) -> int:
    """Bits of one element in VMEM, where truth values take 32."""
    return 32 if dtype == "pred" else element_bits(dtype)


def _array(text: str) -> tuple[str, tuple[Term, ...]]:
    found = _ARRAY.fullmatch(text)
    if found is None:
        raise LayoutError(f"an array is written bf16[M,K], not {shorten(text, 60)!r}")
    inner = found[2].strip()
    if not inner:
        return found[1], ()
    _, dims = parse_map(f"() -> ({inner},)")
    return found[1], dims


def _block(entry: Any) -> Term | None:
    if entry is None or entry in ("squeezed", "None", "Squeezed()"):
        return None
    return _term(entry)


def _terms(grid: Any) -> tuple[Term, ...]:
    """The extents of a grid: a list, one extent, or a tuple as text."""
    text = grid.strip() if isinstance(grid, str) else ""
    if text[:1] in ("(", "["):
        return parse_map(f"() -> {text}" if text[0] == "(" else f"() -> ({text[1:-1]},)")[1]
    return tuple(_term(entry) for entry in (grid if isinstance(grid, list | tuple) else [grid]))


def _term(entry: Any) -> Term:
    if type(entry) is int:
        return Term("int", entry)
    if not isinstance(entry, str):
        raise LayoutError(f"a size is a number or an expression such as cdiv(M, bm), not {shorten(repr(entry), 60)}")
    return parse_expression(entry)


def _filled(value: Any, values: Mapping[str, int]) -> Any:
    if isinstance(value, str):
        return _NAME.sub(lambda name: str(values.get(name[0], name[0])), value)
    if isinstance(value, Mapping):
        # names of operands and words such as `vmem` are not sizes
        filled = ("array", "block", "index", "element", "padding", "bounded", "assume")
        return {k: _filled(v, values) if k in filled or isinstance(v, Mapping) else v for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(v, values) for v in value]
    return value
