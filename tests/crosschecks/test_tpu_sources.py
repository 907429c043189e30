"""The sources that ask the real TPU compiler: they agree with the rules, and find a fault that is planted in them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.compiler import libtpu
from layoutproof.crosschecks import asking, compiling
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped, source
from layoutproof.crosschecks.sources import tpu_bitcasts, tpu_kernels, tpu_layouts
from layoutproof.hardware import tpu, tpu_chips, tpu_tiles
from layoutproof.hardware import tpu_kernels as rules
from layoutproof.registry.read import read_layout

pytestmark = pytest.mark.slow

live = pytest.mark.skipif(libtpu.missing() != "", reason=f"the TPU compiler: {libtpu.missing()}")


def cases(*texts: Any) -> list[Case]:
    return [Case("kernel" if isinstance(t, dict) else "layout", str(t), read_layout(t)) for t in texts]


def put(name: str, *texts: Any) -> list[Outcome]:
    return list(source(name).compare(cases(*texts)))


def kernel(array: str, block: Sequence[object], index: str, grid: int = 4, **more: Any) -> dict[str, Any]:
    out = {"array": array, "block": list(block), "index": f"(i) -> ({index})"}
    return {"kernel": {"grid": {"i": grid}, "outputs": [out], **more}}


ARRAYS = ("f32[1000,5]{0,1:T(8,128)}", "bf16[3,200]{1,0:T(4,128)(2,1)}", "s8[7]{0}", "f32[]", "s4[64,256]{1,0:E(4)}")


@live
def test_layouts_and_bytes_agree() -> None:
    outcomes = put("tpu_layouts", *ARRAYS, "f32[16,256]{1,0:T(1)}", "[8,16] sharded {devices=[2,4]<=[8]}")
    assert [type(one) for one in outcomes] == [Agree] * 6 + [Skipped]
    # eight generations: the default layout, and layout, result and bytes of the order
    assert min(one.compared for one in outcomes if isinstance(one, Agree)) >= 8 + 3 * 8


@live
@pytest.mark.parametrize(
    ("fault", "what"),
    [
        # a tile of 4 rows where there are 8
        (("SUBLANES", 4), "default layout on v2"),
        # the tie goes to the first dimension
        (("order", None), "default layout on v2"),
        # a byte more for each array
        (("bytes", None), "order asked for on v2"),
    ],
)
def test_a_planted_fault_of_layouts_is_found(
    fault: tuple[str, Any], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, value = fault
    if name == "SUBLANES":
        monkeypatch.setattr(tpu, "SUBLANES", value)
    elif name == "order":
        monkeypatch.setattr(tpu, "_cheapest_pair", lambda shape, rows: (0, 1))
    else:
        size = tpu_layouts.array_size
        monkeypatch.setattr(tpu_layouts, "array_size", lambda layout: size(layout) + 1)  # type: ignore[operator]
    (found,) = put("tpu_layouts", "f32[64,256]{1,0}")
    assert isinstance(found, Disagree)
    assert found.what == what
    assert found.ours != found.theirs


@live
def test_bitcasts_agree() -> None:
    outcomes = put("tpu_bitcasts", "f32[16,8,128]{0,1,2}", "bf16[5,7]{1,0}", "f32[1000,5]", "c64[4,4]")
    assert [type(one) for one in outcomes] == [Agree, Agree, Agree, Skipped]


@live
def test_a_planted_fault_of_bitcasts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu_bitcasts, "_free", lambda move: True)
    (found,) = put("tpu_bitcasts", "bf16[5,7]{1,0}")
    assert isinstance(found, Disagree)
    assert found.what.startswith("reshape on ")
    assert found.ours.endswith("is a bitcast")
    assert found.theirs.startswith("moved: ")


KERNELS = (
    kernel("f32[64,256]", [8, 128], "i, 0"),
    kernel("s8[64,256]", [8, 100], "i, 0"),
    kernel("f32[8192,2048]", [4096, 2048], "i, 0", grid=2),
    kernel("f32[64,256]", ["Element(8)", "Element(128)"], "i*4, 0"),
)


@live
def test_kernels_agree() -> None:
    outcomes = put("tpu_kernels", *KERNELS, "f32[3,5]")
    assert [type(one) for one in outcomes] == [Agree] * 4 + [Skipped]
    taken, refused, over, unproven = (tpu_kernels.ours(tpu_kernels.kernel_of(c), "v5e", None) for c in cases(*KERNELS))
    assert taken == ("", 2 * 8 * 128 * 4)
    assert "JAX lowering" in refused[0]
    assert over[0].startswith("VMEM")
    assert "cannot prove" in unproven[0]


@live
@pytest.mark.parametrize(
    ("fault", "asked", "what", "words"),
    [
        ("rows", kernel("f32[64,256]", [4, 128], "i, 0"), "kernel on v2", "this is a bug of our rules"),
        ("alarm", kernel("f32[64,256]", [8, 128], "i, 0"), "kernel on v2", "this is a bug of our rules"),
        ("limit", kernel("f32[8192,2048]", [4096, 2048], "i, 0", grid=2), "kernel on v2", "would exceed memory"),
        ("bytes", kernel("f32[64,256]", [8, 128], "i, 0"), "bytes of VMEM on v2", "8192"),
    ],
)
def test_a_planted_fault_of_kernels_is_found(
    fault: str, asked: dict[str, Any], what: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "rows":
        monkeypatch.setattr(rules, "SUBLANES", 4)
    elif fault == "alarm":
        monkeypatch.setattr(rules, "SUBLANES", 16)
    elif fault == "limit":
        chips = {name: _with(chip, vmem_scoped=1 << 30, vmem=1 << 30) for name, chip in tpu_chips.CHIPS.items()}
        monkeypatch.setattr("layoutproof.hardware.tpu_memory.CHIPS", chips)
    else:
        monkeypatch.setattr("layoutproof.hardware.tpu_memory.vmem_bytes", lambda *a: 2 * tpu_tiles.vmem_bytes(*a))
    (found,) = put("tpu_kernels", asked)
    assert isinstance(found, Disagree)
    assert found.what == what
    assert words in found.theirs


def _with(chip: tpu_chips.Chip, **more: int) -> tpu_chips.Chip:
    from dataclasses import replace

    return replace(chip, **more)  # type: ignore[arg-type]


@live
def test_an_abort_is_one_outcome_and_the_run_goes_on() -> None:
    past = kernel("f32[64,128]", [8, 128], "8, 0")
    outcomes = put("tpu_kernels", past, KERNELS[0])
    assert isinstance(outcomes[0], Skipped)
    # libtpu 0.0.52 refuses it in words on v2 and v3, and aborts on the others
    assert outcomes[0].reason.startswith(("aborted: the TPU compiler ended by SIGABRT", "a block lies past its array"))
    assert isinstance(outcomes[1], Agree)


@live
def test_an_abort_among_many_questions_of_one_program_costs_itself_only() -> None:
    questions = [["v5e", "f32", [8, 128]], ["v5e", "f32", [2**31 - 1, 2**31 - 1]], ["v5e", "s8", [8, 128]]]
    program = asking.BatchedProgram(questions, lambda some: ["defaults", list(some)])
    (found,) = asking.of_programs([program], lambda _, said: said)
    assert found[0] == "{1,0:T(8,128)}"
    assert found[2] == "{1,0:T(8,128)(4,1)}"
    assert isinstance(found[1], asking.Failed)
    assert "overflow in static extent product" in str(found[1])
    assert str(found[1]).startswith("aborted: ")


HLO = """HloModule jit_f, input_output_alias={ {0}: (0, {}, may-alias) }, entry_computation_layout={(f32[4,2]{1,0:T(4,128)}, /*index=1*/f32[])->(f32[8]{0:T(128)}, f32[])}, x=1


ENTRY %main.1 (a: f32[4,2], b: f32[]) -> (f32[8], f32[]) {
  %a = f32[4,2]{1,0:T(4,128)} parameter(0)
  %b = f32[] parameter(1)
  %s = (f32[4,2]{1,0:T(4,128)S(1)}, f32[4,2]{1,0:T(4,128)}, u32[]{:S(2)}) copy-start(%a)
  %d = f32[4,2]{1,0:T(4,128)S(1)} copy-done(%s)
  %c = f32[4,2]{%ORDER%:T(4,128)} copy(%d), metadata={op_name="x"}
  %v = f32[8]{0:T(128)} bitcast(%c)
  ROOT %t = (f32[8]{0:T(128)}, f32[]) tuple(%v, %b)
}
"""  # noqa: E501


@pytest.mark.parametrize(("order", "way"), [("1,0", ""), ("0,1", "copy")])
def test_what_moves_is_read_from_the_program(order: str, way: str) -> None:
    """From one memory to another in one layout is no move; into another order is."""
    text = HLO.replace("%ORDER%", order)
    assert compiling._shapes(text) == (["f32[4,2]{1,0:T(4,128)}", "f32[]"], ["f32[8]{0:T(128)}", "f32[]"])
    assert compiling._ways(text, 2) == [way, ""]


def test_without_the_compiler_it_is_skipped_and_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libtpu, "missing", lambda library="": "no libtpu (pip install libtpu)")
    found = lp.crosscheck("f32[3,5]{1,0}", sources=["tpu_layouts"])
    assert found.exit_code == 3
    assert "no libtpu (pip install libtpu)" in str(found)


@live
def test_the_command() -> None:
    run = [sys.executable, "-m", "layoutproof", "crosscheck", "f32[1000,5]{0,1}", "--source", "tpu_layouts", "--json"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["sources"]
    assert row["version"] == libtpu.version()
    assert row["agree"] == 1
