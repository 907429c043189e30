"""Faults at random in what decides: do tests notice? `python benchmarks/mutants.py --mutants 595 --seed 1 --jobs 2`.

A mutant is one operator, comparison, number, condition or truth value of one function changed. Each part of the code
(`PARTS`) has the same share of the mutants. The tests are collected once, in one process; each runs once, to learn
which functions it calls and how long it takes (`--calls FILE` keeps that for the next run). Each mutant is then made
in a fork of that process: the function gets its changed code, and the tests that call it run, the quickest first, until
one fails. So a mutant takes about as long as the first test that notices it.

A mutant that no test notices survives, and is printed with its place. The score is the share that is noticed; one that
takes ten times as long as it should, or too much memory, is killed and counts as noticed. Some survivors are no faults:
they change how long something takes, or a text. The exit code is 0: the reader of survivors decides.
`docs/soundness.md` has the scores, with dates and seeds.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

BODY_RULES = (
    "body_in_bounds",
    "body_races",
    "dma_order",
    "initialised",
    "multiple_of",
    "outputs_stored",
    "undefined_values",
)

PARTS = {
    "place": (
        *(f"layouts/{name}.py" for name in ("blockspec", "linear", "map", "strided")),
        *(f"layouts/axe/{name}.py" for name in ("layout", "place", "swizzle")),
        *(f"layouts/cute/{name}.py" for name in ("layout", "nested")),
        *(f"layouts/sharding/{name}.py" for name in ("mesh", "place", "tiles")),
        *(f"layouts/xla/{name}.py" for name in ("shape", "structure", "tiling")),
        *(f"core/{name}.py" for name in ("index_map", "numbers", "term")),
    ),
    "properties": ("properties",),
    "digits": ("solvers/digits", "solvers/sumset.py"),
    "decide": ("solvers/decide.py",),
    "body rules": ("bodies", *(f"pallas/rules/{name}.py" for name in BODY_RULES)),
    "kernel rules": ("pallas/rules",),
    "other engines": (
        "solvers/bits",
        *(f"solvers/{name}.py" for name in ("arrays", "brute", "growing", "interval", "sizes", "tables")),
    ),
}
"""Part -> its files and folders of layoutproof/. A file belongs to the first part that names it."""

POOL = (
    *(f"tests/{folder}" for folder in ("solvers", "properties", "layouts", "bodies", "core", "kernel", "pallas/rules")),
    *(
        f"tests/pallas/test_{name}.py"
        for name in ("mosaic_gpu", "tma_box", "wgmma_tiles", "tcgen05_tiles", "warpgroup_registers", "threads_apart")
    ),
    *(f"tests/questions/test_{name}.py" for name in ("ask", "decide", "evaluate", "inverse", "kernels", "pad_reshape")),
    *(f"layoutproof/{folder}" for folder in ("solvers", "properties", "layouts", "bodies", "core")),
)
"""Where the tests are that can notice a mutant; those that start processes cannot, and are not among them."""

LONGEST = 3.0
"""Seconds of a processor after which a test is left out."""
TESTED = 10.0
"""Seconds of tests that run for one mutant, unless other seconds are asked for."""
REPEATS = 3
"""Of a test that is repeated for many seeds, how many repeats are run."""
MEMORY = 4 << 30
"""Bytes that a mutant may take beyond what the tests take before they run."""

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the number of the place in it, the line, what stood there and what stands there now.

    `lines` are the first and the last of the function around it.
    """

    file: str
    place: int
    line: int
    lines: tuple[int, int]
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.was}  ->  {self.now}"


@dataclass(frozen=True)
class Test:
    """What was learnt about a test: seconds, and the file and first line of each function that it calls."""

    seconds: float
    calls: frozenset[tuple[str, int]]


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
    """What can be changed, with the lines of its function: no annotations, texts, errors or assertions."""

    def inside(node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments | ast.FunctionDef):
            return
        mutable = isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED
        mutable |= isinstance(node, ast.BinOp) and type(node.op) in COMPUTED
        mutable |= isinstance(node, ast.BoolOp | ast.IfExp)
        mutable |= isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub)
        mutable |= isinstance(node, ast.Constant) and type(node.value) in (int, bool)
        if mutable:
            yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from inside(child)

    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and not function.name.startswith(("explain", "__repr", "__str")):
            first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
            for statement in function.body:
                for node in inside(statement):
                    yield node, (first, function.end_lineno or first)


def changed(node: ast.AST) -> None:
    """Changes one place where it stands."""
    match node:
        case ast.Compare(ops=[first, *rest]):
            node.ops = [COMPARED[type(first)](), *rest]
        case ast.BinOp(op=op):
            node.op = COMPUTED[type(op)]()
        case ast.BoolOp(op=op):
            node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.IfExp(body=body, orelse=orelse):
            node.body, node.orelse = orelse, body
        case ast.UnaryOp():
            node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.USub()
            if isinstance(node.op, ast.USub):
                # without its "not": a truth value where the opposite stood
                node.op = ast.Not()
                node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value)):
            node.value = value + 1


def mutated(source: str, place: int) -> tuple[ast.Module, Mutant]:
    """The source with one place changed, and what was changed, of no file."""
    tree = ast.parse(source)
    node, lines = list(places(tree))[place]
    made = _said(node, lines, place)
    changed(node)
    return ast.fix_missing_locations(tree), made


def _said(node: ast.AST, lines: tuple[int, int], place: int) -> Mutant:
    """What a change of a place does, of no file; the place stays as it is."""
    now = deepcopy(node)
    changed(now)
    return Mutant("", place, node.lineno, lines, ast.unparse(node), ast.unparse(now))  # type: ignore[attr-defined]


def files() -> dict[str, str]:
    """File -> the part that it belongs to."""
    found: dict[str, str] = {}
    for part, starts in PARTS.items():
        for start in starts:
            path = ROOT / "layoutproof" / start
            for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
                found.setdefault(str(file.relative_to(ROOT)), part)
    return found


def sample(seed: int, count: int, only: str = "") -> list[Mutant]:
    """Mutants, as many of one part as of another where it has so many places; each place of a part is as likely.

    only: parts with commas between them, or how the paths of files begin.
    """
    parts: dict[str, list[tuple[str, int]]] = defaultdict(list)
    found = {}
    for file, part in files().items():
        if part in only.split(",") or file.startswith(only):
            found[file] = list(places(ast.parse((ROOT / file).read_text())))
            parts[part] += [(file, place) for place in range(len(found[file]))]
    chosen, draw = [], random.Random(seed)
    for number, part in enumerate(sorted(parts, key=lambda part: len(parts[part]))):
        # what a small part has not is shared among the larger ones
        share = (count - len(chosen)) // (len(parts) - number)
        chosen += draw.sample(parts[part], min(share, len(parts[part])))
    # so that what was judged when the time is over is a sample as well
    draw.shuffle(chosen)
    return [replace(_said(*found[file][place], place), file=file) for file, place in chosen]


def again(printed: Path, only: str = "") -> list[Mutant]:
    """The survivors that a run printed, made again; where the code has moved since, at the nearest line that has it."""
    made = []
    for text in printed.read_text().splitlines():
        word, _, row = text.partition(": ")
        if word != "survives" or not row.startswith(only):
            continue
        place, change = row.split(": ", 1)
        file, line = place.rsplit(":", 1)
        source = (ROOT / file).read_text()
        was = change.split("  ->  ")[0]
        alike = [k for k, (node, _) in enumerate(places(ast.parse(source))) if ast.unparse(node) == was]
        here = [mutated(source, number)[1] for number in alike]
        same = [mutant for mutant in here if f"{mutant.was}  ->  {mutant.now}" == change]
        if not same:
            print(f"gone: {row}", flush=True)
            continue
        least = min(abs(mutant.line - int(line)) for mutant in same)
        made += [replace(m, file=file) for m in same if abs(m.line - int(line)) == least]
    return made


def all_modules() -> None:
    """Imports every module, so that none is read from its file once a function has changed code."""
    import layoutproof

    for module in pkgutil.walk_packages(layoutproof.__path__, "layoutproof."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of every function within a module, in order."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)


def in_fork(work: Callable[[], int]) -> int:
    """Begins work in a fork whose exit code it returns, without output; the number of the process."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        code = work()
    finally:
        os._exit(code)


class Mutation:
    """A plugin of pytest: instead of running what was collected, learns what calls what, and judges mutants."""

    def __init__(self, mutants: Sequence[Mutant], jobs: int, until: float, calls: Path | None, seconds: float) -> None:
        self.mutants = mutants
        self.seconds = seconds
        self.jobs = jobs
        self.until = until
        self.calls = calls
        self.survivors: list[Mutant] = []
        self.noticed: list[Mutant] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Of many seeds the first ones."""
        seeds = [getattr(getattr(item, "callspec", None), "params", {}).get("seed", 0) for item in items]
        items[:] = [i for i, seed in zip(items, seeds, strict=True) if type(seed) is not int or seed < REPEATS]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Learn, then judge."""
        all_modules()
        gc.collect()
        live: dict[CodeType, list[FunctionType]] = defaultdict(list)
        caches = []
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(str(ROOT / "layoutproof")):
                live[thing.__code__].append(thing)
            if type(thing) is functools._lru_cache_wrapper:
                caches.append(thing)
        for cache in caches:
            cache.cache_clear()
        gc.freeze()
        learnt = self.learnt(session.items)
        with contextlib.suppress(ChildProcessError):
            self.judge(session.items, learnt, live)
        return True

    def learnt(self, items: Sequence[pytest.Item]) -> dict[str, Test]:
        """What each test calls, and how long it takes; without those that fail or take too long."""
        with tempfile.TemporaryDirectory() as folder:
            out = self.calls or Path(folder, "calls")
            out.touch()
            known = {json.loads(row)[0] for row in out.read_text().splitlines()}
            of_file: dict[Path, list[pytest.Item]] = defaultdict(list)
            for item in items:
                if item.nodeid not in known:
                    of_file[item.path].append(item)
            for own in of_file.values():
                while own:
                    _, status = os.waitpid(in_fork(functools.partial(learn, own, out)), 0)
                    done = len(out.read_text().splitlines()) - len(known)
                    known.update(item.nodeid for item in own[:done])
                    if not status:
                        break
                    # the test at which the fork was killed
                    with out.open("a") as file:
                        file.write(json.dumps([own[done].nodeid, 0, False, []]) + "\n")
                    known.add(own[done].nodeid)
                    own = own[done + 1 :]
            rows = out.read_text().splitlines()
        learnt = {}
        for row in rows:
            name, seconds, passed, calls = json.loads(row)
            if passed:
                learnt[name] = Test(seconds, frozenset((file, line) for file, line in calls))
        print(f"{len(items)} tests, {len(learnt)} of them pass within {LONGEST:g} s", flush=True)
        return learnt

    def judge(
        self, items: Sequence[pytest.Item], learnt: dict[str, Test], live: dict[CodeType, list[FunctionType]]
    ) -> None:
        """Judges each mutant in a fork, some of them at the same time."""
        start, running = time.monotonic(), {}
        waiting = list(reversed(self.mutants))
        by_name = {item.nodeid: item for item in items}
        while waiting or running:
            late = self.until and time.monotonic() - start > 60 * self.until
            if waiting and not late and len(running) < self.jobs:
                mutant = waiting.pop()
                of_function = [
                    (test.seconds, name)
                    for name, test in learnt.items()
                    if name in by_name
                    and any(f == mutant.file and mutant.lines[0] <= n <= mutant.lines[1] for f, n in test.calls)
                ]
                chosen, seconds = [], 0.0
                for taken, name in sorted(of_function):
                    seconds += taken
                    if seconds < self.seconds:
                        chosen.append((by_name[name], taken))
                running[in_fork(functools.partial(notices, mutant, chosen, live))] = mutant
                continue
            if late and not running:
                break
            process, status = os.wait()
            mutant = running.pop(process)
            (self.noticed if status else self.survivors).append(mutant)
            if not status:
                print(f"survives: {mutant}", flush=True)


def learn(items: Sequence[pytest.Item], out: Path) -> int:
    """Runs tests, and writes a line for each."""
    with out.open("a") as file:
        for item, following in zip(items, [*items[1:], None], strict=True):
            seen: dict[int, CodeType] = {}

            def called(frame, event, argument, seen=seen):  # type: ignore[no-untyped-def]
                seen[id(frame.f_code)] = frame.f_code

            signal.setitimer(signal.ITIMER_PROF, LONGEST)
            start = time.process_time()
            threading.settrace(called)
            sys.settrace(called)
            passed = _passes(item, following)
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            seconds = time.process_time() - start
            own = [
                (c.co_filename, c.co_firstlineno)
                for c in seen.values()
                if c.co_filename.startswith(str(ROOT / "layoutproof"))
            ]
            calls = sorted({(os.path.relpath(name, ROOT), line) for name, line in own})
            file.write(json.dumps([item.nodeid, round(seconds, 4), passed, calls]) + "\n")
            file.flush()
    return 0


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    from _pytest.runner import runtestprotocol

    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def notices(
    mutant: Mutant, tests: Sequence[tuple[pytest.Item, float]], live: dict[CodeType, list[FunctionType]]
) -> int:
    """1 where a test fails on a mutant, 0 where none does. What hangs is killed by a signal."""
    path = ROOT / mutant.file
    source = path.read_text()
    old = compile(ast.parse(source), str(path), "exec", dont_inherit=True)
    new = compile(mutated(source, mutant.place)[0], str(path), "exec", dont_inherit=True)
    for one, other in zip(codes(old), codes(new), strict=True):
        for function in live.get(one, ()):
            if function.__code__.co_filename == str(path):
                function.__code__ = other
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    for number, (item, seconds) in enumerate(tests):
        signal.setitimer(signal.ITIMER_PROF, 5 + 10 * seconds)
        signal.alarm(int(120 + 100 * seconds))
        following = tests[number + 1][0] if number + 1 < len(tests) else None
        if not _passes(item, following):
            return 1
    return 0


def main() -> int:
    """Make, run, print survivors and the score."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutants", type=int, default=595)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="parts, a file or a folder, as layoutproof/solvers/digits")
    parser.add_argument("--again", type=Path, help="the output of an earlier run, whose survivors are made once more")
    parser.add_argument("--seconds", type=float, default=TESTED, help="of tests that run for one mutant, at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--until", type=float, default=0, help="minutes after which no new mutant is begun; 0: never")
    parser.add_argument("--tests", nargs="+", default=POOL, help="files and folders of tests")
    parser.add_argument("--calls", type=Path, help="a file that keeps what each test calls")
    options = parser.parse_args()
    start, part_of = time.monotonic(), files()
    mutants = (
        again(options.again, options.only) if options.again else sample(options.seed, options.mutants, options.only)
    )
    mutation = Mutation(mutants, options.jobs, options.until, options.calls, options.seconds)
    os.chdir(ROOT)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    code = pytest.main(["-q", "-s", "-p", "no:cacheprovider", "--assert=plain", *options.tests], plugins=[mutation])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        print(f"the tests could not be collected: {code!r}")
        return 1
    met = Counter((part_of[m.file], True) for m in mutation.noticed)
    met += Counter((part_of[m.file], False) for m in mutation.survivors)
    for part in PARTS:
        if met[part, True] + met[part, False]:
            print(f"{part:<16} {met[part, True]:>4} noticed {met[part, False]:>4} survive")
    noticed, all_ = len(mutation.noticed), len(mutation.noticed) + len(mutation.survivors)
    score = f"{noticed} noticed, score {100 * noticed / max(1, all_):.1f} %"
    asked = f"of {options.again}" if options.again else f"seed {options.seed}"
    print(f"{asked}: {all_} mutants, {score}, {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
