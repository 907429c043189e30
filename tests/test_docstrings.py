"""Public docstrings are Google style: a reference generator reads every parameter, what comes back, an example.

Public is what `lp.__all__` leads to, and what somebody writes who adds a language, a property, a target or a format.
"""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import layoutproof as lp
from layoutproof.core import claim, index_map, numbers, space
from layoutproof.kernel import kernel, obligation
from layoutproof.registry import read

PROTOCOLS: tuple[Any, ...] = (
    *(index_map.IndexMap, index_map.Memory, index_map.row_major, index_map.from_row_major),
    *(numbers.Numbers, space.Space, claim.Claim, claim.At, obligation.Obligation),
    *(obligation.Settled, obligation.by_rule, obligation.undecided, obligation.for_each_operand),
    *(kernel.KernelTarget, read.Layout),
)
"""What the code of a third party is written with."""

WRITTEN = {"properties": ("claims", "figures", "counted"), "formats": ("render",), "layouts": ("read", "looks_like")}
"""The functions that such a file has, by package."""

SECTION = re.compile(r"(Args|Attributes|Returns|Yields|Raises|Source|Example):(?: .*)?")
ENTRY = re.compile(r"    \*{0,2}(\w+): \S")
ORDER = ("Args", "Attributes", "Returns", "Yields", "Raises", "Source", "Example")


def sections(text: str) -> dict[str, list[str]]:
    """The lines below each header of a docstring, by header."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in inspect.cleandoc(text).splitlines():
        header = SECTION.fullmatch(line)
        if header is not None:
            name = header[1]
            assert name not in found, f"two sections are called {name}"
            found[name] = []
        elif name and line.startswith((" ", "")) and (line.startswith(" ") or not line):
            found[name].append(line)
        else:
            name = ""
    return found


def named(lines: list[str]) -> list[str]:
    """The names that the entries of a section start with."""
    return [entry[1] for line in lines if (entry := ENTRY.match(line)) is not None]


def problem(what: Any) -> str:
    """What a generator of reference pages would miss in one docstring, or ""."""
    text = what.__doc__ or ""
    if not text.strip():
        return "it has no docstring"
    try:
        found = sections(text)
    except AssertionError as error:
        return str(error)
    if list(found) != sorted(found, key=ORDER.index):
        return f"its sections are {', '.join(found)}; their order is {', '.join(ORDER)}"
    if re.search(r"\bRaises [A-Z]\w+", text):
        return "what it raises stands in its prose"
    if inspect.isclass(what):
        if not dataclasses.is_dataclass(what):
            return ""
        fields = [f.name for f in dataclasses.fields(what) if not f.name.startswith("_")]
        said = named(found.get("Attributes", []))
        return "" if said == fields else f"its attributes are {fields}, and Attributes says {said}"
    signature = inspect.signature(what)
    wanted = [name for name in signature.parameters if name not in ("self", "cls")]
    said = named(found.get("Args", []))
    if said != wanted:
        return f"its parameters are {wanted}, and Args says {said}"
    nothing = signature.return_annotation in (None, "None", "NoReturn", inspect.Signature.empty)
    if not nothing and not {"Returns", "Yields"} & set(found):
        return "it does not say what it returns"
    return ""


def members(what: Any) -> Iterator[Any]:
    """A function; or a class and its own public methods."""
    yield what
    if inspect.isclass(what):
        for name, method in vars(what).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                yield method


def modules(package: str) -> Iterator[Any]:
    """The modules right below a package, less its private ones."""
    whole = importlib.import_module(f"layoutproof.{package}")
    for found in pkgutil.iter_modules(whole.__path__):
        if not found.name.startswith("_"):
            yield importlib.import_module(f"layoutproof.{package}.{found.name}")


def public() -> dict[str, Any]:
    """Everything whose docstring is held, by name."""
    roots = [getattr(lp, name) for name in lp.__all__ if name != "__version__"]
    found: dict[str, Any] = {}
    algebra = [getattr(lp.algebra.axe, n) for n in lp.algebra.axe.__all__]
    algebra += [getattr(lp.algebra.cute, n) for n in lp.algebra.cute.__all__]
    operations = [one for one in algebra if inspect.isfunction(one)]
    for root in (*(r for r in roots if not inspect.ismodule(r)), *operations, *PROTOCOLS):
        for one in members(inspect.unwrap(root) if inspect.isfunction(root) else root):
            found[f"{one.__module__.removeprefix('layoutproof.')}.{one.__qualname__}"] = one
    for package, functions in WRITTEN.items():
        for module in modules(package):
            for name in functions:
                one = getattr(module, name, None)
                if inspect.isfunction(one):
                    found[f"{one.__module__.removeprefix('layoutproof.')}.{name}"] = one
    return found


@pytest.mark.parametrize("name", sorted(public()))
def test_a_generator_reads_it(name: str) -> None:
    """Parameters, attributes and what comes back are named, in one order."""
    assert problem(public()[name]) == ""


EXAMPLES_ELSEWHERE = {
    "KernelError": "raised by guard", "KernelWarning": "given by guard", "Finding": "what ask returns",
    "LayoutError": "its example is of its own module", "guard": "traces with JAX: tests/cli/test_guard.py",
    "Undecided": "raised by convert", "kernels": "traces with JAX: howto/kernel.md", "gate": "two states: howto/ci.md",
    "same": "traces with JAX: docs/same.md", "legal": "traces with JAX: howto/tiling.md",
    "repair": "edits a file: tests/answers/test_repair.py",
    "drift": "asks the TPU compiler: tests/crosschecks/test_tpu_facts.py",
}  # fmt: skip
"""Names of `lp` without an example of their own, and why."""


@pytest.mark.parametrize("name", [name for name in lp.__all__ if name != "__version__"])
def test_it_has_an_example_that_runs(name: str) -> None:
    """Every name of `lp` shows what it does, as a doctest."""
    what = getattr(lp, name)
    if inspect.ismodule(what):
        return
    cases = doctest.DocTestFinder(recurse=False).find(what, name, globs=dict(vars(inspect.getmodule(what))))  # type: ignore[arg-type]
    examples = sum(len(case.examples) for case in cases)
    assert examples or name in EXAMPLES_ELSEWHERE
    for case in cases:
        said: list[str] = []
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(case, out=said.append)
        assert result.failed == 0, "".join(said)


def _good(index: int, *layouts: object, size: int = 1) -> int:
    """One line.

    Args:
        index: Which element.
        *layouts: Layouts.
        size: In bytes;
            more of it.

    Returns:
        The offset.
    """
    return index


def _missing(index: int, size: int) -> int:
    """One line.

    Args:
        index: Which element.

    Returns:
        The offset.
    """
    return index


def _renamed(index: int) -> int:
    """One line.

    Args:
        idx: Which element.

    Returns:
        The offset.
    """
    return index


def _silent(index: int) -> int:
    """One line.

    Args:
        index: Which element.
    """
    return index


def _swapped(index: int) -> int:
    """One line.

    Returns:
        The offset.

    Args:
        index: Which element.
    """
    return index


def _prose(index: int) -> int:
    """One line. Raises LayoutError for what is no index.

    Args:
        index: Which element.

    Returns:
        The offset.
    """
    return index


@dataclasses.dataclass
class _Short:
    """One line.

    Attributes:
        line: Where.
    """

    line: int
    column: int


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (_good, ""),
        (_missing, "its parameters are ['index', 'size'], and Args says ['index']"),
        (_renamed, "its parameters are ['index'], and Args says ['idx']"),
        (_silent, "it does not say what it returns"),
        (_swapped, "its sections are Returns, Args; their order is Args, Attributes, Returns"),
        (_prose, "what it raises stands in its prose"),
        (_Short, "its attributes are ['line', 'column'], and Attributes says ['line']"),
        (lambda: 0, "it has no docstring"),
    ],
)
def test_the_check_can_fail(what: Callable[..., Any], said: str) -> None:
    """A parameter left out, another name, no result, another order, a field left out."""
    assert problem(what).startswith(said)
    assert bool(problem(what)) is bool(said)
