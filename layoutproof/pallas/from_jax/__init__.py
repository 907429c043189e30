"""Pallas calls found by tracing JAX functions, and turned into kernels. Start at `trace.py`."""
