"""`layoutproof kernels --compile`: the TPU compiler asked of each kernel of a function, as a user asks it."""

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
from layoutproof.compiler import libtpu

pytestmark = pytest.mark.slow

pytest.importorskip("jax")
NEEDS_TPU = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")

KERNELS = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

f32, bf16 = jnp.float32, jnp.bfloat16

def shape(*dims, dtype=f32):
    return jax.ShapeDtypeStruct(dims, dtype)

def dot(x, y, o):
    @pl.when(pl.program_id(2) == 0)
    def _():
        o[...] = jnp.zeros_like(o)
    o[...] += jnp.dot(x[...], y[...], preferred_element_type=f32).astype(o.dtype)

def too_large(x):
    left, right = pl.BlockSpec((512, 2048), lambda i, j, k: (i, k)), pl.BlockSpec((2048, 1024), lambda i, j, k: (k, j))
    return pl.pallas_call(dot, name="too_large", grid=(4, 2, 1), out_shape=shape(2048, 2048, dtype=bf16),
        in_specs=[left, right], out_specs=pl.BlockSpec((512, 1024), lambda i, j, k: (i, j)))(x, x)

def halves(x):
    def body(x, o):
        o[...] = jnp.concatenate([x[:, :64], x[:, :64]], axis=1)
        o[...] = jnp.concatenate([o[:, :64], o[:, :64]], axis=1)
    return pl.pallas_call(body, name="halves", out_shape=shape(512, 128, dtype=bf16))(x[:512, :128])

def cast(x):
    def body(x, o):
        o[...] = x[...].reshape(12, 128)
    return pl.pallas_call(body, name="cast", out_shape=shape(12, 128))(x[:16, :96].astype(f32))

def aligned(x, n):
    def body(n, x, o):
        o[...] = x[pl.ds(n[0], 8), :]
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,),
        in_specs=[pl.BlockSpec((64, 128), lambda i, n: (0, 0))], out_specs=pl.BlockSpec((8, 128), lambda i, n: (0, 0)))
    return pl.pallas_call(body, name="aligned", grid_spec=spec, out_shape=shape(8, 128, dtype=bf16))(n, x[:64, :128])

def guarded(x, n):
    def body(n, x, o):
        @pl.when(n[pl.program_id(0)] > 0)
        def _():
            o[...] = x[...]
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, n: (i, 0))], out_specs=pl.BlockSpec((8, 128), lambda i, n: (i, 0)))
    return pl.pallas_call(body, name="guarded", grid_spec=spec, out_shape=shape(64, 128))(n, x[:64, :128].astype(f32))

def looked_up(x, n):
    def body(n, x, o):
        o[...] = x[...]
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, n: (n[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, n: (i, 0)))
    return pl.pallas_call(body, name="looked_up", grid_spec=spec, out_shape=shape(64, 128))(n, x[:64, :128].astype(f32))

def looped(x, n):
    def body(n, x, o):
        o[...] = jax.lax.fori_loop(0, n[0], lambda i, c: c + x[...], jnp.zeros_like(o))
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, n: (0, 0))], out_specs=pl.BlockSpec((8, 128), lambda i, n: (0, 0)))
    return pl.pallas_call(body, name="looped", grid_spec=spec, out_shape=shape(8, 128))(n, x[:8, :128].astype(f32))

def block(x):
    def body(x, o):
        o[...] = x[...]
    spec = pl.BlockSpec((12, 128), lambda i: (i, 0))
    call = pl.pallas_call(body, name="block", grid=(2,), in_specs=[spec], out_specs=spec, out_shape=shape(30, 128))
    return call(x[:30, :128].astype(f32))

def flat(x):
    # jax 0.12 refuses it ahead of time where nobody says which chip it is for
    def body(x, o):
        o[...] = x[...] + 1
    spec = pl.BlockSpec((1024,), lambda i: (i,))
    call = pl.pallas_call(body, name="flat", grid=(4,), in_specs=[spec], out_specs=spec, out_shape=shape(4096))
    return call(x.reshape(-1)[:4096].astype(f32))

def added(x):
    def body(x, o):
        o[...] = x[...] + 1
    spec = pl.BlockSpec((8, 5), lambda i: (i, 0))
    return pl.pallas_call(body, name="added", grid=(125,), in_specs=[spec], out_specs=spec, out_shape=shape(1000, 5))(x)

def fetched(x):
    def body(x, o, buffer, semaphore):
        copy = pltpu.make_async_copy(x.at[pl.ds(8 * pl.program_id(0), 8)], buffer, semaphore)
        copy.start()
        copy.wait()
        o[...] = jax.lax.fori_loop(0, 4, lambda i, c: c + buffer[...], jnp.zeros_like(o))
    scratch = [pltpu.VMEM((8, 128), f32), pltpu.SemaphoreType.DMA]
    return pl.pallas_call(body, name="fetched", grid=(8,), in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)), out_shape=shape(64, 128), scratch_shapes=scratch)(x)

def every(x, n):
    tables = [aligned(x, n), guarded(x, n), looked_up(x, n), looped(x, n)]
    return [too_large(x), halves(x), cast(x), block(x), flat(x), fetched(x[:64, :128].astype(f32)), *tables]

def packed(x):
    def body(x, o):
        o[...] = x[...] * bf16(1.25)
    spec = pl.BlockSpec((256, 1024), lambda i: (i, 0))
    out = shape(2048, 1024, dtype=bf16)
    return pl.pallas_call(body, name="packed", grid=(8,), in_specs=[spec], out_specs=spec, out_shape=out)(x)

def collective(x):
    def body(x, o):
        o[...] = x[...] * jax.lax.axis_index("axis").astype(f32)
    return pl.pallas_call(body, name="collective", out_shape=shape(8, 128))(x)
"""
X = "bf16[2048,2048]"


def run(folder: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    """The command in a process of its own: exit code, output, errors."""
    command = [sys.executable, "-m", "layoutproof", "kernels", *words]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}, timeout=600
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module of the user's."""
    at = tmp_path_factory.mktemp("kernels")
    (at / "mine.py").write_text(KERNELS)
    return at


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, Any]:
    """What the command says of every kernel for v5e, by name."""
    words = ("mine:every", "--args", f"{X}, s32[8]", "--target", "v5e", "--compile", "--only", "grid", "--json")
    code, out, errors = run(folder, *words)
    assert code == 1, errors
    found = {kernel["subject"]: kernel for kernel in json.loads(out)["kernels"]}
    assert len(found) == 10
    return found


def line(text: str) -> int:
    """Which line of the module has this text."""
    return next(k for k, row in enumerate(KERNELS.splitlines(), 1) if text in row)


@NEEDS_TPU
def test_too_much_vmem(answers: dict[str, Any]) -> None:
    """Refused, and yet the whole is known, by name: the kernel was compiled once more with a higher limit."""
    [made] = answers["too_large"]["compiled"]
    assert made["answer"] == "refused"
    assert "limit 16.00M exceeded" in made["refused"]
    vmem = made["vmem"]
    assert vmem["total"] > vmem["limit"] == 16 << 20
    assert sum(part["bytes"] for part in vmem["parts"]) == vmem["total"]
    assert sum(part["bytes"] for part in vmem["parts"] if part["kind"] == "window") == 14 << 20
    spills = vmem["total"] - (14 << 20)
    assert spills == 4096 * vmem["slots"]
    at = line("o[...] += jnp.dot")
    shown = f"{vmem['total'] / 2**20:.2f} MiB of 16: windows 14.00, register spills {spills / 2**20:.2f} (line {at})"
    assert made["sentence"] == shown
    assert made["lines"][0]["line"] == at
    assert "a smaller block: input window of input 1, bf16[2048,1024], 2 buffers" in made["explained"][0]["fixes"][0]
    said = {f["question"]: f for f in answers["too_large"]["findings"] if f["subject"] in ("VMEM", "too_large on v5e")}
    assert [said[q]["verdict"] for q in ("compiled", "vmem_total", "memory_budget")] == ["refuted", "refuted", "proved"]
    assert said["vmem_total"]["reason"] == shown
    assert "spills not counted; exactly" in str(said["memory_budget"]["figures"])


@NEEDS_TPU
def test_moves_have_their_own_line(answers: dict[str, Any]) -> None:
    """An operation that is like an earlier one has its own line, and the relayouts that cost something are told."""
    [made] = answers["halves"]["compiled"]
    assert made["answer"] == "accepted"
    assert answers["halves"]["verdict"] == "proved"
    of = {each["line"]: each for each in made["lines"]}
    concat = line("jnp.concatenate")
    assert of[concat]["rotates"] > 0
    assert made["relayouts"]
    assert all(each["reason"] == "" and each["line"] for each in made["relayouts"])
    assert concat in {each["line"] for each in made["relayouts"]}
    # JAX lowers equal operations once, with the line of the first
    assert of[concat + 1]["rotates"] > 0
    assert made["estimate"]["cycles"] > 0


@NEEDS_TPU
@pytest.mark.parametrize(
    ("kernel", "cause", "fix"),
    [
        ("cast", "changes the last dimension from 96 to 128", "keep the last dimension: 16x96"),
        ("aligned", "multiple of 8", "pl.multiple_of(start, 8)"),
        ("block", "(12, 128) of (30, 128) breaks it", "dimension 0: 12 of 30; 8 or 16 or 30"),
    ],
)
def test_refusals_are_explained(answers: dict[str, Any], kernel: str, cause: str, fix: str) -> None:
    """Shape casts, alignment, block shapes: the words, what they mean, and the multiple that would do."""
    [made] = answers[kernel]["compiled"]
    assert made["answer"] == "refused"
    assert cause in made["explained"][0]["cause"]
    assert fix in made["explained"][0]["fixes"][0]
    assert made["vmem"] is None
    [finding] = [f for f in answers[kernel]["findings"] if f["question"] == "compiled"]
    assert finding["verdict"] == "refuted"
    # the compiler's refusal cannot be tried here: what to write is where to look
    assert fix in finding["hint"]
    assert finding["fix"] == ""
    # words that name VMEM are not about how much of it there is
    assert all(f["verdict"] == "unknown" for f in answers[kernel]["findings"] if f["question"] == "vmem_total")


@NEEDS_TPU
@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ("guarded", "a condition on data, which it takes to be 0"),
        ("looked_up", "depend on a table, which it takes to hold 0"),
        ("looped", "a loop whose end depends on data"),
    ],
)
def test_no_estimate_of_what_it_cannot_see(answers: dict[str, Any], kernel: str, reason: str) -> None:
    """Data is 0 to the compiler's simulation: no figure is better than one that leaves the work out."""
    [made] = answers[kernel]["compiled"]
    assert made["answer"] == "accepted"
    assert made["estimate"]["cycles"] is None
    assert reason in made["estimate"]["reason"]
    assert made["vmem"]["total"] > 0


@NEEDS_TPU
def test_the_chip_is_named_while_it_is_lowered(answers: dict[str, Any]) -> None:
    """Blocks of rank 1, which jax 0.12 refuses ahead of time where nobody says which chip they are for."""
    [made] = answers["flat"]["compiled"]
    assert (made["answer"], made["refused"]) == ("accepted", "")
    assert made["estimate"]["cycles"] > 0


@NEEDS_TPU
def test_copies_by_hand_are_in_the_estimate(answers: dict[str, Any]) -> None:
    """A copy within the chip speaks to no other device, though JAX stores how one would be named; turns are counted."""
    [made] = answers["fetched"]["compiled"]
    assert made["answer"] == "accepted"
    assert made["estimate"]["reason"] == ""
    assert made["estimate"]["cycles"] > 0


@NEEDS_TPU
def test_an_estimate_beside_copies_of_its_operands(folder: Path) -> None:
    """A narrow array is relaid before and after, and the compiler's files of that come last by name."""
    words = ("mine:added", "--arg", "f32[1000,5]", "--target", "v5e", "--compile", "--only", "grid", "--json")
    code, out, errors = run(folder, *words)
    assert code == 0, errors
    (kernel,) = json.loads(out)["kernels"]
    (made,) = kernel["compiled"]
    assert made["estimate"]["reason"] == ""
    assert made["estimate"]["cycles"] > 125


@NEEDS_TPU
def test_several_targets_and_an_estimate_that_aborts(folder: Path) -> None:
    """On v6e the simulation dies of a product of packed bf16, and does not know v4: all else is told."""
    words = ("mine:packed", "--arg", X.replace("2048]", "1024]"), "--compile", "--only", "grid")
    code, out, errors = run(folder, *words, "--target", "v6e", "--target", "v4", "--json")
    assert code == 0, errors
    [kernel] = json.loads(out)["kernels"]
    v6e, v4 = kernel["compiled"]
    assert (v6e["target"], v4["target"]) == ("v6e", "v4")
    for made in (v6e, v4):
        assert made["answer"] == "accepted"
        assert made["sentence"].startswith("2.00 MiB of ")
        assert made["estimate"]["cycles"] is None
    assert "SIGABRT" in v6e["estimate"]["reason"]
    assert "does not know v4" in v4["estimate"]["reason"]
    assert [f["subject"] for f in kernel["findings"] if f["question"] == "compiled"] == [
        "packed on v6e",
        "packed on v4",
    ]


@NEEDS_TPU
def test_two_cores_that_share_the_programs(folder: Path) -> None:
    """On v5p the cycles are of the core that runs more: half of four, two of three; all where no dimension is parallel.

    Half of them is less than the products of all programs take: they were said to leave work out.
    """
    (folder / "cores.py").write_text(
        "import jax, jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
        "from jax.experimental.pallas import tpu as pltpu\n\n"
        "def body(x, y, o):\n"
        "    o[...] = jnp.dot(x[...], y[...], preferred_element_type=jnp.float32).astype(o.dtype)\n\n"
        "def product(x, y, name, kind):\n"
        "    params = pltpu.CompilerParams(dimension_semantics=(kind,))\n"
        "    specs = [pl.BlockSpec((512, 1024), lambda i: (i, 0)), pl.BlockSpec((1024, 512), lambda i: (0, 0))]\n"
        "    out = pl.BlockSpec((512, 512), lambda i: (i, 0))\n"
        "    shape = jax.ShapeDtypeStruct((x.shape[0], 512), x.dtype)\n"
        "    call = pl.pallas_call(body, name=name, grid=(x.shape[0] // 512,), in_specs=specs, out_specs=out,\n"
        "        out_shape=shape, compiler_params=params)\n"
        "    return call(x, y)\n\n"
        "def all_of_them(x, y):\n"
        "    return [product(x, y, 'whole', 'arbitrary'), product(x, y, 'split', 'parallel'),\n"
        "            product(x[:1536], y, 'thirds', 'parallel')]\n"
    )
    words = ("cores:all_of_them", "--args", "bf16[2048,1024], bf16[1024,512]", "--compile", "--only", "grid")
    code, out, errors = run(folder, *words, "--target", "v5p", "--json")
    assert code == 0, errors
    found = {kernel["subject"]: kernel["compiled"][0]["estimate"] for kernel in json.loads(out)["kernels"]}
    assert {name: each["reason"] for name, each in found.items()} == {"whole": "", "split": "", "thirds": ""}
    assert {name: each["cores"] for name, each in found.items()} == {"whole": 1, "split": 2, "thirds": 2}
    cycles = {name: each["cycles"] for name, each in found.items()}
    assert 0.5 < cycles["split"] / cycles["whole"] < 0.6
    assert 0.9 < cycles["thirds"] / cycles["split"] < 1.1
    assert 2 * found["split"]["at_least"] in range(found["whole"]["at_least"] - 1, found["whole"]["at_least"] + 1)
    code, out, errors = run(folder, *words, "--target", "v5p")
    assert code == 0, errors
    assert f"    cycles   {cycles['split']:,} by the compiler's estimate for the busiest of 2 cores" in out
    assert "share the grid" not in out


@NEEDS_TPU
def test_flags_of_the_environment_are_part_of_the_compiler(folder: Path, tmp_path: Path) -> None:
    """A kernel that is refused is accepted with more VMEM, as `why` advises, though the refusal is remembered."""
    words = ("mine:too_large", "--arg", X, "--compile", "--only", "grid", "--target", "v5e")
    kept = {"LAYOUTPROOF_CACHE": str(tmp_path), "LIBTPU_INIT_ARGS": ""}
    code, out, errors = run(folder, *words, **kept)
    assert code == 1, errors
    assert "  compiled v5e, libtpu " in out
    assert ": refused\n    VMEM     would take " in out
    flag = f"--xla_tpu_scoped_vmem_limit_kib={64 << 10}"
    code, more, errors = run(folder, *words, **{**kept, "LIBTPU_INIT_ARGS": flag})
    assert code == 0, errors
    assert f" with {flag}: accepted\n    VMEM     " in more
    assert " MiB of 64: windows " in more
    assert run(folder, *words, **kept)[1] == out


@NEEDS_TPU
def test_operands_that_are_in_vmem_as_a_whole(folder: Path) -> None:
    """For 7x the compiler puts these operands into VMEM before the kernel: said beside the total.

    For v5e they stay in HBM, and have windows.
    """
    (folder / "small.py").write_text(
        "import jax\nfrom jax.experimental import pallas as pl\n\n"
        "def body(x, y, o):\n    o[...] = x[...] + y[...]\n\n"
        "def added(x, y):\n    spec = pl.BlockSpec((64, 128), lambda i: (i, 0))\n"
        "    out = jax.ShapeDtypeStruct(x.shape, x.dtype)\n"
        "    return pl.pallas_call(body, grid=(4,), in_specs=[spec, spec], out_specs=spec, out_shape=out)(x, y)\n"
    )
    words = ("small:added", "--args", "f32[256,128], f32[256,128]", "--compile", "--only", "grid")
    code, out, errors = run(folder, *words, "--target", "7x", "--target", "v5e", "--json")
    assert code == 0, errors
    new, old = json.loads(out)["kernels"][0]["compiled"]
    array, window = 256 * 128 * 4, 2 * 64 * 128 * 4
    assert new["vmem"]["whole"] == [
        {"kind": "input", "what": f"input {k}, f32[256,128]", "bytes": array} for k in range(2)
    ]
    assert new["vmem"]["total"] == sum(part["bytes"] for part in new["vmem"]["parts"]) == window
    shown = "64.00 KiB of 32 MiB: windows 64.00; besides, input 0 and input 1 are there as a whole, 256.00 KiB"
    assert new["sentence"] == shown
    assert old["vmem"]["whole"] == []
    assert old["vmem"]["total"] == 3 * window
    assert old["sentence"] == "192.00 KiB of 16 MiB: windows 192.00"
    code, out, errors = run(folder, *words, "--target", "7x")
    assert code == 0, errors
    assert f"    VMEM     {shown}\n" in out


@NEEDS_TPU
def test_figures_are_remembered(folder: Path, tmp_path: Path) -> None:
    """The second time nothing is compiled; the text is the same."""
    words = ("mine:flat", "--arg", X, "--compile", "--only", "grid", "--target", "v5e")
    first = run(folder, *words, LAYOUTPROOF_CACHE=str(tmp_path))
    assert first[0] == 0, first[2]
    assert "cycles   " in first[1]
    kept = sorted(path for path in tmp_path.rglob("*.json") if b'"kernel 4"' in path.read_bytes().replace(b"\\", b""))
    assert len(kept) == 2
    again = run(folder, *words, LAYOUTPROOF_CACHE=str(tmp_path))
    assert again == first


@NEEDS_TPU
def test_what_needs_the_code_around_it(folder: Path) -> None:
    """A kernel that asks which device it is on needs the mesh around it: unknown, and no refusal."""
    (folder / "around.py").write_text(
        "import jax, mine\nfrom jax.sharding import PartitionSpec as P\n\ndef f(x):\n"
        "    mesh = jax.make_mesh((1,), ('axis',))\n"
        "    return jax.shard_map(mine.collective, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(x)\n"
    )
    words = ("around:f", "--arg", "f32[8,128]", "--compile", "--only", "grid", "--target", "v5e", "--json")
    code, out, errors = run(folder, *words)
    assert code == 3, errors
    [made] = json.loads(out)["kernels"][0]["compiled"]
    assert made["answer"] == "unknown"
    assert "cannot be compiled by itself" in made["problem"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mine:flat", "--arg", X, "--compile"], "--compile needs --target"),
        (["mine:flat", "--arg", X, "--target", "v5e", "--target", "v6e"], "several targets are for the compiler"),
        (["mine:flat", "--arg", X, "--target", "v5e", "--target", "v9", "--compile"], "unknown TPU generation 'v9'"),
        (["mine:flat", "--arg", X, "--target", "mosaic_gpu", "--compile"], "mosaic_gpu is a GPU"),
        (["k.yaml", "--target", "v5e", "--compile"], "--compile is for a function"),
    ],
)
def test_bad_input(folder: Path, words: list[str], said: str) -> None:
    """Exit 2 and one sentence."""
    (folder / "k.yaml").write_text("source: here\n")
    code, _, errors = run(folder, *words)
    assert code == 2
    assert said in errors


def test_without_the_compiler(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Not installed: unknown, with what to install; the other answers stay."""
    monkeypatch.setattr(libtpu, "missing", lambda library="": "no libtpu (pip install libtpu)")
    monkeypatch.chdir(folder)
    found = lp.kernels("mine.py:flat", X, compile=True, only="grid", target="v5e")
    assert found.exit_code == 3
    [call] = found.calls
    assert "no libtpu (pip install libtpu)" in call.compiled[0].problem
    assert any(f.verdict is lp.Verdict.PROVED for f in call.findings)
    with pytest.raises(lp.LayoutError, match="give one TPU generation or several"):
        lp.kernels("mine.py:flat", X, compile=True)


JOINED = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

X = jax.ShapeDtypeStruct((32, 128), jnp.float32)
ANY, SEMAPHORE = pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.SEMAPHORE)

def nothing(x):
    def body(o):
        o[...] = jnp.zeros(o.shape, o.dtype)
    return pl.pallas_call(body, name="nothing", out_shape=X)()

def counted(x, n):
    def body(x, n, o, buffer, arrived):
        pltpu.async_copy(x.at[pl.ds(n[0] * 8, 8)], buffer, arrived).wait()
        pltpu.async_copy(buffer, o, arrived).wait()
    scratch = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA]
    out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)
    kernel = pl.kernel(body, out_type=out, mesh=mesh, scratch_types=scratch)
    return kernel(x, pltpu.with_memory_space_constraint(n, pltpu.SMEM))

def both(x):
    def start(x, o, arrived):
        pltpu.make_async_copy(x, o, arrived).start()
    def done(x, given, arrived, o):
        pltpu.make_async_copy(x, o, arrived).wait()
    o, arrived = pl.pallas_call(start, name="start", out_shape=(X, pltpu.SemaphoreType.DMA(())), in_specs=[ANY],
        out_specs=(ANY, SEMAPHORE))(x)
    return pl.pallas_call(done, name="done", out_shape=X, in_specs=[ANY, ANY, SEMAPHORE], out_specs=ANY,
        input_output_aliases={1: 0})(x, o, arrived)

def every(x, n):
    return nothing(x), counted(x, n), both(x)
"""


@NEEDS_TPU
def test_kernels_that_are_no_program_by_themselves(tmp_path: Path) -> None:
    """Without inputs, with an operand in SMEM, and two that hand a semaphore on: the compiler takes all of them."""
    (tmp_path / "joined.py").write_text(JOINED)
    words = ("joined.py:every", "--args", "f32[32,128], s32[4]", "--target", "v6e", "--compile", "--only", "grid")
    _, out, errors = run(tmp_path, *words, "--json")
    made = {kernel["subject"]: kernel["compiled"][0] for kernel in json.loads(out)["kernels"]}
    assert {name: (one["answer"], one["problem"]) for name, one in made.items()} == dict.fromkeys(
        ("nothing", "body", "start", "done"), ("accepted", "")
    ), errors
    assert made["body"]["vmem"]["total"] == made["nothing"]["vmem"]["total"] // 4 == 4096
