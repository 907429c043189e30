"""The gate of two dumps by values: what differs is denied with where, what does not is not, the rest is unknown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from layoutproof.cli import main as cli
from layoutproof.core.finding import Finding
from layoutproof.programs.two_texts import computed
from tests.gating import loops
from tests.gating.mutants import mutants, unnamed
from tests.gating.test_computed import TEXT
from tests.said import stretch

pytestmark = pytest.mark.slow

NAMED: dict[str, tuple[str, str, str]] = {
    "another operation": (" subtract(%b", " add(%b", "add"),
    "a constant": ("%zero.1 = f32[] constant(0)", "%zero.1 = f32[] constant(-1)", "broadcast"),
    "an operation left out": ("reduce(%relued", "reduce(%a", "reduce"),
    "another fusion called": ("calls=%rectified", "calls=%grown", "sine"),
    "another reduction called": ("to_apply=%up", "to_apply=%most", "reduce"),
    "a slice that starts elsewhere": ("[2:6]", "[3:7]", "slice-start"),
    "operands the other way round": ("subtract(%b, %product)", "subtract(%product, %b)", "subtract"),
}
TWICE = "  %twice = f32[8,128]{1,0} negate(%product)\n  ROOT %out"
SAME: dict[str, tuple[tuple[str, str], ...]] = {
    "a difference that is a sum": (("subtract(%b, %product)", "add(%b, %twice)"), ("  ROOT %out", TWICE)),
    "a product of products": (("maximum(%x.1, %zeros.1)", "maximum(%zeros.1, %x.1)"),),
    "the maximum as a choice": (
        ("  ROOT %relu = f32[8,128]{1,0} maximum(%x.1, %zeros.1)",
         "  %less = pred[8,128]{1,0} compare(%x.1, %zeros.1), direction=LT\n"
         "  ROOT %relu = f32[8,128]{1,0} select(%less, %zeros.1, %x.1)"),
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gate(capsys: pytest.CaptureFixture[str], old: str, new: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and each finding by its class."""
    Path("old.txt").write_text(old)
    Path("new.txt").write_text(new)
    code = cli.run(["gate", "old.txt", "new.txt", "--json"])
    return code, {f["question"]: f for f in json.loads(capsys.readouterr().out)["findings"]}


@pytest.mark.parametrize("name", NAMED)
def test_another_function_is_denied_with_where_they_part(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With names, and with none of them and no metadata."""
    old, new, opcode = NAMED[name]
    changed = TEXT.replace(old, new)
    for text in (changed, unnamed(changed)):
        code, found = gate(capsys, TEXT, text)
        assert code == 1
        said = found["other_function"]
        assert said["severity"] == "deny"
        assert re.search(r"the result\[0, 0\] is -?[\d.]+, and was -?[\d.]+", said["reason"])
        assert f"they part at {opcode}(" in said["reason"]
        line = text.splitlines()[said["line"] - 1]
        assert f" {opcode}(" in line
        kinds = {each["question"] for each in said["follows"]}
        assert kinds <= {"operation", "operands", "constant", "computation_differs"}


@pytest.mark.parametrize("name", SAME)
def test_the_same_function_passes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The twins: what is computed otherwise by its labels, and is the same number everywhere."""
    changed = TEXT
    for old, new in SAME[name]:
        assert old in changed
        changed = changed.replace(old, new)
    for text in (changed, unnamed(changed)):
        code, found = gate(capsys, TEXT, text)
        assert code == 0, found
        assert set(found) <= {"same_function"}
        if found:
            said = found["same_function"]
            assert said["reason"].startswith("written otherwise, the same at 3 points")
            assert {each["severity"] for each in said["follows"]} <= {"allow"}


def module(entry: str, before: str = "") -> str:
    return f"HloModule m\n\n{before}ENTRY %e (a: f32[8], b: f32[8]) -> f32[8] {{\n{entry}}}\n"


PARAMETERS = "  %a = f32[8]{0} parameter(0)\n  %b = f32[8]{0} parameter(1)\n"
CHOICE = PARAMETERS + (
    "  %p = pred[8]{0} compare(%a, %b), direction=GE\n  %s = f32[8]{0} sine(%a)\n"
    "  ROOT %o = f32[8]{0} select(%p, %s, %b)\n"
)
SCALED = CHOICE.replace("  %p =", "  %c = f32[] constant(0.37)\n  %d = f32[8]{0} broadcast(%c), dimensions={}\n  %p =")


@pytest.mark.parametrize("entry", [CHOICE, SCALED.replace("compare(%a, %b)", "compare(%a, %d)")])
@pytest.mark.parametrize(("then", "now"), [("GE", "GT"), ("GT", "GE"), ("LT", "LE"), ("LE", "LT")])
def test_comparisons_that_differ_where_numbers_are_equal(entry: str, then: str, now: str) -> None:
    """Random numbers are never equal: whole ones show it, or it is unknown, never the same."""
    old, new = (module(entry.replace("direction=GE", f"direction={way}")) for way in (then, now))
    found = computed(old, new)
    assert found.state == "unknown", found
    assert ("whole numbers" in found.reason) == (entry is CHOICE)


def test_the_same_comparison_the_other_way_round() -> None:
    """The twins: a >= b is b <= a; the greater one as a choice is the greater one, whoever gives it where both are."""
    turned = CHOICE.replace("compare(%a, %b), direction=GE", "compare(%b, %a), direction=LE")
    assert computed(module(CHOICE), module(turned)).state == "same"
    greater = CHOICE.replace("select(%p, %s, %b)", "select(%p, %a, %b)")
    assert computed(module(greater), module(greater.replace("GE", "GT"))).state == "same"


INTEGERS = (
    "HloModule m\n\nENTRY %e (i: s32[8], b: f32[8]) -> f32[8] {\n"
    "  %i = s32[8]{0} parameter(0)\n  %b = f32[8]{0} parameter(1)\n  %k = s32[] constant(700)\n"
    "  %ks = s32[8]{0} broadcast(%k), dimensions={}\n  %p = pred[8]{0} compare(%i, %ks), direction=GE\n"
    "  %s = f32[8]{0} sine(%b)\n  ROOT %o = f32[8]{0} select(%p, %s, %b)\n}\n"
)


@pytest.mark.parametrize("now", ["GT", "LT", "EQ"])
def test_comparisons_of_integers_that_are_not_drawn_equal(now: str) -> None:
    """Of as many integers none need be 700: what was tried has to have met it."""
    found = computed(INTEGERS, INTEGERS.replace("direction=GE", f"direction={now}"))
    assert found.state in ("unknown", "other"), found


@pytest.mark.parametrize("number", [70, 100_000])
def test_a_branch_that_was_never_taken(number: int) -> None:
    """Near the numbers of the code it is entered, and differs; far away it is unknown."""
    branches = (
        "%yes (x: f32[8]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n  ROOT %y = f32[8]{0} sine(%x)\n}\n\n"
        "%no (z: f32[8]) -> f32[8] {\n  %z = f32[8]{0} parameter(0)\n  ROOT %w = f32[8]{0} copy(%z)\n}\n\n"
    )
    entry = (
        "  %n = s32[] parameter(0)\n  %v = f32[8]{0} parameter(1)\n"
        f"  %k = s32[] constant({number})\n  %p = pred[] compare(%n, %k), direction=EQ\n"
        "  ROOT %o = f32[8]{0} conditional(%p, %v, %v), true_computation=%yes, false_computation=%no\n"
    )
    old = f"HloModule m\n\n{branches}ENTRY %e (n: s32[], v: f32[8]) -> f32[8] {{\n{entry}}}\n"
    found = computed(old, old.replace("sine(", "cosine("))
    assert found.state == ("other" if number == 70 else "unknown"), found
    if found.state == "unknown":
        assert "a branch that was never taken" in found.reason


def test_what_rounds_more_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    """Over the reals it is the same, and it is said that it rounds; what always did is no warning."""
    product = PARAMETERS + "  ROOT %o = f32[8]{0} multiply(%a, %b)\n"
    rounded = PARAMETERS + (
        "  %c = bf16[8]{0} convert(%a)\n  %d = f32[8]{0} convert(%c)\n  ROOT %o = f32[8]{0} multiply(%d, %b)\n"
    )
    code, found = gate(capsys, module(product), module(rounded))
    assert (code, found["same_function"]["severity"]) == (0, "warn")
    assert "it rounds more now: f32 to bf16: 1 more" in found["same_function"]["reason"]
    code, found = gate(capsys, module(rounded), module(product))
    assert (code, found["same_function"]["severity"]) == (0, "allow")


OUTFEED = PARAMETERS + (
    "  %t = token[] after-all()\n  %s = f32[8]{0} sine(%a)\n  %out = token[] outfeed(%s, %t)\n"
    "  ROOT %o = f32[8]{0} multiply(%a, %b)\n"
)
UNKNOWN = {
    "what is done besides": (OUTFEED, OUTFEED.replace("sine", "cosine"), stretch("programs.more_than_results")),
    "an order of data": (
        PARAMETERS + "  %s = f32[8]{0} sort(%a), dimensions={0}, to_apply=%l\n  ROOT %o = f32[8]{0} add(%s, %b)\n",
        PARAMETERS + "  %s = f32[8]{0} sort(%a), dimensions={0}, to_apply=%l\n  ROOT %o = f32[8]{0} subtract(%s, %b)\n",
        "rests on sort",
    ),
    "other sizes than it says": (
        PARAMETERS + "  ROOT %o = f32[8]{0} add(%a, %b)\n",
        PARAMETERS + "  %c = f32[9]{0} add(%a, %b)\n  ROOT %o = f32[8]{0} slice(%c), slice={[0:8]}\n",
        "where [9] is said",
    ),
    "many steps": (
        PARAMETERS + "  ROOT %o = f32[8]{0} add(%a, %b)\n",
        PARAMETERS + "  %c = f32[100000,100000,8]{2,1,0} broadcast(%a), dimensions={2}\n  %z = f32[] constant(0)\n"
        "  %d = f32[8]{0} reduce(%c, %z), dimensions={0,1}, to_apply=%l\n  ROOT %o = f32[8]{0} add(%d, %b)\n",
        "steps, more than",
    ),
}  # fmt: skip
SUM = (
    "%l (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
    "  ROOT %z = f32[] add(%x, %y)\n}\n\n"
)
ORDER = SUM.replace("-> f32[] {", "-> pred[] {").replace("f32[] add(%x, %y)", "pred[] compare(%x, %y), direction=LT")


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_judged_as_before(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says why values were not compared, and what labels say is denied."""
    old, new, why = UNKNOWN[name]
    before = ORDER if "sort" in old else SUM
    code, found = gate(capsys, module(old, before), module(new, before))
    assert code == 1, found
    assert found["function_unknown"]["severity"] == "info"
    assert found["function_unknown"]["reason"].startswith("values were not compared: ")
    assert why in found["function_unknown"]["reason"]
    assert {"operation", "operands", "computation_differs"} & set(found)


def test_a_text_of_many_megabytes_is_not_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    long = "".join(f"// {'.' * 100}\n" for _ in range(340_000))
    old = module(PARAMETERS + "  ROOT %o = f32[8]{0} add(%a, %b)\n")
    code, found = gate(capsys, old, old.replace("add(%a", "subtract(%a").replace("ENTRY", f"{long}ENTRY"))
    assert code == 1
    assert stretch("programs.text_of_side_too_long", most=33554432) in found["function_unknown"]["reason"]
    assert "operation" in found


def test_an_approval_is_of_these_two_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """Another wrong program has another fingerprint; names and lines are no other program."""
    one = gate(capsys, TEXT, TEXT.replace(" subtract(%b", " add(%b"))[1]["other_function"]["fingerprint"]
    again = gate(capsys, TEXT, unnamed(TEXT.replace(" subtract(%b", " add(%b")))[1]["other_function"]["fingerprint"]
    other = gate(capsys, TEXT, TEXT.replace(" subtract(%b", " multiply(%b"))[1]["other_function"]["fingerprint"]
    assert one == again != other


def test_a_finding_that_is_allowed_by_itself_is_denied_by_a_rule_of_the_user_alone() -> None:
    """As what is a warning by itself is."""
    import datetime

    from layoutproof.gating import policy

    mild = Finding("operation", "add", "add now, subtract before", severity="allow")
    today = datetime.date(2026, 11, 26)
    assert policy.judge([mild], {}, policy.Policy(), today)[0][0].severity == "allow"
    rules = policy.read({"operation": "deny"}, "here")
    assert policy.judge([mild], {}, rules, today)[0][0].severity == "deny"


def test_a_loop_that_does_not_end_is_unknown() -> None:
    """The walk ends by the steps that it took."""
    loop = (
        "%body (t: (s32[], f32[8])) -> (s32[], f32[8]) {\n  %t = (s32[], f32[8]{0}) parameter(0)\n"
        "  %i = s32[] get-tuple-element(%t), index=0\n  %x = f32[8]{0} get-tuple-element(%t), index=1\n"
        "  %one = s32[] constant(1)\n  %j = s32[] add(%i, %one)\n  %y = f32[8]{0} sine(%x)\n"
        "  ROOT %r = (s32[], f32[8]{0}) tuple(%j, %y)\n}\n\n"
        "%goes (u: (s32[], f32[8])) -> pred[] {\n  %u = (s32[], f32[8]{0}) parameter(0)\n"
        "  %k = s32[] get-tuple-element(%u), index=0\n  %n = s32[] constant(4)\n"
        "  ROOT %p = pred[] compare(%k, %n), direction=LT\n}\n\n"
    )
    entry = (
        "  %v = f32[8]{0} parameter(0)\n  %z = s32[] constant(0)\n  %s = (s32[], f32[8]{0}) tuple(%z, %v)\n"
        "  %w = (s32[], f32[8]{0}) while(%s), condition=%goes, body=%body\n"
        "  ROOT %o = f32[8]{0} get-tuple-element(%w), index=1\n"
    )
    old = f"HloModule m\n\n{loop}ENTRY %e (v: f32[8]) -> f32[8] {{\n{entry}}}\n"
    assert computed(old, old.replace("constant(4)", "constant(5)")).state == "other"
    found = computed(
        old, old.replace("direction=LT", "direction=GE").replace("%z = s32[] constant(0)", "%z = s32[] constant(4)")
    )
    assert found.state == "unknown"
    assert "steps" in found.reason


@pytest.mark.parametrize(("opcode", "then"), [("minimum", 700), ("maximum", 700), ("remainder", 700)])
def test_bounds_of_integers_that_no_drawn_one_meets(opcode: str, then: int) -> None:
    """They are one function below the bound: unknown, where none of those that were tried is beyond it."""
    entry = (
        "HloModule m\n\nENTRY %e (i: s32[2], b: f32[2]) -> f32[2] {\n"
        "  %i = s32[2]{0} parameter(0)\n  %b = f32[2]{0} parameter(1)\n"
        f"  %k = s32[] constant({then})\n  %ks = s32[2]{{0}} broadcast(%k), dimensions={{}}\n"
        f"  %j = s32[2]{{0}} {opcode}(%i, %ks)\n  %f = f32[2]{{0}} convert(%j)\n"
        "  ROOT %o = f32[2]{0} multiply(%f, %b)\n}\n"
    )
    found = computed(entry, entry.replace(f"constant({then})", f"constant({then + 1})"))
    assert found.state in ("unknown", "other"), found
    turned = entry.replace(f"{opcode}(%i, %ks)", f"{opcode}(%i, %kk)").replace(
        "  %j =", "  %kk = s32[2]{0} copy(%ks)\n  %j ="
    )
    assert computed(entry, turned).state == "same"


def test_a_sum_in_a_narrower_type_is_a_warning() -> None:
    """As many conversions, elsewhere: what is added up is rounded now."""
    head = (
        "HloModule m\n\n%up (x: TYPE[], y: TYPE[]) -> TYPE[] {\n"
        "  %x = TYPE[] parameter(0)\n  %y = TYPE[] parameter(1)\n"
        "  ROOT %z = TYPE[] add(%x, %y)\n}\n\nENTRY %e (a: f32[8,8]) -> bf16[8] {\n  %a = f32[8,8]{1,0} parameter(0)\n"
    )
    wide = head.replace("TYPE", "f32") + (
        "  %n = f32[] constant(0)\n  %s = f32[8]{0} reduce(%a, %n), dimensions={1}, to_apply=%up\n"
        "  ROOT %o = bf16[8]{0} convert(%s)\n}\n"
    )
    narrow = head.replace("TYPE", "bf16") + (
        "  %n = bf16[] constant(0)\n  %c = bf16[8,8]{1,0} convert(%a)\n"
        "  ROOT %s = bf16[8]{0} reduce(%c, %n), dimensions={1}, to_apply=%up\n}\n"
    )
    assert computed(wide, narrow).narrower == "reduce_sum in bf16: 1 more"
    assert computed(narrow, wide).narrower == ""


def test_a_step_of_another_shape_on_the_way_to_the_same_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """It is written otherwise. Of another type it is not let pass: it rounds."""
    text = (
        "HloModule m\n\nENTRY %e (a: f32[8]) -> f32[8] {\n  %a = f32[8]{0} parameter(0)\n"
        '  %w = f32[8,4]{1,0} broadcast(%a), dimensions={0}, metadata={op_name="w"}\n'
        "  %s = f32[8,1]{1,0} slice(%w), slice={[0:8], [0:1]}\n"
        "  ROOT %o = f32[8]{0} reshape(%s)\n}\n"
    )
    code, found = gate(capsys, text, text.replace("f32[8,4]", "f32[8,5]"))
    assert (code, set(found)) == (0, {"same_function"})
    assert "reshaped_result" in {each["question"] for each in found["same_function"]["follows"]}


FAR = loops.TEXTS["a bound beyond every small number"]
LATER = {
    "another step": ("%one = s32[] constant(1)", "%one = s32[] constant(2)"),
    "a counter that stands": ("%j = s32[] add(%i, %one)", "%j = s32[] add(%one, %one)"),
    "the bound and the counter exchanged": ("tuple(%j, %n, %n.0", "tuple(%n, %j, %n.0"),
}


@pytest.mark.parametrize("name", LATER)
def test_a_loop_is_seen_with_a_first_a_middle_and_a_last_step(name: str) -> None:
    """What shows at the second step alone is no same function because a number was tried that makes one."""
    old, new = LATER[name]
    assert old in FAR
    assert computed(FAR, FAR.replace(old, new)).state == "other"
    assert computed(FAR, unnamed(FAR)).state == "same"
    # beyond what is tried no loop ran, whatever a walk did that was given up
    beyond = FAR.replace("constant(90)", "constant(5000)")
    found = computed(beyond, beyond.replace(old, new))
    assert found.state == "unknown"
    assert "a loop that never ran 3 times, and an input decides it" in found.reason


@pytest.mark.parametrize("name", loops.TEXTS)
@pytest.mark.parametrize("edit", loops.EDITS)
def test_edits_of_loops_and_branches_that_inputs_decide(name: str, edit: str) -> None:
    """None is the same function where float64 tells them apart, at any single integer near those of the texts."""
    from benchmarks.gate_values import _differs

    text = loops.TEXTS[name]
    for _, new in mutants(text, {edit: loops.EDITS[edit]}, 2, 5):
        if computed(text, new).state == "same":
            assert _differs(text, new) is not True, new


A = "f32[8,128]{1,0}"


def unread(operands: str, body: str) -> str:
    """A call of a Mosaic kernel whose module cannot be read."""
    shapes = ", ".join([A] * (operands.count(",") + 1))
    return (
        f'custom-call({operands}), custom_call_target="tpu_custom_call", operand_layout_constraints={{{shapes}}}, '
        f'backend_config={{"custom_call_config":{{"body":"{body}"}}}}'
    )


KERNELS = f"""\
HloModule jit_f, is_scheduled=true, entry_computation_layout={{({A}, {A})->{A}}}

ENTRY %main (x: f32[8,128], y: f32[8,128]) -> f32[8,128] {{
  %x = {A} parameter(0)
  %y = {A} parameter(1)
  %sum = {A} add(%x, %y)
  %one = {A} {unread("%sum, %x", "AAAA")}
  %other = {A} {unread("%y", "BBBB")}
  ROOT %out = {A} multiply(%one, %other)
}}
"""
LINES = KERNELS.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        ("%other = ", "%other = ", "same"),
        ("multiply(%one, %other)", "multiply(%other, %one)", "same"),
        ("add(%x, %y)", "add(%y, %x)", "same"),
        # another kernel, operands in another order, another operand, another use of the result
        ("BBBB", "CCCC", "unknown"),
        ("custom-call(%sum, %x)", "custom-call(%x, %sum)", "unknown"),
        ("custom-call(%sum, %x)", "custom-call(%y, %x)", "unknown"),
        ("add(%x, %y)", "subtract(%x, %y)", "unknown"),
        ("multiply(%one, %other)", "add(%one, %other)", "unknown"),
        ("multiply(%one, %other)", "multiply(%one, %one)", "unknown"),
    ],
)
def test_kernels_that_are_not_read_are_functions_of_what_they_are_given(old: str, new: str, state: str) -> None:
    """The same bytes are the same function; what differs before or behind one may differ in nothing that shows."""
    assert old in KERNELS
    for changed in (KERNELS.replace(old, new), unnamed(KERNELS.replace(old, new))):
        found = computed(KERNELS, changed)
        assert (found.state, found.reason) == (state, found.reason)
        if state == "same":
            assert found.notes == (
                "kernels that are not read are of the same bytes in both texts, and are given the same",
            )


def test_unread_kernels_in_another_order_are_the_same() -> None:
    """The order in which they stand says nothing; two of the same bytes are told apart by it alone."""
    *head, one, other, root, end = LINES
    assert computed(KERNELS, "".join([*head, other, one, root, end])).state == "same"
    alike = KERNELS.replace(unread("%y", "BBBB"), unread("%y, %y", "AAAA"))
    *head, one, other, root, end = alike.splitlines(keepends=True)
    assert computed(alike, alike).state == "same"
    assert computed(alike, "".join([*head, other, one, root, end])).state == "unknown"
