# ruff: noqa
"""Kernels of SparseCores, each with one error, and the right twin of each.

`CASES`: name -> the question that must speak of the wrong one, and what makes the function and its arguments. Written
from what docs/pallas/tpu/sparsecore.md of JAX describes in words, and from what goes wrong with it: gathers and
scatters by lists of places, sums into memory that subcores share, lookups with tails, rings of buffers, barriers.
Each is for v6e, on 2 cores of 4 subcores, with vectors of 8 lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

TARGET = "v6e"
F, I = jnp.float32, jnp.int32
CORES, SUBCORES, LANES = 2, 4, 8
WORKERS = CORES * SUBCORES
DMA = pltpu.SemaphoreType.DMA


class Case(NamedTuple):
    """kind: the question that refutes the wrong one.  build: wrong -> the kernel.  args: makes its arguments.

    want: what the right one gives, from its arguments.  assume: what is known of its lists of places.
    answer: of the wrong one: "refuted", "refuted if" (for some of the lists only), or "unknown" where nothing is shown.
    seen: what runs of the wrong one on this machine's processor show: see `run_subcores.py`.
    """

    kind: str
    build: Any
    args: Any
    want: Any
    assume: tuple[str, ...] = ()
    seen: str = "differs"
    answer: str = "refuted"


CASES: dict[str, Case] = {}


def case(kind, args, want, assume=(), seen="differs", answer="refuted"):
    def deco(build):
        CASES[build.__name__] = Case(kind, build, args, want, tuple(assume), seen, answer)
        return build

    return deco


def made(body, shape, scratch, dtype=F):
    mesh = plsc.VectorSubcoreMesh(
        core_axis_name="core", subcore_axis_name="subcore", num_cores=CORES, num_subcores=SUBCORES
    )
    # libtpu 0.0.52 takes rows of 16 numbers by a list, and masks, with these alone
    params = pltpu.CompilerParams(use_tc_tiling_on_sc=False, needs_layout_passes=False)
    out = jax.ShapeDtypeStruct(shape, dtype)
    return pl.kernel(body, out_type=out, mesh=mesh, scratch_types=scratch, compiler_params=params)


def here():
    """Core, subcore, and the number of both together."""
    core, subcore = jax.lax.axis_index("core"), jax.lax.axis_index("subcore")
    return core, subcore, core * SUBCORES + subcore


def rows(n=64, columns=16, seed=0):
    return np.random.default_rng(seed).normal(size=(n, columns)).astype(np.float32)


def places(n=64, below=64, seed=1):
    found = np.random.default_rng(seed).integers(0, below, size=n).astype(np.int32)
    found[-1] = below - 1
    return found


LISTED = ("0 <= args[1] < 64",)


# gathers


@case("body_in_bounds", lambda: (rows(), places()), lambda x, i: x[i], LISTED, "outside")
def lookup(wrong):
    """An embedding lookup; the last subcore reads its list from one place further on."""

    def body(x, i, o, listed, found):
        _, _, w = here()
        pltpu.sync_copy(i.at[pl.ds(w * 8 + wrong, 8)], listed)
        pltpu.sync_copy(x.at[listed], found)
        pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

    return made(body, (64, 16), [pltpu.VMEM((8,), I), pltpu.VMEM((8, 16), F)])


@case(
    "body_in_bounds", lambda: (rows(), places()), lambda x, i: x[np.minimum(i + 1, 63)], LISTED, "outside", "refuted if"
)
def next_rows(wrong):
    """The row after each one that is listed; there is none after the last."""

    def body(x, i, o, listed, found):
        _, _, w = here()
        pltpu.sync_copy(i.at[pl.ds(w * 8, 8)], listed)
        after = listed[...] + 1
        listed[...] = after if wrong else jnp.minimum(after, 63)
        pltpu.sync_copy(x.at[listed], found)
        pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

    return made(body, (64, 16), [pltpu.VMEM((8,), I), pltpu.VMEM((8, 16), F)])


@case("body_in_bounds", lambda: (rows(60), places(60, 60)), lambda x, i: x[i], ("0 <= args[1] < 60",), "outside")
def tail(wrong):
    """60 rows for 8 subcores: the last one has half of what the others have."""

    def body(x, i, o, listed, found):
        _, _, w = here()

        def part(size):
            pltpu.sync_copy(i.at[pl.ds(w * 8, size)], listed.at[pl.ds(0, size)])
            pltpu.sync_copy(x.at[listed.at[pl.ds(0, size)]], found.at[pl.ds(0, size)])
            pltpu.sync_copy(found.at[pl.ds(0, size)], o.at[pl.ds(w * 8, size)])

        if wrong:
            part(8)
        else:
            pl.when(w < WORKERS - 1)(lambda: part(8))
            pl.when(w == WORKERS - 1)(lambda: part(4))

    return made(body, (60, 16), [pltpu.VMEM((8,), I), pltpu.VMEM((8, 16), F)])


@case("body_in_bounds", lambda: (rows(64, 1)[:, 0], places()), lambda x, i: x[i], LISTED, "outside", "refuted if")
def vector_gather(wrong):
    """`load_gather` out of a table that all lies in vector memory; the wrong one leaves its last entry out."""

    def body(x, i, o, table, listed, found):
        _, _, w = here()
        kept = 63 if wrong else 64
        pltpu.sync_copy(x.at[pl.ds(0, kept)], table)
        pltpu.sync_copy(i.at[pl.ds(w * 8, 8)], listed)
        found[...] = plsc.load_gather(table, [listed[...]])
        pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

    return made(body, (64,), [pltpu.VMEM((63 if wrong else 64,), F), pltpu.VMEM((8,), I), pltpu.VMEM((8,), F)])


@case("body_in_bounds", lambda: (rows(8, 1)[:, 0],), lambda x: np.repeat(np.append(x[1:], 0), 8), (), "outside")
def shifted(wrong):
    """The entry after each one: a mask leaves out the last, which has none."""

    def body(x, o, table, found):
        _, _, w = here()
        pltpu.sync_copy(x, table)
        at = jnp.full((8,), w + 1, I)
        there = plsc.load_gather(table, [at], mask=None if wrong else at < 8)
        found[...] = jnp.where(at < 8, there, 0.0)
        pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

    return made(body, (64,), [pltpu.VMEM((8,), F), pltpu.VMEM((8,), F)])


# scatters


@case(
    "body_races",
    lambda: (rows(),),
    lambda x: x.reshape(8, 8, 16).transpose(1, 0, 2).reshape(64, 16),
    (),
    "nan",
)
def transposed_rows(wrong):
    """Row k of subcore w goes to row k * 8 + w; the wrong one counts the subcores of one core only."""

    def body(x, o, listed, found):
        core, subcore, w = here()
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], found)
        listed[...] = jax.lax.iota(I, 8) * 8 + (subcore if wrong else w)
        pltpu.sync_copy(found, o.at[listed])

    return made(body, (64, 16), [pltpu.VMEM((8,), I), pltpu.VMEM((8, 16), F)])


@case("body_races", lambda: (rows(),), lambda x: x, (), "nan")
def every_core_its_own(wrong):
    """Each subcore copies rows; the wrong one forgets its core."""

    def body(x, o, found):
        core, subcore, w = here()
        at = subcore if wrong else w
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], found)
        pltpu.sync_copy(found, o.at[pl.ds(at * 8, 8)])

    return made(body, (64, 16), [pltpu.VMEM((8, 16), F)])


@case("outputs_stored", lambda: (rows(),), lambda x: x, (), "nan")
def all_turns(wrong):
    """Two turns of four rows each; the wrong one takes one."""

    def body(x, o, found):
        _, _, w = here()

        @pl.loop(0, 1 if wrong else 2)
        def _(turn):
            at = w * 8 + turn * 4
            pltpu.sync_copy(x.at[pl.ds(at, 4)], found)
            pltpu.sync_copy(found, o.at[pl.ds(at, 4)])

    return made(body, (64, 16), [pltpu.VMEM((4, 16), F)])


# memory that the subcores of a core share

SHARED = [pltpu.VMEM((8, 16), F), pltpu.VMEM((8,), I), pltpu.VMEM_SHARED((16, 16), F)]


def sums(x, seg, zeros):
    of_segment = (seg[:, None] == np.arange(16)).astype(np.float32)
    return np.stack([zeros + of_segment[half].T @ x[half] for half in (slice(0, 32), slice(32, 64))])


def segments():
    return rows(), places(64, 16), np.zeros((16, 16), np.float32)


def segment_sum(zero, between, after):
    """Sums of segments for each core. between, after: whether there is a barrier before the sums, and after them."""

    def body(x, seg, zeros, o, found, listed, shared):
        core, subcore, w = here()
        zero(subcore, zeros, shared)
        pltpu.sync_copy(seg.at[pl.ds(w * 8, 8)], listed)
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], found)
        between(subcore)
        pltpu.sync_copy(found, shared.at[listed], add=True)
        after(subcore)
        pltpu.sync_copy(shared.at[pl.ds(subcore * 4, 4)], o.at[core, pl.ds(subcore * 4, 4)])

    return made(body, (2, 16, 16), SHARED)


def own_zeros(subcore, zeros, shared):
    pltpu.sync_copy(zeros.at[pl.ds(subcore * 4, 4)], shared.at[pl.ds(subcore * 4, 4)])


def zeros_of_first(subcore, zeros, shared):
    pl.when(subcore == 0)(lambda: pltpu.sync_copy(zeros, shared))


def barrier(subcore):
    plsc.subcore_barrier()


def nothing(*given):
    pass


SEGMENTS = ("0 <= args[1] < 16",)


@case("initialised", segments, sums, SEGMENTS, "nan")
def zeroed(wrong):
    """The sums begin at 0; the wrong one adds to whatever was there."""
    return segment_sum(nothing if wrong else zeros_of_first, barrier, barrier)


@case("subcore_barrier", segments, sums, SEGMENTS, "hang")
def all_meet(wrong):
    """All subcores meet; in the wrong one half of them do not come to the first barrier."""
    half = lambda subcore: pl.when(subcore < 2)(plsc.subcore_barrier)
    return segment_sum(own_zeros, half if wrong else barrier, barrier)


@case("subcore_barrier", segments, sums, SEGMENTS, "hang")
def as_many_turns(wrong):
    """Every subcore meets the others twice; in the wrong one as often as its number says."""

    def meet(subcore):
        @pl.loop(0, subcore + 1 if wrong else 2)
        def _(turn):
            plsc.subcore_barrier()

    return segment_sum(own_zeros, meet, barrier)


@case("body_races", lambda: (rows(),), lambda x: np.roll(x.reshape(2, 4, 8, 16), -1, 1).reshape(64, 16), (), "nan")
def neighbours(wrong):
    """Each subcore takes the rows of the next one of its core, after all have put theirs; the wrong one does not wait."""

    def body(x, o, shared):
        core, subcore, w = here()
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], shared.at[pl.ds(subcore * 8, 8)])
        if not wrong:
            plsc.subcore_barrier()
        after = jax.lax.rem(subcore + 1, SUBCORES)
        pltpu.sync_copy(shared.at[pl.ds(after * 8, 8)], o.at[pl.ds(w * 8, 8)])

    return made(body, (64, 16), [pltpu.VMEM_SHARED((32, 16), F)])


@case("body_races", lambda: (rows(),), lambda x: x.reshape(2, 4, 8, 16).sum(1), (), "differs")
def one_sum(wrong):
    """All subcores of a core add into the same rows; the wrong one loads, adds and stores."""

    def body(x, o, found, total, listed, shared):
        core, subcore, w = here()
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], found)

        @pl.when(subcore == 0)
        def _():
            pltpu.sync_copy(found, shared)

        plsc.subcore_barrier()

        @pl.when(subcore > 0)
        def _():
            if wrong:
                pltpu.sync_copy(shared, total)

                @pl.loop(0, 8)
                def _(row):
                    for half in range(2):
                        at = pl.ds(half * 8, 8)
                        total[row, at] = total[row, at] + found[row, at]

                pltpu.sync_copy(total, shared)
            else:
                listed[...] = jax.lax.iota(I, 8)
                pltpu.sync_copy(found, shared.at[listed], add=True)

        plsc.subcore_barrier()

        @pl.when(subcore == 0)
        def _():
            pltpu.sync_copy(shared, o.at[core])

    scratch = [pltpu.VMEM((8, 16), F), pltpu.VMEM((8, 16), F), pltpu.VMEM((8,), I), pltpu.VMEM_SHARED((8, 16), F)]
    return made(body, (2, 8, 16), scratch)


@case(
    "body_races", lambda: (rows(),), lambda x: np.roll(x.reshape(2, 2, 4, 4, 16), -1, 2).reshape(64, 16), (), "differs"
)
def in_turns(wrong):
    """As `neighbours`, in two turns with two barriers each; the wrong one stores the next rows before all have read."""

    def body(x, o, shared):
        core, subcore, w = here()

        @pl.loop(0, 2)
        def _(turn):
            at = core * 32 + turn * 16 + subcore * 4
            pltpu.sync_copy(x.at[pl.ds(at, 4)], shared.at[pl.ds(subcore * 4, 4)])
            plsc.subcore_barrier()
            after = jax.lax.rem(subcore + 1, SUBCORES)
            pltpu.sync_copy(shared.at[pl.ds(after * 4, 4)], o.at[pl.ds(at, 4)])
            if not wrong:
                plsc.subcore_barrier()

    return made(body, (64, 16), [pltpu.VMEM_SHARED((16, 16), F)])


# subcores that signal each other


def signalled(signals, waits):
    """As `neighbours`, where each subcore tells the one before it that its rows are there."""

    def body(x, o, shared, there):
        core, subcore, w = here()
        pltpu.sync_copy(x.at[pl.ds(w * 8, 8)], shared.at[pl.ds(subcore * 8, 8)])
        before = jax.lax.rem(subcore + SUBCORES - 1, SUBCORES)

        @pl.when(signals(subcore))
        def _():
            pl.semaphore_signal(there, 1, device_id={"core": core, "subcore": before})

        if waits:
            pl.semaphore_wait(there, 1)
        after = jax.lax.rem(subcore + 1, SUBCORES)
        pltpu.sync_copy(shared.at[pl.ds(after * 8, 8)], o.at[pl.ds(w * 8, 8)])

    return made(body, (64, 16), [pltpu.VMEM_SHARED((32, 16), F), pltpu.SemaphoreType.REGULAR])


def next_ones(x):
    return np.roll(x.reshape(2, 4, 8, 16), -1, 1).reshape(64, 16)


@case("body_races", lambda: (rows(),), next_ones, (), "nan")
def told(wrong):
    """Each subcore tells the one before it that its rows are there; in the wrong one that one does not wait."""
    return signalled(lambda subcore: subcore >= 0, not wrong)


@case("device_waits", lambda: (rows(),), next_ones, (), "hang")
def told_by_all(wrong):
    """The same; in the wrong one the first subcore signals no other."""
    return signalled(lambda subcore: subcore > 0 if wrong else subcore >= 0, True)


@case("body_races", lambda: (rows(),), next_ones, (), "differs")
def free_again(wrong):
    """Eight rows in two turns through four places: a second signal says that a place is free; the wrong one has none."""

    def body(x, o, shared, there, free):
        core, subcore, w = here()
        before, after = (jax.lax.rem(subcore + k, SUBCORES) for k in (SUBCORES - 1, 1))
        for turn in range(2):
            if turn and not wrong:
                pl.semaphore_wait(free, 1)
            pltpu.sync_copy(x.at[pl.ds(w * 8 + turn * 4, 4)], shared.at[pl.ds(subcore * 4, 4)])
            pl.semaphore_signal(there, 1, device_id={"core": core, "subcore": before})
            pl.semaphore_wait(there, 1)
            pltpu.sync_copy(shared.at[pl.ds(after * 4, 4)], o.at[pl.ds(w * 8 + turn * 4, 4)])
            if not turn and not wrong:
                pl.semaphore_signal(free, 1, device_id={"core": core, "subcore": after})

    semaphore = pltpu.SemaphoreType.REGULAR
    return made(body, (64, 16), [pltpu.VMEM_SHARED((16, 16), F), semaphore, semaphore])


# loops without order


@case("body_races", lambda: (rows(8, 64),), lambda x: x + np.pad(x, ((0, 0), (8, 0)))[:, :64], (), "differs")
def from_the_last(wrong):
    """What each vector gets of the one before it; the wrong one adds it where the next iteration takes it from."""

    def body(x, o, row, after):
        _, _, w = here()
        pltpu.sync_copy(x.at[w], row)
        out = row if wrong else after
        after[pl.ds(0, 8)] = row[pl.ds(0, 8)]

        @plsc.parallel_loop(8, 64, step=8)
        def _(k):
            out[pl.ds(k, 8)] = row[pl.ds(k, 8)] + row[pl.ds(k - 8, 8)]

        pltpu.sync_copy(out, o.at[w])

    return made(body, (8, 64), [pltpu.VMEM((64,), F), pltpu.VMEM((64,), F)])


@case("body_races", lambda: (rows(8, 64),), lambda x: x * 2, (), "differs")
def by_vectors(wrong):
    """Vectors of 8, one after the other; the wrong one moves on by 4 and doubles some twice."""

    def body(x, o, row):
        _, _, w = here()
        pltpu.sync_copy(x.at[w], row)

        @plsc.parallel_loop(0, 57, step=4 if wrong else 8)
        def _(k):
            row[pl.ds(k, 8)] = row[pl.ds(k, 8)] * 2

        pltpu.sync_copy(row, o.at[w])

    return made(body, (8, 64), [pltpu.VMEM((64,), F)])


@case("body_races", lambda: (rows(8, 64),), lambda x: x.reshape(8, 8, 8).sum(1), (), "differs")
def histogram(wrong):
    """Eight sums of what lies eight apart: added in one go, or loaded, added and stored."""

    def body(x, o, row, total):
        _, _, w = here()
        pltpu.sync_copy(x.at[w], row)
        total[...] = jnp.zeros((8,), F)
        at = jax.lax.iota(I, 8)

        @plsc.parallel_loop(0, 64, step=8)
        def _(k):
            if wrong:
                plsc.store_scatter(total, [at], total[...] + row[pl.ds(k, 8)])
            else:
                plsc.addupdate_scatter(total, [at], row[pl.ds(k, 8)])

        pltpu.sync_copy(total, o.at[w])

    return made(body, (8, 8), [pltpu.VMEM((64,), F), pltpu.VMEM((8,), F)])


# copies


@case("dma_order", lambda: (rows(), places()), lambda x, i: x[i], LISTED, "nan")
def ring(wrong):
    """Two buffers in turn: the rows of the next list are on their way; the wrong one waits too late."""

    def body(x, i, o, listed, found, arrived):
        _, _, w = here()
        for turn in range(2):
            pltpu.sync_copy(i.at[pl.ds(w * 8 + turn * 4, 4)], listed.at[turn])

        def copy(turn):
            return pltpu.make_async_copy(x.at[listed.at[turn]], found.at[turn], arrived.at[turn])

        copy(0).start()
        copy(1).start()
        for turn in range(2):
            if not wrong:
                copy(turn).wait()
            pltpu.sync_copy(found.at[turn], o.at[pl.ds(w * 8 + turn * 4, 4)])
            if wrong:
                copy(turn).wait()

    return made(body, (64, 16), [pltpu.VMEM((2, 4), I), pltpu.VMEM((2, 4, 16), F), DMA((2,))])


@case("dma_order", lambda: (rows(), places()), lambda x, i: x[i], LISTED, "differs")
def list_in_use(wrong):
    """A list is read while the copy runs: the wrong one writes the next one over it before it has waited."""

    def body(x, i, o, listed, found, arrived):
        _, _, w = here()
        pltpu.sync_copy(i.at[pl.ds(w * 8, 8)], listed)
        copy = pltpu.make_async_copy(x.at[listed], found, arrived)
        copy.start()
        if not wrong:
            copy.wait()
        listed[...] = jnp.zeros((8,), I)
        if wrong:
            copy.wait()
        pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

    return made(body, (64, 16), [pltpu.VMEM((8,), I), pltpu.VMEM((8, 16), F), DMA])


@case("dma_order", lambda: (rows(), places()), lambda x, i: x[i], LISTED, "hang")
def as_many_waits(wrong):
    """Four copies, and a wait for each; the wrong one waits once more than it has started."""

    def body(x, i, o, listed, found, arrived):
        _, _, w = here()
        pltpu.sync_copy(i.at[pl.ds(w * 8, 8)], listed)
        copies = [
            pltpu.make_async_copy(x.at[listed.at[pl.ds(k * 2, 2)]], found.at[pl.ds(k * 2, 2)], arrived)
            for k in range(4)
        ]
        for copy in copies:
            copy.start()
        for copy in [*copies, *copies[:wrong]]:
            copy.wait()
        pltpu.sync_copy(found, o.at[pl.ds(w * 8, 8)])

    return made(body, (64, 16), [pltpu.VMEM((8,), I), pltpu.VMEM((8, 16), F), DMA])


# what was never written


@case("initialised", lambda: (rows(8, 64),), lambda x: x.reshape(8, 8, 8).sum(1), (), "nan")
def begins_at_zero(wrong):
    """A sum of vectors; the wrong one begins with what was there."""

    def body(x, o, row, total):
        _, _, w = here()
        pltpu.sync_copy(x.at[w], row)
        if not wrong:
            total[...] = jnp.zeros((8,), F)

        @pl.loop(0, 64, step=8)
        def _(k):
            total[...] = total[...] + row[pl.ds(k, 8)]

        pltpu.sync_copy(total, o.at[w])

    return made(body, (8, 8), [pltpu.VMEM((64,), F), pltpu.VMEM((8,), F)])


@case(
    "undefined_values",
    lambda: (rows(8, 8),),
    lambda x: np.where(np.arange(8) < 4, x, 0),
    (),
    "nan",
    "unknown",
)
def left_out(wrong):
    """What a mask leaves out is undefined; the wrong one stores it."""

    def body(x, o, row, out):
        _, _, w = here()
        pltpu.sync_copy(x.at[w], row)
        mask = jax.lax.iota(I, 8) < 4
        found = plsc.load_expanded(row.at[pl.ds(0, 8)], mask=mask)
        out[...] = found if wrong else jnp.where(mask, found, 0.0)
        pltpu.sync_copy(out, o.at[w])

    return made(body, (8, 8), [pltpu.VMEM((8,), F), pltpu.VMEM((8,), F)])


# scalar subcores


@case("body_races", lambda: (rows(),), lambda x: x, (), "nan")
def scalar_subcores(wrong):
    """The scalar subcore of each core moves half of the rows; the wrong one moves the same half."""

    def body(x, o, arrived):
        core = jax.lax.axis_index("core")
        at = 0 if wrong else core * 32
        pltpu.async_copy(x.at[pl.ds(at, 32)], o.at[pl.ds(at, 32)], arrived).wait()

    mesh = plsc.ScalarSubcoreMesh(axis_name="core", num_cores=CORES)
    return pl.kernel(body, out_type=jax.ShapeDtypeStruct((64, 16), F), mesh=mesh, scratch_types=[DMA])


def function_of(case, wrong):
    """The function of a case: the kernel is made where it is traced, for its mesh is of the target."""
    return lambda *args: case.build(wrong)(*args)
