"""Our own answer on a case, and the comparison of two tables of places."""

from __future__ import annotations

import itertools
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.crosschecks.definitions import Places
from layoutproof.crosschecks.pad_reshape import pad_reshape_transpose
from layoutproof.crosschecks.source import Agree, Disagree, Outcome
from layoutproof.layouts.xla import XlaLayout
from layoutproof.questions.evaluate import read_constant, table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 1 << 24
"""Places of a layout that is compared."""


def ours(layout: object) -> Places:
    """Every place of every element, as `lp.table` has it. Raises Undecided where there are too many."""
    import numpy as np

    read, m = read_constant(layout)
    shape = tuple(map(int, m.domain.extents))
    replicas = [range(int(extent)) for extent in m.replicas.extents]
    if prod(shape) * prod(map(len, replicas)) > MOST:
        raise Undecided(f"more than {MOST:,} places")
    if 0 in shape or not all(map(len, replicas)):
        raise Undecided("no elements")
    axes = 1 if m.memory is not None else m.coordinates()
    tables = [table(read, replica).reshape(*shape, 1, axes) for replica in itertools.product(*replicas)]
    allotted = int(m.memory.allotted) if m.memory is not None else None
    return Places(np.concatenate(tables, axis=len(shape)), allotted)


def compared(said: Places, theirs: Places, what: str = "place") -> Outcome:
    """The smallest element whose places differ."""
    import numpy as np

    if said.at.shape != theirs.at.shape:
        return Disagree(f"number of {what}s", str(said.at.shape), str(theirs.at.shape))
    left, right = (_sorted(p.at) if theirs.any_order else p.at for p in (said, theirs))
    rank = left.ndim - 2
    wrong = np.argwhere((left != right).any(axis=(-2, -1)))
    if len(wrong):
        index = tuple(int(n) for n in wrong[0])
        return Disagree(what, _shown(left[index]), _shown(right[index]), index)
    if None not in (said.allotted, theirs.allotted) and said.allotted != theirs.allotted:
        return Disagree("elements allotted", str(said.allotted), str(theirs.allotted))
    return Agree(int(np.prod(left.shape[:rank], dtype=int)) * left.shape[rank])


def same_array(what: str, said: NDArray[np.generic], theirs: NDArray[np.generic]) -> Outcome:
    """Two arrays, element by element; the smallest index at which they differ."""
    import numpy as np

    if said.shape != theirs.shape:
        return Disagree(f"shape of {what}", str(said.shape), str(theirs.shape))
    wrong = np.argwhere(said != theirs)
    if len(wrong):
        index = tuple(int(n) for n in wrong[0])
        return Disagree(what, str(said[index]), str(theirs[index]), index)
    return Agree(said.size)


_WORDS = {8: "u1", 16: "<u2", 32: "<u4", 64: "<u8"}


def packed(layout: XlaLayout) -> tuple[NDArray[np.generic], NDArray[np.uint8]]:
    """Random bits in the logical shape, and the bytes of memory: the same padded, reshaped and transposed.

    Raises Undecided where no machine word holds an element, and where elements are stored in another width.
    """
    import numpy as np

    memory = layout.index_map().memory
    if memory is None or memory.natural_bits not in _WORDS or memory.prefix_bytes:
        raise Undecided("no machine word holds an element")
    if memory.bits not in (*(n for n in (1, 2, 4) if memory.natural_bits == 8), memory.natural_bits):
        raise Undecided("elements are stored in another width")
    word = _WORDS[memory.natural_bits]
    bits = np.random.default_rng(0).integers(
        0, 1 << min(memory.bits, 63), tuple(map(int, layout.dims)), dtype=np.uint64
    )
    words: NDArray[Any] = bits.astype(word)
    image = pad_reshape_transpose(layout, words).astype(word)
    if memory.bits < 8:
        # the element at the lower offset takes the lower bits
        per_byte = 8 // memory.bits
        rows = np.pad(image, (0, -image.size % per_byte)).reshape(-1, per_byte)
        image = (rows << (np.arange(per_byte, dtype=np.uint8) * memory.bits)).sum(axis=1).astype(np.uint8)
    return words, image.view(np.uint8)


def reason(error: LayoutError | Undecided) -> str:
    """Why something is not compared, without the values of the case, so that equal reasons are counted together."""
    text = error.problem if isinstance(error, LayoutError) else str(error)
    for word in ("has no value before run time", "cannot be packed", "places reach beyond", "has several replicas"):
        if word in text:
            return {"has no value before run time": "sizes without a value"}.get(word, word)
    return text


def _sorted(at: NDArray[np.generic]) -> NDArray[np.generic]:
    """The places of each element in the order of their coordinates, so that sets are compared."""
    import numpy as np

    flat = at.reshape(-1, *at.shape[-2:])
    order = np.lexsort(np.moveaxis(flat, -1, 0)[::-1])
    found: NDArray[Any] = np.take_along_axis(flat, order[..., None], axis=1).reshape(at.shape)
    return found


def _shown(places: NDArray[np.generic]) -> str:
    rows = [str(int(row[0])) if len(row) == 1 else str(tuple(map(int, row))) for row in places]
    return " and ".join(rows[:4]) + (" .." if len(rows) > 4 else "")
