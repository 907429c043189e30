"""No copy from another device goes into memory that may still be read or written, or that is not yet written.

Why it matters: a device may run ahead of its neighbour by a whole step. Its data then overwrites the last step's that
the neighbour still reads, or is overwritten: wrong numbers, some of the time, on many devices, under load.
Refuted by: two devices, the program of each, and the element: one copies into it while the other one touches it, in a
schedule that no semaphore excludes.
Asked of kernels that copy to other devices, on the mesh of the `shard_map` around the call. Only semaphores order two
devices: an event has surely happened before another one where the other is not reached in a run in which the
first is held back. A copy reads until its bytes are sent and writes until they have arrived.
Of GPUs (Mosaic GPU) all programs and threads are run, and it is refuted, too, that one of them reaches a GPU on which
all programs may have ended: nothing else says when its memory may be used for other things.
Example: two buffers in turn around a ring: without a signal that a buffer is free, the left neighbour fills it in the
next step but one while it is still read.
Unknown: memory that data choose; windows that move, as targets of other devices.
Source: docs/pallas/tpu/distributed.md of JAX, "Run-ahead and Race Conditions" (0.10.2); the same orders as those of
vector clocks (`pltpu.InterpretParams(detect_races=True)`), which see one schedule.
Fix: signal the sender when the buffer is free, and wait for that signal before the copy starts.
Incident: JAX's own tutorial: https://github.com/jax-ml/jax/issues/27963
Limits: The mesh that the call is traced on, up to 64 devices, and rings of other sizes where each
device does the same as the others (figure `rings`). One call of the
kernel.
"""

from __future__ import annotations

from layoutproof.bodies.devices import has_cores
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, undecided
from layoutproof.pallas.device_problems import of_devices
from layoutproof.pallas.thread_problems import of_threads

TARGET = False
BODY = True
SETTLED_BY = "choose devices, buffers and slots by axis_index, program ids and loop counters"


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One, of a kernel that reaches other devices; cores of one chip are asked by `body_races`."""
    if kernel.remote:
        return of_threads(kernel, "between", "late")
    return () if has_cores(kernel) else of_devices(kernel, "meets")


def unasked(kernel: Kernel) -> Settled:
    """Where no other device is reached."""
    return undecided("the kernel reaches no other device")
