"""Copies and semaphores: kernels as people write them, their mutants, and random ones against a simulation.

The simulation knows nothing of bodies: it runs the same steps that a random kernel is written from.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import layoutproof as lp
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.said import Said

pytestmark = pytest.mark.slow

HBM = pl.BlockSpec(memory_space=pl.ANY)


def _asked(
    body: Callable[..., None],
    programs: int = 4,
    slots: int = 2,
    semantics: str = "arbitrary",
    tables: Sequence[Any] = (),
    regular: bool = False,
) -> Finding:
    """What is said of a kernel with an array of 8 rows a program in HBM, `slots` buffers of 8 rows, and as many
    semaphores. The body gets tables, the array, the output, buffers, semaphores."""
    shape = jax.ShapeDtypeStruct((8 * programs, 128), jnp.float32)
    kind = pltpu.SemaphoreType.REGULAR if regular else pltpu.SemaphoreType.DMA
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=len(tables),
        grid=(programs,),
        in_specs=[HBM],
        out_specs=HBM,
        scratch_shapes=[pltpu.VMEM((slots, 8, 128), jnp.float32), kind((slots,))],
    )
    params = pltpu.CompilerParams(dimension_semantics=(semantics,))
    fn = pl.pallas_call(body, grid_spec=spec, out_shape=shape, compiler_params=params)
    call, *_ = kernels_of(fn, (*tables, shape))
    assert isinstance(call, Kernel)
    found = [f for f in judge(call, names=["dma_order"]) if f.severity == "error"]
    return min(found, key=lambda f: f.verdict)


def _fetch(x: Any, buf: Any, sem: Any, row: Any, slot: Any, on: Any = None) -> Any:
    return pltpu.make_async_copy(x.at[pl.ds(row * 8, 8)], buf.at[slot], sem.at[slot if on is None else on])


def _send(o: Any, buf: Any, sem: Any, row: Any, slot: Any) -> Any:
    return pltpu.make_async_copy(buf.at[slot], o.at[pl.ds(row * 8, 8)], sem.at[slot])


# kernels as people write them, each with what can be left out or done wrong


def _pipeline(mutant: str = "") -> Callable[..., None]:
    """All in one program: a loop that fetches the next block while this one is used."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            _fetch(x, buf, sem, 0, 0).start()

            def turn(i: Any, _: Any) -> Any:
                slot = i % 2
                following = slot if mutant == "same slot" else 1 - slot

                @pl.when(i + 1 < (5 if mutant == "guard" else 4))
                def _() -> None:
                    _fetch(x, buf, sem, jnp.minimum(i + 1, 3), following).start()

                if mutant != "no wait":
                    _fetch(x, buf, sem, i, slot).wait()
                if mutant == "two waits":
                    _fetch(x, buf, sem, i, slot).wait()
                buf[slot] = buf[slot] + 1
                return 0

            jax.lax.fori_loop(0, 4, turn, 0)

    return body


def _across(mutant: str = "") -> Callable[..., None]:
    """Over programs: each fetches for the next one, and sends its own block while the next is computed."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        i, n = pl.program_id(0), pl.num_programs(0)
        slot = i % 2

        @pl.when(i == 0)
        def _() -> None:
            _fetch(x, buf, sem, 0, 0).start()

        @pl.when((i + 1 < n) if mutant != "guard" else (i + 2 < n))
        def _() -> None:
            _fetch(x, buf, sem, i + 1, slot if mutant == "same slot" else 1 - slot).start()

        if mutant == "early":
            buf[slot] = buf[slot] + 1
        _fetch(x, buf, sem, i, slot, on=1 - slot if mutant == "other semaphore" else None).wait()
        buf[slot] = buf[slot] + 1
        send = _send(o, buf, sem, i, slot)
        send.start()
        if mutant != "not sent":
            send.wait()

    return body


def _many_at_once(mutant: str = "") -> Callable[..., None]:
    """Eight copies of a row each, one wait for the bytes of all."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        i = pl.program_id(0)
        for r in range(7 if mutant == "one less" else 8):
            pltpu.make_async_copy(x.at[pl.ds(i * 8 + r, 1)], buf.at[0, pl.ds(r, 1)], sem.at[0]).start()
        if mutant == "in between":
            buf[0, 3:4] = buf[0, 3:4] + 1
        rows = 4 if mutant == "half" else 8
        pltpu.make_async_copy(buf.at[0, pl.ds(0, rows)], buf.at[0, pl.ds(0, rows)], sem.at[0]).wait()
        buf[0] = buf[0] + 1

    return body


def _conditional(mutant: str = "") -> Callable[..., None]:
    """Started and waited for where a table says so."""

    def body(table: Any, x: Any, o: Any, buf: Any, sem: Any) -> None:
        i = pl.program_id(0)

        @pl.when(table[i] > 0)
        def _() -> None:
            _fetch(x, buf, sem, i, 0).start()

        @pl.when(table[i] > (-1 if mutant else 0))
        def _() -> None:
            _fetch(x, buf, sem, i, 0).wait()

        buf[0] = buf[0] + 1

    return body


def _carried(mutant: str = "") -> Callable[..., None]:
    """In one loop: the slot is handed on and changes in some iterations only, as no formula of the counter says."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        def turn(i: Any, carry: Any) -> Any:
            slot, count = carry
            _fetch(x, buf, sem, i, slot).start()
            changes = count * count % 3 == 1
            following = jnp.where(changes, 1 - slot, slot)
            if mutant != "no wait":
                _fetch(x, buf, sem, i, following if mutant == "next slot" else slot).wait()
            buf[slot] = buf[slot] + 1
            return following, jnp.where(changes, count + 2, count + 1)

        jax.lax.fori_loop(0, 4, turn, (jnp.int32(0), jnp.int32(1)))

    return body


def _piped(mutant: str = "") -> Callable[..., None]:
    """A pipeline in the body, its copies written out by JAX."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        def double(a: Any, b: Any) -> None:
            b[...] = a[...] * 2

        block = pl.BlockSpec((8, 128), lambda i: (i, 0))

        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            if mutant:
                _fetch(x, buf, sem, 0, 0).start()
            pltpu.emit_pipeline(double, grid=(4,), in_specs=[block], out_specs=[block])(x, o)

    return body


MUTANTS = {
    _carried: ["next slot", "no wait"],
    _piped: ["left over"],
    _pipeline: ["same slot", "guard", "no wait", "two waits"],
    _across: ["guard", "same slot", "early", "other semaphore", "not sent"],
    _many_at_once: ["one less", "in between", "half"],
}


@pytest.mark.parametrize("make", MUTANTS)
@pytest.mark.parametrize("programs", [1, 2, 4, 9])
def test_what_people_write_is_proved(make: Callable[..., Any], programs: int) -> None:
    # the loops of some have four blocks
    programs = max(programs, 4) if make in (_pipeline, _carried, _piped) else programs
    assert _asked(make(), programs).verdict is Verdict.PROVED


REPAIRED = {
    ("_carried", "no wait"),
    ("_piped", "left over"),
    ("_pipeline", "same slot"),
    ("_across", "same slot"),
    ("_across", "early"),
    ("_across", "other semaphore"),
    ("_many_at_once", "in between"),
}
"""Of which a wait in another place, tried, leaves nothing wrong."""


@pytest.mark.parametrize(("make", "mutant"), [(make, m) for make, mutants in MUTANTS.items() for m in mutants])
def test_what_is_left_out_is_refuted(make: Callable[..., Any], mutant: str) -> None:
    found = _asked(make(mutant))
    assert found.verdict is Verdict.REFUTED
    assert found.line > 0
    if (make.__name__, mutant) in REPAIRED:
        assert found.fix.startswith(("let the wait at line ", "wait for what line "))
        assert found.hint == ""
    else:
        assert (found.fix, found.hint[:8]) == ("", "look at ")
    assert len((found.counterexample or {})["program"]) == 1


def test_the_first_program_and_iteration_are_named() -> None:
    found = _asked(_pipeline("same slot"))
    assert found.counterexample == {"program": (0,), "iteration": (0,), "element": (0, 0, 0)}
    found = _asked(_across("guard"), programs=6)
    assert found.counterexample == {"program": (5,)}
    assert Said("bodies.too_few_bytes", size=4096, unit="bytes", semaphore="scratch[1][1]", there=0).of(found.reason)


def test_a_condition_that_a_table_decides_is_the_same_for_start_and_wait() -> None:
    table = jnp.zeros((4,), jnp.int32)
    assert _asked(_conditional(), tables=[table]).verdict is Verdict.PROVED
    found = _asked(_conditional("more"), tables=[table])
    assert found.verdict is Verdict.UNKNOWN
    assert "prefetch0[0]" in found.reason


def test_programs_that_leave_nothing_behind_may_be_any_number() -> None:
    assert _asked(_many_at_once(), programs=10**6).verdict is Verdict.PROVED
    found = _asked(_across("early"), programs=10**6)
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample is not None
    assert found.counterexample["program"] == (0,)


def test_what_one_parallel_program_leaves_to_the_next_is_not_known() -> None:
    found = _asked(_across(), semantics="parallel")
    assert found.verdict is Verdict.UNKNOWN
    assert Said("bodies.parallel_use", name="scratch[1]").of(found.reason)


def test_a_slot_that_data_choose_is_named() -> None:
    def body(table: Any, x: Any, o: Any, buf: Any, sem: Any) -> None:
        i = pl.program_id(0)
        _fetch(x, buf, sem, i, table[i]).start()
        _fetch(x, buf, sem, i, 0).wait()

    found = _asked(body, tables=[jnp.zeros((4,), jnp.int32)])
    assert found.verdict is Verdict.UNKNOWN
    assert "prefetch0[0]" in found.reason


def test_a_place_that_data_choose_is_named() -> None:
    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        row = buf[0, 0, 0].astype(jnp.int32)
        first, second = (pltpu.make_async_copy(buf.at[k], o.at[pl.ds(r, 8)], sem.at[k]) for k, r in ((0, row), (1, 0)))
        first.start()
        second.start()
        first.wait()
        second.wait()

    found = _asked(body)
    assert found.verdict is Verdict.UNKNOWN
    assert "perhaps copies into elements of outputs" in found.reason
    assert "; not known: " in found.reason


def test_a_loop_of_as_many_iterations_as_data_say_is_proved_where_each_waits_for_its_own() -> None:
    def made(wrong: bool) -> Callable[..., None]:
        def body(table: Any, x: Any, o: Any, buf: Any, sem: Any) -> None:
            def turn(i: Any, _: Any) -> Any:
                _fetch(x, buf, sem, 0, 0).start()
                if not wrong:
                    _fetch(x, buf, sem, 0, 0).wait()
                return 0

            jax.lax.fori_loop(0, table[0], turn, 0)

        return body

    table = jnp.zeros((4,), jnp.int32)
    assert _asked(made(False), tables=[table]).verdict is Verdict.PROVED
    assert _asked(made(True), tables=[table]).verdict is Verdict.UNKNOWN


def test_memory_of_a_scope_is_waited_for_within_it() -> None:
    def made(wrong: bool) -> Callable[..., None]:
        def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
            def scope(own: Any) -> None:
                copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], buf.at[0], own)
                copy.start()
                if not wrong:
                    copy.wait()

            pl.run_scoped(scope, pltpu.SemaphoreType.DMA)

        return body

    assert _asked(made(False)).verdict is Verdict.PROVED
    found = _asked(made(True))
    assert found.verdict is Verdict.REFUTED
    assert "when its memory is freed" in found.reason


def _scoped(mutant: str = "", into: bool = True) -> Callable[..., None]:
    """Memory of a scope is the target or the source of a copy; after the scope, somebody waits for its bytes."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        def scope(own: Any) -> None:
            own[...] = jnp.zeros((8, 128))
            ends = (x.at[pl.ds(0, 8)], own) if into else (own, o.at[pl.ds(0, 8)])
            copy = pltpu.make_async_copy(*ends, sem.at[0])
            copy.start()
            if not mutant:
                copy.wait()

        pl.run_scoped(scope, pltpu.VMEM((8, 128), jnp.float32))
        if mutant:
            pltpu.make_async_copy(buf.at[0], buf.at[0], sem.at[0]).wait()

    return body


@pytest.mark.parametrize("into", [True, False])
def test_a_copy_that_outlives_the_scope_of_its_memory_is_refuted(into: bool) -> None:
    # all bytes are waited for when the program ends: too late, as the memory may be somebody else's by then
    assert _asked(_scoped(into=into)).verdict is Verdict.PROVED
    found = _asked(_scoped("waits later", into))
    assert found.verdict is Verdict.REFUTED
    assert Said("bodies.freed_in_flight", what="a copy", when="when its memory is freed").of(found.reason)
    assert found.counterexample == {"program": (0,)}
    assert Said("bodies.look_at_scope", semaphore="scratch[1][0]").of(found.hint)


def test_a_scope_in_a_loop_ends_in_every_iteration() -> None:
    def made(mutant: str) -> Callable[..., None]:
        def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
            def turn(i: Any, carry: Any) -> Any:
                _scoped(mutant)(x, o, buf, sem)
                return carry

            jax.lax.fori_loop(0, 3, turn, 0)

        return body

    assert _asked(made("")).verdict is Verdict.PROVED
    found = _asked(made("waits later"))
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample == {"program": (0,), "iteration": (0,)}


def test_a_scope_under_a_condition_that_a_table_decides_ends_there() -> None:
    def made(mutant: str) -> Callable[..., None]:
        def body(table: Any, x: Any, o: Any, buf: Any, sem: Any) -> None:
            @pl.when(table[pl.program_id(0)] > 0)
            def _() -> None:
                _scoped(mutant)(x, o, buf, sem)

        return body

    table = jnp.zeros((4,), jnp.int32)
    assert _asked(made(""), tables=[table]).verdict is Verdict.PROVED
    found = _asked(made("waits later"), tables=[table])
    assert found.verdict is Verdict.UNKNOWN
    assert "when its memory is freed" in found.reason


@pytest.mark.parametrize(("wait", "verdict"), [(2, Verdict.PROVED), (1, Verdict.REFUTED)])
def test_a_semaphore_of_a_scope_counts_0_when_the_scope_ends(wait: int, verdict: Verdict) -> None:
    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        def scope(own: Any) -> None:
            pl.semaphore_signal(own, 2)
            pl.semaphore_wait(own, wait)

        pl.run_scoped(scope, pltpu.SemaphoreType.REGULAR)

    found = _asked(body)
    assert found.verdict is verdict
    if verdict is Verdict.REFUTED:
        assert Said("bodies.counts_signals", semaphore="scoped1", signals=1, when="when its memory is freed").of(
            found.reason
        )


@pytest.mark.parametrize(("signal", "wait", "verdict"), [(2, 2, "proved"), (2, 1, "refuted"), (1, 2, "refuted")])
def test_signals_are_counted(signal: int, wait: int, verdict: str) -> None:
    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        pl.semaphore_signal(sem.at[0], signal)
        pl.semaphore_wait(sem.at[0], wait)

    assert _asked(body, regular=True).verdict.value == verdict


# random kernels


@dataclass(frozen=True)
class Step:
    """what: start, wait, send, sent, use.  slot: 0, 1, "i", "next".  when: always, first, not first, more, last."""

    what: str
    slot: Any
    on: Any
    when: str
    rows: int


def _slot(word: Any, i: Any) -> Any:
    return {"i": i % 2, "next": (i + 1) % 2}.get(word, word)


def _holds(when: str, i: Any, n: int) -> Any:
    return {"always": True, "first": i == 0, "not first": i > 0, "more": i + 1 < n, "last": i == n - 1}[when]


def _written(steps: Sequence[Step], n: int) -> Callable[..., None]:
    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        i = pl.program_id(0)

        def do(step: Step) -> None:
            slot, on = _slot(step.slot, i), _slot(step.on, i)
            here = buf.at[slot, pl.ds(0, step.rows)]
            if step.what == "use":
                buf[slot] = jnp.zeros((8, 128))
            elif step.what in ("start", "wait"):
                copy = pltpu.make_async_copy(x.at[pl.ds(0, step.rows)], here, sem.at[on])
                copy.start() if step.what == "start" else copy.wait()
            else:
                copy = pltpu.make_async_copy(here, o.at[pl.ds(i * 8, step.rows)], sem.at[on])
                copy.start() if step.what == "send" else copy.wait()

        for step in steps:
            if step.when == "always":
                do(step)
            else:
                pl.when(_holds(step.when, i, n))(lambda step=step: do(step))

    return body


def _simulated(steps: Sequence[Step], n: int) -> bool:
    """Whether nothing goes wrong: rows in flight are counted, and what is in flight is touched by nobody."""
    flying: dict[int, list[tuple[str, int, int, int]]] = {0: [], 1: []}
    waited = {0: 0, 1: 0}
    for i in range(n):
        for step in steps:
            if not _holds(step.when, i, n):
                continue
            slot, on = _slot(step.slot, i), _slot(step.on, i)
            if step.what in ("wait", "sent"):
                waited[on] += step.rows
                started = sum(rows for _, _, rows, _ in flying[on])
                if waited[on] > started:
                    return False
                if waited[on] == started:
                    flying[on], waited[on] = [], 0
                continue
            for what, other, _, sent in [f for each in flying.values() for f in each]:
                # a copy in writes the buffer, a copy out reads it; use writes it; copies out of one program meet in it
                both_read = what == "send" and step.what == "send"
                if other == slot and not both_read:
                    return False
                if both_read and sent == i:
                    return False
            if step.what != "use":
                flying[on].append((step.what, slot, step.rows, i))
    return not any(flying.values())


def _random(seed: int) -> tuple[list[Step], int]:
    pick = random.Random(seed)
    n = pick.choice([1, 2, 3, 5])
    steps: list[Step] = []
    if pick.random() < 0.5:
        # a right one, in which something is changed
        steps = [
            Step("start", 0, 0, "first", 8),
            Step("start", "next", "next", "more", 8),
            Step("wait", "i", "i", "always", 8),
            Step("use", "i", "i", "always", 8),
            Step("send", "i", "i", "always", 8),
            Step("sent", "i", "i", "always", 8),
        ]
    else:
        for _ in range(pick.randint(1, 3)):
            slot, when, rows = pick.choice([0, 1, "i", "next"]), pick.choice(["always", "first", "more"]), 8
            steps += [Step("start", slot, slot, when, rows), Step("wait", slot, slot, when, rows)]
            steps.append(Step("use", slot, slot, "always", 8))
    for _ in range(pick.choice([0, 0, 1, 1, 2])):
        k = pick.randrange(len(steps))
        old = steps[k]
        change = pick.choice(["drop", "swap", "slot", "on", "when", "rows", "twice"])
        if change == "drop" and len(steps) > 1:
            del steps[k]
        elif change == "swap" and k + 1 < len(steps):
            steps[k], steps[k + 1] = steps[k + 1], steps[k]
        elif change == "slot":
            steps[k] = Step(old.what, pick.choice([0, 1, "i", "next"]), old.on, old.when, old.rows)
        elif change == "on":
            steps[k] = Step(old.what, old.slot, pick.choice([0, 1, "i", "next"]), old.when, old.rows)
        elif change == "when":
            when = pick.choice(["always", "first", "not first", "more", "last"])
            steps[k] = Step(old.what, old.slot, old.on, when, old.rows)
        elif change == "rows":
            steps[k] = Step(old.what, old.slot, old.on, old.when, 4)
        elif change == "twice":
            steps.insert(k, old)
    return steps, n


@pytest.mark.parametrize("seed", range(60))
def test_random_kernels_go_wrong_exactly_where_a_simulation_does(seed: int) -> None:
    steps, n = _random(seed)
    found = _asked(_written(steps, n), n)
    assert found.verdict is (Verdict.PROVED if _simulated(steps, n) else Verdict.REFUTED), (steps, n, found.reason)


def test_random_kernels_are_of_both_kinds() -> None:
    right = sum(_simulated(*_random(seed)) for seed in range(60))
    assert 10 <= right <= 50


def _while(runs: Callable[[Any], Any], following: Callable[[Any], Any], mutant: str = "") -> Callable[..., None]:
    """A loop that a condition ends: each iteration fetches the next block while this one is used."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        def step(i: Any) -> Any:
            @pl.when(runs(i + 1) if mutant != "one more" else runs(i))
            def _() -> None:
                _fetch(x, buf, sem, i + 1, jax.lax.rem(i + 1, 2)).start()

            if mutant != "no wait":
                _fetch(x, buf, sem, i, jax.lax.rem(i, 2)).wait()
            pltpu.sync_copy(buf.at[jax.lax.rem(i, 2)], o.at[pl.ds(i * 8, 8)])
            return following(i)

        _fetch(x, buf, sem, 0, 0).start()
        jax.lax.while_loop(runs, step, jnp.int32(0))

    return body


@pytest.mark.parametrize(
    ("mutant", "verdict"), [("", Verdict.PROVED), ("one more", Verdict.REFUTED), ("no wait", Verdict.REFUTED)]
)
@pytest.mark.parametrize("runs", [lambda i: i < 4, lambda i: i != 4, lambda i: i * i < 10])
def test_a_while_loop_whose_condition_is_known_is_walked(runs: Any, mutant: str, verdict: Verdict) -> None:
    assert _asked(_while(runs, lambda i: i + 1, mutant), programs=5).verdict is verdict


@pytest.mark.parametrize(
    ("mutant", "verdict"), [("", Verdict.PROVED), ("one more", Verdict.REFUTED), ("no wait", Verdict.REFUTED)]
)
def test_numbers_that_a_while_loop_hands_on_are_followed(mutant: str, verdict: Verdict) -> None:
    """Blocks 0, 1 and 3: no formula of the turn says which block is fetched next, and when there is none."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        def step(carry: Any) -> Any:
            turn, block = carry
            here, following = jax.lax.rem(turn, 2), 2 * block + 1

            @pl.when(following < 4 if mutant != "one more" else block < 4)
            def _() -> None:
                _fetch(x, buf, sem, following, 1 - here).start()

            if mutant != "no wait":
                _fetch(x, buf, sem, block, here).wait()
            pltpu.sync_copy(buf.at[here], o.at[pl.ds(block * 8, 8)])
            return turn + 1, following

        _fetch(x, buf, sem, 0, 0).start()
        jax.lax.while_loop(lambda carry: carry[1] < 4, step, (jnp.int32(0), jnp.int32(0)))

    assert _asked(body, programs=8).verdict is verdict


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(("left", "verdict"), [(3, Verdict.PROVED), (7, Verdict.REFUTED)])
def test_each_of_two_loops_leaves_its_own_number(left: int, verdict: Verdict, counted: bool) -> None:
    """The first makes three turns and leaves 7, the second makes two and leaves 3."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        def step(number: Any) -> Any:
            buf[0] = jnp.zeros((8, 128))
            return 2 * number + 1

        def after(turns: int) -> Any:
            if counted:
                return jax.lax.fori_loop(0, turns, lambda _, number: step(number), jnp.int32(0))
            return jax.lax.while_loop(lambda number: number < 2 ** (turns - 1), step, jnp.int32(0))

        first, second = after(3), after(2)
        copy = _fetch(x, buf, sem, 0, 1)
        pl.when((pl.program_id(0) == 0) & (first == 7))(copy.start)
        pl.when((pl.program_id(0) == 0) & (second == left))(copy.wait)

    assert _asked(body).verdict is verdict


def test_a_while_loop_that_data_end_is_not_known() -> None:
    def body(t: Any, x: Any, o: Any, buf: Any, sem: Any) -> None:
        _while(lambda i: i < t[0], lambda i: i + 1)(x, o, buf, sem)

    table = jax.ShapeDtypeStruct((4,), jnp.int32)
    assert _asked(body, tables=[table]).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("waited", "low", "verdict"),
    [
        ((0, 1), 0, Verdict.PROVED),
        ((1, 0), 0, Verdict.PROVED),
        ((0, 0), 0, Verdict.UNKNOWN),
        ((0, 1), -1, Verdict.UNKNOWN),
    ],
)
def test_bytes_of_sizes_that_a_table_holds_are_waited_for_one_after_the_other(
    waited: tuple[int, int], low: int, verdict: Verdict
) -> None:
    """None of the waits needs more than was started, as long as no size is negative."""

    def body(sizes: Any, x: Any, o: Any, semaphore: Any) -> None:
        def copy(k: int) -> Any:
            rows = pl.ds(8 * k, sizes[k])
            return pltpu.make_async_copy(x.at[rows], o.at[rows], semaphore)

        for k in range(2):
            copy(k).start()
        for k in waited:
            copy(k).wait()

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(1,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )
    rows = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    function = pl.pallas_call(body, grid_spec=spec, out_shape=rows)
    arguments = (jax.ShapeDtypeStruct((2,), jnp.int32), rows)
    calls = kernels_of(function, arguments, assume=(f"{low} <= prefetch0 <= 8",))
    found = [f.verdict for call in calls if isinstance(call, Kernel) for f in judge(call, names=["dma_order"])]
    assert found
    assert min(found) is verdict


@pytest.mark.parametrize(("rows", "verdict"), [((0, 8), Verdict.PROVED), ((8, 0), Verdict.UNKNOWN)])
def test_a_copy_of_no_rows_meets_nothing_wherever_it_goes(rows: tuple[int, int], verdict: Verdict) -> None:
    """Only the first of two programs has another copy in flight, of rows that the table may name."""

    def body(table: Any, x: Any, o: Any, buf: Any, sem: Any) -> None:
        i = pl.program_id(0)
        count = jnp.where(i == 0, rows[0], rows[1])
        fixed = pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(0, 8)], sem.at[0])
        moved = pltpu.make_async_copy(x.at[pl.ds(8, count)], o.at[pl.ds(table[0], count)], sem.at[1])
        pl.when(i == 0)(fixed.start)
        moved.start()
        moved.wait()
        pl.when(i == 0)(fixed.wait)

    table = jax.ShapeDtypeStruct((4,), jnp.int32)
    assert _asked(body, programs=2, tables=[table]).verdict is verdict


@pytest.mark.parametrize(("keeps", "proved"), [(True, True), (False, False)])
def test_a_number_that_another_program_loads_is_another_number(keeps: bool, proved: bool) -> None:
    """Each program starts on the semaphore that its numbers name, kept in scalar memory for the one that waits."""

    def body(x: Any, numbers: Any, o: Any, here: Any, kept: Any, buf: Any, sem: Any) -> None:
        i = pl.program_id(0)

        def wait() -> None:
            _fetch(x, buf, sem, 0, kept[0]).wait()

        if keeps:
            pl.when(i > 0)(wait)
        pltpu.sync_copy(numbers.at[i], here)
        kept[0] = here[0]
        if not keeps:
            # the number is this program's, the copy is the one before's
            pl.when(i > 0)(wait)
        pl.when(i < 3)(lambda: _fetch(x, buf, sem, 0, kept[0]).start())

    rows = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    call = pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[HBM, HBM],
        out_specs=HBM,
        out_shape=rows,
        scratch_shapes=[
            pltpu.SMEM((4,), jnp.int32),
            pltpu.SMEM((1,), jnp.int32),
            pltpu.VMEM((2, 8, 128), jnp.float32),
            pltpu.SemaphoreType.DMA((2,)),
        ],
    )
    found = lp.kernels(call, rows, jax.ShapeDtypeStruct((4, 4), jnp.int32), properties=["dma_order"])
    assert (found.exit_code == 0) is proved


STRIDED = [(0, 3, 1), (1, 2, 3), (2, 2, 1), (2, 3, 1), (2, 2, 2), (0, 2, 4), (5, 1, 1), (3, 3, 2)]
"""First row, rows, and how far apart they are."""


@pytest.mark.parametrize("copied", STRIDED)
def test_rows_some_way_apart_meet_exactly_where_sets_of_them_do(copied: tuple[int, int, int]) -> None:
    def rows(start: int, count: int, stride: int) -> set[int]:
        return set(range(start, start + count * stride, stride))

    for read in STRIDED:

        def body(x: Any, o: Any, buf: Any, sem: Any, read: tuple[int, int, int] = read) -> None:
            into = buf.at[pl.ds(copied[0], copied[1], stride=copied[2])]
            copy = pltpu.make_async_copy(x.at[pl.ds(0, copied[1])], into, sem)
            copy.start()
            o[pl.ds(0, read[1]), :] = buf[pl.ds(read[0], read[1], stride=read[2]), :]
            copy.wait()

        out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        scratch = [pltpu.VMEM((16, 128), jnp.float32), pltpu.SemaphoreType.DMA]
        call = pl.pallas_call(body, in_specs=[HBM], out_shape=out, scratch_shapes=scratch)
        (said,) = lp.kernels(call, out, properties=["dma_order"]).findings
        common = rows(*copied) & rows(*read)
        assert said.verdict is (Verdict.REFUTED if common else Verdict.PROVED), (read, said.reason)
        assert f"element ({min(common)}, 0)" in said.reason if common else True


def _of_a_table(body: Callable[..., None], *assumed: str) -> Verdict:
    """What is said of one program with a table of 4 numbers and 32 rows in HBM, under what is assumed of the table."""
    rows = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(1,),
        in_specs=[HBM],
        out_specs=HBM,
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
    )
    call = pl.pallas_call(body, grid_spec=spec, out_shape=rows)
    given = jax.ShapeDtypeStruct((4,), jnp.int32), rows
    found = lp.kernels(call, *given, properties=["dma_order"], assume=assumed)
    return min(f.verdict for f in found.findings)


@pytest.mark.parametrize(("top", "verdict"), [(4, Verdict.PROVED), (5, Verdict.UNKNOWN)])
def test_a_quotient_is_known_where_both_ends_of_a_table_have_the_same(top: int, verdict: Verdict) -> None:
    def body(table: Any, x: Any, o: Any, buf: Any, sem: Any) -> None:
        _fetch(x, buf, sem, 0, jax.lax.div(table[0], 4)).start()
        _fetch(x, buf, sem, 0, 0).wait()

    assert _of_a_table(body, f"0 <= prefetch0 < {top}") is verdict


@pytest.mark.parametrize(
    ("other", "assumed", "verdict"),
    [
        (lambda table: table[1], "prefetch0 is injective", Verdict.PROVED),
        (lambda table: table[1], "0 <= prefetch0 < 4", Verdict.UNKNOWN),
        (lambda table: table[table[2]], "prefetch0 is injective", Verdict.UNKNOWN),
    ],
)
def test_places_that_a_table_holds_once_are_apart_where_their_entries_are(
    other: Callable[[Any], Any], assumed: str, verdict: Verdict
) -> None:
    def body(table: Any, x: Any, o: Any, buf: Any, sem: Any) -> None:
        copies = [
            pltpu.make_async_copy(x.at[pl.ds(0, 8)], o.at[pl.ds(8 * row, 8)], sem.at[k])
            for k, row in enumerate((table[0], other(table)))
        ]
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.wait()

    assert _of_a_table(body, "0 <= prefetch0 < 4", assumed) is verdict


@pytest.mark.parametrize(
    ("ahead", "back", "verdict"),
    [
        (0, 0, Verdict.PROVED),
        # later programs have not written yet
        (1, 0, Verdict.PROVED),
        (0, 1, Verdict.REFUTED),
        # what has gone out before the last step is there; whether that is meant nobody knows
        (0, 2, Verdict.UNKNOWN),
    ],
)
def test_an_input_that_has_the_buffer_of_an_output_with_windows(ahead: int, back: int, verdict: Verdict) -> None:
    """Each program copies a block of the array in whose place its output's blocks are written back."""

    def body(x: Any, o: Any, buf: Any, sem: Any) -> None:
        i = pl.program_id(0)
        block = jnp.minimum(i + ahead, 5) if ahead else jnp.where(i < back, i, i - back)
        copy = pltpu.make_async_copy(x.at[pl.ds(block * 8, 8)], buf, sem)
        copy.start()
        # the window is no part of the array that the copy reads
        o[...] = jnp.zeros_like(o)
        copy.wait()
        o[...] = buf[...] + 1

    rows = jax.ShapeDtypeStruct((48, 128), jnp.float32)
    call = pl.pallas_call(
        body,
        grid=(6,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=rows,
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
        input_output_aliases={0: 0},
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )
    (kernel,) = kernels_of(call, (rows,))
    assert isinstance(kernel, Kernel)
    worst = min(judge(kernel, names=["dma_order"]), key=lambda f: f.verdict)
    assert worst.verdict is verdict
    if verdict is Verdict.REFUTED:
        assert worst.counterexample == {"first": (1,), "second": (0,), "element": (0, 0)}
