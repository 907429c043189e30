"""Pallas calls in user code: found by tracing, turned into kernels, judged, reported."""
