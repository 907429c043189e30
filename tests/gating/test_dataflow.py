"""Operands in each other's place and other elements of tuples; what only reads so is left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from layoutproof.gating.program_changes import compare
from layoutproof.gating.states import File

TEXT = """HloModule flow, is_scheduled=true, entry_computation_layout=\
{(f32[8,128]{1,0}, f32[8,128]{1,0})->(f32[8,128]{1,0}, f32[8,128]{1,0})}

ENTRY %main (a: f32[8,128], b: f32[8,128]) -> (f32[8,128], f32[8,128]) {
  %a = f32[8,128]{1,0} parameter(0), metadata={op_name="a"}
  %b = f32[8,128]{1,0} parameter(1), metadata={op_name="b"}
  %subtract.1 = f32[8,128]{1,0} subtract(%a, %b), metadata={op_name="jit(f)/sub"}
  %add.1 = f32[8,128]{1,0} add(%a, %b), metadata={op_name="jit(f)/add"}
  %tuple.1 = (f32[8,128]{1,0}, f32[8,128]{1,0}) tuple(%subtract.1, %add.1)
  %barrier = (f32[8,128]{1,0}, f32[8,128]{1,0}) opt-barrier(%tuple.1)
  %first = f32[8,128]{1,0} get-tuple-element(%barrier), index=0
  %second = f32[8,128]{1,0} get-tuple-element(%barrier), index=1
  ROOT %result = (f32[8,128]{1,0}, f32[8,128]{1,0}) tuple(%first, %second)
}
"""
CHANGED = {
    "two operands swapped": ("subtract(%a, %b)", "subtract(%b, %a)", ["subtract (jit(f)/sub)"]),
    "another element": ("(%barrier), index=1", "(%barrier), index=0", ["result"]),
    "the results swapped": ("tuple(%first, %second)", "tuple(%second, %first)", ["result"]),
}
ALIKE = {
    "a sum the other way round": ("add(%a, %b)", "add(%b, %a)"),
    "other names": ("subtract.1", "subtract.77"),
}


def operands(old: str, new: str) -> list[str]:
    found = compare(File("a.txt", "a.txt", old.encode()), File("a.txt", "a.txt", new.encode()), "a.txt")
    return [f.subject for f in found if f.question in ("operands", "computation_differs")]


@pytest.mark.fast
@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_flow_is_said_once_where_it_changed(name: str) -> None:
    old, new, subjects = CHANGED[name]
    assert operands(TEXT, TEXT.replace(old, new)) == subjects


@pytest.mark.fast
@pytest.mark.parametrize("name", ALIKE)
def test_the_same_flow_is_no_finding(name: str) -> None:
    assert not operands(TEXT, TEXT.replace(*ALIKE[name]))


@pytest.mark.fast
def test_an_element_named_with_the_operand() -> None:
    """As jaxlib 0.12 prints it."""
    newer = TEXT.replace("tuple(%first, %second)", "tuple(%barrier#0, %barrier#1)")
    assert not operands(newer, newer)
    assert operands(newer, newer.replace("%barrier#1)", "%barrier#0)")) == ["result"]


@pytest.mark.fast
def test_a_copy_to_another_layout_is_no_other_flow() -> None:
    new = TEXT.replace("  %add.1 =", "  %copy.1 = f32[8,128]{0,1} copy(%b)\n  %add.1 =")
    new = new.replace("add(%a, %b)", "add(%a, %copy.1)")
    assert not operands(TEXT, new)


def test_the_gate_denies_it(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text(TEXT)
    for name, (old, new, _) in CHANGED.items():
        (tmp_path / "new.txt").write_text(TEXT.replace(old, new))
        command = [sys.executable, "-m", "layoutproof", "gate", "old.txt", "new.txt"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1, (name, done.stdout)
        kind = "computation_differs" if name == "another element" else "operands"
        assert "deny     other_function" in done.stdout
        assert f"deny {kind}" in done.stdout


BELOW = """HloModule flow, is_scheduled=true, entry_computation_layout=\
{(f32[8,128]{1,0}, f32[8,128]{1,0})->f32[8,128]{1,0}}

ENTRY %main (a: f32[8,128], b: f32[8,128]) -> f32[8,128] {
  %a = f32[8,128]{1,0} parameter(0), metadata={op_name="a"}
  %b = f32[8,128]{1,0} parameter(1), metadata={op_name="b"}
  %sine.1 = f32[8,128]{1,0} sine(%a), metadata={op_name="jit(f)/wave"}
  %divide.1 = f32[8,128]{1,0} divide(%sine.1, %b), metadata={op_name="jit(f)/div"}
  ROOT %subtract.1 = f32[8,128]{1,0} subtract(%divide.1, %b), metadata={op_name="jit(f)/sub"}
}
"""


@pytest.mark.fast
def test_a_swap_below_another_change_is_seen() -> None:
    """The cosine changes all that is computed from it; what is swapped there is said all the same, and nothing else."""
    changed = BELOW.replace(" sine(%a)", " cosine(%a)").replace("%sine.1", "%cosine.7")
    assert not operands(BELOW, changed)
    swapped = changed.replace("subtract(%divide.1, %b)", "subtract(%b, %divide.1)")
    assert operands(BELOW, swapped) == ["subtract (jit(f)/sub)"]
    both = swapped.replace("divide(%cosine.7, %b)", "divide(%b, %cosine.7)")
    assert operands(BELOW, both) == ["divide (jit(f)/div)", "subtract (jit(f)/sub)"]


FUSED = """HloModule flow, is_scheduled=true, entry_computation_layout=\
{(f32[8,128]{1,0}, f32[8,128]{1,0})->f32[8,128]{1,0}}

%fused (p: f32[8,128], q: f32[8,128]) -> f32[8,128] {
  %p = f32[8,128]{1,0} parameter(0)
  %q = f32[8,128]{1,0} parameter(1)
  ROOT %subtract.1 = f32[8,128]{1,0} subtract(%p, %q), metadata={op_name="jit(f)/sub"}
}

ENTRY %main (a: f32[8,128], b: f32[8,128]) -> f32[8,128] {
  %a = f32[8,128]{1,0} parameter(0), metadata={op_name="a"}
  %b = f32[8,128]{1,0} parameter(1), metadata={op_name="b"}
  ROOT %fusion = f32[8,128]{1,0} fusion(%a, %b), kind=kLoop, calls=%fused
}
"""


@pytest.mark.fast
def test_a_fusion_whose_operands_are_numbered_otherwise_is_the_same() -> None:
    """As libtpu numbers them for two generations; swapped within alone, or without alone, it is another program."""
    inside = ("subtract(%p, %q)", "subtract(%q, %p)")
    outside = ("fusion(%a, %b)", "fusion(%b, %a)")
    assert not operands(FUSED, FUSED.replace(*inside).replace(*outside))
    assert operands(FUSED, FUSED.replace(*inside)) == ["subtract (jit(f)/sub)"]
    assert operands(FUSED, FUSED.replace(*outside)) == ["subtract (jit(f)/sub)"]
    total = FUSED.replace("subtract", "add")
    assert not operands(total, total.replace(*outside))


@pytest.mark.fast
def test_a_computation_that_calls_itself_has_an_end() -> None:
    looped = FUSED.replace("subtract(%p, %q)", "call(%p, %q), to_apply=%fused")
    assert not operands(looped, looped.replace("calls=%fused", "calls=%fused, frontend_attributes={a=1}"))
