"""The house rules that a machine can hold: complete modules, a light import, one place that reads files."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import layoutproof
from layoutproof.registry.catalogue import kernel_properties, properties, property_module
from layoutproof.registry.read import UNMARKED, language, languages, read_layout
from tests.imports import imports_of

pytestmark = pytest.mark.slow

PACKAGE = Path(layoutproof.__file__).parent
HEAVY = ("islpy", "z3", "sympy", "numpy", "jax", "matplotlib", "pydantic", "rich", "click", "yaml", "joblib")


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p.parent != PACKAGE)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_solver_libraries_are_imported_by_solvers_only(path: Path) -> None:
    """islpy and z3 are named in solvers/ alone; sympy in the formula; none of them in core."""
    folder = path.relative_to(PACKAGE).parts[0]
    names = {name.split(".")[0] for name in imports_of(path.read_text(), "layoutproof")}
    if folder != "solvers":
        assert not names & {"islpy", "z3"}
    if folder == "core":
        assert not names & set(HEAVY)


def test_import_is_light() -> None:
    """`import layoutproof` loads no library at all, and the first constant question loads no solver library."""
    code = (
        "import sys, layoutproof as lp\n"
        f"heavy = set({HEAVY!r})\n"
        "first = heavy & set(sys.modules)\n"
        "lp.ask('injective', 'bf16[64,256]{1,0:T(8,128)(2,1)}')\n"
        "print(sorted(first), sorted(heavy & set(sys.modules)))\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[] []"


NOT_ASKED = (
    "gzip",
    "json",
    "pathlib",
    "tomllib",
    "layoutproof.core.files",
    "layoutproof.kernel.kernel_parts",
    "layoutproof.layouts.axe.layout",
    "layoutproof.registry.expressions",
)


def test_a_cold_question_imports_what_it_asks_alone() -> None:
    """It reads no file, and has one layout, which is a text. Garbage is looked for seldom while modules are made."""
    code = (
        "import gc, sys\n"
        "from layoutproof.__main__ import main\n"
        "sys.argv = ['layoutproof', 'ask', 'injective', 'bf16[4096,11008]{1,0:T(8,128)(2,1)}']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted({{*{NOT_ASKED!r}}} & set(sys.modules)), gc.get_threshold()[0])\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "[] 50000"


@pytest.mark.parametrize("name", properties())
def test_each_property_is_complete(name: str) -> None:
    """A property module has LAYOUTS, claims, and a page that says why it matters and what refutes it."""
    module = property_module(name)
    assert module.LAYOUTS in (1, 2)
    assert callable(module.claims)
    assert "Why it matters:" in module.__doc__
    assert "Refuted by:" in module.__doc__ or "Otherwise as" in module.__doc__


@pytest.mark.parametrize("name", kernel_properties())
def test_each_property_of_kernels_is_complete(name: str) -> None:
    """It says whether it needs a target, has obligations, and a page like every property."""
    module = property_module(name)
    assert type(module.TARGET) is bool
    assert callable(module.obligations)
    assert "Why it matters:" in module.__doc__
    assert "Refuted by:" in module.__doc__
    assert "Example:" in module.__doc__ or "Fix:" in module.__doc__


@pytest.mark.parametrize("name", languages())
def test_each_language_is_complete(name: str) -> None:
    """A language module reads, recognises its texts unless they are what nobody else's are, and says what it is."""
    module = language(name)
    assert callable(module.read)
    assert hasattr(module, "looks_like") == (name != UNMARKED)
    assert module.__doc__


def test_a_new_language_claims_its_texts_whatever_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A language is one file, also one whose name comes after all others: shapes without a mark are read last."""
    zeta = ModuleType("layoutproof.layouts.zeta")
    zeta.looks_like = lambda text: text.startswith("zeta ")  # type: ignore[attr-defined]
    zeta.read = lambda value, mode: value.upper()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, zeta.__name__, zeta)
    known = languages()
    monkeypatch.setattr("layoutproof.registry.read.languages", lambda: (*known, "zeta"))
    assert read_layout("zeta [3,5]") == "ZETA [3,5]"
    assert str(read_layout("f32[3,5]")) == "f32[3,5]{1,0}"


def test_public_names_all_load() -> None:
    """Every name that the package offers exists."""
    for name in layoutproof.__all__:
        assert getattr(layoutproof, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        layoutproof.nonsense  # noqa: B018


@cache
def names_called(source: str) -> set[str]:
    """The last names of everything a module calls: {"read_text", "echo"} of `path.read_text(); click.echo(1)`."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return {f.attr if isinstance(f, ast.Attribute) else f.id for f in calls if isinstance(f, ast.Attribute | ast.Name)}


def test_one_place_reads_files() -> None:
    """A user's file is opened by `core.files` alone, which hangs on nothing; the cache reads its own beside it."""
    openers = {"open", "read_text", "read_bytes", "fdopen"}
    found = {p.relative_to(PACKAGE).as_posix(): openers & names_called(p.read_text()) for p in PACKAGE.rglob("*.py")}
    reading = {name for name, called in found.items() if called}
    # `read_text` of the sharding language reads no file, and `serve` its own pipes; the others write
    others = {"layouts/sharding/__init__.py", "compiler/cache.py", "compiler/serve.py", "cli/main.py", "gating/git.py"}
    assert reading == {"core/files.py", "programs/kept_rows.py", *others}


def test_no_test_imports_a_module_that_an_extra_may_skip() -> None:
    """Python keeps what was skipped on import by another as a module without tests: they never run, and nobody sees."""
    tests = Path(__file__).parent
    importing = re.compile(r"^from (tests\.(?:\w+\.)*test_\w+) import", re.M)
    skipping = re.compile(r"^(?:\w+ = )?pytest\.importorskip\(", re.M)
    found = {
        path.relative_to(tests).as_posix(): other
        for path in tests.rglob("test_*.py")
        for other in importing.findall(path.read_text())
        if skipping.search((tests.parent / f"{other.replace('.', '/')}.py").read_text())
    }
    assert found == {}


def test_one_place_prints() -> None:
    """What a user sees goes through `cli.arguments`, which makes it harmless."""
    printing = [p for p in PACKAGE.rglob("*.py") if {"echo", "secho", "print"} & names_called(p.read_text())]
    assert [p.relative_to(PACKAGE).as_posix() for p in printing] == ["cli/arguments.py"]


def test_what_is_remembered_has_a_bound() -> None:
    """A process that answers for days must not grow: each memo has a size, or arguments of which there are few."""
    few = {
        "cli/documents.py adapter",  # commands
        "crosschecks/compiling.py _device",  # generations of a TPU
        "messages/kinds.py _any",  # our own patterns
        "mosaic/compiling.py _device",  # targets
        "pallas/from_jax/sent.py _calls",  # in a worker of one function
    }
    endless = {"cache", "functools.cache", "lru_cache(maxsize=None)", "functools.lru_cache(maxsize=None)"}
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or not ast.unparse(node.args):
                continue
            if endless & {ast.unparse(each) for each in node.decorator_list}:
                found.add(f"{path.relative_to(PACKAGE).as_posix()} {node.name}")
    assert found == few


def test_the_bounds_of_readers_are_those_that_the_security_page_names() -> None:
    """Who reads how far a stranger's file is followed reads the numbers of the code."""
    from layoutproof.core import bounds, expression, files
    from layoutproof.gating import labels, lock_head, states
    from layoutproof.hlotext import lines
    from layoutproof.layouts import strided
    from layoutproof.layouts.axe import text as axe
    from layoutproof.layouts.cute import text as cute
    from layoutproof.messages import read
    from layoutproof.pallas import accepted
    from layoutproof.programs import shardings
    from layoutproof.searching import prune
    from layoutproof.specs import positions

    page = (PACKAGE.parent / "SECURITY.md").read_text()
    bounds_said = {
        "HLO dumps, records of programs and of kernels, unpacked": (
            f"{files.MAX_TEXT >> 20} MiB, {files.MAX_LINES:,} lines, a line {files.MAX_LINE >> 20} MiB"
        ),
        "each dump of a folder that `gate` compares": f"{states.MAX_DUMP >> 20} MiB",
        "a pasted message (`why`)": f"{read.MOST_BYTES >> 20} MiB",
        "a lock": f"{lock_head.MAX_LOCK >> 20} MiB",
        "YAML: spec and search files": (
            f"{files.MAX_YAML >> 20} MiB, {positions.MAX_DEPTH} levels, "
            f"{positions.MAX_NODES:,} values with aliases expanded"
        ),
        "`pyproject.toml`": f"{files.MAX_CONFIG >> 20} MiB, keys of {files.MOST_PARTS} parts",
        "a layout, a mesh, a product, groups of devices, as text": f"{bounds.MAX_CHARACTERS:,} characters",
        "an Axe layout; the partition specs of one argument": f"{axe.LONGEST:,} characters",
        "an expression, a condition, a size, a CuTe or a strided layout": f"{expression.LONGEST:,} characters",
        "candidates (`--prune`); a baseline": f"{prune.MAX_ROWS >> 20} MiB",
        "an HLO operation within operations": f"{bounds.DEEPEST} levels",
        "computations within one another, of two dumps that `gate` compares": (
            f"{labels.MOST_RUNNING} levels, where loops and branches run them {labels.MOST_RUNNING // (1 + labels.RUN)}"
        ),
        "a number in an HLO dump": f"{lines.MOST_DIGITS:,} digits",
    }
    assert expression.LONGEST == cute.LONGEST == strided.LONGEST
    assert axe.LONGEST == shardings.LONGEST
    assert prune.MAX_ROWS == accepted.MOST_BYTES
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    begin = rows.index("| what is read | at most |") + 1
    assert rows[begin : begin + len(bounds_said)] == [f"| {what} | {most} |" for what, most in bounds_said.items()]


SHARED_NAMES = {"Swizzle": "CuTe and Axe each call theirs so"}
"""A class name that two files have -> why."""


def test_a_class_name_stands_for_one_thing() -> None:
    """Private ones count: who reads two files meets both."""
    named = Counter(
        node.name
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in named.items() if count > 1} == set(SHARED_NAMES)
