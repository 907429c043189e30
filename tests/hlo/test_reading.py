"""The reader of dumps: what is whole is read as XLA's own parser reads it; what is not says where."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from layoutproof.hlo.audit import audit
from layoutproof.hlo.shapes import Shapes
from layoutproof.hlotext.lines import MOST_ERRORS, read_hlo
from layoutproof.hlotext.module import Module
from tests.hlo.dumps import SMALL
from tests.recorded import DUMPS, dump
from tests.said import words

pytestmark = pytest.mark.slow

LISTING = """
import json, sys
from jaxlib import _hlo
module = _hlo.hlo_module_from_text(sys.stdin.read())
print(module.to_string())
"""


def modules(text: str) -> list[Module]:
    return list(read_hlo(text.splitlines(keepends=True), "dump.txt"))


def test_a_module_as_data() -> None:
    (module,) = modules(SMALL)
    entry = module.entry
    assert entry is not None
    assert not module.errors
    assert [(i.name, i.opcode, i.operands, i.root) for i in entry.instructions] == [
        ("x", "parameter", (), False),
        ("fusion", "fusion", ("x",), False),
        ("bitcast.1", "bitcast", ("fusion",), False),
        ("copy.1", "copy", ("bitcast.1",), True),
    ]
    fusion = entry.by_name["fusion"]
    assert fusion.calls == (("calls", "double"),)
    assert (fusion.op_name, module.header.source(fusion), fusion.line) == ("f/add", "model.py:7", 23)
    assert entry.by_name["x"].sharding == "{replicated}"
    assert module.header.entry_layout() == (("f32[8,256]{1,0:T(8,128)}",), "f32[256,8]{1,0:T(8,128)}")


def test_other_spellings_read_the_same() -> None:
    (plain,) = modules(SMALL)
    for other in (
        SMALL.replace("\n", "\r\n"),
        SMALL.replace("%", ""),
        SMALL.replace("copy(%bitcast.1)", "copy(f32[256,8]{0,1:T(8,128)} %bitcast.1)"),
        SMALL.replace("  %fusion", "  // a comment\n\n  %fusion"),
    ):
        (module,) = list(read_hlo(iter(other.replace("\r\n", "\n").splitlines(keepends=True)), "dump.txt"))
        assert not module.errors
        for one, two in zip(plain.computations, module.computations, strict=True):
            fields = [[(i.name, i.shape, i.opcode, i.operands) for i in c.instructions] for c in (one, two)]
            assert fields[0] == fields[1]


def test_crlf_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_bytes(SMALL.replace("\n", "\r\n").encode())
    (module,) = read_hlo(path)
    assert not module.errors
    assert module.entry is not None
    assert len(module.entry.instructions) == 4


def test_several_modules_in_one_file() -> None:
    found = audit(f"{SMALL}\n{SMALL}".splitlines(keepends=True), "dump.txt")
    assert (found.exit_code, len(found.programs), found.instructions) == (0, 2, 12)


def test_of_many_errors_the_first_ones_are_kept() -> None:
    """A line that is no HLO costs nothing once enough are: 50 MB of them took 6 GB."""
    (module,) = read_hlo(["BufferAssignment:\n", *["a\n"] * 10 * MOST_ERRORS])
    assert len(module.errors) == MOST_ERRORS
    assert module.errors[0].line == 2


@pytest.mark.parametrize("name", DUMPS)
def test_jaxlib_reads_the_same(name: str) -> None:
    text = dump(name)
    pytest.importorskip("jaxlib")
    # a process of its own: XLA's parser aborts on some texts
    done = subprocess.run([sys.executable, "-c", LISTING], input=text, capture_output=True, text=True, check=True)
    ours, theirs = modules(text), modules(done.stdout)
    shapes = Shapes()

    def listing(module: Module) -> list[object]:
        return sorted(
            (c.entry, sorted((i.opcode, shapes.of(i.shape).text, len(i.operands)) for i in c.instructions))
            for c in module.computations
        )

    assert listing(ours[0]) == listing(theirs[0])
    # the count does not rest on our reader: every line of an instruction in XLA's own print
    printed = sum(" = " in line and line.startswith("  ") for line in done.stdout.splitlines())
    assert sum(len(c.instructions) for c in ours[0].computations) == printed


FAULTS = {
    "in an instruction": (SMALL[: SMALL.index("bitcast(%fu") + 10], 24, "inside the operands of bitcast.1"),
    "in the attributes": (SMALL[: SMALL.index('"f/trans') + 3], 25, "inside its attributes"),
    "in a computation": (SMALL[: SMALL.index("  ROOT %copy")], 24, "ends inside the computation main"),
    "between computations": (SMALL[: SMALL.index("ENTRY")], 20, "without an ENTRY"),
    "in the header": (SMALL[:60], 1, "cut short"),
    "a second text inside": (SMALL.replace("  ROOT %copy", f"{SMALL}  ROOT %copy"), 25, "new module starts inside"),
    "the same computation twice": (
        SMALL.replace("\nENTRY", "\n%double (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n\nENTRY"),
        21,
        "second time",
    ),
    "the same name twice": (
        SMALL.replace("%bitcast.1 =", "%fusion ="),
        24,
        "fusion is defined a second time; first on line 23",
    ),
    "a line is missing": (
        SMALL.replace("  %bitcast.1 = f32[256,8]{0,1:T(8,128)} bitcast(%fusion)\n", ""),
        24,
        "bitcast.1, an operand on line 24, is not in",
    ),
    "lines out of order": (
        re.sub(r"(  %fusion = .*\n)(  %bitcast.1 = .*\n)", r"\2\1", SMALL),
        23,
        "fusion, an operand on line 23, is defined after it, on line 24",
    ),
    "a piece of a string is missing": (
        SMALL.replace('"x"}\n', '"x}\n'),
        22,
        "a string in the attributes does not end",
    ),
    "a line of a table is missing": (
        SMALL.replace('1 "model.py"', '2 "model.py"'),
        4,
        "line 1 of FileNames is numbered 2",
    ),
    "the only line of a table is missing": (SMALL.replace('1 "model.py"\n', ""), 15, "FileNames is without the 1"),
    "what a fusion runs is missing": (SMALL.replace("calls=%double", "cdouble"), 23, "fusion fusion says no calls="),
    "a piece of the header is missing": (SMALL.replace("entry_computation_layout={(f32[8,256]", ""), 1, "cut short"),
    "a name of the header is missing": (SMALL.replace("is_scheduled=", ""), 1, "no name=value at 'true, entry_"),
    "two headers in one": (SMALL.replace("=true,", "=true, is_scheduled=true,"), 1, "says is_scheduled twice"),
    "a computation is missing": (
        SMALL[: SMALL.index("%double")] + SMALL[SMALL.index("ENTRY") :],
        18,
        "double, named on line 18",
    ),
    "no root": (SMALL.replace("ROOT %copy", "%copy"), 26, "no ROOT"),
    "no layout at all": (SMALL.replace("{0,1:T(8,128)} bitcast", "{0,0:T(8,128)} bitcast"), 24, "minor_to_major"),
    "tuples without end": (
        SMALL.replace(
            "f32[8,256]{1,0:T(8,128)} fusion", "(" * 3000 + "f32[8,256]{1,0:T(8,128)}" + ")" * 3000 + " fusion"
        ),
        23,
        words("hlo.too_many_tuples", most=100),
    ),
    "an unknown table": (SMALL.replace("StackFrames", "StackTrees"), 12, "neither a computation nor a table"),
    "two entries": (SMALL.replace("%double (p", "ENTRY %double (p"), 21, "second ENTRY"),
    "something else": ("Compiling with XLA\n", 1, "not HLO text"),
    "nothing": ("", 1, "no line starts with HloModule"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_text_says_where(fault: str) -> None:
    text, line, message = FAULTS[fault]
    found = audit(text.splitlines(keepends=True), "dump.txt")
    assert found.exit_code == 2
    assert found.errors[0].line == line
    assert message in found.errors[0].problem
    assert str(found.errors[0]).startswith(f"dump.txt:{line}")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('1 "model.py"', f'{"1" * 5000} "model.py"', 4),
        ("calls=%double", f"calls=%double, frontend_attributes={{n={'7' * 4301}}}", 23),
    ],
)
def test_a_number_that_python_does_not_read_is_wrong_input(old: str, new: str, line: int) -> None:
    found = audit(SMALL.replace(old, new).splitlines(keepends=True), "dump.txt")
    assert found.exit_code == 2
    # that a computation ends there is what follows from it
    assert [(each.line, each.problem) for each in found.errors] == [(line, "a number of more than 4,300 digits")]


def test_digits_in_a_text_are_no_number() -> None:
    text = SMALL.replace("calls=%double", f'calls=%double, backend_config="0x{"0" * 5_000}"')
    assert audit(text.splitlines(keepends=True), "dump.txt").exit_code == 0


def test_what_was_read_before_is_kept_and_the_next_module_read() -> None:
    cut = SMALL[: SMALL.index("  ROOT %copy")]
    found = audit((cut + SMALL).splitlines(keepends=True), "dump.txt")
    assert [(p.name, p.whole) for p in found.programs] == [("small", False), ("small", True)]
    assert found.exit_code == 2
    assert found.instructions == 5 + 6
    assert sum(c.count for c in found.casts.values()) == 2


@pytest.mark.parametrize("name", DUMPS[:8])
def test_cut_anywhere_is_never_green(name: str) -> None:
    text = dump(name)
    for part in range(1, 40):
        cut = text[: len(text.rstrip()) * part // 40]
        assert audit(cut.splitlines(keepends=True), name).exit_code == 2, part


def test_json_of_every_fault_is_json() -> None:
    from layoutproof.hlo.report import as_json

    for text, _, _ in FAULTS.values():
        found = json.loads(json.dumps(as_json(audit(text.splitlines(keepends=True), "dump.txt"))))
        assert any(finding.get("bad_input") for finding in found["findings"])
