"""Every module is there for somebody: a command, a public name, the pytest plugin, or a look-up by file name.

An import inside a function counts, one for types alone does not; neither do tests, benchmarks and notebooks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache

import pytest

from tests.imports import imports_in, sources

pytestmark = pytest.mark.slow

FACE = "layoutproof"
ROOTS = ("layoutproof.cli.main", "layoutproof.cli.pytest_plugin", "layoutproof.algebra")
"""What pyproject.toml names, and the one package whose functions are called by their own name alone."""

BY_FILE_NAME = (
    *("algebra", "cli.commands", "formats", "hardware", "layouts", "operators", "pallas.rules", "properties"),
    *("crosschecks.sources", "messages.readers", "questions.conversions"),
)
"""Packages of which each file is found by its name, as `docs/architecture.md` says; algebra is public as it is."""

LOADERS = {"import_module", "Popen", "with_name"}
"""A file that calls one of these may name another in a text."""


def at_run_time(source: str) -> ast.Module:
    """The module without what only type checkers read."""

    class Cut(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
            self.generic_visit(node)
            return node.orelse if ast.unparse(node.test).endswith("TYPE_CHECKING") else node

    tree = ast.parse(source)
    return tree if "TYPE_CHECKING" not in source else Cut().visit(tree)  # type: ignore[no-any-return]


def texts(tree: ast.Module) -> set[str]:
    """The texts in a module that may name another one, also as `module:function`."""
    nodes = list(ast.walk(tree))
    called = {getattr(n.func, "attr", getattr(n.func, "id", "")) for n in nodes if isinstance(n, ast.Call)}
    found = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    named = {text.partition(":")[0].removesuffix(".py") for text in found}
    return named if called & LOADERS else {t for t in named if FACE in t}


@cache
def named_in(source: str, package: str) -> tuple[str, ...]:
    """The names under which a module imports or loads others; faults are planted often, so each source is read once."""
    tree = at_run_time(source)
    in_texts = [candidate for t in texts(tree) for candidate in (t, f"{FACE}.{t}", f"{package}.{t}")]
    return (*imports_in(tree, package), *in_texts)


def unreached(modules: Mapping[str, str], roots: Iterable[str]) -> list[str]:
    """The modules that nothing which starts at the roots imports or names."""
    packages = {name.rpartition(".")[0] for name in modules}
    todo, seen = list(roots), set[str]()
    while todo:
        name = todo.pop()
        if name in seen or name not in modules:
            continue
        seen.add(name)
        todo += named_in(modules[name], name if name in packages else name.rpartition(".")[0])
        # a module's package runs before it
        todo.append(name.rpartition(".")[0])
        if name.removeprefix(f"{FACE}.") in BY_FILE_NAME:
            todo += [other for other in modules if other.startswith(f"{name}.")]
    return sorted(set(modules) - seen)


def everything() -> dict[str, str]:
    """All modules and the face of the package."""
    import layoutproof

    with open(layoutproof.__file__, encoding="utf-8") as file:
        return {FACE: file.read(), **sources()}


@pytest.mark.fast
def test_every_module_is_reached() -> None:
    """What only tests, benchmarks or notebooks call belongs to them."""
    assert unreached(everything(), (FACE, *ROOTS)) == []


@pytest.mark.fast
@pytest.mark.parametrize("name", [f"layoutproof.{package}.oracle" for package in ("questions", "pallas", "core")])
def test_a_planted_oracle_is_found(name: str) -> None:
    """Also where other modules import it for their types only, and where its own tests name it."""
    modules = everything()
    modules[name] = "from layoutproof.core.errors import LayoutError\n"
    modules["layoutproof.questions.ask"] += f"\nif TYPE_CHECKING:\n    import {name}\n"
    assert unreached(modules, (FACE, *ROOTS)) == [name]


@pytest.mark.fast
def test_a_module_in_use_is_missed_when_its_command_goes() -> None:
    """The check can fail: without the commands `schema` and `serve` what they print is reached by nobody."""
    modules = everything()
    del modules["layoutproof.cli.commands.schema"], modules["layoutproof.cli.commands.serve"]
    left = unreached(modules, (FACE, *ROOTS))
    assert "layoutproof.cli.documents" in left
