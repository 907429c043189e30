"""The same answers whatever else happens: `python benchmarks/stable.py --runs 50` (exit code 1 where one differs).

Each run is a process of its own that asks the same questions: random ones about layouts, of all engines or one of them
alone, and about kernels (`benchmarks/fuzz.py`), and, where jax is installed, the wrong and the right kernels of
`tests/bodies/pitfalls.py`. Each run has another hash seed and another order, and asks from eight threads at once; other
processes meanwhile keep each processor busy twice. Every answer is compared whole with that of the first run, which
asks in order from one thread: verdict, smallest counterexample, engine, reason with the steps that were spent, figures.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

THREADS = 8
BODIES = 8
"""Questions for which one kernel with a body is asked about, right and wrong."""


def names(questions: int, bodies: bool) -> list[str]:
    """What is asked, a name for each question."""
    found = [f"{'kernels' if number % 5 == 4 else 'layouts'}/{number}" for number in range(questions)]
    if bodies:
        from tests.bodies.pitfalls import CASES

        step = max(1, len(CASES) * BODIES // max(1, questions))
        found += [f"bodies/{case}/{how}" for case in list(CASES)[::step] for how in ("wrong", "right")]
    return found


def answer(name: str, seed: int) -> str:
    """Everything that is answered, as text."""
    kind, _, rest = name.partition("/")
    if kind == "layouts":
        from tests.questions import questions_at_random

        return repr(questions_at_random.ask(seed, int(rest)).found)
    if kind == "kernels":
        from layoutproof.pallas.judge import judge
        from tests.properties import kernels_at_random

        rng = random.Random(f"{seed}/{rest}")
        kernel, asked = kernels_at_random.any_kernel(rng), rng.choice(kernels_at_random.PROPERTIES)
        return repr(judge(kernel, names=[asked]))
    from tests.bodies.judged import findings
    from tests.bodies.pitfalls import CASES

    case, _, how = rest.partition("/")
    return repr(findings(case, how == "wrong", CASES[case].kind))


def answers(asked: list[str], seed: int, run: int) -> dict[str, str]:
    """The answers of one run: the first in order from one thread, others in another order from several."""
    if not run:
        return {name: answer(name, seed) for name in asked}
    order = random.Random(run).sample(asked, len(asked))
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        return dict(zip(order, pool.map(lambda name: answer(name, seed), order), strict=True))


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Keeps processors busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def in_a_process(options: argparse.Namespace, run: int) -> Mapping[str, str]:
    """The answers of a run in a process of its own, with a hash seed of its own."""
    command = [sys.executable, __file__, "--run", str(run), "--questions", str(options.questions)]
    command += ["--seed", str(options.seed), *(["--no-bodies"] if options.no_bodies else [])]
    environment = {**os.environ, "PYTHONHASHSEED": str(run), "LAYOUTPROOF_CACHE": "off", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"run {run} ends with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def main() -> int:
    """Run, compare, print what differs; 1 where anything does."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--busy", type=int, default=2 * (os.cpu_count() or 1), help="processes that only burn time")
    parser.add_argument("--no-bodies", action="store_true", help="leave out kernels with bodies")
    parser.add_argument("--run", type=int, default=-1, help="answers of this one run, as JSON")
    options = parser.parse_args()
    options.no_bodies |= importlib.util.find_spec("jax") is None
    if options.run >= 0:
        print(json.dumps(answers(names(options.questions, not options.no_bodies), options.seed, options.run)))
        return 0
    start, differ = time.monotonic(), Counter[str]()
    first = in_a_process(options, 0)
    with load(options.busy):
        for run in range(1, options.runs):
            for name, text in in_a_process(options, run).items():
                if text != first[name]:
                    differ[name] += 1
                    if differ[name] == 1:
                        print(f"{name} of seed {options.seed}, run {run}:\n  {first[name]}\n  {text}", flush=True)
    kinds = Counter(name.partition("/")[0] for name in first)
    asked = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    seconds = time.monotonic() - start
    print(f"{options.runs} runs of {len(first)} questions ({asked}), {len(differ)} answers differ, {seconds:.0f} s")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
