"""176 programs that the real compiler compiled: what is read of each text is what the compiler says of it elsewhere.

`python benchmarks/programs.py --write` compiles them; nobody here wrote a number that is compared. A few are compiled
anew where libtpu is installed.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import pytest

from layoutproof.programs.compile import Asked, completed, made
from layoutproof.programs.reading import record_of
from layoutproof.programs.record import Provenance, Record

CASES = Path(__file__).resolve().parents[1] / "cases" / "programs.jsonl.gz"
CORPUS = Path(__file__).resolve().parent / "corpus.py"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in gzip.decompress(CASES.read_bytes()).splitlines()]
NAMES = [f"{row['name']}-{row['target']}" for row in ROWS]
WIDTH = {"bf16": 2, "f32": 4}
TRIPS = {"scanned": {6}, "stepped": {6}, "nested": {7, 21}, "sharded_scan": {5}, "until": {None}}


@cache
def record(number: int) -> Record:
    """The record of one row."""
    row = ROWS[number]
    about = Provenance(mesh=row["mesh"], target=row["target"])
    lines = row["text"].splitlines(keepends=True)
    return completed(record_of(lines, row["name"], about, row["shardings"]["parameters"]), row)


def test_there_are_enough() -> None:
    """Of four generations, a quarter of them at least on several devices."""
    assert len(ROWS) >= 100
    assert {row["target"] for row in ROWS} == {"v5e", "v5p", "v6e", "7x"}
    assert sum(bool(row["mesh"]) for row in ROWS) >= 20


@pytest.mark.parametrize("number", range(len(ROWS)), ids=NAMES)
def test_memory_and_names(number: int) -> None:
    """Arguments and results by their layouts are the compiler's own bytes; each has a name; nothing is unread."""
    found, row = record(number), ROWS[number]
    assert found.entry_bytes == row["memory"]["arguments"]
    # several results stand in a table of pointers besides
    table = row["memory"]["outputs"] - sum(value.bytes or 0 for value in found.results)
    assert table in ((0,) if len(found.results) == 1 else (32, 512))
    assert all(value.name for value in (*found.parameters, *found.results))
    assert all(value.devices is not None for value in (*found.parameters, *found.results))
    assert found.unknown == ()
    aliased = sum(value.bytes or 0 for value in found.results if value.alias is not None)
    assert aliased == row["memory"]["aliased"]


def sides(found: Record) -> int:
    """Bytes that all collectives read and write, by their shapes."""
    shapes = [shape for each in found.collectives for shape in (*each.operands, *each.results)]
    parts = [re.fullmatch(r"(\w+)\[([\d,]*)\]", shape) for shape in shapes]
    return sum(WIDTH[part[1]] * prod(map(int, filter(None, part[2].split(",")))) for part in parts if part)


ALONE = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all")
"""Programs that have nothing but copies and one collective."""


def test_collectives_against_the_compilers_cost_analysis() -> None:
    """Bytes accessed are those of the collective and of the copies, exactly; groups and shards as its emitter says."""
    compared = 0
    for number, row in enumerate(ROWS):
        if not row["mesh"]:
            continue
        found = record(number)
        if row["name"].startswith(ALONE):
            moved = sum((each.bytes or 0) * each.count for each in found.copies)
            if row["target"] == "7x" and row["name"] != "all_to_all":
                # what 7x does besides stands in its cost analysis alone
                assert sides(found) + moved <= row["cost"]["bytes_accessed"], NAMES[number]
            else:
                assert sides(found) + moved == row["cost"]["bytes_accessed"], NAMES[number]
                compared += 1
            assert len(found.collectives) == 1
        said = re.findall(r"group_size = (\d+).*?shard_size = (\d+) bytes", row["text"])
        for (size, shard), each in zip(said, [c for c in found.collectives if c.kind == "all-gather"], strict=False):
            assert (each.groups, (each.bytes or 0) // int(size)) == (int(size), int(shard)), NAMES[number]
    assert compared >= 20


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("all_gather", ("model",)),
        ("all_gather_rows", ("data",)),
        ("all_gather_both", ("data", "model")),
        ("all_reduce", ("model",)),
        ("all_reduce_data", ("data",)),
        ("reduce_scatter", ("model",)),
        ("all_to_all", ("model",)),
        ("permuted", ("model",)),
        ("permuted_data", ("data",)),
    ],
)
def test_collectives_run_along_the_axes_that_the_program_names(name: str, axes: tuple[str, ...]) -> None:
    found = [record(number) for number, row in enumerate(ROWS) if row["name"] == name]
    assert found
    assert {each.axes for one in found for each in one.collectives} == {axes}


def test_what_would_do_of_what_is_sent() -> None:
    """Known of every program on several devices; all is needed, but of an all-to-all between equal arrays nothing."""
    for number, row in enumerate(ROWS):
        found = [(each.needed, each.why) for each in record(number).reshards]
        assert found == ([(0, "")] if row["name"] == "all_to_all" else []), NAMES[number]


@pytest.mark.parametrize("name", TRIPS)
def test_loops_run_as_often_as_the_program_says(name: str) -> None:
    """Also nested ones, and those with a step; a loop that ends by its data is unknown."""
    from layoutproof.hlo.executions import Executions
    from layoutproof.hlotext.lines import read_hlo

    for row in ROWS:
        if row["name"] != name:
            continue
        (module,) = read_hlo(row["text"].splitlines(keepends=True))
        runs, bodies = Executions(), []
        for computation in module.computations:
            runs.begin(computation.name, computation.entry)
            for of in computation.instructions:
                runs.instruction(of)
                bodies += [callee for role, callee in of.calls if of.opcode == "while" and role == "body"]
            runs.end()
        assert {runs.of(body).times for body in bodies} == TRIPS[name], row["target"]


def test_kernels_have_the_vmem_that_the_compiler_counted() -> None:
    """The matrix product of Pallas: its windows and its scratch at the least."""
    found = [record(number) for number, row in enumerate(ROWS) if row["name"] == "pallas"]
    assert len(found) >= 3
    for one in found:
        (kernel,) = one.kernels
        assert kernel.vmem is not None
        assert kernel.vmem >= 3 * 2 * 256 * 256 * 2 + 256 * 256 * 4


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")
def test_some_are_compiled_anew() -> None:
    """The installed compiler against what was kept: parameters, results and collectives are the same."""
    from tests.programs import corpus

    wanted = [("all_gather", "v5e"), ("sharded_scan", "v6e"), ("turned", "v5p")]
    asked = [
        Asked(
            f"{CORPUS}:{name}",
            corpus.PROGRAMS[name].args,
            target=target,
            topology=corpus.TARGETS[target] if corpus.PROGRAMS[name].ins else "",
            mesh=corpus.MESH if corpus.PROGRAMS[name].ins else {},
            ins=corpus.PROGRAMS[name].ins,
            donate=corpus.PROGRAMS[name].donate,
        )
        for name, target in wanted
    ]
    for (name, target), found in zip(wanted, made(asked, 300.0), strict=True):
        assert found.record is not None, found.problem
        kept = record(NAMES.index(f"{name}-{target}"))
        for anew, before in ((found.record.parameters, kept.parameters), (found.record.results, kept.results)):
            for value, old in zip(anew, before, strict=True):
                # the kept records are of a time when nobody asked the compiler for shardings
                assert replace(value, sharding=old.sharding, spec=old.spec) == old
        assert bool(corpus.PROGRAMS[name].ins) == any(value.spec for value in found.record.parameters)
        assert [(c.kind, c.axes, c.bytes, c.often) for c in found.record.collectives] == [
            (c.kind, c.axes, c.bytes, c.often) for c in kept.collectives
        ]
