"""`layoutproof search` as a user runs it: what is printed, exit codes, and every wrong file with its place."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli import main as cli
from tests.cli.user_code import command_in
from tests.said import stretch as stretch_of
from tests.said import words as words_of

pytestmark = pytest.mark.slow

SPECS = Path(__file__).parents[2] / "specs" / "search"
MATMUL = (SPECS / "matmul.yaml").read_text().replace("body:", "note:")
SMALL = MATMUL.replace("8192", "1024")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """One command line in an empty folder: its exit code, stdout and stderr."""
    return command_in("search", capsys, tmp_path, monkeypatch)


def write(text: str, name: str = "s.yaml") -> str:
    """A file in the current folder."""
    Path(name).write_text(text)
    return name


def words(out: str) -> list[list[str]]:
    """The lines that say something, as words."""
    return [line.split() for line in out.splitlines() if line.strip()]


def test_the_table_and_the_certificate(run: Any) -> None:
    code, out, err = run(SPECS / "matmul.yaml", "--best", "2", "--why")
    assert (code, err) == (0, "")
    lines = words(out)
    assert lines[0][-2:] == ["28672", "candidates"]
    assert lines[1][:4] == ["bm", "bn", "bk", "time"]
    assert lines[2] == [
        "1",
        "1024",
        "1024",
        "512",
        "5.988",
        "ms",
        "compute",
        "2281701376",
        "481.9",
        "1024",
        "12.00",
        "MiB",
        "0%",
    ]
    assert lines[3][0] == "2"
    assert "nothing outside of the table that the rules allow and headroom leaves costs less than 5.988 ms" in out
    assert "all 28672 candidates enumerated" in out
    assert "an assumption of this tool, not measured" in out
    assert stretch_of("searching.cost_model") in out
    for name in ("blocks_in_bounds", "outputs_covered", "memory_budget", "revisits"):
        assert name in out


def test_json_is_one_object_with_the_same_figures(run: Any) -> None:
    code, out, _ = run(SPECS / "matmul.yaml", "--json", "--pareto")
    found = json.loads(out)
    assert code == found["exit_code"] == 0
    best = found["best"][0]
    assert best["values"] == {"bm": 1024, "bn": 1024, "bk": 512}
    assert best["shapes"][0]["bytes"] == 2281701376
    said = {row["question"]: row for row in best["findings"]}
    total = said.pop("vmem_total")
    assert (total["verdict"], total["severity"]) == ("unknown", "info")
    assert total["reason"].startswith("not asked: ")
    assert {row["verdict"] for row in said.values()} == {"proved"}
    assert found["certificate"]["covered"] == found["candidates"] == 28672
    front = found["front"]["found"]
    assert [one["cost"] for one in front] == sorted(one["cost"] for one in front)
    assert front[0]["cost"] == best["cost"]
    assert len(found["model"]["sources"]) == 4


def test_the_front_is_printed(run: Any) -> None:
    code, out, _ = run(write(SMALL), "--pareto")
    assert code == 0
    assert "pareto front: no other is as good in time, VMEM and padding at once" in out
    assert "complete" in out


def test_several_shapes_and_a_cost_of_ones_own(run: Any) -> None:
    sizes = "sizes: [{M: 1024, N: 1024, K: 1024}, {M: 512, N: 1024, K: 1024, weight: 3}]"
    text = SMALL.replace("sizes: {M: 1024, N: 1024, K: 1024}", sizes) + "over: sum\ncost: bytes + 1000 * steps\n"
    code, out, _ = run(write(text), "--best", "1", "--json")
    best = json.loads(out)["best"][0]
    assert code == 0
    costs = [row["bytes"] + 1000 * row["steps"] for row in best["shapes"]]
    assert best["cost"] == costs[0] + 3 * costs[1]
    _, out, _ = run(write(text), "--best", "1", "--why")
    assert "M=512,N=1024,K=1024" in out
    assert "cost            bytes + 1000 * steps, the sum over 2 shapes" in out


@pytest.mark.parametrize(
    ("said", "code", "why"),
    [
        ("cost: bytes // (bm - 128)", 0, words_of("searching.divides_by_zero")),
        ("constraints: [bytes % (bm - 128) == 0]", 0, words_of("searching.divides_by_zero")),
        ("constraints: [1024 % (bm - 128) == 0]", 0, words_of("searching.divides_by_zero")),
        ("cost: 0 - vmem", 0, "the rules allow and headroom leaves costs less than -"),
        ("cost: bytes + (bm ^ bn)", 0, "all 256 candidates enumerated"),
        ("cost: (time * bk) % 1000003", 0, "all 256 candidates enumerated"),
    ],
)
def test_expressions_of_any_kind(run: Any, said: str, code: int, why: str) -> None:
    found, out, err = run(write(SMALL.replace("headroom: 21%", said)), "--best", "256", "--pareto", "--why")
    assert (found, err) == (code, "")
    assert why in out


def test_a_division_by_nothing_but_0(run: Any) -> None:
    code, _, err = run(write(SMALL.replace("headroom: 21%", "cost: bytes // (M - 1024)")))
    assert code == 2
    assert err.startswith("s.yaml:2:1: an expression of the file divides by 0, whatever the candidate")


def test_what_is_moved_by_hand_is_not_counted_and_so_unknown(run: Any) -> None:
    text = SMALL.replace('block: [bm, bk], index: "(i, j, k) -> (i, k)"', "memory: any")
    code, out, _ = run(write(text))
    assert code == 3
    assert stretch_of("searching.moved_by_kernel", operands="x") in out
    assert run(write(text + "cost: steps * vmem\n"))[0] == 0


def test_headroom_is_stated_with_its_source(run: Any) -> None:
    """Windows that fill VMEM leave nothing for registers that spill: an answer says what is kept free, and why."""
    plain = SMALL.replace("headroom: 21%\n", "")
    _, out, _ = run(write(plain), "--best", "1", "--why")
    assert "headroom        55% of VMEM is kept free for that; the file says nothing, so that of the worst kind" in out
    assert "2.18 x windows and scratch" in out
    _, out, _ = run(write(plain + "headroom: matmul\n"), "--best", "1", "--json")
    model = json.loads(out)["model"]
    assert (model["headroom_percent"], model["vmem_limit"]) == (26, (16 << 20) * 74 // 100)
    assert "1.34 x windows and scratch" in model["headroom_source"]
    _, out, _ = run(write(plain + "headroom: 3%\n"), "--best", "1", "--why")
    assert words_of("searching.headroom_kept", percent=3, source="stated in the file") in out
    code, _, err = run(write(plain + "headroom: [matmul]\n"))
    assert code == 2
    assert stretch_of("searching.headroom_form", known="elementwise, matmul, reduction, attention") in err


def test_inputs_that_need_masks_are_named(run: Any) -> None:
    """Blocks of 256 and 128 columns in 1024 and 1000: what lies beyond column 1000 is summed unless it is masked."""
    tune = "tune: {bm: [256], bn: [256], bk: [200, 256]}\nflops:"
    text = SMALL[: SMALL.index("tune:")] + tune + SMALL[SMALL.index("flops:") + len("flops:") :]
    partial = write(text.replace("K: 1024", "K: 1000"))
    code, out, _ = run(partial)
    assert code == 0
    assert words(out)[1][-2:] == ["to", "mask"]
    assert words(out)[2][-2:] == ["x[1],", "y[0]"]
    for operand in ("x dimension 1", "y dimension 0"):
        assert (
            f"note            {operand}: the last block reaches over the edge of the array in row 1, and k is in" in out
        )
    assert "(k) * 256 + arange(256) < 1000" in out
    _, out, _ = run(partial, "--json")
    over = json.loads(out)["best"][0]["partial_blocks"]
    assert [(p["operand"], p["dimension"], p["reduced_over"]) for p in over] == [("x", 1, ["k"]), ("y", 0, ["k"])]
    # rows of the result that are cut short lose nothing, and blocks that divide are not spoken of
    _, out, _ = run(write(text.replace("M: 1024", "M: 1000")), "--why")
    assert "to mask" not in out
    assert "o dimension 0: the last block reaches over the edge of the array in row 1: undefined when read" in out
    _, out, _ = run(write(text))
    assert "to mask" not in out
    assert "reaches over the edge" not in out


@pytest.mark.parametrize("traced", [False, True])
def test_a_compiler_that_is_not_there_was_not_asked(run: Any, traced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if traced:
        pytest.importorskip("jax", reason="traced functions need jax")
    # not by hiding the package: JAX, once imported, names the library in the environment
    monkeypatch.setattr("layoutproof.compiler.libtpu.missing", lambda library="": "no libtpu (pip install libtpu)")
    text = SMALL
    if traced:
        text = (SPECS / "traced_matmul.yaml").read_text().replace("4096", "256")
    code, out, _ = run(write(text), "--compile", "--best", "1")
    assert code == 3
    assert "not asked: the TPU compiler cannot be asked: no " in out
    assert re.search(r"\(pip install (jax )?libtpu\)", out)
    assert "ahead of time" not in out
    assert "accepted" not in out
    code, out, _ = run(write(text), "--compile", "--best", "1", "--json")
    found = json.loads(out)
    assert code == 3
    assert found["compiler"]["asked"] is False
    assert "not asked" in found["compiler"]["said"]
    assert traced or found["best"][0]["compiler"]["accepted"] is None
    # who does not want the compiler is told of a proof that rests on the model
    code, out, _ = run(write(text), "--best", "1")
    assert code == 0


def test_where_nothing_is_found_nothing_is_compiled(run: Any) -> None:
    tune = "tune: {bm: [1024], bn: [1024], bk: [1024]}\nflops:"
    text = SMALL[: SMALL.index("tune:")] + tune + SMALL[SMALL.index("flops:") + len("flops:") :]
    code, out, _ = run(write(text.replace("headroom: 21%", "vmem: 64KiB")), "--compile")
    assert code == 1
    assert ("compiler        not asked: " + words_of("searching.nothing_to_compile")) in out


def test_nothing_is_feasible(run: Any) -> None:
    code, out, _ = run(SPECS / "infeasible.yaml")
    assert code == 1
    assert (
        stretch_of(
            "searching.not_met_together",
            conditions="bm * bn >= 2**21, double buffering",
            last="16.00 MiB of VMEM (v5e has 128.00)",
            others="any 2 of them",
        )
        in out
    )
    assert stretch_of("searching.enough_vmem", size="21.70 MiB") in out
    code, out, _ = run(SPECS / "infeasible.yaml", "--json")
    found = json.loads(out)
    assert code == found["exit_code"] == 1
    assert found["infeasible"]["enough_vmem"] == 22757376
    assert found["conflict"] == found["infeasible"]  # its older name: keys stay
    assert found["certificate"]["kind"] == "bounds"
    assert found["best"] == []


def test_a_value_that_no_candidate_can_have(run: Any) -> None:
    code, out, _ = run(
        write(SMALL.replace("bm: {from: 128", "bm: {from: 100").replace("multiple_of: 128}", "}", 1)), "--why"
    )
    assert code == 0
    assert "values of bm, e.g. bm = " in out


def test_pruning(run: Any) -> None:
    rows = [
        {"bm": 1024, "bn": 1024, "bk": 512, "stages": 2}, {"bm": 1024, "bn": 2048, "bk": 512},
        {"bm": 100, "bn": 128, "bk": 512},
    ]  # fmt: skip
    names = write(json.dumps(rows), "c.json")
    code, out, _ = run(SPECS / "matmul.yaml", "--prune", names)
    assert code == 0
    assert "1 of 3 candidates are kept" in out
    assert words_of("searching.bytes_needed", why="VMEM", needed=23068672, allowed=13254000) in out
    assert words_of("searching.not_among_values", name="bm", value=100, values="128, 256 .. 8192") in out
    code, out, _ = run(SPECS / "matmul.yaml", "--prune", names, "--json")
    found = json.loads(out)
    assert found["kept"] == rows[:1]
    assert found["figures"][0]["shapes"][0]["vmem"] == 12582912
    assert [row["candidate"] for row in found["dropped"]] == rows[1:]
    assert run(SPECS / "matmul.yaml", "--prune", write(json.dumps(rows[1:]), "d.json"))[0] == 1


def test_pruning_gives_the_reason_of_a_property(run: Any) -> None:
    text = SMALL.replace('"(i, j, k) -> (i, j)"', '"(i, j, k) -> (i, j + 1)"')
    code, out, _ = run(write(text), "--prune", write('[{"bm": 128, "bn": 128, "bk": 128}]', "c.json"))
    assert code == 1
    assert "blocks_in_bounds o" in out


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("[1]", stretch_of("searching.candidates_form")),
        ("[]", words_of("searching.no_candidate")),
        ("[{]", "c.json:1:3: this is no JSON"),
        ('[{"bm": 128, "bn": 128}]', stretch_of("searching.candidate_without", number=1, name="bk")),
        ('[{"bm": 128, "bn": 128, "bk": "x"}]', stretch_of("searching.candidate_value", number=1, name="bk")),
    ],
)
def test_wrong_candidates(run: Any, rows: str, why: str) -> None:
    code, _, err = run(write(SMALL), "--prune", write(rows, "c.json"))
    assert code == 2
    assert why in err


def test_a_wrong_file(run: Any) -> None:
    code, out, err = run(write(SMALL.replace("target: v5e", "target: v99")))
    assert (code, out) == (2, "")
    assert err.startswith("s.yaml:4:9: unknown target 'v99'")


def test_wrong_usage(run: Any) -> None:
    assert run("missing.yaml")[0] == 2
    assert run(write(SMALL), "--best", "0")[0] == 2
    assert run(write(SMALL), "--prune", "c.json", "--pareto")[0] == 2
    assert run(write("- 1\n"))[0] == 2


@pytest.mark.parametrize("option", ["--pareto", "--prune=c.json", "--compile"])
def test_options_that_do_not_belong_to_arrays(run: Any, option: str) -> None:
    write("[{}]", "c.json")
    code, _, err = run(SPECS / "array_layouts.yaml", option)
    assert code == 2
    assert option.partition("=")[0] in err


@pytest.mark.parametrize("name", ["array_layouts", "padding", "sharding"])
def test_files_about_arrays(run: Any, name: str) -> None:
    code, out, err = run(SPECS / f"{name}.yaml")
    assert (code, err) == (0, "")
    assert "certificate" in out
    code, out, _ = run(SPECS / f"{name}.yaml", "--json")
    assert code == 0
    assert json.loads(out)["target"] == "v5e"


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        ("f32[N,5]", stretch_of("searching.not_in_sizes", name="N")),
        ("f32[1000,5]{1,0:T(n,128)}", stretch_of("searching.tile_name", name="n")),
        ("f32[1000,5]{1,0:T(8,128)(m,1)}", stretch_of("searching.tile_name", name="m")),
    ],
)
def test_padding_of_sizes_with_names(run: Any, layout: str, why: str) -> None:
    """Sizes of the array and of its tiles: neither is known, and that is said."""
    code, _, err = run(write(f"search: x\ntarget: v5e\npadding:\n  a: {layout}\n"))
    assert code == 2
    assert why in err


def test_names_and_roundings_change_no_answer(run: Any) -> None:
    """Sizes named as the grid's own indices, and quotients rounded up in the other ways of writing them."""
    other = SMALL.replace("cdiv(M, bm)", "ceil(M/bm)").replace("cdiv(N, bn)", "pl.cdiv(N, bn)")
    for upper, lower in (("M", "i"), ("N", "j"), ("K", "k")):
        other = re.sub(rf"\b{upper}\b", lower, other)
    other = other.replace("(i, j, k) ->", "(a, b, c) ->")
    for old, new in (("(i, k)", "(a, c)"), ("(k, j)", "(c, b)"), ("(i, j)", "(a, b)")):
        other = other.replace(f"-> {old}", f"-> {new}")
    assert "cdiv(i" not in other
    answers = [json.loads(run(write(text), "--json")[1]) for text in (SMALL, other)]
    found = [[(one["values"], one["cost"]) for one in answer["best"]] for answer in answers]
    assert found[0] == found[1] != []
    assert {answer["exit_code"] for answer in answers} == {0}


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="traced functions need jax")
def test_files_about_functions(run: Any) -> None:
    text = (SPECS / "traced_matmul.yaml").read_text().replace("4096", "1024")
    code, out, _ = run(write(text), "--best", "1")
    assert code == 0
    assert "certificate" in out
    rows = [{"bm": 128, "bn": 128, "bk": 256}, {"bm": 100, "bn": 128, "bk": 128}]
    code, out, _ = run(write(text), "--prune", write(json.dumps(rows), "c.json"), "--json")
    found = json.loads(out)
    assert code == 0
    assert found["kept"] == rows[:1]
    assert found["figures"][0]["shapes"][0]["steps"] == 8 * 8 * 4
    assert stretch_of("searching.not_among_values", name="bm", value=100) in found["dropped"][0]["reason"]
    code, out, _ = run(write(text), "--prune", "c.json")
    assert "1 of 2 candidates are kept" in out


def test_check_leaves_search_files_out(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    Path("specs").mkdir()
    write(SMALL, "specs/search.yaml")
    write("source: here\nlayouts:\n  a: f32[3,5]{1,0}\nchecks:\n  - injective: a\n", "specs/a.yaml")
    assert cli.run(["check", "specs"]) == 0
    assert "1 claim as stated: 1 proved" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sizes", "values"), [((3000, 5000, 7000), {"bk": 7000}), ((100, 256, 200), {"bm": 100, "bk": 200})]
)
def test_a_size_that_no_range_cuts_is_one_block(run: Any, sizes: tuple[int, ...], values: dict[str, int]) -> None:
    """128 divides none of 7000: the whole dimension is what a block may always be."""
    code, out, _ = run("matmul", *map(str, sizes), "--target", "v6e", "--best", "2", "--json")
    assert code == 0
    best = json.loads(out)["best"]
    assert len(best) == 2 or sizes[0] == 100
    assert all(row["values"][name] == value for row in best for name, value in values.items())
