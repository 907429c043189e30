"""Claims and kernels on a local Dask cluster of which a worker is killed: the same answers as in one process, or exit
code 1, and how many a second by workers: `python benchmarks/ci_cluster.py --claims 5000 --kernels 500 --workers 2`.

The claims are about layouts of random shapes, of which some are false; the kernels are Pallas calls of a function with
random blocks, traced by whichever worker has the claim. Each number of workers is one run; in the last one a worker is
killed after a third of the time that the run before it took. Nothing is kept between runs.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["LAYOUTPROOF_CACHE"] = "off"
ROOT = Path(__file__).resolve().parents[1]
PER_FILE = 100
CODE = """\
import jax
from jax.experimental import pallas as pl
def body(x, o):
    o[...] = x[...] * 2
def scaled(x, rows):
    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return pl.pallas_call(body, grid=(pl.cdiv(x.shape[0], rows),), in_specs=[spec], out_specs=spec, out_shape=x)(x)
"""


def write(folder: Path, claims: int, kernels: int, seed: int, name: str = "specs") -> None:
    """The spec files, and the code that they name."""
    random_ = random.Random(seed)
    (folder / "scaling.py").write_text(CODE)
    (folder / name).mkdir()
    for start in range(0, claims, PER_FILE):
        lines = ["source: at random", "checks:"]
        for _ in range(start, min(start + PER_FILE, claims)):
            m, n = random_.randint(1, 4096), random_.randint(1, 4096)
            text = random_.choice([f"f32[{m},{n}]{{1,0:T(8,128)}}", f"bf16[{m},{n}]{{0,1:T(8,128)(2,1)}}"])
            strided = f"{{strided: 'f32[{m % 9 + 2},5] strides ({random_.randint(3, 6)},1)'}}"
            kind = random_.randrange(3)
            lines.append(f"  - injective: {strided}" if kind == 0 else f"  - injective: '{text}'")
            if kind == 1:
                lines[-1:] = [f"  - padding: '{text}'", "    at_most: 30%"]
        (folder / name / f"claims{start:06}.yaml").write_text("\n".join(lines) + "\n")
    for start in range(0, kernels, PER_FILE):
        numbers = range(start, min(start + PER_FILE, kernels))
        lines = ["source: at random", "kernels:"]
        for k in numbers:
            rows = 8 * random_.randint(1, 64)
            arguments = f'args: ["f32[{rows * random_.randint(1, 9)},128]", {rows}]'
            lines.append(f'  k{k}: {{trace: "scaling.py:scaled", {arguments}, target: v5e}}')
        lines += ["checks:", *(f"  - kernel: k{k}" for k in numbers)]
        (folder / name / f"kernels{start:06}.yaml").write_text("\n".join(lines) + "\n")


@contextmanager
def cluster(workers: int, folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and workers of one thread each on this machine: its address, and the workers' processes."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(folder)))}
    where = folder / f"scheduler{time.time_ns()}.json"
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments]
        quiet = subprocess.DEVNULL
        started.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=quiet, stderr=quiet))
        return started[-1]

    try:
        start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(where))
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder))
        them = [start("dask_worker", "--scheduler-file", str(where), *options) for _ in range(workers)]
        from distributed import Client

        # the scheduler creates the file before it writes it
        while not (where.is_file() and where.read_text().rstrip().endswith("}")):
            time.sleep(0.2)
        with Client(scheduler_file=str(where), set_as_default=False) as client:
            client.wait_for_workers(workers)
            address = client.scheduler.address
        yield address, them
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def asked(
    specs: Path, address: str, victim: subprocess.Popen[bytes] | None = None, after: float = 0.0
) -> tuple[Answers, float]:
    """The answers in their order, and the seconds. victim: killed after so many seconds."""
    from layoutproof.compiler.tracing import here, only
    from layoutproof.compiler.workers import Workers
    from layoutproof.specs.check import check_paths

    workers = Workers(1, "dask", address) if address else Workers(1)
    start = time.perf_counter()
    # a cluster gives its answers together, so the worker dies by the clock
    clock = threading.Timer(after, lambda: victim.send_signal(signal.SIGKILL)) if victim is not None else None
    if clock is not None:
        clock.start()
    with only(here()):
        outcomes = check_paths([specs], workers)
    seconds = time.perf_counter() - start
    if clock is not None:
        clock.cancel()
    return [(f"{o.finding.place} {o.finding.question}", str(o.finding)) for o in outcomes], seconds


Answers = list[tuple[str, str]]
"""(place with question, answer) of every claim."""


def main(arguments: Sequence[str]) -> int:
    """Runs what is asked and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", type=int, default=200)
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, given.claims, given.kernels, given.seed)
        # what each process imports is not measured
        write(folder, 32 * given.workers, 8 * given.workers, given.seed + 1, "first")
        os.chdir(folder)
        total = given.claims + given.kernels
        print(f"{given.claims:,} claims about layouts, {given.kernels} kernels, seed {given.seed}")
        print("| where | seconds | claims and kernels a second | answers |\n|---|---:|---:|---|")
        asked(folder / "first", "")
        whole, seconds = asked(folder / "specs", "")
        print(f"| one process | {seconds:.1f} | {total / seconds:.0f} | {len(whole):,} |", flush=True)
        code = 0
        for workers, killed in [*((n, False) for n in range(1, given.workers + 1)), (given.workers, True)]:
            with cluster(workers, folder) as (address, them):
                asked(folder / "first", address)
                found, seconds = asked(folder / "specs", address, them[0] if killed else None, seconds / 3)
                died = killed and them[0].poll() is not None
            what = f"Dask, {workers} worker{'s' if workers > 1 else ''}{', one killed' if died else ''}"
            same = "the same" if found == whole else f"{sum(a != b for a, b in zip(found, whole, strict=False))} differ"
            if killed and not died:
                what += ", done before one was killed"
            code = max(code, found != whole)
            print(f"| {what} | {seconds:.1f} | {total / seconds:.0f} | {same} |", flush=True)
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
