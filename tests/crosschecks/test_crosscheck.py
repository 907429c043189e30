"""`layoutproof crosscheck`: sources agree with what is right, and find the faults that are planted."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.compiler.child import Child
from layoutproof.crosschecks.case import layout_case
from layoutproof.crosschecks.given import given_cases
from layoutproof.crosschecks.jax_asking import asked
from layoutproof.crosschecks.random_cases import LANGUAGES, random_cases
from layoutproof.crosschecks.source import Agree, Skipped, sources
from layoutproof.crosschecks.sources import numpy

pytestmark = pytest.mark.slow

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
    kinds = {type(case.parsed).__name__ for case in random_cases(39, 0)}
    assert len(kinds) >= len(LANGUAGES) - 1  # XLA's and the TPU's layouts are one type


def test_arrays_of_one_two_and_four_bits_are_drawn_and_judged() -> None:
    """Also those of JAX's truth values; their bytes are compared beside their places."""
    drawn = [case for case in random_cases(2000, 0) if "E(" in case.text]
    assert {case.text.partition("[")[0] for case in drawn} == {"s4", "u4", "u2", "s1", "u1", "pred"}
    bits = [case for case in drawn if "E(1)" in case.text][:12]
    for case, found in zip(bits, numpy.compare(bits), strict=True):
        assert isinstance(found, Agree), (case.text, found)
        assert found.compared > math.prod(case.parsed.dims), case.text


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
    "bits of a byte turned round": (
        "import numpy, layoutproof.questions.evaluate as m\nright = m.to_image\n"
        "m.to_image = lambda *a: (lambda i: numpy.packbits(numpy.unpackbits(i), bitorder='little')"
        " if a[0].bits == 1 else i)(right(*a))",
        "u1[5,3]{1,0:T(2,2)E(1)}",
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
    "jax_programs": (
        "import layoutproof.layouts.sharding.mesh as m\nright = m.iota\n"
        "m.iota = lambda d, r=(), p=(): right(d, r, tuple(sorted(p)) if len(set(r)) == 1 else p)",
        "f32[4,2] sharded {mesh['a'=2,'b'=2], [{'b'}, {'a'}]}",
        "result of the partitioned program",
    ),
    "collective_bytes": (
        "import layoutproof.programs.reading as m\nright = m.moved\n"
        "m.moved = lambda k, n, a, b: right(k, n, b if k == 'reduce-scatter' else a, b)",
        "f32[8,2] sharded {mesh['a'=2,'b'=2], [{'b', 'a'}, {}]}",
        "bytes that a device receives by reduce-scatter",
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


EXCHANGED = {
    "an order of devices": (
        "import layoutproof.values.devices as m\nright = m._groups\nm._groups = lambda *a: [g[::-1] for g in right(*a)]"
    ),
    "the maximum for the sum": (
        "import layoutproof.values.devices as m\nright = m._reduced\n"
        "m._reduced = lambda on, e, p, kind: right(on, e, p, 'max')"
    ),
    "parts that are not exchanged": "import layoutproof.values.devices as m\nright = m._cut\n"
    "m._cut = lambda on, v, d, many, k, tiled: right(on, v, d, many, 0, tiled)",
}


@needs_jax
@pytest.mark.parametrize("name", EXCHANGED)
def test_a_fault_of_a_collective_is_found(name: str, tmp_path: Path) -> None:
    """By what JAX's devices hold."""
    text = "f32[8,2] sharded {mesh['a'=2,'b'=2], [{'b', 'a'}, {}]}"
    code, answer = command(tmp_path, text, "--source", "jax_programs", fault=EXCHANGED[name])
    assert (code, rows(answer)["jax_programs"]["disagree"]) == (1, 1), answer


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


KERNELS = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl


def call(body):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    return lambda x: pl.pallas_call(body, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)


def doubled(x, o):
    o[...] = x[...] * 2


def halved(x, o):
    o[0:4, :] = x[0:4, :]


right = call(doubled)
wrong = call(halved)
"""
LYING = """
import layoutproof.pallas.judge as m
from dataclasses import replace
from layoutproof.core.result import Verdict
judged = m.judge
m.judge = lambda *a, **k: tuple(replace(f, verdict=Verdict.PROVED, counterexample=None) for f in judged(*a, **k))
"""


@needs_jax
def test_kernels_of_a_function_are_run(tmp_path: Path) -> None:
    """What is proved of a kernel is held against running it: one that leaves rows unwritten shows NaN."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    source = ("--arg", "f32[16,128]", "--source", "pallas_tpu_interpret")
    code, answer = command(tmp_path, "kernels.py:wrong", *source, fault=LYING)
    assert code == 1
    (finding,) = answer["findings"]
    assert finding["reason"].startswith("what a run of the kernel shows: proved: ")
    assert "NaN in outputs at (4, 0)" in finding["reason"]
    for name in ("right", "wrong"):
        code, answer = command(tmp_path, f"kernels.py:{name}", *source)
        assert (code, rows(answer)["pallas_tpu_interpret"]["agree"]) == (0, 1), answer


DUMP = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[4,6]{1,0:T(2,4)} parameter(0)
  c = f32[4,6]{0,1:T(2,4)} copy(p)
  ROOT b = f32[24]{0:T(8)} bitcast(c)
}
"""
SPEC = """
layouts: {a: "f32[N,M]{1,0:T(8,128)}"}
checks:
  - injective: a
  - {bitcast: ["f32[16,128]{1,0:T(8,128)}", "f32[2048]{0:T(1024)}"]}
"""


def test_dumps_and_spec_files_are_read(tmp_path: Path) -> None:
    """Each layout once, with its place; sizes get numbers."""
    (tmp_path / "a.yaml").write_text(SPEC)
    (tmp_path / "step.txt").write_text(DUMP)
    found = given_cases([tmp_path / "a.yaml", tmp_path / "step.txt"])
    assert [(case.kind, case.text, Path(case.origin).name) for case in found] == [
        ("layout", "f32[5,3]{1,0:T(8,128)}", "a.yaml:4"),
        ("layout", "f32[8,16]{1,0:T(8,128)}", "a.yaml:4"),
        ("layout", "f32[16,128]{1,0:T(8,128)}", "a.yaml:5"),
        ("layout", "f32[2048]{0:T(1024)}", "a.yaml:5"),
        ("pair", "f32[16,128]{1,0:T(8,128)} -> f32[2048]{0:T(1024)}", "a.yaml:5"),
        ("layout", "f32[4,6]{1,0:T(2,4)}", "step.txt:3"),
        ("layout", "f32[4,6]{0,1:T(2,4)}", "step.txt:4"),
        ("layout", "f32[24]{0:T(8)}", "step.txt:5"),
        ("pair", "f32[4,6]{0,1:T(2,4)} -> f32[24]{0:T(8)}", "step.txt:4"),
    ]
    code, answer = command(tmp_path, "a.yaml", "step.txt", "--source", "numpy")
    assert (code, rows(answer)["numpy"]["agree"]) == (0, 7)


def test_a_process_that_ends_costs_its_own_case_only(tmp_path: Path) -> None:
    """The others of its batch are compared, and the reason says how it ended."""
    program = tmp_path / "child.py"
    program.write_text(
        "import os\nfrom layoutproof.compiler.serve import serve\n"
        "def answer(request, tell):\n"
        "    if any(text.startswith('f32[7') for text in request['cases']):\n"
        "        os.abort()\n"
        "    return [{'kind': 'Agree', 'compared': 1} for _ in request['cases']]\n"
        "serve(answer)\n"
    )
    cases = [layout_case(text, "") for text in ("f32[3,5]{1,0}", "f32[7]{0}", "s8[4]{0}", "f32[4,4]{0,1}")]
    child = Child("the child", program)
    found = list(asked(child, "tables", "cpu", cases, 25, lambda case: case.text != "s8[4]{0}"))
    assert [found[0], found[2], found[3]] == [Agree(1), Skipped(""), Agree(1)]
    assert isinstance(found[1], Skipped)
    assert "SIGABRT" in found[1].reason


def test_the_table_as_markdown(tmp_path: Path) -> None:
    """What is not there is a row that says so."""
    fault = "import layoutproof.crosschecks.jax_asking as m\nm.jax_missing = lambda: 'not installed'"
    (tmp_path / "sitecustomize.py").write_text(fault)
    paths = [str(tmp_path), str(Path(lp.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, "-m", "layoutproof", "crosscheck", "f32[3,5]{1,0}", "--markdown"]
        + [word for name in ("numpy", "jax_gpu") for word in ("--source", name)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[2].startswith("| source | version | cases | agree |")
    assert lines[4].startswith("| `numpy` | numpy ")
    assert lines[5].startswith("| `jax_gpu` | skipped: not installed |")


def test_a_compiler_that_breaks_its_own_rule_says_nothing_about_ours() -> None:
    """`LLO_CHECK failure` is its code generator's; a refusal of what was asked stays one."""
    from layoutproof.compiler.child import Reply
    from layoutproof.crosschecks.asking import Failed, told

    where = "JaxRuntimeError: INTERNAL: LLO_CHECK failure (platforms/llo/llo_region_builder.cc:6195)"
    gave_up = told(Reply({"refused": f"{where} multiplier_in_bytes % word_size == 0 (256 == 0) 256 512"}))
    assert isinstance(gave_up, Failed)
    assert gave_up.aborted
    assert str(gave_up).endswith("llo_region_builder.cc:6195) multiplier_in_bytes % word_size == 0")
    refused = told(Reply({"refused": "JaxRuntimeError: INVALID_ARGUMENT: tile dimension 0 must be positive"}))
    assert (type(refused), refused.aborted) == (Failed, False)


def test_a_part_without_an_answer_is_said_and_is_no_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    from layoutproof.crosschecks.source import Agree
    from layoutproof.crosschecks.sources import numpy as source

    monkeypatch.setattr(source, "compare", lambda cases: iter([Agree(3, "aborted: LLO_CHECK failure")] * len(cases)))
    found = lp.crosscheck("f32[3,5]{1,0:T(2,2)}", sources=["numpy"])
    assert found.exit_code == 0
    assert "numpy: 1 compared in part: aborted: LLO_CHECK failure" in str(found)
    assert "Compared in part:" in found.markdown()
    assert found.as_dict()["sources"][0]["in_part"] == {"aborted: LLO_CHECK failure": 1}


def test_the_progress_of_all_sources_is_one() -> None:
    from layoutproof.cli.commands.crosscheck import _summed

    told: list[tuple[int, int]] = []
    progress = _summed(lambda done, total: told.append((done, total)))
    for source, done, total in (("numpy", 1, 10), ("jax_cpu", 2, 4), ("numpy", 2, 10)):
        progress(source, done, total)
    assert told == [(1, 10), (3, 14), (4, 14)]
