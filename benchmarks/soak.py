"""Hours of bad luck in minutes: `python benchmarks/soak.py --rounds 500` (exit code 1 when anything goes wrong).

Each round is a process of its own. Eight of its threads ask questions that isl and z3 decide, refute, or give up on
with the budget spent; another thread uses z3 for itself, and one only collects garbage. Then, by turns, the process
asks from asyncio, forks while the threads are asking and asks in the child, or gets Ctrl-C while the main thread waits
for a solver and asks on; and it exits. A round fails if the process dies, hangs, prints anything, or if an answer is
not the one expected. Counts, seconds, and the largest round's megabytes are printed.

`--round N` runs that one round in this process; what it did wrong is its traceback.

`--forks N` forks this process so often while threads of it import modules for the first time, over and over, some of
which fail. Each child imports three of them, and the engines for a question now and then; it is stuck where it does not
end. How many did is printed. A child ends itself at last, also where nobody is left who waits for it.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import contextlib
import gc
import importlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import layoutproof as lp

THREADS = 8
ENDINGS = ("asyncio", "fork", "interrupt", "exit")
HANGS = 3600
"""Seconds after which a round counts as hanging: no machine is so slow that what ends takes as long."""
STUCK = 600
"""Seconds after which the child of a fork counts as stuck, and ends."""
MODULES = 20
"""Modules that `--forks` imports."""

QUESTIONS = (
    # isl
    (("covers", "f32[N,M]{1,0:T(8,128)}"), {}, "refuted"),
    (("covers", "f32[N]{0:T(8)}"), {"where": "N % 8 == 0", "engine": "isl"}, "proved"),
    # z3: a smallest violation, a proof, two engines that agree
    (("injective", "f32[N,M] strides (M-1,1)"), {"engine": "smt"}, "refuted"),
    (("injective", "f32[N,M]{1,0:T(8,128)}"), {"engine": "smt"}, "proved"),
    (("same_map", "f32[N,M] strides (M,1)", "f32[N,M] strides (M,2)"), {"confirm": True}, "refuted"),
    # what neither decides
    (("covers", "f32[N,M] strides (M,1)"), {"engine": "smt"}, "proved"),
)
ENDLESS = "(i < 1000000007) -> (i * i * i % 1000000007,)"
"""z3 needs many seconds to find out that it cannot tell whether no two cubes are one."""


def ask(question: tuple[tuple[str, ...], dict[str, object], str]) -> None:
    """Ask, and insist on the answer."""
    (name, *layouts), options, expected = question
    found = lp.ask(name, *layouts, **options).verdict.value  # type: ignore[arg-type]
    if found != expected:
        raise SystemExit(f"{question} is {found}")


def spend() -> None:
    """A question whose budget ends within z3, and one whose budget ends within isl."""
    from layoutproof.core.errors import Undecided
    from layoutproof.core.index_map import IndexMap
    from layoutproof.properties import injective
    from layoutproof.registry.read import map_of, read_layout
    from layoutproof.solvers import isl, smt

    m: IndexMap = map_of(read_layout("f32[N,M] strides (M-1,1)"))
    for solver, effort in ((smt, 0.00002), (isl, 0.0001)):
        for claim in injective.claims(m):
            try:
                solver.decide(claim, effort)
            except Undecided:
                continue
            raise SystemExit(f"{solver.__name__} decides with next to no budget")


def use_z3(stop: threading.Event) -> None:
    """What somebody else does with z3 meanwhile, in its common context."""
    import z3

    while not stop.is_set():
        x, y = z3.Ints("x y")
        solver = z3.Solver()
        # a check of z3 with its own handler of Ctrl-C keeps it to itself
        solver.set("ctrl_c", False)
        solver.add(x * x + y * y == 25, x > 0, x < y)
        if solver.check() != z3.sat or solver.model()[x].as_long() != 3:
            raise SystemExit("z3 itself is wrong")
        time.sleep(0.002)


def collect(stop: threading.Event) -> None:
    """Frees whatever garbage the others leave, on this thread."""
    while not stop.is_set():
        gc.collect()
        time.sleep(0.001)


def in_asyncio() -> None:
    async def all_of_them() -> None:
        await asyncio.gather(*(asyncio.to_thread(ask, question) for question in QUESTIONS))

    asyncio.run(all_of_them())


def in_a_fork() -> None:
    child = os.fork()
    if child == 0:
        signal.alarm(STUCK)
        code = 1
        try:
            for question in QUESTIONS:
                ask(question)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"the child of a fork ends with {status}")


def import_first(stop: threading.Event, seed: int) -> None:
    """Imports a module at random and forgets another, so that the next import of it is a first one again."""
    pick = random.Random(seed)
    while not stop.is_set():
        # what is forgotten while it is imported is a KeyError
        with contextlib.suppress(ImportError, KeyError):
            importlib.import_module(f"soaked{pick.randrange(MODULES)}")
        sys.modules.pop(f"soaked{pick.randrange(MODULES)}", None)


def write_modules(folder: str) -> None:
    """Modules that import up to two of those before them; some raise ImportError."""
    for number in range(MODULES):
        before = random.Random(number).sample(range(max(0, number - 10), number), min(2, number))
        lines = [f"import soaked{other}\n" for other in before]
        lines += ["raise ImportError('planted')\n"] if number % 20 == 13 else ["squares = [n * n for n in range(99)]\n"]
        Path(folder, f"soaked{number}.py").write_text("".join(lines), "utf-8")


def stuck_forks(forks: int) -> int:
    """How many of so many children of forks beside threads that import did not come to their end."""
    stuck, stop, switches = 0, threading.Event(), sys.getswitchinterval()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        write_modules(folder)
        sys.path.insert(0, folder)
        # a fork comes between any two steps of the others
        sys.setswitchinterval(1e-5)
        importing = [pool.submit(import_first, stop, seed) for seed in range(3)]
        try:
            for number in range(forks):
                stuck += fork_and_import(number)
        finally:
            stop.set()
            sys.setswitchinterval(switches)
            sys.path.remove(folder)
        for each in importing:
            each.result()
    return stuck


def fork_and_import(number: int) -> bool:
    """Whether a child that imports what others are importing has no end."""
    child = os.fork()
    if child == 0:
        signal.alarm(STUCK)
        pick = random.Random(number)
        code = 1
        try:
            for _ in range(3):
                with contextlib.suppress(ImportError):
                    importlib.import_module(f"soaked{pick.randrange(MODULES)}")
            if number % 500 == 0:
                ask(QUESTIONS[1])
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return status != 0


def interrupted(after: float) -> None:
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    try:
        # on a busy machine it may end before its start has returned
        timer.start()
        answer = lp.ask("injective", ENDLESS, engine="smt", effort=100)
    except KeyboardInterrupt:
        return
    finally:
        timer.join()
    raise SystemExit(f"Ctrl-C was swallowed: {answer.reason}")


def one(number: int) -> None:
    """The round of that number, in this process."""
    # a shell starts what runs in the background with Ctrl-C ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pick = random.Random(number)
    stop = threading.Event()
    ending = ENDINGS[number % len(ENDINGS)]
    with concurrent.futures.ThreadPoolExecutor(THREADS + 2) as pool:
        beside = [pool.submit(collect, stop)]
        if ending != "fork":
            # what somebody else's z3 has locked when the process forks, nobody can unlock in the child
            beside.append(pool.submit(use_z3, stop))
        asked = [pool.submit(ask, question) for question in pick.sample(QUESTIONS * 4, THREADS * 2)]
        asked += [pool.submit(spend) for _ in range(2)]
        try:
            if ending == "asyncio":
                in_asyncio()
            elif ending == "fork":
                in_a_fork()
            for each in asked:
                each.result()
            if ending == "interrupt":
                interrupted(pick.uniform(0.2, 0.9))
                for question in QUESTIONS:
                    ask(question)
        finally:
            stop.set()
        for each in beside:
            each.result()


def wrong(number: int) -> tuple[str, float]:
    """What went wrong in a round in a process of its own ("" for nothing), and its largest memory in megabytes."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--round", str(number)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    late = threading.Timer(HANGS, process.kill)
    late.start()
    assert process.stdout is not None
    said = process.stdout.read()
    # not process.wait: the kernel says what a child used to whoever reaps it
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    hung = not late.is_alive()
    late.cancel()
    megabytes = usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    if hung:
        return f"still running after {HANGS} seconds\n{said}", megabytes
    if process.returncode or said:
        return f"exit code {process.returncode}\n{said}", megabytes
    return "", megabytes


def main() -> None:
    """Run the rounds and say how they went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--jobs", type=int, default=2, help="rounds at once")
    parser.add_argument("--round", type=int, help="run this one round in this process")
    parser.add_argument("--forks", type=int, help="fork so often beside threads that import, in this process")
    options = parser.parse_args()
    if options.round is not None:
        one(options.round)
        return
    if options.forks is not None:
        stuck = stuck_forks(options.forks)
        print(f"{options.forks} forks, {stuck} stuck")
        sys.exit(1 if stuck else 0)
    start, failed, most = time.perf_counter(), 0, 0.0
    numbers = range(options.first, options.first + options.rounds)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, (what, megabytes) in zip(numbers, pool.map(wrong, numbers), strict=True):
            most = max(most, megabytes)
            if what:
                failed += 1
                print(f"round {number} ({ENDINGS[number % len(ENDINGS)]}): {what}", flush=True)
    seconds = time.perf_counter() - start
    print(f"{options.rounds} rounds, {failed} failed, {seconds:.0f} s, at most {most:.0f} MB")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
