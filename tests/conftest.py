"""What holds for all tests: no answer of an earlier run stands in for one of this run."""

from __future__ import annotations

import os

os.environ.setdefault("LAYOUTPROOF_CACHE", "off")
# shapes are traced on the CPU; without this libtpu looks for TPUs and writes to the terminal
os.environ.setdefault("JAX_PLATFORMS", "cpu")
