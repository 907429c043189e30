"""The TPU kernel compiler (Mosaic, in libtpu) asked of one kernel: VMEM, spills, relayouts in registers, cycles.

May import messages and what stands above it. Start at `ask.py`; `compiling.py` answers in a process of its own, from
the files that the compiler writes, which `dumps.py` reads.
"""
