"""Memory as a walk has it: what references stand for, views of their elements, copies under way, semaphores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from layoutproof.bodies.effects import BodyReference
from layoutproof.bodies.memory import Lies
from layoutproof.ir.program import Dtype, Other
from layoutproof.values.kinds import Kind, Shaped
from layoutproof.values.known import BitWords, Known, combined, data_of, moved
from layoutproof.values.one_place import OnePlace

Array = np.ndarray[Any, Any]
Piece = slice | int | Array
"""What is taken along one axis: a slice, an element, or an array of elements."""


class HeldMemory:
    """What a reference stands for. value: what is in it.  dtype: of its elements, NumPy's or JAX's.

    changed: whether something was stored to it.  missing: of integers those that nobody wrote, None of none.
    layout: the transforms that say where the elements of memory of a GPU lie: it is seen through these alone.
    members: of a place that several arrays share, these.  place: of one of these, the place.
    Who reads `value` may keep it, so the next store makes a copy; until somebody reads it, stores are made in place.
    """

    def __init__(
        self, value: Shaped, dtype: Dtype, name: str = "", missing: Array | None = None, layout: tuple[Other, ...] = ()
    ) -> None:
        self._value, self.dtype, self.name, self.missing = value, dtype, name, missing
        self.layout = layout
        self._own = False
        self.shape: tuple[int, ...] = tuple(value.shape)
        self.changed = False
        self.members: dict[Lies, HeldMemory] = {}
        self.place: SharedPlace | None = None

    @property
    def value(self) -> Shaped:
        """What is in it."""
        self._own = False
        return self._value

    @value.setter
    def value(self, value: Shaped) -> None:
        self._value, self._own = value, False

    @property
    def holds_words(self) -> bool:
        """Whether integers in it are bits of data."""
        return isinstance(self._value, BitWords)

    def taken(self, numbers: Kind, view: ElementView) -> Shaped:
        """A copy of the elements of a view."""
        if (box := view.box) is not None:
            return moved(numbers, self._value, lambda r: np.array(r[box]))
        places = view.places
        return moved(numbers, self._value, lambda r: r.reshape(-1)[places])

    def put(self, numbers: Kind, value: Shaped, store: Callable[[Array, Array], None]) -> None:
        """Stores a value. store: of an array of the memory and one of the value, in place."""
        if isinstance(value, BitWords) or self.holds_words:
            if isinstance(self._value, Known) and self.missing is not None:
                # integers that nobody wrote may be any: 0 stands beside bits of data
                self.value = replace(self._value, array=np.where(self.missing, 0, self._value.array))
        elif isinstance(value, Known) and not isinstance(self._value, Known):
            value = data_of(numbers, value)
        elif isinstance(self._value, Known) and not isinstance(value, Known):
            self.value = data_of(numbers, self._value)
        own = self._own

        def move(parts: Sequence[Array]) -> Array:
            # row-major, so that a store to flat places is one to the array itself
            out = parts[0] if own else np.array(parts[0], order="C")
            store(out, parts[1])
            return out

        self._value = combined(numbers, [self._value, value], move)
        self._own = True

    def __repr__(self) -> str:
        return f"Memory({self.name}, {self.shape})"


@dataclass(frozen=True)
class SharedPlace:
    """Where one of several arrays lies that have one place. around: all of it.  reference: which one it is.

    doubts: which of their elements hold bits of another one.
    """

    around: HeldMemory
    reference: BodyReference
    doubts: OnePlace


class TensorMemory(HeldMemory):
    """The tensor memory of Blackwell. settled: what is in it once the MMAs that were started have ended.

    Until these are waited for nothing is defined where they add.
    """

    def __init__(
        self, value: Shaped, dtype: Dtype, name: str = "", missing: Array | None = None, layout: tuple[Other, ...] = ()
    ) -> None:
        super().__init__(value, dtype, name, missing, layout)
        self.settled = HeldMemory(value, dtype, name, None if missing is None else missing.copy())


@dataclass(eq=False)
class Semaphore:
    """Counters. waiting: the copies that signal each, in order.  counts: what else has signalled each."""

    shape: tuple[int, ...]
    waiting: dict[int, list[CopyUnderWay]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)


@dataclass(eq=False)
class PhasedBarrier(Semaphore):
    """Barriers of a GPU: each counts arrivals, of which some end a phase.

    arrivals: those that end a phase, in parts of one (`warpgroups`).  across: groups of axes of a cluster, as of
    `BodyReference`.  come: of each barrier the parts that have come so far.
    landing: the copies that have arrived on each, with the number of the part.  seen: by (thread, warp, barrier), how
    many phases it has waited for; -1 is all warps together.
    """

    arrivals: int = 1
    across: tuple[tuple[str, ...], ...] = ()
    come: dict[int, int] = field(default_factory=dict)
    landing: dict[int, list[tuple[int, Callable[[], None]]]] = field(default_factory=dict)
    seen: dict[tuple[int, int, int], int] = field(default_factory=dict)


@dataclass(frozen=True)
class ElementView:
    """Elements of memory. at: flat places, in the shape of the view; None for all of it, or where `box` says it.

    box: slices and single indices of the memory, of which the elements are; None of none.  words: where it is of words
    that elements share, of each word what is in it, the one of the lowest bits first; `places` has all of them.  dtype:
    of these words, None of the memory's own elements.
    """

    memory: Any
    at: Array | None
    shape: tuple[int, ...]
    words: tuple[ElementView, ...] = ()
    dtype: Dtype | None = None
    box: tuple[slice | int, ...] | None = None

    @cached_property
    def places(self) -> Array | None:
        """The flat places, in the shape of the view; None for all of the memory."""
        return self.at if self.box is None else _box(self.memory.shape, self.box)


@dataclass(frozen=True)
class CopyUnderWay:
    """A copy under way. slot: the semaphore that it signals, with the place in it.  at: `file:line` of its start.

    done: whether what it moves is there; one to another device lands at once, and is waited for all the same.
    """

    source: ElementView
    target: ElementView
    slot: tuple[Semaphore, int]
    add: bool = False
    at: str = ""
    done: bool = False


def _box(shape: Sequence[int], pieces: Sequence[slice | int]) -> Array:
    """The flat places of slices and single indices of memory: as `_places`, of these alone."""
    at, size = np.zeros((), np.int64), prod(shape)
    for piece, extent in zip(pieces, shape, strict=True):
        size //= max(extent, 1)
        at = at[..., None] + size * np.arange(extent)[piece] if isinstance(piece, slice) else at + size * piece
    return at
