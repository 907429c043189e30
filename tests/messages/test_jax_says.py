"""What the installed JAX says of shardings, donation and kernels is explained, and the fixes that are code run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

import layoutproof as lp

pytestmark = pytest.mark.slow

CODE = """
import json, warnings
import jax, jax.numpy as jnp, numpy as np
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

def kept():
    state = jnp.ones((6, 10))
    jax.jit(lambda x: x[:2], donate_argnums=0)(state)
    return state + 1

says("unusable, and still there", kept)
says("given and read", lambda: jax.jit(lambda x, y: (x + 1, y + 1), donate_argnums=0)(one, one),
     lambda: jax.jit(lambda x, y: (x + 1, y + 1), donate_argnums=0)(jnp.ones(8), jnp.ones(8)))
add = lambda x, y: x + y
says("donate_argnums", lambda: jax.jit(add, donate_argnums=2)(x, x),
     lambda: jax.jit(add, donate_argnums=1)(x, jnp.ones((6, 16))))
says("static_argnums", lambda: jax.jit(add, static_argnums=(0, -3))(1, x),
     lambda: jax.jit(add, static_argnums=(0,))(1, x))
says("donate_argnames", lambda: jax.jit(add, donate_argnames="z")(x, x))
says("static and donated", lambda: jax.jit(add, donate_argnums=0, static_argnums=0)(1, x))

inner = lambda *spec: jax.jit(lambda x: jax.lax.with_sharding_constraint(x, over(*spec)))(jnp.ones((8, 16)))
says("rank inside", lambda: inner("data", "model", None), lambda: inner("data", "model"))
says("rank put", lambda: jax.device_put(jnp.ones(8), over(None, "data")),
     lambda: jax.device_put(jnp.ones(8), over("data")))
says("rank of an argument", lambda: jax.jit(lambda s: s, in_shardings=over("data"))({"m": jnp.ones(8), "step": 0}),
     lambda: jax.jit(lambda s: s, in_shardings=({"m": over("data"), "step": over()},))({"m": jnp.ones(8), "step": 0}))
says("rank mapped", lambda: mapped(P(None, "data", None)), lambda: mapped(P(None, "data")))
says("axis twice", lambda: over(("data", "model"), "model"),
     lambda: (over(("data", "model"), None), over("data", "model")))
says("no such axis", lambda: over("dta"), lambda: over("data"))
says("no such manual axis", lambda: mapped(P(None, "dta")), lambda: mapped(P(None, "data")))
constrained = jax.jit(lambda x: jax.lax.with_sharding_constraint(x, P(None, "data")))
says("no mesh", lambda: constrained(x))
says("no mesh of jit", lambda: jax.jit(add, in_shardings=P("data"))(x, x))
with jax.set_mesh(mesh):
    constrained(x)
total = lambda x: jax.lax.psum(x, "data")
says("unbound", lambda: jax.jit(total)(x), lambda: (
    jax.vmap(total, axis_name="data")(x), jax.shard_map(total, mesh=mesh, in_specs=P(None, "data"), out_specs=P())(x)))

devices = jax.devices()
turned = jax.sharding.Mesh(mesh.devices[::-1], mesh.axis_names)
put = lambda where: jax.device_put(jnp.ones((8, 16)), where)
says("devices", lambda: jax.jit(add)(put(devices[1]), put(over("data"))),
     lambda: jax.jit(add)(put(over()), put(over("data"))))
says("devices turned", lambda: jax.jit(add)(put(NamedSharding(turned, P("data"))), put(over("data"))))
only = jax.jit(lambda x: x, in_shardings=over(None, "data"))
says("in_shardings", lambda: only(put(over("data"))),
     lambda: only(jax.device_put(put(over("data")), over(None, "data"))))
made = jax.jit(lambda x: x + 1).lower(put(over("data"))).compile()
says("compiled for shardings", lambda: made(put(over("model"))),
     lambda: made(jax.device_put(put(over("model")), made.input_shardings[0][0])))
says("compiled for types", lambda: made(jax.device_put(jnp.ones((16, 16)), over("data"))))
says("too few in_shardings", lambda: jax.jit(add, in_shardings=(over(),))(x, x), lambda: (
    jax.jit(add, in_shardings=(over(), None))(x, x), jax.jit(add, in_shardings=over())(x, x)))
two = lambda x: (x, x)
says("too many out_shardings", lambda: jax.jit(two, out_shardings=(over(),) * 3)(x), lambda: (
    jax.jit(two, out_shardings=(over(), None))(x), jax.jit(two, out_shardings=over())(x)))
says("other keys", lambda: jax.jit(lambda x: {"y": x, "z": x}, out_shardings={"y": over()})(x))

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

def mapped(f, out): return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("data"), out_specs=out))(jnp.ones((8, 8)))
says("replicated", lambda: mapped(lambda x: x.sum(), P()), lambda: mapped(lambda x: jax.lax.psum(x.sum(), "data"), P()))
made_of = lambda f: jax.make_array_from_callback((8,), over("data"), f).block_until_ready()
says("shard", lambda: made_of(lambda index: np.ones(3)), lambda: made_of(lambda index: np.ones(8)[index]))

ones, lax = jnp.ones, jax.lax
says("contracted", lambda: ones((8, 128)) @ ones((256, 16)), lambda: ones((8, 128)) @ ones((16, 128)).T)
pairs = (((2,), (1,)), ((0,), (0,)))
says("batched", lambda: lax.dot_general(ones((2, 8, 4)), ones((3, 4, 8)), pairs),
     lambda: lax.dot_general(ones((2, 8, 4)), ones((2, 4, 8)), pairs))
says("letters", lambda: jnp.einsum("ij,jk", ones((3, 4)), ones((5, 6))))
says("added", lambda: ones((6, 3)) + ones((6, 4)), lambda: ones((6, 1)) + ones((6, 4)))
says("spread", lambda: jnp.broadcast_to(ones(3), (4,)), lambda: jnp.broadcast_to(ones(3)[:, None], (3, 4)))
says("reshaped", lambda: ones((6, 16)).reshape(5, 32), lambda: ones((6, 16)).reshape(3, 32))
says("reshaped open", lambda: ones((6, 16)).reshape(5, -1))
says("put together", lambda: jnp.concatenate([ones((3, 4)), ones((3, 5))]),
     lambda: jnp.concatenate([ones((3, 4)), ones((3, 5))], axis=1))
says("stacked", lambda: jnp.stack([ones((3, 4)), ones((3, 5))]))
double = lambda c, x: (jnp.concatenate([c, c]), x)
says("carried", lambda: lax.scan(double, ones(3), ones(5)))
says("carried type", lambda: lax.scan(lambda c, x: (c + x, x), jnp.int32(0), ones(5)),
     lambda: lax.scan(lambda c, x: ((c + x).astype(jnp.int32), x), jnp.int32(0), ones(5)))
says("while", lambda: lax.while_loop(lambda c: c[0] > 2, lambda c: c[:2], ones(3)))
says("branches", lambda: lax.cond(True, lambda x: x, lambda x: x[:2], ones(3)))
says("scanned", lambda: lax.scan(lambda c, x: (c, x), 0, (ones(3), ones(4))))
says("mapped sizes", lambda: jax.vmap(lambda x, y: x)(ones(3), ones(4)),
     lambda: jax.vmap(lambda x, y: x, in_axes=(0, None))(ones(3), ones(4)))
filled = lambda n: ones(n)
says("size that runs", lambda: jax.jit(filled)(3), lambda: jax.jit(filled, static_argnames="n")(3))
says("masked", lambda: jax.jit(lambda x: x[x > 0])(ones(3)), lambda: jax.jit(
    lambda x: (jnp.where(x > 0, x, 0), x[jnp.nonzero(x > 0, size=3, fill_value=0)]))(ones(3)))
says("update", lambda: lax.dynamic_update_slice(ones(3), ones(4), (0,)))
says("slice", lambda: lax.dynamic_slice(ones(3), (0,), (5,)), lambda: lax.dynamic_slice(ones(3), (0,), (3,)))
says("squeezed", lambda: jnp.squeeze(ones((2, 3, 1)), 0), lambda: jnp.squeeze(ones((2, 3, 1)), 2))

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

def run(body, block=(8, 128)):
    out = pl.BlockSpec(block, lambda: (0, 0))
    return pl.pallas_call(body, out_shape=array, out_specs=out, interpret=True)(jnp.ones((8, 128)))

def store(what, block=(8, 128)):
    def body(x, o):
        what(x, o)
    return lambda: run(body, block)

def rows(x, o): o[...] = x[:4]
def rows_indexed(x, o): o[0:4, :] = x[:4]
def column(x, o): o[...] = x[:, :1]
def column_broadcast(x, o): o[...] = jnp.broadcast_to(x[:, :1], (8, 128))
def turned_over(x, o): o[...] = x[...].reshape(128, 8)
def turned_back(x, o): o[...] = x[...].reshape(128, 8).reshape(8, 128)
def part(x, o): o[0:3, :] = x[:4]
def row(x, o): o[0] = x[...]
def narrow(x, o): o[...] = x[...].astype(jnp.bfloat16)
def narrow_cast(x, o): o[...] = x[...].astype(jnp.bfloat16).astype(o.dtype)
def too_many(x, o): o[...] = jnp.full(o.shape, x[0, 0, 0])

says("swap rows", store(rows), lambda: (store(rows_indexed)(), store(rows, (4, 128))()))
says("swap column", store(column), store(column_broadcast))
says("swap reshaped", store(turned_over), store(turned_back))
says("swap part", store(part))
says("swap row", store(row))
says("swap type", store(narrow), store(narrow_cast))
says("too many indices", store(too_many))
says("backend", lambda: pl.pallas_call(copy, out_shape=array)(jnp.ones((8, 128))),
     lambda: (pl.pallas_call(copy, out_shape=array, interpret=True)(jnp.ones((8, 128))), lowered(copy)))
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
    "given and read": ("donation", "donated as argument 0 of a call and read as argument 1 of the same call"),
    "unusable, and still there": ("donation", "its memory is not used again, and peak memory is that without donation"),
    "donate_argnums": ("jit", "donate_argnums=(2,) names argument 2 of a function that takes 2 by position"),
    "static_argnums": ("jit", "static_argnums=(0, -3) names argument -3 of a function that takes 2 by position"),
    "donate_argnames": ("jit", "donate_argnames names {'z'}, and the function has no parameters of such names"),
    "static and donated": ("jit", "{'x'} is static and donated at once"),
    "rank inside": (
        "sharding",
        "P('data', 'model', None) has 3 entries, and one of with_sharding_constraint arguments has 2",
    ),
    "rank put": ("sharding", "P(None, 'data') has 2 entries, and one of device_put args has 1 dimension"),
    "rank of an argument": (
        "sharding",
        "P('data',) has 1 entry, and one of pjit arguments at s['step'] has 0 dimensions",
    ),
    "rank mapped": ("sharding", "has 3 entries, and args[0] is float32[6,16], of 2 dimensions"),
    "axis twice": ("sharding", "P(('data', 'model'), 'model') names mesh axis model 2 times, at dimension 0 and 1"),
    "no such axis": (
        "sharding",
        "P('dta',) names axis dta, and the mesh has the axes data and model; did you mean 'data'",
    ),
    "no such manual axis": ("sharding", "in_specs of shard_map names axis dta; it goes over data and model"),
    "no mesh": ("sharding", "no mesh is set where with_sharding_constraint is called"),
    "no mesh of jit": ("sharding", "no mesh is set where jit is called"),
    "unbound": ("jit", "an operation speaks of axis data"),
    "devices": ("jit", "argument x and argument y lie on two: 1 and 8 devices, 1 of them in common"),
    "devices turned": ("jit", "both have the same 8 devices in another order"),
    "in_shardings": ("jit", "in_shardings says P(None, 'data') and the array (float32[8,16]) comes with P('data',)"),
    "compiled for shardings": ("jit", "in the shardings that it was compiled for: x (float32[8,16])"),
    "compiled for types": ("jit", "x is float32[16,16] in place of float32[8,16]"),
    "too few in_shardings": ("jit", "in_shardings has 1 entries, for 2 arguments"),
    "too many out_shardings": ("jit", "out_shardings has 3 entries, for 2 results"),
    "other keys": ("jit", "out_shardings has other keys than what it is for"),
    "contracting": ("sharding", "the summed dimensions of both operands lie split over model"),
    "one axis twice": ("sharding", "split over mesh axis data in two dimensions"),
    "broadcasting": ("sharding", "the operands of add are split differently in dimension 0 and 1"),
    "indexing": ("sharding", "an indexed dimension is split over devices"),
    "sorting": ("sharding", "the dimension that the operation goes along is split"),
    "pieces": ("sharding", "split makes a piece of 3 elements of a dimension that lies over 4 devices"),
    "replicated": ("sharding", "out_specs P() says that all devices along 'data' hold the same output"),
    "shard": (
        "sharding",
        "each device holds a shard of shape (2,) of float32[8], and was given an array of shape (3,)",
    ),
    "contracted": ("shapes", "that are summed over: (128,) of the left operand, (256,) of the right one"),
    "batched": ("shapes", "that are batch dimensions: (2,) of the left operand, (3,) of the right one"),
    "letters": ("shapes", "the letter j of einsum stands for dimensions of two sizes, 5 and 4"),
    "added": ("shapes", "counted from the last dimension; here they are 3 and 4 in dimension -1"),
    "spread": ("shapes", "(3,) cannot be spread over (4,)"),
    "reshaped": ("shapes", "(6, 16) has 96 elements, and (5, 32) takes 160"),
    "reshaped open": ("shapes", "(5, -1) takes a multiple of 5, which 96 is not"),
    "put together": ("shapes", "along dimension 0, and differ in another one (dimension 1: 4, 5)"),
    "stacked": ("shapes", "these are (3, 4) and (3, 5)"),
    "carried": ("shapes", "what a loop carries (c) has one type for all turns"),
    "carried type": ("shapes", "int32[] and float32[]"),
    "while": ("shapes", "float32[3] and float32[2]"),
    "branches": ("shapes", "true_fun and false_fun give two: float32[3] and float32[2]"),
    "scanned": ("shapes", "these are 3 and 4 long"),
    "mapped sizes": ("shapes", "these are 3 and 4: axis 0 of x is 3 and axis 0 of y is 4"),
    "size that runs": ("shapes", "a shape is made of argument n of a traced function"),
    "masked": ("shapes", "x[mask] has as many elements as the mask has True"),
    "update": ("shapes", "4 of 3 in dimension 0"),
    "slice": ("shapes", "5 of 3 in dimension 0"),
    "squeezed": ("shapes", "dimension 0 is 2"),
    "primitive": ("Mosaic", "Pallas has no lowering of sort for TPU kernels"),
    "scalars": ("Mosaic", "SMEM holds single numbers"),
    "swap rows": ("Pallas", "a value of shape (4, 128) where (8, 128) is, the whole reference"),
    "swap column": ("Pallas", "a value of shape (8, 1) where (8, 128) is"),
    "swap reshaped": ("Pallas", "a value of shape (128, 8) where (8, 128) is"),
    "swap part": ("Pallas", "a value of shape (4, 128) where (3, 128) is, a part of (8, 128)"),
    "swap row": ("Pallas", "a value of shape (8, 128) where (128,) is, a part of (8, 128)"),
    "swap type": ("Pallas", "the body stores bfloat16 to a reference of float32"),
    "too many indices": ("Pallas", "a reference of shape (8, 128) is indexed by more than 2 indices: (0, 0, 0)"),
    "backend": ("Pallas", "a Pallas call was run on the CPU"),
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


@pytest.mark.parametrize("name", [name for name, (kind, _) in EXPECTED.items() if kind in ("sharding", "jit")])
def test_a_spec_by_its_whole_name_is_the_same_one(name: str, said: dict[str, str]) -> None:
    """JAX before 0.7 prints PartitionSpec('data') where a later one prints P('data')."""
    whole = re.sub(r"\bP\(", "PartitionSpec(", said[name])
    (now,), (then,) = lp.why(said[name]).messages, lp.why(whole).messages
    assert (then.kind, then.cause.replace("PartitionSpec(", "P(")) == (
        now.kind,
        now.cause.replace("PartitionSpec(", "P("),
    )


def test_the_advice_for_a_dimension_is_computed(said: dict[str, str]) -> None:
    """Of (6, 16) over four devices: eight rows, or the other dimension, or two devices; each was run above."""
    (message,) = lp.why(said["argument"]).messages
    assert message.fixes == (
        "pad dimension 0 from 6 to 8, or cut it to 4",
        "or shard dimension 1 (16 / 4 = 4) instead",
        "or shard it over 2 devices: mesh axes of that product divide it",
    )


FIXES = {
    "rank inside": "a PartitionSpec: P('data', 'model'); dimensions that it leaves out are whole",
    "rank of an argument": "P() for a single number",
    "axis twice": "P(('data', 'model'), None) or P('data', 'model')",
    "donate_argnums": "write 0 to 1",
    "swap rows": "index the reference so that the part is (4, 128): ref[start:start + 4, :] = value",
    "swap column": "jnp.broadcast_to(value, (8, 128))",
    "swap reshaped": "value.reshape((8, 128))",
    "too few in_shardings": "2 entries, None where JAX is to choose",
    "reshaped": "(3, 32) takes as many (dimension 0: 3 for 5)",
    "put together": "axis=1, where they are to follow one another along that",
    "carried type": "the result.astype(jnp.int32), or float32 from the beginning; x.dtype says it",
    "size that runs": "static_argnames='n'",
    "devices turned": "make both shardings of one Mesh: another order of its devices is another mesh",
}


@pytest.mark.parametrize("name", FIXES)
def test_the_first_fix_is_the_one_that_was_run(name: str, said: dict[str, str]) -> None:
    (message,) = lp.why(said[name]).messages
    assert message.fixes[0] == FIXES[name]


def test_only_what_is_deleted_is_called_that(said: dict[str, str]) -> None:
    """A donation that is not used leaves its array as it was: it was read again, and nothing but the warning came."""
    kept, deleted = (lp.why(said[name]).messages[0] for name in ("unusable, and still there", "deleted"))
    assert "Error" not in said["unusable, and still there"]
    assert "deleted" not in " ".join((kept.cause, *kept.fixes))
    assert "given away" not in kept.cause
    assert "deleted" in deleted.cause


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("rank inside", "a value of rank 2", "a value of rank 3"),
        ("rank mapped", "rank 2", "rank 4"),
        ("axis twice", "'model'), 'model')", "'model'), 'other')"),
        ("no such axis", "Resource axis: dta", "Resource axis: data"),
        ("donate_argnums", "accepts 2 positional", "accepts 3 positional"),
        ("devices", "ids [1]", "ids [0, 1, 2, 3, 4, 5, 6, 7]"),
        ("too few in_shardings", "of length 1 for", "of length 2 for"),
        ("swap rows", "Value shape: (4, 128)", "Value shape: (8, 128)"),
        ("swap rows", "Expected shape: (8, 128)", "Expected shape: (16, 128)"),
        ("swap type", "Value dtype: bfloat16", "Value dtype: float32"),
        ("contracted", "(256,)", "(128,)"),
        ("letters", "terms (5)", "terms (4)"),
        ("added", "(6, 4)", "(6, 1)"),
        ("spread", "float32[4]", "float32[2,3]"),
        ("reshaped", "(5, 32)", "(3, 32)"),
        ("reshaped", "(size 96)", "(size 95)"),
        ("put together", "(3, 5)", "(9, 4)"),
        ("stacked", "(3, 5)", "(3, 4)"),
        ("carried", "float32[6]", "float32[3]"),
        ("branches", "float32[2]", "float32[3]"),
        ("scanned", "3, 4", "3, 3"),
        ("mapped sizes", "size 4", "size 3"),
        ("update", "(4,)", "(2,)"),
        ("squeezed", "dimensions=(0,)", "dimensions=(2,)"),
    ],
)
def test_a_text_that_contradicts_itself_has_no_cause(name: str, old: str, new: str, said: dict[str, str]) -> None:
    assert old in said[name]
    (message,) = lp.why(said[name].replace(old, new)).messages
    assert (message.cause, message.fixes) == ("", ())
    assert message.reason
