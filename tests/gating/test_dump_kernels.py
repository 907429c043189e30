"""Mosaic kernels inside of compiled programs, gated: what changed of each, and what is refuted that was not before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="reading Mosaic kernels needs the extra [jax]")

from layoutproof.cli import main as cli
from layoutproof.gating.compiled_program import Inside, LayoutDemands
from layoutproof.gating.custom_calls import customs
from layoutproof.pallas.from_mosaic.mosaic_calls import TARGET
from tests.pallas.mosaic_texts import MODULE, WINDOW, config

pytestmark = pytest.mark.slow

PROGRAM = """\
HloModule jit_f, is_scheduled=true, \
entry_computation_layout={{(f32[32,128]{{1,0:T(8,128)}})->f32[32,128]{{1,0:T(8,128)}}}}

ENTRY %main.1 (x.1: f32[32,128]) -> f32[32,128] {{
  %x.1 = f32[32,128]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="x"}}
  ROOT %copy_kernel.1 = f32[32,128]{{1,0:T(8,128)}} custom-call(%x.1), custom_call_target="tpu_custom_call", \
operand_layout_constraints={{f32[32,128]{{1,0}}}}, metadata={{op_name="jit(f)/pallas_call"}}, backend_config={config}
}}
"""
HOLE = MODULE.replace("iteration_bounds = array<i64: 4>", "iteration_bounds = array<i64: 3>")
OUTSIDE = MODULE.replace("iteration_bounds = array<i64: 4>", "iteration_bounds = array<i64: 5>")
FIRST = WINDOW.replace("transform_0", "transform_1")
OVERWRITTEN = MODULE.replace(f"[{WINDOW}, {WINDOW}]", f"[{WINDOW}, {FIRST}]").replace(
    "  func.func @transform_0",
    "  func.func @transform_1(%i: i32) -> (i32, i32) {\n    %c = arith.constant 0 : i32\n"
    "    return %c, %c : i32, i32\n  }\n  func.func @transform_0",
)
LARGER = MODULE.replace("8x128xf32", "16x128xf32").replace("array<i64: 8, 128>", "array<i64: 16, 128>").replace(
    "iteration_bounds = array<i64: 4>", "iteration_bounds = array<i64: 2>"
)  # fmt: skip
BODY = MODULE.replace("}} {\n    return", "}} {\n    %zero = arith.constant 0 : index\n    return").replace(
    "} {\n    return", "} {\n    %zero = arith.constant 0 : index\n    return", 1
)
MEMORY = "memref<8x128xf32, #tpu.memory_space<vmem>>"


def moving(load: int = 0, store: bool = True) -> str:
    """A body that copies its block, from row `load` on."""
    lines = [f"%from = arith.constant {load} : index", "%zero = arith.constant 0 : index"]
    lines.append(f"%rows = vector.load %x[%from, %zero] : {MEMORY}, vector<8x128xf32>")
    lines += [f"vector.store %rows, %o[%zero, %zero] : {MEMORY}, vector<8x128xf32>"] if store else []
    return MODULE.replace("} {\n    return", "} {\n    " + "\n    ".join([*lines, "return"]), 1)


COPY = moving()
LATER = f"\n\n\n{MODULE}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", "off")


def program(module: str, **more: Any) -> str:
    return PROGRAM.format(config=config(module, **more))


def gate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, str]]:
    """The exit code, and each class with why, of the first finding of it."""
    code = cli.run(["gate", *arguments, "--json"])
    return code, {f["question"]: f["reason"] for f in reversed(json.loads(capsys.readouterr().out)["findings"])}


def compared(capsys: pytest.CaptureFixture[str], old: str, new: str) -> tuple[int, dict[str, str]]:
    """By two files, which says what the lock of the first says of the second, and what is computed otherwise."""
    Path("old.txt").write_text(old)
    Path("new.txt").write_text(new)
    found = gate(capsys, "old.txt", "new.txt")
    Path("dump.txt").write_text(old)
    assert cli.run(["gate", "--lock", "dump.txt"]) == 0
    capsys.readouterr()
    Path("dump.txt").write_text(new)
    code, locked = gate(capsys)
    # of texts values are compared; of a lock file the labels of what is computed
    of_values = {"computation_differs", "function_unknown", "same_function", "other_function"}
    plain = [{kind: why for kind, why in each.items() if kind not in of_values} for each in (locked, found[1])]
    assert plain[0] == plain[1]
    assert (code, len(locked)) == (found[0], len(found[1])) or of_values & {*locked, *found[1]}
    return found


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (HOLE, "outputs_covered: no program writes outputs[0][24:32, 0:128] (block (3, 0))"),
        (OUTSIDE, "blocks_in_bounds: args[0] dimension 0 at program (4)"),
        (OVERWRITTEN, "outputs_covered"),
    ],
    ids=["hole", "outside", "overwritten"],
)
def test_a_kernel_that_becomes_wrong(module: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Denied, with the program or block that shows it; back again it is not, nor while it stays as wrong as it was."""
    code, found = compared(capsys, program(MODULE), program(module))
    assert code == 1
    assert found["refuted"].startswith(why)
    code, found = compared(capsys, program(module), program(MODULE))
    assert "refuted" not in found
    assert compared(capsys, program(module), program(module)) == (0, {})


def test_other_blocks_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Twice the rows, half the programs: right as before, and no secret."""
    code, found = compared(capsys, program(MODULE), program(LARGER))
    assert (code, "kernel" in found) == (0, True)
    assert "grid was (4), is (2); 2 steps now, 4 before (0.5 times as many)" in found["kernel"]
    code, found = compared(capsys, program(LARGER), program(MODULE))
    assert (code, "shrank" in found) == (0, False)
    assert "4 steps now, 2 before (2 times as many), on blocks of 8192 bytes, 16384 before" in found["kernel"]


def test_another_body_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """It is judged, and as wrong as it was: it stores nothing, here and there."""
    assert BODY != MODULE
    code, found = compared(capsys, program(MODULE), program(BODY))
    assert (code, list(found)) == (0, ["kernel_body"])
    assert "as before, outputs_stored is refuted" in found["kernel_body"]


@pytest.mark.parametrize(
    ("wrong", "why", "also"),
    [(moving(load=1), "body_in_bounds: ", set()), (moving(store=False), "outputs_stored: ", {"other_function"})],
    ids=["outside", "unstored"],
)
def test_a_body_that_becomes_wrong_is_denied(
    wrong: str, why: str, also: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Grid and blocks are the same; the other way round it is a change that is said, and nothing is denied."""
    code, found = compared(capsys, program(COPY), program(wrong))
    assert (code, set(found)) == (1, {"refuted", "kernel_body", *also})
    assert found["refuted"].startswith(why)
    assert "before, every question about it was proved; now, " in found["kernel_body"]
    code, found = compared(capsys, program(wrong), program(COPY))
    assert (code, set(found)) == (0, {"kernel_body"})
    assert "now, every question about it is proved" in found["kernel_body"]


def test_a_body_that_is_unknown_now_is_not_green(capsys: pytest.CaptureFixture[str]) -> None:
    """It reads where the number of its device says; as unknown as it was, it is no finding."""
    device = '%id = "tpu.device_id"() : () -> i32\n    %from = arith.index_cast %id : i32 to index'
    odd = COPY.replace("%from = arith.constant 0 : index", device)
    code, found = compared(capsys, program(COPY), program(odd))
    assert (code, set(found)) == (3, {"unknown", "kernel_body"})
    assert found["unknown"].startswith("of the body: body_in_bounds: ")
    another = odd.replace("%zero = ", "%more = arith.constant 7 : index\n    %zero = ")
    assert (another != odd, compared(capsys, program(odd), program(another))[0]) == (True, 0)


def test_a_question_that_is_unknown_now_is_not_hidden_by_another_that_was() -> None:
    """Each question is held against itself before; one that stays unknown is no finding."""

    def kernel(digest: str, covered: str) -> list[LayoutDemands]:
        verdicts = (("unknown", "blocks_in_bounds: by its index map"), (covered, "outputs_covered: by a table"))
        return [LayoutDemands(TARGET, "copy", written=digest, inside=Inside((), digest, verdicts, ()))]

    found = customs(kernel("a", "proved"), kernel("b", "unknown"))
    assert [f.question for f in found] == ["unknown", "kernel_body"]
    assert found[0].reason.startswith("outputs_covered: ")
    assert [f.question for f in customs(kernel("a", "unknown"), kernel("b", "unknown"))] == ["kernel_body"]
    assert [f.question for f in customs(kernel("a", "refuted"), kernel("b", "unknown"))] == ["kernel_body"]


def test_a_lock_without_bodies_cannot_tell(capsys: pytest.CaptureFixture[str]) -> None:
    Path("dump.txt").write_text(program(COPY))
    assert cli.run(["gate", "--lock", "dump.txt"]) == 0
    capsys.readouterr()
    head, *lines = Path("layoutproof.lock").read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    kept = [[*line[:3], line[3][:4]] if line[1] == "kernel" else line for line in kept]
    Path("layoutproof.lock").write_text("\n".join([head, *map(json.dumps, kept)]) + "\n")
    assert gate(capsys) == (0, {})
    Path("dump.txt").write_text(program(moving(load=1)))
    code, found = gate(capsys)
    assert (code, set(found)) == (3, {"unknown", "kernel_body"})
    assert "write it anew" in found["unknown"]


def test_the_same_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    """On other lines of the user's program, with other notes of the compiler: nothing."""
    assert compared(capsys, program(MODULE), program(LATER)) == (0, {})
    assert compared(capsys, program(MODULE), program(MODULE, retry_config={"retry_count": "1"})) == (0, {})


def test_a_kernel_more_and_a_kernel_less(capsys: pytest.CaptureFixture[str]) -> None:
    """A new one is judged: a wrong one is refuted; one less is said. A copy more computes the same."""
    without = "\n".join(line for line in program(MODULE).splitlines() if "copy_kernel" not in line)
    without = without.replace("  %x.1 =", "  ROOT %x.1 =")
    code, found = compared(capsys, without, program(COPY))
    assert (code, sorted(found)) == (0, ["added", "same_function"])
    code, found = compared(capsys, without, program(HOLE))
    assert (code, found["refuted"].startswith("outputs_covered")) == (1, True)
    code, found = compared(capsys, without, program(moving(load=1)))
    assert (code, found["refuted"].startswith("body_in_bounds")) == (1, True)
    code, found = compared(capsys, program(MODULE), without)
    assert (code, sorted(found)) == (1, ["computation_differs", "function_unknown", "vanished_call"])


def test_a_kernel_that_cannot_be_read_any_more(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody can tell, so it is never green."""
    code, found = compared(capsys, program(MODULE), program(MODULE, something_new={"x": 1}))
    assert (code, list(found)) == (3, ["unknown"])
