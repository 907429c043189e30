"""What reads of one table may be together, against all whole tables of small sizes."""

from __future__ import annotations

import itertools

import pytest

from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.size import symbol
from layoutproof.kernel.kernel import Table
from layoutproof.kernel.read_consistency import consistent_reads

pytestmark = pytest.mark.slow

WORDS = ("monotone", "injective", "onto")
SAID = [words for count in range(4) for words in itertools.combinations(WORDS, count)]


def whole_tables(entries: int, values: range, words: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Every table of so many entries that is as said."""
    found = []
    for table in itertools.product(values, repeat=entries):
        if "monotone" in words and list(table) != sorted(table):
            continue
        if "injective" in words and len(set(table)) < entries:
            continue
        if "onto" in words and set(table) != set(values):
            continue
        found.append(table)
    return found


def flat(at: tuple[int, ...], dims: tuple[int, ...]) -> int | None:
    """The row-major position of an entry, None outside of the table."""
    position = 0
    for entry, extent in zip(at, dims, strict=True):
        if not 0 <= entry < extent:
            return None
        position = position * extent + entry
    return position


def stands(seen: list[tuple[tuple[int, ...], int]], dims: tuple[int, ...], tables: list[tuple[int, ...]]) -> bool:
    """Whether some table holds what is seen; outside of it, equal indices read one value and that is all."""
    if any(a == b and x != y for (a, x), (b, y) in itertools.combinations(seen, 2)):
        return False
    inside = [(flat(at, dims), value) for at, value in seen if flat(at, dims) is not None]
    return any(all(table[k] == value for k, value in inside if k is not None) for table in tables)


@pytest.mark.parametrize("words", SAID, ids=lambda words: "+".join(words) or "nothing")
@pytest.mark.parametrize("dims", [(1,), (2,), (3,), (4,), (2, 2)], ids=str)
def test_reads_of_one_table_stand_together_where_some_table_holds_them(
    words: tuple[str, ...], dims: tuple[int, ...]
) -> None:
    entries = 1
    for extent in dims:
        entries *= extent
    for low, count in ((0, 1), (0, 2), (-1, 3), (1, 3), (0, 4), (0, 5)):
        values = range(low, low + count)
        tables = whole_tables(entries, values, words)
        if not tables:
            continue  # what no table can be is refused before, see `impossible`
        said = dict.fromkeys(words, True)
        table = Table("t", dims, low=low, high=low + count, **said)
        places = list(itertools.product(*(range(extent) for extent in dims)))
        if len(dims) == 1:
            places.append((dims[0],))
        # three reads of four values say nothing of a table that three reads of three do not
        for many in (1, 2, 3) if count < 4 else (1, 2):
            for at in itertools.product(places, repeat=many):
                for value in itertools.product(values, repeat=many):
                    pairs = list(zip(at, value, strict=True))
                    assert consistent_reads([(table, a, v) for a, v in pairs], INTS) is stands(pairs, dims, tables), (
                        table,
                        pairs,
                    )


@pytest.mark.parametrize("total", range(-3, 8))
@pytest.mark.parametrize("low", [-1, 0, 1])
def test_reads_of_a_table_with_a_sum_leave_enough_for_all_others(low: int, total: int) -> None:
    values, dims = range(low, low + 3), (3,)
    tables = [each for each in whole_tables(3, values, ()) if sum(each) <= total]
    if not tables:
        return  # what no table can be is refused before, see `impossible`
    table = Table("t", dims, low=low, high=low + 3, total=total)
    for at in itertools.product(range(4), repeat=3):
        for value in itertools.product(values, repeat=3):
            pairs = [((k,), v) for k, v in zip(at, value, strict=True)]
            found = consistent_reads([(table, a, v) for a, v in pairs], INTS)
            assert found is stands(pairs, dims, tables), pairs


@pytest.mark.parametrize("words", SAID, ids=lambda words: "+".join(words) or "nothing")
def test_a_size_for_which_no_table_is_as_said_lets_no_read_stand(words: tuple[str, ...]) -> None:
    table = Table("t", (symbol("N"),), low=0, high=3, **dict.fromkeys(words, True))
    for entries in range(1, 6):
        tables = whole_tables(entries, range(3), words)
        on = Numbers({"N": entries})
        for at, value in itertools.product(range(entries), range(3)):
            found = consistent_reads([(table, (at,), value)], on)
            assert found is stands([((at,), value)], (entries,), tables), (entries, at, value)


def test_different_tables_have_nothing_to_do_with_each_other() -> None:
    one, other = Table("t", (2,), low=0, high=2, injective=True), Table("u", (2,), low=0, high=2, injective=True)
    assert consistent_reads([(one, (0,), 1), (other, (0,), 0)], INTS) is True
