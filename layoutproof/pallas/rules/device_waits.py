"""Every wait on a semaphore has its signals and bytes on every device of the mesh: no device waits for ever.

Why it matters: a device that waits for a signal or a copy that is never sent hangs, and with it all devices of the
program, without a message.
Refuted by: the first device that waits, its program and line, when every other device has ended or waits, too.
Asked of kernels that copy to other devices or signal them, on the mesh of the `shard_map` around the call. All devices
are run as they are. Only its own device takes from a semaphore, and how much it takes does not depend on who has
signalled, so that a device that waits for ever in one schedule does in all of them. Of GPUs these are the threads of
all programs (`bodies.gpu_devices`).
Example: each device waits for two signals of a barrier, and its neighbours send one.
Unknown: where data decide whether a device signals, which device, or how often.
Source: docs/pallas/tpu/distributed.md of JAX, "Failure modes" (0.10.2).
Fix: signal, or copy, as often as is waited for; wait for the bytes that are sent.
Incident: a kernel that hangs on several devices: https://github.com/jax-ml/jax/issues/30159
Limits: The mesh that the call is traced on, up to 64 devices, and rings of other sizes where each
device does the same as the others (figure `rings`).
"""

from __future__ import annotations

from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, undecided
from layoutproof.pallas.device_problems import of_devices
from layoutproof.pallas.thread_problems import of_threads

TARGET = False
BODY = True
SETTLED_BY = "choose devices, and how often they signal and wait, by axis_index, program ids and loop counters"


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One, of a kernel that reaches other devices."""
    return of_threads(kernel, "never") if kernel.remote else of_devices(kernel, "never")


def unasked(kernel: Kernel) -> Settled:
    """Where no other device is reached."""
    return undecided("the kernel reaches no other device")
