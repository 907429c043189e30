"""Kernels judged, by one rule per file in `rules`; found in JAX (`from_jax`) or compiled programs (`from_mosaic`).

May import kernel, hardware, solvers, registry, hlotext. Start at `judge.py`, then `rules/outputs_covered.py`.
"""
