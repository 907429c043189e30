"""What judges the calls of a repository: entries of spec files, commands of CI, tests under the pytest plugin.

What an entry names is judged with it. What it only uses, by name, is reached: whether its trace comes there is for
`layoutproof check` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.core.files import MAX_YAML, MIB, YAML_ENDS, read
from layoutproof.scanning.tree import Node, SourceTree
from layoutproof.specs.positions import Node as Value
from layoutproof.specs.positions import read_yaml
from layoutproof.specs.spec import read_spec
from layoutproof.specs.traced import KEY, is_traced

_CI = re.compile(
    r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml|\.circleci/[^/]+\.ya?ml|azure-pipelines\.ya?ml|Jenkinsfile"
    r"|\.pre-commit-config\.yaml|\.ci/.+|tox\.ini|noxfile\.py|Makefile|justfile"
)
_SETTINGS = ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini", "conftest.py")
_COMMAND = re.compile(r"\blayoutproof[ \t]+(check|ci|gate|kernels|same)\b([^\n;&|#]*)")
_INPUT = re.compile(r"\bcheck:[ \t]*[\"']?([^\"'\n,}]*)")
_PLUGIN = re.compile(r"--layoutproof\b(?!-)")
_OURS = re.compile(rb"(?m)^(kernels|programs|checks|layouts)\s*:")
_TEST = re.compile(r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py")


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that judges what a function does.

    place: where it is said, as `specs/a.yaml:12`.  what: the function as it is named there, or the tests.
    nodes: the functions of the tree that it leads to; none where no file of the tree has it.  checked: whether a claim
    asks about it; if not, the gate compares it, and that is all.  ci: the place in the settings of CI that runs it.
    """

    place: str
    what: str
    nodes: tuple[Node, ...]
    checked: bool
    ci: str = ""


@dataclass(frozen=True, slots=True)
class CiSettings:
    """What the settings of CI run of ours.

    paths: (place, path) of spec files and folders that are checked.  functions: (place, `module:function`).
    plugin: the places that run pytest with the plugin.
    """

    paths: tuple[tuple[str, str], ...] = ()
    functions: tuple[tuple[str, str], ...] = ()
    plugin: tuple[str, ...] = ()


def runs_in(tree: SourceTree) -> CiSettings:
    """What CI runs, by the text of its settings."""
    paths: list[tuple[str, str]] = []
    functions: list[tuple[str, str]] = []
    plugin: list[str] = []
    by_settings: list[str] = []
    pytest = False
    for file in tree.files:
        ci = _CI.fullmatch(file) is not None
        if not ci and file not in _SETTINGS:
            continue
        text = _text(tree.root / file)
        for number, line in enumerate(text.splitlines(), 1):
            place = f"{file}:{number}"
            if line.lstrip().startswith("#"):
                continue
            if _PLUGIN.search(line):
                (plugin if ci else by_settings).append(place)
            if ci:
                pytest = pytest or "pytest" in line
                for command, rest in _COMMAND.findall(line):
                    given = [word.strip("\"'") for word in rest.split() if not word.startswith("-")]
                    functions += [(place, word) for word in given if ":" in word and command in ("kernels", "same")]
                    if command in ("check", "ci"):
                        paths += [(place, word) for word in given or ["specs"]]
                if "layoutproof" in line.partition("uses:")[2].partition("@")[0]:
                    said = _INPUT.search(text, text.find(line))
                    paths += [(place, word) for word in (said[1] if said else "specs").split()]
    # options in the settings of pytest count where CI runs pytest
    return CiSettings(tuple(paths), tuple(functions), (*plugin, *(by_settings if pytest else ())))


def entries_of(tree: SourceTree, runs: CiSettings) -> Iterator[Entry]:
    """Every entry, of spec files first."""
    for file in tree.files:
        if file.endswith(YAML_ENDS):
            ci = next((place for place, path in runs.paths if _below(file, path)), "")
            yield from _in_spec(tree, file, ci)
    for place, named in runs.functions:
        yield Entry(place, named, _nodes(tree, named), True, place)
    tests = tuple(_tests(tree))
    if runs.plugin and tests:
        yield Entry(runs.plugin[0], "tests with pytest --layoutproof", tests, True, runs.plugin[0])


def _below(file: str, path: str) -> bool:
    path = path.removeprefix("./").rstrip("/")
    return path in ("", ".") or file == path or file.startswith(f"{path}/")


def _in_spec(tree: SourceTree, file: str, ci: str) -> Iterator[Entry]:
    """The functions that a spec file names under `kernels` and `programs`; nothing of a file that is none."""
    try:
        data = read(tree.root / file, MAX_YAML)
        if not _OURS.search(data):
            return
        root = read_yaml(data.decode(), file)
    except (LayoutError, ValueError):
        return
    asked = _asked(root, file)
    sections: Any = root.value if type(root.value) is dict else {}
    for section, key in (("kernels", "trace"), ("programs", "function")):
        node = sections.get(section)
        for name, value in node.value.items() if node is not None and type(node.value) is dict else ():
            said = value.plain()
            place = said.get(key) if isinstance(said, Mapping) else None
            if isinstance(place, str):
                checked = name in asked or place in asked
                yield Entry(f"{file}:{value.line}", place, _nodes(tree, place), checked, ci)


def _asked(root: Value, file: str) -> set[str]:
    """The names of programs, and the functions, that checks of a file are about."""
    found: set[str] = set()
    for check in read_spec(root, file)[0]:
        found.update(check.labels)
        traced = [layout for layout in check.layouts if is_traced(layout)]
        found.update(str(layout[KEY].get("trace")) for layout in traced)  # type: ignore[index]
    return found


def _nodes(tree: SourceTree, named: str) -> tuple[Node, ...]:
    """The function that `module:function` or `file.py:function` names."""
    where, _, name = named.rpartition(":")
    function = name.partition(".")[0]
    if where.endswith(".py"):
        file = where.removeprefix("./")
        module = tree.modules.get(file)
        found = tree.node(f"{module.name}.{function}") if module is not None else None
    else:
        found = tree.node(f"{where}.{function}")
    return (found,) if found is not None and found[1] else ()


def _tests(tree: SourceTree) -> Iterable[Node]:
    for file, module in tree.modules.items():
        if is_test(file):
            yield from ((file, function) for function in module.uses if function.lower().startswith("test"))


def is_test(file: str) -> bool:
    """Whether pytest looks for tests in a file, by its name.

    >>> is_test("a/test_b.py"), is_test("a/b.py")
    (True, False)
    """
    return _TEST.fullmatch(file) is not None


def _text(path: Path) -> str:
    try:
        return read(path, MIB).decode(errors="replace")
    except LayoutError:
        return ""
