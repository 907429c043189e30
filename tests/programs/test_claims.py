"""Claims about programs in spec files: proved, refuted with the instruction and its line, unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.in_one_process import Answer, commands
from tests.said import stretch, words

pytestmark = pytest.mark.slow

PROGRAM = """HloModule step, is_scheduled=true, num_partitions=4, input_output_alias={ {0}: (1, {}, may-alias) }

FileNames
1 "model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%body (p: (s32[], bf16[64,256], bf16[256,256])) -> (s32[], bf16[64,256], bf16[256,256]) {
  %p = (s32[], bf16[64,256]{1,0:T(8,128)(2,1)}, bf16[256,256]{1,0:T(8,128)(2,1)}) parameter(0)
  %i = s32[]{:T(128)} get-tuple-element(%p), index=0
  %h = bf16[64,256]{1,0:T(8,128)(2,1)} get-tuple-element(%p), index=1
  %w = bf16[256,256]{1,0:T(8,128)(2,1)} get-tuple-element(%p), index=2
  %one = s32[]{:T(128)} constant(1)
  %next = s32[]{:T(128)} add(%i, %one)
  %turned = bf16[64,256]{0,1:T(8,128)(2,1)} copy(%h), metadata={op_name="step/dot" stack_frame_id=1}
  %mine = bf16[64,128]{1,0:T(8,128)(2,1)} fusion(%turned, %w), kind=kOutput, calls=%inner, \
backend_config={"window_config":{"estimated_cycles":"1000"}}
  %all = bf16[64,256]{1,0:T(8,128)(2,1)} all-gather(%mine), channel_id=1, replica_groups=[2,2]<=[4], dimensions={1}, \
use_global_device_ids=true, metadata={op_name="step/dot" stack_frame_id=1}
  ROOT %t = (s32[], bf16[64,256]{1,0:T(8,128)(2,1)}, bf16[256,256]{1,0:T(8,128)(2,1)}) tuple(%next, %all, %w)
}

%inner (a: bf16[64,256], b: bf16[256,256]) -> bf16[64,128] {
  %a = bf16[64,256]{0,1:T(8,128)(2,1)} parameter(0)
  %b = bf16[256,256]{1,0:T(8,128)(2,1)} parameter(1)
  ROOT %s = bf16[64,128]{1,0:T(8,128)(2,1)} slice(%a), slice={[0:64], [0:128]}
}

%cond (q: (s32[], bf16[64,256], bf16[256,256])) -> pred[] {
  %q = (s32[], bf16[64,256]{1,0:T(8,128)(2,1)}, bf16[256,256]{1,0:T(8,128)(2,1)}) parameter(0)
  %j = s32[]{:T(128)} get-tuple-element(%q), index=0
  %end = s32[]{:T(128)} constant(5)
  ROOT %c = pred[]{:T(512)} compare(%j, %end), direction=LT
}

ENTRY %main (params: bf16[256,256], x: bf16[64,256], small: f32[8,3]) -> (bf16[64,256], f32[3,8]) {
  %params = bf16[256,256]{1,0:T(8,128)(2,1)} parameter(0), sharding={replicated}, metadata={op_name="params[\\'w\\']"}
  %x = bf16[64,256]{1,0:T(8,128)(2,1)} parameter(1), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}, \
metadata={op_name="x"}
  %small = f32[8,3]{1,0:T(8,128)} parameter(2), sharding={devices=[4,1]<=[4]}, metadata={op_name="small"}
  %zero = s32[]{:T(128)} constant(0)
  %init = (s32[], bf16[64,256]{1,0:T(8,128)(2,1)}, bf16[256,256]{1,0:T(8,128)(2,1)}) tuple(%zero, %x, %params)
  %loop = (s32[], bf16[64,256]{1,0:T(8,128)(2,1)}, bf16[256,256]{1,0:T(8,128)(2,1)}) while(%init), condition=%cond, \
body=%body
  %h1 = bf16[64,256]{1,0:T(8,128)(2,1)} get-tuple-element(%loop), index=1
  %away = f32[3,8]{1,0:T(4,128)} transpose(%small), dimensions={1,0}, metadata={op_name="step/T" stack_frame_id=1}
  ROOT %r = (bf16[64,256]{1,0:T(8,128)(2,1)}, f32[3,8]{1,0:T(4,128)}) tuple(%h1, %away)
}
"""
INNER = PROGRAM[PROGRAM.index("%inner (") : PROGRAM.index("%cond (")]
PROGRAM = PROGRAM.replace(INNER, "").replace("%body (p:", f"{INNER}%body (p:")
"""Five trips, each with a relayout of 32 KiB to 64, half of it padding, and an all-gather of 32 KiB along `model`;
a parameter on all four devices; a transpose of a parameter that is a result."""

UNKNOWN_TRIPS = PROGRAM.replace("%end = s32[]{:T(128)} constant(5)", "%end = s32[]{:T(128)} add(%j, %j)")
IN_BRANCH = """HloModule branch, is_scheduled=true, num_partitions=2

%yes (a: f32[8,128]) -> f32[8,128] {
  %a = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT %g = f32[8,128]{1,0:T(8,128)} collective-permute(%a), channel_id=1, source_target_pairs={{0,1},{1,0}}
}

%no (b: f32[8,128]) -> f32[8,128] {
  ROOT %b = f32[8,128]{1,0:T(8,128)} parameter(0)
}

ENTRY %main (p: pred[], x: f32[8,128]) -> f32[8,128] {
  %p = pred[]{:T(512)} parameter(0)
  %x = f32[8,128]{1,0:T(8,128)} parameter(1), sharding={devices=[2,1]<=[2]}
  ROOT %c = f32[8,128]{1,0:T(8,128)} conditional(%p, %x, %x), true_computation=%yes, false_computation=%no
}
"""
DYNAMIC = """HloModule dynamic, is_scheduled=true

ENTRY %main (x: f32[<=8,128]) -> f32[<=8,128] {
  %x = f32[<=8,128]{1,0:T(8,128)} parameter(0)
  ROOT %c = f32[<=8,128]{0,1:T(8,128)} copy(%x)
}
"""
ALL_GATHER = 5 * 64 * 256 * 2
MOVED = 5 * (64 + 128) * 256 * 2
CLAIMS: list[tuple[str, str, str, str]] = [
    # program, the claim, the verdict, a part of the reason
    ("step", f"collectives: step, at_most: {ALL_GATHER} bytes", "proved", ""),
    ("step", f"collectives: step, at_most: {ALL_GATHER - 1}", "refuted", "model, all (model.py:7), 32.0 KiB 5 times"),
    ("step", "collectives: step, kind: all-reduce, at_most: 0 bytes", "proved", ""),
    ("step", "collectives: step, kind: [all-gather, all-reduce], at_most: 0 bytes", "refuted", "model.py:7"),
    ("step", "collectives: step, axes: data, at_most: 0 bytes", "proved", ""),
    ("step", "collectives: step, axes: [model], at_most: 0 bytes", "refuted", "along model"),
    ("meshless", "collectives: meshless, axes: [model], at_most: 0 bytes", "unknown",
     stretch("programs.not_along_axes")),
    ("trips", "collectives: trips, at_most: 1GiB", "unknown", stretch("hlo.trips_unknown", name="loop")),
    ("trips", "collectives: trips, kind: all-reduce, at_most: 0", "proved", ""),
    ("branch", "collectives: branch, at_most: 4096", "proved", ""),
    ("branch", "collectives: branch, at_most: 0", "unknown", "in a branch"),
    ("step", f"copies: step, at_most: {MOVED}", "proved", ""),
    ("step", f"copies: step, at_most: {MOVED - 1}", "refuted", "turned (model.py:7) copy"),
    ("step", "copies: step, entry_at_most: 0", "refuted", "of parameter 2"),
    ("step", "copies: step, entry_at_most: 8KiB", "proved", ""),
    ("trips", "copies: trips, at_most: 1GiB", "unknown", "trip count"),
    ("dynamic", "copies: dynamic, at_most: 1GiB, entry_at_most: 1GiB", "unknown", "dynamic"),
    ("step", "program_padding: step, at_most: 50%", "proved", ""),
    ("step", "program_padding: step, at_most: 1%", "refuted", "hold no element; most in 1 of bf16[64,256]{0,1"),
    ("dynamic", "program_padding: dynamic, at_most: 50%", "unknown", ""),
    ("step", """layout: step, of: "params['w']", is: "bf16[256,256]{1,0:T(8,128)(2,1)}" """, "proved", ""),
    ("step", """layout: step, of: "params['w']", is: "bf16[256,256]{0,1:T(8,128)(2,1)}" """, "refuted", "not bf16["),
    ("step", 'layout: step, of: result 1, is: "f32[3,8]{1,0:T(4,128)}"', "proved", ""),
    ("step", "donated: step, of: x", "proved", ""),
    ("step", "donated: step, of: [x, 'param*']", "refuted", "params['w'] bf16[256,256]"),
    ("step", "replicated: step, above: 1MiB", "proved", ""),
    ("step", "replicated: step, above: 1KiB", "refuted",
     stretch("programs.on_all_devices", devices=4, named="params['w']")),
    ("unsaid", "replicated: unsaid, above: 1KiB", "unknown", "its sharding is not in the text"),
    ("dynamic", "replicated: dynamic, above: 1KiB", "unknown", "one device"),
    ("step", "argument_memory: step, at_most: 1MiB", "proved", ""),
    ("step", "argument_memory: step, at_most: 128KiB", "refuted", "the largest is params['w']"),
    ("dynamic", "argument_memory: dynamic, at_most: 1GiB", "unknown", "says nothing of arguments"),
    ("step", "peak_memory: step, at_most: 1GiB", "unknown", stretch("programs.compiler_silent", what="peak memory")),
    ("kept", "peak_memory: kept, at_most: 2MiB", "proved", ""),
    ("kept", "peak_memory: kept, at_most: 1MiB", "refuted", "1 more than 1048576; most of it temporaries"),
    ("step", "estimated_cycles: step, at_most: 5000", "proved", ""),
    ("step", "estimated_cycles: step, at_most: 4999", "refuted", "mine fusion, 1000 cycles 5 times"),
    ("trips", "estimated_cycles: trips, at_most: 5000", "unknown", "trip count"),
    ("dynamic", "estimated_cycles: dynamic, at_most: 5000", "unknown", "prices no operation"),
    ("step", "flops: step, at_most: 11", "proved", ""),
    ("step", "flops: step, at_most: 10", "refuted", "work: 11 flops, 1 more than 10"),
    ("trips", "flops: trips, at_most: 11", "unknown", "trip"),
    ("step", "step_time_bound: step, at_most: 1 s", "proved", ""),
    ("step", "step_time_bound: step, at_most: 1 ns", "refuted", "bytes of elements at 820 GB/s"),
    ("trips", "step_time_bound: trips, at_most: 1 s", "unknown", "no chip is named"),
    ("step", "vmem: step, at_most: 1GiB", "unknown", words("programs.no_kernel")),
    ("kernel", "vmem: kernel, at_most: 1GiB", "proved", ""),
    ("kernel", "vmem: kernel, at_most: 1KiB", "refuted", "bytes of VMEM"),
    ("kernel", "vmem: kernel, of: nothing, at_most: 1KiB", "unknown", "no kernel 'nothing'"),
    ("step", "kernels: step", "unknown", "no Pallas kernel"),
    ("kept", "kernels: kept", "unknown", "no Pallas kernel"),
]  # fmt: skip
NAMED = {
    "step": "{dump: step.hlo, mesh: {data: 2, model: 2}, target: v5e}",
    "meshless": "{dump: step.hlo}",
    "trips": "{dump: trips.hlo, mesh: {data: 2, model: 2}}",
    "branch": "{dump: branch.hlo, mesh: {x: 2}}",
    "dynamic": "{dump: dynamic.hlo}",
    "unsaid": "{dump: unsaid.hlo}",
    "kept": "{record: kept.json}",
    "kernel": "{dump: kernel.txt.gz, target: v5e}",
}
CASES = Path(__file__).resolve().parents[1] / "cases" / "hlo"


def spec(claims: list[str]) -> str:
    """A spec file with these claims about all programs."""
    named = "".join(f"  {name}: {text}\n" for name, text in NAMED.items())
    return f"programs:\n{named}checks:\n" + "".join(f"  - {{{claim}}}\n" for claim in claims)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dumps, one record with memory, and a dump with a kernel."""
    from dataclasses import replace

    from layoutproof.programs.reading import record_of
    from layoutproof.programs.record import MemoryStats

    at = tmp_path_factory.mktemp("claims")
    texts = {"step": PROGRAM, "trips": UNKNOWN_TRIPS, "branch": IN_BRANCH, "dynamic": DYNAMIC}
    texts["unsaid"] = PROGRAM.replace("sharding={replicated}, ", "")
    for name, text in texts.items():
        (at / f"{name}.hlo").write_text(text)
    record = record_of(PROGRAM.splitlines(keepends=True))
    kept = replace(record, memory=MemoryStats(180224, 40960, 40960, (1 << 20) - 180223, 0, 1 << 22))
    (at / "kept.json").write_text(kept.to_json())
    import gzip

    for path in sorted(CASES.glob("*.txt.gz")):
        if b"tpu_custom_call" in gzip.decompress(path.read_bytes()):
            (at / "kernel.txt.gz").write_bytes(path.read_bytes())
            break
    return at


@pytest.fixture(scope="module")
def answers(folder: Path) -> list[dict[str, object]]:
    """What `check --json` says of every claim, each held to its verdict and its reason by the file."""
    (folder / "claims.yaml").write_text(spec([claim for _, claim, _, _ in CLAIMS]))
    (answer,), _ = commands(folder, ["check", "claims.yaml", "--json"], seconds=120)
    found: list[dict[str, object]] = json.loads(answer.out)["results"]
    assert answer.code == 1
    return found


@pytest.mark.parametrize("number", range(len(CLAIMS)), ids=[claim for _, claim, _, _ in CLAIMS])
def test_claims(answers: list[dict[str, object]], number: int) -> None:
    """The verdict of each, and what the reason names."""
    _, _, verdict, why = CLAIMS[number]
    found = answers[number]
    assert (found["verdict"], found["status"] == "as expected") == (verdict, verdict == "proved"), found["reason"]
    assert why in str(found["reason"])


def test_what_is_expected_is_as_expected(folder: Path) -> None:
    """`expect`, `reason` and `figures` as of any other check, and unknown exits 3 where nothing is refuted."""
    told = "figures: {bytes: 163840}"
    (folder / "right.yaml").write_text(spec([f"collectives: step, at_most: 0, expect: refuted, reason: model, {told}"]))
    (folder / "wrong.yaml").write_text(spec(["collectives: step, at_most: 1GiB, figures: {bytes: 1}"]))
    (folder / "open.yaml").write_text(spec(["collectives: trips, at_most: 1GiB"]))
    lines = [["check", f"{name}.yaml"] for name in ("right", "wrong", "open")]
    (right, wrong, unknown), _ = commands(folder, *lines)
    assert (right.code, wrong.code, unknown.code) == (0, 1, 3), right.out
    assert "bytes is 163840, not 1" in wrong.out


def test_a_dump_that_changes_is_read_again(folder: Path) -> None:
    """What was answered before says nothing of another dump in the same place."""
    (folder / "again.yaml").write_text(
        "programs: {again: {dump: again.hlo}}\nchecks: [{collectives: again, at_most: 0 bytes}]\n"
    )
    (folder / "again.hlo").write_text(DYNAMIC)
    (before,), _ = commands(folder, ["check", "again.yaml"])
    (folder / "again.hlo").write_text(PROGRAM)
    (after,), _ = commands(folder, ["check", "again.yaml"])
    assert (before.code, after.code) == (0, 1)


WRONG = [
    ("collectives: stp, at_most: 0", "unknown program 'stp'" + words("core.did_you_mean", name="step")),
    ("collectives: step", "'at_most' is missing"),
    ("collectives: step, at_most: lots", "an amount of memory is a number of bytes"),
    ("collectives: step, kind: all-gathr, at_most: 0", "did you mean 'all-gather'"),
    ("collectives: step, axes: modle, at_most: 0", stretch("programs.unknown_axis", axis="modle")),
    ("copies: step", "copies needs at_most"),
    ("program_padding: step, at_most: some", stretch("programs.share_form")),
    ("layout: step, of: y, is: 'f32[8]{0}'", stretch("programs.unknown_value", name="y")),
    ("layout: step, of: x, is: 'f32[8'", "8"),
    ("donated: step, of: nothing", stretch("programs.unknown_value", name="nothing")),
]


@pytest.fixture(scope="module")
def refusals(folder: Path) -> list[Answer]:
    """What `check` says of each wrong claim, a file and a command for each."""
    for number, (claim, _) in enumerate(WRONG):
        (folder / f"bad{number}.yaml").write_text(spec([claim]))
    return commands(folder, *(["check", f"bad{number}.yaml"] for number in range(len(WRONG))))[0]


@pytest.mark.parametrize("number", range(len(WRONG)), ids=[claim for claim, _ in WRONG])
def test_wrong_claims_are_errors_at_their_place(refusals: list[Answer], number: int) -> None:
    answer = refusals[number]
    assert answer.code == 2
    assert WRONG[number][1] in answer.out
    assert f"bad{number}.yaml:{len(NAMED) + 3}" in answer.out


def test_a_program_is_one_thing(folder: Path) -> None:
    """A function or a dump, and something."""
    texts = ["{dump: step.hlo, function: 'a:f'}", "{target: v5e}", "{dump: step.hlo, mesh: {x: 0}}", "{dmp: step.hlo}"]
    whys = ["found function and dump", "found none", "at least 1", "did you mean 'dump'"]
    for number, text in enumerate(texts):
        (folder / f"many{number}.yaml").write_text(f"programs: {{step: {text}}}\nchecks: [{{kernels: step}}]\n")
    answers, _ = commands(folder, *(["check", f"many{number}.yaml"] for number in range(len(texts))))
    for answer, why in zip(answers, whys, strict=True):
        assert (answer.code, why in answer.out) == (2, True), answer.out


def test_a_function_is_compiled_once_for_all_its_claims(tmp_path: Path) -> None:
    """On the CPU, from the spec file alone; with --no-trace it is unknown, and never green."""
    pytest.importorskip("jax")
    (tmp_path / "model.py").write_text("open('traced', 'a').write('x')\ndef f(x):\n    return x @ x.T\n")
    (tmp_path / "a.yaml").write_text(
        "programs: {f: {function: 'model:f', args: ['f32[8,128]']}}\n"
        "checks:\n  - {argument_memory: f, at_most: 4KiB}\n  - {peak_memory: f, at_most: 1MiB}\n"
        "  - {collectives: f, at_most: 0 bytes}\n"
    )
    (traced, untraced), _ = commands(tmp_path, ["check", "a.yaml"], ["check", "a.yaml", "--no-trace"], seconds=120)
    assert (traced.code, untraced.code) == (0, 3), traced.out
    assert (tmp_path / "traced").read_text() == "x"
