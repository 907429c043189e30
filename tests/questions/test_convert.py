"""Conversions: literal results, proved equal; what a language cannot say, and the smallest element where it differs."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import layoutproof as lp
from layoutproof.cli import main as cli
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.index_map import IndexMap
from layoutproof.core.space import Space
from layoutproof.layouts.cute import CuteLayout, Swizzle
from layoutproof.layouts.linear import LinearLayout
from layoutproof.questions import convert as conversion
from layoutproof.questions.convert import attempt, conversions, convert, language_of
from tests.said import Said, raises

# bf16[16,256]{1,0:T(8,128)(2,1)}: tiles of 8x128 = 1024, two rows of one column side by side.
# i = 2*4*a + 2*b + c: c to 1, b to 2*128 = 256, a to two tiles = 2048. j = 128*d + e: e to 2, d to 1024.
XLA = "bf16[16,256]{1,0:T(8,128)(2,1)}"
CUTE = "bf16 ((2,4,2),(128,2)):((1,256,2048),(2,1024))"
AXE = "S[(2,4,2,2,128):(2048,256,1,1024,2)] on (16,256)"
LINEAR = (
    "i=1 -> (1); i=2 -> (256); i=4 -> (512); i=8 -> (2048); "
    "j=1 -> (2); j=2 -> (4); j=4 -> (8); j=8 -> (16); j=16 -> (32); j=32 -> (64); j=64 -> (128); j=128 -> (1024); "
    "where out dims are: [offset (size 4096)]"
)


@pytest.mark.parametrize("left", [XLA, CUTE, AXE, LINEAR])
@pytest.mark.parametrize("right", [XLA, CUTE, AXE, LINEAR])
def test_one_layout_in_four_languages(left: str, right: str) -> None:
    """T(8,128)(2,1) is one map, however it is spelled; the element on which a near miss differs is found."""
    assert lp.ask("same_map", left, right).verdict is lp.Verdict.PROVED


@pytest.mark.parametrize("spelling", [CUTE, AXE, LINEAR])
def test_a_near_miss_is_refuted(spelling: str) -> None:
    """Without the packing level element (0, 1) is the first to move."""
    result = lp.ask("same_map", "bf16[16,256]{1,0:T(8,128)}", spelling)
    assert result.counterexample == {"element": (0, 1)}


@pytest.mark.parametrize(
    ("layout", "to", "expected"),
    [
        (XLA, "cute", CUTE),
        (XLA, "axe", AXE),
        (XLA, "linear", LINEAR),
        (CUTE, "xla", XLA),
        (CUTE, "axe", AXE),
        (CUTE, "linear", LINEAR),
        (AXE, "cute", CUTE.removeprefix("bf16 ")),
        (AXE, "linear", LINEAR.replace("offset (", "m (")),
        (LINEAR, "cute", CUTE.removeprefix("bf16 ")),
        (XLA, "xla", XLA),
        ("f32[5,256]{1,0:T(8,128)}", "cute", "f32 (5,(128,2)):(128,(1,1024))"),
        ("f32[5,256]{0,1}", "cute", "f32 (5,256):(1,5)"),
        ("f32[1,7]{1,0}", "axe", "S[(1,7):(1,1)] on (1,7)"),
        ("f32[8*R,128*C]{1,0:T(8,128)}", "cute", "f32 ((8,R),(128,C)):((128,1024*C),(1,1024))"),
        ("f32[8*R,128*C]{1,0:T(8,128)}", "axe", "S[(R,8,C,128):(1024*C,128,1024,1)] on (8*R,128*C)"),
        ("f32[N,M] strides (M,1)", "cute", "f32 (N,M):(M,1)"),
        ("f32[3,5] strides (5,-1)", "cute", "f32 Sw<0,0,0> o 4 o (3,5):(5,-1)"),
        ("s4[8,128]{1,0:E(4)}", "cute", "s4 (8,128):(128,1)"),
        ("s4 (8,128):(128,1)", "xla", "s4[8,128]{1,0:E(4)}"),
        ("s8 ((4,8,16),(128,2)):((1,512,8192),(4,4096))", "xla", "s8[512,256]{1,0:T(32,128)(4,1)}"),
        ("f32 (4,3):(1,4)", "xla", "f32[4,3]{0,1}"),
        ("Sw<3,3,3> o 0 o (8,64):(64,1)", "axe", "S[(8,64):(64,1)] swizzle (3,3,3) on (8,64)"),
        ("Sw<2,3,-3> o 5 o (8,64):(64,1)", "axe", "S[(8,64):(64,1)] + 5 swizzle outer (3,2,3) on (8,64)"),
        ("S[(8,64):(64,1)] swizzle outer (3,2,3) on (8,64)", "cute", "Sw<2,3,-3> o 0 o (8,64):(64,1)"),
        (
            "Sw<2,0,2> o 0 o (4,4):(4,1)",
            "linear",
            "i=1 -> (5); i=2 -> (10); j=1 -> (1); j=2 -> (2); where out dims are: [offset (size 16)]",
        ),
        (
            "S[(2,4,2):(1@warp,1@lane,1@reg)] on (2,8)",
            "linear",
            "i=1 -> (1, 0, 0); j=1 -> (0, 0, 1); j=2 -> (0, 1, 0); j=4 -> (0, 2, 0); "
            "where out dims are: [warp (size 2), lane (size 4), reg (size 2)]",
        ),
    ],
)
def test_results_that_are_known(layout: str, to: str, expected: str) -> None:
    """Worked out by hand; and read back, the text is the same map."""
    found = convert(layout, to)
    assert str(found) == expected
    assert language_of(found) == to
    assert lp.ask("same_map", layout, expected).verdict is lp.Verdict.PROVED


@pytest.mark.parametrize(
    ("layout", "to", "message"),
    [
        (
            "f32[9,128]{1,0:T(8,128)}",
            "cute",
            Said("questions.digits_past_elements", dimension="i", extent=9, digits="2*8", elements=16),
        ),
        (
            "f32[N,128]{1,0:T(8,128)}",
            "axe",
            Said(
                "questions.digits_past_elements",
                dimension="i",
                extent="N",
                digits="ceil(N/8)*8",
                elements="8*ceil(N/8)",
            ),
        ),
        (
            "f32[8,128]{1,0:S(1)}",
            "cute",
            Said("questions.language_lacks", language="CuTe", what="the memory space S(1)"),
        ),
        ("f32[8,128]{1,0:M(16)}", "axe", Said("questions.language_lacks", language="Axe", what="the prefix M(16)")),
        ("s4[8,128]{1,0}", "cute", Said("questions.to_cute_element_bits", element_type="s4", bits=8, expected=4)),
        ("f32[3,4]{1,0}", "linear", Said("questions.to_linear_power_of_two", extent=3, dimension="i")),
        ("f32[N,4]{1,0}", "linear", Said("questions.to_linear_sizes")),
        ("Sw<0,0,0> o 1 o 4:1", "linear", Said("questions.to_linear_origin", element="(0,)", place="(1,)")),
        ("4:-1", "linear", Said("questions.to_linear_negative")),
        (
            "(4,4):(1,3)",
            "linear",
            Said(
                "questions.nearest_differs",
                language="linear",
                layout="i=1 -> (1); i=2 -> (2); j=1 -> (3); j=2 -> (6); where out dims are: [offset (size 16)]",
                point="element=(0, 3)",
            ),
        ),
        (
            "i=1 -> (1); i=2 -> (3)",
            "cute",
            Said("questions.nearest_differs", language="cute", layout="((2,2)):((1,3))", point="element=(3)"),
        ),
        ("i=1 -> (1, 0)", "cute", Said("questions.to_cute_outputs", outputs="dim0, dim1")),
        ("(4,3):(0,1)", "axe", Said("questions.to_axe_stride_zero", layout="(4,3):(0,1)")),
        ("(4,3):(1,4)", "xla", Said("questions.to_xla_element_type", layout="(4,3):(1,4)")),
        ("f32 (4,3):(1,5)", "xla", Said("questions.to_xla_tiles", layout="f32 (4,3):(1,5)")),
        ("f32 (1,4):(0,2)", "xla", Said("questions.to_xla_tiles", layout="f32 (1,4):(0,2)")),
        ("f32 Sw<0,0,0> o 2 o 4:1", "xla", Said("questions.to_xla_offset", offset=2)),
        (
            "f32 Sw<1,0,2> o 0 o 8:1",
            "xla",
            Said("questions.offset_digits", reason="digits have no exclusive or"),
        ),
        ("f32 (1,1,1,1,2):(0,0,0,0,1)", "xla", Said("questions.to_xla_dimensions", most=4, found=5)),
        ("S[4:1] + R[2:4]", "cute", Said("questions.to_cute_replicas", layout="S[4:1] + R[2:4]")),
        ("S[4:1] + R[2:4]", "linear", Said("questions.to_linear_sizes")),
        (
            "S[(4,2):(1@lane,1@reg)]",
            "cute",
            Said("questions.to_cute_axes", layout="S[(4,2):(1@lane,1@reg)]", axes="lane, reg"),
        ),
        (
            "f32[]",
            "cute",
            Said(
                "questions.conversion_unreadable",
                language="cute",
                layout="f32 ():()",
                problem=Said("core.expected", what="an integer, a size or '('", found="found ')'"),
            ),
        ),
        (
            "f32[]",
            "axe",
            Said(
                "questions.conversion_unreadable", language="axe", layout="S[():()] on ()", problem=Said("axe.nothing")
            ),
        ),
        (
            "f32[]",
            "linear",
            Said(
                "questions.conversion_unreadable",
                language="linear",
                layout="where out dims are: [offset (size 1)]",
                problem=Said("linear.empty"),
            ),
        ),
        (
            "4:4611686018427387904",
            "linear",
            Said(
                "questions.conversion_unreadable",
                language="linear",
                layout="i=1 -> (4611686018427387904); i=2 -> (9223372036854775808); where out dims are: "
                "[offset (size 18446744073709551616)]",
                problem=Said("linear.basis_bound", said="i=1 has the base 4611686018427387904"),
            ),
        ),
        ("(f32[2], f32[3])", "cute", Said("xla.tuple", elements=2)),
        (
            "(i < 4) -> (i)",
            "cute",
            Said("questions.no_conversion", source="map", language="cute", known="map converts to no other language"),
        ),
        (
            "4:1",
            "tiles",
            Said("questions.no_conversion", source="cute", language="tiles", known="cute converts to axe, linear, xla"),
        ),
    ],
)
def test_what_cannot_be_said(layout: str, to: str, message: Said) -> None:
    """The reason, and where it exists the smallest element that differs; never a layout that is not the same."""
    with raises(LayoutError, message):
        convert(layout, to)


def test_maps_are_in_no_language() -> None:
    """A bare map has no text to convert."""
    m = IndexMap(Space(("i",), (4,)), Space(("o",), (4,)), lambda x, c, on: x)
    with raises(LayoutError, Said("questions.no_language", kind="IndexMap")):
        convert(m, "cute")


@st.composite
def xla_layouts(draw: st.DrawFn) -> str:
    kind, tile = draw(
        st.sampled_from([("f32", ":T(8,128)"), ("bf16", ":T(8,128)(2,1)"), ("s8", ":T(8,128)(4,1)"), ("f32", "")])
    )
    dims = [draw(st.sampled_from([1, 3, 8, 16, 24])), draw(st.sampled_from([1, 2, 128, 256, 384]))]
    order = draw(st.sampled_from(["1,0", "0,1"]))
    return f"{kind}[{dims[0]},{dims[1]}]{{{order}{tile}}}"


@given(xla_layouts(), st.sampled_from(["cute", "axe", "linear"]))
def test_conversions_of_xla_keep_every_offset(text: str, to: str) -> None:
    """Whatever is returned has the table of the original."""
    try:
        found = convert(text, to)
    except LayoutError:
        return
    assert (lp.table(found).reshape(-1) == lp.table(text).reshape(-1)).all()


@given(st.sampled_from([1, 2, 4]), st.sampled_from([2, 4]), st.permutations([1, 2, 4, 8, 16]), st.integers(0, 2))
def test_round_trips(a: int, b: int, strides: list[int], bits: int) -> None:
    """CuTe to Axe or to a linear layout and back again is the same map."""
    layout = CuteLayout(((a, b), 2), ((strides[0], strides[1] * 4), strides[2] * 16), Swizzle(bits, 1, 2))
    axe = convert(layout, "axe")
    assert lp.ask("same_map", convert(axe, "cute"), layout).verdict is lp.Verdict.PROVED
    try:
        linear = convert(layout, "linear")
    except LayoutError:
        return
    assert (lp.table(linear).reshape(-1) == lp.table(layout).reshape(-1)).all()


def test_a_wrong_proposal_is_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a conversion proposes, only the proof lets it through."""
    module = importlib.import_module("layoutproof.questions.conversions.xla_to_cute")
    monkeypatch.setattr(module, "convert", lambda layout: CuteLayout((4, 8), (1, 4), element_type="f32"))
    with pytest.raises(LayoutError, match=r"the nearest, f32 \(4,8\):\(1,4\), differs at element=\(0, 1\)"):
        convert("f32[4,8]{1,0}", "cute")
    monkeypatch.setattr(module, "convert", lambda layout: CuteLayout(32, 1, element_type="f32"))
    assert str(convert("f32[4,8]{1,0}", "cute")) == "f32 32:1"
    assert attempt("f32[4,8]{1,0}", "cute").result.question == "bitcast"


def test_unknown_is_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no engine can tell, Undecided says so."""
    unknown = lp.Finding("same_map", "x", "nobody knows", verdict=lp.Verdict.UNKNOWN)
    monkeypatch.setattr(conversion, "ask", lambda *_: unknown)
    with pytest.raises(Undecided, match=r"cannot tell whether f32 \(4,8\):\(8,1\) is the same layout: nobody knows"):
        convert("f32[4,8]{1,0}", "cute")


def test_every_conversion_is_complete() -> None:
    """Each file has a docstring and a `convert` with one; there are the ones that the README may name."""
    for source, to in conversions():
        module = importlib.import_module(f"layoutproof.questions.conversions.{source}_to_{to}")
        assert module.__doc__
        assert module.convert.__doc__
    assert {("xla", "cute"), ("xla", "axe"), ("xla", "linear"), ("cute", "xla"), ("cute", "linear")} <= set(
        conversions()
    )


@pytest.mark.parametrize(
    ("arguments", "code", "out"),
    [
        ((XLA, "--to", "cute"), 0, CUTE),
        (("i=1 -> (1); i=2 -> (3)", "--to", "cute"), 1, "refuted  same_map"),
        (("f32[9,128]{1,0:T(8,128)}", "--to", "cute"), 2, ""),
        (("f32[4,128]", "--to", "cute", "--target", "v5e"), 0, "f32 (4,128):(128,1)"),
    ],
)
def test_the_command(arguments: Any, code: int, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    """0 proved and the text alone, 1 refuted, 2 what cannot be said; nothing on stdout then."""
    assert cli.run(("convert", *arguments)) == code
    shown = capsys.readouterr().out
    assert shown.startswith(out)
    assert (shown == "") == (out == "")


def test_the_command_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One object: the text only where it is proved, the nearest layout always, and the proof."""
    assert cli.run(("convert", "i=1 -> (1); i=2 -> (3)", "--to", "cute", "--json")) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["layout"], found["nearest"], found["to"]) == (None, "((2,2)):((1,3))", "cute")
    assert found["proof"]["verdict"] == "refuted"
    assert found["proof"]["counterexample"] == {"element": [3]}
    assert cli.run(("convert", XLA, "--to", "linear", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["layout"] == found["nearest"] == LINEAR
    assert found["proof"]["verdict"] == "proved"


def test_an_unknown_proof_exits_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown never exits 0."""
    unknown = lp.Finding("same_map", "x", "nobody knows", verdict=lp.Verdict.UNKNOWN)
    monkeypatch.setattr(conversion, "ask", lambda *_: unknown)
    assert cli.run(("convert", XLA, "--to", "cute")) == 3
    assert "nobody knows" in capsys.readouterr().out


def test_linear_layouts_have_no_type() -> None:
    """Only offsets in elements are compared with a language that has no bytes."""
    assert isinstance(convert("bf16[4,4]{1,0}", "linear"), LinearLayout)
    assert lp.ask("same_map", convert("bf16[4,4]{1,0}", "linear"), "f32[4,4]{1,0}").verdict is lp.Verdict.PROVED
