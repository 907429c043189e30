"""Random small kernels, what is true of them by a literal walk of their effects, and what is said of them.

A kernel is a description (`description`), made at random (`generate`): right in some aspects and wrong in others. From
one description come the Pallas call (`pallas`), which goes through the real front end, and the truth (`literal`): every
program is run on NumPy arrays, element by element with one bit each for "padding", "not written", "of another core",
every copy with its bytes. Nothing of `layoutproof` takes part in the truth. `compare` holds one against the other,
`oracles` holds both against JAX's interpreter and the TPU compiler's linter. The command is `benchmarks/bodies.py`.
"""
