"""The gate of compiled programs' records: each class, by files, by the lock, and with another compiler."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from layoutproof.answers.of_states import gate
from layoutproof.core.finding import Finding
from layoutproof.gating.program_changes import compare
from layoutproof.gating.records import changes
from layoutproof.gating.states import File
from layoutproof.programs.record import (
    Collective,
    Copy,
    KernelCall,
    MemoryStats,
    Often,
    Place,
    ProgramValue,
    Provenance,
    Record,
)
from tests.recorded import dump
from tests.said import stretch

pytestmark = pytest.mark.slow

MADE = Provenance(function="m:step", target="v5e", compiler="libtpu 0.0.52", command="layoutproof compile m:step")
X = ProgramValue(0, "x", "f32[64,256]{1,0:T(8,128)}", 65536, 65536, "f32[128,256]", donated="result 0", devices=1)
W = ProgramValue(1, "w", "f32[256,256]{1,0:T(8,128)}", 262144, 262144, "f32[256,256]", devices=1)
GATHER = Collective(
    Place("all-gather.1", 9, "jit(f)/dot"), "all-gather", "all-gather over {0,1}", 2, ("data",), ("f32[64,256]",),
    ("f32[128,256]",), 131072, 65536, Often(4),
)  # fmt: skip
COPY = Copy(Place("copy.1", 7), "copy", "relayout", "f32[8,8]{1,0}", "f32[8,8]{0,1}", 512, 1, Often(2))
KERNEL = KernelCall(Place("k.1", 8), "matmul", 4096, "abc", Often())
BASE = Record(
    "step", MADE, 2, MemoryStats(900_000, 95_000, 0, 5000, peak=1_500_000), cycles=1000, parameters=(X, W),
    results=(ProgramValue(0, "", "f32[64,256]{1,0:T(8,128)}", 65536, 65536),), collectives=(GATHER,), copies=(COPY,),
    kernels=(KERNEL,), digest="0",
)  # fmt: skip

CHANGED: dict[str, tuple[dict[str, object], list[str]]] = {
    "peak memory": ({"memory": MemoryStats(1_000_000, 95_000, 0, 5000)}, ["peak_memory"]),
    "temporaries": ({"memory": MemoryStats(896_000, 95_000, 0, 9000)}, ["temporaries"]),
    "temporaries alone": ({"memory": MemoryStats(900_000, 95_000, 0, 9000)}, ["peak_memory"]),
    "less memory": ({"memory": MemoryStats(800_000, 95_000, 0, 5000)}, ["shrank"]),
    "a buffer less that is shared": ({"memory": MemoryStats(900_000, 95_000, 50_000, 5000)}, ["shrank"]),
    "the compiler's own peak": ({"memory": MemoryStats(900_000, 95_000, 0, 5000, peak=9_000_000)}, []),
    "memory nobody says": ({"memory": MemoryStats(temporaries=5000)}, ["unknown"]),
    "cycles": ({"cycles": 1200}, ["estimated_cycles"]),
    "an argument relaid": (
        {"parameters": (replace(X, shape="f32[64,256]{1,0:T(4,128)}"), W)}, ["abi"]),
    "a result relaid": ({"results": (ProgramValue(0, "", "f32[64,256]{1,0:T(4,128)}", 65536, 65536),)}, ["abi"]),
    "one more argument": (
        {"parameters": (replace(W, name="b", number=0), replace(X, number=1), replace(W, number=2))}, ["abi"]),
    "arguments swapped": ({"parameters": (replace(W, number=0), replace(X, number=1))}, ["abi"]),
    "a donation lost": ({"parameters": (replace(X, donated=""), W)}, ["lost_donation"]),
    "replicated": ({"parameters": (X, replace(W, devices=2))}, ["replicated"]),
    "a collective more": ({"collectives": (GATHER, replace(GATHER, does="all-gather over {0}"))}, ["new_collective"]),
    "a collective gone": ({"collectives": ()}, ["vanished_collective"]),
    "over other axes": (
        {"collectives": (replace(GATHER, does="all-gather over {0,2}", axes=("model",)),)}, ["regrouped"]),
    "more trips": ({"collectives": (replace(GATHER, often=Often(8)),)}, ["grown_collective"]),
    "trips nobody knows": ({"collectives": (replace(GATHER, often=Often(None, why="while.1")),)}, ["unknown"]),
    "a copy more": ({"copies": (COPY, replace(COPY, boundary="parameter 1"))}, ["relaid_parameter"]),
    "a copy more often": ({"copies": (replace(COPY, often=Often(5)),)}, ["new_copy"]),
    "one that moved to another line": (
        {"collectives": (replace(GATHER, place=Place("all-gather.7", 4, "jit(f)/jit(g)/dot", "train.py:18"),
         operands=("f32[64,256]{1,0:T(8,128)S(1)}",)),)}, []),
    "one of other arrays, as many bytes": (
        {"collectives": (replace(GATHER, place=Place("all-gather.7", 4, "jit(f)/jit(g)/dot"),
         operands=("f32[32,512]",), results=("f32[64,512]",)),)}, []),
    "one of other arrays, more bytes": (
        {"collectives": (replace(GATHER, place=Place("all-gather.7", 4, "jit(f)/jit(g)/dot"), bytes=262144,
         operands=("f32[64,512]",), results=("f32[128,512]",)),)}, ["grown_collective"]),
    "less VMEM by another kernel": ({"kernels": (replace(KERNEL, vmem=1024, digest="def"),)}, ["kernel_body"]),
    "less VMEM": ({"kernels": (replace(KERNEL, vmem=1024),)}, ["shrank"]),
    "another kernel": ({"kernels": (replace(KERNEL, digest="def"),)}, ["kernel_body"]),
    "more VMEM": ({"kernels": (replace(KERNEL, vmem=8192),)}, ["vmem"]),
    "other devices": ({"devices": 4}, ["devices"]),
}  # fmt: skip


def written(folder: Path, **programs: Record) -> None:
    for name, record in programs.items():
        (folder / f"{name}.json").write_text(record.to_json())


@pytest.mark.fast
@pytest.mark.parametrize("name", CHANGED)
def test_each_change_has_its_class(name: str) -> None:
    given, kinds = CHANGED[name]
    after = replace(BASE, **given)  # type: ignore[arg-type]
    assert [f.question for f in changes(BASE, after)] == kinds
    assert not changes(after, after)


@pytest.mark.fast
def test_a_sum_that_no_shape_shows_is_asked_for_as_of_two_dumps() -> None:
    """An all-reduce that is gone leaves every shape as it was; of records that was allowed."""
    does = "all-reduce reduced by add over {0,1}"
    summed = replace(GATHER, kind="all-reduce", does=does, results=GATHER.operands, bytes=65536)
    (found,) = changes(replace(BASE, collectives=(summed,)), replace(BASE, collectives=()))
    assert (found.question, found.before) == ("lost_exchange", f"{does} of f32[64,256] to f32[64,256]")


@pytest.mark.fast
def test_loops_of_unknown_trips() -> None:
    """What runs in one is no change where it is as before, and a change where it moves more each time."""
    loop = Often(None, why="while.1")
    before = replace(BASE, copies=(replace(COPY, often=loop),), collectives=(replace(GATHER, often=loop),))
    assert not changes(before, before)
    more = replace(before, collectives=(replace(GATHER, often=loop, bytes=262144),))
    assert [f.question for f in changes(before, more)] == ["grown_collective"]
    more = replace(before, copies=(replace(COPY, often=loop, bytes=1024),))
    assert [f.question for f in changes(before, more)] == ["unknown"]
    # how often it ran is not known, so neither is whether it runs more often
    assert [f.question for f in changes(before, replace(before, collectives=(GATHER,)))] == ["unknown"]


@pytest.mark.fast
def test_another_program_whose_record_is_the_same() -> None:
    """Two digests of the lowered program: what a record holds did not change, and the program did."""
    one, other = (replace(BASE, made=replace(MADE, lowered=digest)) for digest in "ab")
    (found,) = changes(one, other)
    assert (found.question, found.subject) == ("program", "lowered program")
    assert stretch("gating.lowered_otherwise") in found.reason
    assert not changes(one, one)
    assert [f.question for f in changes(one, replace(other, cycles=1200))] == ["estimated_cycles"]


@pytest.mark.fast
def test_less_vmem_by_another_kernel_is_a_trade() -> None:
    """Both sides are said in one warning: four times less VMEM, and nobody knows how many more steps."""
    (found,) = changes(BASE, replace(BASE, kernels=(replace(KERNEL, vmem=1024, digest="def"),)))
    assert "4096 bytes before, 1024 now: -75 %" in found.reason
    assert "its steps and cycles" in found.reason


@pytest.mark.fast
@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("{replicated}", "{mesh[], [{}, {}]}", "respelled"),
        ("{replicated}", "{mesh['x'=2], [{}, {}]}", "respelled"),
        ("{devices=[2,1]<=[2]}", "{mesh['x'=2], [{'x'}, {}]}", "respelled"),
        ("{replicated}", "{mesh['x'=2], [{'x'}, {}]}", "resharded"),
        ("{devices=[2,1]<=[2]}", "{mesh['x'=2], [{}, {'x'}]}", "resharded"),
        ("{maximal device=1}", "{mesh[], [{}, {}]}", "resharded"),
    ],
)
def test_shardings_that_two_versions_of_jax_write_otherwise(old: str, new: str, kind: str) -> None:
    """In two dumps and in two records: a mesh without axes is `{replicated}`; seven parameters were denied for it."""
    text = (
        "HloModule f, num_partitions=2, entry_computation_layout={(f32[4,8]{1,0})->f32[4,8]{1,0}}\n\n"
        "ENTRY %f (x: f32[4,8]) -> f32[4,8] {\n"
        "  ROOT %x = f32[4,8]{1,0} parameter(0), sharding={replicated}\n}\n"
    )
    sides = [File("a", "a", text.replace("{replicated}", sharding).encode()) for sharding in (old, new)]
    assert [f.question for f in compare(sides[0], sides[1], "a")] == [kind]
    records = [replace(BASE, parameters=(replace(X, sharding=sharding), W)) for sharding in (old, new)]
    assert [f.question for f in changes(*records)] == [kind]


@pytest.mark.fast
def test_files_and_the_command(tmp_path: Path) -> None:
    written(tmp_path, old=BASE, new=replace(BASE, memory=MemoryStats(1_000_000, 95_000, 0, 5000)))
    command = [sys.executable, "-m", "layoutproof", "gate", "old.json", "new.json", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    (only,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, only["question"], only["severity"]) == (1, "peak_memory", "deny")
    assert only["figures"]["percent"] == 10
    assert gate(tmp_path / "old.json", tmp_path / "old.json").exit_code == 0


@pytest.mark.fast
def test_a_record_is_not_compared_with_a_dump(tmp_path: Path) -> None:
    """`compile -o` writes both, side by side: to give one of each is a mistake, and no broken dump."""
    written(tmp_path, old=BASE)
    (tmp_path / "new.hlo").write_text(dump("conv_v5e"))
    for given in (("old.json", "new.hlo"), ("new.hlo", "old.json")):
        command = [sys.executable, "-m", "layoutproof", "gate", *given]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert "old.json is the record of a program, and new.hlo a dump: give two records, or two dumps" in done.stderr


def test_the_lock_holds_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "programs").mkdir()
    written(tmp_path / "programs", step=BASE)

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "layoutproof", "gate", *more], capture_output=True, text=True)

    assert run("--lock", "programs").returncode == 0
    assert run().returncode == 0
    written(tmp_path / "programs", step=replace(BASE, parameters=(replace(X, donated=""), W)))
    done = run()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "lost_donation" in done.stdout
    (tmp_path / "programs" / "step.json").unlink()
    assert "removed" in run().stdout


@pytest.mark.fast
def test_another_compiler_is_unknown_and_says_how_to_renew(tmp_path: Path) -> None:
    newer = replace(MADE, compiler="libtpu 0.0.53")
    more = MemoryStats(1_000_000, 95_000, 0, 5000)
    written(
        tmp_path,
        old=BASE,
        new=replace(BASE, made=newer, memory=more, cycles=5),
        same=replace(BASE, made=newer, cycles=9),
    )
    found = gate(tmp_path / "old.json", tmp_path / "new.json")
    (head,) = found.findings
    assert (found.exit_code, head.question) == (3, "unknown")
    assert (head.before, head.after) == ("libtpu 0.0.52", "libtpu 0.0.53")
    assert [f.question for f in head.follows] == ["peak_memory"]
    assert "layoutproof compile m:step" in head.fix
    assert "--lock" in head.fix
    assert gate(tmp_path / "old.json", tmp_path / "same.json").exit_code == 0


@pytest.mark.fast
def test_a_broken_record_is_bad_input(tmp_path: Path) -> None:
    written(tmp_path, old=BASE)
    (tmp_path / "new.json").write_text((tmp_path / "old.json").read_text()[:-40])
    found = gate(tmp_path / "old.json", tmp_path / "new.json")
    assert found.exit_code == 2
    assert [f.bad_input for f in found.findings] == [True]


def _subjects(found: list[Finding]) -> list[str]:
    return [f.subject for f in found]


@pytest.mark.fast
def test_values_are_named() -> None:
    after = replace(BASE, parameters=(replace(W, name="b", number=0), replace(X, number=1), replace(W, number=2)))
    assert _subjects(changes(BASE, after)) == ["parameter 0 (b)"]
