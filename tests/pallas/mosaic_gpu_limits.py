"""Kernels of Mosaic GPU at the limits of a chip and beyond them: threads, clusters, registers, shared memory.

What they compute does not matter. JAX lowers them all, but for amounts of registers that are no multiple of 8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

ROWS = jax.ShapeDtypeStruct((4, 128), jnp.int32)
"""What each of them is given, and gives."""

AMOUNTS: dict[tuple[int | None, ...], tuple[str, int]] = {
    (232, 232, 40): ("proved", 0),
    # 240 and 240 with the 40 of the third one are 520
    (240, 240, 40): ("refuted", 240 + 40),
    # each of three begins with 168, a multiple of 8: 504, and not 512
    (240, 232, 40): ("refuted", 240 + 40),
    # the others keep what they began with while each of two waits
    (232, 232, None): ("refuted", 168 + 168),
    # one gets 216 of what the last one gives back, and two have their fourths
    (216, 216, 216, 24): ("refuted", 216 + 128 + 24),
    (168, 168, 168, 32): ("refuted", 168 + 168 + 32),
    (160, 160, 160, 32): ("proved", 0),
    (168, 168, 40, 128): ("proved", 0),
    (256, None): ("proved", 0),
    (256, 256): ("proved", 0),
}
"""Registers that warpgroups ask for, what is said of them, and how many others hold where one waits for ever."""

MORE, FEWER = True, False
ORDERS: dict[str, tuple[list[list[tuple[int, bool]]], str]] = {
    "three that ask before they give": ([[(256, MORE), (24, FEWER)]] * 3, "refuted"),
    "one after the other": ([[(24, FEWER), (256, MORE), (24, FEWER)]] * 3, "proved"),
    # the second one gets 256 if the first one is not before it
    "who comes first": ([[(24, FEWER), (256, MORE)], [(256, MORE), (24, FEWER)], [(24, FEWER)]], "unknown"),
    "back to what they had": ([[(24, FEWER), (168, MORE)]] * 3, "proved"),
    "more than they had": ([[(24, FEWER), (176, MORE)]] * 3, "refuted"),
    "two thirds for two": ([[(40, FEWER)], [(232, MORE)], [(232, MORE)]], "proved"),
    "given back later": ([[(40, FEWER)], [(232, MORE), (120, FEWER)], [(232, MORE), (200, FEWER)]], "proved"),
    "given back to more": ([[(40, FEWER)], [(232, MORE), (120, FEWER)], [(232, MORE), (240, FEWER)]], "refuted"),
    "three that give back nothing": ([[(168, FEWER)]] * 3, "proved"),
    "three that give back to more": ([[(176, FEWER)]] * 3, "refuted"),
    "three that give back to more later": ([[(24, FEWER), (32, FEWER)]] * 3, "refuted"),
    "three that ask for less than they had": ([[(160, MORE)]] * 3, "proved"),
    "three that ask for less than they got": ([[(24, FEWER), (160, MORE), (104, MORE)]] * 3, "refuted"),
    "one that has 248": ([[(248, FEWER)]], "proved"),
    "one that has no 256": ([[(256, FEWER)]], "refuted"),
    "two that have no 256": ([[(256, FEWER)]] * 2, "refuted"),
    "four that have 128": ([[(128, FEWER)]] * 4, "proved"),
    "four that have no 136": ([[(136, FEWER)]] * 4, "refuted"),
    "five that have 96": ([[(96, FEWER)]] * 5, "proved"),
    "five that have no 104": ([[(104, FEWER)]] * 5, "refuted"),
    "seven that have 72": ([[(72, FEWER)]] * 7, "proved"),
    "seven that have no 80": ([[(80, FEWER)]] * 7, "refuted"),
}
"""Requests of each warpgroup, one after the other: how many registers, and whether they are more or fewer."""

THREADS = {8: "proved", 9: "refuted", 16: "refuted"}
"""Warpgroups of a block."""

CLUSTERS: dict[tuple[int, ...], str] = {(16,): "proved", (4, 4): "proved", (17,): "refuted", (4, 8): "refuted"}
"""Blocks of a cluster, by axis."""

SHARED = {(226, 0): "proved", (226, 127): "proved", (226, 128): "refuted", (227, 0): "refuted", (228, 0): "refuted"}
"""KiB of shared memory of a block, and barriers."""


def made(body: Callable[..., None], warpgroups: int, cluster: Sequence[int] = (), grid: int = 4) -> Any:
    """A kernel of some warpgroups."""
    together = {"cluster": tuple(cluster), "cluster_names": tuple("cd"[: len(cluster)])} if cluster else {}
    return plgpu.kernel(
        body,
        out_type=ROWS,
        grid=(grid,),
        grid_names=("i",),
        num_threads=warpgroups,
        thread_name="wg",
        **together,
    )


def setting(amounts: Sequence[int | None], under: str = "always") -> Any:
    """Each warpgroup asks for so many registers, None for none: for more than its share, or it gives back.

    under: what else decides whether it does: nothing, the id of the program, how often a loop runs, or data of each.
    """

    def body(x_gmem: Any, o_gmem: Any) -> None:
        def requests() -> None:
            for warpgroup, many in enumerate(amounts):
                if many is not None:
                    action = "increase" if many > min(512 // len(amounts), 255) else "decrease"
                    pl.when(lax.axis_index("wg") == warpgroup)(
                        lambda n=many, a=action: plgpu.set_max_registers(n, action=a)
                    )

        if under == "always":
            requests()
        elif under == "program":
            pl.when(lax.axis_index("i") > 1)(requests)
        elif under == "loop":
            lax.fori_loop(0, lax.axis_index("i"), lambda k, carry: requests(), None)
        else:
            pl.when(x_gmem[lax.axis_index("wg"), 0] > 3)(requests)

    return made(body, len(amounts))


def asking(requests: Sequence[Sequence[tuple[int, bool]]]) -> Any:
    """Each warpgroup asks for its amounts in their order."""

    def body(x_gmem: Any, o_gmem: Any) -> None:
        for warpgroup, own in enumerate(requests):

            def does(own: Sequence[tuple[int, bool]] = own) -> None:
                for many, more in own:
                    plgpu.set_max_registers(many, action="increase" if more else "decrease")

            pl.when(lax.axis_index("wg") == warpgroup)(does)

    return made(body, len(requests))


def allocating(kib: int, barriers: int) -> Any:
    """A block with so many KiB of shared memory, which it fills and copies out, and some barriers."""
    shape = 2 * kib, 128

    # JAX takes 32 of a kind
    groups = [plgpu.Barrier(num_barriers=min(32, barriers - k)) for k in range(0, barriers, 32)]

    def body(x_gmem: Any, o_gmem: Any, smem: Any, *groups: Any) -> None:
        # what is not used is not allocated
        for group in groups:
            plgpu.barrier_arrive(group.at[0])
            plgpu.barrier_wait(group.at[0])
        smem[...] = jnp.zeros(shape, jnp.int32)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(smem.at[pl.ds(0, 4)], o_gmem)
        plgpu.wait_smem_to_gmem(0)

    scratch = [plgpu.SMEM(shape, jnp.int32), *groups]
    return plgpu.kernel(body, out_type=ROWS, grid=(1,), grid_names=("i",), scratch_types=scratch)


def limits() -> dict[str, tuple[Callable[[], Any], str]]:
    """Each kernel by its name, how it is made, and what `layoutproof kernels` says of it."""
    idle = lambda x, o: None  # noqa: E731
    return {
        **{f"registers {' '.join(map(str, a))}": (lambda a=a: setting(a), v) for a, (v, _) in AMOUNTS.items()},
        **{f"registers, {name}": (lambda r=r: asking(r), v) for name, (r, v) in ORDERS.items()},
        **{f"{many} warpgroups": (lambda m=many: made(idle, m), v) for many, v in THREADS.items()},
        **{f"cluster {' x '.join(map(str, c))}": (lambda c=c: made(idle, 1, c), v) for c, v in CLUSTERS.items()},
        **{
            f"shared memory {k} KiB, {n} barriers": (lambda k=k, n=n: allocating(k, n), v)
            for (k, n), v in SHARED.items()
        },
    }
