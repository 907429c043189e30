"""Sentences of the product that tests repeat: whoever betters one has to better them all.

A sentence is a string of five words or more that has four words in a row of a text that the product writes; a number
or a name that is filled in is any one word. A string that stands on several lines is as many.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

WORDS = 5
ROW = 4
"""Words in a row; of them at most one is filled in."""
HOLE = "{}"
NAMED = re.compile(r"\{[a-z_]\w*(?:![rsa])?(?::[^{}]*)?\}")
"""A hole of a template (`core.message`)."""
WORD = re.compile(r"['\"(]?[A-Za-z][a-z-]*(?:'s)?[,;:.?)'\"]*")

Row = tuple[str, ...]


def texts(tree: ast.AST) -> Iterator[str]:
    """The strings of a module that are no docstrings; `HOLE` stands for what is filled in.

    >>> list(texts(ast.parse("'not this'; f(f'{a} is at {b}', 'one')")))
    ['{} is at {}', 'one']
    """
    whole = isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant)
    if isinstance(tree, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else HOLE for part in tree.values)
        return
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    for child in () if whole else ast.iter_child_nodes(tree):
        yield from texts(child)


def rows(text: str) -> Iterator[Row]:
    """Each four words in a row."""
    words = text.split()
    yield from (tuple(words[k : k + ROW]) for k in range(len(words) - ROW + 1))


def written(modules: Iterable[str]) -> set[Row]:
    """The rows that the product writes. modules: sources.

    >>> sorted(written(["f(f'grid dimension {k} has {n} programs')"]))
    [('grid', 'dimension', '{}', 'has')]
    """
    found = set()
    for source in modules:
        for text in texts(ast.parse(source)):
            for row in rows(NAMED.sub(HOLE, text)):
                shown = tuple(HOLE if HOLE in word else word for word in row)
                if sum(bool(WORD.fullmatch(word)) for word in shown) >= ROW - 1 and shown.count(HOLE) <= 1:
                    found.add(shown)
    return found


def repeats(text: str, product: set[Row]) -> bool:
    """Whether a text of a test is a sentence of the product.

    >>> repeats("grid dimension 0 has 3 programs", {("grid", "dimension", "{}", "has")})
    True
    """
    if len(text.split()) < WORDS:
        return False
    return any(
        row in product or any((*row[:k], HOLE, *row[k + 1 :]) in product for k in range(ROW)) for row in rows(text)
    )


def sentences(text: str, product: set[Row]) -> int:
    """How many of a text's lines are sentences of the product."""
    return sum(repeats(line, product) for line in text.splitlines())


def repeated(product: Iterable[str], tests: Mapping[str, str]) -> dict[str, int]:
    """How many sentences of the product each folder of tests has. product: sources.  tests: path -> source."""
    known = written(product)
    counted: Counter[str] = Counter()
    for path, source in tests.items():
        folder = path.partition("/")[0] if "/" in path else "."
        counted[folder] += sum(sentences(text, known) for text in texts(ast.parse(source)))
    return {folder: count for folder, count in sorted(counted.items()) if count}
