"""Pallas kernels read out of lowered, exported and compiled programs, by jaxlib in a child process.

Start at `mosaic_module.py`.
"""
