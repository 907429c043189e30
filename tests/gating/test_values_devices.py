"""The gate of two dumps by values where several devices run them: what each of them gives, whatever it holds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from layoutproof.cli import main as cli
from layoutproof.programs.two_texts import computed
from tests.gating.mutants import unnamed
from tests.said import stretch, words

pytestmark = pytest.mark.slow

HEAD = (
    "HloModule m, num_partitions=4\n\n"
    "%add (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
    "  ROOT %z = f32[] add(%x, %y)\n}\n\n"
)
ALL = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
STEP = HEAD + (
    "ENTRY %e (w: f32[8,4], x: f32[8,4]) -> f32[8,4] {\n"
    "  %w = f32[8,4]{1,0} parameter(0)\n  %x = f32[8,4]{1,0} parameter(1)\n"
    "  %wx = f32[8,4]{1,0} multiply(%w, %x)\n  %g = f32[8,4]{1,0} sine(%wx)\n"
    f"  %sum = f32[8,4]{{1,0}} all-reduce(%g), {ALL}, to_apply=%add\n"
    "  ROOT %o = f32[8,4]{1,0} subtract(%w, %sum)\n}\n"
)
QUARTER = "  %q = f32[] constant(0.25)\n  %qs = f32[8,4]{1,0} broadcast(%q), dimensions={}\n"
MEAN = STEP.replace("  ROOT %o", f"{QUARTER}  %mean = f32[8,4]{{1,0}} multiply(%sum, %qs)\n  ROOT %o").replace(
    "subtract(%w, %sum)", "subtract(%w, %mean)"
)
RING = HEAD + (
    "ENTRY %e (x: f32[8,4]) -> f32[8,4] {\n  %x = f32[8,4]{1,0} parameter(0)\n"
    "  %left = f32[8,4]{1,0} collective-permute(%x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3}}\n"
    "  ROOT %o = f32[8,4]{1,0} add(%x, %left)\n}\n"
)
HALVES = "{{0,1},{2,3}}"
WRONG = {
    "over fewer devices": (STEP, "{{0,1,2,3}}", HALVES),
    "summed before the sine": (
        STEP.replace("%sine", "%wx"), "  %g = f32[8,4]{1,0} sine(%wx)\n"
        f"  %sum = f32[8,4]{{1,0}} all-reduce(%g), {ALL}, to_apply=%add\n",
        f"  %g = f32[8,4]{{1,0}} all-reduce(%wx), {ALL}, to_apply=%add\n  %sum = f32[8,4]{{1,0}} sine(%g)\n",
    ),
    "not summed": (STEP, "subtract(%w, %sum)", "subtract(%w, %g)"),
    "a shift of fewer": (RING, "{{0,1},{1,2},{2,3}}", "{{0,1},{1,2}}"),
    "a device's number in it": (
        RING, "add(%x, %left)", "multiply(%x, %ids)\n",
    ),
}  # fmt: skip
IDS = (
    "  %id = u32[] partition-id()\n  %idf = f32[] convert(%id)\n"
    "  %ids = f32[8,4]{1,0} broadcast(%idf), dimensions={}\n  ROOT"
)
RIGHT = {
    "the sum of sums": (
        STEP, f"  %sum = f32[8,4]{{1,0}} all-reduce(%g), {ALL}, to_apply=%add\n",
        f"  %h = f32[8,4]{{1,0}} negate(%g)\n  %neg = f32[8,4]{{1,0}} all-reduce(%h), {ALL}, to_apply=%add\n"
        "  %sum = f32[8,4]{1,0} negate(%neg)\n",
    ),
    "groups in another order": (STEP, "{{0,1,2,3}}", "{{3,1,0,2}}"),
    "a mean as a product of what is summed": (
        MEAN, "subtract(%w, %mean)", "subtract(%w, %other)\n",
    ),
    "pairs in another order": (RING, "{{0,1},{1,2},{2,3}}", "{{2,3},{0,1},{1,2}}"),
}  # fmt: skip
OTHER = (
    "  %gq = f32[8,4]{1,0} multiply(%g, %qs)\n"
    f"  %other = f32[8,4]{{1,0}} all-reduce(%gq), {ALL}, to_apply=%add\n  ROOT"
)


def changed(text: str, old: str, new: str) -> str:
    """The text with a change, and what it needs above its root."""
    assert old in text
    above = IDS if "%ids" in new else OTHER if "%other" in new else "  ROOT"
    head, _, root = text.replace(old, new).rpartition("  ROOT")
    return f"{head}{above}{root}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gate(capsys: pytest.CaptureFixture[str], old: str, new: str) -> tuple[int, dict[str, dict[str, str]]]:
    Path("old.txt").write_text(old)
    Path("new.txt").write_text(new)
    code = cli.run(["gate", "old.txt", "new.txt", "--json"])
    return code, {f["question"]: f for f in json.loads(capsys.readouterr().out)["findings"]}


@pytest.mark.parametrize("name", WRONG)
def test_another_function_is_denied_with_the_device(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With names, and with none of them and no metadata."""
    text = WRONG[name][0]
    new = changed(*WRONG[name])
    for edited in (new, unnamed(new)):
        code, found = gate(capsys, text, edited)
        assert code == 1
        assert re.match(r"the result of device \d\[\d, \d\] is -?[\d.]+, and was -?[\d.]+",
                        found["other_function"]["reason"])  # fmt: skip
        assert "they part at " in found["other_function"]["reason"]


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_function_on_every_device_passes(name: str) -> None:
    text = RIGHT[name][0]
    new = changed(*RIGHT[name])
    for edited in (new, unnamed(new), unnamed(text)):
        found = computed(text, edited)
        assert (found.state, found.points) == ("same", 3), found


UNSUMMED = MEAN.replace("multiply(%sum, %qs)", "copy(%g)")


def test_a_mean_left_out_rests_on_what_devices_hold(capsys: pytest.CaptureFixture[str]) -> None:
    """Of what all devices hold alike the mean is that: a text that does not say so leaves it open, and is denied."""
    found = computed(MEAN, UNSUMMED)
    assert found.state == "unknown"
    assert stretch("programs.same_where_all_hold_it", what="there is no difference") in found.reason
    assert "the texts do not say what each holds" in found.reason
    code, said = gate(capsys, MEAN, UNSUMMED)
    assert (code, said["function_unknown"]["severity"]) == (1, "info")


def sharded(text: str, w: str, x: str) -> str:
    return text.replace("parameter(0)\n  %x = f32[8,4]", f"parameter(0), sharding={w}\n  %x = f32[8,4]").replace(
        "%x = f32[8,4]{1,0} parameter(1)", f"%x = f32[8,4]{{1,0}} parameter(1), sharding={x}"
    )


@pytest.mark.parametrize(
    ("x", "state"), [("{replicated}", "same"), ("{devices=[4,1]<=[4]}", "other"),
                     ("{devices=[1,2,2]<=[4] last_tile_dim_replicate}", "other")],
)  # fmt: skip
def test_shardings_that_both_texts_say_decide_it(x: str, state: str) -> None:
    both = [sharded(each, "{replicated}", x) for each in (MEAN, UNSUMMED)]
    assert computed(*both).state == state
    # said of one text alone it says nothing of the other
    assert computed(MEAN, both[1]).state == "unknown"


def test_another_number_of_devices_is_no_comparison() -> None:
    found = computed(STEP, STEP.replace("num_partitions=4", "num_partitions=2").replace("{{0,1,2,3}}", "{{0,1}}"))
    assert (found.state, found.reason) == (
        "unknown",
        words("programs.devices_differ", now="2 devices", was="4 devices"),
    )


def test_a_huge_number_of_devices_is_refused_at_once() -> None:
    many = STEP.replace("num_partitions=4", "num_partitions=5000")
    found = computed(many, many.replace("subtract(%w", "add(%w"))
    assert found.state == "unknown"
    assert "devices, more than the 4,096 that are walked over" in found.reason


LOOP = HEAD + (
    "%body (t: (s32[], s32[], f32[4])) -> (s32[], s32[], f32[4]) {\n"
    "  %t = (s32[], s32[], f32[4]{0}) parameter(0)\n  %i = s32[] get-tuple-element(%t), index=0\n"
    "  %n = s32[] get-tuple-element(%t), index=1\n  %v = f32[4]{0} get-tuple-element(%t), index=2\n"
    "  %one = s32[] constant(1)\n  %j = s32[] add(%i, %one)\n"
    f"  %s = f32[4]{{0}} all-reduce(%v), {ALL}, to_apply=%add\n  %w = f32[4]{{0}} sine(%s)\n"
    "  ROOT %r = (s32[], s32[], f32[4]{0}) tuple(%j, %n, %w)\n}\n\n"
    "%goes (u: (s32[], s32[], f32[4])) -> pred[] {\n  %u = (s32[], s32[], f32[4]{0}) parameter(0)\n"
    "  %k = s32[] get-tuple-element(%u), index=0\n  %m = s32[] get-tuple-element(%u), index=1\n"
    "  ROOT %p = pred[] compare(%k, %m), direction=LT\n}\n\n"
    "ENTRY %e (n.1: s32[], v.1: f32[4]) -> f32[4] {\n"
    "  %n.1 = s32[] parameter(0)\n  %v.1 = f32[4]{0} parameter(1)\n  %z = s32[] constant(0)\n"
    "  %a = (s32[], s32[], f32[4]{0}) tuple(%z, %n.1, %v.1)\n"
    "  %l = (s32[], s32[], f32[4]{0}) while(%a), condition=%goes, body=%body\n"
    "  ROOT %o = f32[4]{0} get-tuple-element(%l), index=2\n}\n"
)


def test_a_number_of_trips_is_one_on_all_devices_and_the_answer_says_so() -> None:
    """Devices that leave the loop at other times cannot exchange anything in it."""
    twice = LOOP.replace("%w = f32[4]{0} sine(%s)", "%c = f32[4]{0} negate(%s)\n  %d = f32[4]{0} sine(%c)\n"
                         "  %w = f32[4]{0} negate(%d)")  # fmt: skip
    found = computed(LOOP, twice)
    assert found.state == "same", found
    assert "the same on all devices: parameter 0" in found.notes
    assert computed(LOOP, LOOP.replace("sine(%s)", "cosine(%s)")).state == "other"
