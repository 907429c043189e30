"""One placement in two spellings: whether JAX compiles again, by JAX itself, and the claim about it by the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from layoutproof.core.result import Verdict
from layoutproof.programs.spelling import SLOW, taken
from tests.cli.in_one_process import commands
from tests.said import stretch

CHILD = Path(__file__).with_name("spelled_calls.py")
EXPLICIT = "Mesh('x': 8, 'y': 1, axis_types=(Explicit, Explicit))"


def test_jax_compiles_where_it_is_said() -> None:
    """Each pair of a first and a second call, counted by the jax that is installed."""
    pytest.importorskip("jax")
    run = subprocess.run([sys.executable, str(CHILD)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    version, *cases = json.loads(run.stdout.splitlines()[-1])
    assert len(cases) >= 25
    for first, second, compiled in cases:
        verdict, why = taken(second, first, version)
        assert verdict is (Verdict.REFUTED if compiled else Verdict.PROVED), (first, second, why)
    assert {compiled for *_, compiled in cases} == {True, False}


@pytest.mark.parametrize(
    ("given", "wanted", "jax", "verdict", "why"),
    [
        ("P('x') on x=2,y=4", "P('x') on x=2,y=4", "0.9.2", Verdict.PROVED, ""),
        ("P(('x',)) on x=2,y=4", "P('x') on x=2,y=4", "0.9.2", Verdict.PROVED, ""),
        ("P('x', None) on x=2,y=4", "P('x') on x=2,y=4", "0.12.0.1", Verdict.PROVED, SLOW),
        (
            "P('x', None) on x=2,y=4",
            "P('x') on x=2,y=4",
            "0.9.2",
            Verdict.UNKNOWN,
            stretch("programs.not_measured", jax="0.9.2"),
        ),
        ("P('x', None) on x=2,y=4", "P('x') on x=2,y=4", "", Verdict.UNKNOWN, "jax of an unknown version"),
        ("P('y') on x=2,y=4", "P('x') on x=2,y=4", "0.9.2", Verdict.REFUTED, "another placement"),
        ("P('x', 'y') on x=8,y=1", "P('x') on x=8,y=1", "0.10.2", Verdict.PROVED, SLOW),
        (
            f"P('x', 'y') on {EXPLICIT}",
            f"P('x') on {EXPLICIT}",
            "0.10.2",
            Verdict.REFUTED,
            stretch("programs.explicit_axis"),
        ),
        (f"P('x', None) on {EXPLICIT}", f"P('x') on {EXPLICIT}", "0.10.2", Verdict.PROVED, SLOW),
        ("P('x', unreduced={'y'}) on x=2,y=4", "P('x') on x=2,y=4", "0.12.0", Verdict.REFUTED, "another placement"),
    ],
)
def test_two_spellings(given: str, wanted: str, jax: str, verdict: Verdict, why: str) -> None:
    """Only what was measured is said; another jax is unknown, and never green."""
    found, reason = taken(given, wanted, jax)
    assert (found, why in reason) == (verdict, True), reason


MODEL = """
def step(cache, x):
    return cache + x, (cache * x).sum()
"""
SPEC = """
programs:
  step:
    function: "model:step"
    args: ["f32[64,128]", "f32[64,128]"]
    mesh: {data: 2, model: 2}
    in: ["P('data', None)", "P('data')"]
    out: ["P('data')", "P()"]
    donate: [0]
checks:
  - {spelling: step}
  - {spelling: step, of: cache, as: "P('data')"}
  - {spelling: step, of: cache, as: "P('model', None)"}
  - {spelling: step, of: cache, as: "P('batch', None) on batch=2,model=2"}
  - {spelling: step, of: x, as: "P(UNCONSTRAINED)"}
  - {spelling: step, of: x}
"""


def test_the_claim(tmp_path: Path) -> None:
    """What a step hands to the next, and what a caller passes: slow, another placement, another mesh, bad input."""
    pytest.importorskip("jax")
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "p.yaml").write_text(SPEC)
    (answer, page), _ = commands(tmp_path, ["check", "p.yaml", "--json"], ["explain", "spelling"], seconds=300)
    found = json.loads(answer.out)
    assert answer.code == 1
    said = {each["line"]: (each["verdict"], each["reason"], each.get("scope", "")) for each in found["results"]}
    first = min(said)
    assert said[first][0] == said[first + 1][0] == "proved"
    assert "result[0] for cache, P('data',) where the program has P('data', None): " + SLOW in said[first][2]
    assert said[first + 2][0] == "refuted"
    assert "cache, P('model', None) where the program has P('data', None): another placement" in said[first + 2][1]
    assert stretch("programs.other_mesh", mesh="batch=2,model=2", other="data=2,model=2") in said[first + 3][1]
    assert stretch("sharding.no_place") in said[first + 4][1]
    assert stretch("programs.of_and_as") in said[first + 5][1]
    assert page.code == 0
    assert "compiles nothing again" in page.out
