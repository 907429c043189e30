"""One cause, one finding: what comes from a change stands under it, and nothing is lost by that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from layoutproof.answers.of_states import gate
from layoutproof.core.finding import Finding
from tests.recorded import dump
from tests.said import words

CHAIN = """HloModule chain, entry_computation_layout=\
{(f32[256,256]{1,0:T(8,128)}, f32[256,256]{1,0:T(8,128)})->f32[256,256]{1,0:T(8,128)}}

ENTRY %main.1 (x: f32[256,256], w: f32[256,256]) -> f32[256,256] {
  %x = f32[256,256]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  %w = f32[256,256]{1,0:T(8,128)} parameter(1), metadata={op_name="w"}
  %negate.1 = f32[256,256]{1,0:T(8,128)} negate(%x), metadata={op_name="jit(f)/neg"}
  %abs.1 = f32[256,256]{1,0:T(8,128)} abs(%negate.1), metadata={op_name="jit(f)/abs"}
  %exponential.1 = f32[256,256]{1,0:T(8,128)} exponential(%w), metadata={op_name="jit(f)/exp"}
  ROOT %add.1 = f32[256,256]{1,0:T(8,128)} add(%abs.1, %exponential.1), metadata={op_name="jit(f)/add"}
}
"""


def found(tmp_path: Path, old: str, new: str) -> list[Finding]:
    for name, text in (("old.txt", old), ("new.txt", new)):
        (tmp_path / name).write_text(text)
    return [*gate(tmp_path / "old.txt", tmp_path / "new.txt").findings]


def relaid(text: str, *names: str) -> str:
    """The text with these instructions the other way round in memory."""
    lines = text.split("\n")
    for k, line in enumerate(lines):
        if any(f"%{name} = " in line for name in names):
            lines[k] = line.replace("{1,0:T", "{0,1:T")
    return "\n".join(lines)


@pytest.mark.fast
def test_what_is_computed_from_a_relaid_argument_stands_under_it(tmp_path: Path) -> None:
    new = relaid(CHAIN, "x", "negate.1", "abs.1", "add.1").replace(
        "{(f32[256,256]{1,0:T(8,128)}, f32[256,256]{1,0:T(8,128)})->f32[256,256]{1,0:T(8,128)}}",
        "{(f32[256,256]{0,1:T(8,128)}, f32[256,256]{1,0:T(8,128)})->f32[256,256]{0,1:T(8,128)}}",
    )
    (only,) = found(tmp_path, CHAIN, new)
    assert (only.question, only.subject, only.severity) == ("abi", "parameter 0 (x)", "deny")
    assert sorted({f.question for f in only.follows}) == ["abi", "moved"]
    assert {"result 0", "negate (jit(f)/neg)", "add (jit(f)/add)"} <= {f.subject for f in only.follows}


@pytest.mark.fast
def test_two_causes_are_two_findings(tmp_path: Path) -> None:
    new = relaid(CHAIN, "negate.1", "abs.1", "exponential.1")
    first, second = found(tmp_path, CHAIN, new)
    assert [f.subject for f in (first, second)] == ["negate (jit(f)/neg)", "exponential (jit(f)/exp)"]
    assert [f.subject for f in first.follows] == ["abs (jit(f)/abs)"]
    assert not second.follows


@pytest.mark.fast
def test_another_operation_never_stands_under_a_layout(tmp_path: Path) -> None:
    new = relaid(CHAIN, "negate.1").replace("abs(%negate.1)", "sqrt(%negate.1)")
    said = {f.question: {each.question for each in f.follows} for f in found(tmp_path, CHAIN, new)}
    assert said == {"moved": set(), "other_function": {"operation"}}


@pytest.mark.fast
def test_one_more_argument_is_one_finding(tmp_path: Path) -> None:
    """Callers give arguments by position, so it is denied; those after it are told apart by their names."""
    shape = "f32[256,256]{1,0:T(8,128)}"
    new = CHAIN.replace("{(f32", "{(bf16[8,128]{1,0:T(8,128)(2,1)}, f32").replace("parameter(1)", "parameter(2)")
    new = new.replace("parameter(0)", "parameter(1)").replace(
        "  %x = ",
        '  %bias = bf16[8,128]{1,0:T(8,128)(2,1)} parameter(0), metadata={op_name="bias"}\n  %x = ',
    )
    old = CHAIN.replace(f")->{shape}}}", f")->{shape}}}, input_output_alias={{ {{}}: (1, {{}}, may-alias) }}")
    new = new.replace(f")->{shape}}}", f")->{shape}}}, input_output_alias={{ {{}}: (2, {{}}, may-alias) }}")
    (only,) = found(tmp_path, old, new)
    assert (only.question, only.subject) == ("abi", "parameter 0 (bias)")
    assert "2 after it stand elsewhere" in only.reason
    (gone,) = found(tmp_path, new, old)
    assert (gone.question, gone.subject) == ("abi", "parameter 0 (bias)")


@pytest.mark.fast
def test_arguments_in_another_order_are_denied(tmp_path: Path) -> None:
    new = CHAIN.replace("parameter(0)", "parameter(9)").replace("parameter(1)", "parameter(0)")
    (only,) = found(tmp_path, CHAIN, new.replace("parameter(9)", "parameter(1)"))
    assert (only.question, only.severity) == ("abi", "deny")
    assert "callers give arguments by position" in only.reason


def test_one_layout_that_is_written_otherwise_is_one_finding(tmp_path: Path) -> None:
    text = dump("transformer_bf16_v5e")
    new = text.replace("{1,0:T(8,128)}", "{1,0:T(8,128)(1,128)}")
    rest = [f for f in found(tmp_path, text, new) if f.question == "respelled"]
    assert len(rest) == 1
    assert rest[0].follows


@pytest.mark.fast
def test_a_cause_is_as_severe_as_the_worst_that_comes_from_it(tmp_path: Path) -> None:
    rules = '[tool.layoutproof.gate]\nmoved = "deny"\nabi = "allow"\n'
    (tmp_path / "pyproject.toml").write_text(rules)
    new = relaid(CHAIN, "x", "negate.1").replace("{(f32[256,256]{1,0", "{(f32[256,256]{0,1")
    (only,) = found(tmp_path, CHAIN, new)
    assert (only.question, only.severity, only.policy) == (
        "abi",
        "deny",
        words("gating.comes_from", severity="deny", question="moved"),
    )
    assert [f.severity for f in only.follows] == ["deny"]
    (tmp_path / "pyproject.toml").write_text(
        rules + f'[[tool.layoutproof.gate.approvals]]\nfingerprint = "{only.fingerprint}"\nreason = "measured"\n'
        "until = 2099-01-01\n"
    )
    (still,) = found(tmp_path, CHAIN, new)
    assert still.severity == "deny"  # for too long
    import datetime

    until = datetime.datetime.now(tz=datetime.UTC).date() + datetime.timedelta(days=30)
    text = (tmp_path / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(text.replace("2099-01-01", str(until)))
    (approved,) = found(tmp_path, CHAIN, new)
    assert approved.severity == "allow"
    assert [f.severity for f in approved.follows] == ["allow"]
    # what comes from it is of another class now: the approval is of something else
    other = new.replace("f32[256,256]{1,0:T(8,128)} abs(", "f32[256,256]{1,0:T(4,128)} abs(").replace(
        "  %abs.1", "  %copy.9 = f32[256,256]{1,0:T(8,128)} copy(%negate.1)\n  %abs.1"
    )
    assert [f.severity for f in found(tmp_path, CHAIN, other) if f.subject == "parameter 0 (x)"] == ["deny"]


def test_the_command_shows_it_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text(CHAIN)
    new = relaid(CHAIN, "x", "negate.1", "abs.1").replace("{(f32[256,256]{1,0", "{(f32[256,256]{0,1")
    (tmp_path / "new.txt").write_text(new)

    def run(*more: str) -> str:
        command = [sys.executable, "-m", "layoutproof", "gate", "old.txt", "new.txt", *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        return done.stdout

    assert "2 more come from it: 2 moved" in run()
    (only,) = json.loads(run("--json"))["findings"]
    assert [each["question"] for each in only["follows"]] == ["moved", "moved"]
    assert "<details><summary>2 more come from it: 2 moved</summary>" in run("--format", "markdown")
    assert run("--format", "github").count("::error") == 1
    assert "2 more come from it" in run("--format", "html")


GATHERED = """HloModule gathered, num_partitions=4, entry_computation_layout=\
{(f32[256,256]{1,0:T(8,128)}, f32[256,256]{1,0:T(8,128)})->f32[256,256]{1,0:T(8,128)}}

ENTRY %main.1 (x: f32[256,256], w: f32[256,256]) -> f32[256,256] {
  %x = f32[256,256]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  %w = f32[256,256]{1,0:T(8,128)} parameter(1), metadata={op_name="w"}
  %negate.1 = f32[256,256]{1,0:T(8,128)} negate(%x), metadata={op_name="jit(f)/neg"}
  ROOT %add.1 = f32[256,256]{1,0:T(8,128)} add(%negate.1, %w), metadata={op_name="jit(f)/add"}
}
"""


def gathered() -> str:
    """An exchange of x that was not there, the copy that it needs, the memory that x is fetched to for it, and a copy
    of what it gives."""
    ring = 'channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, metadata={op_name="jit(f)/permute"}'
    new = GATHERED.replace("%x = f32[256,256]{1,0:T(8,128)}", "%x = f32[256,256]{1,0:T(8,128)S(1)}")
    return new.replace(
        "  %negate.1 = f32[256,256]{1,0:T(8,128)} negate(%x)",
        '  %copy.1 = f32[256,256]{0,1:T(8,128)} copy(%x), metadata={op_name="jit(f)/permute"}\n'
        f"  %all-to-all.1 = f32[256,256]{{0,1:T(8,128)}} all-to-all(%copy.1), {ring}, dimensions={{0}}\n"
        '  %copy.2 = f32[256,256]{1,0:T(8,128)} copy(%all-to-all.1), metadata={op_name="jit(f)/permute"}\n'
        "  %negate.1 = f32[256,256]{1,0:T(8,128)} negate(%copy.2)",
    )


@pytest.mark.fast
def test_a_new_exchange_is_the_cause_of_its_copies_and_no_memory_is(tmp_path: Path) -> None:
    by_class = {f.question: f for f in found(tmp_path, GATHERED, gathered())}
    assert "faster_memory" not in by_class or not by_class["faster_memory"].follows
    assert sorted(f.question for f in by_class["new_collective"].follows) == ["new_copy", "relaid_parameter"]
    assert not {"new_copy", "relaid_parameter"} & set(by_class)


@pytest.mark.fast
def test_a_relaid_argument_is_still_the_cause_of_a_copy(tmp_path: Path) -> None:
    new = relaid(GATHERED, "x").replace("{(f32[256,256]{1,0", "{(f32[256,256]{0,1")
    copy = '  %copy.1 = f32[256,256]{1,0:T(8,128)} copy(%x), metadata={op_name="jit(f)/neg"}\n'
    new = new.replace("  %negate.1", copy + "  %negate.1").replace("negate(%x)", "negate(%copy.1)")
    (only,) = [f for f in found(tmp_path, GATHERED, new) if f.question in ("abi", "new_copy", "relaid_parameter")]
    assert (only.question, [f.question for f in only.follows]) == ("abi", ["relaid_parameter"])
