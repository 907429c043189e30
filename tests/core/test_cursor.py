"""Pieces of a text and tokens of it: whatever is wrong is said with the whole text and its column."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutproof.core.brackets import between_commas, closing
from layoutproof.core.cursor import Cursor, TextSpan, tokens
from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import parse_size

TOKENS = tokens(r"[a-z]\w*", r"<=|[(),:]")


def literally(text: str) -> list[str]:
    """Its parts at commas outside of brackets, one character after the other."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def matches(text: str) -> bool:
    """Whether every bracket has its own."""
    while (shorter := re.sub(r"\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\}", "", text)) != text:
        text = shorter
    return not re.search(r"[()\[\]{}]", text)


@given(st.text(alphabet="a, ()[]{}", max_size=14))
def test_parts_between_commas(text: str) -> None:
    """As one character after the other has it; what does not match is refused, at a place that is there."""
    if not matches(text):
        with pytest.raises(LayoutError) as caught:
            TextSpan.whole(text).split(",")
        assert (caught.value.text, caught.value.column in range(1, len(text) + 2)) == (text, True)
        return
    found = TextSpan.whole(text).split(",")
    assert [part.word for part in found] == literally(text) == between_commas(text)
    assert all(text[part.start : part.end] == part.word == part.word.strip() for part in found)


@given(st.text(alphabet="a()[]{}", max_size=14))
def test_where_a_bracket_closes(text: str) -> None:
    """Counted, whatever the kinds."""
    depth, expected = 0, -1
    for at, letter in enumerate(f"({text}"):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0:
            expected = at
            break
    assert closing(f"({text}", 0) == expected


def test_quotes_hold_no_brackets() -> None:
    assert closing(r'{a="}\"}", b}', 0) == 12
    assert between_commas('"a,b", c') == ['"a,b"', "c"]


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("(a]", "']' closes nothing", 3),
        ("a)", "')' closes nothing", 2),
        ("[(a)", "'[' is not closed", 5),
        ("x(", "'(' is not closed", 3),
    ],
)
def test_brackets_that_do_not_match(text: str, problem: str, column: int) -> None:
    with pytest.raises(LayoutError) as caught:
        TextSpan.whole(text).split(",")
    assert (caught.value.problem, caught.value.column, caught.value.text) == (problem, column, text)


def test_what_somebody_else_refuses_gets_its_place() -> None:
    """The caret stands under the entry and not under the whole."""
    text = "S[(8, N @ 2)]"
    entry = TextSpan.whole(text).part(3, 11).split(",")[1]
    with pytest.raises(LayoutError) as caught:
        entry.read(parse_size)
    assert str(caught.value).splitlines()[1:] == [f"  {text}", "        ^ column 7"]


@pytest.mark.parametrize(
    ("text", "opening", "inside"),
    [("(a, b)", "(", "a, b"), ("(a)(b)", "(", None), ("[a]", "(", None), ("[ a ]", "([", "a"), ("(a", "(", None)],
)
def test_one_pair_of_brackets(text: str, opening: str, inside: str | None) -> None:
    found = TextSpan.whole(text).inside(opening)
    assert (None if found is None else found.word) == inside


def test_tokens_and_their_places() -> None:
    cursor = Cursor("ab : -12<=(x", TOKENS)
    seen = []
    while cursor.kind != "end":
        seen.append((cursor.kind, cursor.word, cursor.start, cursor.peek()))
        cursor.advance()
    assert seen == [
        ("name", "ab", 0, ":"),
        (":", ":", 3, "int"),
        ("int", "-12", 5, "<="),
        ("<=", "<=", 8, "("),
        ("(", "(", 10, "name"),
        ("name", "x", 11, "end"),
    ]
    assert (cursor.start, cursor.end, cursor.word) == (12, 12, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "expected : after a, but the text ends\n  a\n   ^ column 2"),
        ("a (", "expected : after a, but found '('\n  a (\n    ^ column 3"),
        ("a  %", "unexpected character '%'\n  a  %\n     ^ column 4"),
    ],
)
def test_what_is_expected_and_what_stands_there(text: str, message: str) -> None:
    cursor = Cursor(text, TOKENS)

    def after() -> None:
        cursor.advance()
        cursor.take(":", "after a")

    with pytest.raises(LayoutError) as caught:
        after()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("word", "value"),
    [("7", 7), ("-7", -7), ("0", 0), ("-0", 0), ("007", 7), ("0" * 5000 + "7", 7), ("-" + "0" * 5000 + "7", -7)],
)
def test_integers(word: str, value: int) -> None:
    """Zeros in front count for nothing, however many."""
    assert Cursor(word, TOKENS).number(20, -100, 100) == value


@pytest.mark.parametrize("word", ["100", "-101", "9" * 20, "9" * 21, "9" * 100_000])
def test_integers_out_of_bounds(word: str) -> None:
    with pytest.raises(LayoutError, match="does not fit in 64 bits"):
        Cursor(word, TOKENS).number(20, -100, 100)


def test_a_piece_that_a_pattern_reads() -> None:
    cursor = Cursor("Sw<3> x", tokens(r"[A-Za-z]\w*", r"[<>]"))
    found = cursor.matched(re.compile(r"Sw<(\d)>"))
    assert found is not None
    assert (found[1], cursor.word, cursor.matched(re.compile("y")), cursor.took("x"), cursor.word) == (
        "3", "x", None, False, "x",
    )  # fmt: skip
