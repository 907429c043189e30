"""`layoutproof search` without a file: ready kernels, functions, a file to start from; and what tuners take from it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy
import pytest

import layoutproof as lp
from layoutproof.searching import ready
from layoutproof.searching.read import read_problem
from layoutproof.specs.positions import read_yaml
from tests.cli.user_code import command_in
from tests.said import stretch, words

pytestmark = pytest.mark.slow

FUNCTION = """
def copy(x, *, rows):
    import jax
    from jax.experimental import pallas as pl

    block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return pl.pallas_call(
        lambda a, b: b.__setitem__(..., a[...]),
        grid=(x.shape[0] // rows,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """One command line in an empty folder: its exit code, stdout and stderr."""
    return command_in("search", capsys, tmp_path, monkeypatch)


def test_a_matmul_of_ones_own_sizes(run: Any) -> None:
    command = ("matmul", "1024", "2048", "512", "--dtype", "f32", "--target", "v6e", "--best", "2")
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    lines = [line for line in out.splitlines() if line]
    assert lines[0] == "matmul 1024 x 2048 x 512 f32, v6e: 384 candidates"
    assert lines[1].split()[:4] == ["bm", "bn", "bk", "time"]
    assert [line.split()[0] for line in lines[2:4]] == ["1", "2"]
    # one table, what became of the others, and a footer
    assert [line.split()[0] for line in lines[4:]] == ["certificate", "set", "not", "time"]
    assert "--why" in lines[-1]
    found = json.loads(run(*command, "--json")[1])
    assert (found["target"], found["best"][0]["shapes"][0]["sizes"]) == ("v6e", {"M": 1024, "N": 2048, "K": 512})
    # every array is moved at least once, four bytes an element
    assert found["best"][0]["shapes"][0]["bytes"] >= 4 * (1024 * 512 + 512 * 2048 + 1024 * 2048)
    explained = run(*command, "--why")[1]
    assert "headroom        21%" in explained
    assert "bandwidth" in explained


@pytest.mark.parametrize("name", sorted(ready.kernels()))
def test_every_ready_kernel_answers_as_its_file(name: str) -> None:
    by_name = lp.search(name, best=1)
    by_file = lp.search(ready.kernels()[name], best=1)
    assert by_name.verdict is lp.Verdict.PROVED
    assert by_name.as_dict()["best"] == by_file.as_dict()["best"]
    halves = {"matmul": [1024, 512, 256], "layer_norm": [512, 1024], "softmax": [512, 1024]}
    if name in halves:
        assert lp.search(name, sizes=halves[name], dtype="f32", target="v4").verdict is lp.Verdict.PROVED


def test_a_function_is_searched_without_a_file(run: Any) -> None:
    pytest.importorskip("jax", reason="traced functions need jax")
    Path("mine.py").write_text(FUNCTION)
    code, out, _ = run("mine.py:copy", "--arg", "f32[512,128]", "--tune", "rows=64..512:x2", "--best", "1")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[2:4]] == [["rows", "time"], ["1", "512"]]
    assert "4 candidates" in out
    for option in ("--arg", "--args"):
        code, out, _ = run("mine.py:copy", option, "f32[512,128]", "--tune", "rows=64,128", "--best", "1", "--json")
        assert json.loads(out)["best"][0]["values"] == {"rows": 128}


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (["matmull"], "did you mean 'matmul'"),
        (["matmul", "8", "8"], "matmul takes 3 sizes, M N K; 2 are given"),
        (["matmul", "1024", "1024", "1024", "--tune", "bm=8"], "tune is for a function"),
        (["a:b", "--dtype", "bf16", "--tune", "bm=8"], "dtype is for ready kernels"),
        (["a:b"], "--tune bm=128..2048"),
        (["a:b", "--tune", "bm"], "--tune takes NAME=VALUE"),
        (["a:b", "--tune", "bm=x"], stretch("searching.variable_form")),
        (
            ["a:b", "--tune", "bm=8..64:0"],
            "'multiple_of': " + words("specs.expected", wanted="a number of at least 1", found="0"),
        ),
        (["a:b", "--tune", "bm=64..8"], "'bm': no number is in"),
        (["a:b", "--tune", "bm=8..N"], "'bm': N is not known here; known: no name"),
        (
            ["a:b", "--tune", "bm=8,16", "--kwarg", "bm=32"],
            words("searching.tuned_and_passed", name="bm", value="'32'"),
        ),
        (
            ["matmul", "8", "8", "8", "--dtype", "f77"],
            "inputs[0]: array: " + words("core.element_type", name="f77", near=""),
        ),
        (["matmul", "8", "8", "8", "--target", "v9"], "unknown target 'v9'"),
        # no candidates is an answer, of which more than are counted is none
        (["matmul", "1000000000000", "8", "8"], "'bm': at most 1048576 values"),
        (["matmul", "--within", "0.5x"], stretch("searching.factor_form")),
        (["missing.yaml"], "missing.yaml"),
        ([], stretch("cli.problem_missing")),
        ([""], stretch("cli.problem_missing")),
    ],
)
def test_what_cannot_be_asked(run: Any, command: list[str], what: str) -> None:
    code, out, err = run(*command)
    assert (code, out) == (2, "")
    assert what in err
    # what stands on no line of any file names none
    assert not re.search(r":\d+:\d+: ", err)


def test_a_whole_dimension_is_tiled_where_nothing_else_divides_it(run: Any) -> None:
    """The twin of too many values; and what divides a small dimension is few, however large another one is."""
    assert "1   7   7   7" in run("matmul", "7", "7", "7", "--best", "1")[1]
    text = ready.kernels()["matmul"].read_text().replace("body:", "note:").replace("M: 8192", "M: 1000000000000")
    # 8 heights, 64 widths; of 128 to 8192 seven divide K
    assert read_problem(read_yaml(text.replace("to: M", "to: 1024"))).count() == 8 * 64 * 7


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"best": 0}, "best is a whole number of at least 1, not 0"),
        ({"best": 2.5}, "best is a whole number of at least 1, not 2.5"),
        ({"keep": -3}, "keep is a whole number of at least 1, not -3"),
        ({"effort": 0}, words("questions.effort", found=0)),
        ({"effort": True}, words("questions.effort", found="True")),
        ({"within": float("nan")}, stretch("searching.factor_form")),
        ({"sizes": [1024.5, 8, 8]}, "size 1 of 3 is a whole number of at least 1, not 1024.5"),
        ({"sizes": [8, "a", 8]}, "size 2 of 3 is a whole number of at least 1, not 'a'"),
        ({"sizes": [8, 8, None]}, "size 3 of 3 is a whole number of at least 1, not None"),
        ({"prune": [{"bm": 8}]}, "prune is the path of a JSON file"),
    ],
)
def test_numbers_that_are_none_are_refused_in_words(given: dict[str, Any], what: str) -> None:
    with pytest.raises(lp.LayoutError, match=re.escape(what)):
        lp.search("matmul", **given)


def test_values_of_numpy_and_ranges_are_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax", reason="traced functions need jax")
    monkeypatch.chdir(tmp_path)
    Path("numbers_of.py").write_text(FUNCTION)

    def found(rows: Any) -> Any:
        return lp.search("numbers_of.py:copy", args=["f32[512,128]"], tune={"rows": rows}).as_dict()["best"]

    plain = found([8, 16, 24])
    assert [one["values"] for one in plain] == [{"rows": 16}, {"rows": 8}]
    assert found(range(8, 25, 8)) == found(numpy.array([8, 16, 24])) == found((numpy.int64(8), 16, 24)) == plain
    for wrong, what in (
        ({8, 16}, "a problem holds numbers, texts, lists and mappings, not {8, 16}"),
        ([numpy.float64(8)], "'rows': " + words("specs.expected", wanted="a whole number", found="8.0")),
        ([float("nan")], "'rows': " + words("specs.expected", wanted="a whole number", found="nan")),
    ):
        with pytest.raises(lp.LayoutError, match=re.escape(what)):
            found(wrong)
    held: dict[str, Any] = {}
    held["held"] = held
    with pytest.raises(lp.LayoutError, match="holds itself"):
        lp.search(held)


def test_candidates_in_wrong_numbers() -> None:
    found = lp.search("matmul", sizes=[256, 256, 256])
    assert list(found.candidates(keep=0)) == []
    for keep in (-1, 2.5):
        with pytest.raises(lp.LayoutError, match="keep is a whole number of at least 0"):
            list(found.candidates(keep=keep))  # type: ignore[arg-type]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_what_is_kept_of_candidates_is_json_again(run: Any, number: str) -> None:
    command = ("matmul", "256", "256", "256", "--prune", "c.json", "--json")
    Path("c.json").write_text(f'[{{"bm": 128, "bn": 128, "bk": 128, "seen": {number}}}]')
    code, out, _ = run(*command)
    assert (code, json.loads(out)["error"]["message"]) == (2, f"{number} is no number of JSON")
    Path("c.json").write_text('[{"bm": 128, "bn": 128, "bk": 128, "seen": 1e99}]')
    code, out, _ = run(*command)
    assert (code, json.loads(out)["kept"][0]["seen"]) == (0, 1e99)


def test_a_file_to_start_from_is_one_that_answers(run: Any) -> None:
    code, out, _ = run("--init")
    assert code == 0
    assert "layoutproof search search.yaml" in out
    assert run("search.yaml", "--best", "1")[0] == 0
    before = Path("search.yaml").read_text()
    assert before.count("#") > 10
    code, _, err = run("--init")
    assert (code, "is there already" in err, Path("search.yaml").read_text()) == (2, True, before)
    assert run("--init", "other.yaml")[0] == 0
    assert Path("other.yaml").is_file()


def test_ranges_may_speak_of_sizes() -> None:
    text = ready.kernels()["matmul"].read_text().replace("body:", "note:")
    plain = text.replace("to: M", "to: 4096").replace("to: N", "to: 128").replace("from: 128", "from: 64", 1)
    by_sizes = (
        text.replace("to: M", "to: M // 2").replace("to: N", "to: N // 64").replace("from: 128", "from: K//128", 1)
    )
    found = [lp.search(one, best=3).as_dict() for one in (plain, by_sizes)]
    assert found[0] == found[1]
    with pytest.raises(lp.LayoutError, match=re.escape(stretch("searching.below_one", value=0))):
        lp.search(text.replace("to: M", "to: M // 10000"))
    with pytest.raises(lp.LayoutError, match=re.escape(stretch("searching.unknown_name", name="Q"))):
        lp.search(text.replace("to: M", "to: Q"))


def test_candidates_within_a_factor_are_those_of_the_whole_ranking(run: Any) -> None:
    everything = json.loads(run("matmul", "512", "512", "512", "--best", "1000", "--json")[1])["best"]
    costs = [one["cost"] for one in everything]
    near = [one for one in everything if one["cost"] <= 1.5 * costs[0]]
    assert 8 < len(near) < len(everything)
    found = json.loads(run("matmul", "512", "512", "512", "--within", "1.5x", "--json")[1])
    assert [one["values"] for one in found["best"]] == [one["values"] for one in near]
    few = json.loads(run("matmul", "512", "512", "512", "--within", "1.5x", "--keep", "3", "--json")[1])
    assert [one["values"] for one in few["best"]] == [one["values"] for one in near[:3]]
    generated = lp.search("matmul", sizes=[512, 512, 512], best=1)
    assert list(generated.candidates(within="1.5x")) == [one["values"] for one in near]
    assert list(generated.candidates(keep=20)) == [one["values"] for one in everything[:20]]
    assert list(generated.candidates()) == [one["values"] for one in everything]


def test_pruning_keeps_the_cheapest(run: Any) -> None:
    rows = [{"bm": 128, "bn": 128, "bk": 128}, {"bm": 512, "bn": 512, "bk": 512}, {"bm": 256, "bn": 512, "bk": 512}]
    Path("c.json").write_text(json.dumps(rows))
    command = ("matmul", "512", "512", "512", "--prune", "c.json")
    assert json.loads(run(*command, "--json")[1])["kept"] == rows
    two = json.loads(run(*command, "--json", "--keep", "2")[1])
    assert two["kept"] == rows[1:]
    assert two["dropped"][0]["reason"] == words("searching.costs_no_less", most=2)
    one = run(*command, "--within", "1.05x")[1]
    assert "1 of 3 candidates" in one
    assert one.count(stretch("searching.costs_more", within=1.05)) == 2


def test_the_front_that_is_shown_is_near_the_best(run: Any) -> None:
    code, out, _ = run("flash_attention", "1", "8", "2048", "2048", "128", "--pareto", "--best", "1")
    assert code == 0
    assert "more cost over 2x the best" in out
    everything = json.loads(run("flash_attention", "1", "8", "2048", "2048", "128", "--pareto", "--json")[1])["front"]
    costs = [one["cost"] for one in everything["found"]]
    shown = out.split("pareto front")[1].split("not shown")[0].strip().splitlines()[2:]
    assert len(shown) == sum(cost <= 2 * costs[0] for cost in costs)
