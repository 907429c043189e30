"""`layoutproof crosscheck`: sources agree with what is right, and find the faults that are planted."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.crosschecks.random_cases import LANGUAGES, random_cases
from layoutproof.crosschecks.source import sources

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")


def command(tmp_path: Path, *arguments: str, fault: str = "") -> tuple[int, dict[str, Any]]:
    """The command in a process of its own, whose children have the same fault: its exit code and its JSON."""
    (tmp_path / "sitecustomize.py").write_text(fault)
    paths = [str(tmp_path), str(Path(lp.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, "-m", "layoutproof", "crosscheck", *arguments, "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=tmp_path,
        check=False,
    )
    assert done.stderr == "", done.stderr[-2000:]
    return done.returncode, json.loads(done.stdout)


def rows(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["source"]: row for row in answer["sources"]}


def test_random_cases_agree_with_their_definitions() -> None:
    answer = lp.crosscheck(random=200, seed=11, sources=["numpy"])
    (row,) = answer.table.rows
    assert (answer.exit_code, row.agree, dict(row.skipped)) == (0, 200, {})
    assert row.compared > 10_000


def test_random_cases_are_the_same_for_ever_and_of_every_language() -> None:
    first, second = ([case.text for case in random_cases(60, 3)] for _ in range(2))
    assert first == second != [case.text for case in random_cases(60, 4)]
    kinds = {type(case.parsed).__name__ for case in random_cases(20, 0)}
    assert len(kinds) >= len(LANGUAGES) - 1  # XLA's and the TPU's layouts are one type


FAULTS = {
    "a stride of the wrong mode": (
        "import layoutproof.layouts.cute.layout as m\nright = m.linear_terms\n"
        "m.linear_terms = lambda modes, at, on: right(modes, at, on)[::1] + ([at] if len(modes) > 1 else [])",
        "(2,(2,3)):(1,(2,4))",
        "place",
    ),
    "a floor instead of a ceil": (
        "import layoutproof.layouts.sharding.array as m\nm.ceil_div = lambda a, b: max(1, a // b)",
        "f32[5] sharded {devices=[2]<=[2]}",
        "place",
    ),
    "two devices exchanged": (
        "import layoutproof.layouts.sharding.array as m\nright = m.devices\n"
        "def wrong(tiles, named):\n"
        "    of, most = right(tiles, named)\n"
        "    return (lambda n, on: on.select(on.less(of(n, on), 2), 1 - of(n, on), of(n, on))), most\n"
        "m.devices = wrong",
        "f32[8] sharded {devices=[4]<=[4]}",
        "place",
    ),
    "halves of a byte exchanged": (
        "import layoutproof.questions.evaluate as m\nright = m.to_image\n"
        "m.to_image = lambda *a: (lambda i: (i >> 4) | (i << 4) if a[0].bits == 4 else i)(right(*a))",
        "s4[5,3]{1,0:T(2,2)E(4)}",
        "packed byte",
    ),
    "a block one element further": (
        "import layoutproof.questions.programs as m\nright = m.window\n"
        "m.window = lambda *a: tuple((x + 1, y + 1) for x, y in right(*a))",
        '{"kernel": {"grid": [3], "outputs": [{"array": "s32[6]", "block": [2], "index": "(i,) -> (i,)"}]}}',
        "program that wrote it last",
    ),
}
"""Who plants it, on what it shows, and what is said to differ."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    """By the command, with the line to paste; the same line without the fault is green."""
    fault, text, what = FAULTS[name]
    code, answer = command(tmp_path, text, "--source", "numpy", fault=fault)
    assert (code, rows(answer)["numpy"]["disagree"]) == (1, 1)
    (finding,) = answer["findings"]
    assert finding["reason"].startswith(what)
    assert finding["verdict"] == "refuted"
    assert command(tmp_path, text, "--source", "numpy")[0] == 0


IN_CHILDREN = {
    "jax_cpu": (
        "import layoutproof.questions.images_jax as m\nright = m.to_image\nm.to_image = lambda *a: right(*a)[::-1]",
        "f32[3,2]{0,1:T(2,2)}",
        "byte packed on the device",
    ),
    "jax_shards": (FAULTS["two devices exchanged"][0], FAULTS["two devices exchanged"][1], "element in the shard"),
    "pallas_interpret": (*FAULTS["a block one element further"][:2], "program that wrote it last"),
    "pallas_tpu_interpret": (*FAULTS["a block one element further"][:2], "program that wrote it last"),
}


@needs_jax
@pytest.mark.parametrize("source", IN_CHILDREN)
def test_a_fault_is_found_on_devices_and_interpreters(source: str, tmp_path: Path) -> None:
    fault, text, what = IN_CHILDREN[source]
    code, answer = command(tmp_path, text, "--source", source, fault=fault)
    assert (code, rows(answer)[source]["disagree"]) == (1, 1), answer
    assert answer["findings"][0]["reason"].startswith(what)
    code, answer = command(tmp_path, text, "--source", source)
    assert (code, rows(answer)[source]["agree"]) == (0, 1), answer


def test_a_disagreement_is_shown_on_the_smallest_case(tmp_path: Path) -> None:
    fault = FAULTS["a stride of the wrong mode"][0]
    code, answer = command(tmp_path, "((2,4),(8,3)):((5,40),(200,7))", "--source", "numpy", fault=fault)
    assert code == 1
    (finding,) = answer["findings"]
    assert len(finding["subject"]) < len("((2,4),(8,3)):((5,40),(200,7))")
    assert lp.crosscheck(finding["subject"], sources=["numpy"]).exit_code == 0


def test_nothing_run_is_not_green(tmp_path: Path) -> None:
    """A source that has nothing to say of a layout decides nothing."""
    answer = lp.crosscheck("f32[3,5]{1,0}", sources=["jax_shards"])
    assert answer.exit_code == 3
    code, found = command(tmp_path, "f32[3,5]{1,0}", "--source", "pallas_interpret")
    assert (code, rows(found)["pallas_interpret"]["cases"]) == (3, 0)


def test_bad_input_is_refused() -> None:
    with pytest.raises(lp.LayoutError, match="abacus"):
        lp.crosscheck("f32[3]{0}", sources=["abacus"])
    with pytest.raises(lp.LayoutError, match="nothing to compare"):
        lp.crosscheck()


def test_sources_are_their_files() -> None:
    assert {"numpy", "jax_cpu", "jax_shards", "pallas_interpret", "pallas_tpu_interpret"} <= set(sources())
