"""The packages, what each may import, and that neither packages nor files form a cycle."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from functools import cache

import pytest

import layoutproof
from tests.imports import cycles, files_graph, package_of, packages_graph, sources

pytestmark = pytest.mark.slow

PACKAGES: dict[str, set[str]] = {
    "core": set(),
    "compiler": {"core"},
    "hlotext": {"core"},
    "ir": {"core"},
    "kernel": {"core"},
    "properties": {"core"},
    "repairing": {"core"},
    "solvers": {"core"},
    "bodies": {"core", "ir", "kernel", "solvers"},
    "values": {"bodies", "core", "ir", "solvers"},
    "hardware": {"core", "kernel"},
    "known_bugs": {"bodies", "core", "hardware", "hlotext", "kernel"},
    "layouts": {"core", "kernel"},
    "algebra": {"core", "layouts", "solvers"},
    "operators": {"algebra", "core", "layouts"},
    "registry": {"core", "hardware", "layouts", "operators", "properties"},
    "pallas": {
        "bodies", "compiler", "core", "hardware", "hlotext", "ir", "kernel", "known_bugs", "registry", "solvers",
    },
    "questions": {
        "compiler", "core", "hardware", "ir", "kernel", "layouts", "pallas", "registry", "solvers", "values",
    },
    "pictures": {"compiler", "core", "kernel", "layouts", "properties", "questions", "registry"},
    "formats": {"core", "pictures", "questions", "registry"},
    "hlo": {"core", "hlotext", "ir", "kernel", "layouts", "pallas", "questions"},
    "from_hlo": {"core", "hlo", "hlotext", "ir", "kernel", "layouts", "pallas", "questions", "values"},
    "messages": {"core", "hardware", "hlo", "layouts", "questions", "registry"},
    "mosaic": {"compiler", "core", "hardware", "hlo", "hlotext", "ir", "kernel", "messages", "pallas", "questions"},
    "programs": {
        "compiler", "core", "from_hlo", "hardware", "hlo", "hlotext", "ir", "kernel", "known_bugs", "layouts", "mosaic",
        "pallas", "questions", "values",
    },
    "specs": {
        "compiler", "core", "kernel", "layouts", "pallas", "programs", "questions", "registry", "solvers",
    },
    "scanning": {"core", "specs"},
    "crosschecks": {
        "compiler", "core", "from_hlo", "hardware", "hlotext", "kernel", "layouts", "pallas", "programs", "questions",
        "registry", "solvers", "specs", "values",
    },
    "searching": {
        "compiler", "core", "hardware", "hlo", "kernel", "layouts", "mosaic", "pallas", "questions",
        "registry", "solvers", "specs",
    },
    "gating": {
        "compiler", "core", "hlo", "hlotext", "kernel", "pallas", "programs", "properties", "questions", "registry",
        "solvers", "specs",
    },
    "answers": {
        "gating", "compiler", "core", "crosschecks", "formats", "hardware", "hlo", "hlotext", "kernel", "layouts",
        "messages", "mosaic", "pallas", "pictures", "programs", "questions", "registry", "repairing", "scanning",
        "searching", "specs",
    },
    "serving": {"compiler", "core"},
    "cli": {
        "answers", "gating", "compiler", "core", "formats", "hlo", "kernel", "pallas", "programs", "questions",
        "registry", "serving", "solvers", "specs", "searching",
    },
}  # fmt: skip
"""Package -> what it may import, the lowest first: each entry names earlier ones only, so the table has no cycle."""


UPWARDS = {
    ("layoutproof.registry.catalogue", "layoutproof.pallas.rules"),
    ("layoutproof.core.shown", "layoutproof.pictures.notebook"),
}
"""(module, what it finds by name although it lies above): the rules of kernels, and how each type is drawn."""


def broken_table(table: dict[str, set[str]]) -> list[str]:
    """Packages that may import one which does not stand above them in the table."""
    above: set[str] = set()
    bad = []
    for name, allowed in table.items():
        bad += [f"{name} -> {other}" for other in sorted(allowed - above)]
        above.add(name)
    return bad


def broken_imports(modules: dict[str, str]) -> list[str]:
    """Imports that the table does not allow."""
    return [
        f"{name} -> {other}"
        for name, wanted in files_graph(modules).items()
        for other in sorted(wanted)
        if package_of(other) not in PACKAGES[package_of(name)] | {package_of(name)}
    ]


def test_the_table_has_no_cycle_and_no_idle_entry() -> None:
    """Each package names lower ones only, and only those that it imports."""
    assert broken_table(PACKAGES) == []
    graph = packages_graph(sources())
    assert set(graph) == set(PACKAGES)
    assert {name: allowed - graph[name] for name, allowed in PACKAGES.items() if allowed - graph[name]} == {}


def test_imports_keep_to_the_table() -> None:
    """No file imports from a package that its own may not, inside functions included."""
    assert broken_imports(sources()) == []


@cache
def texts_in(source: str) -> frozenset[str]:
    """The texts in a module."""
    nodes = ast.walk(ast.parse(source))
    return frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def lookups(modules: dict[str, str]) -> set[tuple[str, str]]:
    """Modules of this package that a file names in a text, where its own package may not import theirs."""
    found = set()
    for name, source in modules.items():
        for text in texts_in(source) & (set(modules) | {f"layoutproof.{package}" for package in PACKAGES}):
            if package_of(text) not in PACKAGES[package_of(name)] | {package_of(name)}:
                found.add((name, text))
    return found


def test_what_is_found_by_name_above_is_listed() -> None:
    """Two look-ups by name go up, and no other; one that is planted is found."""
    assert lookups(sources()) == UPWARDS
    modules = sources()
    modules["layoutproof.core.term"] += '\nimportlib.import_module("layoutproof.questions.ask")\n'
    assert lookups(modules) == {*UPWARDS, ("layoutproof.core.term", "layoutproof.questions.ask")}


def test_packages_form_no_cycle() -> None:
    """As they are, not only as the table has them."""
    assert cycles(packages_graph(sources())) == []


def test_files_form_no_cycle() -> None:
    """Nor do files, imports inside functions included."""
    assert cycles(files_graph(sources())) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("layoutproof.core.term", "from layoutproof.questions.ask import ask"),
        ("layoutproof.specs.check", "def f():\n    import layoutproof.cli.main"),
        ("layoutproof.properties.injective", "from layoutproof import solvers"),
        ("layoutproof.layouts.strided", "from ..questions import ask"),
    ],
)
def test_a_planted_back_edge_is_found(module: str, line: str) -> None:
    """Also inside a function and when relative; a package that is named alone counts as imported."""
    modules = sources()
    modules[module] += f"\n{line}\n"
    assert broken_imports(modules) != []


def test_a_planted_cycle_of_files_is_found() -> None:
    modules = sources()
    modules["layoutproof.core.errors"] += "\ndef f():\n    from layoutproof.core.term import Term\n"
    assert any("layoutproof.core.errors" in group for group in cycles(files_graph(modules)))


def test_each_package_says_what_it_is_and_where_to_start() -> None:
    """Its `__init__` is for a reader who comes for the first time."""
    modules = sources()
    for name in PACKAGES:
        text = ast.get_docstring(ast.parse(modules[f"layoutproof.{name}"])) or ""
        assert len(text) > 60, name


def test_no_package_has_the_name_of_a_public_function() -> None:
    """A package named `ask` would stand where `lp.ask` stood, once somebody imports it; `algebra` is itself public."""
    assert set(PACKAGES) & set(layoutproof.__all__) == {"algebra"}
    assert layoutproof.algebra is sys.modules["layoutproof.algebra"]


@pytest.mark.parametrize("backwards", [False, True])
def test_public_names_survive_every_import(backwards: bool) -> None:
    """Whatever submodules were imported, and in whatever order, every public name is still what it was."""
    code = f"""
import importlib, pkgutil, types
import layoutproof as lp
names = sorted(m.name for m in pkgutil.walk_packages(lp.__path__, "layoutproof."))
for name in names[:: -1 if {backwards} else 1]:
    if not name.endswith(("__main__", "pytest_plugin")):
        importlib.import_module(name)
face = {{name: getattr(lp, name) for name in lp.__all__}}
print([name for name, value in face.items() if not callable(value)], len(names) > 200)
operations = [(kind, name) for kind in ("axe", "cute") for name in getattr(lp.algebra, kind).__all__]
print([each for each in operations if isinstance(getattr(getattr(lp.algebra, each[0]), each[1]), types.ModuleType)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "['__version__', 'algebra'] True\n[]\n", done.stderr


def test_every_module_can_be_found() -> None:
    """No folder lacks its `__init__`."""
    found = {m.name for m in pkgutil.walk_packages(layoutproof.__path__, "layoutproof.")}
    assert set(sources()) <= found
