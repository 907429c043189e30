"""VMEM: what windows and scratch take is proved in those words; what spills is nobody's to know but the compiler's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli import main as cli
from layoutproof.kernel.kernel import CompilerAnswer
from layoutproof.pallas.judge import judge, kernel_of, kernel_target

pytestmark = pytest.mark.slow

PROVED, REFUTED, UNKNOWN = lp.Verdict.PROVED, lp.Verdict.REFUTED, lp.Verdict.UNKNOWN


def matmul(bm: int, bn: int, bk: int) -> dict[str, Any]:
    """A bf16 matmul of 4096^3 with a f32 accumulator: libtpu 0.0.52 needs 16.3 MiB for (512, 1024, 2048) on v5e."""
    grid = {"i": 4096 // bm, "j": 4096 // bn, "k": 4096 // bk}
    inputs = [
        {"name": "x", "array": "bf16[4096,4096]", "block": [bm, bk], "index": "(i, j, k) -> (i, k)"},
        {"name": "y", "array": "bf16[4096,4096]", "block": [bk, bn], "index": "(i, j, k) -> (k, j)"},
    ]
    output = {"name": "o", "array": "bf16[4096,4096]", "block": [bm, bn], "index": "(i, j, k) -> (i, j)"}
    scratch = [{"array": f"f32[{bm},{bn}]", "memory": "vmem"}]
    semantics = ["parallel", "parallel", "arbitrary"]
    return {"kernel": {"grid": grid, "inputs": inputs, "outputs": [output], "scratch": scratch, "semantics": semantics}}


def softmax() -> dict[str, Any]:
    """Rows of bf16 in blocks of (512, 4096): 16 MiB of windows, refused on v5e for what spills."""
    row = {"array": "bf16[4096,4096]", "block": [512, 4096], "index": "i -> (i, 0)"}
    return {"kernel": {"grid": [8], "inputs": [row], "outputs": [row]}}


REFUSED_BY_THE_COMPILER = {"matmul": matmul(512, 1024, 2048), "softmax": softmax()}
SAYS = "windows + scratch = 16777216 of 16777216 bytes, a lower bound; spills not counted"


@pytest.mark.parametrize("name", REFUSED_BY_THE_COMPILER)
def test_the_budget_says_what_it_proves(name: str) -> None:
    kernel = REFUSED_BY_THE_COMPILER[name]
    budget = lp.ask("memory_budget", kernel, target="v5e")
    assert (budget.verdict, budget.figures["proved"]) == (PROVED, SAYS)
    total = lp.ask("vmem_total", kernel, target="v5e")
    assert total.verdict is UNKNOWN
    assert total.reason.startswith("not asked: only the compiler knows")
    assert "2.18 times" in total.reason
    assert "flash attention" in total.reason
    legal = lp.ask("legal_for_target", kernel, target="v5e")
    assert legal.figures["proved"] == (
        f"no rule measured on {kernel_target('v5e').compiler} refuses it; body and spills not looked at"
    )


def test_over_the_budget_is_refuted_in_the_same_words() -> None:
    big = matmul(1024, 1024, 2048)
    budget = lp.ask("memory_budget", big, target="v5e")
    assert budget.verdict is REFUTED
    assert "windows + scratch = 25165824 of 16777216 bytes, a lower bound; spills not counted" in budget.reason
    legal = lp.ask("legal_for_target", big, target="v5e")
    assert legal.verdict is REFUTED
    assert legal.question == "legal_for_target"
    assert legal.reason.startswith("memory_budget: VMEM: windows + scratch = ")


@pytest.mark.parametrize(
    ("kernel", "part"),
    [
        (
            {"grid": [2], "outputs": [{"array": "f32[14,128]", "block": [7, 128], "index": "i -> (i, 0)"}]},
            "block_shape",
        ),
        (
            {
                "grid": [2],
                "outputs": [
                    {"array": "f32[32,128]", "block": ["Element(8)", "Element(128)"], "index": "i -> (i*4, 0)"}
                ],
            },
            "element_alignment",
        ),
    ],
)
def test_legal_for_target_stands_for_all_rules(kernel: dict[str, Any], part: str) -> None:
    result = lp.ask("legal_for_target", {"kernel": kernel}, target="v5e")
    assert result.verdict is REFUTED
    assert result.reason.startswith(f"{part}: ")


def test_only_the_compilers_answer_decides() -> None:
    kernel = kernel_of(softmax(), "test")
    target = kernel_target("v5e")

    def told(refused: str) -> Any:
        (found,) = judge(kernel, names=["vmem_total"], target=target.told(CompilerAnswer(refused, "libtpu 0.0.52")))
        return found

    assert (told("").verdict, told("").decided_by) == (PROVED, "libtpu 0.0.52")
    wrong = told("Scoped allocation with size 19.63M and limit 16.00M exceeded scoped vmem limit")
    assert (wrong.verdict, wrong.severity) == (REFUTED, "error")
    assert "19.63M" in wrong.reason
    # what is refused for another reason says nothing about memory
    other = told("Invalid vector type for load")
    assert (other.verdict, other.asked, other.severity) == (UNKNOWN, False, "info")


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shown and counted as not asked, never as proved; alone it is unknown, and so is the exit code."""
    monkeypatch.chdir(tmp_path)
    Path("k.yaml").write_text(
        json.dumps({"source": "here", "layouts": {"k": softmax()}, "checks": [{"kernel": "k", "target": "v5e"}]})
    )

    def run(*words: str) -> tuple[int, str]:
        return cli.run([*words]), capsys.readouterr().out

    code, out = run("kernels", "k.yaml", "--target", "v5e")
    assert code == 0
    assert "not asked vmem_total" in out
    assert "; 1 not asked" in out.splitlines()[-1]
    assert "legal" not in out
    code, out = run("kernels", "k.yaml", "--target", "v5e", "--all")
    assert SAYS in out
    code, out = run("kernels", "k.yaml", "--target", "v5e", "--json")
    found = json.loads(out)
    assert (code, found["summary"]["not_asked"]) == (0, 1)
    (line,) = [f for f in found["kernels"][0]["findings"] if f["question"] == "vmem_total"]
    assert (line["verdict"], line["severity"], line["asked"]) == ("unknown", "info", False)
    assert run("kernels", "k.yaml", "--target", "v5e", "--property", "vmem_total")[0] == 3
    assert run("kernels", "k.yaml", "--target", "v5e", "--property", "memory_budget")[0] == 0
    assert run("check", "k.yaml")[0] == 0
    Path("t.yaml").write_text(json.dumps({"source": "here", "checks": [{"vmem_total": softmax(), "target": "v5e"}]}))
    assert run("check", "t.yaml")[0] == 3
    assert run("kernels", "k.yaml")[1].count("not asked vmem_total") == 0
