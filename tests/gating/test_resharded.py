"""Shardings that changed, by what compilers print today: fresh compiles of one function for v5e:2x2, libtpu 0.0.52.

`x` is cut over (data, model) before and over (model, data) after, so that every part has the shape that it had. jax
0.10.2 and 0.12.0.1 give the same texts, which print no sharding of any parameter; records have what the compiler says.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import layoutproof as lp
from tests.said import words

CASES = Path(__file__).resolve().parents[1] / "cases" / "resharded"


def said(name: str, end: str) -> dict[str, str]:
    """Class -> severity of what the gate says of a program before and after."""
    found = lp.gate(CASES / f"{name}-before.{end}", CASES / f"{name}-after.{end}")
    return {each.question: each.severity for each in found.findings}


@pytest.mark.fast
@pytest.mark.parametrize("version", ["0.10.2", "0.12.0.1"])
def test_records_say_which_parameter_goes_where(version: str) -> None:
    found = lp.gate(*(CASES / f"matmul-jax-{version}-{side}.json" for side in ("before", "after")))
    assert found.exit_code == 1
    assert [(each.question, each.subject) for each in found.findings] == [
        ("resharded", "parameter 0 (x)"),
        ("resharded", "result 0 (result)"),
        ("regrouped", "all-reduce all-reduce (prog.py:3)"),
    ]
    first, _, group = found.findings
    # of the whole: each device's part of 256 by 256 is one of four
    assert first.counterexample == {"element": (0, 256)}
    assert first.reason == words(
        "gating.as_a_whole", layout="f32[512,512]", reason="(0, 256) goes from device 1 to device 2"
    )
    assert group.reason == "over mesh axes data now, over mesh axes model before"


@pytest.mark.fast
def test_two_versions_of_jax_say_the_same() -> None:
    for side in ("before", "after"):
        found = lp.gate(*(CASES / f"matmul-jax-{version}-{side}.json" for version in ("0.10.2", "0.12.0.1")))
        assert (found.exit_code, found.findings) == (0, ())


@pytest.mark.fast
def test_texts_have_the_groups_of_devices_alone() -> None:
    """The collective tells; without one the two texts are the same program to a byte, and only records differ."""
    assert said("matmul", "hlo") == {"function_unknown": "info", "constant": "warn", "regrouped": "deny"}
    one, other = ((CASES / f"elementwise-{side}.hlo").read_text() for side in ("before", "after"))
    assert "sharding=" not in one
    assert one == other
    assert said("elementwise-jax-0.12.0.1", "json") == {"resharded": "deny"}


@pytest.mark.fast
def test_a_record_without_shardings_is_unknown_where_the_other_has_them(tmp_path: Path) -> None:
    """As an older version of the compiler may leave them out; of what nobody says nothing is green."""
    old = json.loads((CASES / "elementwise-jax-0.12.0.1-before.json").read_text())
    for each in (*old["parameters"], *old["results"]):
        each |= {"sharding": "", "devices": None}
    (tmp_path / "old.json").write_text(json.dumps(old))
    found = lp.gate(tmp_path / "old.json", CASES / "elementwise-jax-0.12.0.1-after.json")
    assert found.exit_code == 3
    assert {each.question for each in found.findings} == {"unknown"}
