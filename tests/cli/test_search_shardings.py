"""`layoutproof search FILE --compile` of shardings: what the compiler takes, refuses, and what is said without it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from layoutproof.answers import compiled_shardings
from layoutproof.answers.of_sweep import Sweep
from layoutproof.cli.documents import adapter
from layoutproof.core.counted import Counted
from layoutproof.programs.record import read_record
from layoutproof.programs.sweep import SweepRow, all_axes
from tests.cli.test_search import SPECS, run, write
from tests.cli.user_code import command_in
from tests.hardware import compiler
from tests.said import stretch, words

pytestmark = pytest.mark.slow

__all__ = ["run"]

pytest.importorskip("jax", reason="JAX is not installed")
NEEDS_TPU = pytest.mark.skipif(bool(compiler.available()), reason=compiler.available() or "it is")

PRODUCT = (SPECS / "compiled_product.yaml").read_text()
GRADIENT = """
from pathlib import Path
Path("ran").touch()
import jax

def gradient(x, weights, *, policy=None):
    def loss(weights):
        def layer(x, w):
            return jax.numpy.tanh(x @ w), None
        kept = layer if policy is None else jax.checkpoint(layer, policy=policy)
        return (jax.lax.scan(kept, x, weights["w"])[0] ** 2).sum()
    return jax.grad(loss)(weights)
"""
TREES = """
target: v5e
sizes: {layers: 4, batch: 4096, model: 512}
mesh: {data: 4}
shardings: {x: "f32[batch,model]", w: "f32[layers,512,512]"}
program:
  function: step.py:gradient
  args: [x, {w: w}]
  out: [{w: w}]
  topology: 2x2
  sweep: {policy: ["None", jax.checkpoint_policies.nothing_saveable]}
"""


def product() -> str:
    """The file of specs/search with its function, in the current folder."""
    write((SPECS / "compiled_product.py").read_text(), "compiled_product.py")
    return write(PRODUCT)


def specs(entries: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """How the arrays of each assignment are cut."""
    return [[shard["spec"] for shard in one.values()] for one in entries]


@NEEDS_TPU
def test_what_arithmetic_finds_best_does_not_fit(run: Any, capsys: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """The cut of what is summed over holds as little as any; each device then holds whole sums, and it is no answer."""
    worst = [[None, ["d"]], [["d"], None]]
    file = product()
    code, out, _ = run(file, "--json")
    plain = json.loads(out)
    assert (code, specs(plain["shardings"]["best"])[0], "compiled" in plain) == (0, worst, False)
    code, out, _ = run(file, "--compile", "--best", "3", "--json")
    found = json.loads(out)
    adapter("search").validate_python(found)
    assert (code, found["verdict"], found["reason"]) == (0, "proved", "")
    assert specs(found["shardings"]["best"]) == specs(plain["shardings"]["best"])[1:3]
    compiled = found["compiled"]
    assert (compiled["assignments"], compiled["left"]) == (3, 2)
    states = [(row["at"]["in0"], row["at"]["in1"], row["state"]) for row in compiled["rows"]]
    assert states[0] == ("P(None, 'd')", "P('d', None)", "too_large")
    assert [state for _, _, state in states[1:]] == ["fits", "fits"]
    # sums of 8192 x 8192 in bf16 on one device
    assert compiled["rows"][0]["peak"] > 8192 * 8192 * 2 > compiled["rows"][0]["limit"] == 100 << 20
    assert compiled["rows"][1]["sent"]["d"]["least"] > 0
    cheapest = compiled["rows"][compiled["cheapest"][0]["row"]]
    assert cheapest["bound_ps"]["most"] == min(row["bound_ps"]["most"] for row in compiled["rows"][1:])
    # a row is what its own command says
    alone = command_in("compile", capsys, tmp_path, monkeypatch)
    code, out, _ = alone(*shlex.split(compiled["rows"][1]["command"])[2:], "--json")
    assert code == 0
    assert compiled["rows"][1]["peak"] == read_record(json.loads(out)["records"][0]).memory.taken


@NEEDS_TPU
def test_where_nothing_that_was_compiled_fits(run: Any) -> None:
    """One is asked and refused: others may fit, so it is unknown, and nothing is best."""
    code, out, _ = run(product(), "--compile", "--best", "1")
    assert code == 3
    assert words("answers.no_sharding_fits", count=1, left=4) in out
    assert "  1.  " not in out
    assert "cheapest  no point fits" in out
    # the same with a larger memory fits
    text = PRODUCT.replace("100MiB", "300MiB")
    assert run(write(text), "--compile", "--best", "1")[0] == 0


@NEEDS_TPU
def test_trees_results_and_remat_policies(run: Any) -> None:
    """Arrays within a dict are cut as the search says, results likewise; each assignment at each policy of JAX."""
    write(GRADIENT, "step.py")
    code, out, _ = run(write(TREES), "--compile", "--best", "2", "--json")
    rows = json.loads(out)["compiled"]["rows"]
    assert (code, [row["state"] for row in rows]) == (0, ["fits"] * 4)
    for row in rows:
        assert row["at"]["in1"] == row["at"]["out0"]
        assert row["at"]["in1"].startswith("{'w': P(")
    assert [row["at"]["policy"] for row in rows[:2]] == ["None", "jax.checkpoint_policies.nothing_saveable"]
    # what is computed again
    assert rows[0]["flops"]["least"] < rows[1]["flops"]["least"]
    # what is no policy is said, at the place of the program, beside what compiles
    code, out, _ = run(
        write(TREES.replace("nothing_saveable", "nothing_savable")), "--compile", "--best", "1", "--json"
    )
    found = json.loads(out)
    assert (code, found["exit_code"]) == (2, 2)
    assert [row["state"] for row in found["compiled"]["rows"]] == ["fits", "bad_input"]
    assert "nothing_saveable" in found["compiled"]["rows"][1]["reason"]


@NEEDS_TPU
def test_a_search_that_was_broken_off_goes_on(run: Any) -> None:
    """Rows are those of a sweep: in several processes, kept in a file, and taken from it; the answer is the same."""
    file = product()
    whole = json.loads(run(file, "--compile", "--best", "3", "--json")[1])
    assert run(file, "--compile", "--best", "3", "--jobs", "2", "--resume", "rows.jsonl")[0] == 0
    kept = Path("rows.jsonl").read_text().splitlines(keepends=True)
    assert len(kept) == 3
    # ended while it wrote its second row
    Path("rows.jsonl").write_text(kept[0] + kept[1][:40])
    code, out, _ = run(file, "--compile", "--best", "3", "--resume", "rows.jsonl", "--json")
    found = json.loads(out)
    assert (code, found["compiled"]["kept"], whole["compiled"]["kept"]) == (0, 1, 0)
    assert found["shardings"] == whole["shardings"]
    one, other = (
        [{**row, "seconds": 0, "cpu_seconds": 0} for row in each["compiled"]["rows"]] for each in (found, whole)
    )
    assert one == other
    # of other code no row is believed
    write((SPECS / "compiled_product.py").read_text() + "# edited\n", "compiled_product.py")
    out = run(file, "--compile", "--best", "1", "--resume", "rows.jsonl", "--json")[1]
    assert json.loads(out)["compiled"]["kept"] == 0


def test_only_what_is_compiled_has_jobs_and_rows(run: Any) -> None:
    for name, given in (
        ("resume", (product(), "--resume", "rows.jsonl")),
        ("jobs", ("matmul", "--compile", "--jobs", "2")),
    ):
        code, _, err = run(*given)
        assert (code, words("answers.not_for", name=name, whose="shardings that are compiled") in err) == (2, True)


@NEEDS_TPU
def test_a_program_that_does_not_fit_the_mesh(run: Any) -> None:
    """Eight devices on one chip: it is wrong input, with the place, and no answer."""
    product()
    code, out, _ = run(write(PRODUCT.replace("  topology: 2x4\n", "")), "--compile", "--best", "1")
    assert code == 2
    assert "bad input" in out
    assert "unknown" in out.splitlines()[0]


def test_without_leave_nothing_is_run(run: Any) -> None:
    """`--no-trace`, and a list of modules that has another; nor is it without --compile."""
    write(GRADIENT, "step.py")
    file = write(TREES)
    assert run(file)[0] == 0
    code, out, _ = run(file, "--compile", "--no-trace")
    assert (code, "not traced: --no-trace" in out) == (3, True)
    write('[tool.layoutproof]\ntrace = ["pkg"]\n', "pyproject.toml")
    code, out, _ = run(file, "--compile", "--json")
    found = json.loads(out)
    adapter("search").validate_python(found)
    assert (code, found["compiled"]["rows"], found["compiled"]["assignments"]) == (3, [], 0)
    assert "step.py is not among" in found["reason"]
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        (PRODUCT[PRODUCT.index("program:") :], "", "2:1", words("searching.compile_of_kernels", missing="program")),
        (
            PRODUCT[PRODUCT.index("mesh:") :],
            "layouts: {x: 'f32[n]'}\n",
            "2:1",
            words("searching.compile_of_kernels", missing="shardings"),
        ),
        ("args: [x, w]", "args: ['bf16[n]', 3]", "12:3", words("answers.program_of_no_array", arrays="x, w")),
        ("args: [x, w]", "args: [x, w]\n  sweep: {target: [v6e]}", None, stretch("searching.swept_by_search")),
        ("args: [x, w]", "args: [x, w]\n  sweep: {libtpu: [/tmp/x]}", None, "libtpu is no axis"),
        ("args: [x, w]", "args: [x, w]\n  sweep: {in0: [P()]}", None, "in0 is no axis"),
        ("args: [x, w]", "args: [x, w]\n  sweep: {a: [1, 1]}", "12:3", "has '1' twice"),
        ("compiled_product.py:product", "nothing", "12:3", "'nothing'"),
    ],
)
def test_what_is_wrong_with_a_program(run: Any, old: str, new: str, place: str | None, said: str) -> None:
    """Each with the place in the file, before anything is compiled."""
    assert old in PRODUCT
    code, _, err = run(write(PRODUCT.replace(old, new)), "--compile")
    assert code == 2
    assert said in err
    assert err.startswith(f"s.yaml:{place}: " if place else "s.yaml:")


@pytest.mark.parametrize(
    ("outcomes", "memory", "code", "best"),
    [
        (["compiled"] * 5, "1GiB", 0, [0, 1, 2, 3, 4]),
        (["no_room", "refused", "compiled", "no_room", "compiled"], "1GiB", 0, [2, 4]),
        # nobody knows of the first: what costs more is no proof
        (["unknown", "compiled", "compiled", "refused", "refused"], "1GiB", 3, [0, 1, 2]),
        (["compiled", "unknown", "no_room", "no_room", "no_room"], "1GiB", 0, [0, 1]),
        # compiled, and nobody says what it takes
        (["no figure", "compiled", "no_room", "no_room", "no_room"], "1GiB", 3, [0, 1]),
        (["no_room"] * 5, "1GiB", 1, []),
        (["no_room"] * 4 + ["unknown"], "1GiB", 3, [4]),
        # the search leaves some out, which the compiler was not asked about
        (["no_room"] * 2, "10MiB", 3, []),
        (["bad_input"] + ["compiled"] * 4, "1GiB", 2, [0, 1, 2, 3, 4]),
        ([], "1MiB", 1, []),
    ],
)
def test_the_compiler_overrules(
    run: Any, monkeypatch: pytest.MonkeyPatch, outcomes: list[str], memory: str, code: int, best: list[int]
) -> None:
    """Refused ones are left out; what is unknown stays, proves nothing, and is never green."""

    def swept(base: Any, axes: Any, together: Any, **more: Any) -> Sweep:
        assert len(together) == len(outcomes)
        rows = tuple(
            SweepRow(one, "compiled", "", "v5e", "", 8, None)
            if outcome == "no figure"
            else SweepRow(one, outcome, "" if outcome == "compiled" else "why", "v5e", "", 8, 5, bound=Counted.of(7))
            for one, outcome in zip(together, outcomes, strict=True)
        )
        return Sweep(base.program, all_axes(axes, together), rows, memory=more["memory"])

    monkeypatch.setattr(compiled_shardings, "swept_over", swept)
    product()
    file = write(PRODUCT.replace("100MiB", memory))
    plain = json.loads(run(file, "--json")[1])["shardings"]["best"]
    found_code, out, _ = run(file, "--compile", "--json")
    found = json.loads(out)
    adapter("search").validate_python(found)
    assert (found_code, found["exit_code"]) == (code, code)
    assert found["shardings"]["best"] == [plain[k] for k in best]
    assert [row["state"] for row in found["compiled"]["rows"]] == [
        {"compiled": "fits", "no_room": "too_large", "no figure": "compiled"}.get(one, one) for one in outcomes
    ]
    assert run(file, "--compile")[0] == code
