"""Kernel bodies: the reads, writes, waits and values of one program of a kernel, as data. Start in `effects`.

A body is run once on symbolic values (`interpreter`; one file per family of primitives). An integer or truth value is a
function from an element's index to a `Term`; every value is also a function from an element's index to the condition
under which that element is undefined (`values`). What the body does to memory is an ordered list of effects
(`effects`), each with its place in a reference, the condition under which it happens, the loops around it and its
source line. The properties of bodies (`layoutproof.pallas.rules`) ask one violation formula each (`claims`).
Imports `core`, `kernel` and nothing of JAX: `pallas.from_jax` passes in the reader of jaxprs.
"""
