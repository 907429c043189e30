"""What `docs/architecture.md` shows of the packages, made from the code: a graph of their imports, and their lines.

    python -m tests.package_graph

writes both anew, each between its markers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.imports import package_of, packages_graph, sources

PAGE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"


def without_transitive(graph: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """An acyclic graph without the edges that a longer way says too.

    >>> without_transitive({"a": {"b", "c"}, "b": {"c"}, "c": ()}) == {"a": {"b"}, "b": {"c"}, "c": set()}
    True
    """
    below: dict[str, set[str]] = {}

    def reached(node: str) -> set[str]:
        if node not in below:
            below[node] = set().union(*({other} | reached(other) for other in graph[node]))
        return below[node]

    return {
        node: {other for other in others if not any(other in reached(between) for between in others)}
        for node, others in graph.items()
    }


def picture(modules: Mapping[str, str]) -> str:
    """The packages as a Mermaid graph; an arrow is an import, and what a longer way says too is left out."""
    graph = without_transitive(packages_graph(modules))
    edges = [f"  {name} --> {other}" for name in sorted(graph) for other in sorted(graph[name])]
    return "\n".join(["```mermaid", "graph TD", *edges, "```"])


def rows(modules: Mapping[str, str]) -> list[tuple[str, int, str]]:
    """(package, its lines, what its `__init__` says that it is), by name: a few lines more move no row."""
    lines = dict.fromkeys(packages_graph(modules), 0)
    for name, source in modules.items():
        lines[package_of(name)] += source.count("\n")
    return [
        (name, lines[name], (ast.get_docstring(ast.parse(modules[f"layoutproof.{name}"])) or "").split("\n")[0])
        for name in sorted(lines)
    ]


def table(modules: Mapping[str, str]) -> str:
    """The rows as Markdown."""
    found = rows(modules)
    whole = sum(lines for _, lines, _ in found)
    shown = [f"| {name} | {lines:,} | {100 * lines / whole:.0f} % | {what} |" for name, lines, what in found]
    return "\n".join(["| package | lines | of all | what it is |", "|---|---:|---:|---|", *shown])


def part(page: str, name: str, new: str | None = None) -> str:
    """What stands between a page's markers `<!-- NAME -->` and `<!-- end of NAME -->`; with `new`, the page with that.

    >>> part("<!-- a -->\\nold\\n<!-- end of a -->", "a")
    'old'
    """
    head, begin, rest = page.partition(f"<!-- {name} -->\n")
    old, end, tail = rest.partition(f"\n<!-- end of {name} -->")
    if not begin or not end:
        raise ValueError(f"the page has no markers for {name}")
    return old if new is None else f"{head}{begin}{new}{end}{tail}"


def renewed(page: str, modules: Mapping[str, str]) -> str:
    """The page with the graph and the table of today's code."""
    return part(part(page, "graph", picture(modules)), "lines", table(modules))


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8"), sources()), "utf-8")
