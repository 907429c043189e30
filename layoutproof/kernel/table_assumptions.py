"""What a user says of the tables that index maps read: `0 <= t < 8`, `t is monotone`, `t is injective`, `t is onto`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_size
from layoutproof.core.term import Amount
from layoutproof.kernel.kernel import Kernel, Table

WORDS = ("monotone", "injective", "onto")
_IS = re.compile(r"\s*([A-Za-z_]\w*)(?:\s*\[[^\]]*\])?\s+is\s+(\w+)\s*")
_BETWEEN = re.compile(r"(?P<low>[^<]+)<(?P<closed>=?)(?P<name>[^<]+)<(?P<also>=?)(?P<high>[^<]+)")
_TABLE = re.compile(r"\s*([A-Za-z_]\w*)(?:\s*\[[^\]]*\])?\s*")


def with_assumptions(
    kernel: Kernel, texts: Sequence[str], strict: bool = True, parse: Callable[[str], Amount] = parse_size
) -> Kernel:
    """The kernel with these assumptions about its tables. Bounds are numbers or expressions over sizes.

    strict: whether a table that the kernel does not have is an error; without it the text is left to other kernels.
    parse: how the bounds are read. Raises LayoutError for a text of another form, with the forms there are.

    >>> from layoutproof.kernel.kernel import Table
    >>> k = Kernel("k", (4,), ("i",), (), tables=(Table("t", (4,)),))
    >>> with_assumptions(k, ["0 <= t[i] < 8", "t is monotone"]).tables[0].assumptions()
    ('0 <= t < 8', 't is monotone')
    """
    tables = {table.name: table for table in kernel.tables}
    for text in conditions(texts):
        name, changed = _assumption(text, parse)
        if name in tables:
            tables[name] = replace(tables[name], **changed)
        elif strict:
            have = f"it has {', '.join(tables)}" if tables else "it has none"
            raise LayoutError(f"{kernel.name} has no table {name!r}; {have}", text=str(text))
    return replace(kernel, tables=tuple(tables.values()))


def conditions(texts: Sequence[str]) -> tuple[str, ...]:
    """The single conditions of texts that may each hold several, `0 <= t < 8; t is monotone`."""
    parts = [part for text in texts for part in (text.split(";") if isinstance(text, str) else (text,))]
    return tuple(part.strip() if isinstance(part, str) else part for part in parts)


def check_assumption(text: Any) -> None:
    """Raises LayoutError for a text that is no assumption about a table, with the forms there are."""
    _assumption(text)


def tables_said(texts: Sequence[str]) -> dict[str, Table]:
    """What texts assume, by the name of the table, without a kernel that has it.

    >>> tables_said(["0 <= t[i] < 8", "t is monotone"])["t"].assumptions()
    ('0 <= t < 8', 't is monotone')
    """
    tables: dict[str, Table] = {}
    for text in conditions(texts):
        name, changed = _assumption(text)
        tables[name] = replace(tables.get(name, Table(name)), **changed)
    return tables


def _assumption(text: Any, parse: Callable[[str], Any] = parse_size) -> tuple[str, dict[str, Any]]:
    shown = shorten(repr(text), 60)
    said = _IS.fullmatch(text) if isinstance(text, str) else None
    if said is not None:
        if said[2] not in WORDS:
            raise LayoutError(f"a table is {', '.join(WORDS)}, not {said[2]!r}", text=text)
        return said[1], {said[2]: True}
    between = _BETWEEN.fullmatch(text) if isinstance(text, str) else None
    table = _TABLE.fullmatch(between["name"]) if between is not None else None
    if between is None or table is None:
        raise LayoutError(f"an assumption is '0 <= t < 8' or 't is monotone' (injective, onto), not {shown}")
    low, high = parse(between["low"]), parse(between["high"])
    return table[1], {"low": low if between["closed"] else low + 1, "high": high + 1 if between["also"] else high}
