"""`layoutproof compile`: functions traced and compiled in a process of their own, on CPU and by the TPU compiler."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import layoutproof as lp
from layoutproof.compiler import libtpu
from layoutproof.programs.record import read_record
from tests.cli.in_one_process import commands
from tests.said import stretch as stretch_of

pytestmark = pytest.mark.slow

pytest.importorskip("jax")
NEEDS_TPU = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")

MODEL = """
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

print("noise of the user's module")

def step(params, x):
    def body(h, w):
        return jax.lax.with_sharding_constraint(jnp.tanh(h @ w), P("data", None)), ()
    h, _ = jax.lax.scan(body, x, params["w"])
    return {"loss": h.sum(), "h": h}

def plain(x, scale=2.0):
    return (x * scale).T

def broken(x):
    return jnp.dot(x, x[:, :1])

def ends(x):
    import os
    os.abort()

def large(x):
    return jnp.zeros((1 << 20, 1 << 14), "float32") + x[0, 0]

def product(x, w):
    return x @ w.T
"""
SHARDED = [
    *("--arg", "{'w': 'bf16[4,256,256]'}", "--arg", "bf16[64,256]"),
    *("--mesh", "data=2,model=2", "--in", "{'w': P(None, None, 'model')}", "--in", "P('data', None)", "--donate", "1"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module of the user's."""
    at = tmp_path_factory.mktemp("compile")
    (at / "model.py").write_text(MODEL)
    return at


def one(folder: Path, *words: str) -> tuple[int, dict[str, object]]:
    """The exit code and the JSON of one command line."""
    (answer,), _ = commands(folder, ["compile", *words, "--json"], seconds=300)
    return answer.code, json.loads(answer.out)


def test_on_the_cpu(folder: Path) -> None:
    """Parameters and results by name, the loop's collective with its trips, the donation, the files."""
    code, answer = one(folder, "model:step", *SHARDED, "-o", "out")
    assert (code, answer["findings"]) == (0, [])
    (name,) = answer["written"]
    record = read_record(json.loads((folder / name).read_text()))
    assert [each.name for each in record.parameters] == ["params['w']", "x"]
    assert [each.name for each in record.results] == ["result['h']", "result['loss']"]
    assert [each.devices for each in record.parameters] == [2, 2]
    (gather,) = [each for each in record.collectives if each.kind == "all-gather"]
    assert (gather.axes, gather.often.times, gather.place.source.rpartition("/")[2]) == (("model",), 4, "model.py:10")
    # float32 inside: the CPU has no bfloat16 products
    assert gather.bytes in (32 * 256 * 2, 32 * 256 * 4)
    assert record.parameters[1].donated.startswith("result {0}")
    assert record.memory.arguments == record.entry_bytes
    text = (folder / name.replace(".json", ".hlo")).read_text()
    assert lp.compile(text, mesh={"data": 2, "model": 2}).records[0].collectives == record.collectives


def test_the_values_that_the_help_shows(folder: Path) -> None:
    """A dictionary's values are texts: the help shows one as it is typed."""
    (shown,), _ = commands(folder, ["compile", "--help"])
    (value,) = re.findall(r"\{'w':[^}]*\}", " ".join(shown.out.split()))
    (folder / "dictionary.py").write_text("def doubled(p):\n    return p['w'] * 2\n")
    code, answer = one(folder, "dictionary:doubled", "--arg", value)
    assert (code, answer["findings"]) == (0, [])
    (record,) = answer["records"]
    assert [each["name"] for each in record["parameters"]] == ["p['w']"]


@NEEDS_TPU
def test_peak_memory_is_what_stands_in_hbm(folder: Path) -> None:
    """A weight that is prefetched into VMEM takes no HBM: libtpu's own peak counts it, and is shown under its name."""
    (folder / "peak.yaml").write_text(
        "programs:\n  f: {function: 'model:product', args: ['bf16[256,1024]', 'f32[2000,1024]'], target: v5e}\n"
        "checks:\n  - {peak_memory: f, at_most: 10764288 bytes}\n"
        "  - {peak_memory: f, at_most: 10764287 bytes, expect: refuted}\n"
    )
    compiled, checked = commands(
        folder,
        ["compile", "model:product", "--arg", "bf16[256,1024]", "--arg", "f32[2000,1024]", "--target", "v5e"],
        ["check", "peak.yaml", "--json"],
        seconds=300,
    )[0]
    line = next(line for line in compiled.out.splitlines() if line.startswith("  memory "))
    assert line.startswith("  memory   peak 10.3 MiB: arguments 8.3 MiB, outputs 2.0 MiB, ")
    assert line.endswith("; the compiler's own peak 18.1 MiB")
    assert checked.code == 0, checked.out
    first, second = json.loads(checked.out)["results"]
    assert (first["figures"]["bytes"], first["figures"]["compiler_peak"]) == (10764288, 18956288)
    assert "peak memory: 10764288 bytes, 1 more than 10764287; most of it arguments" in second["reason"]


@NEEDS_TPU
def test_for_tpus(folder: Path) -> None:
    """Two generations in one call, one of them refused its topology: it hides nothing of the other."""
    code, answer = one(folder, "model:step", *SHARDED, "--target", "v5e", "--target", "v5p", "--topology", "2x2")
    kinds = [(each["made"]["target"], each["devices"]) for each in answer["records"]]
    assert ("v5e", 4) in kinds
    record = read_record(answer["records"][0])
    assert record.made.compiler.startswith("libtpu ")
    assert record.memory.peak is not None
    assert record.memory.taken is not None
    assert record.memory.taken >= record.memory.arguments == record.entry_bytes
    (gather,) = [each for each in record.collectives if each.kind == "all-gather"]
    assert (gather.axes, gather.often.times, gather.bytes, gather.moved) == (("model",), 4, 16384, 8192)
    assert record.cycles is not None
    assert code in (0, 2)


@NEEDS_TPU
def test_flags_of_the_environment_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With them it is another compiler of the same version: the files have one name, and differences may be its own."""
    words = ("compile", "model:product", "--arg", "f32[128,256]", "--arg", "f32[64,256]", "--target", "v5e", "-o")
    flag = "--xla_tpu_scoped_vmem_limit_kib=32768"
    named = []
    for at, flags in (("without", ""), ("with", flag)):
        monkeypatch.setenv("LIBTPU_INIT_ARGS", flags)
        (answer,), _ = commands(folder, [*words, at], seconds=300)
        assert answer.code == 0, answer.err
        (file,) = (folder / at).glob("*.json")
        named.append((file.name, read_record(json.loads(file.read_text())).made.compiler))
    version = libtpu.number()
    assert named == [
        (f"product-v5e-{version}.json", f"libtpu {version}"),
        (f"product-v5e-{version}.json", f"libtpu {version} with {flag}"),
    ]


BAD: list[tuple[list[str], int, str]] = [
    (["model:nothing"], 2, "has no 'nothing'"),
    (["model:broken", "--arg", "f32[8,4]"], 2, "model.py:18"),
    (["model:plain", "--arg", "f32[8,4]", "--target", "v9"], 2, "unknown TPU generation 'v9'"),
    (
        ["model:plain", "--arg", "f32[8,4]", "--mesh", "x=2", "--in", "P('y')"],
        2,
        stretch_of("sharding.no_axis", name="y", have="its axes are x"),
    ),
    (
        ["model:plain", "--arg", "f32[7,4]", "--mesh", "x=2", "--in", "P('x')"],
        2,
        stretch_of("programs.devices_do_not_divide", devices=2),
    ),
    (["model:plain", "--arg", "f32[8,4]", "--in", "__import__('os').abort()"], 2, "a sharding is written"),
    (["model:plain", "--arg", "q32[8,4]"], 2, "unknown element type 'q32'"),
    (["model:plain", "--arg", "f32[8,4]", "--donate", "3"], 2, stretch_of("programs.donated_form")),
    (["model:ends", "--arg", "f32[8,4]"], 3, "gave up by itself"),
    (["model:plain"], 2, stretch_of("traced.called_with", parameters="x, scale=2.0", given="0 arguments")),
    (["no.such:function"], 2, "there is no module"),
]


@pytest.fixture(scope="module")
def refused(folder: Path) -> list[tuple[int, str]]:
    """What came of each of `BAD`."""
    lines = [["compile", *words, "--json"] for words, _, _ in BAD]
    return [(answer.code, answer.out) for answer in commands(folder, *lines, seconds=300)[0]]


@pytest.mark.parametrize("number", range(len(BAD)), ids=[words[0] for words, _, _ in BAD])
def test_what_cannot_be_compiled(refused: list[tuple[int, str]], number: int) -> None:
    """Words and an exit code, whatever happens; nothing of a library's own."""
    _, wanted, why = BAD[number]
    code, out = refused[number]
    answer = json.loads(out)
    (problem,) = answer["findings"]
    assert (code, answer["records"]) == (wanted, [])
    said = f"{problem['file']}:{problem['line']} {problem['reason']}"
    assert why in said
    assert "Traceback" not in said


@NEEDS_TPU
def test_a_program_that_its_compiler_refuses_is_refuted(folder: Path) -> None:
    """64 GiB do not fit; the same program fits where they do not count."""
    code, answer = one(folder, "model:large", "--arg", "f32[8,128]", "--target", "v5e")
    (problem,) = answer["findings"]
    assert (code, problem["verdict"]) == (1, "refuted")
    assert "RESOURCE_EXHAUSTED" in problem["reason"]


def test_another_compiler_is_asked_for_by_its_path(folder: Path) -> None:
    """One that is not there is bad input, with the path."""
    code, answer = one(folder, "model:plain", "--arg", "f32[8,4]", "--target", "v5e", "--libtpu", "nowhere")
    assert code == 2
    assert "no libtpu.so at nowhere" in answer["findings"][0]["reason"]


EXPORT = """
import jax, sys
from jax import export
def f(x, y):
    return x @ y
a = jax.ShapeDtypeStruct((8, 16), "float32"), jax.ShapeDtypeStruct((16, 4), "float32")
open("f.jax", "wb").write(export.export(jax.jit(f), platforms=["cpu", "tpu"])(*a).serialize())
"""


def test_an_exported_program(folder: Path) -> None:
    """A file of `jax.export`, without the code that made it; what is none is bad input."""
    pytest.importorskip("flatbuffers", reason="JAX writes no exported programs without it")
    environment = {"JAX_PLATFORMS": "cpu", "PATH": "", "HOME": str(folder)}
    subprocess.run([sys.executable, "-c", EXPORT], cwd=folder, env=environment, check=True)
    code, answer = one(folder, "f.jax")
    assert code == 0
    record = read_record(answer["records"][0])
    assert [each.shape for each in record.parameters] == ["f32[8,16]{1,0}", "f32[16,4]{1,0}"]
    (folder / "g.jax").write_bytes(b"no program")
    code, answer = one(folder, "g.jax")
    assert (code, "no exported program" in answer["findings"][0]["reason"]) == (2, True)


def test_what_jax_has_compiled_is_read_with_its_memory() -> None:
    """A jitted function of JAX on the CPU, compiled here."""
    import jax

    shape = jax.ShapeDtypeStruct((16, 33), "float32")
    (record,) = lp.compile(jax.jit(lambda x: (x @ x.T).sum()).lower(shape).compile()).records
    assert record.memory.arguments == record.entry_bytes == 16 * 33 * 4
    assert record.flops is not None
    assert record.flops >= 2 * 16 * 16 * 33


COLLECTIVE = """
import jax
from jax import lax
from jax.sharding import PartitionSpec as P

def gathered(x):
    one = lambda y: lax.all_gather(y, "model", axis=1, tiled=True)
    mesh = jax.sharding.get_abstract_mesh()
    return jax.shard_map(one, mesh=mesh, in_specs=P("data", "model"), out_specs=P("data"), check_vma=False)(x)
"""


@NEEDS_TPU
def test_a_program_whose_text_cannot_be_asked_for(tmp_path: Path) -> None:
    """For 7x, where jaxlib reads no text back: the compiler writes it into a folder. A buffer assignment, by flags."""
    (tmp_path / "gather.py").write_text(COLLECTIVE)
    words = ["compile", "gather:gathered", "--arg", "bf16[256,512]", "--in", "P('data', 'model')"]
    words += ["--mesh", "data=2,model=2", "--target", "7x", "--topology", "2x1x1"]
    flags = ["--flag", "xla_dump_to=dump", "--flag", "xla_dump_hlo_as_text=True"]
    (answer, again), _ = commands(tmp_path, [*words, "--json"], [*words, *flags], seconds=300)
    (record,) = json.loads(answer.out)["records"]
    assert [(each["kind"], each["axes"], each["bytes"]) for each in record["collectives"]] == [
        ("all-gather", ["model"], 128 * 512 * 2)
    ]
    assert record["memory"]["arguments"] == 128 * 256 * 2
    assert again.code == 0, again.err
    (path,) = (tmp_path / "dump").glob("*after_optimizations-buffer-assignment.txt")
    assert path.read_text().startswith("BufferAssignment:")


REMAT = """
import jax
from jax.sharding import PartitionSpec as P

def f(a, b, c):
    d = jax.lax.with_sharding_constraint(a + b, P(None, ("x", "y"), None))
    return c + d
"""
FULL = [
    *("--arg", "f32[16,16,16]", "--arg", "f32[16,16,16]", "--arg", "f32[16,16,16]", "--mesh", "x=4,y=2"),
    *("--in", "P('y', None, 'x')", "--in", "P('y', None, 'x')", "--in", "P(None, ('x', 'y'), None)"),
    *("--out", "P(None, ('x', 'y'), None)"),
]


@pytest.mark.parametrize(
    "where", [("--target", "cpu"), pytest.param(("--target", "v5e", "--topology", "2x4"), marks=NEEDS_TPU)]
)
def test_the_full_rematerialisation_of_a_program(tmp_path: Path, where: tuple[str, ...]) -> None:
    """openxla/xla#15207, compiled: 14,336 bytes are received where 1,792 would do; a claim about it says so."""
    (tmp_path / "remat.py").write_text(REMAT)
    (answer,), _ = commands(tmp_path, ["compile", "remat:f", *FULL, *where, "-o", "out"], seconds=300)
    assert answer.code == 0, answer.err
    assert "  reshards 14336 bytes received, 1792 would do" in answer.out
    (path,) = (tmp_path / "out").glob("*.json")
    (found,) = read_record(json.loads(path.read_text())).reshards
    assert (found.received, found.needed, found.why, found.place.source) == (14336, 1792, "", "remat.py:6")
    claim = "{collectives: f, kind: all-gather, at_most: 1KiB}"
    (tmp_path / "p.yaml").write_text(
        f"programs:\n  f: {{record: {path.relative_to(tmp_path)}}}\nchecks:\n  - {claim}\n"
    )
    (checked,), _ = commands(tmp_path, ["check", "p.yaml"])
    assert checked.code == 1
    assert "(1792 bytes would do where a device receives 14336" in checked.out


THE_COMPILERS = (
    *("memory", "work", "program  ", "7 of 8"),
    # of a sweep: its rows, what follows from them, and the compiler's own words
    *("data=-1", "cheapest", "tracing,", "because   refuses"),
)


@NEEDS_TPU
def test_the_page_of_programs_is_as_it_runs(tmp_path: Path) -> None:
    """docs/programs.md: its files, its commands, and what they print, versions and the compiler's choices apart."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "programs.md").read_text("utf-8")
    for name, text in re.findall(r"```(?:python|yaml)\n# ([\w.]+)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(f"# {name}\n{text}")
    found = re.findall(r"```console\n\$ layoutproof (.*?)\n(.*?)```", page, re.DOTALL)
    answers, _ = commands(tmp_path, *(shlex.split(line) for line, _ in found), seconds=300)
    assert [answer.code for answer in answers] == [0, 1, 1, 0]
    for (_, shown), answer in zip(found, answers, strict=True):
        for line in re.sub(r"\S*libtpu \S+|-\d+\.\d+\.\d+\.json", "", shown).splitlines():
            if line.strip() and not line.lstrip().startswith(THE_COMPILERS):
                assert line in answer.out, answer.out
