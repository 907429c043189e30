"""What is assumed of several entries together: how it is read, what of it a claim gets, and when it says nothing."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import parse_size
from layoutproof.core.numbers import INTS
from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Kernel, Table
from layoutproof.kernel.relations import cases, every_case, range_at
from layoutproof.kernel.table_assumptions import check_assumption, with_assumptions
from layoutproof.pallas.possible_tables import unfounded

KERNEL = Kernel("k", (4,), ("g0",), (), tables=(Table("t", (3,)), Table("u", (4,)), Table("m", (2, 2))))


def related(*texts: str) -> Kernel:
    return with_assumptions(KERNEL, texts)


def read(table: str, *at: Term) -> Term:
    return Term("read", Term("name", table), *at)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("t[i] + u[i]", "a number, not a condition"),
        ("t[i] <= v[i]", "reads a table that k does not have"),
        ("m[i] == 0", "has 1 indices; its table has 2"),
        ("t[i] <= n", "n is neither an index of a table nor a size"),
        ("t[i] == 0 if i < 2 if i < 1", "one 'if', not 2"),
        ("t[:2] is monotone", "only 'onto'"),
        ("m[:2] is onto", "tables of one dimension"),
        ("0 <= t[:n] < 3", "':n' is no part of a dimension"),
        ("t[3:5] is monotone", "said of all of a table, not of a part"),
        ("m[i, 1] is onto", "said of all of a table, not of a part"),
    ],
)
def test_what_is_no_relation_says_why(text: str, problem: str) -> None:
    with pytest.raises(LayoutError, match=problem.replace("[", r"\[")):
        related(text)


def test_forms_that_speak_of_one_table_are_no_relations() -> None:
    found = related("0 <= t[i] < 8", "u is monotone", "u[:2] is onto")
    assert found.relations == ()
    assert found.table("u").assumptions() == ("u is monotone", "u[:2] is onto")
    check_assumption("t[i] <= u[i + 1] if i < 2")


def test_a_claim_gets_the_cases_that_speak_of_what_it_reads() -> None:
    (relation,) = related("t[i] <= u[i + 1]").relations
    k = Term("name", "k")
    found = cases((relation,), [read("t", k), read("u", Term("int", 2))])
    assert [str(case).rpartition(" or ")[2] for case in found] == ["t[k] <= u[k + 1]", "t[1] <= u[1 + 1]"]
    assert cases((relation,), [read("m", k, k)]) == []


def test_what_is_a_range_of_all_that_is_read_is_no_case_of_it() -> None:
    """A claim is asked without such cases first: one that stayed was asked without for ever."""
    kernel = related("t[0] == 1")
    first, any_ = read("t", Term("int", 0)), read("t", Term("name", "k"))
    assert cases(kernel.relations, [first]) == []
    assert range_at(kernel.relations, kernel.table("t"), first.args[1:]) == (1, 2)
    assert len(cases(kernel.relations, [any_])) == 1


def test_cases_say_nothing_where_an_index_is_outside() -> None:
    (relation,) = related("t[i] < t[i + 1]").relations
    table = {"t": (5, 6, 7)}

    def value(term: Term) -> object:
        if term.op == "read":
            (at,) = (value(part) for part in term.args[1:])
            return table["t"][at] if at in range(3) else -1  # type: ignore[operator]
        if term.op in ("int", "name"):
            return term.evaluate({}, INTS)
        return Term(term.op, *(Term("int", value(part)) for part in term.args)).evaluate({}, INTS)

    whole = every_case(relation, KERNEL.tables)
    assert whole is not None
    assert all(value(case) for case in whole)
    table["t"] = (5, 5, 7)
    assert not all(value(case) for case in whole)


@pytest.mark.parametrize(
    ("text", "at", "between"),
    [
        ("0 <= m[:, 1] < 8", (None, 1), (0, 8)),
        ("0 <= m[:, 1] < 8", (1, 1), (0, 8)),
        ("0 <= m[:, 1] < 8", (None, 0), None),
        ("0 <= m[:, 1] < 8", (0, None), None),
        ("m[i, 1] >= 0 and m[i, 1] < 8", (None, 1), (0, 8)),
        ("-1 <= m[1, j] <= 8", (1, None), (-1, 9)),
        ("m[0:1, :] == 5", (0, 1), (5, 6)),
        ("m[0:1, :] == 5", (1, 1), None),
        ("0 <= m[i, j] < 4 if 1 <= j", (None, 1), (0, 4)),
        ("0 <= m[i, j] < 4 if 1 <= j", (None, 0), None),
        ("0 <= m[i, i] < 4", (1, 1), None),
    ],
)
def test_a_part_of_a_table_is_bounded_by_itself(
    text: str, at: tuple[int | None, int | None], between: tuple[int, int] | None
) -> None:
    kernel = related(text)
    place = [Term("name", f"k{d}") if k is None else Term("int", k) for d, k in enumerate(at)]
    assert range_at(kernel.relations, kernel.table("m"), place) == (between or (-(1 << 31), 1 << 31))
    assert kernel.table("m").assumptions() == ()


def test_what_speaks_of_some_entries_bounds_no_others() -> None:
    """Each was read as a bound of all of the table."""
    for text in ("0 <= m[i, 1] < 8", "0 <= t[i + 1] < 8", "0 <= m[i, i] < 8", "0 <= t[:2] < 8"):
        kernel = related(text)
        assert all(table.assumptions() == () for table in kernel.tables), text
        assert len(kernel.relations) == 1, text
    assert related("0 <= m[i, j] < 8", "0 <= t[:] < 8").relations == ()
    sized = replace(KERNEL, tables=(Table("t", (parse_size("n"),)),))
    assert with_assumptions(sized, ["0 <= t[n] < 8"]).table("t").assumptions() == ()
    assert with_assumptions(sized, ["0 <= t[i] < 8"]).table("t").assumptions() == ("0 <= t < 8",)


def test_a_claim_gets_as_a_case_what_is_no_range_of_what_it_reads() -> None:
    (relation,) = related("0 <= m[:, 1] < 8").relations
    i, j = Term("name", "a"), Term("name", "b")
    assert cases((relation,), [read("m", i, Term("int", 1)), read("m", i, Term("int", 0))]) == []
    (case,) = cases((relation,), [read("m", i, j)])
    assert str(case).endswith("0 <= m[a, 1] and m[a, 1] < 8")
    assert "b" not in case.names()


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["0 <= m[:, 0] < 2", "4 <= m[:, 1] < 6"], ""),
        (["0 <= m[:, 0] < 2", "4 <= m[0, :] < 6"], "vacuous"),
        (["0 <= m < 2", "4 <= m[:, 1] < 6"], "vacuous"),
        (["0 <= m[:, 0] < 2", "4 <= m[:, 1] < 6", "m[i, 0] <= m[i, 1]"], ""),
        (["0 <= m[:, 0] < 2", "4 <= m[:, 1] < 6", "m[i, 1] <= m[i, 0]"], "vacuous"),
        (["4 <= m[:, 1] < 6", "m[i, j] <= m[i, j + 1]", "m[i, j + 1] <= m[i, j]", "m[:, 0] == 1"], "vacuous"),
    ],
)
def test_bounds_of_parts_that_contradict_each_other_are_found(texts: list[str], said: str) -> None:
    assert unfounded(related(*texts), None, ()).partition(":")[0] == said


def test_bounds_of_parts_need_no_search_whatever_the_size() -> None:
    large = replace(KERNEL, tables=(Table("m", (100, 60)),))
    columns = ["4 <= m[:, 1] < 8", "0 <= m[:, 2:30] < 2", "m[i, 1] % 4 == 0", "m[i, 2] <= m[i, 1]"]
    assert unfounded(with_assumptions(large, columns), None, ()) == ""
    assert unfounded(with_assumptions(large, [*columns, "m[:, 20] == 2"]), None, ()) == (
        "vacuous: m[0, 20] has no value that it could hold: 2 <= m[0, 20] < 2"
    )


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["t[i] < t[i + 1]", "0 <= t < 3"], ""),
        (["t[i] < t[i + 1]", "0 <= t < 2"], "vacuous"),
        (["t[i] == u[t[i]]", "u[i] != t[j]", "0 <= t < 4"], "vacuous"),
        (["t[0] == 1", "t[0] == 2"], "vacuous"),
        (["t[i] < t[i + 1] if i < 1", "0 <= t < 2"], ""),
        (["t[:2] is onto", "0 <= t < 3"], "vacuous"),
        (["t[:3] is onto", "0 <= t < 3"], ""),
        (["t[:2] is onto", "0 <= t < 2", "t[0] == t[1]"], "vacuous"),
    ],
)
def test_assumptions_that_contradict_each_other_are_found(texts: list[str], said: str) -> None:
    assert unfounded(related(*texts), None, ()).partition(":")[0] == said


def test_tables_that_are_too_large_to_look_for_leave_it_open() -> None:
    large = replace(KERNEL, tables=(Table("t", (1000,), low=0, high=4),))
    assert unfounded(with_assumptions(large, ["t[i] < t[i + 1]"]), None, ()).startswith("cannot tell")
    assert unfounded(with_assumptions(large, ["t[i] <= t[i + 1]", "t[0] != t[0]"]), None, ()) != ""


def test_tables_of_one_number_are_found_whatever_their_size() -> None:
    large = replace(KERNEL, tables=(Table("t", (1000,), low=2, high=4), Table("m", (100, 60))))
    assert unfounded(with_assumptions(large, ["t[i] <= t[i + 1]"]), None, ()) == ""
    columns = ["m[i, 1] % 16 == 0", "m[i, j] >= 0 and m[i, j] < 16 if j > 10 and j < 27"]
    assert unfounded(with_assumptions(large, columns), None, ()) == ""
    onto = replace(large, tables=(Table("t", (1000,), low=0, high=4, onto=True),))
    assert unfounded(with_assumptions(onto, ["t[i] <= t[i + 1]"]), None, ()) == ""
    assert unfounded(with_assumptions(onto, ["t[i] == t[i + 1]"]), None, ()) != ""


def test_contradictions_agree_with_trying_all_tables() -> None:
    texts = ["t[i] < t[i + 1]", "t[i] + t[i + 1] == 3", "t[t[i]] == i", "t[0] != t[2]", "t[i] == t[i - 1] + 1"]
    for chosen in itertools.combinations(texts, 2):
        wanted = any(all(_holds(text, table) for text in chosen) for table in itertools.product(range(3), repeat=3))
        found = unfounded(with_assumptions(KERNEL, [*chosen, "0 <= t < 3"]), None, ())
        assert (found == "") is wanted, chosen


def _holds(text: str, t: tuple[int, ...]) -> bool:
    """The relation of a table of three entries by Python's own rules, nothing said outside of it."""

    class Entries:
        def __getitem__(self, at: int) -> int:
            if at not in range(3):
                raise IndexError
            return t[at]

    for i in range(-3, 6):
        try:
            if not eval(text, {"t": Entries(), "i": i}):  # texts of this file alone
                return False
        except IndexError:
            continue
    return True
