"""Random kernels of a ring of devices: what is said of each, and what JAX's interpreter shows of it.

Each device sends to its right, its left or both, in one step or several, into one buffer or two, and adds up what comes
in. The barrier before, who sends, what is waited for, and how a device says that a buffer is free are drawn. What is
proved whole has to end with the wanted numbers, without a race and with all semaphores at 0; where a wait is refuted,
the run has to hang. What the interpreter does not show of what is refuted is counted: it has all devices begin at the
same time, and sees a race only where its schedule lets it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

WAYS = ((0,), (0,), (1,), (0, 1))
"""0: to the right, 1: to the left."""
BARRIERS = ("xla", "xla", "both", "both", "both", "from targets", "from sources", "few", "many", "removed")
WAITS = ("both", "both", "both", "both", "send late", "receive late", "no receive", "no send")
ROOM = ("yes", "yes", "yes", "yes", "no", "early", "extra", "missing")
DEVICES, ROWS = 4, 8
BATCH = 40
BETWEEN = ("device_races", "dma_order")


@dataclass(frozen=True)
class Drawn:
    """ways: where a device sends to.  barrier: with whom it meets before.  forward: whether it sends on what came in
    the step before.  room: how it says that a buffer is free again.  first: whether device 0 sends, too."""

    devices: int
    ways: tuple[int, ...]
    barrier: str
    steps: int
    buffers: int
    forward: bool
    waits: str
    room: str
    first: bool

    @property
    def held(self) -> int:
        """Steps after which a buffer is free: it is sent on in the next one."""
        return 1 if self.forward else 0


def drawn(seed: int) -> Drawn:
    """The kernel of a seed; some two of five are right."""
    chance = random.Random(seed)
    buffers = chance.choice((1, 2))
    return Drawn(
        devices=chance.choice((2, 3, 4, 4)),
        ways=chance.choice(WAYS),
        barrier=chance.choice(BARRIERS),
        steps=chance.choice((1, 2, 3, 4)),
        buffers=buffers,
        forward=buffers == 2 and chance.random() < 0.6,
        waits=chance.choice(WAITS),
        room=chance.choice(ROOM),
        first=chance.random() < 0.93,
    )


def function_of(one: Drawn, mesh: Any, interpret: Any = None) -> Callable[[Any], Any]:
    """The kernel of what was drawn, over a mesh of one axis."""
    import jax
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.sharding import PartitionSpec as P

    from tests.bodies.device_pairs import DMA, REGULAR, VMEM, F, called

    def body(x: Any, o: Any, land: Any, outs: Any, comes: Any, room: Any) -> None:
        me = lax.axis_index("x")
        sides = lax.rem(me + 1, one.devices), lax.rem(me - 1 + one.devices, one.devices)
        _meet(one, sides)
        o[...] = x[...]

        def signal(way: int) -> None:
            pl.semaphore_signal(room.at[way], 1, device_id=(sides[1 - way],))

        def sends(do: Callable[[], None]) -> None:
            if one.first:
                do()
            else:
                pl.when(me > 0)(do)

        for step in range(one.steps):
            slot, before = step % one.buffers, (step - 1) % one.buffers
            copies = {}
            for way in one.ways:
                if step >= one.buffers and one.room != "no":
                    pl.semaphore_wait(room.at[way], 1)
                source = land.at[way, before] if one.forward and step else x
                copies[way] = pltpu.make_async_remote_copy(
                    source, land.at[way, slot], outs.at[way], comes.at[way, slot], device_id=(sides[way],)
                )
                sends(copies[way].start)
            for way, copy in copies.items():
                if one.waits in ("both", "receive late", "no receive"):
                    sends(copy.wait_send)
                if one.waits in ("both", "send late", "no send"):
                    copy.wait_recv()
                o[...] += land[way, slot]
                if one.waits == "send late":
                    sends(copy.wait_send)
                if one.waits == "receive late":
                    copy.wait_recv()
                free = step if one.room == "early" else step - one.held
                told = 0 <= free < one.steps - one.buffers
                if told and one.room != "no" and not (one.room == "missing" and free == 0):
                    signal(way)
                if one.room == "extra" and step == one.steps - 1:
                    signal(way)

    collective = None if one.barrier == "xla" else 0
    more = {"allow_collective_id_without_custom_barrier": True} if one.barrier == "removed" else {}
    scratch = [pltpu.VMEM((2, 2, ROWS, 128), F), DMA((2,)), DMA((2, 2)), REGULAR((2,))]
    return jax.shard_map(
        lambda x: called(
            interpret, body, (ROWS, 128), scratch, ins=VMEM, outs=VMEM, collective=collective, **more
        )(x),
        mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False,
    )  # fmt: skip


def _meet(one: Drawn, sides: tuple[Any, Any]) -> None:
    """The barrier of what was drawn. sides: the device to the right, the one to the left."""
    from tests.bodies.device_pairs import meet

    if one.barrier in ("both", "few", "many"):
        meet(*sides, by={"both": 2, "few": 1, "many": 3}[one.barrier])
    elif one.barrier in ("from targets", "from sources"):
        # a target of the way to the right has this device at its left
        meet(*(sides[1 - way if one.barrier == "from targets" else way] for way in one.ways))


def wanted(one: Drawn, x: Any) -> Any:
    """What all devices give where each sees what its neighbours sent in the same step."""
    import numpy as np

    own = x.reshape(one.devices, ROWS, 128)
    total = own.copy()
    for way in one.ways:
        sent = own
        for _ in range(one.steps):
            came = np.roll(sent, 1 if way == 0 else -1, axis=0)
            total = total + came
            sent = came if one.forward else own
    return total.reshape(-1, 128)


def judged(seed: int) -> dict[str, Any]:
    """What is said of the kernel of a seed: the worst verdict of each question that decides."""
    import jax
    import numpy as np

    from layoutproof.pallas.from_jax.trace import kernels_of
    from layoutproof.pallas.judge import judge
    from tests.bodies.device_pairs import abstract

    one = drawn(seed)
    given = jax.ShapeDtypeStruct((one.devices * ROWS, 128), np.float32)
    (kernel,) = kernels_of(function_of(one, abstract((one.devices,), ("x",))), (given,))
    findings = sorted(judge(kernel, fixes=False), key=_rank)
    return {"said": {f.question: f.verdict.value for f in findings if f.severity == "error"}}


def run(seed: int, mode: str) -> dict[str, Any]:
    """What a run of the kernel of a seed shows. mode: when copies are made, "eager" or "on_wait"."""
    import numpy as np
    from jax.experimental.pallas import tpu as pltpu

    # the first that asks for devices has to say how many there are
    from tests.bodies.run_device_pairs import mesh_of, signs_of

    one = drawn(seed)
    how = pltpu.InterpretParams(detect_races=True, uninitialized_memory="nan", dma_execution_mode=mode)
    x = np.random.default_rng(seed).normal(size=(one.devices * ROWS, 128)).astype(np.float32)
    function = function_of(one, mesh_of((("x", one.devices),)), how)
    return {"shown": sorted(signs_of(function, x, wanted(one, x), 600))}


def _rank(finding: Any) -> int:
    """The worst answer of a question comes last, and is kept."""
    return ("proved", "unknown", "refuted").index(finding.verdict.value)


def wrong(found: Mapping[str, Any]) -> str:
    """How a run contradicts what is said; "" where it does not."""
    said, shown = found["said"], set(found["shown"])
    verdicts = set(said.values())
    # where nobody waits for the others, a copy may come to a device whose kernel has not begun: that raises, too
    early = said.get("device_barrier") == "refuted" and said.get("device_waits") == "proved"
    stuck = bool(shown & ({"hang"} if early else {"hang", "raised"}))
    if verdicts == {"proved"}:
        return "" if shown == {"equal"} else "all is proved"
    if (said.get("device_waits") == "refuted") is not stuck and said.get("device_waits") != "unknown":
        return "a wait that is refuted ends" if not stuck else "a wait that is proved does not end"
    if "race" in shown and all(said.get(question) == "proved" for question in BETWEEN):
        return "a race, and order is proved"
    if "left" in shown and said.get("semaphores_drained") == "proved":
        return "something is left on a semaphore"
    return ""


def hidden(found: Mapping[str, Any]) -> list[str]:
    """The questions that are refuted, and of which the run shows nothing."""
    signs = {"device_races": "race", "dma_order": "race", "semaphores_drained": "left", "device_barrier": ""}
    shown = set(found["shown"])
    return [q for q, sign in signs.items() if found["said"].get(q) == "refuted" and sign not in shown]


def asked(seeds: Sequence[int], limit: float = 60) -> Iterator[dict[str, Any]]:
    """Kernels of some seeds, judged and run in children that are ended where they wait for ever.

    limit: seconds of processor time for one run; what takes longer is left out.
    """
    from tests.bodies.truth.oracles import QUICK, Child

    child = Child(sys.executable, {**QUICK, "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}"})
    try:
        for number, one in enumerate(seeds, 1):
            found = child.ask("ring_judged", one, "", limit)
            mode = "eager" if one % 2 else "on_wait"
            ran = _run_by(child, one, mode, limit)
            if "hang" in ran.get("shown", ()):
                # on a busy machine a run may look like one that waits for ever: once more, by a process of its own
                ran = _run_by(child, one, mode, limit)
            if "shown" in ran and isinstance(found.get("said"), dict):
                yield {"seed": one, "kernel": asdict(drawn(one)), **found, **ran}
            else:
                print(f"left out: seed {one}: {found}, {ran}", flush=True)
            if number % BATCH == 0:
                child.renew()
    finally:
        child.close()


def _run_by(child: Any, seed: int, mode: str, limit: float) -> dict[str, Any]:
    """What a child shows of a run. One with threads that wait for ever is not asked again."""
    from tests.bodies.truth.oracles import HANG

    ran: dict[str, Any] = child.ask("ring_run", seed, mode, limit)
    if ran.get("said") == HANG:
        return {"shown": ["hang"]}
    if "hang" in ran.get("shown", ()):
        child.renew()
    return ran
