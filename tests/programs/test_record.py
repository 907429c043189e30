"""Records: what is read of a compiled program's text, the form in which they are kept, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.programs.reading import read_program, record_of
from layoutproof.programs.record import VERSION, Provenance, Record, json_schema, read_record
from tests.cli.in_one_process import commands
from tests.hlo.dumps import SMALL

CASES = Path(__file__).resolve().parents[1] / "cases" / "hlo"
DUMPS = sorted(CASES.glob("*.txt.gz"))


def of(text: str, **made: object) -> Record:
    """The record of a text."""
    return record_of(text.splitlines(keepends=True), "a.hlo", Provenance(**made))  # type: ignore[arg-type]


def test_a_small_program() -> None:
    """Its parameter by name, its copy with bytes and source, and what is padded."""
    record = of(SMALL)
    (given,), (made,) = record.parameters, record.results
    assert (given.name, given.bytes, given.unpadded, given.devices) == ("x", 8192, 8192, 1)
    assert (made.shape, made.bytes, made.unpadded) == ("f32[256,8]{1,0:T(8,128)}", 131072, 8192)
    (copy,) = record.copies
    assert (copy.kind, copy.bytes, copy.boundary) == ("relayout", 8192 + 131072, "result 0")
    assert (copy.place.op_name, copy.place.source) == ("f/transpose", "model.py:7")
    # the parameter, the fusion's result and the copy's; not what is inside of the fusion
    assert (record.padded, record.unpadded) == (8192 + 8192 + 131072, 3 * 8192)


@pytest.mark.parametrize("path", DUMPS, ids=[path.name.partition(".")[0] for path in DUMPS])
def test_records_of_real_programs(path: Path) -> None:
    """Each is read back as it was written, and is as its schema says."""
    record = read_program(path)
    written = json.loads(record.to_json())
    assert read_record(written) == record
    jsonschema.Draft202012Validator(json_schema()).validate(written)
    assert record.parameters
    assert record.padded >= record.unpadded > 0


def test_a_collective_is_named_by_the_meshs_axes() -> None:
    """The same groups over another mesh are other axes, and over none they are groups."""
    path = CASES / "sharded_matmul_v5e_2x2.txt.gz"
    named = read_program(path, Provenance(mesh={"x": 2, "y": 2}))
    plain = read_program(path)
    assert {each.kind for each in named.collectives} == {each.kind for each in plain.collectives} != set()
    assert all(each.axes and set(each.axes) <= {"x", "y"} for each in named.collectives)
    assert all(each.axes is None and each.groups == 2 for each in plain.collectives)


FUSED = """HloModule fused, is_scheduled=true

%turn (a: f32[8,256]) -> f32[256,8] {
  %a = f32[8,256]{1,0} parameter(0)
  ROOT %t = f32[256,8]{1,0} transpose(%a), dimensions={1,0}
}

ENTRY %main (x: f32[8,256]) -> f32[256,8] {
  %x = f32[8,256]{1,0} parameter(0)
  ROOT %f = f32[256,8]{1,0} fusion(%x), kind=kLoop, calls=%turn
}
"""


def test_a_fusion_of_nothing_but_a_move_is_a_move() -> None:
    """XLA:CPU wraps a transpose so; one that computes something besides is none."""
    (copy,) = of(FUSED).copies
    assert (copy.opcode, copy.kind, copy.bytes, copy.count) == ("transpose", "relayout", 2 * 8 * 256 * 4, 1)
    added = FUSED.replace("ROOT %t = f32[256,8]{1,0} transpose(%a)", "%u = f32[256,8]{1,0} transpose(%a)")
    assert (
        of(added.replace("dimensions={1,0}", "dimensions={1,0}\n  ROOT %t = f32[256,8]{1,0} negate(%u)")).copies == ()
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({}, "it has no version"),
        ([], "it has no version"),
        ({"version": VERSION + 1, "name": "m"}, f"a record of version {VERSION + 1}"),
        ({"version": VERSION}, "name"),
        ({"version": VERSION, "name": "m", "devices": "many"}, "devices"),
    ],
)
def test_what_is_no_record(data: object, why: str) -> None:
    with pytest.raises(LayoutError, match=why):
        read_record(data)


def test_a_key_of_a_later_tool_is_passed_over() -> None:
    """Versions add keys; who reads an older form does not fail on them."""
    assert read_record({**of(SMALL).as_dict(), "weather": "fine"}) == of(SMALL)


def test_the_command(tmp_path: Path) -> None:
    """In a process: the record of a dump; what is cut short or no program at all is bad input, with its line."""
    (tmp_path / "good.hlo").write_text(SMALL)
    (tmp_path / "cut.hlo").write_text(SMALL[:-30])
    (tmp_path / "two.hlo").write_text(SMALL + SMALL.replace("HloModule small", "HloModule other"))
    lines = (["compile", "good.hlo"], ["compile", "cut.hlo"], ["compile", "two.hlo"], ["compile", "none.hlo"])
    (good, cut, two, none), _ = commands(tmp_path, *(list(line) for line in lines))
    assert (good.code, cut.code, two.code, none.code) == (0, 2, 2, 2)
    assert "copy f32[256,8]{0,1:T(8,128)} -> f32[256,8]{1,0:T(8,128)}: 136.0 KiB, of result 0" in good.out
    assert "a second module" in two.err
    assert "none.hlo: No such file" in none.err
