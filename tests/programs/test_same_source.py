"""`compile --same`: what the TPU compiler makes of a function computes what the function says, and no other one."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
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
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def attention(q, k, v, scale=4.0, shift=0):
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / scale
    seen = jnp.tril(jnp.ones(scores.shape[1:], bool), shift)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(jnp.where(seen, scores, -1e30)), v)


def attention_wrong(q, k, v):
    return attention(q, k, v, shift=-1)


def layer_norm(x, g, eps=1e-5):
    m = x.mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + eps) * g


def layer_norm_wrong(x, g):
    return layer_norm(x, g, 1e-6)


def adam(p, g, m, v, of=lambda m, g: m):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (of(m, g) / (1 - 0.9)) / (jnp.sqrt(v / (1 - 0.999)) + 1e-8), m, v


def adam_wrong(p, g, m, v):
    return adam(p, g, m, v, lambda m, g: g)


def recurrent(xs, w, of=jnp.tanh):
    def step(h, x):
        h = of(h @ w + x)
        return h, h

    h, ys = lax.scan(step, jnp.zeros(w.shape[0]), xs)
    return ys, h


def recurrent_wrong(xs, w):
    return recurrent(xs, w.T)


def loss(x, t, of=lambda t: t):
    return -jnp.take_along_axis(jax.nn.log_softmax(x), of(t)[:, None], 1).mean()


def loss_wrong(x, t):
    return loss(x, t, lambda t: jnp.minimum(t, 90))


def repeated(n, x, least=0):
    return lax.fori_loop(least, n, lambda i, c: c * 1.5 + x, x)


def repeated_wrong(n, x):
    return repeated(n, x, -1)


def convolved(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolved_wrong(x, w):
    return convolved(x, w[::-1])


def dense(x, w, b):
    return jax.nn.silu(x @ w + b)


def dense_wrong(x, w, b):
    return jax.nn.silu(x @ w - b)


def gelu(x, of=jax.nn.gelu):
    return of(x, approximate=False)


def gelu_wrong(x):
    return jax.nn.gelu(x)


def best(x):
    return lax.top_k(x, 4)


def with_best(x):
    return x * 2, lax.top_k(x, 4)[0]


def with_best_wrong(x):
    return x * 3, lax.top_k(x, 4)[0]


def scaled(x, g, eps=1e-6):
    def body(x_ref, g_ref, o_ref, total):
        @pl.when(pl.program_id(0) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        x = x_ref[...]
        total[...] += x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * g_ref[...]

        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _():
            o_ref[...] = total[...]

    return jnp.tanh(pl.pallas_call(
        body, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec((8, 128), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)), out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x, g))


def scaled_wrong(x, g):
    return scaled(x, g, 1e-2)


def scaled_twice(x, g):
    return 2 * scaled(x, g)


def unused(a, b, c):
    return a - c


def unused_wrong(a, b, c):
    return a - b
"""
PAIRS: dict[str, list[str]] = {
    "attention": ["f32[4,32,16]"] * 3,
    "layer_norm": ["f32[16,256]", "f32[256]"],
    "adam": ["f32[64,32]"] * 4,
    "recurrent": ["f32[12,16]", "f32[16,16]"],
    "loss": ["f32[8,100]", "s32[8]"],
    "repeated": ["s32[]", "f32[16]"],
    "convolved": ["f32[2,16,16,8]", "f32[3,3,8,16]"],
    "dense": ["bf16[64,32]", "bf16[32,128]", "bf16[128]"],
    "gelu": ["f32[16,128]"],
    "unused": ["f32[8]"] * 3,
}
ALONE = {"best": ["f32[16,64]"], "with_best": ["f32[16,64]"], "scaled": ["f32[32,128]", "f32[8,128]"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, lp.Programs]]:
    """What is compiled of each function, in a folder of the user's."""
    folder = tmp_path_factory.mktemp("same_source")
    (folder / "functions_of_same.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    try:
        yield {
            name: lp.compile(f"{folder}/functions_of_same.py:{name}", *args, target="v5e", same=True)
            for name, args in {**PAIRS, **ALONE}.items()
        }
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("functions_of_same", None)


def source(name: str, args: list[str]) -> Any:
    """The jaxpr of a function, as a program."""
    import functions_of_same

    from layoutproof.pallas.from_jax.programs import program_of
    from layoutproof.pallas.from_jax.user import argument

    return program_of(jax.make_jaxpr(getattr(functions_of_same, name))(*map(argument, args)))


@NEEDS_TPU
@pytest.mark.parametrize("name", PAIRS)
def test_the_compiled_program_is_its_source_and_not_a_wrong_twin(name: str, made: dict[str, lp.Programs]) -> None:
    """No difference from the function, exit code 0; from a function with one error a difference that float64 shows."""
    found = made[name]
    (same,) = found.same
    assert same.verdict in (Verdict.SAMPLED, Verdict.PROVED), same
    assert found.exit_code == 0
    kept = [0, 2] if name == "unused" else None
    (text,) = found.texts
    if "constant({...})" in text:
        # the text that is kept leaves large constants out, and the one that is compared does not
        assert "leaves out" in compared(text, source(name, PAIRS[name]), kept)["reason"]
        return
    assert compared(text, source(name, PAIRS[name]), kept)["verdict"] in ("sampled", "proved")
    wrong = source(f"{name}_wrong", PAIRS[name])
    assert compared(text, wrong, kept)["verdict"] == "refuted"


@NEEDS_TPU
def test_what_sums_are_kept_in_stands_beside_the_answer(made: dict[str, lp.Programs]) -> None:
    """The element types, of the compiled program."""
    (same,) = made["layer_norm"].same
    assert same.figures["sums"] == "float32"


@NEEDS_TPU
def test_a_polynomial_is_the_function_that_it_stands_for(made: dict[str, lp.Programs]) -> None:
    """erfc is written out; with one coefficient of it changed it is no erfc, and the difference is shown."""
    (text,) = made["gelu"].texts
    (same,) = made["gelu"].same
    assert same.figures["written_out"].startswith("erfc: 1; as the function itself")
    assert text.count("constant(0.112835854)") == 1
    other = compared(text.replace("constant(0.112835854)", "constant(0.122835854)"), source("gelu", PAIRS["gelu"]))
    assert other["verdict"] == "refuted"
    assert "written_out" not in other["figures"]


@NEEDS_TPU
def test_what_is_not_modelled_is_unknown_by_name(made: dict[str, lp.Programs]) -> None:
    """An order of data; beside it the results that do not rest on it are compared."""
    (same,) = made["best"].same
    assert same.verdict is Verdict.UNKNOWN
    assert same.reason.startswith("an order of data: 2 of 2 outputs rest on sort at ")
    assert made["best"].exit_code == 3
    (same,) = made["with_best"].same
    assert same.reason.startswith("an order of data: 1 of 2 outputs rests on sort at ")
    assert same.reason.endswith("; of the other 1: no difference")
    assert same.figures["results"] == "1 of 2 compared"
    assert Path(same.file).name == "functions_of_same.py"
    (text,) = made["with_best"].texts
    # the twin: what rests on no order of data is refuted beside it
    for name, verdict in (("with_best", "unknown"), ("with_best_wrong", "refuted")):
        assert compared(text, source(name, ["f32[16,64]"]))["verdict"] == verdict


@NEEDS_TPU
def test_a_kernel_is_read_by_its_own_module(made: dict[str, lp.Programs], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not read, it is the source's; where by its module alone there is a difference, nothing is refuted."""
    from layoutproof.from_hlo import kernels
    from layoutproof.pallas.from_mosaic import mosaic_arith

    (same,), (text,), args = made["scaled"].same, made["scaled"].texts, ALONE["scaled"]
    assert same.verdict is Verdict.SAMPLED
    assert same.figures["kernels"] == "1 by their own Mosaic modules"
    # of another source the kernel alone differs, or what is around it
    alone = "with the kernels as the source has them there is no difference, and by their modules"
    assert compared(text, source("scaled_wrong", args))["reason"].startswith(alone)
    assert compared(text, source("scaled_twice", args))["verdict"] == "refuted"
    monkeypatch.setattr(mosaic_arith, "_float", lambda text, dtype: 0.5)
    kernels._read.cache_clear()
    found = compared(text, source("scaled", args))
    assert found["verdict"] == "unknown"
    assert found["reason"].startswith(alone)

    def refused(call: Any) -> Any:
        raise lp.LayoutError("another form")

    monkeypatch.setattr(kernels, "_read", refused)
    found = compared(text, source("scaled", args))
    assert found["verdict"] == "sampled"
    assert found["figures"]["kernels"].startswith("taken as the source has them, since not all are read")
    assert compared(text, source("scaled_twice", args))["verdict"] == "refuted"


def text_of(entry: str, before: str = "") -> str:
    """A module of some lines."""
    return f"HloModule m\n{before}ENTRY e {{\n{entry}}}\n"


def program(function: Any, *shapes: Any) -> Any:
    """A function as a program."""
    from layoutproof.pallas.from_jax.programs import program_of

    return program_of(jax.make_jaxpr(function)(*shapes))


F4 = jax.ShapeDtypeStruct((4,), "float32")
INT = jax.ShapeDtypeStruct((), "int32")


def test_a_branch_that_no_number_takes_is_not_compared() -> None:
    """Beyond the numbers that are tried the branches differ: unknown, and not the same. With a number near the code's
    own it is found."""
    branches = (
        "yes {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n"
        "no {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] copy(x)\n}\n"
    )
    entry = (
        "  n = s32[] parameter(0)\n  x = f32[4] parameter(1)\n  k = s32[] constant({})\n"
        "  p = pred[] compare(n, k), direction=EQ\n"
        "  ROOT c = f32[4] conditional(p, x, x), true_computation=yes, false_computation=no\n"
    )

    def same(n: Any, x: Any) -> Any:
        return x

    far = compared(text_of(entry.format(100_000), branches), program(same, INT, F4))
    assert far["verdict"] == "unknown"
    assert far["reason"].startswith("the compiled program has a branch that was never taken")
    near = compared(text_of(entry.format(70), branches), program(same, INT, F4))
    assert near["verdict"] == "refuted"

    def alike(n: Any, x: Any) -> Any:
        return jax.lax.cond(n == 70, lambda x: x + x, lambda x: x, x)

    assert compared(text_of(entry.format(70), branches), program(alike, INT, F4))["verdict"] == "sampled"


@pytest.mark.parametrize(
    ("written", "verdict"),
    [("999.999939", "sampled"), ("999.99", "refuted"), ("1000", "sampled"), ("999.9", "refuted")],
)
def test_what_was_folded_is_read_as_what_it_was_made_of(written: str, verdict: str) -> None:
    """1 / f32(0.001), to 4 units in the last place, and no further."""
    entry = (
        f"  x = f32[4] parameter(0)\n  k = f32[] constant({written})\n"
        "  b = f32[4] broadcast(k), dimensions={}\n  t = f32[4] multiply(x, b)\n  ROOT y = f32[4] tanh(t)\n"
    )

    def divided(x: Any) -> Any:
        return jax.numpy.tanh(x / 0.001)

    assert compared(text_of(entry), program(divided, F4))["verdict"] == verdict


def test_what_does_not_fit_or_is_too_large_is_unknown() -> None:
    """Another number of parameters, several devices whose shardings nobody says, a text of many megabytes: one line
    each."""
    entry = "  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n"
    two = program(lambda x, y: x + y, F4, F4)
    assert compared(text_of(entry), two)["reason"] == "the compiled program has 1 parameters, and its source 2"
    many = text_of(entry).replace("HloModule m", "HloModule m, num_partitions=4")
    assert "0 shardings of 1 parameters" in compared(many, program(lambda x: x + x, F4))["reason"]
    long = compared(" " * (1 << 26), two)
    assert long["verdict"] == "unknown"
    assert "67,108,864 characters" in long["reason"]
    assert "parameter 0" not in compared(text_of(entry), program(lambda x: x + x, F4))["reason"]


def test_functions_without_laws_are_told_apart_by_their_names() -> None:
    """sin and cos are two functions at every point, as long names are."""
    for function, opcode, verdict in ((jax.numpy.sin, "sine", "sampled"), (jax.numpy.cos, "sine", "refuted")):
        entry = f"  x = f32[4] parameter(0)\n  ROOT y = f32[4] {opcode}(x)\n"
        assert compared(text_of(entry), program(function, F4))["verdict"] == verdict


def test_exponentials_that_are_nested_deeper_than_the_fields() -> None:
    """Eight tanh of one another are compared, and seven are another function."""
    lines = "".join(f"  t{k} = f32[4] tanh({f't{k - 1}' if k else 'x'})\n" for k in range(8))
    text = text_of(f"  x = f32[4] parameter(0)\n{lines}  ROOT y = f32[4] copy(t7)\n")

    def nested(many: int) -> Any:
        def of(x: Any) -> Any:
            for _ in range(many):
                x = jax.numpy.tanh(x)
            return x

        return program(of, F4)

    assert compared(text, nested(8))["verdict"] == "sampled"
    assert compared(text, nested(7))["verdict"] == "refuted"


def test_a_dump_says_no_source() -> None:
    """What is compiled already is compared with nothing."""
    with pytest.raises(lp.LayoutError, match="give the function"):
        lp.compile(text_of("  ROOT x = f32[4] parameter(0)\n"), same=True)


LARGE = """
import jax
import jax.numpy as jnp
from jax import lax


def mlp(x, w):
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, w)[0]


def stated(x):
    return jnp.tanh(x) @ jnp.ones((256, 256))
"""


def at_most(
    monkeypatch: pytest.MonkeyPatch, steps: int, file: Path, name: str, *args: str
) -> tuple[dict[str, Any], Any]:
    """What the process that compiles answers where a walk may take so many steps, and the finding."""
    from layoutproof.compiler.child import Reply
    from layoutproof.programs import compiling, same_source
    from layoutproof.programs.compile import Asked, made_of, request_of
    from layoutproof.questions import reduced

    for module in (same_source, reduced):
        monkeypatch.setattr(module, "MOST_STEPS", steps)
    file.write_text(LARGE)
    asked = Asked(f"{file}:{name}", args, same=True)
    found = compiling.answered(request_of(asked), lambda what: None)
    return found, made_of(asked, Reply(found)).same


def test_what_is_too_large_is_another_compilation_at_smaller_sizes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The record is that of the given sizes; the line of the verdict says which sizes were compared."""
    args = ("f32[64,32]", "f32[6,32,32]")
    found, same = at_most(monkeypatch, 1 << 17, tmp_path / "large.py", "mlp", *args)
    assert "f32[64,32]" in found["text"]
    assert same.verdict is Verdict.SAMPLED, same
    assert "another compilation, at args[0] [16, 8] for [64, 32], args[1] [6, 8, 8] for [6, 32, 32]" in same.subject
    assert same.scope == "over the reals, at smaller sizes: rounding is not asked"
    # what is small enough is compared as it is
    found, same = at_most(monkeypatch, 1 << 33, tmp_path / "large.py", "mlp", *args)
    assert same.verdict is Verdict.SAMPLED
    assert "another compilation" not in same.subject


def test_what_states_its_sizes_is_unknown_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, same = at_most(monkeypatch, 1 << 17, tmp_path / "large.py", "stated", "f32[256,256]")
    assert same.verdict is Verdict.UNKNOWN
    assert same.reason.startswith("a walk takes ")
    assert "smaller sizes, which are another compilation, are not tried: its extents cannot be halved" in same.reason


def test_a_miscompiled_program_at_smaller_sizes_is_refuted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The text of the other compilation is what is compared: a sign in it shows."""
    from layoutproof.programs import compiling

    whole = compiling._with_constants
    texts: list[str] = []

    def turned(made: Any) -> str:
        texts.append(whole(made).replace(" tanh(", " negate("))
        return texts[-1]

    monkeypatch.setattr(compiling, "_with_constants", turned)
    monkeypatch.setattr(compiling.cache, "get", lambda key: None)
    monkeypatch.setattr(compiling.cache, "put", lambda key, value: None)
    _, same = at_most(monkeypatch, 1 << 17, tmp_path / "large.py", "mlp", "f32[64,32]", "f32[6,32,32]")
    assert same.verdict is Verdict.REFUTED, same
    assert " negate(" in texts[-1]
    assert "another compilation" in same.subject
