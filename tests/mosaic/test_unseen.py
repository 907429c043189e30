"""What the compiler's estimate of cycles cannot see, from the bodies of kernels; and the bounds that guard it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from layoutproof.core.term import Term
from layoutproof.kernel.kernel import Block, Kernel, Operand
from layoutproof.mosaic.bounds import flops_a_cycle, pipeline_cycles, product_cycles, share, traffic, traffic_cycles

jax = pytest.importorskip("jax")

from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from layoutproof.mosaic.unseen import flops, unseen  # noqa: E402
from layoutproof.pallas.from_jax.programs import program_of  # noqa: E402

pytestmark = pytest.mark.slow


def of_data(n: Any, x: Any, o: Any) -> None:
    @pl.when(n[0] > 0)
    def _() -> None:
        o[...] = x[...]


def of_vector(n: Any, x: Any, o: Any) -> None:
    @pl.when(jnp.max(x[...]) > 0)
    def _() -> None:
        o[...] = x[...]


def of_program(n: Any, x: Any, o: Any) -> None:
    @pl.when(pl.program_id(0) % 2 == 0)
    def _() -> None:
        o[...] = x[...] + n[0]


def fixed_loop(n: Any, x: Any, o: Any) -> None:
    o[...] = lax.fori_loop(0, 10, lambda i, c: c + x[...], x[...])


def loop_of_the_program(n: Any, x: Any, o: Any) -> None:
    first = pl.program_id(0) * 8
    o[...] = lax.fori_loop(first, first + 8, lambda i, c: c + x[...], x[...])


def random_condition(n: Any, x: Any, o: Any) -> None:
    pltpu.prng_seed(0)
    bits = pltpu.prng_random_bits((8, 128))

    @pl.when(jnp.max(bits) > 0)
    def _() -> None:
        o[...] = x[...]


def scoped_as_often(n: Any, x: Any, o: Any) -> None:
    """As many references of its own as numbers from outside."""
    many = n[0]

    def inner(one: Any, two: Any, three: Any) -> None:
        one[...] = x[...]
        o[...] = lax.fori_loop(0, many, lambda i, c: c + one[...], x[...])

    of = pltpu.VMEM((8, 128), jnp.float32)
    pl.run_scoped(inner, of, of, of)


def data_loop(n: Any, x: Any, o: Any) -> None:
    o[...] = lax.fori_loop(0, n[0], lambda i, c: c + x[...], x[...])


def carried_condition(n: Any, x: Any, o: Any) -> None:
    def step(i: Any, c: Any) -> Any:
        return lax.cond(c > 3, lambda: c, lambda: c + n[i])

    o[...] = x[...] * lax.fori_loop(0, 4, step, 0).astype(jnp.float32)


def scoped(n: Any, x: Any, o: Any) -> None:
    def inner(ref: Any) -> None:
        ref[...] = x[...]

        @pl.when(n[0] > 1)
        def _() -> None:
            o[...] = ref[...]

    pl.run_scoped(inner, pltpu.VMEM((8, 128), jnp.float32))


def copied(n: Any, x: Any, o: Any, device: int | None = None, core: int | None = None) -> None:
    def inner(ref: Any, arrived: Any, sent: Any, plain: Any) -> None:
        if device is None:
            copy = pltpu.make_async_copy(x, ref, arrived)
        else:
            copy = pltpu.make_async_remote_copy(x, ref, sent, arrived, (device,))
        copy.start()
        copy.wait()
        pl.semaphore_signal(plain, 1, core_index=core)
        pl.semaphore_wait(plain, 1)
        o[...] = ref[...]

    dma = pltpu.SemaphoreType.DMA
    pl.run_scoped(inner, pltpu.VMEM((8, 128), jnp.float32), dma, dma, pltpu.SemaphoreType.REGULAR)


def to_another_device(n: Any, x: Any, o: Any) -> None:
    copied(n, x, o, device=1)


def to_another_core(n: Any, x: Any, o: Any) -> None:
    copied(n, x, o, core=1)


def body_of(body: Callable[..., None]) -> Any:
    """The body of a call of two programs."""
    spec = pl.BlockSpec((8, 128), lambda i, n: (i, 0))
    grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[spec], out_specs=spec)
    shape = jax.ShapeDtypeStruct((16, 128), "float32")
    call = pl.pallas_call(body, grid_spec=grid, out_shape=shape)
    made = jax.make_jaxpr(call)(jax.ShapeDtypeStruct((4,), "int32"), shape).jaxpr
    return program_of(next(e for e in made.eqns if e.primitive.name == "pallas_call").params["jaxpr"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (of_data, "a condition on data"),
        (of_vector, "a condition on data"),
        (data_loop, "a loop whose end depends on data"),
        (carried_condition, "a condition on data"),
        (scoped, "a condition on data"),
        (scoped_as_often, "a loop whose end depends on data"),
        (random_condition, "a condition on data"),
        (loop_of_the_program, "a loop whose ends depend on the program"),
        (of_program, ""),
        (copied, ""),
        (to_another_device, "it speaks to another device or core"),
        (to_another_core, "it speaks to another device or core"),
        (fixed_loop, ""),
    ],
)
def test_what_depends_on_data(body: Callable[..., None], said: str) -> None:
    """Conditions and loops over what is read; those over program ids and fixed numbers of turns are evaluated."""
    found = unseen(body_of(body))
    assert len(found) == bool(said)
    assert all(each.startswith(said) and "(line " in each for each in found)


def test_flops_that_are_sure() -> None:
    """Of products in loops with a known number of turns, and of none under a condition."""

    def body(n: Any, x: Any, o: Any) -> None:
        def step(i: Any, c: Any) -> Any:
            return c + jnp.dot(x[...], x[...].T) @ x[...]

        o[...] = lax.fori_loop(0, 5, step, x[...])

        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            o[...] = jnp.dot(x[...], x[...].T) @ x[...]

    once = 2 * 8 * 128 * 8 + 2 * 8 * 8 * 128
    assert flops(body_of(body), 2) == 2 * 5 * once


def test_flops_of_a_condition_are_those_of_the_branch_that_does_least() -> None:
    """As in a grouped product, whose last step masks: with both left out nothing of it is sure."""

    def body(n: Any, x: Any, o: Any) -> None:
        def all_of_it() -> None:
            o[...] = jnp.dot(x[...], x[...].T) @ x[...]

        def half() -> None:
            o[...] = jnp.dot(x[...], x[...].T)[:, :1] * x[...]

        lax.cond(pl.program_id(0) == 0, all_of_it, half)

    assert flops(body_of(body), 3) == 3 * 2 * 8 * 128 * 8


@pytest.mark.parametrize(
    ("kind", "share"), [("bfloat16", 1), ("float32", 1), ("int8", 2), ("float8_e4m3fn", 2), ("int4", 4)]
)
def test_flops_count_as_those_of_bf16(kind: str, share: int) -> None:
    def body(n: Any, x: Any, o: Any) -> None:
        small = x[...].astype(kind)
        o[...] = jnp.dot(small, small.T, preferred_element_type=jnp.float32) @ x[...]

    assert flops(body_of(body), 1) == 2 * 8 * 128 * 8 // share + 2 * 8 * 8 * 128


def kernel(*index: str, grid: tuple[int, ...] = (4, 8), semantics: tuple[str, ...] = ()) -> Kernel:
    """A call that reads blocks of f32[64,1024]. index: a grid dimension's name for each dimension."""
    names = tuple(f"g{k}" for k in range(len(grid)))
    terms = tuple(Term("name", name) if name in names else Term("int", int(name)) for name in index)
    block = (Block("blocked", 8), Block("blocked", 128))
    operand = Operand("args[0]", "in", (64, 1024), "f32", block, terms)
    return Kernel("k", grid, names, (operand,), semantics=semantics)


def test_traffic() -> None:
    """A block that stays is fetched once; one that comes again is fetched again; what is not in the array is not."""
    whole = 8 * 128 * 4
    assert traffic(kernel("g0", "g1")) == 4 * 8 * whole
    assert traffic(kernel("g0", "0")) == 4 * whole
    assert traffic(kernel("g1", "0")) == 4 * 8 * whole
    assert traffic(kernel("0", "0")) == whole
    assert traffic(kernel("g0", "g1", grid=(9, 1))) == 8 * whole
    assert traffic(kernel("g0", "g1", grid=(1 << 14, 8))) == 0


def test_bounds_in_cycles() -> None:
    """2048^3 in bf16 takes 131,072 cycles on v5e. Of v4 the clock is not known."""
    assert product_cycles(kernel("g0", "g1"), "v5e", 2 * 2048**3) == 131072
    assert product_cycles(kernel("g0", "g1"), "v6e", 2 * 2048**3) == 32768
    assert product_cycles(kernel("g0", "g1"), "v4", 2 * 2048**3) == 0
    per_cycle = {"v5e": 820e9 / (197e12 / 131072), "v6e": 1640e9 / (920e12 / 524288), "7x": 3700e9 / (1155e12 / 524288)}
    for target, moved in per_cycle.items():
        assert traffic_cycles(kernel("g0", "g1"), target) == int(4 * 8 * 4096 / moved)
    assert traffic_cycles(kernel("g0", "g1"), "v4") == 0
    # what the simulation does of a matmul in a cycle is less than the units can do, and more than three of four could
    for target, cycles in {"v6e": 302_165, "7x": 301_800}.items():
        assert 3 / 4 < 2 * 4096**3 / cycles / flops_a_cycle(target) < 1


def product_of_blocks(bm: int, bn: int, bk: int, n: int = 2048, buffers: int | None = None) -> Kernel:
    """A product of n x n matrices of bf16, as its windows move."""
    grid, names = (n // bm, n // bn, n // bk), ("i", "j", "k")

    def operand(name: str, rows: int, columns: int, at: str, role: str = "in") -> Operand:
        index = tuple(Term("name", each) for each in at)
        blocks = (Block("blocked", rows), Block("blocked", columns))
        return Operand(name, role, (n, n), "bf16", blocks, index, buffers=buffers if role == "in" else None)

    operands = (operand("x", bm, bk, "ik"), operand("y", bk, bn, "kj"), operand("o", bm, bn, "ij", "out"))
    return Kernel("k", grid, names, operands)


def test_the_first_blocks_come_before_anything_is_computed() -> None:
    """On v6e copies move 937.14 bytes in a cycle, and 2048^3 takes 32,768: of four steps each 8,192."""
    all_of_it, rate = 2 * 2048**3, 1640e9 / (920e12 / 524288)
    mib = 1 << 20
    # 8 MiB before, 8 in the middle beside 8,192 cycles of products, 2 written after: the simulation says 43,360
    many = pipeline_cycles(product_of_blocks(1024, 1024, 2048), "v6e", all_of_it)
    assert many == int(8 * mib / rate + 3 * 8192 + 8 * mib / rate + 2 * mib / rate) == 44_771
    # one block of y that stays, and blocks of x that come while others are multiplied
    many = pipeline_cycles(product_of_blocks(512, 2048, 2048), "v6e", all_of_it)
    assert many == int((2 + 8 + 2) * mib / rate + 32_768) == 46_231
    # with a third buffer both blocks in the middle may have come before
    many = pipeline_cycles(product_of_blocks(1024, 1024, 2048, buffers=3), "v6e", all_of_it)
    assert many == int((8 + 2) * mib / rate + 32_768)
    # no step of it fetches longer than it computes, and without products it is what it moves
    assert pipeline_cycles(product_of_blocks(1024, 1024, 2048), "v6e", 0) == int((8 + 4 + 8 + 4 + 2) * mib / rate)
    # a clock that nobody knows, and two cores
    assert pipeline_cycles(product_of_blocks(1024, 1024, 2048), "v4", all_of_it) == 0
    assert pipeline_cycles(product_of_blocks(1024, 1024, 2048), "v5p", all_of_it) == 0


@pytest.mark.parametrize(
    ("grid", "parallel", "part"),
    [
        ((8, 8), "", Fraction(1)),
        ((8, 8), "0", Fraction(1, 2)),
        ((3, 8), "0", Fraction(2, 3)),
        ((3, 8), "01", Fraction(1, 2)),
        ((3, 5), "01", Fraction(3, 5)),
        ((1, 8), "0", Fraction(1)),
    ],
)
def test_cores_that_share_the_programs(grid: tuple[int, ...], parallel: str, part: Fraction) -> None:
    """On v5p, whose two cores are one device, as the compiler was seen to split grids; elsewhere one runs them all."""
    semantics = tuple("parallel" if str(k) in parallel else "arbitrary" for k in range(len(grid)))
    one = kernel("g0", "g1", grid=grid, semantics=semantics)
    assert {target: share(one, target) for target in ("v5p", "v5e", "v6e", "7x")} == {
        "v5p": part,
        "v5e": 1,
        "v6e": 1,
        "7x": 1,
    }
    alone = traffic_cycles(kernel("g0", "g1", grid=grid), "v5p")
    assert traffic_cycles(one, "v5p") == pytest.approx(alone * part, abs=1)
    assert product_cycles(one, "v5p", 2 * 2048**3) == int(131072 * part)
