"""Arrays that the TPU compiler takes into no kernel: element types and sizes, as measured and as it says today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import layoutproof as lp
from tests.cli.user_code import kernels_command
from tests.hardware import compiler
from tests.hardware.compiler import Argument, compile_arguments

pytestmark = pytest.mark.slow

NAMES = {
    "f32": "float32", "bf16": "bfloat16", "f16": "float16", "s32": "int32", "u16": "uint16", "s8": "int8", "s4": "int4",
    "pred": "bool", "s64": "int64", "f64": "float64", "c64": "complex64", "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2", "f8e4m3b11fnuz": "float8_e4m3b11fnuz", "f8e8m0fnu": "float8_e8m0fnu",
    "f8e4m3": "float8_e4m3", "f8e3m4": "float8_e3m4", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2fnuz": "float8_e5m2fnuz",
    "f4e2m1fn": "float4_e2m1fn", "f6e2m3fn": "float6_e2m3fn",
}  # fmt: skip
REFUSED = {"f16", "s64", "f64", "c64", "f8e4m3", "f8e3m4", "f8e4m3fnuz", "f8e5m2fnuz", "f6e2m3fn"}
PLAIN = {"array": "f32[8,128]", "block": [8, 128], "index": "i -> (0, 0)"}


def stated(role: str, dtype: str, dims: str = "64,128") -> dict[str, Any]:
    """The kernel that `compile_arguments` compiles, stated."""
    block = [int(n) or 8 for n in dims.split(",")]
    array: dict[str, Any] = {
        "array": f"{dtype}[{dims}]",
        "block": block,
        "index": f"i -> ({', '.join('0' * len(block))})",
    }
    kernel: dict[str, Any] = {"grid": [1], "inputs": [PLAIN], "outputs": [PLAIN]}
    if role == "table":
        return {"kernel": {**kernel, "tables": {"t": f"{dtype}[{dims}]"}}}
    if role == "out":
        return {"kernel": {**kernel, "outputs": [PLAIN, array]}}
    return {"kernel": {**kernel, "inputs": [{**array, "memory": "vmem" if role == "in" else role}, PLAIN]}}


def verdict(role: str, dtype: str, dims: str = "64,128", target: str = "v5e") -> lp.Verdict:
    return lp.ask("legal_for_target", stated(role, dtype, dims), target=target).verdict


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("target", ["v5e", "v6e", "7x"])
def test_types_of_inputs(dtype: str, target: str) -> None:
    for role in ("in", "any"):
        wanted = lp.Verdict.REFUTED if dtype in REFUSED else lp.Verdict.PROVED
        assert verdict(role, dtype, target=target) is wanted


def test_outputs_depend_on_the_body() -> None:
    """A stated kernel has no body to look at: an output of f16 may be filled by copies, and then it is taken."""
    assert verdict("out", "f16") is lp.Verdict.UNKNOWN
    assert verdict("out", "bf16") is lp.Verdict.PROVED
    assert verdict("out", "f64") is lp.Verdict.REFUTED


@pytest.mark.parametrize(("role", "dims"), [("table", "0"), ("in", "0,128"), ("any", "4,0"), ("out", "0,128")])
def test_arrays_without_elements(role: str, dims: str) -> None:
    result = lp.ask("legal_for_target", stated(role, "s32", dims), target="v6e")
    assert result.verdict is lp.Verdict.REFUTED
    assert "has no elements" in result.reason
    assert verdict(role, "s32", dims.replace("0", "8")) is lp.Verdict.PROVED


def test_old_chips_keep_narrow_types_in_bytes() -> None:
    for role in ("table", "any"):
        dtype, dims = ("s4", "8") if role == "table" else ("s4", "64,128")
        assert verdict(role, dtype, dims, "v3") is lp.Verdict.REFUTED
        assert verdict(role, dtype, dims, "v4") is lp.Verdict.PROVED


CODE = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def stores(x):
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...].astype(jnp.float16)
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float16))(x)

def leaves(x):
    def body(x_ref, o_ref, half_ref):
        o_ref[...] = x_ref[...]
        bits = half_ref.bitcast(jnp.int32)
        bits[...] = jnp.zeros(bits.shape, jnp.int32)
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((16, 128), jnp.float16)]
    return pl.pallas_call(body, out_shape=shapes)(x)

def prefetch(t, x):
    spec = pl.BlockSpec((8, 128), lambda i, t: (i, 0))
    grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,), in_specs=[spec], out_specs=spec)
    def body(t_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]
    return pl.pallas_call(body, grid_spec=grid, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(t, x)
"""


@pytest.mark.parametrize(
    ("call", "args", "code"),
    [
        ("stores", ["f32[8,128]"], 1),
        ("leaves", ["f32[8,128]"], 0),
        ("prefetch", ["s32[0]", "f32[8,128]"], 1),
        ("prefetch", ["s32[4]", "f32[8,128]"], 0),
        ("prefetch", ["f16[4]", "f32[8,128]"], 1),
    ],
)
def test_traced_bodies(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    args: list[str],
    code: int,
) -> None:
    """What the real compiler says of these five (libtpu 0.0.52, v5e): refused, taken, refused, taken, refused."""
    pytest.importorskip("jax", reason="JAX is not installed")
    run = kernels_command(capsys, tmp_path, monkeypatch)
    (tmp_path / "elements.py").write_text(CODE)
    words = [word for arg in args for word in ("--arg", arg)]
    got, out, _ = run("elements.py:" + call, *words, "--target", "v5e", "--property", "legal_for_target")
    assert got == code, out


@pytest.mark.skipif(bool(compiler.available()), reason=compiler.available() or "it is")
def test_the_compiler_says_the_same() -> None:
    queries, ours = [], []
    for target in ("v5e", "7x"):
        for dtype, name in NAMES.items():
            for role in ("in", "any"):
                queries.append(Argument(target, name, role, (64, 128)))
                ours.append(dtype in REFUSED)
        for role, shape in (("table", (0,)), ("in", (0, 128)), ("any", (4, 0))):
            queries.append(Argument(target, "int32", role, shape))
            ours.append(True)
        queries.append(Argument(target, "float16", "out", (64, 128)))
        ours.append(False)
    said = [bool(answer) for answer in compile_arguments(queries)]
    assert [(q, s) for q, s, o in zip(queries, said, ours, strict=True) if s != o] == []
