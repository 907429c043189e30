"""Kernels of Mosaic GPU that speak to other GPUs, each right and with one error, as of `PAIRS`. No device is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from tests.pallas.mosaic_gpu_pairs import F, Pair

SIGNALS = plgpu.SemaphoreType.REGULAR


def over(devices: int, call: Any, inputs: int = 1, axes: tuple[str, ...] = ("x",)) -> Any:
    """A call on each device of a mesh of one axis; or of two axes, the second one of 2 devices."""
    extents = (devices,) if len(axes) == 1 else (devices // 2, 2)
    specs = (PartitionSpec(axes),) * inputs
    mesh = AbstractMesh(extents, axes, axis_types=(AxisType.Auto,) * len(axes))
    return jax.shard_map(call, mesh=mesh, in_specs=specs, out_specs=PartitionSpec(axes), check_vma=False)


def kernel(
    body: Callable[..., None], shapes: Any, scratch: Any = (), grid: int = 1, threads: int | None = None
) -> Callable[..., Any]:
    return plgpu.kernel(
        body,
        out_type=shapes,
        grid=(grid,),
        grid_names=("i",),
        num_threads=threads,
        thread_name=None if threads is None else "wg",
        scratch_types=list(scratch),
    )


def rows_of(x: Any, many: int = 1) -> Any:
    """A result of so many times the rows of an array."""
    return jax.ShapeDtypeStruct((x.shape[0] * many, *x.shape[1:]), x.dtype)


def gathered(
    waits: int | None = 2, apart: int = 64, first: int = 0, early: bool = False, every: bool = True, grid: int = 1
) -> Any:
    """An all-gather of 64 rows of each of 2 devices: each device stores its rows on all of them."""

    def body(x: Any, o: Any, done: Any) -> None:
        size = 64 // grid
        part = lax.axis_index("i") * size
        if early:
            plgpu.semaphore_signal_multicast(done, collective_axes="x")
        to = o.at[pl.ds(lax.axis_index("x") * apart + first + part, size)]
        plgpu.multimem_store(x[pl.ds(part, size)], to, "x")
        if every and not early:
            plgpu.semaphore_signal_multicast(done, collective_axes="x")
        if not every:
            pl.semaphore_signal(done)
        if waits is not None:
            pl.semaphore_wait(done, waits, decrement=False)

    return over(2, lambda x: kernel(body, rows_of(x, 2), [SIGNALS], grid)(x))


def reduced(waits: int | None = 2, first: int = 0) -> Any:
    """A reduce-scatter: each of 2 devices sums its half of the 128 rows of both."""

    def body(x: Any, o: Any, done: Any) -> None:
        own = x.at[pl.ds(lax.axis_index("x") * 64 + first, 64)]
        o[...] = plgpu.layout_cast(
            plgpu.multimem_load_reduce(own, collective_axes="x", reduction_op="add"),
            plgpu.Layout.WG_STRIDED((64, 128), vec_size=4),
        )
        plgpu.semaphore_signal_multicast(done, collective_axes="x")
        if waits is not None:
            pl.semaphore_wait(done, waits, decrement=False)

    shape = jax.ShapeDtypeStruct((64, 128), F)
    return over(2, lambda x: kernel(body, shape, [SIGNALS])(x))


def shifted(to: str = "right", signal: bool = True, wait: int = 1, axes: tuple[str, ...] = ("x",)) -> Any:
    """Each device of a ring stores its rows on the one to its right, and tells it."""

    def body(x: Any, o: Any, here: Any) -> None:
        me, many = lax.axis_index(axes[0]), lax.axis_size(axes[0])
        right = lax.rem(me + 1, jnp.int32(many))
        told = {
            "right": right,
            "left": lax.rem(me + many - 1, jnp.int32(many)),
            "first": jnp.int32(0),
            "itself": me,
        }[to]
        said = (lambda one: one) if len(axes) == 1 else (lambda one: {axes[0]: one})
        plgpu.remote_ref(o, said(right))[...] = x[...]
        if signal:
            pl.semaphore_signal(here, device_id=said(told))
        if wait:
            pl.semaphore_wait(here, wait)

    many = 3 if len(axes) == 1 else 4
    return over(many, lambda x: kernel(body, rows_of(x), [SIGNALS])(x), axes=axes)


def handed_on(
    waits: bool = True, all_of_it: bool = True, before: bool = False, commit: bool = True, drain: bool = True
) -> Any:
    """Each device copies its rows into a buffer of the one to its right, which adds 1 to them when it is told."""

    def body(x: Any, o: Any, buffer: Any, smem: Any, barrier: Any, here: Any) -> None:
        me, many = lax.axis_index("x"), lax.axis_size("x")
        right = lax.rem(me + 1, jnp.int32(many))
        smem[...] = x[...] * 2
        if commit:
            plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(smem, plgpu.remote_ref(buffer, right))
        if before:
            pl.semaphore_signal(here, device_id=right)
        if drain:
            plgpu.wait_smem_to_gmem(0, wait_read_only=not all_of_it)
        if not before:
            pl.semaphore_signal(here, device_id=right)
        if waits:
            pl.semaphore_wait(here)
        plgpu.copy_gmem_to_smem(buffer, smem, barrier)
        plgpu.barrier_wait(barrier)
        o[...] = smem[...] + 1
        if not waits:
            pl.semaphore_wait(here)

    scratch = [plgpu.SMEM((64, 128), F), plgpu.Barrier(), SIGNALS]
    return over(3, lambda x: kernel(body, [rows_of(x), rows_of(x)], scratch)(x)[0])


def fetched(loads: bool = True, waits: bool = True, every: bool = False) -> Any:
    """Each device reads the rows of the one to its right, and tells it when it has; or sends its own to all of them."""

    def body(x: Any, o: Any, smem: Any, barrier: Any, done: Any) -> None:
        me, many = lax.axis_index("x"), lax.axis_size("x")
        right = lax.rem(me + 1, jnp.int32(many))
        if every:
            plgpu.copy_gmem_to_smem(x, smem, barrier)
            plgpu.barrier_wait(barrier)
            plgpu.copy_smem_to_gmem(smem, plgpu.multicast_ref(o, "x").at[pl.ds(64 * me, 64)])
            plgpu.wait_smem_to_gmem(0)
            plgpu.semaphore_signal_multicast(done, collective_axes="x")
        elif loads:
            o[...] = plgpu.remote_ref(x, right)[...] + 1
        else:
            plgpu.copy_gmem_to_smem(plgpu.remote_ref(x, right), smem, barrier)
            plgpu.barrier_wait(barrier)
            o[...] = smem[...]
        if not every:
            pl.semaphore_signal(done, device_id=right)
        if waits:
            pl.semaphore_wait(done, many if every else 1)

    scratch = [plgpu.SMEM((64, 128), F), plgpu.Barrier(), SIGNALS]
    return over(3, lambda x: kernel(body, rows_of(x, 3 if every else 1), scratch)(x))


def twice(free: bool = True) -> Any:
    """Two rounds through one buffer: who has read it tells its left neighbour that it is free."""

    def body(x: Any, o: Any, buffer: Any, filled: Any, emptied: Any) -> None:
        me, many = lax.axis_index("x"), lax.axis_size("x")
        right, left = lax.rem(me + 1, jnp.int32(many)), lax.rem(me + many - 1, jnp.int32(many))
        for part in range(2):
            if part and free:
                pl.semaphore_wait(emptied)
            plgpu.remote_ref(buffer, right)[...] = x[pl.ds(32 * part, 32)]
            pl.semaphore_signal(filled, device_id=right)
            pl.semaphore_wait(filled)
            o[pl.ds(32 * part, 32)] = buffer[...]
            if free and not part:
                pl.semaphore_signal(emptied, device_id=left)

    half = jax.ShapeDtypeStruct((32, 128), F)
    return over(3, lambda x: kernel(body, [rows_of(x), half], [SIGNALS, SIGNALS])(x)[0])


def by_steps(each: bool = True, count: int = 2) -> Any:
    """A ring of 3 devices, each with 2 programs, that hands rows on twice; a device counts its arrivals together.

    each: whether it counts those of each step by themselves. Else a program that is ahead counts for one that is not.
    """

    def body(x: Any, o: Any) -> None:
        here = pl.get_global(SIGNALS((2,)))
        me, many, part = lax.axis_index("x"), lax.axis_size("x"), lax.axis_index("i") * 32
        right = lax.rem(me + 1, jnp.int32(many))
        rows = pl.ds(part, 32)
        plgpu.remote_ref(o, right).at[0, rows][...] = x[rows]
        pl.semaphore_signal(here.at[0], device_id=right)
        pl.semaphore_wait(here.at[0], count, decrement=False)
        # the other program's rows
        others = pl.ds(32 - part, 32)
        plgpu.remote_ref(o, right).at[1, others][...] = o[0, others]
        pl.semaphore_signal(here.at[1 if each else 0], device_id=right)
        pl.semaphore_wait(here.at[1 if each else 0], count if each else 2 * count, decrement=False)

    return over(3, lambda x: kernel(body, jax.ShapeDtypeStruct((2, *x.shape), F), grid=2)(x))


def by_threads(seen: bool = True, takers: int = 1) -> Any:
    """One thread waits for the rows of the other device, and lets another one store what came."""

    def body(x: Any, o: Any, buffer: Any, ready: Any, here: Any) -> None:
        other = 1 - lax.axis_index("x")

        @pl.when(lax.axis_index("wg") < takers)
        def _receives() -> None:
            @pl.when(lax.axis_index("wg") == 0)
            def _sends() -> None:
                plgpu.remote_ref(buffer, other)[...] = x[...]
                pl.semaphore_signal(here, device_id=other)

            pl.semaphore_wait(here)

            @pl.when(lax.axis_index("wg") == 0)
            def _tells() -> None:
                plgpu.barrier_arrive(ready)

        @pl.when(lax.axis_index("wg") == 1)
        def _stores() -> None:
            if seen:
                plgpu.barrier_wait(ready)
            o[...] = buffer[...] + 1

    scratch = [plgpu.Barrier(), SIGNALS]
    return over(2, lambda x: kernel(body, [rows_of(x), rows_of(x)], scratch, threads=2)(x)[0])


_TWO = (jax.ShapeDtypeStruct((128, 128), F),)
_THREE = (jax.ShapeDtypeStruct((192, 128), F),)
_FOUR = (jax.ShapeDtypeStruct((256, 128), F),)
_HALVES = (jax.ShapeDtypeStruct((256, 128), F),)


REMOTE_PAIRS = {
    "gather: no wait at the end": Pair(
        gathered, _TWO, {"waits": None}, "device_races", "nothing holds a device until the other one's rows are there"
    ),
    "gather: a wait for one signal of two": Pair(
        gathered, _TWO, {"waits": 1}, "device_races", "its own signal may come first"
    ),
    "gather: a wait for more signals than come": Pair(
        gathered, _TWO, {"waits": 3}, "device_waits", "2 devices signal once each, and 3 are waited for"
    ),
    "gather: a signal before the store": Pair(
        gathered, _TWO, {"early": True}, "device_races", "both signals are sent before anything is stored"
    ),
    "gather: a signal for the own device alone": Pair(
        gathered, _TWO, {"every": False}, "device_waits", "1 signal comes, and 2 are waited for"
    ),
    "gather: rows too far": Pair(
        gathered, _TWO, {"first": 32}, "body_in_bounds", "device 1 stores rows 96:160 of 128"
    ),
    "gather: both to the same rows": Pair(
        gathered, _TWO, {"apart": 0}, "device_races", "devices 0 and 1 store rows 0:64 on each"
    ),
    "gather: rows that nobody stores": Pair(
        gathered, _TWO, {"apart": 32}, "outputs_stored", "rows 0:64 and 32:96 of 128"
    ),
    "gather by two programs: a wait for one signal": Pair(
        lambda **options: gathered(grid=2, **options), _TWO, {"waits": 1}, "device_races",
        "each program waits for itself alone",
    ),
    "reduce: no wait at the end": Pair(
        reduced, _HALVES, {"waits": None}, "device_races", "a device may end while the other one reads its rows"
    ),
    "reduce: a wait for one signal of two": Pair(
        reduced, _HALVES, {"waits": 1}, "device_races", "its own signal is enough; the other one still reads"
    ),
    "reduce: rows too far": Pair(
        reduced, _HALVES, {"first": 32}, "body_in_bounds", "device 1 reads rows 96:160 of 128"
    ),
    "shift: a signal to the wrong device": Pair(
        shifted, _THREE, {"to": "left"}, "device_races", "the one to the left is told, the one to the right is written"
    ),
    "shift: a signal to itself": Pair(
        shifted, _THREE, {"to": "itself"}, "device_races", "none waits for who writes its rows"
    ),
    "shift: all signals to one device": Pair(
        shifted, _THREE, {"to": "first"}, "device_waits", "devices 1 and 2 get no signal"
    ),
    "shift: neither signal nor wait": Pair(
        shifted, _THREE, {"signal": False, "wait": 0}, "device_races", "nothing holds a device until its rows are there"
    ),
    "shift: two signals for one": Pair(
        shifted, _THREE, {"wait": 2}, "device_waits", "1 signal comes, and 2 are waited for"
    ),
    "shift on two axes: a signal to itself": Pair(
        lambda **options: shifted(axes=("x", "y"), **options), _FOUR, {"to": "itself"}, "device_races",
        "none waits for who writes its rows",
    ),
    "hand on: read before the wait": Pair(
        handed_on, _THREE, {"waits": False}, "device_races", "first the read, then the wait"
    ),
    "hand on: reads alone awaited": Pair(
        handed_on, _THREE, {"all_of_it": False}, "device_races", "the copy may still write when the signal is sent"
    ),
    "hand on: no wait for the copy": Pair(
        handed_on, _THREE, {"drain": False}, "device_races", "the copy may still write when the signal is sent"
    ),
    "hand on: a signal before the copy has ended": Pair(
        handed_on, _THREE, {"before": True}, "device_races", "the signal comes before the wait for the copy"
    ),
    "hand on: no commit before the copy": Pair(
        handed_on, _THREE, {"commit": False}, "commit_smem", "64 x 128 stored, and then sent"
    ),
    "fetch: none waits at the end": Pair(
        fetched, _THREE, {"waits": False}, "device_races", "a device may end while its rows are read"
    ),
    "fetch by a copy: none waits at the end": Pair(
        lambda **options: fetched(loads=False, **options), _THREE, {"waits": False}, "device_races",
        "a device may end while its rows are copied",
    ),
    "send to all: none waits at the end": Pair(
        lambda **options: fetched(every=True, **options), _THREE, {"waits": False}, "device_races",
        "a device may end before all rows are there",
    ),
    "twice: a buffer filled too soon": Pair(
        twice, _THREE, {"free": False}, "device_races", "round 1 is stored while round 0 may still be read"
    ),
    "steps: arrivals of two steps counted together": Pair(
        by_steps, _THREE, {"each": False}, "device_races",
        "one program arrives twice, and 2 arrivals are waited for, where the other one has not arrived",
    ),
    "steps: a wait for one program of two": Pair(
        by_steps, _THREE, {"count": 1}, "device_races", "both programs' rows are read when one has arrived"
    ),
    "threads: what came is read by another thread": Pair(
        by_threads, _TWO, {"seen": False}, "device_races", "its reader has no wait"
    ),
}  # fmt: skip
"""Each by what its wrong one does."""
