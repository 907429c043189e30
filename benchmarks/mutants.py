"""Faults at random in what decides: do tests notice? `python benchmarks/mutants.py --mutants 500 --seed 1 --jobs 2`.

A mutant is one operator, comparison, number, condition or truth value of one module changed, in a copy of the committed
tree; the tests of that module run on it, in a process of its own with a time limit. A mutant that no test notices
survives, and is printed with its place. The score is the share that is noticed; what hangs is noticed. Some survivors
are no faults: they change how long something takes, or a text. The exit code is 0: the reader of survivors decides.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]

SOLVERS = "tests/solvers/test_"
KERNELS = "tests/properties/test_kernel_"
TESTS = {
    "layoutproof/solvers/digits": (f"{SOLVERS}digits.py", f"{SOLVERS}replicas.py", f"{SOLVERS}sizes.py"),
    "layoutproof/solvers/bits": (f"{SOLVERS}bits.py",),
    "layoutproof/solvers/decide.py": ("tests/questions/test_decide.py", f"{SOLVERS}growing.py"),
    "layoutproof/solvers/brute.py": (f"{SOLVERS}brute.py", f"{SOLVERS}tables.py"),
    "layoutproof/solvers/tables.py": (f"{SOLVERS}tables.py",),
    "layoutproof/solvers/sizes.py": (f"{SOLVERS}sizes.py",),
    "layoutproof/core/index_map.py": ("tests/properties/test_faults.py", "tests/questions/test_pad_reshape.py"),
    "layoutproof/layouts/strided.py": ("tests/layouts/test_map_and_strided.py",),
    "layoutproof/layouts/linear.py": ("tests/layouts/test_linear.py",),
    "layoutproof/properties": ("tests/properties/test_faults.py", "tests/properties/test_replicas.py"),
    "layoutproof/pallas/rules": (f"{KERNELS}faults.py", f"{KERNELS}fuzz.py", "tests/pallas/rules"),
    "layoutproof/bodies": ("tests/bodies/test_pitfalls.py", "tests/bodies/test_primitives.py"),
}
"""Module or folder -> the tests that should notice; the first entry that a file begins with counts."""

BODY_RULES = (
    "body_in_bounds",
    "body_races",
    "dma_order",
    "initialised",
    "multiple_of",
    "outputs_stored",
    "undefined_values",
)

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
    """One change of one file: the number of the place in it, the line, what stood there and what stands there now."""

    file: str
    place: int
    line: int
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.was}  ->  {self.now}"


def places(tree: ast.Module) -> Iterator[ast.AST]:
    """What can be changed: inside functions, no annotations, texts, errors or assertions."""

    def inside(node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
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
            for statement in function.body:
                if not isinstance(statement, ast.FunctionDef):
                    yield from inside(statement)


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


def mutated(source: str, place: int) -> tuple[str, int, str, str]:
    """The source with one place changed: (source, line, what stood there, what stands there)."""
    tree = ast.parse(source)
    node = list(places(tree))[place]
    was, line = ast.unparse(node), node.lineno  # type: ignore[attr-defined]
    changed(node)
    return ast.unparse(ast.fix_missing_locations(tree)), line, was, ast.unparse(node)


def tests_of(file: str) -> tuple[str, ...]:
    """The tests that should notice a fault in a file; () for files that are not asked about."""
    if Path(file).stem in BODY_RULES:
        return TESTS["layoutproof/bodies"]
    return next((tests for start, tests in TESTS.items() if file == start or file.startswith(f"{start}/")), ())


def sample(seed: int, count: int, only: str) -> list[Mutant]:
    """Mutants of all files, each place as likely as another."""
    files = [str(p.relative_to(ROOT)) for p in sorted((ROOT / "layoutproof").rglob("*.py"))]
    files = [f for f in files if tests_of(f) and f.startswith(only)]
    sources = {f: (ROOT / f).read_text() for f in files}
    every = [(f, k) for f in files for k in range(len(list(places(ast.parse(sources[f])))))]
    chosen = random.Random(seed).sample(every, min(count, len(every)))
    return [Mutant(f, k, *mutated(sources[f], k)[1:]) for f, k in chosen]


def survives(mutant: Mutant, tree: Path, seconds: float) -> bool:
    """Whether the tests of a module pass on a mutant of it, which is put into a tree and taken out again."""
    path = tree / mutant.file
    source = path.read_text()
    path.write_text(mutated(source, mutant.place)[0])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests_of(mutant.file)]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    else:
        return done.returncode == 0
    finally:
        path.write_text(source)


def main() -> int:
    """Make, run, print survivors and the score."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a file or folder, as layoutproof/solvers/digits")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=600, help="time limit of the tests of one mutant")
    parser.add_argument("--until", type=float, default=0, help="minutes after which no new mutant is begun; 0: never")
    options = parser.parse_args()
    start, trees = time.monotonic(), Queue[Path]()
    met: Counter[tuple[str, bool]] = Counter()

    def judged(mutant: Mutant) -> None:
        if options.until and time.monotonic() - start > 60 * options.until:
            return
        tree = trees.get()
        try:
            survived = survives(mutant, tree, options.seconds)
        finally:
            trees.put(tree)
        met[str(Path(mutant.file).parent), survived] += 1
        if survived:
            print(f"survives: {mutant}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.jobs):
            tree = Path(folder, str(number))
            tree.mkdir()
            archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
            subprocess.run(["tar", "x", "-C", str(tree)], input=archive, check=True)
            trees.put(tree)
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(judged, sample(options.seed, options.mutants, options.only)))
    for part in sorted({part for part, _ in met}):
        print(f"{part:<36} {met[part, False]:>4} noticed {met[part, True]:>4} survive")
    noticed, all_ = sum(count for (_, survived), count in met.items() if not survived), sum(met.values())
    print(f"seed {options.seed}: {all_} mutants, {noticed} noticed, score {100 * noticed / max(1, all_):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
