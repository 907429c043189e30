"""The meaning of each operation of a kernel's body, in the primitives that `bodies.interpreter` knows; by family.

The lowering rules of jax/_src/pallas/mosaic/lowering.py (jax 0.10.2, 0.12.0.1) write these operations.
"""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.bodies import problems as body_problems
from layoutproof.bodies.bit_terms import UnsupportedOp
from layoutproof.pallas.from_mosaic import mosaic_arith, mosaic_arrays, mosaic_control, mosaic_memory, problems
from layoutproof.pallas.from_mosaic.mosaic_equations import Found, Make, MosaicOperation, Writer

QUIET = frozenset(
    {
        "tpu.trace_start", "tpu.trace_stop", "tpu.trace_value", "tpu.log", "tpu.delay", "tpu.annotate", "cf.assert",
        "tpu.prng_set_seed_32",
    }
)  # fmt: skip
"""Operations without results that change no memory and wait for nothing."""

OPERATIONS: Mapping[str, Make] = {
    **mosaic_arith.OPERATIONS,
    **mosaic_arrays.OPERATIONS,
    **mosaic_memory.OPERATIONS,
    **mosaic_control.OPERATIONS,
}
"""Operation -> (writer, operation) -> its results. Others are refused by name."""


def meaning(on: Writer, operation: MosaicOperation) -> Found:
    """The results of an operation. UnsupportedOp, or LayoutError for unknown types, says why there are none."""
    if operation.name in QUIET and not operation.results:
        return []
    make = OPERATIONS.get(operation.name)
    if make is None:
        raise UnsupportedOp(body_problems.OPERATION(operation.name))
    found = make(on, operation)
    if len(found) != len(operation.results):
        raise UnsupportedOp(problems.OPERATION_RESULTS(operation.name, len(operation.results)))
    return found
