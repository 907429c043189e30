"""What headroom sets aside is no answer and proves nothing; what bodies compute is counted, and the two forms agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli import main as cli
from tests.said import stretch, words

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="JAX is not installed")

KERNELS = Path(__file__).resolve().parents[2] / "benchmarks" / "search_kernels.py"
MATMUL = ["bf16[2048,2048]", "bf16[2048,2048]"]


def traced(function: str, args: list[str], tune: dict[str, str], **more: Any) -> Any:
    return lp.search(f"{KERNELS}:{function}", args=args, tune=tune, target="v5e", **more)


def test_the_two_forms_of_one_kernel_give_one_answer() -> None:
    ready = lp.search("matmul", sizes=[2048, 2048, 2048], target="v5e", headroom="matmul", best=1).as_dict()["best"][0]
    tune = {"bm": "512,1024", "bn": "512,1024", "bk": "512,1024,2048"}
    found = traced("matmul", MATMUL, tune, best=1)
    own = found.as_dict()["best"][0]
    assert (own["values"], own["cost"]) == (ready["values"], ready["cost"])
    assert own["shapes"] == [{**ready["shapes"][0], "sizes": {}}]
    assert (own["exact_vmem"], own["estimate"], own["no_estimate"]) == (None, None, "")
    (figures,) = own["shapes"]
    assert {name: own[name] for name in figures.keys() - {"sizes", "intensity"}}.items() <= figures.items()
    assert figures["flops"] == 2 * 2048**3
    # libtpu 0.0.52 estimates 141,863 cycles, and 149,743 or more for every one that sums over two or more steps
    assert (own["values"], figures["carried"]) == ({"bm": 512, "bn": 512, "bk": 2048}, 0)
    assert words("searching.headroom_of_registers", percent=26, source="matmul by its body") in found.why()


def test_what_libtpu_takes_is_not_proved_to_be_none() -> None:
    """512, 512, 2048 by default is within 74 %; 1024, 1024, 1024 fills the limit by its windows alone."""
    found = traced("matmul", MATMUL, {"bm": "1024", "bn": "1024", "bk": "1024"})
    document = found.as_dict()
    assert (found.verdict, found.exit_code) == (lp.Verdict.UNKNOWN, 3)
    assert document["refused"] == {}
    assert document["set_aside"]["why"] == "VMEM model above 74 % of the limit"
    assert [one["values"] for one in document["set_aside"]["candidates"]] == [{"bm": 1024, "bn": 1024, "bk": 1024}]
    assert traced("matmul", MATMUL, {"bm": "1024", "bn": "1024", "bk": "1024"}, headroom="0%").exit_code == 0
    # what fits nowhere is refused, and then there is none
    assert traced("matmul", MATMUL, {"bm": "2048", "bn": "2048", "bk": "2048"}).exit_code == 1


def test_a_product_that_the_body_works_on_is_held() -> None:
    """libtpu refuses flash attention in blocks of 2048 x 2048 on v5e for its scores of 16 MiB."""
    document = traced("flash", ["bf16[4,2048,128]"] * 3, {"bq": "1024,2048", "bk": "2048"}).as_dict()
    assert [one["values"] for one in document["best"]] == [{"bq": 1024, "bk": 2048}]
    assert [one["values"]["bq"] for one in document["set_aside"]["candidates"]] == [2048]
    (figures,) = document["best"][0]["shapes"]
    assert figures["time"] >= figures["flops"] * 10**12 // 197_000_000_000_000


def test_of_declared_kernels_too() -> None:
    every = lp.search("matmul", sizes=[1024, 1024, 1024], headroom="99%")
    assert (every.verdict, every.exit_code) == (lp.Verdict.UNKNOWN, 3)
    assert stretch("searching.set_aside_by_headroom", candidates="candidates") in str(every)
    assert str(every).endswith("target          v5e, since none is named; --target says another")
    some = lp.search("matmul", sizes=[1024, 1024, 1024], target="v5e", headroom="25%")
    document = some.as_dict()
    aside = document["set_aside"]
    assert (aside["count"], aside["why"]) == (3, "VMEM model above 75 % of the limit")
    assert aside["candidates"][0] == {"values": {"bm": 896, "bn": 1024, "bk": 1024}, "cost": 26809764, "vmem": 13107200}
    assert "set aside       3 candidates: VMEM model above 75 % of the limit; nothing is proved of them" in str(some)
    counted = len(document["best"]) + sum(document["refused"].values()) + aside["count"] + document["not_judged"]
    assert counted == document["candidates"]
    assert "that the rules allow and headroom leaves costs less" in str(some)
    assert "none is named" not in str(some)


def test_a_refused_rule_has_its_reason_and_page() -> None:
    """Of few candidates all that are refused count, those that cost more than what is shown too."""
    found = traced("transpose", ["f32[1024,1024]"], {"bm": "100,200,256,512", "bn": "256,512"}, best=1)
    refused = found.as_dict()["refused"]
    assert sum(refused.values()) == 4
    assert all(why.startswith("block_shape ") for why in refused)
    text = found.why()
    assert "because dimension" in text
    assert "layoutproof explain block_shape" in text


BLOCKS = """
target: v5e
kernel:
  grid: ["cdiv(M, bm)"]
  inputs:
    - {name: x, array: "f32[M,N]", block: [bm, bn], index: "(i) -> (i, 0)"}
  outputs:
    - {name: o, array: "f32[M,N]", block: [bm, bn], index: "(i) -> (i, 0)"}
sizes: {M: 1024, N: 1000}
tune: {bm: [4, 12, 100, 128, 256], bn: [100, 128, 1000]}
constraints: ["bm >= 8"]
"""


def test_every_candidate_of_a_declared_kernel_is_accounted_for() -> None:
    """Those left out before the search too, each by its own reason: a constraint is no rule of blocks."""
    found = lp.search(BLOCKS, best=1)
    document = found.as_dict()
    assert document["refused"] == {"bm >= 8": 3, "block_shape x": 8, "outputs_covered o": 2}
    assert set(document["because"]) == {"block_shape x", "outputs_covered o"}
    assert "nor a multiple of" in document["because"]["block_shape x"]["reason"]
    assert (len(document["best"]), document["not_judged"], document["unknown"]) == (1, 0, {})
    assert sum(document["refused"].values()) + 2 == document["candidates"]  # the second legal one is dearer
    assert "refused         13 candidates: 8 block_shape x, 3 bm >= 8, .." in str(found)
    assert ("because " + words("pallas.rows_unwritten", operand="o", rows="0:128, 128:256")) in found.why()
    assert "compute         not counted, since the file states no flops" in str(found)


def test_what_is_kept_free_of_a_declared_kernel_is_what_its_file_states(tmp_path: Path) -> None:
    """Its `body:` is run by --compile alone, so that without a statement it is that of the worst kind."""
    folder = Path(__file__).resolve().parents[2] / "specs" / "search"
    text = (folder / "matmul.yaml").read_text().replace("8192", "1024")
    (tmp_path / "bodies.py").write_text("raise SystemExit('the body was run')")
    kept = []
    for said in (text, text.replace("headroom: 21%\n", "")):
        (tmp_path / "matmul.yaml").write_text(said)
        kept.append(lp.search(tmp_path / "matmul.yaml", best=1).as_dict()["model"]["headroom_percent"])
    assert kept == [21, 55]


@pytest.mark.parametrize("wrong", ["-4", "0", "x", "2.5"])
def test_a_wrong_size_is_named(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["search", "matmul", "2048", wrong, "8"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"Error: a size is a whole number of at least 1, not {wrong}"


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["search", "nowhere.py:fn", "--arg", "f32[8,128]", "--tune", "bm=128,256"]) == 2
    assert capsys.readouterr().err.splitlines() == ["nowhere.py: No such file or directory"]
    assert cli.run(["search", f"{KERNELS}:nothing", "--arg", "f32[8,128]", "--tune", "bm=128,256"]) == 2
    assert capsys.readouterr().err.splitlines() == [f"{KERNELS} has no 'nothing'"]


def test_search_and_legal_reckon_alike() -> None:
    """Above the share that a product leaves, a configuration fits by its largest input; the user's own share holds."""
    sizes = {"bm": 1024, "bn": 1024, "bk": 512}
    found = traced("matmul", MATMUL, {name: str(n) for name, n in sizes.items()})
    used = found.as_dict()["best"][0]["shapes"][0]["vmem"]
    assert used * 100 > (16 << 20) * 74
    assert found.verdict is lp.Verdict.PROVED
    assert traced("matmul", MATMUL, {name: str(n) for name, n in sizes.items()}, headroom="26%").exit_code == 3
