"""Every semaphore of every device of the mesh counts 0 when all have ended: every signal and copy is waited for.

Why it matters: a semaphore that is not 0 crashes the program, or the next kernel that has it takes the rest for a
signal; bytes without a wait may still arrive.
Refuted by: a device whose semaphore counts something at the end, with the last line that adds to it.
Asked of kernels that copy to other devices or signal them, on the mesh of the `shard_map` around the call; of others
`dma_order` asks it. Of GPUs it is not asked: JAX fills their semaphores with zeros at each launch.
Example: every device signals its left neighbour in each step, and waits in all steps but the last.
Source: docs/pallas/tpu/distributed.md of JAX, "Failure modes" (0.10.2).
Fix: wait for what is left in the last program, or do not signal there.
Incident: none is known to us. JAX's tutorial takes the last signals of its reduce-scatter in an epilogue.
Limits: The mesh that the call is traced on, up to 64 devices, and rings of other sizes where each
device does the same as the others (figure `rings`).
"""

from __future__ import annotations

from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, undecided
from layoutproof.pallas.device_problems import of_devices

TARGET = False
BODY = True
SETTLED_BY = "choose by axis_index, program ids and loop counters how often devices signal, and wait as often"


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One, of a kernel that reaches other devices."""
    return of_devices(kernel, "left")


def unasked(kernel: Kernel) -> Settled:
    """Where no other device is reached."""
    return undecided("the kernel reaches no other device")
