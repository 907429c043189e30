"""Types and enumerations of Mosaic's modules, as MLIR prints them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.pallas.from_mosaic import problems

_MEMREF = re.compile(r"memref<((?:\d+x)*)(!tpu\.\w+|[a-zA-Z]\w*)((?:, .*)?)>")
_SHAPED = re.compile(r"(?:memref|vector)<((?:(?:\d+|\?)x)*)(!tpu\.\w+|[a-zA-Z]\w*)((?:, .*)?)>")
_SPACE = re.compile(r"#tpu\.memory_space<(\w+)>")
_SPACES = {"semaphore_mem": "semaphore", "any": "any", "hbm": "hbm", "vmem": "vmem", "smem": "smem", "host": "host"}
_SPACES |= {"vmem_shared": "vmem_shared", "cmem": "cmem"}
_ENUM = re.compile(r"#tpu\.(\w+)<(\w+)>")
_ELEMENTS = re.compile(r"#tpu\.element_window<\[([\d, ]*)\], ?\[([\d, ]*)\]>")


@dataclass(frozen=True, slots=True)
class MosaicReference:
    """An argument of a kernel's body. dtype: XLA's, or `semaphore` and the like.  memory: one of `kernel.kernel`'s."""

    dims: tuple[int, ...]
    dtype: str
    memory: str


def reference_of(text: str) -> MosaicReference:
    """A memref type.

    >>> reference_of("memref<8x128xbf16, #tpu.memory_space<vmem>>")
    MosaicReference(dims=(8, 128), dtype='bf16', memory='vmem')
    >>> reference_of("memref<2x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>").dtype
    'dma_semaphore'

    Raises LayoutError for any other type, extents known at run time only, and memories that are not known.
    """
    found = _MEMREF.fullmatch(text)
    space = _SPACE.search(found[3]) if found else None
    if found is None or space is None or space[1] not in _SPACES:
        raise LayoutError(problems.ARGUMENT_TYPE(shorten(text, 80)))
    dims = tuple(int(n) for n in found[1].split("x") if n)
    return MosaicReference(dims, element_type(found[2]), _SPACES[space[1]])


def shaped(text: str) -> tuple[tuple[int | None, ...], str, str]:
    """Extents, None where they are known at run time only, element type and memory of an MLIR type; "" for no memory.

    >>> shaped("memref<?x128xf32, #tpu.memory_space<any>>"), shaped("i32")
    (((None, 128), 'f32', 'any'), ((), 'i32', ''))

    Raises LayoutError for memories that are not known.
    """
    found = _SHAPED.fullmatch(text)
    if found is None:
        return (), text, ""
    space = _SPACE.search(found[3])
    if text.startswith("memref<") and (space is None or space[1] not in _SPACES):
        raise LayoutError(problems.MEMORY_TYPE(shorten(text, 80)))
    dims = tuple(None if n == "?" else int(n) for n in found[1].split("x") if n)
    return dims, found[2], _SPACES[space[1]] if space is not None else ""


def element_type(name: str) -> str:
    """XLA's name of MLIR's element type; types of no numbers keep their own. LayoutError for other unknown ones.

    >>> element_type("i8"), element_type("f8E4M3FN"), element_type("i1"), element_type("!tpu.semaphore")
    ('s8', 'f8e4m3fn', 'pred', 'semaphore')
    """
    if name.startswith("!tpu."):
        return name.removeprefix("!tpu.")
    known = {"i1": "pred"}.get(name, re.sub(r"^i(?=\d+$)", "s", name.lower()))
    if known not in ELEMENT_BITS:
        raise LayoutError(problems.ELEMENT_TYPE(shorten(name, 40)))
    return known


def word_of(value: object, kind: str) -> str:
    """The word of an enumeration.

    >>> word_of("#tpu.dimension_semantics<parallel>", "dimension_semantics")
    'parallel'
    """
    found = _ENUM.fullmatch(value) if isinstance(value, str) else None
    if found is None or found[1] != kind:
        raise LayoutError(problems.VALUE_NOT_MODELLED(kind, shorten(str(value), 60)))
    return found[2]


def padding_of(value: object) -> tuple[tuple[int, int], ...]:
    """(low, high) padding of each dimension of an element window.

    >>> padding_of("#tpu.element_window<[0, 0],[8, 0]>")
    ((0, 8), (0, 0))
    """
    found = _ELEMENTS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise LayoutError(problems.WINDOW_KIND(shorten(str(value), 80)))
    low, high = ([int(n) for n in part.split(",") if n.strip()] for part in found.groups())
    if len(low) != len(high):
        raise LayoutError(problems.WINDOW_PADDINGS(shorten(str(value), 80)))
    return tuple(zip(low, high, strict=True))


def whole_numbers(value: object, what: str) -> tuple[int, ...]:
    """A list of ints as a tuple. LayoutError for anything else."""
    if not isinstance(value, list) or not all(type(n) is int for n in value):
        raise LayoutError(problems.NO_LIST(what, shorten(str(value), 60)))
    return tuple(value)
