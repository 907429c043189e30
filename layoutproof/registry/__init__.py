"""The registry, by file name and entry point: layout languages, properties, targets.

May import layouts, properties, hardware; the rules of kernels lie above and are found by name. Start at `read.py`.
"""
