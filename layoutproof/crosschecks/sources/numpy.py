"""NumPy: each language's own definition a second time, as moves of whole arrays. Nothing here uses `place`."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.pad_reshape import pad_reshape_transpose
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped
from layoutproof.layouts.xla import XlaLayout

if TYPE_CHECKING:
    from numpy.typing import NDArray


def version() -> str:
    """NumPy's."""
    return f"numpy {importlib.metadata.version('numpy')}"


def missing() -> str:
    """Nothing: it is a dependency."""
    return ""


def compare(cases: Sequence[Case]) -> Iterator[Outcome]:
    """Every element's place."""
    for case in cases:
        yield _xla(case.parsed) if isinstance(case.parsed, XlaLayout) else Skipped("no second definition")


def _xla(layout: XlaLayout) -> Outcome:
    """Elements 1, 2, 3, .. padded, reshaped and transposed lie where the table says, and as much is allotted."""
    import numpy as np

    from layoutproof.questions.evaluate import table

    shape = tuple(map(int, layout.dims))
    count = prod(shape)
    moved = pad_reshape_transpose(layout, np.arange(1, 1 + count).reshape(shape))
    memory = layout.index_map().memory
    assert memory is not None
    if moved.size != memory.allotted:
        return Disagree("elements allotted", str(memory.allotted), str(moved.size))
    theirs = np.empty(count, dtype=np.int64)
    (at,) = np.nonzero(moved)
    theirs[moved[at] - 1] = at
    return compared("offset", table(layout), theirs.reshape(shape))


def compared(what: str, ours: NDArray[Any], theirs: NDArray[Any]) -> Outcome:
    """Two tables, element by element; the smallest index at which they differ."""
    import numpy as np

    if ours.shape != theirs.shape:
        return Disagree(f"shape of {what}", str(ours.shape), str(theirs.shape))
    different = np.argwhere(ours != theirs)
    if not len(different):
        return Agree(ours.size)
    index = tuple(int(entry) for entry in different[0])
    return Disagree(what, str(ours[index]), str(theirs[index]), index)
