"""What is computed otherwise is said, whatever things are called; what computes the same is no finding."""

from __future__ import annotations

import datetime
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from layoutproof.gating import policy, spec_programs
from layoutproof.gating.labels import LabelledPair, Labels
from layoutproof.gating.program import read
from layoutproof.gating.states import File
from layoutproof.programs.compile import Asked, Made
from layoutproof.programs.record import Provenance, Record
from tests.gating.mutants import reordered, unnamed, verdict
from tests.gating.variants import OTHERS, SAME, kept

TEXT = """HloModule step, is_scheduled=true, entry_computation_layout=\
{(f32[8,128]{1,0}, f32[8,128]{1,0}, s32[])->f32[8,128]{1,0}}

%up (p: f32[], q: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %q = f32[] parameter(1)
  ROOT %sum = f32[] add(%p, %q)
}

%most (p.1: f32[], q.1: f32[]) -> f32[] {
  %p.1 = f32[] parameter(0)
  %q.1 = f32[] parameter(1)
  ROOT %larger = f32[] maximum(%p.1, %q.1)
}

%rectified (x.1: f32[8,128]) -> f32[8,128] {
  %x.1 = f32[8,128]{1,0} parameter(0)
  %zero.1 = f32[] constant(0)
  %zeros.1 = f32[8,128]{1,0} broadcast(%zero.1), dimensions={}
  ROOT %relu = f32[8,128]{1,0} maximum(%x.1, %zeros.1)
}

%grown (x.2: f32[8,128]) -> f32[8,128] {
  %x.2 = f32[8,128]{1,0} parameter(0)
  %waves = f32[8,128]{1,0} sine(%x.2)
  ROOT %exp = f32[8,128]{1,0} exponential(%waves)
}

ENTRY %main (a: f32[8,128], b: f32[8,128], i: s32[]) -> f32[8,128] {
  %a = f32[8,128]{1,0} parameter(0), metadata={op_name="a"}
  %b = f32[8,128]{1,0} parameter(1), metadata={op_name="b"}
  %i = s32[] parameter(2), metadata={op_name="i"}
  %nothing = f32[] constant(0)
  %none = s32[] constant(0)
  %cut = ((f32[8,128]{1,0}), f32[4,128]{1,0:S(1)}, s32[]{:S(2)}) slice-start(%b), slice={[2:6], [0:128]}
  %relued = f32[8,128]{1,0} fusion(%a), kind=kLoop, calls=%rectified, metadata={op_name="jit(f)/relu"}
  %cut.done = f32[4,128]{1,0:S(1)} slice-done(%cut)
  %rate = f32[8]{0} reduce(%relued, %nothing), dimensions={1}, to_apply=%up, metadata={op_name="jit(f)/sum"}
  %row = f32[1,128]{1,0} dynamic-slice(%cut.done, %i, %none), dynamic_slice_sizes={1,128}
  %rates = f32[8,128]{1,0} broadcast(%rate), dimensions={0}
  %flat = f32[128]{0} reshape(%row)
  %rows = f32[8,128]{1,0} broadcast(%flat), dimensions={1}
  %product = f32[8,128]{1,0} multiply(%rates, %rows), metadata={op_name="jit(f)/mul"}
  ROOT %out = f32[8,128]{1,0} subtract(%b, %product), metadata={op_name="jit(f)/sub"}
}
"""
CHANGED = {
    "an operand that is another value": (
        "multiply(%rates, %rows)",
        "multiply(%relued, %rows)",
        "computation_differs",
        "multiply",
    ),
    "an operation left out": ("reduce(%relued", "reduce(%a", "computation_differs", "reduce"),
    "an operation more": ("subtract(%b, %product)", "subtract(%b, %twice)", "computation_differs", "subtract"),
    "another fusion called": ("calls=%rectified", "calls=%grown", "computation_differs", "exponential"),
    "another reduction called": ("to_apply=%up", "to_apply=%most", "operation", "reduce"),
    "another operation": (" subtract(%b", " add(%b", "operation", "add"),
    "operands the other way round": ("subtract(%b, %product)", "subtract(%product, %b)", "operands", "subtract"),
    "a slice that starts elsewhere": ("[2:6]", "[3:7]", "operation", "slice-start"),
    "sizes that are not the result's": ("_sizes={1,128}", "_sizes={1,64}", "operation", "dynamic-slice"),
    "another axis": ("broadcast(%rate), dimensions={0}", "broadcast(%rate), dimensions={1}", "operation", "broadcast"),
    "a constant": ("%zero.1 = f32[] constant(0)", "%zero.1 = f32[] constant(-1)", "constant", "constant"),
}
TWICE = "  %twice = f32[8,128]{1,0} negate(%product)\n  ROOT %out"
ROOTS = (
    "%waves = f32[8,128]{1,0} sine(%x.2)\n  ROOT %exp =",
    "ROOT %waves = f32[8,128]{1,0} sine(%x.2)\n  %exp =",
)


def edited(old: str, new: str) -> str:
    assert old in TEXT
    return TEXT.replace(old, new).replace("  ROOT %out", TWICE if "%twice" in new else "  ROOT %out")


@pytest.mark.fast
@pytest.mark.parametrize("name", CHANGED)
def test_what_is_computed_otherwise(name: str) -> None:
    """One finding, at the instruction, with names and without any."""
    old, new, kind, at = CHANGED[name]
    changed = edited(old, new)
    for text in (changed, unnamed(changed)):
        word, (found,) = verdict(TEXT, text)
        assert (word, found.question) == ("warned" if kind == "constant" else "denied", kind), found
        assert "of the old text" in found.reason
        line = text.splitlines()[found.line - 1]
        assert re.findall(r" ([a-z][\w\-]*)\((?=%|-?\d)", line) == [at], line


@pytest.mark.fast
def test_another_root() -> None:
    called = TEXT.replace("calls=%rectified", "calls=%grown")
    for text in (called.replace(*ROOTS), unnamed(called.replace(*ROOTS))):
        word, (found,) = verdict(called, text)
        assert (word, found.question) == ("denied", "computation_differs")


@pytest.mark.fast
def test_what_computes_the_same_is_no_finding() -> None:
    """Every name gone, fusions opened, operands of sums exchanged, lines in another order, comments, ends of lines."""
    opened = TEXT.replace(
        "fusion(%a), kind=kLoop, calls=%rectified,",
        "maximum(%a, %zs),",
    ).replace("  %cut =", "  %zs = f32[8,128]{1,0} broadcast(%nothing), dimensions={}\n  %cut =")
    started = "((f32[8,128]{1,0}), f32[4,128]{1,0:S(1)}, s32[]{:S(2)}) slice-start"
    alike = {
        "unnamed": unnamed(TEXT),
        "opened": opened,
        "commuted": TEXT.replace("multiply(%rates, %rows)", "multiply(%rows, %rates)").replace(
            "add(%p, %q)", "add(%q, %p)"
        ),
        "reordered": reordered(TEXT, random.Random(3)) or "",
        "at once": TEXT.replace(started, "f32[4,128]{1,0} slice").replace("slice-done(%cut)", "copy(%cut)"),
        "line ends": TEXT.replace("\n", "\r\n"),
    }
    same = Labels(read(TEXT.encode(), "a")).result
    for name, text in alike.items():
        assert Labels(read(text.encode(), "a")).result == same, name
        assert "computation_differs" not in {f.question for f in verdict(TEXT, text)[1]}, name
    for name in ("unnamed", "commuted", "reordered", "line ends"):
        assert verdict(TEXT, alike[name])[0] == "green", name


@pytest.mark.fast
def test_a_shared_part_costs_once() -> None:
    """40 steps, each of which uses the one before twice, and 20 computations that each call the one before twice."""
    steps = "".join(f"  %s{k + 1} = f32[] multiply(%s{k}, %s{k})\n" for k in range(40))
    text = f"HloModule m\n\nENTRY %e (s0: f32[]) -> f32[] {{\n  %s0 = f32[] parameter(0)\n{steps}"
    text += "  ROOT %r = f32[] negate(%s40)\n}\n"
    assert verdict(text, text.replace("negate(", "sine("))[0] == "denied"
    calls = "%c0 (p: f32[]) -> f32[] {\n  %p = f32[] parameter(0)\n  ROOT %n = f32[] negate(%p)\n}\n\n"
    for k in range(1, 30):
        calls += f"%c{k} (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n"
        calls += f"  %a = f32[] call(%p), to_apply=%c{k - 1}\n  ROOT %b = f32[] call(%a), to_apply=%c{k - 1}\n}}\n\n"
    calls = f"HloModule m\n\n{calls}ENTRY %e (x: f32[]) -> f32[] {{\n  %x = f32[] parameter(0)\n"
    calls += "  ROOT %y = f32[] call(%x), to_apply=%c29\n}\n"
    assert verdict(calls, unnamed(calls))[0] == "green"
    assert verdict(calls, unnamed(calls.replace("negate(", "sine(")))[0] == "denied"


@pytest.mark.parametrize("name", OTHERS)
def test_a_compiled_neighbour_computes_something_else(name: str) -> None:
    """Both were compiled from source: no text was edited, and the compiler gave the names."""
    of, kind = OTHERS[name]
    texts = kept()
    word, found = verdict(texts[of], texts[name])
    assert word == ("warned" if kind == "constant" else "denied")
    assert kind in {each.question for each in found}


@pytest.mark.parametrize("name", SAME)
def test_a_compiled_program_that_is_written_otherwise_is_the_same(name: str) -> None:
    texts = kept()
    assert LabelledPair(*(read(texts[each].encode(), "") for each in (SAME[name], name))).alike
    assert verdict(texts[SAME[name]], texts[name]) == ("green", [])


def test_the_command_says_where_they_part(tmp_path: Path) -> None:
    texts = kept()
    (tmp_path / "old.txt").write_text(texts["sgd"])
    (tmp_path / "new.txt").write_text(unnamed(texts["sgd_up"]))
    (tmp_path / "same.txt").write_text(unnamed(texts["sgd_called"]))
    command = [sys.executable, "-m", "layoutproof", "gate", "old.txt"]
    done = subprocess.run([*command, "new.txt"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout
    assert "deny     other_function  what it computes" in done.stdout
    assert "they part at add(" in done.stdout
    assert "1 more comes from it: 1 operation" in done.stdout
    done = subprocess.run([*command, "same.txt"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "no change" in done.stdout


DOUBLED = "  %y = f32[8]{0} add(%x, %x)\n"
SORTED = "  %s = f32[8]{0} sort(%x), dimensions={0}, to_apply=%less\n  %y = f32[8]{0} add(%s, %s)\n"


def _doubled(of: str) -> str:
    less = "%less {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
    less += "  ROOT %l = pred[] compare(%a, %b), direction=LT\n}\n"
    entry = f"ENTRY %e {{\n  %x = f32[8]{{0}} parameter(0)\n{of}  ROOT %z = f32[8]{{0}} negate(%y)\n}}\n"
    return f"HloModule m\n\n{less}\n{entry}"


COMPILERS = (
    (DOUBLED, DOUBLED.replace("add(%x, %x)", "subtract(%x, %x)"),
     ("other_function", "deny"), ("other_function", "deny")),
    (DOUBLED, "  %t = f32[8]{0} negate(%x)\n" + DOUBLED.replace("add(%x, %x)", "subtract(%x, %t)"),
     ("same_function", "allow"), ("same_function", "allow")),
    (SORTED, SORTED.replace("add(%s, %s)", "multiply(%s, %s)"), ("operation", "warn"), ("operation", "deny")),
)  # fmt: skip


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize(("old", "new", "of_one", "of_two"), COMPILERS)
def test_what_two_compilers_write_is_decided_by_its_values(
    old: str, new: str, of_one: Any, of_two: Any, alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of two dumps. Where no values are had, what compilers given one program write otherwise is theirs."""
    sides = iter([(old, "one"), (new, "one" if alike else "another")])

    def compiled(entries: Sequence[Any], library: str = "", folder: str = "") -> list[Made]:
        text, digest = next(sides)
        return [Made(Asked("m:f"), Record("step", made=Provenance(lowered=digest)), _doubled(text))]

    monkeypatch.setattr(spec_programs, "compiled", compiled)
    data = b"programs:\n  step: {function: 'm:f', args: ['f32[8]'], target: v5e}\n"
    found = spec_programs.under_both(File("a.yaml", "a.yaml", data), ["old", "new"])
    judged = policy.judge(found, {}, policy.Policy(), datetime.date(2026, 11, 23))[0]
    said = {(each.question, each.severity) for each in judged if each.question != "function_unknown"}
    assert said == {of_one if alike else of_two}
    assert ("function_unknown" in {each.question for each in judged}) == (old is SORTED)
    (denied, _) = policy.judge(found, {}, policy.read({"operation": "deny"}, "here"), datetime.date(2026, 11, 23))
    assert {each.severity for each in denied if each.question == "operation"} <= {"deny"}
