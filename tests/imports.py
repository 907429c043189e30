"""The import graph of the package, read out of its source: every import at any depth, also inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import layoutproof

PACKAGE = Path(layoutproof.__file__).parent


@cache
def imports_of(source: str, package: str) -> tuple[str, ...]:
    """Absolute names of everything a module imports, at any depth; relative imports resolved against `package`."""
    return imports_in(ast.parse(source), package)


def imports_in(tree: ast.AST, package: str) -> tuple[str, ...]:
    """The same of a module that was parsed."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            found += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return tuple(found)


def sources() -> dict[str, str]:
    """Dotted name -> source of every module; the face `layoutproof` itself and `__main__` are left out."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if len(parts) > 2:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text("utf-8")
    return found


def files_graph(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Module -> the modules that it imports; `from package import module` is an import of the module."""
    packages = {name.rpartition(".")[0] for name in modules}
    graph = {}
    for name, source in modules.items():
        package = name if name in packages else name.rpartition(".")[0]
        named = imports_of(source, package)
        wanted = {x for x in named if x in modules}
        # `from package import module` needs no more than the module
        wanted -= {x for x in wanted & packages if any(y.startswith(f"{x}.") for y in wanted)}
        graph[name] = wanted - {name}
    return graph


def package_of(module: str) -> str:
    """`layoutproof.core.term` is of `core`."""
    return module.split(".")[1]


def packages_graph(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Package -> the packages that its files import."""
    graph: dict[str, set[str]] = {package_of(name): set() for name in modules}
    for name, wanted in files_graph(modules).items():
        graph[package_of(name)] |= {package_of(other) for other in wanted} - {package_of(name)}
    return graph


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The groups of nodes that reach each other, each sorted."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for other in graph.get(todo.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return seen

    reach = {node: reached(node) for node in graph}
    groups = {tuple(sorted(m for m in reach[n] if n in reach.get(m, ()))) for n in graph if n in reach[n]}
    return [list(group) for group in sorted(groups)]
