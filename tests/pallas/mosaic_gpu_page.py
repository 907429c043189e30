# ruff: noqa: E501
"""`python -m tests.pallas.mosaic_gpu_page > docs/mosaic_gpu.md`: what is read of Mosaic GPU, and what is said of JAX's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from layoutproof.core.errors import LayoutError
from layoutproof.kernel.kernel import Unmodelled
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.pallas.mosaic_gpu_ops import NOT_TRACED, MosaicGpuOp, ops, pretended
from tests.pallas.mosaic_gpu_pairs import PAIRS
from tests.pallas.mosaic_gpu_thread_pairs import THREAD_PAIRS

HEAD = """# Kernels of Mosaic GPU

What `layoutproof kernels` says of kernels for Hopper and Blackwell, `plgpu.kernel(..)` of `jax.experimental.pallas.mosaic_gpu`. Kernels of one
thread (warpgroup), of several and of clusters are read and proved whole; of the tensor memory of Blackwell nothing is. Nothing here was run on a GPU: the rules
are read from jax 0.10.2, and the limit of shared memory from NVIDIA's documents. `python -m tests.pallas.mosaic_gpu_page` prints this page, and `tests/pallas/test_mosaic_gpu.py`
holds it against a fresh run.

```bash
layoutproof kernels ops.py:matmul --args "f16[512,256], f16[256,512]" --target mosaic_gpu
```

## What is modelled

| in the kernel | is read as |
|---|---|
| `plgpu.kernel`, `pl.core_map` with `plgpu.Mesh(grid, cluster, num_threads)` | a program for each place of the grid, the cluster and the threads; all may run at once |
| arrays in GMEM | whole arrays |
| `SMEM`, `Barrier`, `ACC` in `scratch_types` and `pl.run_scoped` | memory of the body; an accumulator holds zeros at first, shared memory nothing |
| `TilingTransform`, `SwizzleTransform`, `plgpu.transpose_ref` | the same elements: the first two say where they lie and change none |
| `copy_gmem_to_smem` | a copy that counts one arrival on its barrier when it has ended. A box that begins inside of the array and ends outside of it is clipped, and zero there (`OOBFillMode.ZEROS`, the default) |
| the same with `collective_axes`, one axis | a copy into the memory of all programs of the cluster, of which each brings its share, and a phase takes all shares |
| `ClusterBarrier`, one axis | an arrival counts for all programs along it, and a phase takes those of all |
| `copy_smem_to_gmem`, `commit_group=False`, `commit_smem_to_gmem_group` | a copy in a group; groups end in their order. What lies outside of the array is not written |
| `wait_smem_to_gmem(n)` | all groups but the last n have ended |
| `barrier_arrive`, `barrier_wait` | one arrival; the end of a phase, which takes as many arrivals as the barrier has |
| `wgmma`, `wgmma_wait(n)`, `acc[...]` | an MMA that reads its operands until it is waited for; a load of the accumulator waits |
| `commit_smem` | what threads have stored is seen by copies and MMAs |
| `plgpu.emit_pipeline` | the loop that JAX makes of it, and a call of its own, whose blocks are asked about |
| `pl.run_state` of an accumulator | an accumulator that begins with a value |
| `plgpu.load`, `layout_cast`, `set_max_registers` | a load; the same array; nothing |

## What is asked

| question | rule |
|---|---|
| does every box begin inside of its array, and lie inside of it where nothing clips; are all slices of shared memory inside | `body_in_bounds` |
| is every element of an output written, by one program | `outputs_stored`, `body_races` |
| is nothing read before the copy into it was waited for, nothing overwritten that a copy or an MMA may still read; has each wait its arrivals, does no phase end unseen | `dma_order` |
| is shared memory written before it is read | `initialised`, `undefined_values` |
| is what threads store committed before a copy or an MMA reads it | `commit_smem` |
| can TMA do each copy: box, alignment, tiles and swizzle | `tma_box` |
| tiles, swizzle, shapes and types of each `wgmma` | `wgmma_tiles` |
| does what the body allocates fit into 227 KiB (H100, H200, B200) | `memory_budget`, with `--target mosaic_gpu` |

Of a kernel of one thread this is asked of all programs and turns by terms. Threads, and the programs of a cluster, are run: the events of each in order, for one program of each class whose
loops run as often and whose conditions hold alike; who comes how far does not depend on the schedule, as arrivals only add up (`layoutproof/bodies/warpgroups.py` has the argument). A wait looks at
the parity of a phase alone, so a phase that may end twice before a thread has seen it is refuted. Unknown beyond 6,000 events of one program or cluster, and 200,000 of all. A copy into shared memory
that nothing waits for before all threads have ended is a warning: its memory may be another program's by then.

An MMA after which another one was started, and none was waited for, is "unknown": JAX lets `delay_release=1` rest on that, and PTX does not promise it. So is memory that a scope
frees while a copy or an MMA still uses it, since which scope gets it next is not known.

## What is not

Refused by its name, so that the answer is unknown and the exit code 3:

- The order of threads whose loops or conditions data decide, as those of the ragged products.
- `copy_gmem_to_smem` with several `collective_axes` or `leader_tracked`, `ClusterBarrier` over several axes, `copy_smem_to_gmem` with a `reduction_op`, references of other programs (`cluster_ref`, `remote_ref`, `multicast_ref`), `async_store_smem`, `async_prefetch`.
- Tensor memory: `TMEM`, `tcgen05_mma`, `tcgen05_commit_arrive`, `async_load_tmem`, `async_store_tmem`, and warps (`core_map` over a `WarpMesh`), `dynamic_scheduling_loop`, `inline_mgpu`.
- `wgmma_accumulator_store`, a load of an accumulator that leaves MMAs running, `RefUnion`, `unsafe_no_auto_barriers`.

Not asked: a copy into memory to which threads have stored before, with no commit between; copies and products of kernels of warpgroup semantics, where JAX chooses how
shared memory lies; registers, tensor memory, bank conflicts, `pallas_call` with `plgpu.CompilerParams`, whose body is not read.

What these kernels compute is asked by [`layoutproof same`](same.md#kernels-of-mosaic-gpu).

## Pairs

JAX lowers both of each pair for a GPU, which needs none, and sees none of these errors. What it refuses, `tma_box` and `wgmma_tiles` refute:
of 1,000 random copies and 600 random products (2026-11-28, jax 0.10.2) just those that JAX refuses. The suite draws 80 of each.

Each is written twice, right and with one error (`tests/pallas/mosaic_gpu_pairs.py`, `mosaic_gpu_thread_pairs.py`). JAX's GPU interpreter on a CPU with races on (`python -m tests.pallas.run_mosaic_gpu_pairs`,
2026-11-28, jax 0.10.2) runs 28 of the right ones to their end and finds nothing in them, and shows 20 of their 28 wrong ones: a race, an error, NaN, or no end. It does not know commits, and its copies out end at
once. Of the others it says nothing: the results of its MMAs are NaN, and it raises on copies of a cluster. All right ones are proved whole; each wrong one is refuted by the question in the table.

| pair | question | by the numbers |
|---|---|---|
"""

TABLE = """
## The kernels of the wheel

All `*_mgpu` files of `jax.experimental.pallas.ops.gpu`, jax 0.10.2, at sizes of `tests/pallas/mosaic_gpu_ops.py`, traced on a CPU: of what they ask a GPU, the number of its
multiprocessors and its CUDA, the answers are made up. The list was fixed before the reader was written. A call is proved only where nothing is unknown.

| operation | traced for | calls | whole | questions: proved | unknown | refuted | what is unknown, and why |
|---|---|---:|---|---:|---:|---:|---|
"""

MOST = 4
"""Reasons that are shown of an operation."""


def row(op: MosaicGpuOp) -> str:
    """A row of the table."""
    try:
        with pretended(op.chip):
            function, arguments = op.build()
            calls = kernels_of(function, arguments, target="v5e")
    except LayoutError as error:
        return _cells(op.name, op.chip, 0, "not traced", "", "", "", _short(str(error)))
    count: Counter[str] = Counter()
    said: dict[str, None] = {}
    for call in calls:
        if isinstance(call, Unmodelled):
            count["unknown"] += 1
            said[_short(call.reason)] = None
            continue
        for finding in judge(call, target="mosaic_gpu"):
            if not finding.asked or finding.severity != "error":
                continue
            count[finding.verdict.value] += 1
            if finding.verdict.value != "proved" and finding.question != "analysable":
                said[_short(finding.reason)] = None
    reasons = [*said]
    more = [f"and {len(reasons) - MOST} more"] if len(reasons) > MOST else []
    whole = "refuted" if count["refuted"] else "unknown" if count["unknown"] else "proved"
    numbers = count["proved"], count["unknown"], count["refuted"]
    return _cells(op.name, op.chip, len(calls), whole, *numbers, "; ".join([*reasons[:MOST], *more]))


def _cells(*cells: object) -> str:
    return f"| {' | '.join(str(cell).replace('|', ' ') for cell in cells)} |"


def _short(reason: str) -> str:
    """A reason without its numbers, its places and what would settle it."""
    reason = re.split(r" \((?=the body|programs|digits|/)|; to settle it", reason)[0]
    return re.sub(r" at [\w.]+:\d+| \([^()]*/[^()]*\)", "", reason)


def pairs() -> Iterator[str]:
    """The rows of the pairs."""
    for name, pair in (PAIRS | THREAD_PAIRS).items():
        yield _cells(name, f"`{pair.question}`", pair.why)


def page() -> str:
    """The page."""
    left = "".join(f"- `{name}`: {why}.\n" for name, why in NOT_TRACED.items())
    return HEAD + "\n".join(pairs()) + "\n" + TABLE + "\n".join(map(row, ops())) + f"\n\nNot traced:\n\n{left}"


if __name__ == "__main__":
    print(page(), end="")
