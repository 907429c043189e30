"""How fast `layoutproof serve` answers, as the SDK's own client sees it: `python benchmarks/serve.py [--functions 20]`.

Of a small Pallas kernel the first call, with what a worker imports, and the second one, of which the goal is 0.3 s; of
a file with many of them all, all again, and all after an edit of one that also moves the lines of the others, with how
many were judged anew. Wall time, beside the load of the machine: a number is of use where the load is below the number
of processors.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

ROOT = Path(__file__).resolve().parents[1]
GOAL = 0.3
"""Seconds of the second call of a small kernel."""
HEAD = "import jax\nfrom jax.experimental import pallas as pl\n"
ONE = """

def kernel{n}(x_ref, o_ref):
    o_ref[...] = x_ref[...] * {n}.0 + 1.0


def scaled{n}(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct((32, 128), x.dtype)
    return pl.pallas_call(kernel{n}, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=shape)(x)
"""


def source(functions: int) -> str:
    """A module with so many functions, each with a kernel of its own."""
    return HEAD + "".join(ONE.format(n=n) for n in range(functions))


def kept(folder: Path) -> int:
    """How many answers are kept."""
    return len(list(folder.rglob("*.json")))


async def timed(what: Callable[[], Awaitable[Any]]) -> float:
    """Seconds that it takes."""
    begun = time.perf_counter()
    await what()
    return time.perf_counter() - begun


async def measure(folder: Path, functions: int) -> list[tuple[str, float, str]]:
    """(what, seconds, a remark) of each row."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LAYOUTPROOF_CACHE": str(folder / "kept")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    how = StdioServerParameters(
        command=sys.executable, args=["-m", "layoutproof", "serve"], env=environment, cwd=str(folder)
    )
    code = folder / "many.py"
    code.write_text(source(functions), "utf-8")
    rows: list[tuple[str, float, str]] = []
    async with Client(stdio_client(how)) as client:

        async def one(n: int = 0) -> None:
            found = await client.call_tool("kernels", {"place": f"many.py:scaled{n}", "arg": ["f32[32,128]"]})
            assert found.structured_content["exit_code"] == 0, found.content[0].text

        async def every() -> None:
            for n in range(functions):
                await one(n)

        rows.append(("list of the tools", await timed(client.list_tools), ""))
        rows.append(("first call of a small kernel", await timed(one), "with what a worker imports"))
        seconds = [await timed(one) for _ in range(9)]
        second = statistics.median(seconds)
        rows.append(("second call", second, f"median of 9; goal {GOAL} s: {'met' if second < GOAL else 'MISSED'}"))
        await anyio.sleep(10)
        rows.append((f"{functions} functions of a file", await timed(every), f"{kept(folder)} answers are kept"))
        before = kept(folder)
        rows.append(("all again", await timed(every), f"{kept(folder) - before} judged anew"))
        await anyio.sleep(20)
        before = kept(folder)
        code.write_text(source(functions).replace("* 1.0 +", "* 1.5\n    o_ref[...] = x_ref[...] +"), "utf-8")
        rows.append(("all after an edit of one", await timed(every), f"{kept(folder) - before} judged anew"))
        await anyio.sleep(20)
        code.write_text(source(functions), "utf-8")
        rows.append(("one after an edit", await timed(one), "a worker was ready"))
    return rows


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=20)
    functions = parser.parse_args().functions
    with tempfile.TemporaryDirectory() as folder:
        rows = anyio.run(measure, Path(folder), functions)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"load {load} on {os.cpu_count()} processors\n\n| what | s | |\n|---|---:|---|")
    for what, seconds, remark in rows:
        print(f"| {what} | {seconds:.2f} | {remark} |")


if __name__ == "__main__":
    main()
