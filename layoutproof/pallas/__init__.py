"""Kernels judged: a rule is a file in `rules`; they come from JAX programs (`from_jax`) or compiled ones (`from_mosaic`).

May import kernel, hardware, solvers, registry, hlotext. Start at `judge.py`, then `rules/outputs_covered.py`.
"""
