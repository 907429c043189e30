"""Claims about all sizes at once, held against constants: what is proved holds for every size that is tried, and a
refutation, its sizes put in, is the refutation of that constant case, which no smaller sizes have."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.registry.read import map_of, read_layout
from tests.oracles import plain

pytestmark = pytest.mark.slow

GRID = (1, 2, 3, 7, 8, 9, 16, 127, 128, 129, 300)


@dataclass(frozen=True)
class Question:
    """A property of layouts with size symbols; `where` restricts them."""

    property: str
    layouts: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    where: str | None = None

    def __str__(self) -> str:
        return f"{self.property} {' , '.join(self.layouts)} {dict(self.options) or ''} {self.where or ''}"

    def ask(self, **how: Any) -> Finding:
        return lp.ask(self.property, *self.layouts, where=self.where, **self.options, **how)

    def symbols(self) -> tuple[str, ...]:
        """Size symbols in the order in which counterexamples give them."""
        return tuple(dict.fromkeys(name for layout in self.layouts for name in map_of(read_layout(layout)).sizes()))

    def with_sizes(self, sizes: Mapping[str, int]) -> Finding:
        """The same question about constants: every symbol in the texts replaced by its number."""
        return lp.ask(self.property, *(put(text, sizes) for text in self.layouts), **self.options)

    def allows(self, sizes: Mapping[str, int]) -> bool:
        """Whether the condition holds for these sizes, by Python's own arithmetic."""
        return self.where is None or bool(eval(put(self.where, sizes), {"__builtins__": {}}))


def put(text: str, sizes: Mapping[str, int]) -> str:
    """The text with numbers for symbols; products and sums in dimensions multiplied out, as XLA's text wants them."""
    text = re.sub(r"\b[A-Za-z]\b", lambda m: str(sizes[m[0]]) if m[0] in sizes else m[0], text)
    return re.sub(r"\d+(?:\s*[*+-]\s*\d+)+", lambda m: str(eval(m[0], {"__builtins__": {}})), text)


def assignments(names: tuple[str, ...], grid: tuple[int, ...] = GRID, most: int = 60) -> Iterator[dict[str, int]]:
    """Some choices of sizes, smallest maximum first."""
    rows = sorted(itertools.product(grid, repeat=len(names)), key=lambda row: (max(row), row))
    step = max(1, len(rows) // most)
    return (dict(zip(names, row, strict=True)) for row in rows[::step])


TILINGS = (
    "f32[N,M]{1,0:T(8,128)}",
    "f32[N,M]{0,1:T(8,128)}",
    "f32[N,M]{1,0:T(4,128)}",
    "f32[N,M]{1,0:T(2,128)}",
    "f32[N,M]{1,0:T(1,128)}",
    "bf16[N,M]{1,0:T(8,128)(2,1)}",
    "bf16[N,M]{1,0:T(16,128)(2,1)}",
    "s8[N,M]{1,0:T(8,128)(4,1)}",
    "s8[N,M]{0,1:T(32,128)(4,1)}",
    "s4[N,M]{1,0:T(64,128)(8,1)E(4)}",
    "f32[N]{0:T(1024)}",
    "bf16[N]{0:T(1024)(128)(2,1)}",
    "s8[N]{0:T(512)(128)(4,1)}",
    "f32[K,N,M]{2,1,0:T(8,128)}",
    "bf16[N,M,K]{1,2,0:T(8,128)(2,1)}",
    "f32[N,M,7]{0,2,1:T(8,128)}",
    "f32[N,M]{1,0}",
)

PROVED = (
    *(Question("bijective", (text,)) for text in TILINGS),
    *(Question("padding", (text,)) for text in TILINGS[:3]),
    Question("covers", ("f32[8*N,128*M]{1,0:T(8,128)}",)),
    Question("covers", ("f32[N,M]{1,0:T(8,128)}",), where="N % 8 == 0 and M % 128 == 0"),
    Question("in_bounds", ("f32[N,M] strides (M,1) in N*M",)),
    Question("in_bounds", ("f32[N] strides (2) in 2*N-1",)),
    Question("injective", ("f32[N,M] strides (M,1)",)),
    Question("injective", ("f32[N,M] strides (1,N)",)),
    Question("injective", ("f32[N,5] strides (5,1)",)),
    Question("same_map", ("bf16[N,M]{1,0:T(8,128)(2,1)}", "bf16[N,M]{1,0:T(8,128)(2,128)(2,1)}")),
    Question("same_map", ("f32[N,M]{1,0:T(8,128)}", "f32[N,M]{1,0:T(8,128)(8,128)}")),
    Question("same_map", ("f32[N,128]{1,0:T(8,128)}", "f32[N,128]{1,0}")),
    Question("same_map", ("f32[N,M]", "f32[N,M] strides (M,1)")),
    Question("same_map", ("f32[N,M]", "f32[N,M]{0,1}"), where="N == 1"),
    Question("padding", ("f32[N,128]{1,0:T(8,128)}",), {"at_most": "0%"}, "N % 8 == 0"),
    Question("padding", ("f32[N,128]{1,0:T(8,128)}",), {"at_most": "43.75%"}, "N >= 8"),
    Question("padding", ("f32[N,M]{1,0:T(8,128)}",), {"at_most": "4x"}, "N >= 8 and M >= 128"),
    Question("bitcast", ("f32[a,8*b,c]{2,1,0:T(8,128)}", "f32[8*a*b,c]{1,0:T(8,128)}")),
    Question("bitcast", ("f32[a,b,c]{2,1,0:T(8,128)}", "f32[a*b,c]{1,0:T(8,128)}"), where="b % 8 == 0"),
    Question("bitcast", ("f32[a,b,128]{2,1,0:T(8,128)}", "f32[a*b,128]{1,0:T(8,128)}"), where="b % 8 == 0 or a == 1"),
    Question("bitcast", ("bf16[a,b,c]{2,1,0:T(8,128)(2,1)}", "bf16[a*b,c]{1,0:T(8,128)(2,1)}"), where="a == 1"),
    Question("bitcast", ("f32[N,128]{1,0:T(8,128)}", "f32[N*128]{0:T(1024)}")),
    Question("bitcast", ("bf16[N,128]{1,0:T(8,128)(2,1)}", "bf16[N*128]{0:T(1024)(128)(2,1)}"), where="N % 8 == 0"),
    Question("bitcast", ("f32[N,M]{1,0:T(8,128)}", "f32[M,N]{0,1:T(8,128)}"), {"permutation": (1, 0)}),
    Question("bitcast", ("f32[N,1,M]{2,0,1:T(8,128)}", "f32[N,M]{1,0:T(8,128)}")),
    Question("bitcast", ("f32[N]", "s8[N,4]")),
    Question("fits_int32", ("f32[N,M]",), where="N <= 46340 and M <= 46340"),
)

REFUTED = (
    Question("covers", ("f32[N,128]{1,0:T(8,128)}",)),
    Question("covers", ("f32[N,128]{1,0:T(8,128)}",), where="N % 8 == 0 or N == 12"),
    Question("in_bounds", ("f32[N,M] strides (M,1) in N*M-1",), where="N >= 2"),
    Question("in_bounds", ("f32[N] strides (2) in N+3",)),
    Question("injective", ("f32[N,5] strides (4,1)",)),
    Question("injective", ("f32[N,M] strides (M,2)",)),
    Question("injective", ("f32[N,M] strides (M-1,1)",), where="M >= 2"),
    Question("bijective", ("f32[N,5] strides (4,1)",)),
    Question("same_map", ("f32[N,M]", "f32[N,M]{0,1}")),
    Question("same_map", ("f32[N,M]", "f32[N,M]{0,1}"), where="N >= 3 and M % 4 == 0"),
    Question("same_map", ("f32[N,M]{1,0:T(8,128)}", "f32[N,M]{1,0}")),
    Question("same_map", ("f32[N,128]{1,0:T(8,128)}", "f32[N,128]{1,0:T(4,128)(2,1)}")),
    Question("same_map", ("bf16[N,M]{1,0:T(8,128)(2,1)}", "bf16[N,M]{1,0:T(8,128)}")),
    Question("padding", ("f32[N,128]{1,0:T(8,128)}",), {"at_most": "0%"}),
    Question("padding", ("f32[N,128]{1,0:T(8,128)}",), {"at_most": "43.7%"}, "N >= 8"),
    Question("padding", ("f32[N]{0:T(8)}",), {"at_most": "1.5x"}, "N >= 3"),
    Question("bitcast", ("f32[a,b,128]{2,1,0:T(8,128)}", "f32[a*b,128]{1,0:T(8,128)}")),
    Question("bitcast", ("f32[a,b,128]{2,1,0:T(8,128)}", "f32[a*b,128]{1,0:T(8,128)}"), where="b % 4 == 0"),
    Question("bitcast", ("f32[N,M]{1,0:T(8,128)}", "f32[M,N]{1,0:T(8,128)}"), {"permutation": (1, 0)}),
    Question("bitcast", ("f32[N,1,M]{2,1,0:T(8,128)}", "f32[N,M]{1,0:T(8,128)}")),
    Question("bitcast", ("f32[N,8]{1,0:T(4,8)}", "f32[N,8]{1,0:T(8,8)}")),
    Question("fits_int32", ("f32[N,128]",)),
)


@pytest.mark.parametrize("question", PROVED, ids=str)
def test_proved_for_all_sizes_holds_for_each(question: Question) -> None:
    """A proof for all sizes: every constant case that its condition allows is proved as well."""
    result = question.ask()
    assert result.verdict is Verdict.PROVED, result.reason
    tried = [sizes for sizes in assignments(question.symbols()) if question.allows(sizes)]
    assert len(tried) >= 2
    assert [sizes for sizes in tried if question.with_sizes(sizes).verdict is not Verdict.PROVED] == []


@pytest.mark.parametrize("text", [text for text in TILINGS if text.startswith(("f32", "bf16", "s8"))])
def test_tilings_by_enumeration(text: str) -> None:
    """A layout proved bijective for all sizes stores no two elements at one offset, and all within what is allotted."""
    names = map_of(read_layout(text)).sizes()
    for sizes in assignments(names, (1, 2, 3, 9, 17, 130), 12):
        offsets = plain.offsets(array := plain.read(put(text, sizes))).reshape(-1)
        assert len(set(offsets.tolist())) == offsets.size
        assert 0 <= offsets.min() <= offsets.max() < plain.allotted(array) * 8 // array.bits


@pytest.mark.parametrize("question", REFUTED, ids=str)
def test_refutation_is_that_of_its_sizes(question: Question) -> None:
    """With the counterexample's sizes put in, the constant question is refuted at the same points."""
    result = question.ask()
    assert result.verdict is Verdict.REFUTED, result.reason
    point = dict(result.counterexample or {})
    names = claim_sizes(question, point.pop("sizes"))
    assert question.allows(names)
    constant = question.with_sizes(names)
    assert constant.verdict is Verdict.REFUTED
    # numbers that only a constant question can show (elements, bytes) are not points
    shown = {name: at for name, at in (constant.counterexample or {}).items() if name in point}
    assert shown == point
    assert point or question.property in ("padding", "bitcast")


@pytest.mark.parametrize("question", [q for q in REFUTED if q.property != "fits_int32"], ids=str)
def test_no_smaller_sizes_refute(question: Question) -> None:
    """Sizes before the counterexample's (smaller maximum, then dimension by dimension) are not refuted."""
    sizes = claim_sizes(question, (question.ask().counterexample or {})["sizes"])
    chosen = tuple(sizes.values())
    most = max(chosen)
    for row in itertools.product(range(1, most + 1), repeat=len(chosen)):
        smaller = dict(zip(sizes, row, strict=True))
        if (max(row), row) < (most, chosen) and question.allows(smaller):
            assert question.with_sizes(smaller).verdict is Verdict.PROVED, smaller


def claim_sizes(question: Question, values: dict[str, int]) -> dict[str, int]:
    """The counterexample's sizes by name, read from its sentence `with N = 2, M = 1: ...`."""
    shown = re.match(r"with ((?:\w+ = \d+(?:, )?)+): ", question.ask().reason)
    assert shown, question.ask().reason
    named = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", shown[1])}
    assert named == values
    return named


@pytest.mark.parametrize("first_offset", [2**31])
def test_the_edge_of_32_bits(first_offset: int) -> None:
    """One row fewer than the refuted number of rows fits."""
    question = REFUTED[-1]
    (rows,) = (question.ask().counterexample or {})["sizes"].values()
    assert (rows - 1) * 128 == first_offset
    assert question.with_sizes({"N": rows - 1}).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("before", "after", "condition"),
    [
        ("f32[a,b,128]{2,1,0:T(8,128)}", "f32[a*b,128]{1,0:T(8,128)}", "b % 8 == 0 or a == 1"),
        ("f32[a,b,c]{2,1,0:T(8,128)}", "f32[a*b,c]{1,0:T(8,128)}", "b % 8 == 0 or a == 1"),
        ("bf16[a,b,c]{2,1,0:T(8,128)(2,1)}", "bf16[a*b,c]{1,0:T(8,128)(2,1)}", "b % 8 == 0 or a == 1"),
        ("f32[a,b,128]{2,1,0:T(4,128)}", "f32[a*b,128]{1,0:T(4,128)}", "b % 4 == 0 or a == 1"),
        ("f32[N,1,M]{2,1,0:T(8,128)}", "f32[N,M]{1,0:T(8,128)}", "N == 1"),
    ],
)
def test_merging_rows_is_free_exactly_when(before: str, after: str, condition: str) -> None:
    """The figures say when a refuted reshape is free; by enumeration it is so for these sizes and no others tried."""
    question = Question("bitcast", (before, after))
    result = question.ask()
    assert result.verdict is Verdict.REFUTED
    assert result.figures["holds_when"] == condition
    # it is exact, and said to be only where that is proved: the places are products of two sizes here
    assert result.figures["holds_when_is"] == "sufficient"
    for alternative in condition.split(" or "):
        assert Question("bitcast", (before, after), where=alternative).ask().verdict is Verdict.PROVED
    when = Question("bitcast", (before, after), where=condition)
    for sizes in assignments(question.symbols(), (1, 2, 3, 4, 8, 12, 16), 49):
        arrays = [plain.read(put(text, sizes)) for text in (before, after)]
        one, other = (plain.offsets(array).reshape(-1) for array in arrays)
        free = bool((one == other).all()) and plain.allotted(arrays[0]) == plain.allotted(arrays[1])
        assert when.allows(sizes) == free, sizes
        assert (question.with_sizes(sizes).verdict is Verdict.PROVED) == free, sizes


@pytest.mark.parametrize(
    ("property_name", "texts", "condition", "exact"),
    [
        ("covers", ("f32[N,M]{1,0:T(8,128)}",), "N % 8 == 0 and M % 128 == 0", True),
        ("covers", ("f32[N]{0:T(8)}",), "N % 8 == 0", True),
        ("injective", ("f32[N,4] strides (3,1)",), "N == 1", True),
        ("in_bounds", ("f32[4,4] strides (N,1) in 16",), "N == 1", False),
        ("same_map", ("f32[N,M]{1,0:T(8,128)}", "f32[N,M]{1,0:T(4,128)}"), "M == 1", False),
        ("covers", ("(i < N) -> (i % 8,) in [4]",), "", False),
        # of the two claims of bijective the first holds for all sizes
        ("bijective", ("f32[N] strides (2) in 1",), "N == 1", True),
    ],
)
def test_a_condition_is_called_exact_iff_that_is_proved(
    property_name: str, texts: tuple[str, ...], condition: str, exact: bool
) -> None:
    """Exact: at every other size the property is refuted; not exact: the size that is named shows it."""
    question = Question(property_name, texts)
    figures = question.ask().figures
    assert figures.get("holds_when", "") == condition
    if not condition:
        return
    said = str(figures["holds_when_is"])
    assert said == "exact" if exact else said.startswith("sufficient, not necessary: it also holds for ")
    if not exact:
        more = said.rpartition(" for ")[2]
        assert lp.ask(property_name, *texts, where=more).verdict is Verdict.PROVED
        return
    when = Question(property_name, texts, where=condition)
    for sizes in assignments(question.symbols(), (1, 2, 3, 7, 8, 9, 16, 128, 130, 256), 100):
        assert (question.with_sizes(sizes).verdict is Verdict.PROVED) == when.allows(sizes), sizes


def test_conditions_within_a_condition() -> None:
    """Only sizes that the question allows count: N == 2 works too and is not asked about; no even N is."""
    within = lp.ask("in_bounds", "f32[4,4] strides (N,1) in 16", where="N == 1 or N > 4").figures
    assert within == {"holds_when": "N == 1", "holds_when_is": "sufficient"}
    assert lp.ask("covers", "f32[N]{0:T(8)}", where="N % 2 == 1").figures == {}


@pytest.mark.parametrize("question", [*PROVED[:17:4], *REFUTED[:12:3]], ids=str)
def test_two_engines_agree(question: Question) -> None:
    """A second engine stands behind claims about all sizes too."""
    alone, confirmed = question.ask(), question.ask(confirm=True)
    assert (confirmed.verdict, confirmed.counterexample) == (alone.verdict, alone.counterexample)
    assert len(set(confirmed.decided_by.split("+"))) >= 2


def test_padding_in_closed_form() -> None:
    """For symbolic sizes the figures are formulas; with numbers put in they are the constant figures."""
    text = "bf16[N,M]{1,0:T(8,128)(2,1)}"
    formulas = lp.ask("padding", text).figures
    for sizes in assignments(("N", "M")):
        constant = lp.ask("padding", put(text, sizes)).figures
        for name in ("elements", "padded_elements", "padding_elements", "unpadded_bytes", "bytes"):
            python = re.sub(r"ceil\(([^()/]+)/(\d+)\)", r"(-(-(\1)//\2))", str(formulas[name]))
            assert eval(python, {"__builtins__": {}}, dict(sizes)) == constant[name], (name, sizes)


@pytest.mark.parametrize(
    ("layout", "padded"),
    [
        ("bf16[256,512]{1,0:T(8,128)(2,1)}", {(0,): 256, (1,): 512}),
        ("f32[5,3]{1,0:T(1,128)}", {(0,): 5, (1,): 128}),
        ("f32[5,3]{1,0:T(1,128)(2,1)}", {(0,): 10, (1,): 128}),
        ("pred[512]{0:T(512)(128)(4,1)}", {(0,): 512}),
        ("f32[5]{0:T(8,128)}", {(): 8, (0,): 128}),
        ("f32[3,5,7]{2,1,0:T(*,8)}", {(0,): 3, (1, 2): 40}),
    ],
)
def test_padding_belongs_to_the_dimension_that_is_cut(layout: str, padded: dict[tuple[int, ...], int]) -> None:
    """Also where a later tile cuts the positions within a tile of size 1, and where a tile has more sizes than axes."""
    rows = lp.ask("padding", layout).figures["per_dimension"]
    assert {tuple(row["dimensions"]): row["padded"] for row in rows} == padded
