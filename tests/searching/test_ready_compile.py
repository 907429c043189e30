"""The best tiling of every ready example on four chips, taken by the real TPU compiler with the example's own body."""

from __future__ import annotations

from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.searching.compiled import asked
from layoutproof.searching.read import read_problem
from layoutproof.searching.solve import solve
from layoutproof.specs.positions import read_yaml
from tests.hardware import compiler
from tests.searching.test_solve import READY, SPECS

pytestmark = pytest.mark.slow

BEST = 1
"""Of each example; asking about five takes minutes."""

TARGETS = ("v5e", "v5p", "v6e", "7x")
PAIRS = [
    pytest.param(name, target, marks=() if k % len(TARGETS) == j else pytest.mark.nightly)
    for k, name in enumerate(READY)
    for j, target in enumerate(TARGETS)
]
"""Every example on one chip, every chip for two examples; all of them nightly."""


@pytest.mark.skipif(bool(compiler.available()), reason=compiler.available() or "it is")
@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_the_compiler_accepts_the_best(name: str, target: str) -> None:
    file = SPECS / f"{name}.yaml"
    text = file.read_text().replace("target: v5e", f"target: {target}")
    problem = read_problem(read_yaml(text, str(file)), Path(file).as_posix())
    assert problem.target == target
    assert problem.declared.body is not None
    answer = solve(problem, best=BEST)
    assert answer.unknown == ""
    said = asked(answer.problem, answer.found, estimate=False)
    assert [(one.refused, one.unknown) for one in said] == [("", "")] * len(said)
    assert said


@pytest.mark.skipif(bool(compiler.available()), reason=compiler.available() or "it is")
def test_a_ready_kernel_is_compiled_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ours: no list of the modules of a user's repository has it."""
    (tmp_path / "pyproject.toml").write_text('[tool.layoutproof]\ntrace = ["pkg"]\n')
    monkeypatch.chdir(tmp_path)
    answer = lp.search("matmul", sizes=[512, 512, 512], best=BEST, compiling=True)
    assert "compiler        libtpu" in str(answer)
    assert "not traced" not in str(answer)
