"""`compile --same` of functions over a mesh: what each device runs, beside what the function says on one."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core.result import Verdict
from layoutproof.programs.same_source import compared

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax")
NEEDS_TPU = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")

MODULE = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P


def fsdp(x, w1, w2, rate=0.1):
    loss = lambda w: (jnp.tanh(x @ w[0]) @ w[1]).var()
    a, b = jax.grad(loss)((w1, w2))
    return w1 - rate * a, w2 - rate * b


def fsdp_wrong(x, w1, w2):
    return fsdp(x, w1, w2, 0.2)


def halo(x, side=1):
    def one(x):
        return x + lax.ppermute(x, "x", [(i, i + side) for i in range(4) if 0 <= i + side < 4])

    return jax.shard_map(one, in_specs=P("x"), out_specs=P("x"))(x)


def halo_wrong(x):
    return halo(x, -1)
"""
LINE = {"x": 4}
PAIRS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "fsdp": (["f32[32,64]", "f32[64,128]", "f32[128,64]"], ["P('x')"] * 3, ["P('x')"] * 2),
    "halo": (["f32[16,128]"], ["P('x')"], ["P('x')"]),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module of the functions."""
    file = tmp_path_factory.mktemp("partitioned") / "functions_of_mesh.py"
    file.write_text(MODULE)
    return file


def source(file: Path, name: str, args: list[str]) -> Any:
    """What a function says on one device, as a program."""
    from layoutproof.pallas.from_jax.programs import program_of
    from layoutproof.pallas.from_jax.user import argument

    spec = importlib.util.spec_from_file_location("functions_of_mesh", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((4,), ("x",))):
        return program_of(jax.make_jaxpr(getattr(module, name))(*map(argument, args)))


def shardings(found: lp.Programs) -> dict[str, list[str]]:
    """What the record says of parameters and results."""
    (record,) = found.records
    return {name: [value.sharding for value in getattr(record, name)] for name in ("parameters", "results")}


@NEEDS_TPU
@pytest.mark.parametrize("name", PAIRS)
def test_a_partitioned_program_is_its_source_and_not_a_wrong_twin(name: str, file: Path) -> None:
    """Four devices; the same text beside another function, and with one exchange edited, is refuted."""
    args, ins, outs = PAIRS[name]
    found = lp.compile(
        f"{file}:{name}", *args, target="v5e", topology="2x2", mesh=LINE, in_specs=ins, out_specs=outs, same=True
    )
    (same,), (text,), said = found.same, found.texts, shardings(found)
    assert same.verdict in (Verdict.SAMPLED, Verdict.PROVED), same
    assert found.exit_code == 0
    assert same.figures["devices"] == 4
    right, wrong = source(file, name, args), source(file, f"{name}_wrong", args)
    assert compared(text, right, None, said)["verdict"] in ("sampled", "proved")
    assert compared(text, wrong, None, said)["verdict"] == "refuted"
    edits = {
        "fsdp": (r"(all-reduce)(\(%[\w.-]+\), channel_id)", r"copy\2"),
        "halo": (r"source_target_pairs=\{.*?\}\}", "source_target_pairs={{1,0},{2,1},{3,2}}"),
    }
    edited, many = re.subn(*edits[name], text)
    assert many
    assert compared(edited, right, None, said)["verdict"] == "refuted"


def test_results_that_differ_where_they_are_declared_the_same() -> None:
    """Each device gives what it has, and the sharding says that all give the same: both devices and the element."""
    from layoutproof.pallas.from_jax.programs import program_of

    entry = "HloModule m, num_partitions=4\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n"
    right = program_of(jax.make_jaxpr(lambda x: x + x)(jax.ShapeDtypeStruct((16,), "float32")))
    rows = {"parameters": ["{devices=[4]<=[4]}"], "results": ["{devices=[4]<=[4]}"]}
    assert compared(entry, right, None, rows)["verdict"] in ("sampled", "proved")
    other = rows | {"results": ["{devices=[4]<=[2,2]T(1,0)}"]}
    assert compared(entry, right, None, other)["verdict"] == "refuted"
    first = program_of(jax.make_jaxpr(lambda x: x[:4] + x[:4])(jax.ShapeDtypeStruct((16,), "float32")))
    found = compared(entry, first, None, rows | {"results": ["{replicated}"]})
    assert found["verdict"] == "refuted"
    assert "is declared the same on device 0 and device 1, and [0] differs between them" in found["reason"]
