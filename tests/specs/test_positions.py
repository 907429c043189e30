"""YAML with positions: what is read, where it stands, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MAX_YAML
from layoutproof.specs import positions
from layoutproof.specs.positions import MAX_DEPTH, MAX_NODES, Node, read_file, read_yaml
from tests.said import Said, placed, raises

pytestmark = pytest.mark.slow


@pytest.fixture(params=["libyaml", "python"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of PyYAML's two parsers, because an installation may have only the second."""
    loader = yaml.SafeLoader if request.param == "python" else getattr(yaml, "CSafeLoader", None)
    if loader is None:
        pytest.skip("this PyYAML was built without libyaml")
    monkeypatch.setattr(positions, "_LOADER", loader)


both_parsers = pytest.mark.usefixtures("parser")


@both_parsers
def test_every_key_and_value_knows_its_place() -> None:
    """Lines and columns count from 1, in characters, in block and in flow style, also behind wide characters."""
    root = read_yaml("# é\na: 1\nlist:\n  - x\n  - {ключ: [y,  'z']}\n")
    assert root.keys == {"a": (2, 1), "list": (3, 1)}
    assert root.value["a"] == Node(1, 2, 4)
    first, second = root.value["list"].value
    assert (first.line, first.column) == (4, 5)
    assert (second.line, second.column, second.keys) == (5, 5, {"ключ": (5, 6)})
    assert [(n.value, n.line, n.column) for n in second.value["ключ"].value] == [("y", 5, 13), ("z", 5, 17)]
    assert root.plain() == {"a": 1, "list": ["x", {"ключ": ["y", "z"]}]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, word) for word in ("no", "yes", "on", "off", "y", "NO", "nUll", "tRUE", "<<", "=", "0b11", "0o8")),
        *((word, word) for word in ("2026-01-02", "2026-01-02 10:00:00", "1:30", "1_000", "+0x1", "1e", "N % 8 == 0")),
        *((word, None) for word in ("", "~", "null", "Null", "NULL")),
        *((word, True) for word in ("true", "True", "TRUE")),
        *((word, False) for word in ("false", "False", "FALSE")),
        *(("17", 17), ("-17", -17), ("+17", 17), ("017", 17), ("0o17", 15), ("0x1F", 31), ("9" * 40, int("9" * 40))),
        *(("1.5", 1.5), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("-.inf", -math.inf), (".Inf", math.inf)),
        *(("'17'", "17"), ('"true"', "true"), ("!!str 17", "17"), ("! 17", "17"), ("40%", "40%"), ("1.02x", "1.02x")),
        ("f32[3,5]{1,0:T(2,2)}", "f32[3,5]{1,0:T(2,2)}"),
        ("|\n  two\n  lines", "two\nlines"),
        ("!!seq [1]", [1]),
        ("!!map {a: 1}", {"a": 1}),
    ],
)
@both_parsers
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    """Words, dates and sexagesimal numbers of YAML 1.1 stay text; numbers, truth values and null are the core's."""
    found = read_yaml(f"- {text}").plain()
    assert found == [value]
    assert type(found[0]) is type(value)


def test_not_a_number_is_a_float() -> None:
    """`.nan` is the core schema's not-a-number."""
    assert math.isnan(read_yaml(".nan").value)


@both_parsers
def test_an_alias_stands_for_its_anchor_at_its_own_place() -> None:
    """The value is the anchor's, the place is where the alias is written."""
    root = read_yaml("a: &x [1, 2]\nb: *x")
    assert root.plain() == {"a": [1, 2], "b": [1, 2]}
    assert (root.value["b"].line, root.value["b"].column) == (2, 4)


REFUSED = {
    "duplicate": ("a: 1\nb: 2\na: 3", ("f:3:1", Said("specs.duplicate_key", key="a", line=1))),
    "inner duplicate": ("a: {b: 1, b: 2}", ("f:1:11", Said("specs.duplicate_key", key="b", line=1))),
    "number as key": ("1: 2", ("f:1:1", Said("specs.key_type", found="the number 1"))),
    "truth as key": ("true: 2", ("f:1:1", Said("specs.key_type", found="the truth value true"))),
    "nothing as key": ("~: 2", ("f:1:1", Said("specs.key_type", found="the empty value null"))),
    "list as key": ("[a]: 2", ("f:1:1", Said("specs.key_type", found="a list"))),
    "mapping as key": ("? {a: 1}\n: 2", ("f:1:3", Said("specs.key_type", found="a mapping"))),
    "tag": ("a: !foo 1", ("f:1:4", Said("specs.unknown_tag", tag="!foo"))),
    "typed": ("a: !!int 1", ("f:1:4", Said("specs.unknown_tag", tag="!!int"))),
    "object": (
        "!!python/object/apply:os.system [ls]",
        ("f:1:1", Said("specs.unknown_tag", tag="!!python/object/apply:os.system")),
    ),
    "second document": ("a: 1\n---\nb: 2", ("f:2:1", Said("specs.second_document"))),
    "no anchor": ("a: *b", ("f:1:4", Said("specs.unknown_alias", name="b"))),
    "own anchor": ("a: &b [*b]", ("f:1:8", Said("specs.alias_cycle", name="b"))),
    "own anchor again": ("a: &b 1\nc: &b [*b]", ("f:2:8", Said("specs.alias_cycle", name="b"))),
    "control character": ("a: \x00", ("f:1:4", Said("specs.character", character="\x00"))),
    "digits": ("a: " + "1" * 41, ("f:1:4", Said("specs.number_length", characters=41, most=40))),
    "million digits": (
        "a:\n  - " + "1" * 1_000_000,
        ("f:2:5", Said("specs.number_length", characters=1000000, most=40)),
    ),
    "million hex digits": ("0x" + "f" * 1_000_000, ("f:1:1", Said("specs.number_length", characters=1000002, most=40))),
    "million decimals": ("1." + "1" * 1_000_000, ("f:1:1", Said("specs.number_length", characters=1000002, most=40))),
    "deep flow": ("[" * 1000, ("f:1:65", Said("specs.depth", most=64))),
    "very deep flow": ("[" * 100_000, ("f:1:65", Said("specs.depth", most=64))),
    "deep block": ("- " * 100_000, ("f:1:129", Said("specs.depth", most=64))),
    "deep mapping": ("{a: " * 100_000, ("f:1:257", Said("specs.depth", most=64))),
    "deep key": ("? " * 100_000, ("f:1:129", Said("specs.depth", most=64))),
    "deep alias": (f"a: &a {'[' * 40}{']' * 40}\nb: {'[' * 40}*a{']' * 40}", ("f:2:44", Said("specs.depth", most=64))),
}


@pytest.mark.parametrize("name", REFUSED)
@both_parsers
def test_what_is_refused_says_where_and_why(name: str) -> None:
    """No exception but LayoutError, with file, line and column."""
    text, (place, message) = REFUSED[name]
    with raises(LayoutError, message) as refused:
        read_yaml(text, "f")
    # where libyaml 0.2.6 looks ahead, it names the end of its own bound, 1,000 levels
    where = placed(refused.value)
    assert where == place or (where, place, message.id) == ("f:1:1001", "f:1:65", "specs.depth")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [b", "; inside [..] or {..}"),
        ("a: [x, f32[3,5]{1,0:T(2,2)}]", "; inside [..] or {..}"),
        ("a:\n\t- b", "; quote the text"),
        ("a: @b", "; quote the text"),
        ("a: b: c", "f:1:5: not YAML: mapping values are not allowed"),
        ('a: "b', "not YAML: found unexpected end of stream"),
        ("!x!y z", "not YAML: found undefined tag handle"),
    ],
)
@both_parsers
def test_what_is_not_yaml_says_what_to_do(text: str, message: str) -> None:
    """The parser's own words, and a hint where the slip is a usual one."""
    with pytest.raises(LayoutError) as refused:
        read_yaml(text, "f")
    assert Said("specs.not_yaml").of(refused.value)
    assert message in str(refused.value)
    assert str(refused.value).startswith("f:")


def bomb(levels: int) -> str:
    """Nine aliases of nine aliases of ..: 9 ** levels values in a few hundred characters."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, levels)]
    return "\n".join(lines)


@both_parsers
def test_a_bomb_is_refused_before_it_grows() -> None:
    """Aliases count as what they stand for, so a bomb of 9**20 values stops at the line that passes the bound."""
    with raises(LayoutError, Said("specs.most_values", most=MAX_NODES)) as refused:
        read_yaml(bomb(20), "f")
    assert refused.value.line == 6
    assert len(read_yaml(bomb(4)).value) == 4


def test_bounds_are_met_exactly() -> None:
    """As deep and as many as allowed is read; one more is refused."""
    nested: Any = read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH).plain()
    depth = 0
    while nested:
        nested, depth = nested[0], depth + 1
    assert depth == MAX_DEPTH - 1
    with raises(LayoutError, Said("specs.depth", most=MAX_DEPTH)):
        read_yaml("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    assert len(read_yaml("[" + "a," * (MAX_NODES - 1) + "]").value) == MAX_NODES - 1
    with raises(LayoutError, Said("specs.most_values", most=MAX_NODES)):
        read_yaml("[" + "a," * MAX_NODES + "]")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is missing, a folder, too large or not UTF-8 is a LayoutError that names it."""
    path = tmp_path / "a.yaml"
    with pytest.raises(LayoutError, match=r"a\.yaml: No such file"):
        read_file(path)
    with pytest.raises(LayoutError, match="a folder, not a file"):
        read_file(tmp_path)
    path.write_bytes(b"a" * (MAX_YAML + 1))
    with pytest.raises(LayoutError, match=r"a\.yaml: larger than 4 MiB"):
        read_file(path)
    path.write_bytes(b"a: 1\nb: \xff")
    with raises(LayoutError, Said("core.not_utf8", byte=0xFF)) as refused:
        read_file(path)
    assert placed(refused.value) == f"{path.as_posix()}:2"
    path.write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_file(path).plain() == {"a": 1}


_SCALARS = (
    st.none() | st.booleans() | st.integers(-(10**39), 10**39) | st.text("abc no:-#[]{},&*!|>'\"%@` 1.é", max_size=8)
)
_DATA = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab: #1", max_size=4), inner, max_size=4),
)


@given(_DATA, st.booleans())
def test_what_pyyaml_writes_is_read_back(data: object, flow: bool) -> None:
    """Any nested data written by PyYAML, in block or flow style, is read as the same data."""
    assert read_yaml(yaml.safe_dump(data, default_flow_style=flow, allow_unicode=True)).plain() == data


@given(st.text("ab:-?[]{},&*!|>'\"%@#~ 1\n\t.é", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but a LayoutError with a line comes out of text that is not YAML."""
    line: int | None
    try:
        line = read_yaml(text, "f").line
    except LayoutError as error:
        line = error.line
    assert line is not None
    assert 1 <= line <= text.count("\n") + 2
