"""The sources that ask XLA's parser and shardings in jaxlib: they agree, and find a fault that is planted."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.crosschecks import texts
from layoutproof.crosschecks.case import Case
from layoutproof.crosschecks.source import Agree, Disagree, Outcome, Skipped, source
from layoutproof.crosschecks.sources import xla_sharding, xla_text
from layoutproof.registry.read import read_layout
from tests.versions import jaxlib_measured

pytestmark = pytest.mark.slow

live = pytest.mark.skipif(importlib.util.find_spec("jaxlib") is None, reason="jaxlib is not installed")


def put(name: str, *written: str) -> list[Outcome]:
    cases = [Case("layout", text, read_layout(text)) for text in written]
    return list(source(name).compare(cases))


@live
def test_texts_agree() -> None:
    found = put("xla_text", "f32[3,5]{1,0:T(2,2)}", "s4[6,7]{1,0:E(4)}", "(f32[2], s8[])", "f32[N,5]", "(4,2):(2,1)")
    assert [type(one) for one in found] == [Agree, Agree, Agree, Skipped, Skipped]


@live
@jaxlib_measured
def test_random_texts_and_their_neighbours_agree() -> None:
    found = list(xla_text.compare(list(xla_text.random_cases(60, 4))))
    assert {type(one) for one in found} == {Agree}
    assert sum(one.compared for one in found if isinstance(one, Agree)) > 400


@live
@pytest.mark.parametrize("fault", ["text", "bytes"])
def test_a_planted_fault_of_texts_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "text":
        printed = xla_text.to_text
        monkeypatch.setattr(xla_text, "to_text", lambda shape: printed(shape).replace("T(", "L("))
    else:
        size = xla_text.byte_size_of
        monkeypatch.setattr(xla_text, "byte_size_of", lambda layout: size(layout) * 2)
    (found,) = put("xla_text", "f32[3,5]{1,0:T(2,2)}")
    assert isinstance(found, Disagree)
    assert found.what == fault


@live
def test_what_aborts_xla_is_refused_here_and_the_next_text_is_asked() -> None:
    answers = list(texts.said([("shape", "f32[2]{0:T(-1)}"), ("shape", "f32[2]{0}")]))
    assert isinstance(answers[0], texts.Failed)
    assert answers[0].aborted
    assert answers[1] == "f32[2]{0}"
    assert isinstance(xla_text._one("shape", "f32[2]{0:T(-1)}", answers[0]), Agree)
    # a text that we take and XLA dies of is ours to explain
    taken = xla_text._one("shape", "f32[2]{0}", answers[0])
    assert isinstance(taken, Disagree)
    assert taken.theirs.startswith("aborted: XLA's parser ended by SIGABRT")


SHARDED = "[8,16] sharded {devices=[2,4]<=[4,2]T(1,0)}"
NAMED = "[8,16] sharded {mesh['a'=2,'b'=4], [{'b'}, {'a'}]}"


@live
def test_shardings_agree() -> None:
    found = put("xla_sharding", SHARDED, NAMED, "[8] sharded {devices=[4]3,1,2,0}", "f32[3,5]{1,0}")
    assert [type(one) for one in found] == [Agree, Agree, Agree, Skipped]


@live
@jaxlib_measured
def test_random_shardings_agree() -> None:
    found = list(xla_sharding.compare(list(xla_sharding.random_cases(12, 4))))
    assert {type(one) for one in found} == {Agree}


@live
@pytest.mark.parametrize(("fault", "what"), [("devices", "device of a tile"), ("mesh", "form without a mesh")])
def test_a_planted_fault_of_shardings_is_found(fault: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xla_sharding, "neighbours", lambda text: [])
    if fault == "devices":
        order = xla_sharding.listed
        monkeypatch.setattr(xla_sharding, "listed", lambda tiles: tuple(reversed(tuple(order(tiles)))))
    else:
        without: Any = xla_sharding.to_tiles
        monkeypatch.setattr(xla_sharding, "to_tiles", lambda named: replace(without(named), subgroups=("manual",)))
    (found,) = put("xla_sharding", NAMED if fault == "mesh" else SHARDED)
    assert isinstance(found, Disagree)
    assert found.what == what
    assert found.ours != found.theirs


def test_without_jaxlib_both_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (xla_text, xla_sharding):
        monkeypatch.setattr(module, "missing", lambda: "no jaxlib (pip install jaxlib)")
    found = lp.crosscheck("f32[3,5]{1,0}", sources=["xla_text", "xla_sharding"])
    assert found.exit_code == 3
    assert str(found).count("no jaxlib (pip install jaxlib)") == 2


def test_neighbours_are_the_same_each_time_and_of_measured_versions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts.importlib.metadata, "version", lambda name: "0.10.2")
    near = texts.neighbours("f32[3,5]{1,0}")
    assert near == texts.neighbours("f32[3,5]{1,0}")
    assert "f32[3,5]{1,0}" not in near
    assert len(near) > 3
    monkeypatch.setattr(texts.importlib.metadata, "version", lambda name: "0.12.0.1")
    assert texts.neighbours("f32[3,5]{1,0}") == []
