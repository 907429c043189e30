"""Nothing is sent to a device that may not have begun the kernel: a barrier comes before the first remote write.

Why it matters: a device that is behind still runs what comes before the kernel, and its memory is that program's. What
arrives then overwrites other data, or is lost: crashes and wrong numbers that come and go, on many devices.
Refuted by: two devices: the first copies into the other one's memory, or signals a semaphore of it that is no barrier
semaphore, before the other has begun.
Asked of kernels that reach other devices, on the mesh of the `shard_map` around the call. Without a `collective_id` and
without `skip_device_barrier`, XLA puts a barrier before the kernel: then it holds.
Example: `collective_id=0`, and the body starts a remote copy without a word to the barrier semaphore.
Source: docs/pallas/tpu/distributed.md of JAX, and `interpret_pallas_call.py`, which meets before a kernel only where
no `collective_id` is given (0.10.2).
Fix: signal `pltpu.get_barrier_semaphore()` of every device that sends here, and wait for those that are sent to.
Incident: a barrier that was removed, and crashes on 32 chips: https://github.com/sgl-project/sglang-jax/issues/1024
Limits: The mesh that the call is traced on, up to 64 devices, and rings of other sizes where each
device does the same as the others (figure `rings`).
"""

from __future__ import annotations

from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, undecided
from layoutproof.pallas.device_problems import of_devices

TARGET = False
BODY = True
SETTLED_BY = "choose the devices that meet by axis_index, and let every device meet all that send to it"


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One, of a kernel that reaches other devices."""
    return of_devices(kernel, "early")


def unasked(kernel: Kernel) -> Settled:
    """Where no other device is reached."""
    return undecided("the kernel reaches no other device")
