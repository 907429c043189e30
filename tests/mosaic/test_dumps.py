"""What is read of the compiler's files, from both versions of libtpu whose files are recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from layoutproof.mosaic import dumps
from tests.recorded import rows

VERSIONS = ("0.0.42.1", "0.0.52")
TEXTS = {(row["libtpu"], row["kernel"], row["file"]): row["text"] for row in rows("kernel_dumps.jsonl")}


@pytest.mark.parametrize("version", VERSIONS)
def test_vmem_by_name(version: str) -> None:
    """Windows, scratch and spills, in bytes that add up to the total."""
    found = dumps.vmem(TEXTS[version, "mm", "vmem_report"], "mm.1")
    assert found is not None
    kinds = [(kind, size) for kind, _, size in found["parts"]]
    assert kinds == [("scratch", 1 << 20), *[("window", 1 << 20)] * 3, ("spill", 356352)]
    assert found["total"] == sum(size for _, size in kinds) == 4550656
    assert found["parts"][2][1] == "input window of input 1, bf16[512,512], 2 buffers"


def test_vmem_of_what_the_report_does_not_speak_of() -> None:
    """None, never 0: another operation, the copy of one, a text without data, one that is cut off."""
    text = TEXTS["0.0.52", "mm", "vmem_report"]
    assert dumps.CALLER in text
    assert dumps.vmem(text, "other.1") is None
    assert dumps.vmem(text, dumps.CALLER) is None
    assert dumps.vmem("", "mm.1") is None
    assert dumps.vmem(text[: len(text) // 2], "mm.1") is None


@pytest.mark.parametrize(
    ("version", "kernel", "expected"),
    [
        ("0.0.52", "concat", [["kernels/mm.py", 31, {"rotates": 32, "unpacks": 64, "packs": 64}]]),
        ("0.0.42.1", "concat", [["kernels/mm.py", 31, {"rotates": 32, "unpacks": 64, "packs": 64}]]),
        ("0.0.52", "mm", [["kernels/mm.py", 10, {"reloads": 18}]]),
        # the older one ties no reload to a line: it is counted, at no line
        ("0.0.42.1", "mm", [["", 0, {"reloads": 15}]]),
        ("0.0.52", "helped", []),
    ],
)
def test_moves_by_line(version: str, kernel: str, expected: list[object]) -> None:
    """Operations that move data, at the line that the compiler names; stores of spills carry none."""
    found = dumps.lines(TEXTS[version, kernel, "bundles"])
    assert found["lines"] == expected
    assert found["stores"] == (12 if kernel == "mm" else 0)


def test_scalars_that_spill_are_no_vmem() -> None:
    """Scalar registers spill into SMEM."""
    text = "     0   :  { %5 = sst [smem:[#allocation3_spill]] %s9  ;;  %s4 = sld [smem:[#allocation3_spill]] }\n"
    assert dumps.lines(text) == {"lines": [], "slots": 0, "stores": 0}
    text = '     0   :  { %v4 = vld [vmem:[#allocation3_spill] sm:$0xff] /* loc("a.py":8:2 to :9) */ }\n'
    assert dumps.lines(text) == {"lines": [["a.py", 8, {"reloads": 1}]], "slots": 1, "stores": 0}


@pytest.mark.parametrize("version", VERSIONS)
def test_relayouts(version: str) -> None:
    """Under both names of the operation; the line is the innermost of the user's."""
    found = dumps.relayouts(TEXTS[version, "concat", "relayout"])
    assert [row[:3] for row in found] == [
        ["16,{0,0},(8,128)", "16,{0,0},(16,128)", "512x64xbf16"],
        ["16,{0,0},(8,128)", "16,{0,64},(16,128)", "512x64xbf16"],
        ["16,{0,0},(16,128)", "16,{0,0},(8,128)", "512x128xbf16"],
    ]
    assert {tuple(row[3:]) for row in found} == {("kernels/mm.py", 31)}
    # a helper of the user's: its own line, not that of its call; a constant has none
    lines = [row[4] for row in dumps.relayouts(TEXTS[version, "helped", "relayout"])]
    assert sorted(lines) == [0, 35, 35, 41]


def test_places() -> None:
    """A location that refers to itself, or to nothing, is no line."""
    assert dumps.place("#loc1", {"#loc1": "callsite(#loc1 at #loc1)"}) == ("", 0)
    assert dumps.place("#loc", {"#loc": "unknown"}) == ("", 0)
    assert dumps.place('"<frozen>":3:1', {}) == ("<frozen>", 3)


@pytest.mark.parametrize(("version", "cycles"), [("0.0.52", 159117), ("0.0.42.1", 158496)])
def test_cycles(version: str, cycles: int, tmp_path: Path) -> None:
    """Of each operation in its own file, whichever name comes last."""
    assert dumps.schedule(tmp_path) == {}
    text = TEXTS[version, "mm", "profile"]
    (tmp_path / "mm.1_TPU v5 lite_static_llo_profile.textproto").write_text(text)
    (tmp_path / "reshape_TPU v5 lite_static_llo_profile.textproto").write_text(text.replace("mm.1", "reshape"))
    assert dumps.schedule(tmp_path) == {"mm.1": cycles, "reshape": cycles}
