"""Did a change of the ground floor change an answer? `python benchmarks/unchanged.py record FILE [--tree TREE]`, before
and after, and `python benchmarks/unchanged.py compare BEFORE AFTER` (exit code 1 where an answer differs).

A record is one line of JSON for each question, with all that is answered: verdict, counterexample, reason, fix,
figures, engine. Asked are
  specs: `layoutproof check --json` of each spec file, with its exit code;
  layouts, kernels: the random questions of `benchmarks/fuzz.py` of one seed (`--fuzz N`);
  pairs: every question about the wrong and the right kernels of `tests/bodies/pitfalls.py`, where jax is installed;
  public: every question about the records of public kernels (`tests/cases/public_kernels.jsonl.gz`).
`--only SECTION` asks one of them. `--tree` answers with the package of another checkout; the questions are always this
one's. A record that was stopped goes on where it stands.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["LAYOUTPROOF_CACHE"] = "off"
ROOT = Path(__file__).resolve().parents[1]
SEED = 20261123
SECTIONS = ("specs", "layouts", "kernels", "pairs", "public")

Question = tuple[str, Callable[[], Any]]


def specs() -> Iterator[Question]:
    """Each spec file of the suite."""
    from click.testing import CliRunner

    from layoutproof.cli.main import cli as command

    def ask(path: Path) -> Any:
        done = CliRunner().invoke(command, ["check", str(path), "--json"])
        return {"exit": done.exit_code, "said": json.loads(done.stdout) if done.stdout.startswith("{") else done.output}

    for path in sorted(Path("specs").glob("*.yaml")):
        yield path.name, partial(ask, path)


def layouts(count: int) -> Iterator[Question]:
    """Random questions about layouts."""
    from tests.questions import questions_at_random

    def ask(number: int) -> Any:
        found = questions_at_random.ask(SEED, number).found
        return None if found is None else found.as_dict()

    for number in range(count):
        yield str(number), partial(ask, number)


def kernels(count: int) -> Iterator[Question]:
    """Random questions about kernels with tables."""
    import random

    from tests.properties import kernels_at_random

    def ask(number: int) -> Any:
        rng = random.Random(f"{SEED}/{number}")
        return judged(kernels_at_random.any_kernel(rng), [rng.choice(kernels_at_random.PROPERTIES)])

    for number in range(count):
        yield str(number), partial(ask, number)


def pairs() -> Iterator[Question]:
    """Wrong and right kernels."""
    from layoutproof.pallas.from_jax.trace import kernels_of
    from tests.bodies.pitfalls import CASES

    def ask(name: str, wrong: bool) -> Any:
        built = CASES[name].build(wrong)
        return [judged(call) for call in kernels_of(built.fn, built.args, assume=CASES[name].assume)]

    for name in CASES:
        for wrong in (True, False):
            yield f"{name}/{'wrong' if wrong else 'right'}", partial(ask, name, wrong)


def public() -> Iterator[Question]:
    """Public kernels, as they were recorded."""
    from benchmarks.public_kernels import records, said_of

    def ask(line: str, origin: Any) -> Any:
        return [finding.as_dict() for finding in said_of(line, origin).findings]

    for k, (line, origin) in enumerate(records()):
        yield f"{k}/{origin['repository']}", partial(ask, line, origin)


def judged(kernel: Any, names: list[str] | None = None) -> Any:
    """All findings about a kernel, or why it is not modelled."""
    from layoutproof.kernel.kernel import Unmodelled
    from layoutproof.pallas.judge import judge

    if isinstance(kernel, Unmodelled):
        return str(kernel)
    return [finding.as_dict() for finding in (judge(kernel) if names is None else judge(kernel, names=names))]


def record(options: argparse.Namespace) -> int:
    """Ask what the file does not have, a line each."""
    sys.path[:0] = [str(options.tree.resolve()), str(ROOT)]
    os.chdir(ROOT)
    asked = {
        "specs": specs(),
        "layouts": layouts(options.fuzz * 4 // 5),
        "kernels": kernels(options.fuzz // 5),
        "pairs": pairs() if importlib.util.find_spec("jax") else iter(()),
        "public": public(),
    }
    known = answers(options.file) if options.file.exists() else {}
    with options.file.open("a") as out:
        for section in options.only or SECTIONS:
            for name, ask in asked[section]:
                if f"{section}/{name}" not in known:
                    try:
                        said = ask()
                    except Exception as error:
                        said = {"raised": f"{type(error).__name__}: {error}"}
                    text = json.dumps([f"{section}/{name}", said], default=str)
                    out.write(text.replace(f"{options.tree.resolve()}/", "").replace(f"{ROOT}/", "") + "\n")
                    out.flush()
    return 0


def answers(path: Path) -> dict[str, Any]:
    """The answers of a record by the names of the questions."""
    return dict(map(json.loads, path.read_text().splitlines()))


def compare(options: argparse.Namespace) -> int:
    """Print each answer that differs, and how many of each section do."""
    before, after = answers(options.before), answers(options.after)
    count, differ, raised = Counter[str](), Counter[str](), Counter[str]()
    for name in [*before, *(name for name in after if name not in before)]:
        section = name.partition("/")[0]
        count[section] += 1
        said = after.get(name)
        raised[section] += isinstance(said, dict) and "raised" in said
        for place, one, other in differences(before.get(name, "not asked"), after.get(name, "not asked"), name):
            differ[section] += 1
            print(f"{place}\n  before: {one}\n  after:  {other}")
    for section, number in count.items():
        print(f"{section}: {number} questions, {differ[section]} differences, {raised[section]} of them raise an error")
    return 1 if differ.total() else 0


def differences(one: Any, other: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """The places at which two answers differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            yield from differences(one.get(key), other.get(key), f"{place} {key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for k, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differences(left, right, f"{place}[{k}]")
    elif one != other:
        yield place, one, other


def main() -> int:
    """Record, or compare two records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    recorded = commands.add_parser("record")
    recorded.add_argument("file", type=Path)
    recorded.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose package answers")
    recorded.add_argument("--fuzz", type=int, default=20_000, help="random questions")
    recorded.add_argument("--only", choices=SECTIONS, action="append")
    recorded.set_defaults(run=record)
    compared = commands.add_parser("compare")
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    compared.set_defaults(run=compare)
    options = parser.parse_args()
    for name in ("file", "before", "after"):
        if hasattr(options, name):
            setattr(options, name, getattr(options, name).absolute())
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
