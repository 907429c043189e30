"""Facts about targets: each says who said it, and is found again; one that is changed is found to have moved."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.answers import of_facts
from layoutproof.answers.of_facts import Drift
from layoutproof.compiler import libtpu
from layoutproof.core.finding import Finding
from layoutproof.crosschecks import facts as again
from layoutproof.crosschecks.facts import FINDERS, Today, today
from layoutproof.hardware import tpu
from layoutproof.hardware.facts import Fact, as_of, facts
from layoutproof.hardware.tpu_chips import CHIPS

pytestmark = pytest.mark.slow

live = pytest.mark.skipif(libtpu.missing() != "", reason=f"the TPU compiler: {libtpu.missing()}")


def of(*names: str, target: str = "v5e") -> tuple[Fact, ...]:
    return tuple(fact for fact in facts() if fact.name in names and fact.target in ("", target))


def test_every_number_of_the_table_of_chips_is_a_fact() -> None:
    fields = {fact.name for fact in facts() if fact.target == "v5e"}
    unmeasured = {"name", "aliases", "nicknames"}
    assert fields == set(type(CHIPS["v5e"]).__slots__) - unmeasured
    assert {fact.target for fact in facts()} >= {*CHIPS, "cuda", "trainium", "triton", "mosaic_gpu"}


def test_every_fact_says_who_and_how() -> None:
    for fact in facts():
        assert fact.version, fact
        assert fact.source, fact
        assert fact.value, fact
        # who is a compiler or a library has a version
        assert not fact.version.startswith(("libtpu", "jax")) or any(c.isdigit() for c in fact.version), fact


def test_what_is_not_found_again_is_little() -> None:
    """A fact about TPUs that nobody finds again is named here, and why."""
    left = {f.name for f in facts() if f.target in ("", *CHIPS) and f.name not in FINDERS}
    # a kernel of jax's own; 540 kernels of emit_pipeline; cycles of a simulation; what benchmarks/vmem_bounds.py asks;
    # scratch of kernels of SparseCores, which docs/subcores.md has; links, of which only the makers publish
    measured = {"spills", "blocks of pipelines", "multiplies", "stores", "whole arrays", "fetches", "sparse"}
    assert left == measured | {"link_bandwidth", "closes"}
    assert set(FINDERS) <= {fact.name for fact in facts()}


def test_a_fact_of_several_versions_is_asked_as_of_one() -> None:
    known = {
        fact.name: fact.value for fact in as_of(facts(), "libtpu 0.0.50.1") if fact.name in ("sums", "narrow_rows")
    }
    assert known == {"sums": "False", "narrow_rows": "True"}
    assert [f.value for f in as_of(facts(), "libtpu 0.0.53") if f.name == "sums"] == ["True"]
    assert [f.value for f in as_of(facts(), "libtpu 0.0.17") if f.name == "narrow_rows"] == ["False"]
    sizes = [
        fact.value
        for version in ("0.0.42.1", "0.0.52")
        for fact in as_of(facts(), f"libtpu {version}")
        if (fact.name, fact.target) == ("hbm", "v5e")
    ]
    assert sizes == [str(16125 << 20), str(16124 << 20)]


@live
def test_facts_are_found_again() -> None:
    every = of(
        "kind", "topology", "devices", "packed_rows", "sub_byte", "large_tiles", "cores", "bf16", "lanes", "sublanes"
    )
    every += of("devices") + of("devices", target="7x") + of("devices", target="v4")
    every += of("packed_rows", "sub_byte", "large_tiles", target="v2") + of("default layouts", "narrow_rows", "sums")
    found = list(today(every=every))
    assert [(each.fact.name, each.fact.target) for each in found if each.state != "same"] == []
    assert {each.version.split()[0] for each in found} == {"libtpu", "jax"}


@live
@pytest.mark.parametrize(
    ("name", "value", "now"),
    [
        ("sub_byte", "False", "True"),
        ("devices", "2", "1"),
        ("packed_rows", "2", "1"),
        ("large_tiles", "1, 2, 4", "1, 2, 4, 8"),
        ("bandwidth", "819000000000", "820000000000"),
        ("lanes", "256", "128"),
        ("sums", "False", "True"),
        ("vmem_scoped", str(17 << 20), str(16 << 20)),
        ("vmem_scoped", str(15 << 20), str(16 << 20)),
    ],
)
def test_a_changed_fact_has_moved(name: str, value: str, now: str) -> None:
    fact = replace(of(name)[-1], value=value)
    (found,) = today(every=(fact,))
    assert (found.state, found.value) == ("moved", now)


@live
def test_a_changed_rule_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu, "SUBLANES", 16)
    (found,) = today(every=of("default layouts"))
    assert found.state == "moved"
    assert " not: " in found.value
    assert "the rule says" in found.value


@live
def test_a_fact_on_which_the_compiler_dies_is_unanswered_and_the_rest_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(ask: again.Ask, fact: Fact, number: str) -> str:
        return again._layout(ask, "v5e", "f32", [2**31 - 1, 2**31 - 1])

    monkeypatch.setattr(again, "FINDERS", {**FINDERS, "kind": dies})
    first, second = today(every=of("kind", "packed_rows"))
    assert (first.state, second.state) == ("unanswered", "same")
    assert first.why.startswith("aborted: the TPU compiler ended by SIGABRT")


SAME = Today(Fact("lanes", "128", "libtpu 0.0.42.1", "a tile"), "128", "libtpu 0.0.52")
MOVED = Today(Fact("hbm", "2", "libtpu 0.0.42.1", "arrays", "v5e"), "1", "libtpu 0.0.52")
DEAD = Today(Fact("vmem", "2", "libtpu 0.0.42.1", "windows", "v5e"), "", "libtpu 0.0.52", "aborted: x")
IDLE = Today(Fact("extent of lane", "32", "apache/tvm", "a file", "cuda"), why="read in documents")


@pytest.mark.parametrize(
    ("found", "code"),
    [((SAME, IDLE), 0), ((SAME, MOVED, DEAD), 1), ((SAME, DEAD), 3), ((IDLE,), 3), ((SAME, MOVED), 1)],
)
def test_exit_codes(found: tuple[Today, ...], code: int) -> None:
    answer = Drift("libtpu 0.0.52", found)
    assert answer.exit_code == code
    assert answer.as_dict()["exit_code"] == code
    assert [type(each) for each in answer.findings] == [Finding] * len(found)


def test_the_report() -> None:
    assert str(Drift("libtpu 0.0.52", (SAME, MOVED, DEAD, IDLE))).splitlines() == [
        "4 facts about targets, libtpu 0.0.52: 1 as recorded, 1 moved, 1 unanswered, 1 not asked",
        "moved      v5e hbm",
        "  recorded 2 by libtpu 0.0.42.1 (arrays)",
        "  now      1 by libtpu 0.0.52",
        "unanswered v5e vmem",
        "  because  aborted: x",
    ]


def test_another_compiler_is_found_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libtpu").mkdir()
    (tmp_path / "libtpu" / "libtpu.so").touch()
    (tmp_path / "libtpu-0.0.99.dist-info").mkdir()
    (tmp_path / "libtpu-0.0.99.dist-info" / "METADATA").write_text("Name: libtpu\nVersion: 0.0.99\n")
    path = libtpu.library_at(tmp_path)
    assert Path(path) == (tmp_path / "libtpu" / "libtpu.so").resolve()
    assert libtpu.version(path) == "libtpu 0.0.99"
    assert libtpu.environment(path)[libtpu.LIBRARY] == path
    # as JAX itself is told
    monkeypatch.setenv(libtpu.LIBRARY, path)
    assert libtpu.version() == "libtpu 0.0.99"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--facts", "--libtpu", "nowhere"], "no libtpu.so at nowhere"),
        (["--facts", "f32[3]"], "--facts is about compilers"),
        (["--libtpu", "nowhere", "f32[3]"], "--libtpu goes with --facts"),
    ],
)
def test_bad_options(words: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "layoutproof", "crosscheck", *words], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 2
    assert said in done.stderr


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libtpu, "missing", lambda library="": "no libtpu (pip install libtpu)")
    answer = lp.drift()
    assert answer.exit_code == 3
    assert {each.state for each in answer.facts} == {"not asked"}
    assert "not asked: no libtpu (pip install libtpu): " in str(answer)


def test_the_command_prints_what_has_moved(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from layoutproof.cli.main import run

    def found(library: str = "", every: Any = None) -> Iterator[Today]:
        yield from (SAME, MOVED)

    monkeypatch.setattr(of_facts, "today", found)
    monkeypatch.setattr(libtpu, "missing", lambda library="": "")
    assert run(["crosscheck", "--facts", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert [row["state"] for row in answer["facts"]] == ["same", "moved"]
    assert [entry["subject"] for entry in answer["findings"]] == ["v5e hbm"]
