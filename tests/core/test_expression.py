"""Maps, conditions and sizes as text: what reads, and the full message with its column where it does not."""

from __future__ import annotations

import itertools

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import LONGEST, parse_condition, parse_expression, parse_map, parse_size
from layoutproof.core.numbers import INTS, Numbers
from layoutproof.core.size import symbol
from layoutproof.layouts import map as map_layout

ONLY = "only + - * // % ^ min max select xor, comparisons, names and integers may stand here"
NO_SIZE = "is not a size: sizes are sums and products of names and integers, with // by integers"
ARROW = "an index map is written (i, j) -> (i // 8, j // 128); there is no '->'"


@pytest.mark.parametrize(
    ("text", "names", "value"),
    [
        ("(i, j) -> (i // 8, j // 128)", ("i", "j"), (1, 0)),
        ("i -> i", ("i",), (11,)),
        ("(i,) -> (i,)", ("i",), (11,)),
        ("(i, j) -> j, i", ("i", "j"), (70, 11)),
        ("() -> ()", (), ()),
        ("() -> (1, 2)", (), (1, 2)),
        ("i -> shl(i, 3)", ("i",), (88,)),
        ("(i, j) -> (-i + 3*j - (7 - i),)", ("i", "j"), (203,)),
        ("(i) -> (i ^ 3, xor(i, 1))", ("i",), (8, 10)),
        ("(i, j) -> (min(i, j), max(i, 3))", ("i", "j"), (11, 11)),
        ("(i, j) -> select(i < j and not i == 3, i, 0)", ("i", "j"), (11,)),
        ("(i) -> select(0 <= i < 5 or i > 100, 1, 2)", ("i",), (2,)),
        ("(i)->\n (i\n % 4)", ("i",), (3,)),
        ("(é) -> (é + 1,)", ("é",), (12,)),
        ("(i) -> (0x10 + 1_000,)", ("i",), (1016,)),
    ],
)
def test_valid_maps(text: str, names: tuple[str, ...], value: tuple[int, ...]) -> None:
    """Dimension names in order, and the results on plain ints (the first index is 11, the second 70)."""
    found, terms = parse_map(text)
    assert found == names
    index = dict(zip(names, (11, 70), strict=False))
    assert tuple(term.evaluate(index, INTS) for term in terms) == value


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("", ARROW, None),
        ("(i, j) (i)", ARROW, None),
        ("(i, j) -> (i // 0, j)", "i // 0: a divisor must be a positive integer", 12),
        ("(i)->(i // 0)", "i // 0: a divisor must be a positive integer", 7),
        ("(i) ->   (i % -3)", "i % -3: a divisor must be a positive integer", 11),
        ("(i, j) -> (é + 1, j // 0)", "j // 0: a divisor must be a positive integer", 19),
        ("(i) -> (i / 2)", ONLY, 9),
        ("(i) -> (i ** 2)", ONLY, 9),
        ("(i) -> (i + 1.5)", ONLY, 13),
        ("(i) -> (i.real)", ONLY, 9),
        ("(i) -> shl(i, i)", "shl shifts by a constant from 0 to 63", 15),
        ("(i) -> (f(i))", ONLY, 9),
        ("(i) -> (min(i))", ONLY, 9),
        ("(i) -> (min(i, 1, 2))", ONLY, 9),
        ("(i) -> (i, *i)", ONLY, 12),
        ("(i) -> i << 2", ONLY, 8),
        ("(i) -> ~i", ONLY, 8),
        ("(i) -> True", ONLY, 8),
        ("(i) -> 'a'", ONLY, 8),
        ("(i) -> __import__('os')", ONLY, 8),
        ("(i) -> (lambda: i)", ONLY, 9),
        ("(i) -> [i for i in i]", ONLY, 8),
        ("(i) -> (i := 3)", ONLY, 9),
        ("(i) -> (i if i else 0)", ONLY, 9),
        ("(i) -> select(i is 3, 1, 2)", "only < <= > >= == != compare here", 15),
        ("(i, i) -> (i,)", "the index map names a dimension twice: (i, i)", 1),
        ("(i, 3) -> (i,)", "left of '->' stand plain names", 5),
        ("( i, j+1) -> (i,)", "left of '->' stand plain names", 6),
        ("(i) -> (i", "cannot read '(i' as an expression", 8),
        ("(i -> (i)", "cannot read '(i' as an expression", 1),
        ("(i) -> i; import os", "cannot read 'i; import os' as an expression", 9),
        ("(i) -> i -> i", "cannot read 'i -> i' as an expression", 10),
        ("(i) -> (i,,)", "cannot read '(i,,)' as an expression", 11),
    ],
)
def test_bad_maps(text: str, problem: str, column: int | None) -> None:
    """What is wrong, by the rule it breaks, and the column where it starts."""
    with pytest.raises(LayoutError) as caught:
        parse_map(text)
    assert (caught.value.problem, caught.value.column) == (problem, column)
    if column is not None:
        lines = str(caught.value).splitlines()
        assert lines[2].index("^") - 2 == column - 1
        assert lines[1] == f"  {text}"


@pytest.mark.parametrize(
    "text",
    [
        "(i) -> (i < 3,)",
        "(i) -> ((i < 3) + 1,)",
        "(i) -> (i and 3,)",
        "(i) -> (not i,)",
        "(i) -> (select(i, i, 0),)",
        "(i) -> (min(i < 3, 1),)",
    ],
)
def test_a_condition_is_no_number(text: str) -> None:
    """A condition as a coordinate or an operand, and a number as a condition, are refused before any engine runs."""
    with pytest.raises(LayoutError, match=r"is a (condition where a number|number where a condition) must stand"):
        map_layout.read(text.replace("(i)", "(i < 4)", 1))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("(i < 3) -> (i // 0)", "i // 0"),
        ("(i < 3, j < 2*N) -> (i, j / 2)", "j / 2"),
        ("(3 < 3) -> (i)", "3 <"),
        ("(i < 3) -> (i, k) in [3, 4]", None),
    ],
)
def test_mistakes_in_a_map_stand_where_the_user_wrote_them(text: str, at: str | None) -> None:
    """The text in the message is the user's own, extents included, and the column counts in it."""
    with pytest.raises(LayoutError) as caught:
        map_layout.read(text)
    if at is None:
        assert (caught.value.text, caught.value.column) == ("k", None)
    else:
        assert (caught.value.text, caught.value.column) == (text, text.index(at) + 1)


def python_value(text: str, sizes: dict[str, int]) -> object:
    return eval(text, {"__builtins__": {}, "min": min, "max": max}, dict(sizes))


@pytest.mark.parametrize(
    "text",
    [
        "N % 8 == 0",
        "N % 8 == 0 and M >= 128",
        "not N == 3",
        "N == 3 or M < 5 and N != 2",
        "(N == 3 or M < 5) and N != 2",
        "1 < N < 5 <= M",
        "N == 8 == M",
        "min(N, M) * 2 > 9 // 2",
        "-N + 2 * M == 3",
        "  N\n< M ",
    ],
)
def test_conditions_mean_what_python_means(text: str) -> None:
    """For every choice of sizes the condition is what Python makes of the same text."""
    condition = parse_condition(text)
    assert set(condition.names()) <= {"N", "M"}
    for n, m in itertools.product((1, 2, 3, 5, 8, 128, 129), repeat=2):
        sizes = {"N": n, "M": m}
        assert condition.evaluate({}, Numbers(sizes)) == python_value(" ".join(text.split()), sizes)


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("N % 8", "'N % 8' is a number, not a condition; write for instance N % 8 == 0", None),
        ("N", "'N' is a number, not a condition; write for instance N % 8 == 0", None),
        ("N = 8", "cannot read 'N = 8' as an expression", 3),
        ("N is 3", "only < <= > >= == != compare here", 1),
        ("  N in 3", "only < <= > >= == != compare here", 3),
        ("N % 0 == 0", "N % 0: a divisor must be a positive integer", 1),
        ("N == 1.5", ONLY, 6),
        ("True", ONLY, 1),
        ("", "cannot read '' as an expression", 1),
        ("N == 3 or M", "M is a number where a condition must stand", None),
        ("not N", "N is a number where a condition must stand", None),
        ("(N < 3) < 3", "N < 3 is a condition where a number must stand", None),
    ],
)
def test_bad_conditions(text: str, problem: str, column: int | None) -> None:
    """What is wrong with a condition, and where."""
    with pytest.raises(LayoutError) as caught:
        parse_condition(text)
    assert (caught.value.problem, caught.value.column) == (problem, column)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("3", 3),
        ("-3", -3),
        ("N", symbol("N")),
        (" 2*N + 1 ", 2 * symbol("N") + 1),
        ("(N+7)//8", (symbol("N") + 7) // 8),
        ("N*M - M*N", 0),
        ("4^1", 5),
        (" " * 20 + "5", 5),
        ("99999999999999999999", 99999999999999999999),
    ],
)
def test_sizes(text: str, size: object) -> None:
    """An integer, or a polynomial in its normal form."""
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "N//(M-1)",
            "'N//(M-1)' is not a size: N // (M - 1): only by sizes that are positive for all values of their symbols",
        ),
        ("9" * 21, "the integer 99999999999999999999.. has more than 20 digits"),
        ("8//0", "8 // 0: a divisor must be a positive integer"),
        ("1.5", ONLY),
        ("", "cannot read '' as an expression"),
        ("N<3", "N < 3 is a condition where a number must stand"),
        ("select(N == 2, 3, 4)", f"'select(N == 2, 3, 4)' {NO_SIZE}"),
        ("select(N != N, 3, 4)", f"'select(N != N, 3, 4)' {NO_SIZE}"),
        ("min(N, 3)", f"'min(N, 3)' {NO_SIZE}"),
    ],
)
def test_bad_sizes(text: str, problem: str) -> None:
    """What is no extent, and why."""
    with pytest.raises(LayoutError) as caught:
        parse_size(text)
    assert caught.value.problem == problem


@pytest.mark.parametrize("text", ["-" * 250 + "i", "+".join("i" * 500), "abs(" * 90 + "i" + ")" * 90])
def test_deep_nesting_is_refused(text: str) -> None:
    """Nesting that would exhaust Python's stack is bad input, not a crash."""
    with pytest.raises(LayoutError, match=r"nested more than 200 deep|may stand here"):
        parse_map(f"(i) -> {text}")


@pytest.mark.parametrize("text", ["(" * 3000 + "i" + ")" * 3000, "1" * 5000, "i + " * 2000 + "i"])
def test_long_text_is_refused(text: str) -> None:
    """Longer than the longest expression: refused by its length, before anything is parsed."""
    whole = f"(i) -> {text}"
    with pytest.raises(LayoutError) as caught:
        parse_map(whole)
    assert caught.value.problem == f"a text of {len(whole):,} characters; at most {LONGEST:,} are read"
    assert len(str(caught.value)) < 300


def test_brackets_do_not_count_as_nesting() -> None:
    """A hundred brackets around a name are just the name."""
    _, (term,) = parse_map("(i) -> " + "(" * 100 + "i" + ")" * 100)
    assert str(term) == "i"


def test_expressions_on_other_names() -> None:
    """Names that are no index are size symbols, given by the numbers."""
    assert parse_expression("2 * N + i").evaluate({"i": 3}, Numbers({"N": 5})) == 13


@pytest.mark.parametrize(("shape", "bounds"), [(3, None), ("34", None), (None, None), ([3], 4), ([3], "4")])
def test_extents_come_in_lists(shape: object, bounds: object) -> None:
    """A number or a text where a list of extents must stand is refused; a text is not taken for its letters."""
    with pytest.raises(LayoutError, match=r"^(shape|range) is a list of extents such as \[256, 512\], not "):
        map_layout.read({"index": "(i) -> (i)", "shape": shape, "range": bounds})
