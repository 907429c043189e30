"""Kernels that reach other devices: right ones are proved in full, wrong ones refuted by the question that is meant."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

pytest.importorskip("jax", reason="reading kernels needs the extra [jax]")

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

from layoutproof.bodies.devices import devices_of
from layoutproof.bodies.rings import alike, ring, rings_of
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.bodies import device_pairs, random_rings
from tests.bodies.device_pairs import CASES, DEVICES, DMA, HBM, VMEM, Case, F, called, function_of, rows_of
from tests.said import Said

pytestmark = pytest.mark.slow

OUTSIDE = "pallas.body_in_bounds_device_outside"
QUESTIONS = ("device_waits", "semaphores_drained", "device_races", "device_barrier")


def kernel_of(case: Case, wrong: bool) -> Kernel:
    (kernel,) = kernels_of(function_of(case, wrong), (jax.ShapeDtypeStruct((rows_of(case), 128), F),))
    assert isinstance(kernel, Kernel)
    return kernel


def judged(case: Case, wrong: bool) -> list[Finding]:
    return [f for f in judge(kernel_of(case, wrong), fixes=False) if f.severity == "error"]


@pytest.mark.parametrize("name", CASES)
def test_right(name: str) -> None:
    found = judged(CASES[name], False)
    assert not [f"{f.question}: {f.reason}" for f in found if f.verdict is not Verdict.PROVED]
    assert {f.question for f in found} >= set(QUESTIONS)


@pytest.mark.parametrize("name", CASES)
def test_wrong(name: str) -> None:
    found = judged(CASES[name], True)
    refuted = [f for f in found if f.question == CASES[name].kind and f.verdict is Verdict.REFUTED]
    assert refuted, [f"{f.question} {f.verdict}: {f.reason}" for f in found if f.verdict is not Verdict.PROVED]
    assert "device" in (refuted[0].counterexample or {})


def test_the_order_that_breaks() -> None:
    """The barrier that was removed: both devices are named, and what the one does before the other has begun."""
    found = next(f for f in judged(CASES["barrier_removed"], True) if f.verdict is Verdict.REFUTED)
    assert found.question == "device_barrier"
    assert found.counterexample == {"device": (3,), "other_device": (0,), "program": (0,)}
    said = Said("bodies.device_not_begun", device="device x=3", does="copies into outputs", other="device x=0")
    assert said.of(found.reason)


@pytest.mark.parametrize(
    ("device_id", "place"),
    [
        (lambda me: (lax.rem(me - 1, 4),), -1),
        (lambda me: {"x": me + 1}, 4),
        (lambda me: (lax.rem(me + 3, 4),), None),
        (lambda me: {"x": jnp.minimum(me + 1, 3)}, None),
    ],
)  # fmt: skip
def test_devices_that_a_mesh_does_not_have(device_id: Callable[[jax.Array], object], place: int | None) -> None:
    """A signal to a place outside of the mesh is refuted, with the device that sends it."""

    def body(x, o):  # type: ignore[no-untyped-def]
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, 1, device_id=device_id(lax.axis_index("x")))
        pl.semaphore_wait(barrier, 1)
        o[...] = x[...]

    def call(x: jax.Array) -> jax.Array:
        made: jax.Array = called(None, body, (8, 128), [], ins=VMEM, outs=VMEM, collective=0)(x)
        return made

    mesh = device_pairs.abstract((4,), ("x",))
    fn = jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    (kernel,) = kernels_of(fn, (jax.ShapeDtypeStruct((32, 128), F),))
    assert isinstance(kernel, Kernel)
    found = [f for f in judge(kernel, fixes=False) if f.question == "body_in_bounds"]
    refuted = [f for f in found if f.verdict is Verdict.REFUTED]
    if place is None:
        assert {f.verdict for f in found} == {Verdict.PROVED}
    else:
        said = Said(OUTSIDE, what="signals", name="barrier", place=place, mesh="axis x", extent=4)
        assert [said.of(f.reason) for f in refuted] == [True]
        assert "axis_x[0]" in str(refuted[0].counterexample)


@pytest.mark.parametrize("semaphores", [1, DEVICES - 1])
def test_a_wait_that_a_later_copy_may_end(semaphores: int) -> None:
    """A ring whose steps end on one semaphore is refuted, and the hint is tried: one for each step is proved."""

    def body(x, o, out, come):  # type: ignore[no-untyped-def]
        me, right, _ = device_pairs.place()
        o[me] = x[...]
        for step in range(DEVICES - 1):
            slot = lax.rem(me - step + DEVICES, DEVICES)
            on = come.at[min(step, semaphores - 1)]
            copy = pltpu.make_async_remote_copy(o.at[slot], o.at[slot], out.at[step], on, device_id=(right,))
            copy.start()
            copy.wait()

    def ring_of(wrong: bool, call: Callable[..., Callable[[jax.Array], jax.Array]], x: jax.Array) -> jax.Array:
        scratch = [DMA((DEVICES - 1,)), DMA((semaphores,))]
        return call(body, (DEVICES, 8, 128), scratch, ins=VMEM, outs=VMEM)(x)

    found = next(f for f in judged(Case("device_races", ring_of), False) if f.question == "device_races")
    if semaphores == 1:
        assert found.verdict is Verdict.REFUTED
        assert Said("bodies.look_at_copies", semaphore="scratch[1][0]", copies=3).of(found.hint)
    else:
        assert found.verdict is Verdict.PROVED


def test_two_devices_and_an_element() -> None:
    found = next(f for f in judged(CASES["all_reduce"], True) if f.question == "device_races")
    assert found.counterexample is not None
    assert {"device", "other_device", "program", "other_program", "element"} <= set(found.counterexample)


@pytest.mark.parametrize("name", ["all_gather", "all_reduce", "reduce_scatter"])
@pytest.mark.parametrize("devices", [2, 3, 6])
def test_other_meshes(name: str, devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rings hold on rings of other sizes, each of which is decided by itself."""
    monkeypatch.setattr(device_pairs, "DEVICES", devices)
    case = CASES[name]._replace(axes=(("x", devices),))
    found = judged(case, False)
    assert not [f"{f.question}: {f.reason}" for f in found if f.verdict is not Verdict.PROVED]
    assert {f.figures.get("devices") for f in found if f.question in QUESTIONS} == {devices}


def _permuted(double: bool, collective: int, x: jax.Array) -> jax.Array:
    """Each device sends to the right, after a barrier with both neighbours, or after two."""

    def body(x, o, out, come, second):
        _, right, left = device_pairs.place()
        device_pairs.meet(left, right)
        if double:
            for device in (left, right):
                pl.semaphore_signal(second, 1, device_id=(device,))
            pl.semaphore_wait(second, 2)
        c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(right,))
        c.start()
        c.wait()

    return called(None, body, (8, 128), [DMA, DMA, pltpu.SemaphoreType.REGULAR], collective=collective)(x)


def _over_mesh(function: Callable[[jax.Array], jax.Array]) -> list[Kernel]:
    mesh = device_pairs.abstract((device_pairs.DEVICES,), ("x",))
    sharded = jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    found = kernels_of(sharded, (jax.ShapeDtypeStruct((8 * device_pairs.DEVICES, 128), F),))
    return [k for k in found if isinstance(k, Kernel)]


def test_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's barrier of one round, as its tutorial had it: a fast neighbour's second call passes the first barrier.

    On a ring of four devices none can end before all have begun, so that it holds there.
    """
    (four,) = _over_mesh(partial(_permuted, False, 0))
    assert [f.verdict for f in judge(four, names=["collective_ids"], fixes=False)] == [Verdict.PROVED]
    monkeypatch.setattr(device_pairs, "DEVICES", 5)
    (once,) = _over_mesh(partial(_permuted, False, 0))
    (found,) = judge(once, names=["collective_ids"], fixes=False)
    assert (found.verdict, found.severity) == (Verdict.REFUTED, "warning")
    assert Said(
        "pallas.next_place",
        what=Said("bodies.device_not_begun", device="device x=4", does="copies into outputs", other="device x=0"),
        next="it is called again",
    ).of(found.reason)
    (twice,) = _over_mesh(partial(_permuted, True, 0))
    assert [f.verdict for f in judge(twice, names=["collective_ids"], fixes=False)] == [Verdict.PROVED]


ON_EVERY_RING = (
    "right_permute", "barrier_removed", "skipped_barrier", "barrier_with_the_wrong_side", "barrier_of_three",
    "barrier_not_waited_out", "read_while_it_comes", "source_overwritten", "two_send_to_one", "all_reduce",
    "blocks_while_it_comes",
)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_ring(name: str) -> None:
    """Devices that do the same are proved on rings of all sizes; what is wrong is wrong on a smallest one."""
    found = {f.question: f.figures.get("rings", "") for f in judged(CASES[name], False) if f.question in QUESTIONS}
    said = "every ring of 2 devices or more, where each does what it does on this one"
    alike = name in (*ON_EVERY_RING, "all_reduce_left_over")
    assert set(found.values()) == ({said} if alike else {""})
    if alike:
        rings = rings_of(devices_of(kernel_of(CASES[name], True)))
        assert rings is not None
        assert rings.problem is not None
        assert rings.least == 0


def test_what_holds_on_a_ring_of_four_and_not_of_five() -> None:
    """A barrier of one round, called twice: five devices are the fewest of which one can end before all have begun."""
    (four,) = _over_mesh(partial(_permuted, False, 0))
    (found,) = judge(four, names=["collective_ids"], fixes=False)
    assert found.verdict is Verdict.PROVED
    assert Said(
        "pallas.ring_size",
        size=5,
        what=Said("bodies.device_not_begun", device="device x=4", does="copies into outputs", other="device x=0"),
        more="",
    ).of(found.figures["rings"])


@pytest.mark.parametrize("double", [False, True])
def test_rings_are_what_meshes_of_their_size_are(double: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring that is made of the events of four devices goes wrong where the traced one of its size does."""
    (four,) = _over_mesh(partial(_permuted, double, 0))
    devices = devices_of(four, four)
    steps = alike(devices)
    assert steps is not None
    for size in range(2, 9):
        monkeypatch.setattr(device_pairs, "DEVICES", size)
        (traced,) = _over_mesh(partial(_permuted, double, 0))
        wrong = bool(next(devices_of(traced, traced).problems(), None))
        assert bool(next(ring(devices, steps, size).problems(), None)) is wrong
        assert wrong is (size >= 5 and not double)


@pytest.mark.parametrize(("second", "verdict"), [(0, Verdict.REFUTED), (1, Verdict.PROVED)])
def test_two_kernels_with_one_barrier(second: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_pairs, "DEVICES", 5)
    kernels = _over_mesh(lambda x: _permuted(False, second, _permuted(False, 0, x)))
    for kernel in kernels:
        found = [f for f in judge(kernel, names=["collective_ids"], fixes=False) if f.severity == "error"]
        assert [f.verdict for f in found] == ([] if verdict is Verdict.PROVED else [verdict])


def test_no_mesh_is_known() -> None:
    kernel = replace(kernel_of(CASES["right_permute"], False), axes=())
    found = judge(kernel, names=QUESTIONS, fixes=False)
    assert {f.verdict for f in found} == {Verdict.UNKNOWN}
    assert Said("bodies.mesh_unknown").of(found[0].reason)


def _data_say(wrong: bool) -> Kernel:
    """Whether a device sends is what data say."""

    def body(n, x, o, out, come):
        @pl.when(n[0] > 0)
        def _():
            c = pltpu.make_async_remote_copy(x, o, out, come, device_id=(1 - lax.axis_index("x"),))
            c.start()
            c.wait()

    def f(n, x):
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(1,), in_specs=[HBM], out_specs=HBM, scratch_shapes=[DMA, DMA]
        )
        return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((8, 128), F))(n, x)

    mesh = device_pairs.abstract((2,), ("x",))
    sharded = jax.shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"), check_vma=False)
    args = (jax.ShapeDtypeStruct((1,), jnp.int32), jax.ShapeDtypeStruct((16, 128), F))
    (kernel,) = kernels_of(sharded, args)
    assert isinstance(kernel, Kernel)
    return kernel


def test_what_data_decide_is_unknown() -> None:
    found = judge(_data_say(False), names=(*QUESTIONS, "outputs_stored"), fixes=False)
    assert {f.verdict for f in found} == {Verdict.UNKNOWN}


def test_kernels_on_one_device_are_not_asked() -> None:
    kernel = kernel_of(CASES["right_permute"], False)
    alone = replace(kernel, axes=(("x", 1),))
    alone = alone.changed()
    assert not [f for f in judge(alone, fixes=False) if f.question in QUESTIONS]


def test_order_is_seen_from_one_run() -> None:
    """What must come before what, of a ring with a barrier: a device's copy comes after all that it waits for."""
    devices = devices_of(kernel_of(CASES["all_reduce"], False))
    assert not list(devices.problems())
    # no device but itself and those that it has not told may pass a device that is held at its begin
    reached = devices.reached(("at", 0, devices.begins[0][0]))
    assert reached[0] == 0
    assert reached[2] > reached[1] or reached[2] > reached[3] or max(reached) < len(devices.events[0])


def test_of_random_rings_no_verdict_is_wrong() -> None:
    found = list(random_rings.asked(range(2000, 2003)))
    assert [one["seed"] for one in found] == [2000, 2001, 2002]
    assert not [one for one in found if random_rings.wrong(one)]


def test_runs_that_contradict_verdicts_are_seen() -> None:
    proved = {"device_waits": "proved", "device_races": "proved", "semaphores_drained": "proved"}
    left = {**proved, "semaphores_drained": "refuted"}
    open_ = {**proved, "outputs_stored": "unknown"}
    for said, shown in (
        (proved, ["hang"]), (proved, ["equal", "race"]), (proved, ["differs"]), (proved, ["nan"]), (proved, ["left"]),
        ({**proved, "device_waits": "refuted"}, ["equal"]), (left, ["hang"]), (open_, ["left", "equal"]),
        (left, ["raised"]), ({**proved, "device_barrier": "refuted"}, ["hang"]),
    ):  # fmt: skip
        assert random_rings.wrong({"said": said, "shown": shown})
    for said, shown in (
        (proved, ["equal"]),
        (left, ["equal", "left"]),
        ({**proved, "device_waits": "refuted"}, ["hang"]),
        ({**proved, "device_barrier": "refuted"}, ["raised"]),
    ):
        assert not random_rings.wrong({"said": said, "shown": shown})
    assert random_rings.hidden({"said": left, "shown": ["equal"]}) == ["semaphores_drained"]


@pytest.mark.parametrize("name", ["right_permute", "all_to_all"])
def test_interpreter(name: str) -> None:
    """JAX's interpreter gives the right one's numbers, and shows what is wrong with the wrong one."""
    for wrong, shown in ((False, "equal"), (True, CASES[name].seen)):
        command = [sys.executable, "-m", "tests.bodies.run_device_pairs", name, "wrong" if wrong else "right", "60"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert shown in done.stdout.split(), done.stderr[-2000:]
        assert wrong or done.stdout.split() == ["equal"]


def test_command_line(tmp_path: object) -> None:
    """A user's file: exit 1, both devices, and the mesh as JSON."""
    command = [
        sys.executable, "-m", "layoutproof", "kernels", "tests.bodies.test_devices:barrierless", "--arg", "f32[32,128]",
        "--property", "device_barrier", "--json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1, done.stderr
    assert "no barrier comes before" in json.dumps(json.loads(done.stdout))


def barrierless(x: jax.Array) -> jax.Array:
    return function_of(CASES["barrier_removed"], True)(x)
