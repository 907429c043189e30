"""A checker of somebody else as a column of this benchmark: any command, told of one kernel on its standard input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.wrong_kernels.columns import Said, of
from benchmarks.wrong_kernels.made import Kernel, imported

ROOT = Path(__file__).resolve().parents[2]
CAUGHT = {0: "no", 1: "yes"}
"""Exit code -> whether the kernel was noticed to be wrong; any other one is no answer."""


def asked(command: str, kernel: Kernel, wrong: str, seconds: float) -> tuple[Said, float]:
    """What a command says of one kernel.

    Args:
        command: For the shell. It is run in an empty folder, and can import this benchmark.
        kernel: The kernel.
        wrong: Its edit by name, "" for the right one; the command does not learn it.
        seconds: How long it may take, in seconds.

    Returns:
        (its answer, seconds that it took). The words are the last line that it prints.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{kernel.name}.py"
        file.write_text(kernel.text(wrong))
        request = json.dumps({"file": str(file), "kernel": kernel.name})
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        start = time.perf_counter()
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command], input=request, capture_output=True, text=True, timeout=seconds,
                cwd=folder, env=os.environ | {"PYTHONPATH": path},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Said("unknown", f"no answer in {seconds:g} s"), seconds
    lines = [*done.stderr.splitlines(), *done.stdout.splitlines(), ""]
    words = next((line for line in reversed(lines) if line.strip()), "")[:160]
    return Said(CAUGHT.get(done.returncode, "unknown"), words), time.perf_counter() - start


def given() -> tuple[Kernel, Any, Any]:
    """For a checker in Python: (the kernel with its `arguments`, its function, its reference) that it is asked of."""
    request = json.load(sys.stdin)
    file = Path(request["file"])
    module = imported(file.read_text(), file)
    (kernel,) = [k for k in module.KERNELS if k.name == request["kernel"]]
    return (kernel, *of(kernel, module))
