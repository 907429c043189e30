"""Search files: what is wrong is said with its line and column; what is right means what the reader's page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from layoutproof.answers.of_search import search
from layoutproof.core.errors import LayoutError
from layoutproof.searching.read import read_problem
from layoutproof.specs.positions import read_yaml
from tests.said import stretch, words
from tests.searching.test_solve import SPECS

MATMUL = (SPECS / "matmul.yaml").read_text().replace("body:", "note:")
SMALL = MATMUL.replace("8192", "1024")
WRONG = [
    ("target: v5e", "target: v99", "4:9", "unknown target 'v99'"),
    ("target: v5e", "target: triton", "4:9", stretch("searching.no_tpu")),
    ("target: v5e\n", "", "2:1", "'target' is missing"),
    (
        "bm: {from: 128, to: M",
        "bm: {from: 128, upto: M",
        "17:19",
        "unknown key 'upto'" + words("core.did_you_mean", name="to"),
    ),
    (
        "multiple_of: 128, divides",
        "multiple_of: -3, divides",
        "19:21",
        "'multiple_of': " + words("specs.expected", wanted="a number of at least 1", found="-3"),
    ),
    ("divides: K", "divides: Q", "19:7", stretch("searching.unknown_name", name="Q")),
    (
        "bk: {multiple_of: 128, divides: K}",
        "bk: []",
        "19:7",
        "'bk': " + words("specs.expected", wanted="at least one entry", found="[]"),
    ),
    ("bk: {multiple_of: 128, divides: K}", "K: [5]", "19:3", stretch("searching.size_and_variable", name="K")),
    ("bk: {multiple_of: 128, divides: K}", "time: [5]", "19:3", stretch("searching.figure_name", name="time")),
    (
        "bk: {multiple_of: 128, divides: K}",
        "bk: [128]\n  bq: [1]",
        "20:3",
        stretch("searching.tuned_nowhere", name="bq"),
    ),
    ("bk: {multiple_of: 128, divides: K}", "bq: [1]", "20:8", stretch("searching.unknown_name", name="bk")),
    ("flops: steps", "flops: stepz", "20:8", stretch("searching.unknown_name", name="stepz")),
    ("bf16[K,N]", "bf17[K,N]", "10:7", "unknown element type 'bf17'"),
    ("block: [bm, bk]", "block: [bm]", "9:7", "inputs[0]: block has 1 dimensions"),
    ("(i, j, k) -> (k, j)", "(i, j, k) -> (k, j", "10:7", "cannot read"),
    ("(i, j, k) -> (k, j)", "(i, j, K) -> (K, j)", "10:7", stretch("kernel.index_size_clash", name="K")),
    ("parallel, parallel, arbitrary", "paralel", "7:15", "did you mean 'parallel'?"),
    ("scratch:", "scratchy:", "13:3", "unknown key 'scratchy'" + words("core.did_you_mean", name="scratch")),
    ('{array: "f32[bm,bn]"}', '{arra: "f32[bm,bn]"}', "14:7", "'array' is missing"),
    ("kernel:", "kernels:", "2:1", stretch("searching.no_problem")),
    ("headroom: 21%", "hedroom: matmul", "21:1", "did you mean 'headroom'?"),
    ("headroom: 21%", "headroom: 100%", "21:11", stretch("searching.headroom_form")),
    ("headroom: 21%", "vmem: 1GiB", "21:7", stretch("searching.vmem_limit_above", target="v5e", vmem=134217728)),
    ("headroom: 21%", "vmem: much", "21:7", "an amount of memory is"),
    ("headroom: 21%", "constraints: [bm * bn]", "21:15", stretch("core.condition_number")),
    ("headroom: 21%", 'constraints: ["bm > 1", "bx > 3"]', "21:25", stretch("searching.unknown_name", name="bx")),
    ("headroom: 21%", "cost: bm +", "21:7", "cannot read 'bm +'"),
    ("headroom: 21%", "step_overhead: 3 days", "21:16", stretch("searching.overhead_form")),
    (
        "headroom: 21%",
        "over: mean",
        "21:7",
        words("kernel.part_choice", what="over", known="worst, sum", value="'mean'", near=""),
    ),
    (
        "headroom: 21%",
        "partial: maybe",
        "21:10",
        words("kernel.part_choice", what="partial", known="masked, none", value="'maybe'", near=""),
    ),
    ("headroom: 21%", "body: bodies.py", "21:7", stretch("traced.function_form")),
    ("headroom: 21%", "compiler: newest", "4:9", "a compiler is a version of libtpu, not 'newest'"),
    ("headroom: 21%", "shardings: {}", "2:1", words("searching.several_problems", problems="kernel and arrays")),
    (
        "sizes: {M: 1024",
        "sizes: {M: 0",
        "15:12",
        "'M': " + words("specs.expected", wanted="a number of at least 1", found="0"),
    ),
    ("sizes: {M: 1024, N: 1024, K: 1024}", "sizes: [{M: 8}, {N: 8}]", "15:8", "names the same sizes"),
]


@pytest.mark.parametrize(("old", "new", "place", "why"), WRONG, ids=[f"{w[2]} {w[3][:30]}" for w in WRONG])
def test_wrong_files(old: str, new: str, place: str, why: str, tmp_path: Path) -> None:
    assert old in SMALL
    file = tmp_path / "s.yaml"
    file.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(LayoutError) as caught:
        search(file, best=1)
    assert str(caught.value).startswith(f"{file.as_posix()}:{place}: ")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "values"),
    [
        ("{from: 8, to: 40, multiple_of: 16}", (16, 32)),
        ("{to: 24, multiple_of: 8}", (8, 16, 24)),
        ("{from: , to: 24, multiple_of: 8}", (8, 16, 24)),
        ("{from: 8, to: 24, multiple_of: 8, powers_of: , divides: }", (8, 16, 24)),
        ("{from: 100, multiple_of: 512}", (512, 1024)),
        ("{powers_of: 2, from: 100}", (128, 256, 512, 1024)),
        ("{powers_of: 4, multiple_of: 16, to: 300}", (16, 64, 256)),
        ("{divides: M, from: 300}", (512, 1024)),
        ("[256, 128, 256]", (128, 256)),
        ("384", (384,)),
    ],
)
def test_ranges(entry: str, values: tuple[int, ...]) -> None:
    text = SMALL.replace("{from: 128, to: M, multiple_of: 128}", entry, 1)
    assert read_problem(read_yaml(text)).variables["bm"] == values


def test_what_divides_divides_every_shape() -> None:
    sizes = "sizes: [{M: 1024, N: 1024, K: 1024}, {M: 1024, N: 1024, K: 1536, weight: 2}]"
    problem = read_problem(read_yaml(SMALL.replace("sizes: {M: 1024, N: 1024, K: 1024}", sizes)))
    assert problem.variables["bk"] == (128, 256, 512)
    assert [shape.weight for shape in problem.shapes] == [1, 2]


@pytest.mark.parametrize(
    ("said", "vmem", "asked"),
    [
        ("headroom: 10%", 15099494, None),
        ("vmem: 8MiB\nheadroom: 0%", 8 << 20, None),
        # by the kind of body what was measured, and that of the worst kind where the file says nothing
        ("headroom: elementwise", 16 << 20, None),
        ("headroom: 21%", 13254000, None),
        ("headroom: reduction", 11072962, None),
        ("headroom: attention", 7549747, None),
        ("", 7549747, None),
        ("vmem: 8MiB", 3774873, None),
        ("vmem: 64MiB\nheadroom: 50%", 32 << 20, 64 << 20),
        ("headroom: 0%", 16 << 20, None),
    ],
)
def test_memory(said: str, vmem: int, asked: int | None) -> None:
    problem = read_problem(read_yaml(SMALL.replace("headroom: 21%", said)))
    assert problem.vmem == vmem
    # more than a kernel gets that asks for nothing has to be asked for
    assert problem.bind(problem.shapes[0], {"bm": 8, "bn": 128, "bk": 128}).vmem_limit == asked
