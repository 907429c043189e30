"""Tables with a name for what they mean: `prefetch0 is cu_seqlens(total=2048)`, and what that says of their entries.

A schema is a few assumptions in the language of all others (`table_assumptions`, `relations`), written once with names
in the place of the table and of its parameters. So what it says is what these say, and nothing else knows of schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.kernel import problems


@dataclass(frozen=True, slots=True)
class Schema:
    """Tables of one meaning.

    meaning: in words.  parameters: the names of what else has to be said: a size, or another table.  says: the
    assumptions, with `{t}` for the table.
    """

    meaning: str
    parameters: tuple[str, ...]
    says: tuple[str, ...]


_BEGINS = "max({offsets}[{t}[%s]], {tile} * {tiles}[%s])"
_ENDS = "min({offsets}[{t}[%s] + 1], {tile} * {tiles}[%s] + {tile})"

_MASK = ("blocks", "kinds", "masks", "partial")
_OF_MASK = ("0 <= {t} < {blocks}", "0 <= {kinds} < 3", "0 <= {masks} < {partial}")
_RISES = "{t}[h, i, j] < {t}[%s] if {kinds}[h, i, j] > 0 and {kinds}[%s] > 0"


def _slices(start: str, length: str) -> tuple[str, ...]:
    """Each slice is one of an array of `of` entries."""
    return f"0 <= {start % ':'}", f"0 <= {length % ':'}", f"{start % 'i'} + {length % 'i'} <= {{of}}"


def _apart(start: str, length: str) -> str:
    """No two slices have an element together: of any two one ends before the other starts."""
    one, other = (f"{start % k} + {length % k} <= {start % n}" for k, n in ("ij", "ji"))
    return f"{one} or {other} if i < j"


_OF_LISTS = "{t}[%s]", "{lengths}[%s]"
_OF_ROWS = "{t}[{starts}, %s]", "{t}[{lengths}, %s]"

SCHEMAS: Mapping[str, Schema] = {
    "cu_seqlens": Schema(
        "running totals of lengths: where each sequence or group starts, and last where all of them end",
        ("total",),
        ("0 <= {t} <= {total}", "{t} is monotone", "{t}[0] == 0", "{t}[-1] == {total}"),
    ),
    "group_tiles": Schema(
        "the group of each step of a grouped product, beside `tiles`, its tile of rows: a step has the rows of its "
        "group in its tile, and begins where the step before has ended; `offsets` are where groups start",
        ("groups", "offsets", "tiles", "tile", "total", "steps"),
        (
            "0 <= {t} < {groups}",
            "{t} is monotone",
            "0 <= {tiles} < cdiv({total}, {tile})",
            "{tiles} is monotone",
            "{tiles}[:{steps}] is onto",
            f"{_BEGINS % (0, 0)} == 0",
            f"{_BEGINS % ('i + 1', 'i + 1')} == {_ENDS % ('i', 'i')} if i + 1 < {{steps}}",
            f"{_ENDS % ('{steps} - 1', '{steps} - 1')} == {{total}}",
        ),
    ),
    "page_table": Schema("which page holds each part of each sequence", ("pages",), ("0 <= {t} < {pages}",)),
    "lengths": Schema("how long each sequence is", ("most",), ("0 <= {t} <= {most}",)),
    "group_sizes": Schema(
        "how many rows each group has, together no more than `total`",
        ("total",),
        ("0 <= {t} <= {total}", "sum({t}) <= {total}"),
    ),
    "permutation": Schema("each number below `of` once", ("of",), ("0 <= {t} < {of}", "{t} is injective")),
    "sorted_ids": Schema(
        "ids in order, such as the expert of each row", ("below",), ("0 <= {t} < {below}", "{t} is monotone")
    ),
    "splash_mask": Schema(
        "splash attention's `data_next`, the block of keys of each step of a row of queries, beside `kinds` "
        "(`block_mask`: 0 nothing, 1 a part, 2 all of a block) and `masks` (`mask_next`, below `partial`); blocks rise "
        "from a step with something to the next",
        _MASK,
        (*_OF_MASK, _RISES % (("h, i, j + 1",) * 2)),
    ),
    "splash_mask_dkv": Schema(
        "the same for the gradients of keys and values: the block of queries of each step of a column of keys",
        _MASK,
        (*_OF_MASK, _RISES % (("h, i + 1, j",) * 2)),
    ),
    "slices": Schema(
        "where slices of an array of `of` entries start, beside `lengths`", ("lengths", "of"), _slices(*_OF_LISTS)
    ),
    "slice_rows": Schema(
        "the same in one table: its row `starts` has where slices start, its row `lengths` how long they are",
        ("starts", "lengths", "of"),
        _slices(*_OF_ROWS),
    ),
    "disjoint_slices": Schema(
        "slices of which no two have an element together", ("lengths", "of"), (*_slices(*_OF_LISTS), _apart(*_OF_LISTS))
    ),
    "disjoint_slice_rows": Schema(
        "the same in one table, by two of its rows",
        ("starts", "lengths", "of"),
        (*_slices(*_OF_ROWS), _apart(*_OF_ROWS)),
    ),
    "block_list": Schema(
        "the row of each block that is not empty, row after row, beside `columns`, which rise within a row",
        ("below", "columns", "columns_below", "steps"),
        (
            "0 <= {t} < {below}",
            "{t} is monotone",
            "0 <= {columns} < {columns_below}",
            "{columns}[i] < {columns}[i + 1] if {t}[i] == {t}[i + 1] and i + 1 < {steps}",
        ),
    ),
}  # fmt: skip
"""Every schema by its name."""

_CALLED = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*")


def written_out(text: str) -> tuple[str, ...] | None:
    """The assumptions that a text with a schema's name stands for; None where it is no such text.

    Raises LayoutError for a name that no schema has, and for parameters that are not its own.

    >>> written_out("prefetch1 is page_table(pages=64)")
    ('0 <= prefetch1 < 64',)
    """
    table, _, meaning = text.partition(" is ")
    said = _CALLED.fullmatch(meaning)
    if said is None:
        return None
    schema = SCHEMAS.get(said[1])
    if schema is None:
        raise LayoutError(problems.SCHEMA_UNKNOWN(said[1], ", ".join(SCHEMAS)), text=text)
    pairs = [[side.strip() for side in part.split("=")] for part in said[2].split(",")]
    given = {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[1]}
    if len(given) < len(pairs) or set(given) != set(schema.parameters):
        form = f"{said[1]}({', '.join(f'{name}=..' for name in schema.parameters)})"
        raise LayoutError(problems.SCHEMA_FORM(said[1], form, shorten(text.strip(), 80)), text=text)
    return tuple(one.format(t=table.strip(), **given) for one in schema.says)
