"""Reading and printing XLA shape text, against rows of XLA's own answers and, where installed, jaxlib's parser."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.core.errors import LayoutError
from layoutproof.core.message import brief
from layoutproof.core.size import symbol
from layoutproof.layouts.xla.shape import COMBINE, ELEMENT_BITS, XlaLayout, XlaOpaque, XlaShape, XlaTuple, to_text
from layoutproof.layouts.xla.text import _parse, parse
from tests.recorded import rows
from tests.versions import jaxlib_measured

pytestmark = pytest.mark.slow

TYPES = sorted(ELEMENT_BITS)


def read(text: str, mode: str, fast: bool = True) -> XlaShape | None:
    try:
        return _parse(text, mode, fast)
    except LayoutError as error:
        refused = error
    assert refused.text == text
    assert refused.column is not None
    assert 1 <= refused.column <= len(text) + 1
    return None


def printed(text: str, mode: str = "xla", fast: bool = True) -> str | None:
    shape = read(text, mode, fast)
    return None if shape is None else to_text(shape)


@pytest.mark.parametrize("fast", [True, False])
def test_published_strings(fast: bool) -> None:
    """Mode xla accepts what XLA's tests and jaxlib accept, prints what they print, and refuses the rest."""
    checked = 0
    for row in rows("xla_layout_strings.jsonl"):
        text = row["input"].replace("\\n", "\n")  # one row has its newline escaped twice
        assert printed(text, "xla", fast) == (row["expected_print"] if row["expected_valid"] else None), text
        checked += 1
    assert checked > 100


@pytest.mark.parametrize("fast", [True, False])
def test_strings_asked_of_jaxlib(fast: bool) -> None:
    """Mode xla prints what jaxlib printed; its errors and its crashes are LayoutErrors."""
    checked = 0
    for row in rows("tpu_parser_oracle.jsonl"):
        result = row["result"]
        refused = isinstance(result, dict) or result.startswith("ERR")
        assert printed(row["text"], "xla", fast) == (None if refused else result), row["text"]
        checked += 1
    assert checked > 40


@pytest.mark.parametrize(
    "text",
    [
        "f32[2]{0:T(-1)}",
        "f32[2]{0:T(9223372036854775809)}",
        "f32[2]{0:L(0)}",
        "f32[2]{0:L(-3)}",
        "token[2]",
        "opaque[3]",
        "token[]{:S(1)}",
        "opaque[]{:}",
    ],
)
def test_what_aborts_xla_is_refused(text: str) -> None:
    """A text that aborts XLA's process is a LayoutError in both modes."""
    assert printed(text, "xla") is None
    assert printed(text, "strict") is None


QUIRKS = {
    "f32[3,5]{1,0:S(300)}": "f32[3,5]{1,0:S(44)}",
    "f32[3,5]{1,0:T(-9223372036854775808,2)}": "f32[3,5]{1,0:T(*,2)}",
    "f32[3,5]{1,0:T(9223372036854775808,2)}": "f32[3,5]{1,0:T(*,2)}",
    "f32[<=9223372036854775808]": "f32[?]{0}",
    "f32[3,5]{1,0:M(-8)}": "f32[3,5]{1,0}",
    "f32[3,5]{1,0:D(D,C+~)}": "f32[3,5]{1,0}",
    "f32[3,5]{1,0:T}": "f32[3,5]{1,0:T()}",
    "f32[3,5]{1,0:#u32}": "f32[3,5]{1,0:#(u32)}",
    "f32[3,5]{1,0:#(f32)}": "f32[3,5]{1,0:#(invalid)}",
    "f32[3,5]{1,0:T(8,L(2E(4S(1}": "f32[3,5]{1,0:T(8)L(2)E(4)S(1)}",
    "f32[3,5]{1,1}": "f32[3,5]{1,1}",
    "f32[3]{0:SC(7:9,1}": "f32[3]{0:SC(7:9,1)}",
}

REFUSED_IN_TUPLES = [
    "f32[3,3]{0,0}",
    "f32[3]{0:T()}",
    "f32[3]{0:T(8,0)}",
    "f32[3]{0:#(u32)}",
    "f32[3]{0:E(-4)}",
    "f32[3]{0:SC(1:1)}",
    "f32[3]{0:SC(0:3)}",
    "f32[?]{0:SC(0:1)}",
    "f32[9]{0:SC(0:2,2)}",
    "f32[9]{0:SC(0:1)(0:2)}",
    "f32[9223372036854775807,2,0]",
    "f32[2305843009213693952]",
]


@pytest.mark.parametrize("text", QUIRKS)
def test_quirks_of_xla(text: str) -> None:
    """Mode xla reproduces what XLA makes of a strange text (measured with jaxlib 0.10.2); mode strict refuses it."""
    assert printed(text, "xla") == QUIRKS[text]
    assert printed(text, "strict") is None


@pytest.mark.parametrize("text", REFUSED_IN_TUPLES)
def test_tuples_validate_their_elements(text: str) -> None:
    """XLA's parser validates layouts and sizes only in tuples (measured with jaxlib 0.10.2); so does mode xla."""
    assert printed(text, "xla") is not None
    assert printed(f"b({text})", "xla") is not None
    assert printed(f"({text})", "xla") is None
    assert printed(f"(token[],(b({text})))", "xla") is None


def test_largest_array_in_a_tuple() -> None:
    """A tuple element may have up to 2**63 - 1 bytes, counted with the dimensions so far."""
    for text in (
        "(f32[2305843009213693951]{0})",
        "(f32[0,9223372036854775807,2]{2,1,0})",
        "(s1[9223372036854775807]{0})",
    ):
        assert printed(text, "xla") == printed(text, "strict") == text


SHAPES = {
    "f32[]": XlaLayout("f32", (), (), ()),
    "f32 [ 3 , /*x*/ 5 ]\t{ 0 , 1 : T (2,\r\n2) }  // rest": XlaLayout("f32", (3, 5), ("", ""), (0, 1), ((2, 2),)),
    "f32[3,5]": XlaLayout("f32", (3, 5), ("", ""), (1, 0)),
    "f32[0,8]{1,0:T(8,128)}": XlaLayout("f32", (0, 8), ("", ""), (1, 0), ((8, 128),)),
    "u32[]{:T(128)S(2)}": XlaLayout("u32", (), (), (), ((128,),), memory_space=2),
    "f32[7,8]{1,0:T(*,2)}": XlaLayout("f32", (7, 8), ("", ""), (1, 0), ((COMBINE, 2),)),
    "s4[6,8]{0,1:L(4)E(4)S(-1)SC(0:2,7)(1:)M(8)}": XlaLayout(
        "s4",
        (6, 8),
        ("", ""),
        (0, 1),
        tail_alignment=4,
        element_bits=4,
        memory_space=-1,
        splits=((0, (2, 7)), (1, ())),
        metadata_bytes=8,
    ),
    "b(f32[<=3,?])": XlaLayout("f32", (3, symbol("d1")), ("<=", "?"), (1, 0), buffer=True),
    "((), token[])": XlaTuple((XlaTuple(()), XlaOpaque("token"))),
    "f32[N,2*N+M]": XlaLayout("f32", (symbol("N"), 2 * symbol("N") + symbol("M")), ("", ""), (1, 0)),
    "f32[<=(N+1)*2, 3*2-1]": XlaLayout("f32", (2 * symbol("N") + 2, 5), ("<=", ""), (1, 0)),
}


@pytest.mark.parametrize("text", SHAPES)
def test_data_read_from_text(text: str) -> None:
    """A text becomes exactly the fields it writes, and its printed form reads back to the same data."""
    assert parse(text) == SHAPES[text]
    assert parse(to_text(SHAPES[text])) == SHAPES[text]


def test_sizes_print_as_polynomials() -> None:
    """A size expression is printed multiplied out, without spaces between dimensions."""
    assert to_text(parse("f32[(N+1)*2,N*M,?]")) == "f32[2*N + 2,M*N,?]{2,1,0}"


def test_long_tuples_print_index_comments() -> None:
    """XLA prints /*index=n*/ before every fifth element."""
    text = "(" + ", ".join(["s8[]"] * 11) + ")"
    assert (
        to_text(parse(text))
        == "(s8[], s8[], s8[], s8[], s8[], /*index=5*/s8[], s8[], s8[], s8[], s8[], /*index=10*/s8[])"
    )


REFUSALS = {
    "": (1, "core.expected(what='an element type such as f32, or ( for a tuple', found='the text ends')"),
    "f33[2]": (1, "unknown element type 'f33'; did you mean 'f32'?"),
    "float32[2]": (1, "unknown element type 'float32'; did you mean 'f32'?"),
    "int8[2]": (1, "unknown element type 'int8'; did you mean 's8'?"),
    "bool[2]": (1, "unknown element type 'bool'; did you mean 'pred'?"),
    "float8_e4m3fn[2]": (1, "unknown element type 'float8_e4m3fn'; did you mean 'f8e4m3fn'?"),
    "quux[2]": (1, "unknown element type 'quux'; write for instance f32, bf16, s8 or pred"),
    "F32[3,5]": (1, "upper case element type 'F32': XLA writes element types in lower case: f32"),
    "buffer[]": (1, "'buffer' is not an element type: a tuple is written (f32[2], s32[]), a buffer b(f32[2])"),
    "f32(3)": (4, "core.expected(what='[ and the dimensions after f32', found=\"found '('\")"),
    "f32[-1]": (5, "xla.dimension_rule(number=0, value=-1, rule='extents are not negative')"),
    "f32[3,,5]": (
        7,
        "core.expected(what='a dimension: an integer, a size such as N or 2*N, <=size or ?', found=\"found ','\")",
    ),
    "f32[3,": (7, "xla.dimensions_end(hint='')"),
    "f32[N//8]": (10, "xla.dimensions_end(hint='; // starts a comment')"),
    "f32[3 5]": (7, "core.expected(what=', or ] after the dimension', found=\"found '5'\")"),
    "f32[2x3]": (5, "xla.dimension_form(word='2x3', fix='write 2,3 for two dimensions, 2*3 for their product')"),
    "f32[8.0]": (5, "xla.dimension_form(word='8.0', fix='extents are whole numbers, written with digits only')"),
    "f32[N/8,3]": (
        5,
        (
            "xla.dimension_form(word='N/8', fix='a dimension is an integer, <=integer, ?, or a size "
            "made of names, integers, + - * and parentheses')"
        ),
    ),
    "f32[N-1]": (
        5,
        "xla.extent_least(number=0, value='N - 1')",
    ),
    "f32[<=N-M]": (
        5,
        "xla.extent_least(number=0, value='-M + N')",
    ),
    "f32[?,d0]": (10, "xla.question_mark_name(number=0)"),
    "f32[9223372036854775808]": (
        5,
        "xla.dimension_rule(number=0, value=9223372036854775808, rule='the largest extent is 9223372036854775807')",
    ),
    "f32[3 /* x": (7, "xla.comment()"),
    "f32[3]\x00": (7, "core.character(text='\\x00')"),
    "token[2]": (6, "xla.without_dimensions(element_type='token', what='dimensions')"),
    "opaque[]{:S(1)}": (9, "xla.without_dimensions(element_type='opaque', what='layout')"),
    "b(token[])": (3, "xla.buffer()"),
    "b(f32[2]": (9, "core.expected(what=') after the array of b(..)', found='the text ends')"),
    "(f32[2],)": (9, "xla.tuple_comma()"),
    "(f32[2] s32[])": (9, "core.expected(what=', or ) in the tuple', found=\"found 's32'\")"),
    "f32[3]{0} parameter(0)": (11, "xla.after_shape(word='parameter')"),
    "f32[3,5]{}": (
        9,
        (
            "{} is not a layout: after an array's dimensions write {minor_to_major}, e.g. {1,0}, or "
            "nothing for the default"
        ),
    ),
    "bf16[32,256]{2,1,0}": (14, "minor_to_major {2,1,0} has 3 entries but bf16[32,256] has 2 dimensions"),
    "f32[]{0}": (7, "minor_to_major {0} has 1 entry but f32[] has 0 dimensions"),
    "f32[N]{:T(8)}": (8, "minor_to_major {} has 0 entries but f32[N] has 1 dimension"),
    "f32[3,5]{1,1}": (10, "minor_to_major {1,1} names dimension 1 twice: it must name each of 0 to 1 once"),
    "f32[3,5]{2,0}": (10, "minor_to_major {2,0} names dimension 2 but the dimensions of f32[3,5] are 0 to 1"),
    "f32[3,5]{1,}": (12, "core.expected(what='a dimension number in minor_to_major', found=\"found '}'\")"),
    "f32[3,5]{1;0}": (11, "core.character(text=';')"),
    "f32[3,5]{1,0": (13, "core.expected(what='} at the end of the layout', found='the text ends')"),
    "f32[3,5]{1,0:S(1)T(8,128)}": (18, "xla.order(key='T', later='S')"),
    "f32[3,5]{1,0:T(8,128)T(2,1)}": (22, "xla.given_twice(key='T', more='; several tiles are written T(8,128)(2,1)')"),
    "f32[3,5]{1,0:X(1)}": (
        14,
        "xla.property(key='X', known='T(..), L(..), E(..), S(..), SC(..), M(..)')",
    ),
    "f32[3,5]{1,0:T}": (15, "core.expected(what='( and tile sizes after T, e.g. T(8,128)', found=\"found '}'\")"),
    "f32[3,5]{1,0:T()}": (16, "xla.empty_tile()"),
    "f32[3,5]{1,0:T(2,*)}": (
        18,
        "xla.merge_last()",
    ),
    "f32[3,5]{1,0:T(0,2)}": (16, "xla.tile_positive(size=0)"),
    "f32[3,5]{1,0:T(8,-128)}": (18, "xla.tile_positive(size=-128)"),
    "f32[3,5]{1,0:T(9223372036854775808,2)}": (
        16,
        "xla.int64(size=9223372036854775808, int64_max=9223372036854775807)",
    ),
    "f32[3,5]{1,0:L(0)}": (16, "xla.tail_alignment(value=0)"),
    "f32[3,5]{1,0:E(-4)}": (16, "xla.negative(key='E', value=-4, what='an element size in bits')"),
    "f32[3,5]{1,0:M(-8)}": (16, "xla.negative(key='M', value=-8, what='a size in bytes')"),
    "f32[3,5]{1,0:S(300)}": (16, "xla.memory_space(value=300, int8=44)"),
    "f32[3,5]{1,0:S(1}": (17, "core.expected(what=') after S(1', found=\"found '}'\")"),
    "f32[3,5]{1,0:D(D,C)}": (
        14,
        "xla.sparse(key='D', sparse='dim-level types')",
    ),
    "f32[3,5]{1,0:#(u32)}": (
        14,
        "xla.sparse(key='#', sparse='an index type')",
    ),
    "f32[3,5]{1,0:*(u32)}": (
        14,
        "xla.sparse(key='*', sparse='a pointer type')",
    ),
    "f32[3,5]{1,0:P(f32[3])}": (
        14,
        "xla.sparse(key='P', sparse='a physical shape')",
    ),
    "f32[3,5]{0,1:SC(2:1)}": (
        17,
        "SC(2:..) splits physical dimension 2 but the physical dimensions of f32[3,5] are 0 (most major) to 1",
    ),
    "f32[3,5]{0,1:SC(1:3)}": (19, "split index 3 of physical dimension 1 is not inside it: 0 < index < 3"),
    "f32[3,5]{1,0:SC(0:2)(1:0)}": (24, "split index 0 of physical dimension 1 is not inside it: 0 < index < 5"),
    "f32[3,5]{1,0:SC(1:2,2)}": (21, "split index 2 follows 2: split indices must increase"),
    "f32[3,5]{1,0:SC(1:2)(1:3)}": (
        22,
        "SC splits physical dimension 1 twice: give all its indices at once, (1:index,..)",
    ),
    "f32[?]{0:SC(0:1)}": (
        15,
        "split index 1 of physical dimension 0, which is ?: only a bounded dimension is split",
    ),
    "(s8[], f32[9223372036854775807,2])": (
        8,
        "XLA validates what is in a tuple: f32[9223372036854775807,2] has over 9223372036854775807 elements",
    ),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text: str) -> None:
    """Mode strict names the value, the rule and the column."""
    with pytest.raises(LayoutError) as caught:
        parse(text)
    assert (caught.value.column, brief(caught.value.problem)) == REFUSALS[text]
    assert caught.value.text == text


def test_split_index_may_be_anywhere_in_a_symbolic_dimension() -> None:
    """A split index is held against the extent only where that is an integer."""
    assert parse("f32[N]{0:SC(0:1000)}").splits == ((0, (1000,)),)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "b(" * 100_000,
        "f32[" + "(" * 100_000,
        "f32[" + "-" * 100_000,
        "f32[" + "9" * 100_000 + "]",
        "f32[3]{0:T(" + "9" * 100_000 + ")}",
        "f32[" + ",".join(["1"] * 1001) + "]",
        "f32[" + "*".join(f"(a{n}+b{n})" for n in range(500)) + "]",
        "f32[" + "*".join(["99999999999999999"] * 500) + "]",
        "f32[" + "+".join(["N"] * 100_000) + "]",
        "x" * 100_000 + "[3]",
        "/*" * 100_000,
        " " * 999_999 + "!",
        "f32[3]{" + ",".join(["0"] * 100_000) + "}",
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.parametrize("mode", ["strict", "xla"])
def test_hostile_texts_are_refused(text: str, mode: str) -> None:
    """A text made to exhaust the parser is a LayoutError with a short problem."""
    with pytest.raises(LayoutError) as caught:
        parse(text, mode)
    assert len(caught.value.problem) < 300


def test_over_long_text_is_refused() -> None:
    """A text over a million characters is refused unread."""
    with pytest.raises(LayoutError, match="a text of 1,000,001 characters; at most 1,000,000 are read"):
        parse(" " * 1_000_001)


@pytest.mark.parametrize("fast", [True, False])
def test_limits_are_exact(fast: bool) -> None:
    """A thousand dimensions and a hundred parentheses are read, one more is refused."""
    for rank in (1000, 1001):
        assert (read("f32[" + ",".join(["1"] * rank) + "]", "strict", fast) is None) == (rank > 1000)
    for depth in (100, 101):
        text = "(" * depth + "f32[]" + ")" * depth
        assert printed(text, "strict", fast) == (text if depth == 100 else None)


def test_what_xla_drops_is_not_in_the_data() -> None:
    """Mode xla stores what XLA stores: no negative M, the memory space in 8 bits."""
    assert parse("f32[3]{0:S(300)M(-8)}", "xla") == XlaLayout("f32", (3,), ("",), (0,), memory_space=44)


def test_leading_zeros_of_any_length() -> None:
    """XLA reads 000..3 as 3, however many digits; so do both modes."""
    assert printed("f32[" + "0" * 50 + "3]", "xla") == printed("f32[" + "0" * 50 + "3]", "strict") == "f32[3]{0}"


def test_other_modes_are_the_callers_mistake() -> None:
    """An unknown mode is a ValueError that names it."""
    with pytest.raises(ValueError, match="mode 'loose' is neither 'strict' nor 'xla'"):
        parse("f32[]", "loose")


@st.composite
def arrays(draw: st.DrawFn, largest: int) -> XlaLayout:
    """Any array with a valid layout and extents up to `largest`."""
    how = draw(st.lists(st.sampled_from(["", "", "", "<=", "?"]), max_size=5))
    extents = st.one_of(
        st.integers(0, largest),
        st.integers(1, 9).map(lambda k: k * symbol("N") + symbol("M") * symbol("N")),
        st.just(symbol("K")),
    )
    dims = tuple(symbol(f"d{n}") if h == "?" else draw(extents) for n, h in enumerate(how))
    order = tuple(draw(st.permutations(range(len(dims)))))
    size = st.integers(1, 2**63 - 1)
    tile = st.tuples(st.lists(st.one_of(size, st.just(COMBINE)), max_size=3), size).map(lambda t: (*t[0], t[1]))
    splits = []
    for physical in draw(st.lists(st.integers(0, len(dims) - 1), max_size=2, unique=True)) if dims else []:
        logical = order[-1 - physical]
        extent = dims[logical]
        top = 0 if how[logical] == "?" else extent - 1 if isinstance(extent, int) else 100
        splits.append((physical, tuple(sorted(draw(st.sets(st.integers(1, top), max_size=3)) if top > 0 else ()))))
    return XlaLayout(
        draw(st.sampled_from(TYPES)),
        dims,
        tuple(how),
        order,
        tuple(draw(st.lists(tile, max_size=3))),
        tail_alignment=draw(st.sampled_from([1, 1, 7, 2**63 - 1])),
        element_bits=draw(st.sampled_from([0, 0, 4, 32])),
        memory_space=draw(st.integers(-128, 127)),
        splits=tuple(splits),
        metadata_bytes=draw(st.sampled_from([0, 0, 8])),
        buffer=draw(st.booleans()),
    )


SHAPE_TREES = st.recursive(
    st.one_of(arrays(1000), st.sampled_from([XlaOpaque("token"), XlaOpaque("opaque")])),
    lambda inner: st.lists(inner, max_size=7).map(lambda parts: XlaTuple(tuple(parts))),
    max_leaves=8,
)


@given(st.one_of(arrays(2**63 - 1), SHAPE_TREES))
def test_print_then_parse_is_the_same_shape(shape: XlaShape) -> None:
    """parse(to_text(shape)) == shape for every valid shape, by the one-regex path and by the full parser."""
    text = to_text(shape)
    assert parse(text) == shape
    assert _parse(text, "strict", fast=False) == shape


WORDS = ["f32", "bf16", "s4", "u8", "token", "b", "T", "L", "E", "S", "SC", "M", "D", "P", "#", "*", "?", "<=", "x"]
MARKS = ["[", "]", "{", "}", "(", ")", ",", ":", "+", "~", "-", ".", " ", "\n", "/*c*/", "//c\n", "/", "2x3", "\x00"]
NUMBERS = ["0", "1", "2", "8", "128", "300", "007", "-1", "-0", str(2**63 - 1), str(2**63), str(-(2**63)), str(2**64)]


def some_text(dice: random.Random) -> str:
    """A text of the grammar, sometimes with absurd numbers, properties dropped or repeated, and comments."""

    def number() -> str:
        return dice.choice(NUMBERS) if dice.random() < 0.2 else str(dice.randrange(9))

    def numbers(least: int, extra: float = 0.0) -> str:
        return ",".join("*" if dice.random() < extra else number() for _ in range(dice.randint(least, 3)))

    roll = dice.random()
    if roll < 0.1:
        return "(" + ", ".join(some_text(dice) for _ in range(dice.randrange(8))) + ")"
    if roll < 0.15:
        return f"b({some_text(dice)})"
    if roll < 0.2:
        return dice.choice(["token[]", "opaque[]", "token[1]", "token[]{:}"])
    rank = dice.randrange(4)
    dims = ",".join(dice.choice(["", "", "", "<="]) + number() if dice.random() < 0.95 else "?" for _ in range(rank))
    order = list(range(rank))
    dice.shuffle(order)
    properties = [
        "D(" + ",".join(dice.choice(["D", "C+", "S~", "H+~"]) for _ in range(dice.randrange(3))) + ")",
        "T" + "".join(f"({numbers(0, 0.1)})" for _ in range(dice.randint(1, 3))),
        f"L({number()})",
        f"#({dice.choice(TYPES)})",
        f"*({dice.choice(TYPES)})",
        f"E({number()})",
        f"S({number()})",
        "SC" + "".join(f"({number()}:{numbers(0)})" for _ in range(dice.randint(1, 2))),
        f"M({number()})",
    ]
    chosen = [p for p in properties if dice.random() < 0.25]
    layout = "{" + ",".join(map(str, order)) + (":" + "".join(chosen) if chosen else "") + "}"
    return f"{dice.choice(TYPES)}[{dims}]" + (layout if dice.random() < 0.9 else "")


def mutated(dice: random.Random, text: str) -> str:
    """The text with up to three pieces deleted, doubled, swapped, replaced or put in."""
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(text) + 1)
        piece = dice.choice(dice.choice([WORDS, MARKS, NUMBERS]))
        text = dice.choice(
            [
                text[:at] + text[at + 1 :],
                text[:at] + text[at : at + 1] + text[at:],
                text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :],
                text[:at] + piece + text[at + 1 :],
                text[:at] + piece + text[at:],
            ]
        )
    return text


def some_texts(seed: int, count: int) -> list[str]:
    dice = random.Random(seed)
    texts = [some_text(dice) for _ in range(count)]
    return texts + [mutated(dice, text) for text in texts]


@pytest.mark.parametrize("mode", ["strict", "xla"])
def test_both_paths_agree(mode: str) -> None:
    """The one-regex path for common arrays never answers otherwise than the full parser."""
    usual = [f"{t}[{d}]{o}" for t in ("f32", "f33") for d in ("3,5", "0,5", "03,5") for o in COMMON_LAYOUTS]
    accepted = 0
    for text in [*usual, *(f"({text},{text})" for text in usual), *some_texts(1, 1000)]:
        fast = read(text, mode)
        assert fast == read(text, mode, fast=False), text
        accepted += fast is not None
    assert accepted > 300


COMMON_LAYOUTS = [
    "",
    "{1,0}",
    "{0,1}",
    "{0,1,2}",
    "{1,1}",
    "{2,1}",
    "{}",
    "{:}",
    "{1,0:}",
    "{1,0:T(8,128)(2,1)E(4)S(1)}",
]
COMMON_LAYOUTS += [
    "{1,0:T(0,1)}",
    "{1,0:T(8)S(99)}",
    "{1,0:E(0)S(0)}",
    "{1,0:T()}",
    "{1,0}{1,0}",
    " {0,1}",
    "{1,0:S(1)E(4)}",
]


def test_strict_is_part_of_xla() -> None:
    """What mode strict takes (without size symbols) mode xla takes with the same meaning."""
    accepted = 0
    for text in some_texts(2, 1000):
        shape = read(text, "strict")
        if shape is not None:
            assert read(text, "xla") == shape, text
            accepted += 1
    assert accepted > 100


@jaxlib_measured
def test_agrees_with_jaxlib() -> None:
    """Mode xla accepts and prints exactly what jaxlib's HLO parser does, on random texts and mutations of them."""
    if importlib.util.find_spec("jaxlib") is None or sys.platform == "win32":
        pytest.skip("needs jaxlib (pip install jaxlib) and fork")
    texts = [*QUIRKS, *(f"({text})" for text in [*QUIRKS, *REFUSED_IN_TUPLES]), *REFUSED_IN_TUPLES, *some_texts(3, 600)]
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("jaxlib_parser.py"))],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    theirs = json.loads(child.stdout)
    assert {text: printed(text) for text in texts} == dict(zip(texts, theirs, strict=True))
    assert 200 < sum(answer is not None for answer in theirs) < len(texts) - 200


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("bf16[5,13]{1,0:T(8,128)(2,1)}", [([0], 5, 8), ([1], 13, 128)]),
        ("f32[100]{0:T(2)(1)}", [([0], 100, 100)]),
        ("f32[5]{0:T(2,4)}", [([], 1, 2), ([0], 5, 8)]),
        ("f32[2,7,8]{2,1,0:T(*,4,3)}", [([0, 1], 14, 16), ([2], 8, 9)]),
    ],
)
def test_padding_of_each_dimension(text: str, rows: list[tuple[list[int], int, int]]) -> None:
    """Dimensions that a tile merges are one row; what a tile adds in front has none; a size of 1 adds nothing."""
    found = lp.ask("padding", text).figures["per_dimension"]
    assert [(row["dimensions"], row["extent"], row["padded"]) for row in found] == rows
