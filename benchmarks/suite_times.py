"""`python benchmarks/suite_times.py [--rounds N]`: what `pytest --layoutproof` adds to a suite with 50 kernels.

The suite is written to a temporary folder: ten kernels (elementwise, masked softmax, layer norm, products with an
accumulator and a masked tail, gathers by a table, double buffers of manual copies, ..) at five shapes each, a test per
kernel and shape that runs it in interpret mode and compares it with jax.numpy. It is run by turns with and without the
option, in processes of their own, and the least CPU time of each way counts. Prints both, and what one call takes.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

SUITE = '''
"""Kernels in interpret mode, each against jax.numpy."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

SIZES = [(16, 256), (24, 384), (20, 300), (40, 200), (64, 512)]
call = functools.partial(pl.pallas_call, interpret=True)


def data(*shape):
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape), jnp.float32)


def rows(n, columns):
    return pl.BlockSpec((8, columns), lambda i: (i, 0))


def by_rows(body, *arrays, columns=None):
    n, m = arrays[0].shape
    specs = [rows(n, a.shape[1]) if a.shape[0] == n else pl.BlockSpec(a.shape, lambda i: (0, 0)) for a in arrays]
    out = jax.ShapeDtypeStruct((n, columns or m), jnp.float32)
    grid = (pl.cdiv(n, 8),)
    return call(body, grid=grid, in_specs=specs, out_specs=rows(n, columns or m), out_shape=out)(*arrays)


sizes = pytest.mark.parametrize(("n", "m"), SIZES)


@sizes
def test_add(n, m):
    def body(x, y, o):
        o[...] = x[...] + y[...]

    x = data(n, m)
    np.testing.assert_allclose(by_rows(body, x, x), 2 * x, rtol=1e-5)


@sizes
def test_softmax(n, m):
    def body(x, o):
        v = x[...]
        e = jnp.exp(v - v.max(1, keepdims=True))
        o[...] = e / e.sum(1, keepdims=True)

    np.testing.assert_allclose(by_rows(body, data(n, m)), jax.nn.softmax(data(n, m), axis=1), rtol=1e-5)


@sizes
def test_layer_norm(n, m):
    def body(x, g, o):
        v = x[...]
        mean = v.mean(1, keepdims=True)
        o[...] = (v - mean) * lax.rsqrt(((v - mean) ** 2).mean(1, keepdims=True) + 1e-6) * g[...]

    x, g = data(n, m), data(1, m)
    mean = x.mean(1, keepdims=True)
    want = (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-6) * g
    np.testing.assert_allclose(by_rows(body, x, g), want, rtol=1e-4, atol=1e-5)


@sizes
def test_matmul(n, m):
    def body(x, y, o, acc):
        k = pl.program_id(2)

        @pl.when(k == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)

        at = k * 128 + lax.broadcasted_iota(jnp.int32, (8, 128), 1)
        down = k * 128 + lax.broadcasted_iota(jnp.int32, (128, 128), 0)
        acc[...] += jnp.dot(jnp.where(at < m, x[...], 0), jnp.where(down < m, y[...], 0))

        @pl.when(k == pl.num_programs(2) - 1)
        def _():
            o[...] = acc[...]

    x, y = data(n, m), data(m, 256)
    found = call(
        body,
        grid=(pl.cdiv(n, 8), 2, pl.cdiv(m, 128)),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((n, 256), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x, y)
    np.testing.assert_allclose(found, x @ y, rtol=1e-3, atol=1e-3)


@sizes
def test_sum_of_columns(n, m):
    def body(x, o):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        row = pl.program_id(0) * 8 + lax.broadcasted_iota(jnp.int32, (8, m), 0)
        o[...] += jnp.where(row < n, x[...], 0).sum(0, keepdims=True)

    spec = pl.BlockSpec((1, m), lambda i: (0, 0))
    out = jax.ShapeDtypeStruct((1, m), jnp.float32)
    found = call(body, grid=(pl.cdiv(n, 8),), in_specs=[rows(n, m)], out_specs=spec, out_shape=out)(data(n, m))
    np.testing.assert_allclose(found, data(n, m).sum(0, keepdims=True), rtol=1e-4, atol=1e-4)


@sizes
def test_rotate(n, m):
    def body(x, o):
        o[...] = jnp.roll(x[...], 1, 1)

    np.testing.assert_allclose(by_rows(body, data(n, m)), jnp.roll(data(n, m), 1, 1))


@sizes
def test_row_loop(n, m):
    def body(x, o):
        def step(r, total):
            total = total + x[pl.ds(r, 1), :]
            o[pl.ds(r, 1), :] = total
            return total

        lax.fori_loop(0, 8, step, jnp.zeros((1, m), jnp.float32))

    found = by_rows(body, data(n, m))
    np.testing.assert_allclose(found[:8], jnp.cumsum(data(n, m)[:8], 0), rtol=1e-4, atol=1e-4)


@sizes
def test_gather_blocks(n, m):
    def body(table, x, o):
        o[...] = x[...]

    blocks = n // 8
    table = jnp.asarray(np.arange(blocks)[::-1].copy(), jnp.int32)
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(blocks,),
        in_specs=[pl.BlockSpec((8, m), lambda i, t: (t[i], 0))],
        out_specs=pl.BlockSpec((8, m), lambda i, t: (i, 0)),
    )
    x = data(blocks * 8, m)
    found = call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32))(table, x)
    np.testing.assert_allclose(found, x.reshape(blocks, 8, m)[::-1].reshape(-1, m))


@sizes
def test_manual_copy(n, m):
    def body(x, o, buffer, semaphore):
        i = pl.program_id(0)
        copy = pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], buffer, semaphore)
        copy.start()
        copy.wait()
        o[...] = buffer[...] * 2

    x = data(n // 8 * 8, m)
    found = call(
        body,
        grid=(n // 8,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=rows(n, m),
        out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, m), jnp.float32), pltpu.SemaphoreType.DMA],
    )(x)
    np.testing.assert_allclose(found, 2 * x)


@sizes
def test_attention(n, m):
    def body(q, k, v, o, top, total, acc):
        j = pl.program_id(1)

        @pl.when(j == 0)
        def _():
            top[...] = jnp.full_like(top, -1e30)
            total[...] = jnp.zeros_like(total)
            acc[...] = jnp.zeros_like(acc)

        s = jnp.dot(q[...], k[...].T)
        here = j * 128 + lax.broadcasted_iota(jnp.int32, (8, 128), 1)
        s = jnp.where(here < m, s, -1e30)
        new = jnp.maximum(top[...], s.max(1, keepdims=True))
        p = jnp.exp(s - new)
        down = j * 128 + lax.broadcasted_iota(jnp.int32, (128, 64), 0)
        values = jnp.where(down < m, v[...], 0)
        scale = jnp.exp(top[...] - new)
        total[...] = total[...] * scale + p.sum(1, keepdims=True)
        acc[...] = acc[...] * scale + jnp.dot(p, values)
        top[...] = new

        @pl.when(j == pl.num_programs(1) - 1)
        def _():
            o[...] = acc[...] / total[...]

    q, k = data(n, 64), data(m, 64)
    found = call(
        body,
        grid=(pl.cdiv(n, 8), pl.cdiv(m, 128)),
        in_specs=[pl.BlockSpec((8, 64), lambda i, j: (i, 0))] + [pl.BlockSpec((128, 64), lambda i, j: (j, 0))] * 2,
        out_specs=pl.BlockSpec((8, 64), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((n, 64), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 1), jnp.float32)] * 2 + [pltpu.VMEM((8, 64), jnp.float32)],
    )(q, k, k)
    np.testing.assert_allclose(found, jax.nn.softmax(q @ k.T, axis=1) @ k, rtol=1e-3, atol=1e-3)
'''


def seconds(folder: Path, options: list[str]) -> tuple[float, str]:
    """CPU seconds of a run of the suite, and the last lines it prints."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(folder), *options]
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, "\n".join(done.stdout.strip().splitlines()[-12:])


def main() -> None:
    """Run the suite by turns; print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_kernels.py").write_text(SUITE)
        least: dict[str, float] = {}
        said = ""
        for _ in range(given.rounds):
            for options in ([], ["--layoutproof"]):
                spent, said = seconds(folder, options)
                key = " ".join(options)
                least[key] = min(spent, least.get(key, spent))
        print(said)
    alone, beside = least[""], least["--layoutproof"]
    each = (beside - alone) / 50
    print(f"without {alone:.1f} s, with --layoutproof {beside:.1f} s: x {beside / alone:.2f}; {each:.3f} s a call")


if __name__ == "__main__":
    main()
