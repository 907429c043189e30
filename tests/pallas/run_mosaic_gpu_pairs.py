"""What JAX's interpreter of Mosaic GPU shows of the pairs: one kernel a process, since a wait may never end.

`python -m tests.pallas.run_mosaic_gpu_pairs` runs all of them and prints a table; with `NAME right|wrong` it prints
what one run shows, as of `tests.bodies.run_device_pairs`, or `nothing`. The interpreter does not know `commit_smem`,
and its copies out of shared memory end at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from jax.experimental.pallas import mosaic_gpu as plgpu

from tests.bodies.run_device_pairs import signs_of
from tests.pallas.mosaic_gpu_pairs import PAIRS
from tests.pallas.mosaic_gpu_tensor_pairs import TENSOR_PAIRS
from tests.pallas.mosaic_gpu_thread_pairs import THREAD_PAIRS

ALL = PAIRS | THREAD_PAIRS | TENSOR_PAIRS
SECONDS = 40
"""Of processor time for one run."""


def shown(name: str, wrong: bool) -> set[str]:
    """What a run of one kernel shows, on whole numbers."""
    from jax._src.pallas.mosaic_gpu.interpret import gpu_callbacks
    from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams

    pair, own = ALL[name], plgpu.kernel

    def interpreted(*args: Any, **options: Any) -> Any:
        return own(*args, interpret=InterpretGPUParams(detect_races=True), **options)

    with mock.patch.object(plgpu, "kernel", interpreted):
        function = pair.make(**(pair.wrong if wrong else {}))
    first, *rest = (np.arange(np.prod(a.shape)).reshape(a.shape).astype(a.dtype) % 5 for a in pair.args)
    found = signs_of(lambda x: function(x, *rest), first, None, SECONDS)
    races = getattr(gpu_callbacks, "_races", None)
    return found | ({"race"} if getattr(races, "races_found", False) else set())


def rows() -> Iterator[str]:
    """A row for each pair."""
    yield "| pair | right | wrong |"
    yield "|---|---|---|"
    for name in ALL:
        said = []
        for side in ("right", "wrong"):
            command = [sys.executable, "-m", "tests.pallas.run_mosaic_gpu_pairs", name, side]
            root = Path(__file__).resolve().parents[2]
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=20 * SECONDS, check=False)
            said.append(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else f"exit code {done.returncode}")
        yield f"| {name} | {said[0]} | {said[1]} |"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        words = sorted(word for word in shown(sys.argv[1], sys.argv[2] == "wrong") if " " not in word)
        print(" ".join(words) or "nothing", flush=True)
        # threads of a run may wait for ever
        os._exit(0)
    for row in rows():
        print(row, flush=True)
