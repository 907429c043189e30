"""The points of a sweep, what its rows say, which is the cheapest, and the file that they are kept in: no JAX."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from layoutproof.answers.of_sweep import Sweep
from layoutproof.cli import documents
from layoutproof.core.counted import Counted
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.pictures.picture import text_picture
from layoutproof.programs.claims import judge
from layoutproof.programs.compile import Asked, Made
from layoutproof.programs.kept_rows import KeptRows, key_of, state_of
from layoutproof.programs.ranking import RANKS, cheapest, state
from layoutproof.programs.record import (
    Collective,
    KernelCall,
    MemoryStats,
    Often,
    Place,
    ProgramWork,
    Provenance,
    Record,
)
from layoutproof.programs.sweep import MOST, SweepPoint, SweepRow, all_axes, points, read_axis, row_of, sent_of
from tests import said

ONCE = Often()
BASE = Asked("model:step", ("bf16[B,1024]", {"w": "f32[8*B,B]"}, "[B, 2]"), {"scale": "f32[B]"}, "v5e")


def asked(point: SweepPoint) -> Asked:
    """Its program. The test fails where it has none."""
    assert isinstance(point.asked, Asked), point.asked
    return point.asked


def at(**values: str) -> Mapping[str, str]:
    """A point."""
    return values


def test_points_of_all_axes() -> None:
    """The last axis is the fastest; a size stands in every shape, alone and times a number, and in no list."""
    found = points(BASE, {"B": ("8", "16"), "policy": ("None", "dots_saveable")})
    assert [each.at for each in found] == [
        {"B": b, "policy": p} for b in ("8", "16") for p in ("None", "dots_saveable")
    ]
    last = asked(found[-1])
    assert last.args == ("bf16[16,1024]", {"w": "f32[128,16]"}, "[B, 2]")
    assert last.kwargs == {"scale": "f32[16]", "policy": "dots_saveable"}
    assert (last.target, last.title) == ("v5e", "model:step at B=16, policy=dots_saveable for v5e")
    assert "--arg 'bf16[16,1024]'" in last.command()
    assert "--kwarg policy=dots_saveable" in last.command()


def test_points_of_devices_and_shardings() -> None:
    """Targets, topologies, the sharding of one argument, and a mesh that takes what the topology has left."""
    axes = {
        "target": ("v5e", "7x"), "topology": ("2x4", "16x16"), "mesh": ("data=-1,model=4", "data=8"),
        "in1": ("P('data')",), "out0": ("P()",),
    }  # fmt: skip
    found = [asked(each) for each in points(replace(BASE, ins=("P(None)",)), axes)]
    assert {(each.target, each.topology): dict(each.mesh) for each in found[::2]} == {
        ("v5e", "2x4"): {"data": 2, "model": 4},
        ("v5e", "16x16"): {"data": 64, "model": 4},
        # a chip of it is two devices
        ("7x", "2x4"): {"data": 4, "model": 4},
        ("7x", "16x16"): {"data": 128, "model": 4},
    }
    assert {tuple(each.mesh.items()) for each in found[1::2]} == {(("data", 8),)}
    assert {(tuple(each.ins), tuple(each.outs)) for each in found} == {(("P(None)", "P('data')"), ("P()",))}


@pytest.mark.parametrize(
    ("base", "axes", "words"),
    [
        (
            BASE,
            {"mesh": ("data=-1,model=3",), "topology": ("2x4",)},
            said.words("programs.devices_not_divided", others=3, devices=8, topology="2x4"),
        ),
        (BASE, {"mesh": ("data=-1,model=-1",)}, said.stretch("programs.one_open_size", size=-1)),
        (BASE, {"mesh": ("data",)}, "'data' is no axis"),
        (replace(BASE, target="cpu"), {"mesh": ("data=-1",)}, said.stretch("programs.cpu_mesh_open")),
        (BASE, {"mesh": ("data=-1",), "topology": ("2by2",)}, said.stretch("programs.topology_form")),
        (
            replace(BASE, mesh={"data": -1, "model": 3}),
            {"topology": ("2x2",)},
            said.stretch("programs.devices_not_divided", others=3, devices=4),
        ),
    ],
)
def test_a_point_that_is_wrong_by_itself(base: Asked, axes: dict[str, tuple[str, ...]], words: str) -> None:
    """It is a point all the same, and says why: the ones beside it are asked."""
    (found,) = points(base, axes)
    assert isinstance(found.asked, LayoutError)
    assert words in found.asked.problem


def test_values_that_belong_together() -> None:
    """Each at every point of the axes; sizes too; no axis is missing, and no values are there twice."""
    together = [{"in0": "P('data')", "in1": "P()"}, {"in0": "P()", "in1": "P('data')"}]
    found = points(BASE, {"B": ("8", "16")}, together)
    assert [each.at for each in found] == [{**one, "B": b} for one in together for b in ("8", "16")]
    assert [tuple(asked(each).ins) for each in found[::2]] == [("P('data')", "P()"), ("P()", "P('data')")]
    alone = points(BASE, {}, [{"B": "8", "in0": "P()"}, {"B": "16", "in0": "P()"}])
    assert [asked(each).args[0] for each in alone] == ["bf16[8,1024]", "bf16[16,1024]"]
    for axes, wrong in (
        ({}, [*together, {"in0": "P()"}]), ({}, [*together, together[0]]), ({"in0": ("P()",)}, together),
        ({"B": ("8",)}, [together[0], {}]),
    ):  # fmt: skip
        with pytest.raises(LayoutError, match=said.stretch("programs.not_together")):
            points(BASE, axes, wrong)
    with pytest.raises(LayoutError, match="'x' is none"):
        points(BASE, {}, [{"B": "x"}])
    with pytest.raises(LayoutError, match=said.stretch("programs.no_axis")):
        points(BASE, {}, [{}])
    assert all_axes({}, together) == {"in0": ("P('data')", "P()"), "in1": ("P()", "P('data')")}


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({}, said.stretch("programs.no_axis")),
        ({"B": ()}, said.words("programs.axis_without_values", name="B")),
        ({"B": ("8", "8")}, "has '8' twice"),
        ({"B": ("8", "x")}, said.words("programs.size_form", name="B", found="x")),
        ({"B": ("0",)}, "'0' is none"),
        ({"a-b": ("1",)}, said.stretch("programs.axis_name")),
        ({"B": tuple(map(str, range(1, MOST + 2)))}, f"at most {MOST:,}"),
    ],
)
def test_what_is_no_sweep(axes: dict[str, tuple[str, ...]], words: str) -> None:
    """Nothing is compiled of it."""
    with pytest.raises(LayoutError, match=words):
        points(BASE, axes)


def test_axes_as_they_are_written() -> None:
    """Commas between values, semicolons where a value has commas; of a mesh a comma is never between two values."""
    assert read_axis("mesh=data=4,model=2") == ("mesh", ("data=4,model=2",))
    assert read_axis("in0=P('data', None); P(None, 'data')") == ("in0", ("P('data', None)", "P(None, 'data')"))
    assert read_axis("topology=2x2, 16x16") == ("topology", ("2x2", "16x16"))
    for wrong in ("B", "=8", ""):
        with pytest.raises(LayoutError, match="is written NAME=VALUE"):
            read_axis(wrong)


def record(**more: object) -> Record:
    """A program of one product on a v5e."""
    chip = CHIPS["v5e"]
    work = ProgramWork({"bf16": Counted.of(chip.bf16 // 1000)}, flops=Counted.of(chip.bf16 // 1000))
    memory = MemoryStats(arguments=4, outputs=3, aliased=1, temporaries=2)
    made = Provenance(target="v5e", compiler="libtpu 0.0.52", mesh={"data": 2, "model": 2})
    return replace(Record("step", made, 4, memory, work=work), **more)  # type: ignore[arg-type]


def collective(axes: tuple[str, ...] | None, size: int | None, often: Often = ONCE) -> Collective:
    """An exchange of so many bytes."""
    return Collective(Place("all-reduce.1"), "all-reduce", "", 2, axes, (), (), size, size, often)


def test_a_row_says_what_the_record_says() -> None:
    """Peak memory and bytes by the claims' own rules, the bound with its term."""
    parts = (
        collective(("data",), 100, Often(4)), collective(("data",), 7), collective(("data", "model"), 3),
        collective(("model",), 8, Often(2, sometimes=True)),
    )  # fmt: skip
    of = record(collectives=parts)
    row = row_of(at(B="8"), Made(Asked("m:f", target="v5e"), of, cpu=1.5, seconds=2.0))
    assert (row.outcome, row.peak, row.devices, row.cpu) == ("compiled", 8, 4, 1.5)
    assert {over: (each.least, each.most) for over, each in row.sent.items()} == {
        "data": (407, 407), "data+model": (3, 3), "model": (0, 16),
    }  # fmt: skip
    whole = sum(each.most or 0 for each in row.sent.values())
    for limit, verdict in ((whole, Verdict.PROVED), (whole - 17, Verdict.REFUTED), (whole - 1, Verdict.UNKNOWN)):
        assert judge("collectives", of, {"at_most": limit}).verdict is verdict, limit
    assert judge("peak_memory", of, {"at_most": row.peak}).verdict is Verdict.PROVED
    assert judge("peak_memory", of, {"at_most": (row.peak or 0) - 1}).verdict is Verdict.REFUTED
    assert row.bound == Counted.of(10**9)
    assert (row.binds, row.chip_time) == ("matrix unit", Counted.of(4 * 10**9))


def test_what_is_open_stays_open() -> None:
    """A loop of unknown trips, bytes that nobody knows, a kernel that sends, work that is not counted."""
    kernel = KernelCall(Place("k"), "k", None, "", Often(), communicates=True)
    found = sent_of(
        record(collectives=(collective(("data",), 5, Often(None, why="w")), collective(None, None)), kernels=(kernel,))
    )
    assert {over: (each.least, each.most) for over, each in found.items()} == {"data": (0, None), "?": (0, None)}
    assert sent_of(record(kernels=(kernel,)))["?"].most is None
    assert sent_of(record(collectives=(collective(None, None),)))["?"].most is None
    of = record()
    assert of.work is not None
    uncounted = replace(of, work=replace(of.work, uncounted=("a sort",)))
    row = row_of(at(), Made(Asked("m:f"), uncounted))
    assert row.bound == Counted(10**9, None, "a sort")
    assert row_of(at(), Made(Asked("m:f"), record(made=Provenance(target="cpu")))).bound is None


@pytest.mark.parametrize(
    ("problem", "outcome", "code"),
    [
        (Finding("compile", "f", "CompileTimeHbmOom: Ran out of memory on HBM, the total", verdict=Verdict.REFUTED),
         "too_large", 1),
        (Finding("compile", "f", "Ran out of memory in memory space hbm. Used 2G of 1G", verdict=Verdict.REFUTED),
         "too_large", 1),
        # a kernel's own memory is no HBM
        (Finding("compile", "f", "Ran out of memory in memory space vmem", verdict=Verdict.REFUTED), "refused", 1),
        (Finding("compile", "f", "it took longer than 5 s", verdict=Verdict.UNKNOWN), "unknown", 3),
        (Finding("compile", "f", "9 by 2", verdict=Verdict.UNKNOWN, bad_input=True), "bad_input", 2),
        (None, "unknown", 3),
    ],
)  # fmt: skip
def test_points_without_a_record_are_rows(problem: Finding | None, outcome: str, code: int) -> None:
    """Each with its reason and its own exit code; none fits, and none is the cheapest."""
    row = row_of(at(B="8"), Made(Asked("m:f", target="v5e"), problem=problem))
    good = row_of(at(B="16"), Made(Asked("m:f", target="v5e"), record()))
    assert state(row) == outcome
    assert row.fits() is (False if outcome == "too_large" else None)
    answer = Sweep("m:f", {"B": ("8", "16")}, (row, good), frozenset("B"))
    assert answer.exit_code == code
    (finding,) = answer.findings
    assert row.reason
    assert row.reason in finding.reason
    assert finding.subject == "m:f at B=8"
    first, second = answer.cheapest
    assert (first.row, first.why, second.row) == (None, "no point fits", 1)
    assert [(each["at"]["B"], each["state"]) for each in answer.as_dict()["rows"]] == [("8", outcome), ("16", "fits")]
    documents.adapter("compile").validate_python({**answer.as_dict(), "written": []})
    words = outcome.replace("_", " ")
    assert any(line.startswith("8") and words in line for line in str(answer).splitlines())
    assert f"| `8` | {words}" in answer.markdown()


def row(time: int | None, peak: int | None, devices: int = 1, target: str = "v5e", **values: str) -> SweepRow:
    """A row that was compiled. time: None where the bound is open."""
    bound = Counted(1, None, "w: its trips are unknown") if time is None else Counted.of(time)
    return SweepRow(values, "compiled", target=target, devices=devices, peak=peak, bound=bound, binds="HBM")


def test_the_cheapest_of_what_fits() -> None:
    """By time, then memory; what does not fit, or has an open bound, is not compared, however little it takes."""
    rows = (
        row(5, 9, 1, m="slow"), row(3, 9, 4, m="fast"), row(3, 8, 8, m="lean"), row(1, 11, 1, m="large"),
        row(None, 1, 1, m="open"),
    )  # fmt: skip
    for rank, name in (("time", "lean"), ("chip-time", "slow"), ("peak", "open")):
        (found,) = cheapest(rows, frozenset(), rank, 10)
        assert found.row is not None
        assert rows[found.row].at["m"] == name, rank
    (found,) = cheapest(rows, frozenset(), "time", 10)
    assert (found.among, found.unbounded) == (3, 1)
    (found,) = cheapest(rows, frozenset(), "time", 11)
    assert found.row == 3
    # nothing but open bounds: the certain part, and what it leaves out
    (found,) = cheapest(rows[4:], frozenset(), "time", 10)
    assert (found.row, found.first, found.among, found.unbounded) == (None, 0, 1, 0)
    assert found.why == said.words("programs.all_bounds_open", why="w: its trips are unknown")
    assert "undecided, all bounds are open" in str(Sweep("m:f", {"m": ("open",)}, rows[4:], memory=10))
    (found,) = cheapest([replace(rows[0], bound=None)], frozenset(), "time", 10)
    assert (found.row, found.unbounded) == (None, 1)
    assert said.stretch("programs.no_bound") in found.why
    assert set(RANKS) == {"time", "chip-time", "peak"}


def test_other_sizes_are_no_rivals() -> None:
    """A smaller batch is less work: the cheapest is named for each."""
    rows = tuple(row(int(b), 1, B=b, mesh=m) for b in ("8", "16") for m in ("a", "b"))
    assert [(dict(each.sizes), each.row) for each in cheapest(rows, frozenset("B"), "time")] == [
        ({"B": "8"}, 0), ({"B": "16"}, 2),
    ]  # fmt: skip


def test_without_a_limit_nothing_fits() -> None:
    """The CPU has no HBM: what is compiled there is no answer to whether it fits, unless a size is given."""
    one = row(1, 8, target="cpu", B="8")
    answer = Sweep("m:f", {"B": ("8",)}, (one,))
    assert answer.as_dict()["rows"][0]["state"] == "compiled"
    assert (answer.cheapest[0].row, answer.exit_code) == (None, 0)
    assert said.stretch("programs.memory_unknown") in str(answer)
    for limit, word, code in ((8, "fits", 0), (7, "too_large", 1)):
        given = replace(answer, memory=limit)
        assert (given.as_dict()["rows"][0]["state"], given.exit_code) == (word, code)
    assert state(replace(one, target="v5e", peak=CHIPS["v5e"].hbm + 1)) == "too_large"
    assert state(replace(one, target="v5e", peak=None)) == "compiled"


def test_a_table_holds_no_markup_of_a_user() -> None:
    """A value of an axis stands in a code span, in one column."""
    answer = Sweep("m:`f`", {"x": ("a|b`<i>",)}, (row(1, 1, x="a|b`<i>"),))
    line = next(line for line in answer.markdown().splitlines() if line.startswith("| `a"))
    assert line.startswith("| `a\\|b'<i>` | fits |")
    assert line.replace("\\|", "").count("|") == 8


def test_the_picture() -> None:
    """A cell for each point; what does not fit, what has no figure, and the cheapest are marked by signs."""
    rows = (row(3, 8, m="a", n="x"), row(2, 99, m="a", n="y"), SweepRow(at(m="b", n="x"), "refused", "no"),
            row(2, 9, m="b", n="y"))  # fmt: skip
    answer = Sweep("m:f", {"m": ("a", "b"), "n": ("x", "y")}, rows, memory=10)
    shown = text_picture(answer.picture())
    lines = [line.split() for line in shown.splitlines()]
    assert ["m=a", "8", "B", "!99", "B"] in lines
    assert ["m=b", "orefused", "*9", "B"] in lines
    assert ["m=b", "orefused", "*2", "ps"] in lines
    assert "* the cheapest of those that fit and compute the same" in shown
    assert answer.svg().count("refused") >= 2


def test_rows_are_kept_line_by_line(tmp_path: Path) -> None:
    """Each at once; half a line that a killed run left is dropped, the unknown is asked again, and more is an error."""
    path = tmp_path / "rows.jsonl"
    one, two = row(3, 8, B="8"), SweepRow(at(B="16"), "refused", "no", sent={"data": Counted(1, None, "w")})
    with KeptRows(path) as kept:
        kept.put("a", one)
        assert len(path.read_text().splitlines()) == 1
        kept.put("b", two)
        kept.put("c", SweepRow(at(B="32"), "unknown", "it took too long"))
    path.write_text(path.read_text() + '{"key": "d", "row": {"at": {"B"')
    with KeptRows(path) as kept:
        assert kept.rows == {"a": one, "b": two}
        kept.put("d", one)
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a", "b", "d"]
    text = path.read_text()
    for wrong in ("[]\n", '{"key": 1, "row": {}}\n', '{"key": "x", "row": {"at": 7}}\n', "\x80\n"):
        path.write_text(wrong + text)
        with pytest.raises(LayoutError, match=re.escape(said.stretch("programs.no_row"))) as raised, KeptRows(path):
            pass
        assert (raised.value.file, raised.value.line) == (str(path), 1)


def test_a_row_is_of_one_request_and_one_state_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another argument, flag, file of the repository, or variable: another key. What the run writes is left out."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("def step(x): return x\n")
    one = Asked("model:step", ("f32[8]",))
    before = state_of("model:step", ["rows.jsonl"])
    (tmp_path / "rows.jsonl").write_text("{}\n")
    assert state_of("model:step", ["rows.jsonl"]) == before
    others = [replace(one, args=("f32[9]",)), replace(one, mesh={"a": 1}), replace(one, flags={"a": "b"}),
              replace(one, kwargs={"a": "b"}), replace(one, donate=(0,))]  # fmt: skip
    assert len({key_of(each, before) for each in [one, *others]}) == 6
    assert key_of(replace(one, name="another name"), before) == key_of(one, before)
    monkeypatch.setenv("XLA_FLAGS", "--xla_something")
    assert state_of("model:step", ["rows.jsonl"]) != before
    monkeypatch.delenv("XLA_FLAGS")
    (tmp_path / "helper.py").write_text("n = 1\n")
    assert state_of("model:step", ["rows.jsonl"]) != before
    # code beside a file that lies elsewhere
    there = tmp_path / "there"
    there.mkdir()
    (there / "other.py").write_text("def f(x): return x\n")
    here = tmp_path / "here"
    here.mkdir()
    (here / "pyproject.toml").write_text("")
    monkeypatch.chdir(here)
    first = state_of("../there/other.py:f", [])
    (there / "other.py").write_text("def f(x): return 2 * x\n")
    assert state_of("../there/other.py:f", []) != first
