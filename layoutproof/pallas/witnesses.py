"""Tables as arrays: whether they are as assumed, and arrays that are, found among tables of a few simple shapes.

One table that is as assumed shows that what follows from the assumptions is not vacuous, whatever its length: all that
is said is looked up in it, and nothing is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import Undecided
from layoutproof.core.numbers import INTS
from layoutproof.core.operations import INT32, apply
from layoutproof.core.term import Term, every, reads, value_of
from layoutproof.kernel.kernel import Kernel, Relation, Table
from layoutproof.kernel.relations import tables_of
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.solvers.arrays import ArrayNumbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MOST_ENTRIES = 1 << 20
"""Entries of a table that is made to be looked at."""
MOST_PLACES = 1 << 22
"""Places of the indices of one relation that are looked at, all at once."""
MOST_ROWS = 4
"""Rows of a table of which each is tried to be the one that rises."""
MOST_TRIED = 4096
"""Tables that are made for one set of sizes."""


def broken(kernel: Kernel, tables: Mapping[str, Array], sizes: Mapping[str, int]) -> str | None:
    """The first assumption that arrays break, "" = they are all as assumed; None where that cannot be looked up.

    tables: the entries by the name of the table; assumptions about others are left out.  sizes: of the call.

    >>> import numpy as np
    >>> k = Kernel("k", (4,), ("g0",), (), tables=(Table("t", (3,), low=0, high=2),))
    >>> broken(k, {"t": np.array([0, 1, 2])}, {})
    '0 <= t < 2'
    """
    for table in every_table(kernel):
        said = _alone(table, tables[table.name], sizes) if table.name in tables else ""
        if said:
            return said
    for relation in kernel.relations:
        if not set(tables_of(relation)) <= set(tables):
            continue
        held = _holds(relation, tables, sizes)
        if held is not True:
            return held if held is None else relation.text
    return ""


def _alone(table: Table, held: Array, sizes: Mapping[str, int]) -> str:
    """The assumption on a table alone that its entries violate, "" = none."""
    import numpy as np

    low, high, first = (
        None if e is None else int(value_of(e, sizes, INTS)) for e in (table.low, table.high, table.first)
    )
    flat = held.reshape(-1)
    if low is not None and high is not None and flat.size and not (low <= int(flat.min()) and int(flat.max()) < high):
        return f"{table.low} <= {table.name} < {table.high}"
    if table.total is not None and int(flat.sum(dtype=np.int64)) > table.total:
        return f"sum({table.name}) <= {table.total}"
    if table.monotone and np.any(flat[1:] < flat[:-1]):
        return f"{table.name} is monotone"
    if table.injective and np.unique(flat).size < flat.size:
        return f"{table.name} is injective"
    if table.onto and low is not None and high is not None and np.unique(flat[:first]).size < high - low:
        return next(text for text in table.assumptions() if text.endswith("onto"))
    return ""


def _holds(relation: Relation, tables: Mapping[str, Array], sizes: Mapping[str, int]) -> bool | None:
    """Whether arrays are as a relation says at all places of its indices; None where these are not known."""
    import numpy as np

    spans = [_span(name, relation, tables) for name in relation.names]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans) or prod(map(len, known)) > MOST_PLACES:
        return None
    if not all(known):
        return True
    grids = np.meshgrid(*[np.arange(span.start, span.stop) for span in known], indexing="ij", sparse=True)
    names = {**sizes, **dict(zip(relation.names, grids, strict=True))}
    try:
        with np.errstate(divide="raise"):
            return bool(np.all(value_in(relation.condition, names, tables)))
    except (FloatingPointError, ZeroDivisionError, OverflowError):
        return None


def _span(name: str, relation: Relation, tables: Mapping[str, Array]) -> range | None:
    """Where an index is inside of every table that is read at it and a constant; None where none is: nothing is said
    of other places."""
    low, high = None, None
    for read in reads((relation.condition,)):
        for part, extent in zip(read.args[1:], tables[read.args[0].args[0]].shape, strict=True):
            by = _beside(name, part)
            if by is not None:
                low = -by if low is None else max(low, -by)
                high = extent - by if high is None else min(high, extent - by)
    return None if low is None or high is None else range(low, max(low, high))


def _beside(name: str, part: Term) -> int | None:
    """The constant added to a name in an index; None where the index has another form."""
    if part.op == "name":
        return 0 if part.args[0] == name else None
    if part.op in ("+", "-") and part.args[0].op == "name" and part.args[1].op == "int":
        by = int(part.args[1].args[0])
        return (by if part.op == "+" else -by) if part.args[0].args[0] == name else None
    return None


def value_in(term: Term, names: Mapping[str, Any], tables: Mapping[str, Array]) -> Any:
    """A term on arrays: a read outside of a table gives any entry, since it is unconstrained."""
    import numpy as np

    on = ArrayNumbers(np)
    exact = _needs_more_bits(term, tables)
    known: dict[int, Any] = {}
    for part in every(term):
        if part.op == "read":
            held = tables[part.args[0].args[0]]
            at = [np.asarray(known[id(a)]).astype(np.int64) for a in part.args[1:]]
            entries = held[tuple(np.clip(a, 0, n - 1) for a, n in zip(at, held.shape, strict=True))]
            known[id(part)] = entries.astype(object if exact else np.int64)
        elif part.op in ("int", "name"):
            known[id(part)] = part.evaluate(names, on)
        else:
            known[id(part)] = apply(part.op, on, [known[id(a)] for a in part.args])
    return known[id(term)]


def _needs_more_bits(term: Term, tables: Mapping[str, Array]) -> bool:
    """Whether 64 bits may be too few for a number on the way: products of products, and numbers of 32 bits and more."""
    depth: dict[int, int] = {}
    for part in every(term):
        inner = max((depth[id(a)] for a in part.args if id(a) in depth), default=0)
        depth[id(part)] = inner + (part.op in ("*", "shl"))
    large = any(part.op == "int" and abs(part.args[0]) >= INT32 for part in every(term))
    return large or depth[id(term)] > 1 or any(held.size and abs(held).max() >= INT32 for held in tables.values())


def witness(
    kernel: Kernel,
    names: Sequence[str],
    sizes: Mapping[str, int],
    wanted: Callable[[Mapping[str, Array]], bool] = lambda tables: True,
) -> dict[str, Array] | None:
    """Tables of these names that are as assumed, and as wanted, for some sizes of the call; None where none was found.

    Of each are tried, within its bounds: one number everywhere, numbers that rise by one from the first entry on or up
    to the last one, numbers that rise evenly over the whole table, the least number once and then the greatest, and
    numbers that rise by more along one row.
    """
    tables = [table for table in every_table(kernel) if table.name in names]
    left = [MOST_TRIED]

    def more(k: int, chosen: dict[str, Array]) -> dict[str, Array] | None:
        if k == len(tables):
            return chosen if wanted(chosen) else None
        for held in _shapes(kernel, tables[k], sizes):
            left[0] -= 1
            with_it = {**chosen, tables[k].name: held}
            found = more(k + 1, with_it) if left[0] >= 0 and broken(kernel, with_it, sizes) == "" else None
            if found is not None:
                return found
        return None

    try:
        return more(0, {})
    except (Undecided, OverflowError):
        return None


def _shapes(kernel: Kernel, table: Table, sizes: Mapping[str, int]) -> Iterator[Array]:
    """Tables of the shapes that are tried, within all bounds of a table and of its parts."""
    import numpy as np

    dims = [int(value_of(extent, sizes, INTS)) for extent in table.dims]
    entries = prod(dims)
    if not 0 < entries <= MOST_ENTRIES:
        return
    low = 0 if table.low is None else int(value_of(table.low, sizes, INTS))
    last = max(low, entries) if table.high is None else int(value_of(table.high, sizes, INTS)) - 1
    at = np.arange(entries)
    lows, lasts = (np.full(dims, n) for n in (low, INT32 - 1 if table.high is None else last))
    for bound in (relation.bound for relation in kernel.relations if relation.bound is not None):
        if bound.table == table.name:
            part = tuple(slice(None) if span is None else slice(*span) for span in bound.at)
            lows[part] = lows[part] if bound.low is None else np.maximum(lows[part], bound.low)
            lasts[part] = lasts[part] if bound.high is None else np.minimum(lasts[part], bound.high - 1)
    for flat in (
        np.full(entries, min(max(low, 0), last)),
        low + at,
        np.maximum(low, last + 1 - entries + at),
        low + at * (last - low) // max(1, entries - 1),
        np.where(at == 0, low, last),
        np.full(entries, last),
        np.full(entries, low),
        *_spread(dims, low),
    ):
        yield np.clip(flat.reshape(dims), lows, lasts)


def _spread(dims: Sequence[int], low: int) -> Iterator[Array]:
    """Numbers that rise by 2, 4 or 8 along one row, as starts of slices do, and are the least in all other rows."""
    import numpy as np

    rising = np.arange(dims[-1])
    rows = np.arange(prod(dims[:-1])).reshape(-1, 1)
    for by in (2, 4, 8):
        for row in range(min(len(rows), MOST_ROWS)):
            yield low + np.where(rows == row, by * rising, 0)
