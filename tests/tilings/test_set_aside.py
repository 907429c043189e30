"""What headroom sets aside is no answer and proves nothing; what bodies compute is counted, and the two forms agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli import main as cli

pytest.importorskip("jax", reason="JAX is not installed")

KERNELS = Path(__file__).resolve().parents[2] / "benchmarks" / "search_kernels.py"
MATMUL = ["bf16[2048,2048]", "bf16[2048,2048]"]


def traced(function: str, args: list[str], tune: dict[str, str], **more: Any) -> Any:
    return lp.search(f"{KERNELS}:{function}", args=args, tune=tune, target="v5e", **more)


def test_the_two_forms_of_one_kernel_give_one_answer() -> None:
    ready = lp.search("matmul", sizes=[2048, 2048, 2048], target="v5e", headroom="matmul", best=1).as_dict()["best"][0]
    tune = {"bm": "512,1024", "bn": "512,1024", "bk": "512,1024"}
    found = traced("matmul", MATMUL, tune, best=1)
    own = found.as_dict()["best"][0]
    assert (own["values"], own["cost"]) == (ready["values"], ready["cost"])
    assert own["flops"] == 2 * 2048**3
    assert "headroom 21% of VMEM, kept free for registers that spill; matmul by its body" in found.why()


def test_what_libtpu_takes_is_not_proved_to_be_none() -> None:
    """512, 512, 2048 by default is within 79 %; 1024, 1024, 1024 fills the limit by its windows alone."""
    found = traced("matmul", MATMUL, {"bm": "1024", "bn": "1024", "bk": "1024"})
    document = found.as_dict()
    assert (found.verdict, found.exit_code) == (lp.Verdict.UNKNOWN, 3)
    assert document["refused"] == {}
    assert document["set_aside"]["why"] == "VMEM model above 79 % of the limit"
    assert [one["values"] for one in document["set_aside"]["candidates"]] == [{"bm": 1024, "bn": 1024, "bk": 1024}]
    assert traced("matmul", MATMUL, {"bm": "1024", "bn": "1024", "bk": "1024"}, headroom="0%").exit_code == 0
    # what fits nowhere is refused, and then there is none
    assert traced("matmul", MATMUL, {"bm": "2048", "bn": "2048", "bk": "2048"}).exit_code == 1


def test_a_product_that_the_body_works_on_is_held() -> None:
    """libtpu refuses flash attention in blocks of 2048 x 2048 on v5e for its scores of 16 MiB."""
    document = traced("flash", ["bf16[4,2048,128]"] * 3, {"bq": "1024,2048", "bk": "2048"}).as_dict()
    assert [one["values"] for one in document["best"]] == [{"bq": 1024, "bk": 2048}]
    assert [one["values"]["bq"] for one in document["set_aside"]["candidates"]] == [2048]
    assert document["best"][0]["time"] >= document["best"][0]["flops"] * 10**12 // 197_000_000_000_000


def test_of_declared_kernels_too() -> None:
    every = lp.search("matmul", sizes=[1024, 1024, 1024], headroom="99%")
    assert (every.verdict, every.exit_code) == (lp.Verdict.UNKNOWN, 3)
    assert "candidates are set aside by headroom, and nothing is proved of them" in str(every)
    assert str(every).endswith("target          v5e, since none is named; --target says another")
    some = lp.search("matmul", sizes=[1024, 1024, 1024], target="v5e", headroom="25%")
    assert some.as_dict()["set_aside"] == {"count": 3, "why": "VMEM model above 75 % of the limit"}
    assert "that the rules allow and headroom leaves costs less" in str(some)
    assert "none is named" not in str(some)


def test_a_refused_rule_has_its_reason_and_page() -> None:
    """Of few candidates all that are refused count, those that cost more than what is shown too."""
    found = traced("transpose", ["f32[1024,1024]"], {"bm": "100,200,256,512", "bn": "256,512"}, best=1)
    refused = found.as_dict()["refused"]
    assert sum(refused.values()) == 4
    assert all(why.startswith("block_shape ") for why in refused)
    text = found.why()
    assert "because  dimension" in text
    assert "explain  layoutproof explain block_shape" in text


def test_a_negative_size_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["search", "matmul", "2048", "-4", "8"]) == 2
    assert "a size is a whole number of at least 1, not -4" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["search", "nowhere.py:fn", "--arg", "f32[8,128]", "--tune", "bm=128,256"]) == 2
    assert "nowhere.py" in capsys.readouterr().err
