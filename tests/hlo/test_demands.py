"""What XLA's parser demands of an instruction: each edit here is rejected by jaxlib, and is an error, never green."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.hlotext.lines import events
from tests.cli.in_one_process import commands

TEXT = """HloModule m, entry_computation_layout={(f32[2,3]{1,0}, f32[2,3]{1,0})->f32[3,2]{1,0}}

%less (a: f32[], b: f32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %lt = pred[] compare(%a, %b), direction=LT
}

%sum (c: f32[], d: f32[]) -> f32[] {
  %c = f32[] parameter(0)
  %d = f32[] parameter(1)
  ROOT %s = f32[] add(%c, %d)
}

ENTRY %main (x: f32[2,3], y: f32[2,3]) -> f32[3,2] {
  %x = f32[2,3]{1,0} parameter(0)
  %y = f32[2,3]{1,0} parameter(1)
  %zero = f32[] constant(0)
  %half = f16[] constant(65504)
  %both = f32[2,3]{1,0} add(%x, %y)
  %part = f32[1,3]{1,0} slice(%both), slice={[0:1], [0:3]}
  %row = f32[3]{0} reduce(%part, %zero), dimensions={0}, to_apply=%sum
  %ar = f32[2,3]{1,0} all-reduce(%both), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%sum
  %call = f32[2]{0} custom-call(%row), custom_call_target="f", operand_layout_constraints={f32[3]{0}}
  %sorted = f32[2]{0} sort(%call), dimensions={0}, is_stable=true, to_apply=%less
  %pair = (f32[2]{0}, f32[3]{0}) tuple(%sorted, %row)
  %first = f32[2]{0} get-tuple-element(%pair), index=0
  ROOT %t = f32[3,2]{1,0} transpose(%ar), dimensions={1,0}
}
"""
EDITS = [
    ("add(%x, %y)", "add(%x)", "the add both has 1 operand where it takes 2"),
    ("add(%x, %y)", "add(%x, %y, %x)", "has 3 operands where it takes 2"),
    ("transpose(%ar)", "transpose(%ar, %x)", "has 2 operands where it takes 1"),
    ("reduce(%part, %zero)", "reduce(%part)", "an initial value goes with each"),
    (", slice={[0:1], [0:3]}", "", "says no slice="),
    ("transpose(%ar), dimensions={1,0}", "transpose(%ar)", "says no dimensions="),
    (", direction=LT", "", "says no direction="),
    ("direction=LT", "direction=LESS", "direction of lt is 'LESS'"),
    (', custom_call_target="f"', "", "says no custom_call_target="),
    (", to_apply=%less", "", "says no to_apply="),
    (", index=0", "", "says no index="),
    ("add(%x, %y)", "add(%x, %y), dimensions={0}", "says dimensions=, which it has not"),
    ("dimensions={1,0}", "dimensions={1,0}, dimensions={1,0}", "dimensions stands twice in t"),
    ("channel_id=1", "channel_id=1, channel_id=1", "channel_id stands twice in ar"),
    ("use_global_device_ids=true", "use_global_device_ids=yes", "neither true nor false"),
    ("is_stable=true", "is_stable=$0", "is_stable of sorted is '$0'"),
    ("channel_id=1, ", "", "uses global numbers of devices, and has no channel_id"),
    ("replica_groups={{0,1}}", "replica_groups={0,1}", "a list and no list of groups"),
    ("constraints={f32[3]{0}}", "constraints={f32[3]{0}, f32[3]{0}}", "demands layouts of 2 operands, and has 1"),
    ("constant(65504)", "constant(65520)", "65520 is no f16"),
    ("f16[] constant(65504)", "bf16[] constant(3.4e38)", "3.4e38 is no bf16"),
    ("f16[] constant(65504)", "f64[] constant(1.8e308)", "1.8e308 is no f64"),
    ("f16[] constant(65504)", "c64[] constant((0, -1e100))", "-1e100 is no part of a c64"),
    ("f16[] constant(65504)", "bf16[] constant(nan(0x3ff))", "nan(0x3ff) is no bf16"),
    ("f16[] constant(65504)", "f8e4m3fn[] constant(nan(0x1))", "nan(0x1) is no f8e4m3fn"),
    ("-> pred[] {", "-> f32[] {", "the computation less is said to give f32[], and its ROOT is pred[]"),
    ("-> f32[3,2] {", "-> f32[2,3] {", "the computation main is said to give f32[2,3]"),
    ("get-tuple-element(%pair), index=0", "add(%pair#2, %pair#2)", "takes pair#2 of (f32[2]{0}, f32[3]{0})"),
    ("get-tuple-element(%pair), index=0", "negate(%pair#a)", "is no element of a tuple"),
]
RIGHT = [
    ("add(%x, %y)", 'add(%x, %y), metadata={op_name="add(a, b), dimensions={0}"}'),
    ("constant(65504)", "constant(65519)"),
    ("f16[] constant(65504)", "bf16[] constant(3.39e38)"),
    ("f16[] constant(65504)", "f64[] constant(1.7e308)"),
    ("f16[] constant(65504)", "bf16[] constant(nan(0x7f))"),
    ("f16[] constant(65504)", "f8e4m3fn[] constant(nan)"),
    ("get-tuple-element(%pair), index=0", "negate(%pair#0)"),
    ("replica_groups={{0,1}}", "replica_groups=[1,2]<=[2]"),
    ("-> f32[3,2] {", "-> f32[3,2]{1,0} {"),
    ("is_stable=true, ", ""),
]


def edited(was: str, now: str) -> str:
    assert was in TEXT
    return TEXT.replace(was, now, 1)


def problems(text: str) -> list[str]:
    return [each.problem for each in events(text.splitlines(keepends=True)) if isinstance(each, LayoutError)]


@pytest.mark.parametrize(("was", "now", "words"), EDITS, ids=[edit[2] for edit in EDITS])
def test_what_jaxlib_rejects_is_an_error(was: str, now: str, words: str) -> None:
    (found,) = problems(edited(was, now))
    assert words in found


@pytest.mark.parametrize(("was", "now"), [("", ""), *RIGHT])
def test_what_jaxlib_reads_is_read(was: str, now: str) -> None:
    assert problems(TEXT.replace(was, now, 1) if was else TEXT) == []


def test_operands_with_shapes_as_people_write_them() -> None:
    """A shape before an operand is that of its definition; some have `%` and some none; attributes on the next line."""
    text = "HloModule m\n\nENTRY e {\n  p = f32[2,2] parameter(0)\n  ROOT r = f32[2,2] add(p, f32[2,2]{1,0} %p)\n}\n"
    assert problems(text) == []
    (wrong,) = problems(text.replace("add(p, f32[2,2]", "add(p, f32[2,5]"))
    assert "r takes p as f32[2,5]{1,0}, which is f32[2,2]" in wrong
    below = text.replace("add(p, f32[2,2]{1,0} %p)", 'custom-call(p)\n    , custom_call_target="f"')
    assert problems(below) == []


def test_the_notes_that_jaxlib_0_12_prints_after_the_header() -> None:
    """A line of its own begins with a comma there."""
    head, _, rest = TEXT.partition("\n")
    assert (
        problems(f'{head}, origin_recovery_table={{\n  {{"c"}} : {{"d"}}\n}}\n,\ndebug_attributes={{\n}}\n{rest}') == []
    )


def test_commands(tmp_path: Path) -> None:
    """`hlo` and `gate` exit with 2 and name the line; the text as it was is read."""
    (tmp_path / "a.hlo").write_text(TEXT)
    (tmp_path / "b.hlo").write_text(edited("add(%x, %y)", "add(%x)"))
    (good, wrong, gate), _ = commands(tmp_path, ["hlo", "a.hlo"], ["hlo", "b.hlo"], ["gate", "a.hlo", "b.hlo"])
    assert good.code == 0, good.out
    # 1 comes before 2, and what follows the broken line is gone
    assert (wrong.code, gate.code) == (2, 1)
    assert "b.hlo:20" in wrong.out
    assert "the add both has 1 operand where it takes 2" in wrong.out
    assert "the add both has 1 operand where it takes 2" in gate.out


@pytest.mark.skipif(importlib.util.find_spec("jaxlib") is None, reason="jaxlib is not installed")
def test_jaxlib_says_the_same() -> None:
    """Of every edit here, by XLA's own parser."""
    child = (
        "import json, sys\nfrom jaxlib import _hlo\nfor text in json.load(sys.stdin):\n    try:\n"
        "        _hlo.hlo_module_from_text(text)\n        print('read')\n"
        "    except Exception:\n        print('rejected')\n"
    )
    texts = [TEXT, *(edited(was, now) for was, now, _ in EDITS), *(edited(was, now) for was, now in RIGHT)]
    run = subprocess.run(
        [sys.executable, "-c", child], input=json.dumps(texts), capture_output=True, text=True, timeout=120
    )
    said = run.stdout.split()
    # an element of a tuple is written so since jaxlib 0.12
    ours = ["rejected" if problems(text) else "read" for text in texts]
    assert [(t, a) for t, a, b in zip(texts, said, ours, strict=True) if a != b and "#0" not in t] == []
