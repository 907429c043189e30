"""New dumps that are whole line by line, and still cannot be what a compiler printed."""

from __future__ import annotations

import pytest

from layoutproof.core.errors import LayoutError
from tests.gating.test_programs import SMALL, found, kinds
from tests.said import stretch

SCHEDULED = SMALL.replace("jit_f,", "jit_f, is_scheduled=true,")


def test_a_dump_that_contradicts_itself_is_denied() -> None:
    """A parameter of a fusion that has another size, in a text that is else as it was."""
    new = SCHEDULED.replace("ROOT %add.7 = f32[64,256]", "ROOT %add.7 = f32[64,255]")
    (unlike,) = [f for f in found(SCHEDULED, new) if f.question == "error"]
    assert "is said to give f32[64,256], and its ROOT is f32[64,255]" in unlike.reason
    new = new.replace("-> f32[64,256] {", "-> f32[64,255] {", 1)
    assert kinds(SCHEDULED, SCHEDULED) == []
    (add, fusion) = [f for f in found(SCHEDULED, new) if f.question == "contradiction"]
    assert (add.subject, add.line) == ("add add.7 and its operand param_0", 5)
    assert fusion.subject == "fusion fusion.3 and fused_computation, result"


def test_a_dump_without_a_computation_is_an_error() -> None:
    """What an instruction runs is not in the text, and nothing else is missing."""
    without = SMALL[: SMALL.index("%fused_computation (")] + SMALL[SMALL.index("ENTRY") :]
    (error,) = [f for f in found(SMALL, without) if f.bad_input]
    assert stretch("hlo.computation_missing", name="fused_computation") in error.reason


def test_parameters_that_the_entry_does_not_have_are_no_defect() -> None:
    """A number that the entry's layout has no place for: the new dump contradicts itself; an old one is read."""
    more = SCHEDULED.replace("parameter(0)", "parameter(7)")
    assert [f.subject for f in found(SCHEDULED, more)] == ["number of entry parameters"]
    assert found(more, SCHEDULED) == []


def nested(opcode: str, levels: int) -> str:
    """A text whose computations call one another, so many of them."""
    head, after = "HloModule m\n\n", "to_apply=%c.{k}"
    if opcode == "conditional":
        after = "branch_computations={{%c.{k}, %c.{k}}}"
    text = head + "%c.0 (a: f32[8]) -> f32[8] {\n  %a = f32[8]{0} parameter(0)\n  ROOT %r = f32[8]{0} sine(%a)\n}\n\n"
    for k in range(levels):
        given = "%z, %a, %a" if opcode == "conditional" else "%a"
        text += (
            f"%c.{k + 1} (a: f32[8]) -> f32[8] {{\n  %a = f32[8]{{0}} parameter(0)\n  %z = s32[] constant(0)\n"
            f"  ROOT %r = f32[8]{{0}} {opcode}({given}), {after.format(k=k)}\n}}\n\n"
        )
    return (
        f"{text}ENTRY %e (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n"
        f"  ROOT %q = f32[8]{{0}} call(%p), to_apply=%c.{levels}\n}}\n"
    )


@pytest.mark.parametrize("opcode", ["call", "conditional"])
def test_computations_nested_beyond_any_bound_are_bad_input(opcode: str) -> None:
    """Some dozens are read as ever; thousands are an error that says so, and no defect of ours."""
    few = nested(opcode, 60)
    assert ("operation", "r") in kinds(few, few.replace("sine(", "cosine("))
    many = nested(opcode, 3000)
    with pytest.raises(LayoutError, match="nested too deep"):
        found(many, many.replace("sine(", "cosine("))
