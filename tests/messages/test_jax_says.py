"""What the installed JAX says of shardings, donation and kernels is explained, and the fixes that are code run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import layoutproof as lp

CODE = """
import json, warnings
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
over = lambda *spec: NamedSharding(mesh, P(*spec))
said = {}

def says(name, wrong, right=None):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            wrong()
            said[name] = "\\n".join(str(each.message) for each in warned)
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"
    if right is not None:
        right()

x = jnp.ones((6, 16))
same = lambda spec: jax.jit(lambda x: x, in_shardings=over(*spec))(x)
says("argument", lambda: same(["data"]), lambda: (same([None, "data"]), same(["model"])))
says("argument padded", lambda: same(["data"]), lambda: jax.device_put(jnp.pad(x, ((0, 2), (0, 0))), over("data")))
says("result", lambda: jax.jit(lambda x: x, out_shardings=over(("data", "model")))(x))
says("device_put", lambda: jax.device_put(x, over("data")))
mapped = lambda spec: jax.jit(jax.shard_map(lambda x: x, mesh=mesh, in_specs=spec, out_specs=spec))(x)
says("shard_map", lambda: mapped(P("data")), lambda: mapped(P(None, "data")))

step = jax.jit(lambda x: x + 1, donate_argnums=0)
says("unusable", lambda: jax.jit(lambda x: x[:2], donate_argnums=0)(jnp.ones((6, 10))))

def again():
    state = jnp.ones(8)
    step(state)
    return state + 1

says("deleted", again, lambda: step(step(jnp.ones(8))))
both = jax.jit(lambda x, y: (x + 1, y + 1), donate_argnums=(0, 1))
one = jnp.ones(8)
says("twice", lambda: both(one, one), lambda: both(jnp.ones(8), jnp.copy(jnp.ones(8))))

explicit = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
with jax.set_mesh(explicit):
    put = lambda shape, *spec: jax.device_put(jnp.ones(shape), NamedSharding(explicit, P(*spec)))
    a, b, c = put((8, 16), "data", "model"), put((16, 8), "model"), put((8, 16), "model", "data")
    says("contracting", lambda: a @ b, lambda: (
        jnp.einsum("ij,jk->ik", a, b, out_sharding=P("data")),
        jax.sharding.reshard(a, P("data")) @ jax.sharding.reshard(b, P())))
    rows, columns = put((8, 16), "data"), put((16, 8), None, "data")
    says("one axis twice", lambda: rows @ columns, lambda: rows @ jax.sharding.reshard(columns, P()))
    says("broadcasting", lambda: a + c, lambda: a + jax.sharding.reshard(c, P("data", "model")))
    says("indexing", lambda: a[jnp.arange(4)], lambda: a.at[jnp.arange(4)].get(out_sharding=P(None, "model")))
    says("sorting", lambda: jnp.sort(a, axis=0), lambda: jnp.sort(jax.sharding.reshard(a, P(None, "model")), axis=0))
    says("pieces", lambda: jnp.split(a, [3]), lambda: jnp.split(a, [4]))

array = jax.ShapeDtypeStruct((8, 128), jnp.float32)
def lowered(body, sharding=None, **options):
    call = pl.pallas_call(body, out_shape=array, **options)
    return jax.jit(call, in_shardings=sharding).trace(array).lower(lowering_platforms=("tpu",))

def sort(x, o):
    o[...] = jnp.sort(x[...], axis=0)

def copy(x, o):
    o[...] = x[...]

says("primitive", lambda: lowered(sort))
says("scalars", lambda: lowered(copy, in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)]), lambda: lowered(copy))
inside = lambda x: jax.shard_map(
    lambda x: pl.pallas_call(copy, out_shape=jax.ShapeDtypeStruct((2, 128), jnp.float32))(x),
    mesh=mesh, in_specs=P("data"), out_specs=P("data"), check_vma=False)(x)
says("partitioned", lambda: lowered(copy, over("data")),
     lambda: jax.jit(inside).trace(array).lower(lowering_platforms=("tpu",)))
print("SAID" + json.dumps(said))
"""

EXPECTED = {
    "argument": ("sharding", "dimension 0 has 6 elements and is cut into 4 equal parts; 6 % 4 = 2"),
    "argument padded": ("sharding", "dimension 0 has 6 elements and is cut into 4 equal parts"),
    "result": ("sharding", "dimension 0 has 6 elements and is cut into 8 equal parts"),
    "device_put": ("sharding", "dimension 0 has 6 elements and is cut into 4 equal parts"),
    "shard_map": ("sharding", "dimension 0 has 6 elements and is cut into 4 equal parts"),
    "unusable": ("donation", "whose shape and type are those of float32[6,10]"),
    "deleted": ("donation", "float32[8] is used after its memory was given away"),
    "twice": ("donation", "one array is donated twice"),
    "contracting": ("sharding", "the summed dimensions of both operands lie split over model"),
    "one axis twice": ("sharding", "split over mesh axis data in two dimensions"),
    "broadcasting": ("sharding", "the operands of add are split differently in dimension 0 and 1"),
    "indexing": ("sharding", "an indexed dimension is split over devices"),
    "sorting": ("sharding", "the dimension that the operation goes along is split"),
    "pieces": ("sharding", "split makes a piece of 3 elements of a dimension that lies over 4 devices"),
    "primitive": ("Mosaic", "Pallas has no lowering of sort for TPU kernels"),
    "scalars": ("Mosaic", "SMEM holds single numbers"),
    "partitioned": ("Mosaic", "the partitioner does not know how to cut a kernel"),
}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """The messages of the installed JAX, on eight CPU devices; every fix that is code was run beside its fault."""
    pytest.importorskip("jax", reason="asks JAX for its messages")
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.split("SAID")[1])
    assert set(found) == set(EXPECTED)
    return dict(found)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_jax_says_is_explained(name: str, said: dict[str, str]) -> None:
    kind, cause = EXPECTED[name]
    (message,) = lp.why(said[name]).messages
    assert message.kind == kind
    assert cause in message.cause
    assert message.fixes


def test_the_advice_for_a_dimension_is_computed(said: dict[str, str]) -> None:
    """Of (6, 16) over four devices: eight rows, or the other dimension, or two devices; each was run above."""
    (message,) = lp.why(said["argument"]).messages
    assert message.fixes == (
        "pad dimension 0 from 6 to 8, or cut it to 4",
        "or shard dimension 1 (16 / 4 = 4) instead",
        "or shard it over 2 devices: mesh axes of that product divide it",
    )
