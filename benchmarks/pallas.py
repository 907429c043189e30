"""Pallas calls: what judging one costs beyond JAX's own tracing, and what the pytest plugin costs a suite without any.

`python benchmarks/pallas.py` needs jax, pytest, and the list of operations in tests/pallas. Every call is judged once,
by all properties, after one call to load the solvers; the column `x` is the ratio to the first row of its group, from
the same run. Nothing is asserted about time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from table import median_us, show

from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.kernel.kernel import Kernel
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.findings import judged
from layoutproof.pallas.from_jax.adapter import device_of, need_jax, opened
from layoutproof.pallas.from_jax.trace import walk
from layoutproof.pallas.judge import kernel_of

ROOT = Path(__file__).resolve().parents[1]
TESTS = 1000
Row = tuple[str, str, float]


def timed(question: Any) -> tuple[float, Any]:
    """Microseconds of one question, and its answer."""
    start = time.perf_counter()
    answer = question()
    return (time.perf_counter() - start) * 1e6, answer


def wheel() -> tuple[list[Row], list[tuple[float, str]]]:
    """Per call of every operation in the wheel: JAX's time, and ours beyond it; the slowest are named."""
    sys.path.insert(0, str(ROOT))
    from tests.pallas.wheel_ops import ops

    jax = need_jax()
    judged(copies(4), target="v5e")
    traced, ours = list[float](), list[tuple[float, str]]()
    for op in ops():
        function, arguments = op.build()
        with device_of(op.target) if op.target in CHIPS else contextlib.nullcontext():
            try:
                tracing, jaxpr = timed(lambda f=function, a=arguments: jax.make_jaxpr(f)(*a))
            except Exception as error:
                print(f"not traced: {op.name}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
                continue
        inner, _ = opened(jaxpr)
        found: list[Any] = []
        walking, _ = timed(lambda i=inner, f=found: walk(i, [True] * len(i.outvars), f))
        for call in found:
            whole = with_assumptions(call, op.assume, strict=False) if isinstance(call, Kernel) else call
            judging, _ = timed(lambda w=whole, t=op.target: judged(w, target=t))
            traced.append(tracing / len(found))
            ours.append((walking / len(found) + judging, f"{op.name}: {call.name}"))
    times = sorted(micro for micro, _ in ours)
    rows = [
        (f"one of {len(ours)} calls", "JAX traces it, median", quantile(sorted(traced), 0.5)),
        (f"one of {len(ours)} calls", "all properties beyond that, median", quantile(times, 0.5)),
        (f"one of {len(ours)} calls", "all properties beyond that, p99", quantile(times, 0.99)),
        (f"one of {len(ours)} calls", "all properties beyond that, slowest", times[-1]),
    ]
    return rows, sorted(ours, reverse=True)[:5]


def quantile(ordered: Sequence[float], share: float) -> float:
    """The entry that `share` of the others do not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def copies(programs: int) -> Kernel:
    """A kernel of so many programs, each of which copies one block."""
    given = {"name": "x", "array": f"f32[{8 * programs},128]", "block": [8, 128], "index": "(i) -> (i, 0)"}
    kernel = {"grid": [programs], "inputs": [given], "outputs": [given | {"name": "o"}]}
    return kernel_of({"kernel": kernel}, "a benchmark")


def grids() -> list[Row]:
    """All properties of a kernel, of ten programs and of a billion, never the same kernel twice."""
    rows = []
    for what, programs in (("10 programs", 10), ("10^9 programs", 10**9)):
        kernels = [copies(programs + k) for k in range(101)]
        rows.append(("size of the grid", what, median_us(lambda kernel: judged(kernel, target="v5e"), kernels)))
    return rows


def plugin(runs: int) -> list[Row]:
    """A suite of 1000 tests that trace no Pallas call: without the plugin, with it there, and with it on."""
    ways = {
        "without the plugin": (),
        "the plugin, not asked": ("-p", "layoutproof.cli.pytest_plugin"),
        "--layoutproof": ("-p", "layoutproof.cli.pytest_plugin", "--layoutproof"),
    }
    rows = []
    for name, head in (("plain Python", "x = 1\n"), ("with jax and Pallas", "from jax.experimental import pallas\n")):
        with tempfile.TemporaryDirectory() as folder:
            tests = "".join(f"def test_{k}():\n    assert x + {k}\n" for k in range(TESTS))
            Path(folder, "test_suite.py").write_text(f"{head}x = 1\n{tests}")
            best = dict.fromkeys(ways, float("inf"))
            for _ in range(runs):
                # one after the other, so that what else the machine does falls on all of them
                for way, options in ways.items():
                    best[way] = min(best[way], timed(lambda o=options, f=folder: suite(o, f))[0])
        rows += [(f"{TESTS} tests, {name}", way, micro) for way, micro in best.items()]
    return rows


def suite(options: Sequence[str], folder: str) -> None:
    """One run of the suite; SystemExit where it does not pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, folder]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def main() -> None:
    """Prints the table, and the slowest calls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=7, help="of each test suite; the best counts")
    options = parser.parse_args()
    rows, slowest = wheel()
    show([*rows, *grids(), *plugin(options.runs)], options.json)
    if not options.json:
        print("\nslowest")
        for micro, name in slowest:
            print(f"  {micro / 1000:7.1f} ms  {name}")


if __name__ == "__main__":
    main()
