"""No signal of one kernel passes a barrier of another one that has the same `collective_id`, nor of its own next call.

Why it matters: kernels with one `collective_id` have one barrier semaphore. A device that is ahead signals it for the
next kernel, and a neighbour that still waits in this one takes that for the signal of a third device, which has not
begun: data sent then arrives too early. It happens under load, and where a kernel is called again and again.
Refuted by: two devices, as for `device_barrier` and `device_races`, of two kernels that run one after the other.
Asked of kernels with a barrier of their own, on the mesh of the `shard_map` around the call: with each other kernel
of the function that has its `collective_id`, and with itself once more, which is a warning.
Example: `signal(left); signal(right); wait(2)`, called twice: two signals of a fast neighbour stand for both.
Source: `get_barrier_semaphore` of jax/_src/pallas/mosaic/primitives.py, docs/pallas/tpu/distributed.md (jax 0.10.2).
Fix: a `collective_id` for each kernel; after the barrier a second one, on a semaphore of the kernel's own.
Incident: JAX's own tutorial: https://github.com/jax-ml/jax/pull/27963
Limits: Two calls, one after the other. The mesh that they are traced on, up to 64 devices, and rings of other
sizes where each device does the same as the others (figure `rings`).
"""

from __future__ import annotations

from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.obligation import Obligation, Settled, undecided
from layoutproof.pallas.device_problems import in_turn

TARGET = False
BODY = True
SETTLED_BY = "give each kernel a collective_id of its own"


def obligations(kernel: Kernel) -> tuple[Obligation, ...]:
    """One with each kernel of the same `collective_id`, and one with itself."""
    found = [in_turn(kernel, other) for other in kernel.sharing]
    again = in_turn(kernel, kernel)
    return tuple(one for one in (*found, again) if one is not None)


def unasked(kernel: Kernel) -> Settled:
    """Where no barrier is shared."""
    return undecided("the kernel has no barrier of its own")
