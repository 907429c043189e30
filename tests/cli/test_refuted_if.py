"""What only some tables refute is unknown, `refuted if ..`; what all of them do is refuted; advice is tried whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.cli import main as cli

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="kernels are traced with JAX")
CODE = '''
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def call(body, specs, out, x, t, outputs=1, rows=128):
    outs = [out] * outputs
    grid_spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(16,), in_specs=specs, out_specs=outs)
    shape = [jax.ShapeDtypeStruct((rows, 128), x.dtype)] * outputs
    return pl.pallas_call(body, grid_spec=grid_spec, out_shape=shape)(t, *[x] * len(specs))


def sums(t, x, outputs=1):
    """Rows summed by segments, whose ids are sorted by construction."""

    def body(t, x, *outs):
        i = pl.program_id(0)
        for o in outs:
            @pl.when(jnp.logical_or(i == 0, t[i] != t[jnp.maximum(i - 1, 0)]))
            def _(o=o):
                o[...] = jnp.zeros_like(o)

            o[...] += x[...]

    rows = pl.BlockSpec((8, 128), lambda i, t: (i, 0))
    return call(body, [rows], pl.BlockSpec((8, 128), lambda i, t: (t[i], 0)), x, t, outputs, rows=32)


def gather(t, x, by=0):
    def body(t, x, o):
        o[...] = x[...]

    rows = pl.BlockSpec((8, 128), lambda i, t: (i, 0))
    return call(body, [pl.BlockSpec((8, 128), lambda i, t: (t[i] + by, 0))], rows, x, t)


def slices(t, x, by=0):
    def body(t, x, o):
        o[...] = x[pl.ds(t[pl.program_id(0)] + by, 8), :]

    rows = pl.BlockSpec((8, 128), lambda i, t: (i, 0))
    return call(body, [pl.BlockSpec((128, 128), lambda i, t: (0, 0))], rows, x, t)


def stale(t, x):
    """An accumulator that is zeroed where the table says so."""

    def body(t, x, o, acc):
        @pl.when(t[pl.program_id(0)] == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)

        acc[...] += x[...]
        o[...] = acc[...]

    rows = pl.BlockSpec((8, 128), lambda i, t: (i, 0))
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(16,),
        in_specs=[rows],
        out_specs=rows,
        scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)],
    )
    return pl.pallas_call(body, grid_spec=grid_spec, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(t, x)
'''
ARGUMENTS = ("--args", "s32[16], f32[128,128]")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One command in a folder with the module: exit code and output."""
    (tmp_path / "by_tables.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)

    def command(name: str, *words: str) -> tuple[int, str]:
        code = cli.run(("kernels", f"by_tables.py:{name}", *ARGUMENTS, *words))
        return code, capsys.readouterr().out

    return command


@pytest.mark.parametrize(
    ("name", "assume", "question", "entries"),
    [
        ("sums", "0 <= prefetch0 < 4", "revisits", "0, 1, 0"),
        ("gather", "0 <= prefetch0 < 17", "blocks_in_bounds", "16"),
        ("slices", "0 <= prefetch0 <= 121", "body_in_bounds", "121"),
        ("stale", "0 <= prefetch0 < 2", "initialised", "1"),
    ],
)
def test_what_only_some_tables_refute(run: Any, name: str, assume: str, question: str, entries: str) -> None:
    """Exit code 3, with the entries; `--strict-tables` makes it 1; so in Python, with the right verdicts in JSON."""
    code, out = run(name, "--assume", assume)
    assert code == 3
    assert f"unknown  {question}" in out
    assert f"  because  refuted if prefetch0 can be {entries}" in out
    assert "refuted  " not in out
    code, out = run(name, "--assume", assume, "--strict-tables")
    assert (code, f"refuted  {question}" in out) == (1, True)
    found = lp.kernels(f"by_tables.py:{name}", "s32[16]", "f32[128,128]", assume=[assume])
    assert found.exit_code == 3
    assert (
        lp.kernels(f"by_tables.py:{name}", "s32[16]", "f32[128,128]", assume=[assume], strict_tables=True).exit_code
        == 1
    )


@pytest.mark.parametrize(("name", "assume"), [("gather", "0 <= prefetch0 < 16"), ("slices", "0 <= prefetch0 <= 120")])
def test_what_every_table_refutes_is_refuted(run: Any, name: str, assume: str) -> None:
    """One place past the end whatever the table holds; in bounds it is proved."""
    assert run(name, "--assume", assume, "--kwarg", "by=400")[0] == 1
    assert run(name, "--assume", assume)[0] == 0
    # one entry, and it is known
    assert run(name, "--assume", "16 <= prefetch0 < 17", "--kwarg", "by=105")[0] == 1


@pytest.mark.parametrize("outputs", [1, 6])
def test_advice_is_a_whole(run: Any, outputs: int) -> None:
    """Sorted by construction: "monotone" is advised however many questions are open, and all of it settles the call."""
    more = ("--kwarg", f"outputs={outputs}")
    code, out = run("sums", *more)
    assert code == 3
    (line,) = (line for line in out.splitlines() if line.startswith("  assume   --assume "))
    (kernel,) = json.loads(run("sums", *more, "--json")[1])["kernels"]
    assert line == f'  assume   --assume "{kernel["assume"]}"'
    assert "prefetch0 is monotone" in kernel["assume"]
    assert run("sums", *more, "--assume", kernel["assume"])[0] == 0


@pytest.mark.parametrize("strict", [False, True])
def test_spec_files(run: Any, capsys: pytest.CaptureFixture[str], strict: bool) -> None:
    """A check of all properties and one of a single one, of traced and of stated kernels."""
    more = ", strict_tables: true" if strict else ""
    Path("a.yaml").write_text(f"""
kernels:
  mm: {{trace: "by_tables.py:gather", args: ["s32[16]", "f32[128,128]"], assume: ["0 <= prefetch0 < 17"]}}
layouts:
  stated:
    kernel: {{grid: [8], tables: {{t: {{array: "s32[8]", assume: ["0 <= t < 9"]}}}},
             inputs: [{{name: x, array: "f32[64,128]", block: [8, 128], index: "i -> (t[i], 0)"}}],
             outputs: [{{name: o, array: "f32[64,128]", block: [8, 128], index: "i -> (i, 0)"}}]}}
checks:
  - {{kernel: mm{more}}}
  - {{blocks_in_bounds: mm{more}}}
  - {{blocks_in_bounds: stated{more}}}
""")
    assert cli.run(("check", "a.yaml")) == (1 if strict else 3)
    assert capsys.readouterr().out.count("refuted if") == (0 if strict else 3)


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--layoutproof-strict-tables",), 1)])
def test_pytest(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    """The plugin fails a test for it where it is told to."""
    (tmp_path / "by_tables.py").write_text(CODE)
    (tmp_path / "test_users.py").write_text("""
import jax, layoutproof as lp, by_tables

def test_gather():
    function = lp.assume("0 <= prefetch0 < 17")(by_tables.gather)
    jax.eval_shape(function, jax.ShapeDtypeStruct((16,), "int32"), jax.ShapeDtypeStruct((128, 128), "float32"))
""")
    command = [sys.executable, "-m", "pytest", "--layoutproof", "-p", "no:cacheprovider", *words, "test_users.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout
    assert ("refuted if prefetch0 can be 16" in done.stdout) is (code == 0)
