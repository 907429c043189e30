"""Two HLO dumps compared: on a small module written here, on real compiler output, and on mutants of it."""

from __future__ import annotations

import datetime
import importlib.util
import itertools
import random
import re

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.gating import policy
from layoutproof.gating.classes import layouts
from layoutproof.gating.program import read
from layoutproof.gating.program_changes import compare
from layoutproof.gating.states import File
from layoutproof.hlo.bitcasts import judge
from layoutproof.hlo.shapes import read_array
from tests.recorded import DUMPS, dump

pytestmark = pytest.mark.slow

SMALL = """\
HloModule jit_f, entry_computation_layout={(f32[64,256]{1,0:T(8,128)}, f32[256]{0:T(256)})->f32[64,256]{1,0:T(8,128)}}

%fused_computation (param_0: f32[64,256]) -> f32[64,256] {
  %param_0 = f32[64,256]{1,0:T(8,128)S(1)} parameter(0)
  ROOT %add.7 = f32[64,256]{1,0:T(8,128)} add(%param_0, %param_0), metadata={op_name="jit(f)/add"}
}

ENTRY %main.4 (x.1: f32[64,256], b.1: f32[256]) -> f32[64,256] {
  %x.1 = f32[64,256]{1,0:T(8,128)} parameter(0), sharding={devices=[2,1]<=[2]}, metadata={op_name="x"}
  %b.1 = f32[256]{0:T(256)} parameter(1), metadata={op_name="b"}
  %copy-start.2 = (f32[64,256]{1,0:T(8,128)S(1)}, f32[64,256]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%x.1)
  %copy-done.2 = f32[64,256]{1,0:T(8,128)S(1)} copy-done(%copy-start.2)
  %fusion.3 = f32[64,256]{1,0:T(8,128)} fusion(%copy-done.2), calls=%fused_computation, metadata={op_name="jit(f)/add"}
  %bitcast.9 = f32[8,8,256]{2,1,0:T(8,128)} bitcast(%fusion.3)
  %negate.1 = f32[8,8,256]{2,1,0:T(8,128)} negate(%bitcast.9), metadata={op_name="jit(f)/neg"}
  ROOT %bitcast.10 = f32[64,256]{1,0:T(8,128)} bitcast(%negate.1)
}
"""


def found(old: str, new: str) -> list[Finding]:
    """The findings between two texts."""
    return compare(File("a.txt", "old.txt", old.encode()), File("a.txt", "a.txt", new.encode()), "a.txt")


def kinds(old: str, new: str) -> list[tuple[str, str]]:
    """Class and subject of each finding."""
    return [(f.question, f.subject) for f in found(old, new)]


def severities(old: str, new: str) -> set[str]:
    """What the default rules say of the findings."""
    judged, _ = policy.judge(found(old, new), {}, policy.Policy(), datetime.date(2026, 11, 22))
    return {f.severity for f in judged}


def test_reading() -> None:
    """Entry layout, operands through tuples, what fusions call, shardings, lines."""
    program = read(SMALL.encode(), "a.txt")
    assert program.errors == []
    assert [each.shape for each in program.parameters] == ["f32[64,256]{1,0:T(8,128)}", "f32[256]{0:T(256)}"]
    assert [each.shape for each in program.results] == ["f32[64,256]{1,0:T(8,128)}"]
    by_name = {i.name: i for i in program.instructions}
    assert len(by_name) == 10
    assert by_name["x.1"].sharding == "{devices=[2,1]<=[2]}"
    assert by_name["fusion.3"].calls == "fused_computation"
    assert program.operand(by_name["bitcast.9"]) == by_name["fusion.3"]
    assert (by_name["negate.1"].line, by_name["negate.1"].base) == (15, "negate")


def test_nothing_changed() -> None:
    """Against itself, and when every number in a name is another one and the instructions stand in another order."""
    assert found(SMALL, SMALL) == []
    renamed = re.sub(r"%([a-z_\-]+)\.(\d+)", lambda m: f"%{m[1]}.{int(m[2]) + 40}", SMALL)
    assert renamed != SMALL
    assert found(SMALL, renamed) == []
    lines = SMALL.splitlines(keepends=True)
    lines[8], lines[9] = lines[9], lines[8]
    assert found(SMALL, "".join(lines)) == []


@pytest.mark.parametrize(
    ("change", "to", "expected"),
    [
        ("(f32[64,256]{1,0:T(8,128)},", "(f32[64,256]{0,1:T(8,128)},", [("abi", "parameter 0 (x)")] * 2),
        (", f32[256]{0:T(256)})->", ", f32[256]{0:T(512)})->", [("abi", "parameter 1 (b)")]),
        (", f32[256]{0:T(256)})->", ", f32[256]{0:T(128)})->", [("respelled", "parameter 1 (b)")]),
        (", f32[256]{0:T(256)})->", ")->", [("abi", "parameter 1 (b)")]),
        ("->f32[64,256]{1,0:T(8,128)}}", "->f32[64,256]{1,0:T(8,128)S(5)}}", [("abi", "result 0")]),
        ("{devices=[2,1]<=[2]}", "{devices=[2,1]1,0}", [("resharded", "parameter 0 (x)")]),
        (
            "negate.1 = f32[8,8,256]{2,1,0:T(8,128)}",
            "negate.1 = f32[8,8,256]{2,1,0:T(4,128)}",
            [("moved", "bitcast bitcast"), ("moved", "negate (jit(f)/neg)")],
        ),
        (
            "%param_0 = f32[64,256]{1,0:T(8,128)S(1)}",
            "%param_0 = f32[64,256]{1,0:T(8,128)}",
            [("memory_space", "param_0")],
        ),
    ],
)
def test_one_change(change: str, to: str, expected: list[tuple[str, str]]) -> None:
    """One edit of the text, and exactly what it means."""
    assert change in SMALL
    assert kinds(SMALL, SMALL.replace(change, to, 1)) == expected


def test_a_copy_of_a_parameter() -> None:
    """Through a copy to another memory space and into a fusion it is still the parameter; bytes are the padded ones."""
    line = "  %copy.5 = f32[64,256]{0,1:T(8,128)S(1)} copy(%copy-done.2)\n  %fusion.3"
    (copied,) = found(SMALL, SMALL.replace("  %fusion.3", line))
    assert (copied.question, copied.subject, copied.line) == ("relaid_parameter", "copy of parameter 0", 13)
    assert copied.figures == {"bytes": 256 * 128 * 4}
    inside = SMALL.replace("  ROOT %add.7", "  %copy.5 = f32[64,256]{0,1:T(8,128)} copy(%param_0)\n  ROOT %add.7")
    assert kinds(SMALL, inside) == [("relaid_parameter", "copy of parameter 0")]
    assert kinds(inside, SMALL) == [("vanished_copy", "copy of parameter 0")]
    assert kinds(inside, inside.replace("%copy.5", "%copy.77")) == []


def test_a_copy_that_changes_no_layout_is_none() -> None:
    """To another memory space, or to another spelling of the same map."""
    for shape in ("f32[64,256]{1,0:T(8,128)S(1)}", "f32[64,256]{1,0:T(8,128)(1,128)}"):
        assert kinds(SMALL, SMALL.replace("  %bitcast.9", f"  %copy.5 = {shape} copy(%fusion.3)\n  %bitcast.9")) == []


def test_memories_within_a_fusion_are_none() -> None:
    """What a fusion does not keep lies nowhere, whatever its text says; its parameter does."""
    inner = "  %%neg.2 = f32[64,256]{1,0:T(8,128)%s} negate(%%param_0)\n  ROOT %%add.7"
    old, new = (SMALL.replace("  ROOT %add.7", inner % space) for space in ("S(1)", ""))
    assert (kinds(old, new), kinds(new, old)) == ([], [])


def test_one_more_of_several_alike() -> None:
    """Two copies alike against three: one is new."""
    copy = "  %%copy.%d = f32[8,8,256]{1,2,0:T(8,128)} copy(%%negate.1)\n"
    two = SMALL.replace("  ROOT %bitcast.10", copy % 1 + copy % 2 + "  ROOT %bitcast.10")
    three = SMALL.replace("  ROOT %bitcast.10", copy % 7 + copy % 8 + copy % 9 + "  ROOT %bitcast.10")
    assert kinds(two, three) == [("new_copy", "copy of copy")]
    assert kinds(three, two) == [("vanished_copy", "copy of copy")]


@pytest.mark.parametrize(
    ("shape", "kind", "code"),
    [
        ("f32[64,256]{1,0:T(8,128)}", "", 0),
        ("f32[8,8,256]{2,1,0:T(8,128)}", "", 0),
        ("f32[128,128]{1,0:T(8,128)}", "reordered", 0),
        ("f32[256,64]{1,0:T(8,128)}", "bitcast_refuted", 1),
        ("f32[64,250]{1,0:T(8,128)}", "", 0),
    ],
)
def test_a_new_bitcast_is_judged_as_the_audit_does(shape: str, kind: str, code: int) -> None:
    """What `hlo` proves is not denied: of a reordering, which keeps every byte, the gate says so and passes."""
    new = SMALL.replace("  ROOT %bitcast.10", f"  %bitcast.8 = {shape} bitcast(%fusion.3)\n  ROOT %bitcast.10")
    assert kinds(SMALL, new) == ([(kind, "bitcast bitcast")] if kind else [])
    audited = judge(read_array("f32[64,256]{1,0:T(8,128)}"), read_array(shape)).verdict
    assert (audited is Verdict.REFUTED) == bool(code)
    assert severities(SMALL, new) == ({"deny"} if code else {"warn"} if kind else set())


def test_a_guess_is_said() -> None:
    """Two possible partners on each side: matched in their order, and it is a guess."""
    two = '  %%t.%d = f32[8,8]{1,0%s} tanh(%%negate.1), metadata={op_name="tanh"}\n'
    old = SMALL.replace("  ROOT %bitcast.10", two % (1, "") + two % (2, "") + "  ROOT %bitcast.10")
    new = SMALL.replace("  ROOT %bitcast.10", two % (1, ":T(8,128)") + two % (2, ":T(4,128)") + "  ROOT %bitcast.10")
    guesses = {f.match_heuristic for f in found(old, new)}
    assert guesses == {"2 alike, matched in their order"}


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        (SMALL[: SMALL.index("negate.1 =") + 20], "not an instruction: '%negate.1 = f32[8,8,2'", 15),
        (
            SMALL[: SMALL.index("  ROOT %bitcast.10")],
            "the text ends inside the computation main.4, which begins on line 8",
            15,
        ),
        (SMALL + SMALL, "a second module", 18),
        ("nonsense\n", "not HLO text, which starts with HloModule: 'nonsense'", 1),
    ],
)
def test_a_broken_dump_is_an_error_with_its_line(text: str, problem: str, line: int) -> None:
    """It is never compared as if it were whole; what was read before is."""
    errors = [f for f in found(SMALL, text) if f.bad_input]
    assert [f.line for f in errors] == [line]
    assert problem in errors[0].reason
    if "negate" not in problem and line > 1:
        assert read(text.encode(), "a").instructions


def test_a_broken_old_dump_is_bad_input() -> None:
    """Nobody can tell what changed, as with a broken new one."""
    assert ("error", "old dump") in kinds(SMALL[: SMALL.index("  ROOT %bitcast.10")], SMALL)


# -- real compiler output --

PAIRS = [(n, n.replace("v5e", "v6e")) for n in DUMPS if "v5e" in n and n.replace("v5e", "v6e") in DUMPS]


@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_against_itself(name: str) -> None:
    """Nothing, and nothing when every number of an instruction is another one."""
    text = dump(name)
    assert read(text.encode(), name).errors == []
    assert found(text, text) == []
    renamed = re.sub(r"%([\w\-]+)\.(\d+)\b", lambda m: f"%{m[1]}.{int(m[2]) + 1000}", text)
    assert found(text, renamed) == []


@pytest.mark.parametrize("name", DUMPS)
def test_bitcasts_of_real_programs_are_proved(name: str) -> None:
    """All of them: the compiler emits none that moves a byte."""
    for each in read(dump(name).encode(), name).bitcasts:
        assert judge(*map(read_array, (each.source, each.target))).verdict is Verdict.PROVED, each


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_one_program_for_two_generations(old: str, new: str) -> None:
    """v5e against v6e: the same entry layout and copies; at most, an array is kept in another memory space.

    In one program, a transpose is within the product on one side and after it on the other: undecided, which is said.
    Where Mosaic kernels are not read, those for another generation are other ones as far as anybody can tell.
    """
    unread = {"unknown"} if importlib.util.find_spec("jaxlib") is None else set()
    turned = [("unknown", "bitcast")] * 2 if old == "misc_v5e" else []
    changes = found(dump(old), dump(new))
    undecided = [f for f in changes if "dimensions stand in another order from here up" in f.reason]
    assert [(f.question, f.subject.split()[0]) for f in undecided] == turned
    assert {f.verdict for f in undecided} <= {Verdict.UNKNOWN}
    assert {f.question for f in changes if f not in undecided} <= {"memory_space", *unread}


@pytest.mark.parametrize("name", ["reshard_v5e", "sharded_matmul_v5e", "sharded_reduce_v5e"])
def test_one_program_on_two_meshes(name: str) -> None:
    """2x2 against 4x4: each device's part is smaller, which is the ABI; elements and groups are on other devices."""
    changes = found(dump(f"{name}_2x2"), dump(f"{name}_4x4"))
    assert {f.question for f in changes} - {"reshaped_result"} == {"abi", "resharded", "devices", "regrouped"}
    moved = next(f for f in changes if f.question == "resharded")
    assert re.search(r"\(0, \d+\) goes from devices? 0.* to devices? ", moved.reason)


_SHAPE = re.compile(r"(?<== )([a-z]\w*\[[\d,]+\])\{([\d,]+):((?:T(?:\([\d,]+\))+))([^}]*)\}")


def mutants(text: str, many: int) -> list[tuple[str, str, str]]:
    """(what was done, the old shape, the text with it): one instruction with two dimensions swapped, or a tile less."""
    chance = random.Random(7)
    made = []
    spots = list(_SHAPE.finditer(text))
    for spot in chance.sample(spots, min(many, len(spots))):
        shape, order, tiles, rest = spot.groups()
        swapped = order.split(",")
        if len(swapped) > 1:
            swapped[0], swapped[1] = swapped[1], swapped[0]
            new = f"{shape}{{{','.join(swapped)}:{tiles}{rest}}}"
            made.append(("swap", new, text[: spot.start()] + new + text[spot.end() :]))
        fewer = tiles[: tiles.rindex("(")]
        layout = f"{order}:{fewer}{rest}" if fewer != "T" else f"{order}:{rest}" if rest else order
        new = f"{shape}{{{layout}}}"
        made.append(("tile", new, text[: spot.start()] + new + text[spot.end() :]))
    return [(what, new, whole) for what, new, whole in made]


@pytest.mark.parametrize("name", DUMPS)
def test_mutants_are_caught_with_the_right_class(name: str) -> None:
    """Each instruction whose layout was changed is found where it stands, in the class that its two layouts have."""
    text = dump(name)
    changed = caught = 0
    for what, _, whole in mutants(text, 12):
        line = next(k for k, (a, b) in enumerate(zip(text.splitlines(), whole.splitlines(), strict=True)) if a != b)
        olds, news = (_SHAPE_ANY.search(side.splitlines()[line]) for side in (text, whole))
        assert olds is not None
        assert news is not None
        try:
            expected = {f.question for f in layouts(olds[0], news[0])}
        except LayoutError:
            continue  # the mutant is no layout
        if not expected:
            continue
        changed += 1
        seen = {f.question for f in found(text, whole) if f.line == line + 1}
        assert expected <= seen, (what, line + 1, olds[0], news[0], seen)
        caught += 1
    assert caught == changed > 0


_SHAPE_ANY = re.compile(r"(?<== )[a-z]\w*\[[\d,]*\](?:\{[^}]*\})?")


@pytest.mark.parametrize("name", DUMPS)
def test_an_added_copy_is_caught(name: str) -> None:
    """After each of some instructions of the entry a copy to another order of dimensions: found, with its bytes."""
    text = dump(name)
    lines = text.splitlines(keepends=True)
    entry = next(k for k, line in enumerate(lines) if line.startswith("ENTRY"))
    tried = 0
    for number in itertools.islice(range(entry + 1, len(lines)), 40):
        head = re.match(r"\s+%([\w.\-]+) = ([a-z]\w*\[\d+,\d+\])\{([\d,]+)(:[^}]*)?\} ", lines[number])
        if head is None:
            continue
        name_, shape, order, rest = head.groups()
        other = ",".join(reversed(order.split(",")))
        if "1" in re.findall(r"\d+", shape.partition("[")[2]):
            continue
        copy = f"  %copy.9999 = {shape}{{{other}{rest or ''}}} copy(%{name_})\n"
        seen = found(text, "".join([*lines[: number + 1], copy, *lines[number + 1 :]]))
        assert [f.question in ("new_copy", "relaid_parameter") for f in seen] == [True], (number, seen)
        assert seen[0].line == number + 2
        assert seen[0].figures["bytes"] > 0
        tried += 1
    if tried == 0:
        pytest.skip("no matrix in the entry computation")
