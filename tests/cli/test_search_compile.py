"""`layoutproof search --compile`: the real TPU compiler takes the best, and refuses what does not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.test_search import SMALL, SPECS, run, words, write
from tests.hardware import compiler
from tests.said import stretch

pytestmark = pytest.mark.slow

__all__ = ["run"]


@pytest.mark.skipif(bool(compiler.available()), reason=compiler.available() or "it is")
def test_the_compiler_accepts_and_refuses(run: Any) -> None:
    # by default so much is kept free that the body's registers may spill
    write((SPECS / "bodies.py").read_text(), "bodies.py")
    default = (SPECS / "matmul.yaml").read_text().replace("headroom: 21%\n", "").replace("8192", "1024")
    default = (
        default[: default.index("tune:")]
        + "tune: {bm: [512], bn: [512], bk: [512, 1024]}\n"
        + default[default.index("flops:") :]
    )
    code, out, _ = run(write(default), "--compile", "--best", "2", "--why")
    assert code == 0
    assert [line[-1] for line in words(out)[2:4]] == ["accepted", "accepted"]
    assert words(out)[1][-5:] == ["exact", "VMEM", "cycles", "rank", "compiler"]
    assert stretch("searching.own_body_asked") in out
    assert "vmem_total" in next(line for line in out.splitlines() if line.startswith("proved of each"))
    # without headroom the best fills VMEM to the last byte: the body needs some too, and the next best takes its place
    text = (SPECS / "matmul.yaml").read_text().replace("headroom: 21%", "headroom: 0%").replace("8192", "2048")
    few = "tune: {bm: [1024], bn: [1024], bk: [512, 1024]}\nflops:"
    text = text[: text.index("tune:")] + few + text[text.index("flops:") + len("flops:") :]
    code, out, _ = run(write(text), "--compile", "--best", "1", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["best"][0]["compiler"] == {"accepted": True, "said": "accepted", "message": ""}
    assert found["best"][0]["values"]["bk"] == 512
    # windows 8 MiB, scratch 4 MiB, and 880,640 bytes of registers that spill (the same in two versions of jax)
    assert found["best"][0]["exact_vmem"] == 13_463_552
    assert found["refused_by_compiler"][0]["values"]["bk"] == 1024
    assert "scoped vmem limit" in found["refused_by_compiler"][0]["message"]
    assert any("the compiler: " in why for why in found["certificate"]["cheaper_but_not_legal"])


@pytest.mark.skipif(bool(compiler.available()), reason=compiler.available() or "it is")
def test_a_stand_in_is_not_the_kernel(run: Any) -> None:
    """Windows that fill VMEM, and no body: what writes zeros is taken, the matmul would be refused."""
    few = "tune: {bm: [1024], bn: [1024], bk: [1024]}\nheadroom: 0%\nflops:"
    text = (
        SMALL[: SMALL.index("tune:")]
        + few
        + SMALL[SMALL.index("flops:") + len("flops:") :].replace("headroom: 21%", "")
    )
    code, out, _ = run(write(text), "--compile")
    assert code == 3
    assert words(out)[2][-2:] == ["windows", "only"]
    assert "accepted" not in out
    assert stretch("searching.kernel_not_compiled") in out
    assert "certificate     enumerated" in out
    code, out, _ = run(write(text), "--compile", "--json")
    found = json.loads(out)
    assert code == found["exit_code"] == 3
    assert found["best"][0]["compiler"] == {"accepted": None, "said": "windows only", "message": ""}
    assert "not the kernel" in found["compiler"]["said"]


@pytest.mark.skipif(bool(compiler.available()), reason=compiler.available() or "it is")
def test_a_wrong_body_is_no_refusal(run: Any) -> None:
    write("def matmul(x, y, o, acc):\n    o[...] = z\n", "bodies.py")
    code, _, err = run(write(SMALL.replace("note: ", "body: ")), "--compile")
    assert code == 2
    assert "NameError" in err
    write("", "bodies.py")
    code, _, err = run(write(SMALL.replace("note: ", "body: ")), "--compile")
    assert code == 2
    assert "has no 'matmul'" in err
