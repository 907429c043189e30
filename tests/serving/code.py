"""User code that the tests of the server write into a folder, edit, and name in calls."""

from __future__ import annotations

KERNELS = """
import jax
from jax.experimental import pallas as pl

from served_rows import ROWS


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0


def double(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct((32, 128), x.dtype)
    return pl.pallas_call(kernel, grid=(ROWS // 8,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)


def plain(x):
    return x * 2.0
"""
SIZES = "ROWS = 32\n"
"""What `KERNELS` imports: with 16 rows its output is not written whole. No other test has a module of its name."""

EXITS = "import os\n\n\ndef f(x):\n    os._exit(7)\n"
FALLS = "import ctypes\n\n\ndef f(x):\n    ctypes.string_at(0)\n"
HUNGRY = "def f(x):\n    return bytearray(1 << 46)\n"
ENDLESS = """
import os
import pathlib
import time


def f(x):
    pathlib.Path("pid.txt").write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)
"""
