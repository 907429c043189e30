"""Rules of hardware and its compilers: TPU generations, default layouts, rules for kernels; GPUs; Trainium.

May import core and kernel. A target is a file here with `KERNEL_TARGETS` and `kernel_target`. Start at
`tpu_chips.py` (one entry for each TPU generation), `tpu_tiles.py` (the tile) and `tpu.py` (default layouts).
"""
