"""What grows in cost or changes in meaning between two dumps, gated as a user does it; each with a twin that passes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli import main as cli
from layoutproof.core.result import Verdict
from layoutproof.gating.lock import drift, read_lock
from layoutproof.gating.states import File

DUMP = """\
HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, \
entry_computation_layout={(f32[64,256]{1,0:T(8,128)}, f32[64,256]{1,0:T(8,128)})->\
(f32[64,256]{1,0:T(8,128)}, f32[128,256]{1,0:T(8,128)})}, num_partitions=4

%add.clone (x.9: f32[], y.9: f32[]) -> f32[] {
  %x.9 = f32[]{:T(128)} parameter(0)
  %y.9 = f32[]{:T(128)} parameter(1)
  ROOT %add.9 = f32[]{:T(128)} add(%x.9, %y.9)
}

%max.clone (x.8: f32[], y.8: f32[]) -> f32[] {
  %x.8 = f32[]{:T(128)} parameter(0)
  %y.8 = f32[]{:T(128)} parameter(1)
  ROOT %maximum.8 = f32[]{:T(128)} maximum(%x.8, %y.8)
}

%cond.1 (c.1: (s32[], f32[64,256])) -> pred[] {
  %c.1 = (s32[]{:T(128)}, f32[64,256]{1,0:T(8,128)}) parameter(0)
  %i.1 = s32[]{:T(128)} get-tuple-element(%c.1), index=0
  %ten.1 = s32[]{:T(128)} constant(10)
  ROOT %lt.1 = pred[]{:T(512)} compare(%i.1, %ten.1), direction=LT
}

%body.1 (b.1: (s32[], f32[64,256])) -> (s32[], f32[64,256]) {
  %b.1 = (s32[]{:T(128)}, f32[64,256]{1,0:T(8,128)}) parameter(0)
  %i.2 = s32[]{:T(128)} get-tuple-element(%b.1), index=0
  %v.2 = f32[64,256]{1,0:T(8,128)} get-tuple-element(%b.1), index=1
  %one.2 = s32[]{:T(128)} constant(1)
  %next.2 = s32[]{:T(128)} add(%i.2, %one.2)
  %sine.2 = f32[64,256]{1,0:T(8,128)} sine(%v.2), metadata={op_name="jit(step)/while/sin"}
  ROOT %tuple.2 = (s32[]{:T(128)}, f32[64,256]{1,0:T(8,128)}) tuple(%next.2, %sine.2)
}

ENTRY %main.1 (x.1: f32[64,256], y.1: f32[64,256]) -> (f32[64,256], f32[128,256]) {
  %x.1 = f32[64,256]{1,0:T(8,128)} parameter(0), sharding={devices=[2,2]<=[4]}, metadata={op_name="x"}
  %y.1 = f32[64,256]{1,0:T(8,128)} parameter(1), sharding={devices=[2,2]<=[4]}, metadata={op_name="y"}
  %psum.1 = f32[64,256]{1,0:T(8,128)S(1)} all-reduce(%x.1), channel_id=1, replica_groups={{0,2},{1,3}}, \
use_global_device_ids=true, to_apply=%add.clone, metadata={op_name="jit(step)/psum"}
  %swap.1 = f32[64,256]{1,0:T(8,128)} collective-permute(%psum.1), channel_id=2, \
source_target_pairs={{0,1},{1,0},{2,3},{3,2}}, metadata={op_name="jit(step)/ppermute"}
  %all-gather.1 = f32[128,256]{1,0:T(8,128)} all-gather(%y.1), channel_id=3, replica_groups=[2,2]<=[4], \
dimensions={0}, use_global_device_ids=true, metadata={op_name="jit(step)/all_gather"}
  %iota.1 = f32[64,256]{1,0:T(8,128)} iota(), iota_dimension=0, metadata={op_name="jit(step)/iota"}
  %turned.1 = f32[64,256]{1,0:T(8,128)} custom-call(%swap.1), custom_call_target="Turn", \
operand_layout_constraints={f32[64,256]{1,0:T(8,128)}}, metadata={op_name="jit(step)/turn"}
  %sum.1 = f32[64,256]{1,0:T(8,128)} add(%turned.1, %iota.1), metadata={op_name="jit(step)/add"}
  %zero.1 = s32[]{:T(128)} constant(0)
  %start.1 = (s32[]{:T(128)}, f32[64,256]{1,0:T(8,128)}) tuple(%zero.1, %sum.1)
  %while.1 = (s32[]{:T(128)}, f32[64,256]{1,0:T(8,128)}) while(%start.1), condition=%cond.1, body=%body.1
  %out.1 = f32[64,256]{1,0:T(8,128)} get-tuple-element(%while.1), index=1
  ROOT %tuple.1 = (f32[64,256]{1,0:T(8,128)}, f32[128,256]{1,0:T(8,128)}) tuple(%out.1, %all-gather.1)
}
"""
BYTES = 64 * 256 * 4


def gate(old: str, new: str, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the findings of `gate old.txt new.txt`."""
    for side, text in (("old.txt", old), ("new.txt", new)):
        Path(side).write_text(text)
    code = cli.run(["gate", "old.txt", "new.txt", "--json", *more])
    return code, json.loads(capsys.readouterr().out)["findings"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYOUTPROOF_CACHE", "off")


def edited(*edits: tuple[str, str]) -> str:
    """The dump with some edits, each of which is there to be made."""
    text = DUMP
    for change, to in edits:
        assert change in text, change
        text = text.replace(change, to)
    return text


GATHER = re.search(r"  %all-gather\.1 .*\n", DUMP)[0]  # type: ignore[index]
EXTRA = GATHER.replace("%all-gather.1", "%all-gather.7").replace("channel_id=3", "channel_id=7")
IN_BODY = (
    "  %sine.2 =",
    "  %psum.1 = f32[64,256]{1,0:T(8,128)S(1)} all-reduce(%v.2), channel_id=1, replica_groups={{0,2},{1,3}}, "
    'use_global_device_ids=true, to_apply=%add.clone, metadata={op_name="jit(step)/psum"}\n  %sine.2 =',
)
PSUM = re.search(r"  %psum\.1 .*\n", DUMP)[0]  # type: ignore[index]

ADD = DUMP[DUMP.index("%add.clone (") : DUMP.index("%max.clone (")]
MAX = DUMP[DUMP.index("%max.clone (") : DUMP.index("%cond.1 (")]

DENIED = {
    "donation dropped": ([("input_output_alias={ {0}: (0, {}, may-alias) }, ", "")], "lost_donation"),
    "donation to another result": ([("{ {0}: (0, {}", "{ {1}: (0, {}")], "lost_donation"),
    "a collective more": ([(GATHER, GATHER + EXTRA)], "new_collective"),
    "a reduction gone": ([(PSUM, ""), ("permute(%psum.1)", "permute(%x.1)")], "lost_exchange"),
    "an exchange gone": (
        [(re.search(r"  %swap\.1 .*\n", DUMP)[0], ""), ("(%swap.1)", "(%psum.1)")],  # type: ignore[index]
        "lost_exchange",
    ),
    "a sum along another mesh axis": ([("{{0,2},{1,3}}", "{{0,1},{2,3}}")], "regrouped"),
    "a sum of all": ([("{{0,2},{1,3}}", "{}")], "regrouped"),
    "a gather along another mesh axis": (
        [("replica_groups=[2,2]<=[4]", "replica_groups=[2,2]<=[2,2]T(1,0)")],
        "regrouped",
    ),
    "a gather in another order": ([("replica_groups=[2,2]<=[4]", "replica_groups={{1,0},{3,2}}")], "regrouped"),
    "pairs the other way": ([("{{0,1},{1,0},{2,3},{3,2}}", "{{0,2},{2,0},{1,3},{3,1}}")], "regrouped"),
    "replicas instead of devices": ([("channel_id=1, ", ""), ("use_global_device_ids=true, to_", "to_")], "regrouped"),
    "a channel of two": ([("channel_id=2", "channel_id=1")], "regrouped"),
    "another reduction": ([("to_apply=%add.clone", "to_apply=%max.clone")], "regrouped"),
    "a reduction that computes something else": (
        [("ROOT %add.9 = f32[]{:T(128)} add(", "ROOT %add.9 = f32[]{:T(128)} multiply(")],
        "regrouped",
    ),
    "a gather along another dimension": (
        [
            (
                "all-gather(%y.1), channel_id=3, replica_groups=[2,2]<=[4], dimensions={0}",
                "all-gather(%y.1), channel_id=3, replica_groups=[2,2]<=[4], dimensions={1}",
            )
        ],
        "regrouped",
    ),
    "a gather with another result": (
        [
            (
                "f32[128,256]{1,0:T(8,128)} all-gather(%y.1), channel_id=3, replica_groups=[2,2]<=[4]",
                "f32[128,512]{1,0:T(8,128)} all-gather(%y.1), channel_id=3, replica_groups=[2,2]<=[4]",
            )
        ],
        "reshaped_result",
    ),
    "a sum in a loop": ([(PSUM, ""), ("permute(%psum.1)", "permute(%x.1)"), IN_BODY], "grown_collective"),
    "more partitions": ([("num_partitions=4", "num_partitions=8")], "devices"),
    "replicas": ([("num_partitions=4", "num_partitions=4, replica_count=2")], "devices"),
    "no schedule": ([("is_scheduled=true, ", "")], "unscheduled"),
    "another target": ([('custom_call_target="Turn"', 'custom_call_target="Flip"')], "custom_call"),
    "an operand laid out otherwise": (
        [("operand_layout_constraints={f32[64,256]{1,0", "operand_layout_constraints={f32[64,256]{0,1")],
        "moved",
    ),
    "no demand any more": ([("operand_layout_constraints={f32[64,256]{1,0:T(8,128)}}, ", "")], "custom_call"),
    "from VMEM to HBM": (
        [("%psum.1 = f32[64,256]{1,0:T(8,128)S(1)}", "%psum.1 = f32[64,256]{1,0:T(8,128)}")],
        "memory_space",
    ),
    "an iota of another type": ([("%iota.1 = f32[64,256]", "%iota.1 = bf16[64,256]")], "reshaped_result"),
    "an iota along another dimension": ([("iota_dimension=0", "iota_dimension=1")], "operation"),
    "another operation": ([("add(%turned.1, %iota.1)", "subtract(%turned.1, %iota.1)")], "operation"),
    "a loop that compares otherwise": ([("direction=LT", "direction=LE")], "operation"),
}


@pytest.mark.parametrize("name", DENIED)
def test_denied(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 1, the class by name, its place in the new dump."""
    edits, kind = DENIED[name]
    new = edited(*edits)
    code, found = gate(DUMP, new, capsys)
    assert code == 1
    (one, *_) = [f for f in found if f["question"] == kind and f["severity"] == "deny"]
    gone = kind == "lost_exchange"
    assert (one["line"] > 0) is not gone


GREEN = {
    "renumbered": [
        ("%add.9", "%add.77"),
        ("%psum.1", "%psum.40"),
        ("add.clone", "region_0.3"),
        ("channel_id=1", "channel_id=9"),
    ],
    "computations in another order": [
        (ADD + MAX, MAX + ADD),
    ],
    "other metadata": [("jit(step)", "jit(train)"), ('op_name="x"', 'op_name="x" source_file="a.py" source_line=7')],
    "groups as an iota": [("{{0,2},{1,3}}", "[2,2]<=[2,2]T(1,0)")],
    "groups of a mesh": [("{{0,2},{1,3}}", "mesh['x'=2,'y'=2] {'x'}")],
    "groups of a mesh of devices": [
        ("replica_groups=[2,2]<=[4]", "replica_groups=mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'x'}")
    ],
    "a sum's groups in another order": [("{{0,2},{1,3}}", "{{3,1},{2,0}}")],
    "pairs in another order": [("{{0,1},{1,0},{2,3},{3,2}}", "{{3,2},{1,0},{2,3},{0,1}}")],
    "a layout spelled otherwise": [
        ("%iota.1 = f32[64,256]{1,0:T(8,128)}", "%iota.1 = f32[64,256]{1,0:T(8,128)(1,128)}")
    ],
    "donated as well": [("{ {0}: (0, {}, may-alias) }", "{ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }")],
    "from HBM to VMEM": [("%swap.1 = f32[64,256]{1,0:T(8,128)}", "%swap.1 = f32[64,256]{1,0:T(8,128)S(1)}")],
    "what the compiler calls for itself": [
        ("  %zero.1", '  %own.1 = f32[8]{0:T(128)} custom-call(), custom_call_target="AllocateBuffer"\n  %zero.1')
    ],
    "the compiler's own notes": [
        ('op_name="jit(step)/add"}', 'op_name="jit(step)/add"}, backend_config={"estimated_cycles":"99"}')
    ],
}
SAID = {
    "a layout spelled otherwise": {"respelled"},
    "donated as well": {"new_donation"},
    "from HBM to VMEM": {"faster_memory"},
}


@pytest.mark.parametrize("name", GREEN)
def test_green(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The twin: what is the same program, or a cheaper one, passes, and nothing is said of what is the same."""
    new = edited(*GREEN[name])
    code, found = gate(DUMP, new, capsys)
    assert (code, {f["question"] for f in found}) == (0, SAID.get(name, set()))
    assert gate(new, new, capsys) == (0, [])


def test_fewer_bytes_between_devices(capsys: pytest.CaptureFixture[str]) -> None:
    """A gather of fewer bytes, a gather less, and a small gather instead of a large one: all pass; back, none does."""
    half = "  %half.1 = f32[32,256]{1,0:T(8,128)} slice(%y.1), slice={[0:32], [0:256]}\n"
    large = EXTRA.replace("all_gather", "weights")
    fewer = half + large.replace("128,256", "64,256").replace("(%y.1)", "(%half.1)")
    small = fewer.replace("weights", "activations").replace("groups=[2,2]<=[4]", "groups={{0,2},{1,3}}")
    for old, new, kinds, back in (
        (large, fewer, {"shrunk_collective"}, "grown_collective"),
        (large, "", {"vanished_collective"}, "new_collective"),
        (large, small, {"vanished_collective", "exchanged_collective"}, "new_collective"),
    ):
        one, other = (edited((GATHER, GATHER + text)) for text in (old, new))
        code, found = gate(one, other, capsys)
        assert (code, {f["question"] for f in found}) == (0, kinds)
        code, found = gate(other, one, capsys)
        assert code == 1
        assert back in {f["question"] for f in found if f["severity"] == "deny"}


def test_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes that a rule can bound: of a new collective, of a donation, of a memory."""
    Path("pyproject.toml").write_text('[tool.layoutproof.gate]\nnew_collective = "allow, deny above 200 KiB"\n')
    new = edited((GATHER, GATHER + EXTRA))
    code, (one,) = gate(DUMP, new, capsys)
    assert (code, one["figures"], one["severity"]) == (0, {"bytes": 2 * BYTES}, "allow")
    larger = new.replace(
        "f32[128,256]{1,0:T(8,128)} all-gather(%y.1), channel_id=7",
        "f32[256,256]{1,0:T(8,128)} all-gather(%y.1), channel_id=7",
    )
    code, found = gate(DUMP, larger, capsys)
    assert (code, found[0]["figures"]) == (1, {"bytes": 4 * BYTES})
    code, (lost,) = gate(DUMP, edited(("input_output_alias={ {0}: (0, {}, may-alias) }, ", "")), capsys)
    assert (lost["figures"], lost["subject"]) == ({"bytes": BYTES}, "donation of parameter 0 (x)")


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github", "html"])
def test_every_report_names_the_class(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each form of report says the class and the line."""
    Path("old.txt").write_text(DUMP)
    Path("new.txt").write_text(edited((GATHER, GATHER + EXTRA)))
    assert cli.run(["gate", "old.txt", "new.txt", "--format", form]) == 1
    text = capsys.readouterr().out
    assert "new_collective" in text
    line = DUMP[: DUMP.index(GATHER)].count("\n") + 2
    assert str(line) in text


@pytest.mark.parametrize(
    "name", [n for n, (_, kind) in DENIED.items() if kind not in ("memory_space", "operation") and "iota" not in n]
)
def test_against_a_lock(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The lock holds what is needed to see all of it but the layout of every instruction."""
    edits, kind = DENIED[name]
    Path("dump.txt").write_text(DUMP)
    assert cli.run(["gate", "--lock", "dump.txt"]) == 0
    assert cli.run(["gate"]) == 0
    Path("dump.txt").write_text(edited(*edits))
    capsys.readouterr()
    assert cli.run(["gate", "--json"]) == 1
    assert kind in {f["question"] for f in json.loads(capsys.readouterr().out)["findings"] if f["severity"] == "deny"}


@pytest.mark.parametrize("name", GREEN)
def test_green_against_a_lock(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And passes what is the same program."""
    Path("dump.txt").write_text(DUMP)
    assert cli.run(["gate", "--lock", "dump.txt"]) == 0
    Path("dump.txt").write_text(edited(*GREEN[name]))
    capsys.readouterr()
    assert cli.run(["gate", "--json"]) == 0


def test_a_lock_without_what_a_module_says_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    """It says nothing of donation or collectives, so these are unknown; written anew, it is in step."""
    Path("dump.txt").write_text(DUMP)
    assert cli.run(["gate", "--lock", "dump.txt"]) == 0
    lines = Path("layoutproof.lock").read_text().splitlines()
    kept = [
        line
        for line in lines
        if line.startswith("#") or json.loads(line)[1] in ("parameter", "result", "copy", "bitcast")
    ]
    Path("layoutproof.lock").write_text("\n".join(kept) + "\n")
    assert cli.run(["gate"]) == 3
    said = (
        "the lock file says nothing of donation, devices, collectives, custom calls and kernels; write it anew with: "
    )
    assert f"{said}layoutproof gate --lock" in capsys.readouterr().out
    # of the state before a change
    Path("old").mkdir()
    Path("new").mkdir()
    Path("layoutproof.lock").rename("old/layoutproof.lock")
    found = read_lock(Path("old/layoutproof.lock").read_bytes(), "old/layoutproof.lock", "old")
    dump = File("dump.txt", "dump.txt", DUMP.encode())
    (finding,) = drift(found.programs["old/dump.txt"], dump, "dump.txt").findings
    assert finding.verdict is Verdict.UNKNOWN
    assert finding.reason.startswith(said)
    assert cli.run(["gate", "--lock", "dump.txt"]) == 0
    assert cli.run(["gate"]) == 0


def test_a_text_that_prints_no_sharding_is_unknown_not_resharded() -> None:
    """libtpu 0.0.52 prints none on its optimised text."""
    from layoutproof.gating.program_changes import compare
    from layoutproof.gating.states import File
    from tests.recorded import dump

    text = dump("sharded_matmul_v5e_2x2")
    bare = re.sub(r", sharding=\{devices=\[[\d,]+\][^}]*\}", "", text)
    assert "sharding={devices" not in bare
    for old, new in ((text, bare), (bare, text)):
        found = compare(File("a.txt", "a.txt", old.encode()), File("a.txt", "a.txt", new.encode()), "a.txt")
        assert [(f.question, f.subject) for f in found] == [("unknown", "shardings of the parameters")]
    assert not compare(File("a.txt", "a.txt", bare.encode()), File("a.txt", "a.txt", bare.encode()), "a.txt")
