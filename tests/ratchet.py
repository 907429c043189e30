"""What may only become less, measured from the code: functions that are hard to read, `Any` in signatures, names of
classes that mean two things, sentences of the product that tests repeat.

    python -m tests.ratchet

writes `tests/ratchet.json` anew where the numbers have fallen, and refuses where one has grown.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.imports import package_of, sources
from tests.sentences import repeated

RECORD = Path(__file__).with_suffix(".json")
COMPLEX = 25
"""Cyclomatic complexity (decisions and 1) above which a function is listed by its name."""

DECISIONS = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.comprehension, ast.Assert, ast.match_case)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Measured(NamedTuple):
    """complex: `module:function` -> its complexity, of those above `COMPLEX`.

    any: of each package, how many functions have `Any` in their signature.  doubled: public names of classes -> the
    modules that have one of that name.  sentences: of each folder of tests, how many sentences of the product it has.
    """

    complex: dict[str, int]
    any: dict[str, int]
    doubled: dict[str, list[str]]
    sentences: dict[str, int]


def own(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function, without the functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*FUNCTIONS, ast.Lambda)):
            yield child
            yield from own(child)


def complexity(node: ast.AST) -> int:
    """Decisions and 1.

    >>> complexity(ast.parse("def f(x):\\n  return 1 if x and x > 2 else [y for y in x]").body[0])
    4
    """
    inside = list(own(node))
    branches = sum(len(each.values) - 1 for each in inside if isinstance(each, ast.BoolOp))
    return 1 + branches + sum(isinstance(each, DECISIONS) for each in inside)


def loose(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function's signature has `Any` in it."""
    said = [node.returns, *(each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg))]
    return any(
        isinstance(each, ast.Name) and each.id == "Any" for note in said if note is not None for each in ast.walk(note)
    )


def measured(modules: Mapping[str, str], tests: Mapping[str, str]) -> Measured:
    """What the sources of modules have. modules: dotted name -> source.  tests: path below `tests` -> source."""
    hard: dict[str, int] = {}
    many: Counter[str] = Counter()
    classes: defaultdict[str, list[str]] = defaultdict(list)
    for module, source in modules.items():
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS):
                many[package_of(module)] += loose(node)
                if complexity(node) > COMPLEX:
                    name = f"{module}:{node.name}"
                    hard[name] = max(complexity(node), hard.get(name, 0))
        for each in tree.body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                classes[each.name].append(module)
    doubled = {name: where for name, where in sorted(classes.items()) if len(where) > 1}
    loosely = {name: count for name, count in sorted(many.items()) if count}
    return Measured(hard, loosely, doubled, repeated(modules.values(), tests))


def suite() -> dict[str, str]:
    """Path below `tests` -> source of every module of tests."""
    folder = RECORD.parent
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}


def recorded() -> Measured:
    """What was there when somebody looked last."""
    return Measured(**json.loads(RECORD.read_text()))


def grown(before: Measured, now: Measured) -> list[str]:
    """What has become more, one line each; a function that has moved to another module is the one that it was."""
    lines = []
    gone = {name.partition(":")[2]: count for name, count in before.complex.items() if name not in now.complex}
    for name, count in now.complex.items():
        bound = before.complex.get(name) or gone.get(name.partition(":")[2], COMPLEX)
        if count > bound:
            had = f"it had {bound}" if name in before.complex else f"above {COMPLEX}"
            lines.append(f"{name} has complexity {count}, {had}: split it")
    lines += [
        f"{name} has {count} functions with Any in their signature, it had {before.any.get(name, 0)}: say the type"
        for name, count in now.any.items()
        if count > before.any.get(name, 0)
    ]
    lines += [
        f"{' and '.join(where)} have a class {name} each: one name, one meaning"
        for name, where in now.doubled.items()
        if len(where) > len(before.doubled.get(name, ()))
    ]
    lines += [
        f"tests/{name} repeats {count} sentences of the product, it had {before.sentences.get(name, 0)}: assert the "
        "message's id and its numbers (core/message.py); the words are in tests/golden/messages.md"
        for name, count in now.sentences.items()
        if count > before.sentences.get(name, 0)
    ]
    return lines


def main() -> None:
    """Write the record where it has fallen."""
    now = measured(sources(), suite())
    more = grown(recorded(), now) if RECORD.exists() else []
    if more:
        sys.exit("\n".join(more))
    ordered = now._replace(complex=dict(sorted(now.complex.items(), key=lambda row: (-row[1], row[0]))))
    RECORD.write_text(json.dumps(ordered._asdict(), indent=1) + "\n")


if __name__ == "__main__":
    main()
