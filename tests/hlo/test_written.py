"""HLO as XLA prints it over several lines, and as people put it on others; what XLA's parser rejects is an error here.

What XLA's parser adds to a text (shapes, names of operands, ENTRY, ROOT), the text has to say here. The forms are those
of XLA's own tests; `benchmarks/xla_texts.py` counts over all of these.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from layoutproof.hlotext.lines import read_hlo
from layoutproof.hlotext.module import Module
from tests.hlo.dumps import SMALL

pytestmark = pytest.mark.slow

CHECK = """
import json, sys
from jaxlib import _hlo
for text in json.load(sys.stdin):
    try:
        print(json.dumps(_hlo.hlo_module_from_text(text).to_string()))
    except Exception:
        print("null")
"""

HEAD = "HloModule m\n"


def entry(*lines: str, head: str = HEAD) -> str:
    """A module with these lines in its entry."""
    return head + "ENTRY e {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"

READ = {
    "indented": "\n    HloModule m\n\n    ENTRY e {\n      ROOT a = s4[2] constant({0,1})\n    }\n",
    "attributes over several lines": entry(
        "a = f32[4] parameter(0)",
        "z = f32[] constant(0)",
        "ROOT r = f32[] reduce(a, z), dimensions={0},",
        "  to_apply=add",
        head=HEAD + ADD,
    ),
    "a value on the next line": entry(
        "a = f32[4] parameter(0)",
        "z = f32[] constant(0)",
        "ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=",
        "  add",
        head=HEAD + ADD,
    ),
    "operands over several lines": entry(
        "a = f32[4] parameter(0)", "ROOT r = (f32[4], f32[4]) tuple(", "  a, // the first", "  a)"
    ),
    "a shape on a line of its own": entry(
        "a = f32[4] parameter(0)", "ROOT r =", "  (f32[4],", "   f32[4])", "  tuple(a, a)"
    ),
    "a backend_config over several lines": (
        SMALL.replace("calls=%double,", 'calls=%double, backend_config={\n  "a": {\n    "b": ["1"]\n  }\n},')
    ),
    "a header over several lines": SMALL.replace("is_scheduled=true, ", "\n  is_scheduled=true,\n  ", 1),
    "a module on one line": "HloModule m ENTRY e { a = f32[2] parameter(0) ROOT b = f32[2] negate(a) }\n",
    "comments": f"{HEAD}// one\nENTRY e {{ // two\n  /* three */ ROOT a = f32[2] parameter(0) // four\n}}\n",
    "no space before the parameters": f"{HEAD}ENTRY %e(a: f32[2]) -> f32[2] {{\n  ROOT %a = f32[2] parameter(0)\n}}\n",
    "a buffer": entry(
        "a = f32[2] parameter(0)",
        'p = b(f32[2]) custom-call(a), custom_call_target="Pin",',
        "  output_to_operand_aliasing={{}: (0, {})}",
        'ROOT u = f32[2] custom-call(p), custom_call_target="Unpin",',
        "  output_to_operand_aliasing={{}: (0, {})}",
    ),
    "a constant written out": entry("ROOT c = s32[2,3] constant({ {1, 2, 3}, { /*i0=1*/ 4, 5, 6} })"),
    "an opcode that is started": entry(
        "a = f32[8] parameter(0)",
        "s = ((f32[8]), f32[4], s32[]) slice-start(a), slice={[0:4]}",
        "ROOT d = f32[4] slice-done(s)",
    ),
}
LEFT_OUT = {
    "a shape": (
        entry("a = f32[2] parameter(0)", "ROOT b = negate(a)"),
        4,
        "the text has no shape for b: write it before the opcode, as XLA prints it, b = f32[8,128]{1,0} negate(..); "
        "compiled.as_text() has every shape",
    ),
    "the shape of a tuple": (
        entry("a = f32[2] parameter(0)", "t = tuple(a, a)", "ROOT b = f32[2] get-tuple-element(t), index=1"),
        4,
        "the text has no shape for t: ",
    ),
    "a shape, over several lines": (
        entry("a = f32[2] parameter(0)", "ROOT b =", "  add(a,", "  a)"),
        4,
        "the text has no shape for b: ",
    ),
    "the name of an operand": (
        entry("ROOT n = f32[2] negate(f32[2] parameter(0))"),
        3,
        "an operand of n is an instruction itself: write it on a line of its own before this one, and its name here",
    ),
    "the name of an operand, over several lines": (
        entry("a = f32[2] parameter(0)", "ROOT n = f32[2] add(", "  a,", "  negate(a))"),
        4,
        "an operand of n is an instruction itself: ",
    ),
    "ENTRY": ("HloModule m\n\ne {\n  ROOT a = s4[2] constant({0,1})\n}\n", 5, "ends without an ENTRY computation"),
    "ROOT": (entry("a = f32[2] parameter(0)", "b = f32[2] negate(a)"), 5, "the computation e has no ROOT"),
}
"""What XLA's parser adds: (a text without it, the line that is named, how the error begins)."""
REJECTED = {
    "two roots": entry("ROOT a = f32[2] parameter(0)", "ROOT b = f32[2] negate(a)"),
    "too many elements": entry("ROOT a = s32[2] constant({1, 2, 3})"),
    "nested too little": entry("ROOT a = s32[2,2] constant({1, 2})"),
    "a number that does not fit": entry("ROOT a = u8[1] constant({256})"),
    "no number": entry("ROOT a = s32[] constant(one)"),
    "an unknown opcode": entry("ROOT a = f32[2] parametre(0)"),
    "an alias without a number": entry(
        "ROOT a = f32[2] parameter(0)", head="HloModule m, input_output_alias={ {0}: (zero, {0}) }\n"
    ),
    "a donor without a number": entry("ROOT a = f32[2] parameter(0)", head="HloModule m, buffer_donor={ (0, {a}) }\n"),
    "attributes that end in a comma": entry("a = f32[2] parameter(0)", "ROOT b = f32[2] reverse(a), dimensions={0},"),
    "operands that do not end": entry("a = f32[2] parameter(0)", "ROOT b = f32[2] add(a,"),
    "one instruction within another": entry(
        "a = f32[2] parameter(0)", "b = f32[2] add(a,", "c = f32[2] add(a, a)", "ROOT d = f32[2] negate(a)"
    ),
}


def modules(text: str) -> list[Module]:
    return list(read_hlo(text.splitlines(keepends=True), "dump.txt"))


@pytest.mark.fast
@pytest.mark.parametrize("name", READ)
def test_what_people_write_is_read(name: str) -> None:
    (module,) = modules(READ[name])
    assert not module.errors
    assert module.entry is not None
    assert module.entry.root is not None
    assert all(each.shape for each in module.entry.instructions)


@pytest.mark.fast
@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_xla_adds_has_to_be_written(name: str) -> None:
    text, line, said = LEFT_OUT[name]
    (module,) = modules(text)
    (error,) = module.errors
    assert said in str(error)
    assert error.line == line


@pytest.mark.fast
@pytest.mark.parametrize("name", REJECTED)
def test_what_is_no_module_is_an_error(name: str) -> None:
    (module,) = modules(REJECTED[name])
    assert module.errors
    assert module.errors[0].line


def test_xla_agrees() -> None:
    pytest.importorskip("jaxlib")
    added = {name: text for name, (text, _, _) in LEFT_OUT.items()}
    texts = [*READ.values(), *added.values(), *REJECTED.values()]
    done = subprocess.run(
        [sys.executable, "-c", CHECK], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    printed = dict(zip([*READ, *added, *REJECTED], map(json.loads, done.stdout.splitlines()), strict=True))
    assert [name for name, text in printed.items() if text is None] == list(REJECTED)
    # what XLA has added, it prints
    assert not [name for name, text in printed.items() if text is not None for m in modules(text) if m.errors]


@pytest.mark.fast
def test_instructions_keep_their_lines_and_fields() -> None:
    (module,) = modules(READ["attributes over several lines"])
    assert module.entry is not None
    (root,) = [each for each in module.entry.instructions if each.root]
    assert (root.line, root.attributes, root.operands) == (10, "dimensions={0}, to_apply=add", ("a", "z"))


@pytest.mark.fast
def test_a_printed_dump_that_was_cut_is_no_text_of_a_person() -> None:
    """XLA prints entry_computation_layout, ENTRY and ROOT always; where the first is, the others must be."""
    cut = SMALL[: SMALL.index("ENTRY")]
    assert modules(cut)[0].errors
    assert modules(SMALL.replace("ROOT %copy", "%copy"))[0].errors


@pytest.mark.fast
def test_a_module_on_one_line_is_on_line_one() -> None:
    (module,) = modules(READ["a module on one line"])
    assert [each.line for computation in module.computations for each in computation.instructions] == [1, 1]


def test_the_command_reads_a_file_of_that_kind(tmp_path: Path) -> None:
    path = tmp_path / "written.txt"
    path.write_text(READ["attributes over several lines"])
    done = subprocess.run([sys.executable, "-m", "layoutproof", "hlo", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    path.write_text(LEFT_OUT["a shape"][0])
    done = subprocess.run([sys.executable, "-m", "layoutproof", "hlo", str(path)], capture_output=True, text=True)
    assert done.returncode == 2
    assert LEFT_OUT["a shape"][2] in done.stdout + done.stderr
    path.write_text(REJECTED["operands that do not end"])
    done = subprocess.run([sys.executable, "-m", "layoutproof", "hlo", str(path)], capture_output=True, text=True)
    assert done.returncode == 2


@pytest.mark.parametrize("deep", [1, 102, 100_000])
def test_operations_within_operations_are_bad_input(deep: int) -> None:
    """However deep a stranger nests them, whatever Python's stack holds."""
    nested = f"ROOT r = f32[4] {'add(' * deep}p{', p)' * deep}"
    (module,) = modules(entry("p = f32[4] parameter(0)", nested.replace("add(", "negate(add(", 1) + ")"))
    assert module.errors
    assert module.errors[0].line == 4
    (module,) = modules(entry("p = f32[4] parameter(0)", "ROOT r = f32[4] add(p, p)"))
    assert not module.errors


def test_the_number_of_a_parameter_may_be_any_text() -> None:
    """Digits by the thousand, or digits that are no ASCII, name no parameter."""
    for text in ("9" * 4_000, "²"):
        (module,) = modules(entry(f"ROOT p = f32[4] parameter({text})"))
        assert [i.number for c in module.computations for i in c.instructions] == [-1]


def test_computations_on_one_line_are_read_as_on_lines_of_their_own() -> None:
    """Each is on the line of the file where it stands, what follows its end and goes over the line's end included."""
    apart = [
        "a (x: f32[2]{0}) -> f32[2]{0} { ROOT x = f32[2]{0} parameter(0) }",
        'b { ROOT x = f32[] constant(1) }, n="} c {"',
    ]
    apart += [
        "c { ROOT x = f32[2] parameter(0)",
        "}",
        "ENTRY d { y = f32[2] parameter(0)",
        "ROOT x = f32[2] negate(y) }",
    ]
    lines = ["HloModule m", " ".join(apart[:3]), " ".join(apart[3:5]), apart[5]]
    (one,), (other,) = (read_hlo([f"{line}\n" for line in text]) for text in (lines, ["HloModule m", *apart]))
    assert one.errors == other.errors == ()
    assert [(of.name, of.line) for of in one.computations] == [("a", 2), ("b", 2), ("c", 2), ("d", 3)]
    assert [(of.name, of.line) for of in other.computations] == [("a", 2), ("b", 3), ("c", 4), ("d", 6)]
    bare = [[[x._replace(line=0) for x in of.instructions] for of in m.computations] for m in (one, other)]
    assert bare[0] == bare[1]
    assert [of.line for each in one.computations for of in each.instructions] == [2, 2, 2, 3, 4]
