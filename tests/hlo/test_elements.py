"""Elements of tuples as operands, `x#1`, as jaxlib 0.12.0.1 prints them: what a get-tuple-element said before."""

from __future__ import annotations

import pytest

from layoutproof.gating.program import read
from layoutproof.gating.program_changes import compare
from layoutproof.gating.states import File
from layoutproof.hlo.audit import audit
from layoutproof.hlo.found import Audit

TEXT = """HloModule m, is_scheduled=true, entry_computation_layout={((s32[], f32[8,4]{1,0}))->f32[8,4]{0,1}}

ENTRY %main (p: (s32[], f32[8,4])) -> f32[8,4] {
  %p = (s32[], f32[8,4]{1,0}) parameter(0)
  %t = (f32[8,4]{1,0}, s32[]) tuple(%p#1, %p#0)
  %n = f32[8,4]{1,0} negate(%t#0)
  ROOT %c = f32[8,4]{0,1} copy(%p#1)
}
"""


def audited(text: str) -> Audit:
    return audit(text.splitlines(keepends=True), "a.txt")


def test_what_is_right() -> None:
    found = audited(TEXT)
    assert (found.exit_code, found.errors, found.contradictions) == (0, [], [])
    assert [(m.source.text, m.target.text, m.move.kind) for m in found.moves.values()] == [
        ("f32[8,4]{1,0}", "f32[8,4]{0,1}", "relayout")
    ]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("tuple(%p#1, %p#0)", "tuple(%p#0, %p#1)", 1),
        ("negate(%t#0)", "negate(%q#0)", 2),
        ("%n = f32[8,4]{1,0}", "%n = f32[8,4]{0,1}", 1),
    ],
)
def test_what_is_wrong(old: str, new: str, code: int) -> None:
    assert old in TEXT
    assert audited(TEXT.replace(old, new)).exit_code == code


def test_the_gate_sees_them_too() -> None:
    program = read(TEXT.encode(), "a.txt")
    (copy,) = [i for i in program.instructions if i.opcode == "copy"]
    operand = program.operand(copy)
    assert operand is not None
    assert (operand.shape, operand.opcode) == ("f32[8,4]{1,0}", "get-tuple-element")
    # the same program as earlier versions print it
    taken = "  %e = f32[8,4]{1,0} get-tuple-element(%p), index=1\n  ROOT %c = f32[8,4]{0,1} copy(%e)"
    earlier = TEXT.replace("  ROOT %c = f32[8,4]{0,1} copy(%p#1)", taken)
    files = [File("a.txt", "a.txt", text.encode()) for text in (earlier, TEXT)]
    assert compare(files[0], files[1], "a.txt") == []
