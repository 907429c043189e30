"""A user's assumptions on the tables of a call: `0 <= t < 8`, `t is monotone` (injective, onto), `sum(t) <= 8`.

A table is a scalar-prefetch operand, or an input of integers: `0 <= args[4] < 8`. An assumption holds for every entry;
`t[i]` is `t`. `t[:n] is onto` says that every value occurs among the first n entries. All else that reads tables is a
relation (`kernel.relations`): of a part of one `0 <= t[:, 2] < 8`, of entries together `t[i] <= u[i + 1] if i + 1 < n`.
`t is cu_seqlens(total=8)` stands for several of these (`kernel.table_schemas`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.expression import parse_size
from layoutproof.core.term import Amount
from layoutproof.kernel import problems
from layoutproof.kernel.kernel import Kernel, Relation, Table, Unmodelled
from layoutproof.kernel.relations import parse_relation, relation_of
from layoutproof.kernel.scalar_memory import assuming, every_table
from layoutproof.kernel.table_schemas import written_out

WORDS = ("monotone", "injective", "onto")
_NAME = r"\s*([^\W\d]\w*(?:\.\w+|\s*\[[^\]]*\])*)"
_IS = re.compile(_NAME + r"\s+is\s+(\w+)\s*")
_SUM = re.compile(r"\s*sum\(" + _NAME + r"\s*\)\s*<(?P<also>=?)(?P<most>[^<]+)")
_BETWEEN = re.compile(r"(?P<low>[^<]+)<(?P<closed>=?)(?P<name>[^<]+)<(?P<also>=?)(?P<high>[^<]+)")
_TABLE = re.compile(_NAME + r"\s*")
_WHOLE = re.compile(r":|\.\.\.?|[^\W\d]\w*|")
"""An index that stands for all of a dimension."""
_FIRST = re.compile(r"\s*:([^:]+)")
"""The first entries of a table: `t[:n]`."""


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
    tables = {table.name: table for table in every_table(kernel)}
    have = f"it has {', '.join(tables)}" if tables else "it has none"
    changes: dict[str, Table] = {}
    relations: list[Relation] = []
    related: list[str] = []
    sizes = kernel.parameters()
    for text in conditions(texts):
        if _relates(text, sizes):
            related.append(text)
            continue
        written, changed = _assumption(text, parse)
        name = _of_entries(written, tables)
        if name in tables:
            if "first" in changed and len(tables[name].dims) != 1:
                raise LayoutError(problems.ONTO_FIRST_RANK(name), text=text)
            changes[name] = _and(changes.get(name, tables[name]), changed)
        elif strict:
            raise LayoutError(problems.ASSUMPTION_TABLE(kernel.name, name, have), text=str(text))
    for table in changes.values():
        if table.total is not None and (table.monotone or table.injective or table.onto):
            raise LayoutError(problems.ASSUMPTION_SUM("; ".join(table.assumptions())))
    kernel = assuming(kernel, tuple(changes.values())) if changes else kernel
    for text in related:
        relation = relation_of(kernel, text)
        if relation is not None:
            relations.append(relation)
        elif strict:
            raise LayoutError(problems.ASSUMPTION_OTHER_TABLE(kernel.name, have), text=text)
    return replace(kernel, relations=(*kernel.relations, *relations)) if relations else kernel


def check_tables(found: Sequence[Kernel | Unmodelled], texts: Sequence[str]) -> None:
    """Raises LayoutError for an assumption about a table that none of some calls has: it would be taken for held."""
    calls = [call for call in found if isinstance(call, Kernel)]
    tables = dict.fromkeys(table.name for call in calls for table in every_table(call))
    for text in conditions(texts):
        if _relates(text, [size for call in calls for size in call.parameters()]):
            known = not found or any(relation_of(call, text) is not None for call in calls)
        else:
            known = not found or _of_entries(_assumption(text)[0], tables) in tables
        if not known:
            have = f"the calls have {', '.join(tables)}" if tables else "no call has one"
            raise LayoutError(problems.ASSUMPTION_NO_TABLE(shorten(text, 80), have))


def _and(table: Table, said: Mapping[str, Any]) -> Table:
    """The table of which this is assumed, too. Of bounds that cannot be compared the last ones count.

    >>> _and(Table("t", low=0, high=4), {"low": 2, "high": 8}).assumptions()
    ('2 <= t < 4',)
    """
    bounds = [bound for bound in (table.low, table.high, said.get("low"), said.get("high")) if isinstance(bound, int)]
    if len(bounds) == 4:
        said = {"low": max(bounds[0], bounds[2]), "high": min(bounds[1], bounds[3])}
    return replace(table, **said)


def _entries(written: str) -> tuple[str, str] | None:
    """A table and indices, of `t[i]` or `t[:, 2]`; None where there are none.

    >>> _entries("args[1] [:, 2]"), _entries("t")
    (('args[1]', ':, 2'), None)
    """
    begin = written.find("[", written.rfind("]", 0, -1) + 1)
    return (written[:begin].rstrip(), written[begin + 1 : -1]) if begin >= 0 and written.endswith("]") else None


def _of_entries(written: str, known: Collection[str] = ()) -> str:
    """The name of a table of which `t[i]` or `t` was written."""
    entries = _entries(written)
    of_name = entries is None or entries[1].strip().isdigit()
    return written if written in known or of_name or entries is None else entries[0]


def _of_all(written: str, sizes: Collection[str] = ()) -> bool:
    """Whether `t` or `t[i, j]` was written: every entry, by an index of its own for each dimension."""
    entries = _entries(written.strip())
    if entries is None or entries[1].strip().isdigit():
        return True
    parts = [part.strip() for part in entries[1].split(",")]
    names = [part for part in parts if part[:1].isidentifier()]
    return all(map(_WHOLE.fullmatch, parts)) and len({*names}) == len(names) and not {*names} & {*sizes}


def conditions(texts: Sequence[str]) -> tuple[str, ...]:
    """The single conditions of texts that may each hold several, `0 <= t < 8; t is monotone`."""
    parts = [part for text in texts for part in (text.split(";") if isinstance(text, str) else (text,))]
    said = [part.strip() if isinstance(part, str) else part for part in parts]
    meant = [written_out(part) if isinstance(part, str) else None for part in said]
    return tuple(one for part, more in zip(said, meant, strict=True) for one in ((part,) if more is None else more))


def check_assumption(text: Any) -> None:
    """Raises LayoutError for a text that is no assumption about a table, with the forms there are."""
    for one in conditions([text]):
        if _relates(one):
            parse_relation(one)
        else:
            _assumption(one)


def tables_said(texts: Sequence[str]) -> dict[str, Table]:
    """The assumptions in texts, by the name of the table, without a kernel that has it; relations are left out.

    >>> tables_said(["0 <= t[i] < 8", "t is monotone"])["t"].assumptions()
    ('0 <= t < 8', 't is monotone')
    """
    tables: dict[str, Table] = {}
    for text in conditions(texts):
        if _relates(text):
            continue
        written, changed = _assumption(text)
        name = _of_entries(written)
        tables[name] = _and(tables.get(name, Table(name)), changed)
    return tables


def relations_said(texts: Sequence[str]) -> tuple[str, ...]:
    """The relations among texts.

    >>> relations_said(["0 <= t[i] < 8", "t[i] <= t[i + 1]"])
    ('t[i] <= t[i + 1]',)
    """
    return tuple(text for text in conditions(texts) if _relates(text))


def _relates(text: object, sizes: Collection[str] = ()) -> bool:
    """Whether a text is a relation: it reads a table, and is not one of the forms that speak of one table alone.

    sizes: names that stand for sizes of the call, and for no index.
    """
    if not isinstance(text, str) or "[" not in text or _IS.fullmatch(text) or _SUM.fullmatch(text):
        return False
    between = _BETWEEN.fullmatch(text)
    if between is None or _TABLE.fullmatch(between["name"]) is None or "[" in between["low"] + between["high"]:
        return True
    return not _of_all(between["name"], sizes)


def _assumption(text: Any, parse: Callable[[str], Any] = parse_size) -> tuple[str, dict[str, Any]]:
    shown = shorten(repr(text), 60)
    said = _IS.fullmatch(text) if isinstance(text, str) else None
    if said is not None:
        if said[2] not in WORDS:
            raise LayoutError(problems.TABLE_WORD(", ".join(WORDS), said[2]), text=text)
        entries = _entries(said[1].strip())
        first = _FIRST.fullmatch(entries[1]) if entries is not None else None
        if first is None and not _of_all(said[1]):
            raise LayoutError(problems.WORD_OF_PART(said[2], shown), text=text)
        if first is None or entries is None:
            return said[1], {said[2]: True}
        if said[2] != "onto":
            raise LayoutError(problems.FIRST_ENTRIES_WORD(said[2]), text=text)
        return entries[0], {"onto": True, "first": parse(first[1])}
    summed = _SUM.fullmatch(text) if isinstance(text, str) else None
    if summed is not None:
        if not _of_all(summed[1]):
            raise LayoutError(problems.SUM_OF_PART(shown), text=text)
        most = parse(summed["most"])
        if type(most) is not int:
            raise LayoutError(problems.SUM_MOST(most, shown), text=text)
        return summed[1], {"total": most if summed["also"] else most - 1}
    between = _BETWEEN.fullmatch(text) if isinstance(text, str) else None
    table = _TABLE.fullmatch(between["name"]) if between is not None else None
    if between is None or table is None:
        forms = "'0 <= t < 8', '0 <= t[:, 2] < 8', 't is monotone' (injective, onto), 't[:n] is onto', "
        raise LayoutError(problems.ASSUMPTION_WORDS(forms, shown))
    low, high = parse(between["low"]), parse(between["high"])
    return table[1], {"low": low if between["closed"] else low + 1, "high": high + 1 if between["also"] else high}
