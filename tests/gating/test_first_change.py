"""The first value that is not as it was, in rows of our own: the planted line, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from layoutproof.core.finding import Finding
from layoutproof.gating.first_change import SourceRow, cause, caused, changed
from layoutproof.gating.text_rows import text_rows
from tests.said import stretch, words

HELPER = "m.py:3"


def row(
    op: str, line: int, given: Sequence[int], gives: int, said: str = "", helper: bool = False, size: int = 8
) -> SourceRow:
    places = (HELPER, f"m.py:{line}") if helper else (f"m.py:{line}",)
    return SourceRow(op, places, said, tuple(given), (gives,), (f"f32[{size},8]",))


PROGRAM = (
    row("dot_general", 10, [0, 1], 2),
    row("tanh", 11, [2], 3),
    row("sharding_constraint", 12, [3], 4, "P('x')", helper=True),
    row("dot_general", 13, [4, 1], 5),
    row("sharding_constraint", 14, [5], 6, "P('x')", helper=True),
    row("add", 15, [6, 0], 7),
    SourceRow("return", (), "", (7,), (), ()),
)


def shifted(rows: Sequence[SourceRow]) -> list[SourceRow]:
    """The same program three lines further down."""

    def place(text: str) -> str:
        file, _, line = text.partition(":")
        return f"{file}:{int(line) + 3}"

    return [replace(each, places=tuple(map(place, each.places))) for each in rows]


def told(new: Sequence[SourceRow], question: str = "new_collective", at: str = "") -> str:
    changes = changed(PROGRAM, new)
    assert changes is not None
    return cause(changes, question, (at,) if at else ())


def test_moved_lines_are_no_edit() -> None:
    changes = changed(PROGRAM, shifted(PROGRAM))
    assert changes is not None
    assert changes.edits == ()
    assert told(shifted(PROGRAM)) == ""


@pytest.mark.parametrize(("number", "line"), [(2, 12), (4, 14)])
def test_a_constraint_that_says_something_else_at_the_line_that_calls_the_helper(number: int, line: int) -> None:
    new = [*PROGRAM]
    new[number] = replace(new[number], said="P(None)")
    found = told(shifted(new), at="m.py:14")
    assert found == f"m.py:{line + 3}: sharding_constraint says P(None) now, P('x') before"


def test_a_helper_that_was_edited_is_the_place() -> None:
    new = [replace(each, said="P(None)") if each.op == "sharding_constraint" else each for each in PROGRAM]
    assert told(shifted(new)).startswith("m.py:6: ")


@pytest.mark.parametrize(
    ("constants", "now", "place"),
    [
        (["S = P('x')", ""], ["S = P(None)", ""], "m.py:4: S"),
        (["S = (", "    P('x'))"], ["S = (", "    P(None))"], "m.py:5: S"),
        (["R = P('x')", "S = R, R"], ["R = P(None)", "S = R, R"], "m.py:4: R"),
        (["@a", "def S(): return 1"], ["@b", "def S(): return 1"], "m.py:4: S"),
        (["def S():", "    return 1"], ["def S():", "    return 2"], "m.py:5: S"),
        (["@a", "def S(): return 1"], ["@b", "def S(): return 2"], "m.py:12: "),
        (["S = P('x')", "R = 1"], ["S = P('x')", "R = 2"], "m.py:12: "),
        (["S = P('x')", "S = S"], ["S = P(None)", "S = S"], "m.py:12: "),
        (["S = P('x'", ""], ["S = P(None", ""], "m.py:12: "),
    ],
)
def test_a_definition_that_a_line_uses_is_the_place(constants: list[str], now: list[str], place: str) -> None:
    """The line that says something else is as it was; given twice, or in what is no Python, none is named."""

    def lines(constants: list[str]) -> list[str]:
        return [
            "# 1",
            "# 2",
            "# 3",
            *constants,
            *(f"# {n}" for n in range(6, 12)),
            "x = put(x, S)",
            "# 13",
            "# 14",
            "# 15",
        ]

    new = [*PROGRAM]
    new[2] = replace(new[2], said="P(None)")
    changes = changed(PROGRAM, new, ({"m.py": lines(constants)}, {"m.py": lines(now)}))
    assert changes is not None
    found = cause(changes, "new_collective", ())
    assert found.startswith(place)
    assert "m.py:12: sharding_constraint" in found


def test_a_row_that_is_gone_has_its_old_line() -> None:
    new = [*PROGRAM]
    del new[2]
    new[2] = replace(new[2], given=(3, 1))
    assert told(shifted(new), at="m.py:16") == "m.py:12: before, sharding_constraint, P('x') stood here, and is gone"


def test_a_row_that_is_new() -> None:
    new = [*PROGRAM]
    new.insert(1, row("transpose", 10, [2], 20, "permutation=(1, 0)"))
    new[2] = replace(new[2], given=(20,))
    assert told(shifted(new), "new_copy") == "m.py:13: transpose is new, permutation=(1, 0)"


def test_an_innocent_edit_beside_it_is_not_named() -> None:
    new = [*PROGRAM]
    new.insert(5, row("mul", 15, [6], 30, "2.0"))
    new[6] = replace(new[6], given=(30, 0))
    new[2] = replace(new[2], said="P(None)")
    # nearer to the instruction that the finding is about, and none that says where values are
    assert told(shifted(new), at="m.py:18").startswith("m.py:15: sharding_constraint")


def test_what_follows_from_another_type_is_not_named_first() -> None:
    wide = [replace(each, types=("f32[16,8]",)) if each.types else each for each in PROGRAM]
    wide[0] = replace(wide[0], said="preferred_element_type=f32")
    assert told(shifted(wide), "peak_memory").startswith("m.py:13: dot_general says")


def test_exchanged_operands() -> None:
    new = [*PROGRAM]
    new[3] = replace(new[3], given=(3, 1))
    assert told(shifted(new)) == words("gating.operation_takes", place="m.py:16", operation="dot_general")


def test_a_number_is_no_sharding() -> None:
    """A literal inside of `shard_map` is cast to vary over the mesh: another number of it moves nothing."""
    cast = row("pvary", 15, [], 30, "axes=(x) 0.5")
    old = [*PROGRAM[:-2], cast, row("mul", 15, [6, 30], 31), replace(PROGRAM[-1], given=(31,))]
    new = [*old]
    new[5] = replace(cast, said="axes=(x) 0.25")
    new.insert(2, row("rev", 12, [3], 40, "dimensions=(0)"))
    new[3] = replace(new[3], given=(40,))
    changes = changed(old, new)
    assert changes is not None
    assert cause(changes, "new_collective", ()) == "m.py:12: rev is new, dimensions=(0)"


def test_an_edit_that_no_value_leads_to_is_not_named() -> None:
    alone = [row("exp", 20, [50], 51), row("sharding_constraint", 21, [51], 52, "P('x')")]
    old = [*PROGRAM[:-1], *alone, PROGRAM[-1]]
    new = [*PROGRAM[:-1], alone[0], replace(alone[1], said="P('y')"), PROGRAM[-1]]
    changes = changed(old, new)
    assert changes is not None
    assert cause(changes, "new_collective", ("m.py:13",)) == ""
    assert cause(changes, "new_collective", ()).startswith("m.py:21")


def test_only_differences_of_layouts_and_growth_have_a_cause() -> None:
    new = [*PROGRAM]
    new[2] = replace(new[2], said="P(None)")
    changes = changed(PROGRAM, new)
    inside = Finding("new_copy", "copy")
    found = caused(
        [Finding("new_collective", "all-gather", follows=(inside,)), Finding("operation", "add")], changes, {}
    )
    assert [bool(each.cause) for each in found] == [True, False]
    assert found[0].follows[0].cause == found[0].cause
    assert "cause    m.py:12: " in str(found[0])
    assert found[0].as_dict()["cause"] == found[0].cause
    assert caused([inside], None, {})[0].cause == ""
    assert caused([inside], changes, {}, "a.yaml:2: in says ..")[0].cause == "a.yaml:2: in says .."


TEXT = """HloModule jit_step, is_scheduled=true, entry_computation_layout={{(f32[8,8]{{1,0}})->f32[8,8]{{1,0}}}}

FileNames
1 "layoutproof/programs/compiling.py"
2 "m.py"

FunctionNames
1 "f"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=1}}
2 {{file_name_id=2 function_name_id=1 line={a} end_line={a} column=1 end_column=1}}
3 {{file_name_id=2 function_name_id=1 line={b} end_line={b} column=1 end_column=1}}
4 {{file_name_id=2 function_name_id=1 line={c} end_line={c} column=1 end_column=1}}

StackFrames
1 {{file_location_id=1 parent_frame_id=1}}
2 {{file_location_id=2 parent_frame_id=2}}
3 {{file_location_id=3 parent_frame_id=2}}
4 {{file_location_id=4 parent_frame_id=2}}


ENTRY %main (p: f32[8,8]) -> f32[8,8] {{
  %p = f32[8,8]{{1,0}} parameter(0), sharding={{{sharding}}}, metadata={{op_name="x"}}
  %t = {tanh} tanh(%p), metadata={{op_name="jit(step)/tanh" stack_frame_id=2}}
  ROOT %e = f32[8,8]{{1,0}} exponential(%t), metadata={{op_name="jit(step)/exp" stack_frame_id=4}}
}}
"""


def text(a: int, b: int, c: int, tanh: str = "f32[8,8]{1,0}", sharding: str = "replicated") -> str:
    return TEXT.format(a=a, b=b, c=c, tanh=tanh, sharding=sharding)


def of_texts(one: str, other: str) -> str:
    before, after = text_rows(one), text_rows(other)
    changes = changed(before.rows, after.rows)
    assert changes is not None
    return cause(changes, "new_collective", ())


def test_two_texts_name_the_value_and_the_line_behind_it_of_which_nothing_is_left() -> None:
    old = text(7, 8, 9)
    rows = text_rows(old)
    assert [(r.op, r.places) for r in rows.rows] == [
        ("x", ()),
        ("tanh", ("m.py:7",)),
        ("nothing that is left", ("m.py:8",)),
        ("exp", ("m.py:9",)),
    ]
    assert {*rows.places.values()} == {(), ("m.py:7",), ("m.py:9",)}
    assert of_texts(old, text(17, 18, 29)) == ""
    found = of_texts(old, text(17, 18, 19, tanh="f32[8,16]{1,0}"))
    assert found.startswith(stretch("gating.nothing_left", place="m.py:18", operation="tanh", before="m.py:17"))
    # a parameter comes before all others, and a text does not say where it is asked for
    assert of_texts(old, text(7, 8, 9, "f32[8,16]{1,0}", "devices=[2]")).startswith("the parameter x is ")
