"""VMEM that the compiler can do without: arrays that it keeps whole, and scratch in which nothing is kept."""

from __future__ import annotations

from typing import Any

import pytest

import layoutproof as lp
from layoutproof.kernel.kernel import CompilerAnswer, Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge, kernel_target

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy")
pl = pytest.importorskip("jax.experimental.pallas")
pltpu = pytest.importorskip("jax.experimental.pallas.tpu")

PROVED, REFUTED, UNKNOWN = lp.Verdict.PROVED, lp.Verdict.REFUTED, lp.Verdict.UNKNOWN


def stores_nothing_it_reads(x_ref: Any, o_ref: Any, s_ref: Any) -> None:
    s_ref[...] = x_ref[...]
    o_ref[...] = jnp.zeros(o_ref.shape, o_ref.dtype)


def adds_up(x_ref: Any, o_ref: Any, s_ref: Any) -> None:
    s_ref[...] = s_ref[...] + x_ref[...]
    o_ref[...] = jnp.zeros(o_ref.shape, o_ref.dtype)


def small(body: Any, limit: int, dtype: Any = jnp.bool_, columns: int = 12) -> Any:
    """Two blocks of 64 rows, which take 32 KiB each, an input of one block of 4 KiB, and a scratch of 4 KiB."""

    def call(x: Any) -> Any:
        return pl.pallas_call(
            body,
            grid=(2, 2),
            in_specs=[pl.BlockSpec((8, 128), lambda i, j: (0, 0))],
            out_specs=pl.BlockSpec((64, columns), lambda i, j: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((128, columns), dtype),
            scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
            compiler_params=pltpu.CompilerParams(vmem_limit_bytes=limit),
        )(x)

    return call


X = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def vmem_of(function: Any, target: str = "v5e", **more: Any) -> Any:
    """What is said of its VMEM."""
    found = lp.kernels(function, X, target=target, **more).findings
    return next(f for f in found if (f.question, f.subject) == ("memory_budget", "VMEM"))


def after(call: Any) -> Any:
    return lambda x: jnp.tanh(call(x))


def before(call: Any) -> Any:
    return lambda x: jax.jit(lambda y: jax.jit(call)(jnp.tanh(y)))(x)


def beside(call: Any) -> Any:
    return lambda x: (call(x), jnp.tanh(x))


def unused(call: Any) -> Any:
    return lambda x: (jnp.exp(x), call(jnp.tanh(x)))[1]


def twice(call: Any) -> Any:
    return lambda x: (made := call(jnp.tanh(x)), made)


@pytest.mark.parametrize(
    ("function", "target", "verdict", "least"),
    [
        # truth values are converted, so the compiler keeps them in VMEM as a whole, without windows
        (small(stores_nothing_it_reads, 65536), "v5e", UNKNOWN, 4096),
        (small(stores_nothing_it_reads, 2048), "v5e", REFUTED, 4096),
        # what is laid out in rows goes to HBM by its windows; the scratch counts where something is read from it
        (small(stores_nothing_it_reads, 65536, jnp.float32, 128), "v5e", REFUTED, 69632),
        (small(stores_nothing_it_reads, 69632, jnp.float32, 128), "v5e", UNKNOWN, 69632),
        (small(adds_up, 69632, jnp.float32, 128), "v5e", REFUTED, None),
        (small(adds_up, 73728, jnp.float32, 128), "v5e", PROVED, None),
        # 7x fetches inputs as a whole
        (small(adds_up, 69632, jnp.float32, 128), "7x", UNKNOWN, 69632),
        # among other operations its result may stay in VMEM
        (after(small(adds_up, 65536, jnp.float32, 128)), "v5e", UNKNOWN, 4096),
        (beside(small(adds_up, 65536, jnp.float32, 128)), "v5e", UNKNOWN, 4096),
        (twice(small(adds_up, 65536, jnp.float32, 128)), "v5e", UNKNOWN, 4096),
        # after the last one there is none that its result could wait for; an input is fetched meanwhile
        (before(small(adds_up, 65536, jnp.float32, 128)), "v5e", REFUTED, 69632),
        (before(small(adds_up, 69632, jnp.float32, 128)), "v5e", UNKNOWN, 69632),
        (unused(small(adds_up, 65536, jnp.float32, 128)), "v5e", REFUTED, 69632),
        # but for a result that is converted
        (before(small(adds_up, 65536)), "v5e", UNKNOWN, 4096),
        (jax.jit(small(adds_up, 65536, jnp.float32, 128)), "v5e", REFUTED, None),
    ],
)
def test_what_the_compiler_can_do_without_is_no_lower_bound(
    function: Any, target: str, verdict: lp.Verdict, least: int | None
) -> None:
    """libtpu 0.0.52 takes all that is unknown here, and refuses all that is refuted."""
    found = vmem_of(function, target)
    assert (found.verdict, found.figures.get("least")) == (verdict, least), found.reason
    if verdict is UNKNOWN:
        assert "only the compiler can say (kernels --compile)" in found.reason


def test_the_compilers_answer_settles_what_is_open() -> None:
    (call, *_) = kernels_of(small(stores_nothing_it_reads, 65536), [X], target="v5e")
    assert isinstance(call, Kernel)
    target = kernel_target("v5e")

    def told(answer: CompilerAnswer) -> Any:
        return judge(call, names=["memory_budget"], target=target.told(answer))[0]

    taken = told(CompilerAnswer("", "libtpu 0.0.52", said="4.00 KiB of 0.06 MiB: windows 4.00"))
    assert (taken.verdict, taken.decided_by) == (PROVED, "libtpu 0.0.52")
    words = "Scoped allocation with size 72.0K and limit 64.0K exceeded scoped vmem limit"
    assert told(CompilerAnswer(words, "libtpu 0.0.52")).verdict is REFUTED
    assert told(CompilerAnswer("Invalid vector type for load", "libtpu 0.0.52")).verdict is UNKNOWN


@pytest.mark.parametrize(("dtype", "verdict"), [(jnp.bool_, UNKNOWN), (jnp.float32, REFUTED)])
def test_an_input_may_be_fetched_while_another_one_is_converted(dtype: Any, verdict: lp.Verdict) -> None:
    """Three windows of 8 KiB: libtpu 0.0.52 takes the first within 8 KiB, and refuses the second within 16."""

    def adds(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + y_ref[...].astype(jnp.float32)

    def call(x: Any, y: Any) -> Any:
        made = pl.pallas_call(
            adds,
            out_shape=jax.ShapeDtypeStruct((2048,), jnp.float32),
            in_specs=[pl.BlockSpec((2048,), lambda: (0,))] * 2,
            out_specs=pl.BlockSpec((2048,), lambda: (0,)),
            compiler_params=pltpu.CompilerParams(vmem_limit_bytes=12288),
        )
        return made(x, y)

    x, y = (jax.ShapeDtypeStruct((2048,), of) for of in (jnp.float32, dtype))
    found = lp.kernels(call, x, y, target="v5e").findings
    vmem = next(f for f in found if (f.question, f.subject) == ("memory_budget", "VMEM"))
    assert vmem.verdict is verdict, vmem.reason
    if verdict is UNKNOWN:
        assert "args[0] may be in VMEM as a whole (it may be fetched while args[1] is copied" in vmem.reason
