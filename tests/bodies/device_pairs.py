# ruff: noqa
"""Kernels that reach other devices, each with one error, and the right twin of each.

`CASES`: name -> the question that must speak of the wrong one, and what makes the function and its argument. Written
from the algorithms that docs/pallas/tpu/distributed.md of JAX describes in words (rings, permutations, all-gather,
all-reduce, reduce-scatter, all-to-all), and from what goes wrong with them. Each is on a mesh of `DEVICES` devices of
this machine's processor, where JAX's interpreter runs it, or on an abstract one.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

F = jnp.float32
DEVICES = 4
HBM = pl.BlockSpec(memory_space=pl.ANY)
VMEM = pl.BlockSpec(memory_space=pltpu.VMEM)
DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
ROWS, COLUMNS = 8, 128


class Case(NamedTuple):
    """kind: the question that refutes the wrong one.  build: wrong -> the body's call on one device.

    want: what the right one gives on all devices, from what all are given; None where it is not looked at.
    axes: of the mesh.  seen: what of the wrong one JAX's interpreter shows, "" where it shows nothing.
    """

    kind: str
    build: Any
    want: Any = None
    axes: tuple[tuple[str, int], ...] = (("x", DEVICES),)
    seen: str = ""


CASES: dict[str, Case] = {}


def case(kind, want=None, axes=(("x", DEVICES),), seen=""):
    def deco(build):
        CASES[build.__name__] = Case(kind, build, want, axes, seen)
        return build

    return deco


def function_of(case, wrong, mesh=None, interpret=None):
    """The function of a case over a mesh, an abstract one if none is given."""
    extents, names = tuple(n for _, n in case.axes), tuple(a for a, _ in case.axes)
    mesh = mesh or abstract(extents, names)
    call = functools.partial(case.build, wrong)
    return jax.shard_map(
        lambda x: call(functools.partial(called, interpret), x),
        mesh=mesh,
        in_specs=P(names),
        out_specs=P(names),
        check_vma=False,
    )


def abstract(extents, names):
    """A mesh without devices, along which shardings are no part of a type."""
    return jax.sharding.AbstractMesh(extents, names, (jax.sharding.AxisType.Auto,) * len(names))


def rows_of(case):
    return int(np.prod([n for _, n in case.axes])) * ROWS


def called(interpret, body, out, scratch, grid=(1,), ins=HBM, outs=HBM, collective=None, **more):
    params = pltpu.CompilerParams(collective_id=collective, **more)
    kwargs = {} if interpret is None else {"interpret": interpret}
    several = isinstance(out, (tuple, list))
    shapes = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, F), out, is_leaf=lambda s: isinstance(s[0], int))
    return pl.pallas_call(
        body,
        grid=grid,
        in_specs=[ins],
        out_specs=outs if several else outs,
        out_shape=shapes,
        scratch_shapes=scratch,
        compiler_params=params,
        **kwargs,
    )


def place(axis="x"):
    me, n = lax.axis_index(axis), DEVICES
    return me, lax.rem(me + 1, n), lax.rem(me - 1 + n, n)


def meet(*devices, by=None):
    """A barrier with some devices."""
    sem = pltpu.get_barrier_semaphore()
    for device in devices:
        pl.semaphore_signal(sem, 1, device_id=(device,))
    pl.semaphore_wait(sem, len(devices) if by is None else by)


def rolled(x):
    return np.roll(x, ROWS, axis=0)


def gathered(x):
    return np.tile(x.reshape(-1, ROWS, COLUMNS), (DEVICES, 1, 1)).reshape(-1, ROWS, COLUMNS)


def summed(x):
    return np.tile(x.reshape(-1, ROWS, COLUMNS).sum(0), (DEVICES, 1))


# ------------------------------------------------------------- permutations
@case("semaphores_drained", rolled, seen="nan")
def right_permute(wrong, call, x):
    """What has come in is not waited for."""

    def body(x, o, out, come):
        me, right, left = place()
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(right,))
        c.start()
        c.wait_send()
        if not wrong:
            c.wait_recv()

    return call(body, (ROWS, COLUMNS), [DMA, DMA])(x)


@case("device_barrier", rolled, seen="")
def barrier_removed(wrong, call, x):
    """A kernel with a collective_id that meets nobody before it sends."""

    def body(x, o, out, come):
        me, right, left = place()
        if not wrong:
            meet(left, right)
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(right,))
        c.start()
        c.wait()

    more = {"allow_collective_id_without_custom_barrier": True} if wrong else {}
    return call(body, (ROWS, COLUMNS), [DMA, DMA], collective=0, **more)(x)


@case("device_barrier", rolled)
def skipped_barrier(wrong, call, x):
    """XLA's own barrier is skipped, and there is no other one."""

    def body(x, o, out, come):
        me, right, left = place()
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(right,))
        c.start()
        c.wait()

    return call(body, (ROWS, COLUMNS), [DMA, DMA], skip_device_barrier=wrong)(x)


@case("device_barrier", rolled)
def barrier_with_the_wrong_side(wrong, call, x):
    """The device that meets is the one that sends here, and not the one that is sent to."""

    def body(x, o, out, come):
        me, right, left = place()
        sem = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(sem, 1, device_id=(right if wrong else left,))
        pl.semaphore_wait(sem, 1)
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(right,))
        c.start()
        c.wait()

    return call(body, (ROWS, COLUMNS), [DMA, DMA], collective=1)(x)


@case("device_waits", rolled, seen="hang")
def barrier_of_three(wrong, call, x):
    """Three signals are waited for and two are sent."""

    def body(x, o, out, come):
        me, right, left = place()
        meet(left, right, by=3 if wrong else 2)
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(right,))
        c.start()
        c.wait()

    return call(body, (ROWS, COLUMNS), [DMA, DMA], collective=0)(x)


@case("semaphores_drained", rolled, seen="left")
def barrier_not_waited_out(wrong, call, x):
    """Two signals come and one is waited for."""

    def body(x, o, out, come):
        me, right, left = place()
        meet(left, right)
        if wrong:
            pl.semaphore_signal(pltpu.get_barrier_semaphore(), 1, device_id=(left,))
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(right,))
        c.start()
        c.wait()

    return call(body, (ROWS, COLUMNS), [DMA, DMA], collective=0)(x)


@case("device_waits", None, seen="raised")
def one_sends_and_none_is_told(wrong, call, x):
    """Device 0 sends to device 1; wrong: device 2 waits."""

    def body(x, o, out, come):
        me, right, left = place()
        own = pltpu.make_async_copy(x, o, out)
        own.start()
        own.wait()
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(1,))

        @pl.when(me == 0)
        def _():
            meet(1, by=0)
            pl.semaphore_wait(pltpu.get_barrier_semaphore(), 1)
            c.start()
            c.wait_send()

        @pl.when(me == 1)
        def _():
            meet(0)

        @pl.when(me == (2 if wrong else 1))
        def _():
            c.wait_recv()

    return call(body, (ROWS, COLUMNS), [DMA, DMA], collective=0)(x)


@case("device_races", None, seen="race")
def read_while_it_comes(wrong, call, x):
    """The buffer that the left device fills is read before what came in was waited for."""

    def body(x, o, buffer, out, come, local):
        me, right, left = place()
        c = pltpu.make_async_remote_copy(x, buffer, out, come, device_id=(right,))
        c.start()
        c.wait_send()
        if not wrong:
            c.wait_recv()
        pltpu.sync_copy(buffer, o)
        if wrong:
            c.wait_recv()

    return call(body, (ROWS, COLUMNS), [pltpu.VMEM((ROWS, COLUMNS), F), DMA, DMA, DMA])(x)


@case("dma_order", None, seen="race")
def source_overwritten(wrong, call, x):
    """The buffer that is sent is written again before it was sent."""

    def body(x, o, buffer, out, come):
        me, right, left = place()
        pltpu.sync_copy(x, buffer)
        c = pltpu.make_async_remote_copy(buffer, o, out, come, device_id=(right,))
        c.start()
        if not wrong:
            c.wait_send()
        buffer[...] = jnp.zeros((ROWS, COLUMNS), F)
        if wrong:
            c.wait_send()
        c.wait_recv()

    return call(body, (ROWS, COLUMNS), [pltpu.VMEM((ROWS, COLUMNS), F), DMA, DMA])(x)


@case("device_races", None, seen="race")
def two_send_to_one(wrong, call, x):
    """Both neighbours send to the same rows; right: each to its own."""

    def body(x, o, outs, comes):
        me, right, left = place()
        a = pltpu.make_async_remote_copy(x, o.at[0], outs.at[0], comes.at[0], device_id=(right,))
        b = pltpu.make_async_remote_copy(x, o.at[0 if wrong else 1], outs.at[1], comes.at[1], device_id=(left,))
        if wrong:
            pltpu.sync_copy(x, o.at[1])
        a.start()
        b.start()
        a.wait()
        b.wait()

    return call(body, (2, ROWS, COLUMNS), [DMA((2,)), DMA((2,))])(x)


@case("device_races", lambda x: 30 * rolled(x), seen="race")
def blocks_while_it_comes(wrong, call, x):
    """A long loop over blocks of what comes in, which are copied one by one; wrong: waited for after the loop."""

    def body(x, o, buffer, window, out, come, local):
        me, right, left = place()
        c = pltpu.make_async_remote_copy(x, buffer, out, come, device_id=(right,))
        c.start()
        c.wait_send()
        if not wrong:
            c.wait_recv()
        o[...] = jnp.zeros((ROWS, COLUMNS), F)

        @pl.loop(0, 30)
        def _(k):
            one = pltpu.make_async_copy(buffer, window.at[k % 2], local.at[k % 2])
            one.start()
            one.wait()
            o[...] += window[k % 2]

        if wrong:
            c.wait_recv()

    scratch = [pltpu.VMEM((ROWS, COLUMNS), F), pltpu.VMEM((2, ROWS, COLUMNS), F), DMA, DMA, DMA((2,))]
    return call(body, (ROWS, COLUMNS), scratch, outs=VMEM)(x)


# ------------------------------------------------------------- all-gather
def _gather(step_of, wait=True):
    def body(x, o, local, out, comes):
        step = pl.program_id(0)
        me, right, left = place()

        @pl.when(step == 0)
        def _():
            c = pltpu.make_async_copy(x, o.at[me], local)
            c.start()
            c.wait()

        slot = lax.rem(me - step + DEVICES, DEVICES)
        c = pltpu.make_async_remote_copy(o.at[slot], o.at[slot], out, comes.at[step_of(step)], device_id=(right,))
        c.start()
        c.wait_send()
        if wait:
            c.wait_recv()

        @pl.when((step == DEVICES - 2) & (not wait))
        def _():
            for _ in range(DEVICES - 1):
                c.wait_recv()

    return body


@case("device_races", gathered, seen="race")
def all_gather(wrong, call, x):
    """Slices go around a ring; wrong: all that comes in is waited for at the end only, so what is sent on may not be there."""
    f = call(
        _gather(lambda step: 0 if wrong else step, not wrong), (DEVICES, ROWS, COLUMNS),
        [DMA, DMA, DMA((DEVICES - 1,))], grid=(DEVICES - 1,),
    )  # fmt: skip
    return f(x)


@case("device_races", gathered, seen="race")
def all_gather_slots(wrong, call, x):
    """wrong: the slot of step and not of device: devices send to slots which others read."""

    def body(x, o, local, out, comes):
        step = pl.program_id(0)
        me, right, left = place()

        @pl.when(step == 0)
        def _():
            c = pltpu.make_async_copy(x, o.at[me], local)
            c.start()
            c.wait()

        slot = lax.rem(me - step + DEVICES, DEVICES)
        to = lax.rem(slot + 1, DEVICES) if wrong else slot
        c = pltpu.make_async_remote_copy(o.at[slot], o.at[to], out, comes.at[step], device_id=(right,))
        c.start()
        c.wait()

    return call(body, (DEVICES, ROWS, COLUMNS), [DMA, DMA, DMA((DEVICES - 1,))], grid=(DEVICES - 1,))(x)


@case("device_waits", gathered, seen="hang")
def all_gather_both_ways(wrong, call, x):
    """Half of the slices go each way, by logical ids; wrong: one more is waited for from the left."""

    def body(x, o, local, outs, comes):
        me, right, left = place()
        c = pltpu.make_async_copy(x, o.at[me], local)
        c.start()
        c.wait()
        logical = pl.DeviceIdType.LOGICAL
        half = ROWS // 2
        for step in range(DEVICES - 1):
            there, back = lax.rem(me - step + DEVICES, DEVICES), lax.rem(me + step, DEVICES)
            a = pltpu.make_async_remote_copy(
                o.at[there, pl.ds(0, half)],
                o.at[there, pl.ds(0, half)],
                outs.at[0],
                comes.at[0, step],
                device_id=right,
                device_id_type=logical,
            )
            b = pltpu.make_async_remote_copy(
                o.at[back, pl.ds(half, half)],
                o.at[back, pl.ds(half, half)],
                outs.at[1],
                comes.at[1, step],
                device_id=left,
                device_id_type=logical,
            )
            a.start()
            b.start()
            a.wait()
            b.wait()
        if wrong:
            a.wait_recv()

    return call(body, (DEVICES, ROWS, COLUMNS), [DMA, DMA((2,)), DMA((2, DEVICES - 1))])(x)


@case("device_races", gathered, seen="")
def all_gather_to_all(wrong, call, x):
    """Every device sends to every other one; wrong: a barrier that two early ones pass for a third."""

    def body(x, o, local, out, come):
        me, right, left = place()
        c = pltpu.make_async_copy(x, o.at[0 if wrong else me], local)
        for k in range(1, DEVICES):
            pl.semaphore_signal(pltpu.get_barrier_semaphore(), 1, device_id=(lax.rem(me + k, DEVICES),))
        pl.semaphore_wait(pltpu.get_barrier_semaphore(), DEVICES - 1)
        c.start()
        copies = [
            pltpu.make_async_remote_copy(x, o.at[me], out, come, device_id=(lax.rem(me + k, DEVICES),))
            for k in range(1, DEVICES)
        ]
        for copy in copies:
            copy.start()
        c.wait()
        for copy in copies:
            copy.wait()

    return call(body, (DEVICES, ROWS, COLUMNS), [DMA, DMA, DMA], collective=3)(x)


# ------------------------------------------------------------- all-reduce
def _reduce(wrong, capacity=True, take_last=True):
    def body(x, o, buffers, acc, out, come, local, room):
        step = pl.program_id(0)
        working = lax.rem(step, 2)
        receiving = 1 - working
        me, right, left = place()

        @pl.when(step == 0)
        def _():
            meet(left, right)
            o[...] = jnp.zeros((ROWS, COLUMNS), F)
            c = pltpu.make_async_remote_copy(x, buffers.at[working], out, come, device_id=(right,))
            c.start()
            c.wait()

        if capacity:
            # the left device may send into the other buffer
            pl.semaphore_signal(room, 1, device_id=(left,))
        mine = pltpu.make_async_copy(buffers.at[working], acc, local)
        mine.start()
        if capacity:
            pl.semaphore_wait(room, 1)
        c = pltpu.make_async_remote_copy(buffers.at[working], buffers.at[receiving], out, come, device_id=(right,))
        c.start()
        mine.wait()
        o[...] += acc[...]
        c.wait()

    return body


def _reduced(call, body, x):
    out = call(
        body, [(ROWS, COLUMNS), (2, ROWS, COLUMNS)],
        [pltpu.VMEM((ROWS, COLUMNS), F), DMA, DMA, DMA, REGULAR], grid=(DEVICES,), ins=VMEM, outs=[VMEM, HBM],
        collective=0,
    )(x)  # fmt: skip
    return out[0]


@case("device_races", summed, seen="")
def all_reduce(wrong, call, x):
    """Sums around a ring with two buffers; wrong: nobody says that a buffer is free again."""
    return _reduced(call, _reduce(wrong, capacity=not wrong), x)


@case("semaphores_drained", summed, seen="left")
def all_reduce_left_over(wrong, call, x):
    """wrong: a signal more in the last step."""
    right = _reduce(False)

    def body(*refs):
        right(*refs)

        @pl.when(pl.program_id(0) == DEVICES - 1)
        def _():
            me, to, left = place()
            if wrong:
                pl.semaphore_signal(refs[-1], 1, device_id=(left,))

    return _reduced(call, body, x)


# ------------------------------------------------------------- reduce-scatter
def _scatter(wrong):
    """Both halves of each block go around a ring, one each way, in turn."""
    half = ROWS // 2
    top, bottom = pl.ds(0, half), pl.ds(half, half)

    def body(x, o, buffers, acc, local, come_l, out_l, come_r, out_r, room_l, room_r):
        step, phase = pl.program_id(0), pl.program_id(1)
        first = (step == 0) & (phase == 0)
        last = step == DEVICES - 1
        working = lax.rem(step, 2)
        receiving = 1 - working
        me, right, left = place()
        mine_l, mine_r = lax.rem(me + step + 1, DEVICES), lax.rem(me - step - 1 + 2 * DEVICES, DEVICES)
        part = pl.ds(phase * half, half)
        send = pltpu.make_async_remote_copy
        begin_l = send(x.at[me, top], buffers.at[working, top], out_l, come_l, device_id=(left,))
        begin_r = send(x.at[me, bottom], buffers.at[working, bottom], out_r, come_r, device_id=(right,))
        on_l = send(buffers.at[working, top], buffers.at[receiving, top], out_l, come_l, device_id=(left,))
        on_r = send(buffers.at[receiving, bottom], buffers.at[working, bottom], out_r, come_r, device_id=(right,))

        def tell(device, sem):
            pl.semaphore_signal(sem, 1, device_id=(device,))

        @pl.when(first)
        def _():
            meet(left, right)
            o[...] = jnp.zeros((ROWS, COLUMNS), F)
            begin_l.start()
            begin_l.wait()
            begin_r.start()
            if not wrong:
                tell(left, room_r)
                tell(right, room_l)

        @pl.when(~first & (phase == 0))
        def _():
            pl.semaphore_wait(room_r, 1)
            on_r.start()

        @pl.when(~first & (phase == 1))
        def _():
            pl.semaphore_wait(room_l, 1)
            on_l.start()

        c = pltpu.make_async_copy(buffers.at[working, part], acc, local)
        c.start()
        c.wait()

        @pl.when(~last & (phase == 0))
        def _():
            acc[...] += x[mine_l, top]

        @pl.when(~last & (phase == 1))
        def _():
            acc[...] += x[mine_r, bottom]

        c = pltpu.make_async_copy(acc, buffers.at[working, part], local)
        c.start()
        c.wait()

        @pl.when(first)
        def _():
            begin_r.wait()

        @pl.when(~first & (phase == 0))
        def _():
            on_r.wait()
            tell(left, room_r)

        @pl.when(~first & (phase == 1))
        def _():
            on_l.wait()
            tell(right, room_l)

        @pl.when(last & (phase == 0))
        def _():
            o[top] = acc[...]
            pl.semaphore_wait(room_r, 1)

        @pl.when(last & (phase == 1))
        def _():
            o[bottom] = acc[...]
            pl.semaphore_wait(room_l, 1)

    return body


@case("device_waits", None, seen="hang")
def reduce_scatter(wrong, call, x):
    """A reduce-scatter both ways; wrong: the first signals of a free buffer are not sent."""
    out = call(
        _scatter(wrong), [(ROWS, COLUMNS), (2, ROWS, COLUMNS)],
        [pltpu.VMEM((ROWS // 2, COLUMNS), F), DMA, DMA, DMA, DMA, DMA, REGULAR, REGULAR], grid=(DEVICES, 2), ins=VMEM,
        outs=[VMEM, HBM], collective=0,
    )(jnp.broadcast_to(x, (DEVICES, ROWS, COLUMNS)))  # fmt: skip
    return out[0]


# ------------------------------------------------------------- all-to-all
def _exchanged(x):
    parts = x.reshape(DEVICES, DEVICES, ROWS // DEVICES, COLUMNS)
    return parts.swapaxes(0, 1).reshape(-1, COLUMNS)


@case("outputs_stored", _exchanged, seen="nan")
def all_to_all(wrong, call, x):
    """Part k goes to device k; wrong: one's own part is nowhere."""
    part = ROWS // DEVICES

    def body(x, o, local, out, comes):
        me, right, left = place()
        own = pl.ds(me * part, part)
        copies = []
        for k in range(1, DEVICES):
            to = lax.rem(me + k, DEVICES)
            copies.append(
                pltpu.make_async_remote_copy(
                    x.at[pl.ds(to * part, part)], o.at[own], out, comes.at[k - 1], device_id={"x": to}
                )
            )
        for copy in copies:
            copy.start()
        if not wrong:
            pltpu.sync_copy(x.at[own], o.at[own])
        for copy in copies:
            copy.wait()

    return call(body, (ROWS, COLUMNS), [DMA, DMA, DMA((DEVICES - 1,))])(x)


# ------------------------------------------------------------- two axes
@case("device_waits", None, axes=(("x", 2), ("y", 2)), seen="hang")
def along_one_axis(wrong, call, x):
    """On a mesh of two axes each device sends along y; wrong: those of x = 1 wait for one more."""

    def body(x, o, out, come):
        row, column = lax.axis_index("x"), lax.axis_index("y")
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(row, 1 - column))
        c.start()
        c.wait()
        if wrong:

            @pl.when(row == 1)
            def _():
                c.wait_recv()

    return call(body, (ROWS, COLUMNS), [DMA, DMA])(x)


@case("device_races", None, axes=(("x", 2), ("y", 2)), seen="race")
def transposed_mesh(wrong, call, x):
    """Devices exchange places; wrong: the order of the mesh's axes is mixed up, so that two send to one."""

    def body(x, o, out, come):
        row, column = lax.axis_index("x"), lax.axis_index("y")
        to = row * 2 if wrong else column * 2 + row
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=to, device_id_type=pl.DeviceIdType.LOGICAL)
        c.start()
        c.wait_send()

        @pl.when((column == 0) | (not wrong))
        def _():
            c.wait_recv()

        @pl.when((column == 0) & wrong)
        def _():
            c.wait_recv()

    return call(body, (ROWS, COLUMNS), [DMA, DMA])(x)
