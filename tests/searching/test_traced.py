"""Searches that trace the user's function: against formulas written here, and against the real compiler."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.result import Verdict
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.mosaic.ask import CompilerQuestion
from layoutproof.pallas.compiled import Compiled
from layoutproof.searching import traced, traced_file
from layoutproof.searching.branch import candidate
from layoutproof.searching.compiler_stage import Report
from layoutproof.searching.machines import STEP_OVERHEAD
from layoutproof.searching.problem import Problem
from layoutproof.searching.read import read_problem
from layoutproof.searching.searched import Searched
from layoutproof.searching.solve import solve
from layoutproof.searching.traced_file import read
from layoutproof.specs.positions import read_yaml
from tests.hardware import compiler
from tests.said import stretch, words
from tests.searching.problems_at_random import MATMUL

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="JAX is not installed")

HERE = Path(__file__).parent
SPECS = HERE.parents[1] / "specs" / "search"


def answer(problem: Problem, best: int = 3, effort: int = 1) -> Searched:
    return Searched(solve(problem, best, effort))


def found(text: str, best: int = 3) -> Searched:
    return answer(read(read_yaml(text, "f.yaml"), (HERE / "f.yaml").as_posix()), best)


def problem(name: str, arg: str, tune: str, more: str = "") -> str:
    more = more if "headroom" in more else f"headroom: 0%\n{more}"
    return f"target: v5e\ntrace: traced_functions.py:{name}\nargs: [{arg}]\ntune: {tune}\n{more}"


def test_the_best_is_that_of_a_formula() -> None:
    rows, columns = [3, 5, *(2**k for k in range(3, 17))], [64, 128, 256, 512]
    answered = found(problem("copy", '"f32[65536,512]"', f"{{rows: {rows}, columns: {columns}}}"), best=4)
    assert answered.verdict is Verdict.PROVED
    # one fetch and one write of everything, whatever the blocks: what is left are the steps, the first and last block
    bandwidth = CHIPS["v5e"].bandwidth
    moved = -(-2 * 4 * 65536 * 512 * 10**12 // bandwidth)
    legal = []
    for r, c in itertools.product(rows, columns):
        steps, windows = 65536 // r * (512 // c), 2 * 4 * r * c
        buffers = 1 if steps == 1 else 2
        if 65536 % r == 0 and c % 128 == 0 and buffers * windows <= CHIPS["v5e"].vmem_scoped:
            legal.append((steps * STEP_OVERHEAD + moved - -windows * 10**12 // bandwidth, r, c))
    best = answered.result.found
    assert [(one.cost, one.values["rows"], one.values["columns"]) for one in best] == sorted(legal)[:4]
    # what does not divide is refused by the function itself, in its own words
    refused = [why for why in answered.result.enumerated.refused if "65536 rows are no multiple of 3" in why]
    assert [answered.result.enumerated.refused[why] for why in refused] == [4]
    assert answered.result.enumerated.looked_at == len(rows) * len(columns)


def test_what_writes_too_little_is_refused_though_it_is_cheaper() -> None:
    answered = found(problem("truncated", '"f32[1000,128]"', "{rows: [8, 200, 512, 992]}"), best=1)
    assert answered.verdict is Verdict.PROVED
    assert answered.result.found[0].values == {"rows": 200}
    assert dict(answered.result.enumerated.refused) == {"outputs_covered outputs": 2}
    none = found(problem("truncated", '"f32[1000,128]"', "{rows: [512, 992]}"))
    assert (none.verdict, none.verdict.exit_code, none.result.found) == (Verdict.REFUTED, 1, ())
    assert "outputs_covered" in none.text()


def test_tables_need_an_assumption_about_each_candidate() -> None:
    ask = problem("looked_up", '"s32[64]", "f32[512,128]"', "{rows: [8, 16, 32]}")
    unsure = found(ask)
    assert (unsure.verdict, unsure.verdict.exit_code) == (Verdict.UNKNOWN, 3)
    assert "prefetch0" in unsure.text()
    sure = found(ask + 'assume: ["0 <= prefetch0 < 512 // rows"]\n')
    assert sure.verdict is Verdict.PROVED
    # 64 blocks are read, more rows than the array has, and 64 are written
    assert [(one.values["rows"], one.figures[0]["bytes"]) for one in sure.result.found] == [
        (rows, 2 * 64 * rows * 128 * 4) for rows in (8, 16, 32)
    ]
    assert "no two entries" in sure.text()


def test_what_is_moved_by_hand_is_not_counted() -> None:
    ask = problem("by_hand", '"f32[512,128]"', "{rows: [8, 16, 32]}")
    unsure = found(ask)
    assert unsure.verdict is Verdict.UNKNOWN
    assert "moved by manual DMA" in unsure.result.unknown
    assert found(ask + "cost: steps\n").verdict is Verdict.PROVED
    assert found(ask + "cost: bytes\n").verdict is Verdict.UNKNOWN


def test_a_body_that_is_wrong_for_a_block_size_makes_it_illegal() -> None:
    answered = found(problem("seventeenth_row", '"f32[512,128]"', "{rows: [8, 16, 32]}"))
    assert answered.verdict is Verdict.PROVED
    assert [one.values["rows"] for one in answered.result.found] == [32]
    assert dict(answered.result.enumerated.refused) == {"body_in_bounds args[0]": 2}
    assert "part of this verdict" not in answered.text()


def test_what_stays_unknown_of_a_body_refuses_nothing_and_is_said() -> None:
    ask = problem("row_of_a_table", '"s32[64]", "f32[512,128]"', "{rows: [8, 16, 32]}")
    answered = found(ask)
    assert answered.verdict is Verdict.PROVED
    assert [one.values["rows"] for one in answered.result.found] == [32, 16, 8]
    assert "not part of this verdict; unknown: body_in_bounds" in answered.text()
    assert any("body_in_bounds" in note for note in answered.as_json()["notes"])
    sure = found(ask + 'assume: ["0 <= prefetch0 < rows"]\n')
    assert sure.verdict is Verdict.PROVED
    assert "part of this verdict" not in sure.text()
    wrong = found(ask + 'assume: ["rows <= prefetch0 < 2 * rows"]\n')
    assert (wrong.verdict, wrong.result.found) == (Verdict.REFUTED, ())


@pytest.mark.parametrize(("name", "why"), [("for_a_gpu", "is for triton"), ("nothing", "makes no Pallas call")])
def test_what_no_rule_speaks_of_is_unknown(name: str, why: str) -> None:
    answered = found(problem(name, '"f32[512,128]"', "{rows: [8, 16]}"))
    assert (answered.verdict, answered.verdict.exit_code, answered.result.found) == (Verdict.UNKNOWN, 3, ())
    assert why in answered.text()


def test_several_calls_are_added_up() -> None:
    one = found(problem("copy", '"f32[512,128]"', "{rows: [64]}")).result.found[0]
    both = found(problem("summed", '"f32[512,128]"', "{rows: [64]}")).result
    two = both.found[0]
    assert len(both.enumerated.taken[0].kernels) == 2
    assert {name: two.figures[0][name] for name in ("bytes", "steps", "time")} == {
        name: 2 * one.figures[0][name] for name in ("bytes", "steps", "time")
    }
    assert two.figures[0]["vmem"] == one.figures[0]["vmem"]


def test_constraints_are_kept() -> None:
    ask = problem("copy", '"f32[512,512]"', "{rows: [8, 64, 512], columns: [128, 256]}")
    both = found(ask + "constraints: [rows * columns <= 16384, steps <= 1000]\n", best=1)
    assert both.result.found[0].values == {"rows": 64, "columns": 256}
    assert both.result.enumerated.refused["rows * columns <= 16384"] == 2
    few = found(ask + "constraints: [steps <= 1]\n")
    assert few.verdict is Verdict.REFUTED
    assert few.result.enumerated.refused == {"steps <= 1": 6}


def test_headroom_is_kept_free() -> None:
    # four windows of 512 bytes a row, 16 MiB in all
    def ask(headroom: str) -> Searched:
        more = f"step_overhead: 9us\n{headroom}"
        return found(problem("copy", '"f32[65536,128]"', "{rows: [2048, 4096, 8192]}", more), best=1)

    assert ask("headroom: 0%\n").result.found[0].values == {"rows": 8192}
    half = ask("headroom: 50%\n")
    assert half.result.found[0].values == {"rows": 4096}
    # what takes more is set aside: nothing is proved of it
    assert dict(half.result.enumerated.refused) == {}
    assert [one.values for one in half.result.enumerated.aside] == [{"rows": 8192}]
    assert "set aside       1 candidates: VMEM model above 50 % of the limit" in half.text(why=False)
    assert half.as_json()["set_aside"]["count"] == 1
    # a file that says nothing gets what the kind of its body needs, and is told so
    unsaid = ask("headroom: null\n")
    assert unsaid.result.found[0].values == {"rows": 8192}
    assert words("searching.headroom_of_registers", percent=0, source="elementwise by its body") in unsaid.text()


def test_headroom_proves_nothing() -> None:
    """Every candidate set aside: unknown, never "proved that there is none"; what fits nowhere is refused."""

    def ask(rows: str, headroom: str) -> Searched:
        return found(problem("copy", '"f32[65536,128]"', f"{{rows: {rows}}}", headroom), best=1)

    none = ask("[8192]", "headroom: 50%\n")
    assert (none.verdict, none.result.found, none.verdict.exit_code) == (Verdict.UNKNOWN, (), 3)
    assert stretch("searching.set_aside_by_headroom", candidates="1 candidates") in none.text(why=False)
    assert ask("[8192]", "headroom: 0%\n").verdict is Verdict.PROVED
    over = ask("[16384]", "headroom: 50%\n")
    assert (over.verdict, dict(over.result.enumerated.refused)) == (
        Verdict.REFUTED,
        {f"VMEM (more than {16 << 20} bytes)": 1},
    )


def test_a_budget_that_ends_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "MOST", 2)
    ask = read(read_yaml(problem("copy", '"f32[512,128]"', "{rows: [8, 16, 32]}")), (HERE / "f.yaml").as_posix())
    cut = answer(ask)
    assert (cut.verdict, cut.result.enumerated.looked_at) == (Verdict.UNKNOWN, 2)
    assert "2 of 3" in cut.result.unknown
    assert answer(ask, effort=2).verdict is Verdict.PROVED


@pytest.mark.parametrize("ends", [None, "", "no room", "missing"])
def test_the_compiler_has_the_last_word(ends: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def says(
        candidates: Sequence[Callable[[], Sequence[CompilerQuestion]]], enough: int, **asking: object
    ) -> list[Report]:
        assert enough == 1
        if ends == "missing":
            raise Undecided("the TPU compiler cannot be asked")
        said = []
        for (question,) in (ask() for ask in candidates):
            first = question.kernel.grid == (1, 1)
            refused, problem = (ends or "", "it aborted" if ends is None else "") if first else ("", "")
            said.append((Compiled(question.kernel.name, "v5e", refused=refused, problem=problem),))
        return said

    monkeypatch.setattr(traced_file, "reports", says)
    answered = found(problem("copy", '"f32[512,128]"', "{rows: [8, 64, 512]}", "confirm: compiler\n"), best=1)
    first = {None: 64, "": 512, "no room": 64, "missing": 512}[ends]
    assert answered.result.found[0].values == {"rows": first}
    sure = Verdict.PROVED if ends in ("", "no room") else Verdict.UNKNOWN
    assert answered.verdict is sure
    assert (
        ends not in ("no room", "missing") or ("no room" if ends == "no room" else "cannot be asked") in answered.text()
    )


def test_the_real_compiler_refuses_what_a_body_holds() -> None:
    reason = compiler.available()
    if reason:
        pytest.skip(reason)
    # by what its products compute the smaller block is the better one; by HBM and steps alone, the larger
    ask = problem("deep", '"bf16[8192,128]"', "{rows: [512, 2048]}", "headroom: 0%\nflops: 0\n")
    windows_only = found(ask, best=1)
    assert windows_only.result.found[0].values == {"rows": 2048}
    assert stretch("searching.body_not_counted") in windows_only.text()
    confirmed = found(ask + "confirm: compiler\n", best=1)
    assert confirmed.verdict is Verdict.PROVED
    assert confirmed.result.found[0].values == {"rows": 512}
    assert any(why.startswith("the compiler: ") for why in confirmed.result.enumerated.refused)


@pytest.mark.parametrize("seed", range(12))
def test_a_traced_kernel_costs_what_the_declared_one_does(seed: int) -> None:
    rng = random.Random(seed)
    sizes = {name: 128 * rng.choice((1, 2, 3, 4, 6, 8)) for name in "MNK"}
    values = {"bm": rng.choice((128, sizes["M"])), "bn": rng.choice((128, sizes["N"])), "bk": rng.choice((128, 256))}
    tune = json.dumps({name: [value] for name, value in values.items()})
    text = (
        "target: v5e\ntrace: jax.experimental.pallas.ops.tpu.matmul:matmul\nargs: ['bf16[M,K]', 'bf16[K,N]']\n"
        f"kwargs: {{block_shape: '(bm, bn)', block_k: bk}}\nsizes: {json.dumps(sizes)}\ntune: {tune}\n"
    )
    kernel = {**MATMUL, "grid": ["M // bm", "N // bn", "K // bk"]}
    kernel["outputs"] = [{**MATMUL["outputs"][0], "array": "bf16[M,N]"}]
    declared = {"target": "v5e", "kernel": kernel, "sizes": sizes, "tune": {n: [v] for n, v in values.items()}}
    own = candidate(read_problem(read_yaml(json.dumps(declared))), values)
    problem = read(read_yaml(text))
    priced = traced.priced(problem, values, traced.prices(problem, problem.traced.trace(values)))
    assert priced.figures == own.figures[0]
    assert priced.cost == own.cost


@pytest.mark.parametrize(
    "name", ["traced_matmul", "traced_flash", pytest.param("traced_ragged", marks=pytest.mark.nightly)]
)
def test_the_ready_files_answer(name: str) -> None:
    answered = answer(read(SPECS / f"{name}.yaml"), best=1)
    assert answered.verdict is Verdict.PROVED, answered.text()
    assert answered.result.enumerated.looked_at == answered.result.asked
    assert "certificate     enumerated" in answered.text()


@pytest.mark.parametrize("name", ["traced_matmul", pytest.param("traced_flash", marks=pytest.mark.nightly)])
def test_the_compiler_takes_what_is_found(name: str) -> None:
    reason = compiler.available()
    if reason:
        pytest.skip(reason)
    text = (SPECS / f"{name}.yaml").read_text() + "confirm: compiler\n"
    answered = answer(read(read_yaml(text), (SPECS / f"{name}.yaml").as_posix()), best=1)
    # what headroom would set aside the compiler is asked of too, and may refuse; what is found it took
    assert answered.verdict is Verdict.PROVED
    assert answered.result.found


def test_splash_attention_asks_the_compiler() -> None:
    text = (SPECS / "traced_splash.yaml").read_text()
    assert "confirm: compiler" in text
    narrow = text.replace("from: 256, to: 1024", "from: 256, to: 256")
    answered = answer(read(read_yaml(narrow), (SPECS / "traced_splash.yaml").as_posix()), best=1)
    assert answered.result.found[0].values == {"block_q": 256, "block_kv": 256, "block_kv_compute": 256}
    assert answered.verdict is (Verdict.UNKNOWN if compiler.available() else Verdict.PROVED)


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("[]", (1, 1), "expected a mapping"),
        ("trace: a:b\ntarget: v5e\nargs: []\ntune: {a: 1}\nkernels: 1", (5, 1), "unknown key 'kernels'"),
        ("trace: a:b\ntarget: v5e\nargs: []", (1, 1), "'tune' is missing"),
        ("trace: a:b\ntarget: v5e\nargs: 3\ntune: {a: 1}", (3, 7), "'args': expected a list"),
        ("trace: a:b\ntarget: v5e\nargs: ['f33[8]']\ntune: {a: 1}", (3, 7), "unknown element type"),
        ("trace: a:b\ntarget: v9\nargs: []\ntune: {a: 1}", (2, 9), "unknown target"),
        ("trace: a:b\ntarget: v5e\nargs: []\ntune: {a: x}", (4, 11), "'a': expected a whole number"),
        (
            "trace: a:b\ntarget: v5e\nargs: []\ntune: {a: 1}\nconfirm: yes",
            (5, 10),
            words("kernel.part_choice", what="confirm", known="compiler", value="'yes'", near=""),
        ),
        ("trace: a:b\ntarget: v5e\nargs: []\ntune: {a: 1}\ncost: z", (5, 7), "z is not known"),
        ("trace: a:b\ntarget: triton\nargs: []\ntune: {a: 1}", (2, 9), stretch("searching.no_tpu")),
        ("trace: a:b\ntarget: v5e\nargs: []\ntune: {a: 1}\nstep_overhead: long", (5, 16), "a time such as"),
    ],
)
def test_errors_say_where(text: str, where: tuple[int, int], what: str) -> None:
    with pytest.raises(LayoutError, match=what) as caught:
        read(read_yaml(text, "f.yaml"), "f.yaml")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("f.yaml", *where)


@pytest.mark.parametrize(
    ("name", "arg", "what"),
    [
        ("missing", '"f32[512,128]"', "has no 'missing'"),
        ("copy", '"f32[512,128]", 3', "fail alike: .*takes"),
    ],
)
def test_a_wrong_call_is_no_answer(name: str, arg: str, what: str) -> None:
    with pytest.raises(LayoutError, match=what):
        found(problem(name, arg, "{rows: [8, 16]}"))
