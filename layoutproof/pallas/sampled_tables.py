"""`lp.assume_from`: the function that fills a call's tables, run on samples, says which assumptions about them hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import LayoutError
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.table_assumptions import conditions, with_assumptions
from layoutproof.pallas import problems
from layoutproof.pallas.witnesses import broken

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tables = Mapping[str, NDArray[Any]]


def assume_from(
    function: Callable[..., object],
    samples: Iterable[Sequence[object]],
    said: Sequence[str] = (),
    names: Sequence[str] = (),
) -> tuple[str, ...]:
    """Assumptions about tables, each checked against real output of the code that fills them.

    The proposals held for all samples, which proves nothing of others: read them before you pass them on.

    Args:
        function: Fills the tables. The arrays of integers that it returns are the tables, in their order.
        samples: The arguments of one call each.
        said: Assumptions that you know, as `kernels --assume` takes them.
        names: Of the tables; prefetch0, prefetch1, .. where it is left out.

    Returns:
        Those of `said`, and then the proposals: `is monotone`, `is injective`, the values of the first and the last
        entry, and `0 <= ..`; of two tables of one length, which is never above the other.

    Raises:
        LayoutError: A sample breaks what is said, or what is said is not about these tables.

    >>> import numpy as np
    >>> totals = lambda lengths: np.cumsum([0, *lengths])
    >>> assume_from(totals, [([3, 0, 5],), ([8, 0, 0],)], said=["prefetch0[-1] == 8"])
    ('prefetch0[-1] == 8', 'prefetch0 is monotone', 'prefetch0[0] == 0')
    """
    given = conditions(said)
    seen = [_tables(function(*sample), names) for sample in samples]
    if not seen:
        raise LayoutError(problems.NO_SAMPLES())
    for number, tables in enumerate(seen):
        for text in given:
            if _broken(text, tables):
                raise LayoutError(problems.SAMPLE_BREAKS(number, _shown(text, tables)), text=text)
    proposed = [text for text in _proposals(seen) if text not in given]
    return (*given, *(text for text in proposed if all(_broken(text, tables) == "" for tables in seen)))


def _tables(returned: object, names: Sequence[str]) -> Tables:
    """The tables among what a function returns, by name."""
    import numpy as np

    arrays = [np.asarray(one) for one in _leaves(returned)]
    whole = [array for array in arrays if array.dtype.kind in "iub" and array.ndim]
    called = list(names) or [f"prefetch{k}" for k in range(len(whole))]
    if len(called) != len(whole):
        raise LayoutError(problems.SAMPLE_NAMES(len(called), len(whole)))
    return dict(zip(called, whole, strict=True))


def _leaves(value: object) -> Iterator[object]:
    """The elements of a value that are no tuples, lists or mappings, at any depth, in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list):
        for one in value:
            yield from _leaves(one)
    elif value is not None:
        yield value


def _broken(text: str, tables: Tables) -> str | None:
    """The violation of a text, "" = none; None where that cannot be looked up."""
    kernel = Kernel("tables", (1,), ("g0",), (), tables=tuple(Table(name, t.shape) for name, t in tables.items()))
    return broken(with_assumptions(kernel, [text]), tables, {})


def _shown(text: str, tables: Tables) -> str:
    """The first table that a text names, with the entries that it begins with."""
    name = next((name for name in tables if name in text), next(iter(tables)))
    entries = tables[name].reshape(-1)
    more = ", .." if entries.size > 16 else ""
    return f"{name} is {', '.join(map(str, entries[:16].tolist()))}{more}"


def _proposals(seen: Sequence[Tables]) -> Iterator[str]:
    """Proposed assumptions on tables; each is checked against all samples."""
    first = seen[0]
    for name, table in first.items():
        if table.ndim != 1 or not table.size:
            continue
        yield f"{name} is monotone"
        yield f"{name} is injective"
        yield f"{name}[0] == {int(table[0])}"
        if len(seen) > 1:
            yield f"{name}[-1] == {int(table[-1])}"
    for name, table in first.items():
        for other, beside in first.items():
            if name != other and table.shape == beside.shape and table.ndim == 1:
                yield f"{name}[i] <= {other}[i]"
