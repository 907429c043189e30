"""The pages for contributors are so: the picture is that of the code, the journeys are walked, the examples run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import layoutproof
from tests.imports import sources
from tests.new import EXAMPLES, KINDS, Example, files, main
from tests.package_graph import PAGE, part, picture, renewed, without_transitive

pytestmark = pytest.mark.slow

ROOT = PAGE.parents[1]
PACKAGE = Path(layoutproof.__file__).parent
JOURNEYS = re.findall(
    r"^## The journey of one (\w+)\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
)

CALLED = """
import json, sys
from layoutproof.cli.main import run
first = {}
def seen(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(sys.argv[1]):
        first.setdefault((code.co_filename[len(sys.argv[1]) + 1:], code.co_qualname))
sys.setprofile(seen)
run(sys.argv[2:])
sys.setprofile(None)
print("\\n" + json.dumps(list(first)))
"""
"""Prints every function of the package that a command line calls, in the order of the first calls."""


def numberless(page: str) -> str:
    """A page without the numbers of its table of lines, which are reported and not asserted."""
    return re.sub(r"\| [\d,]+ \| \d+ % \|", "| |", page)


def steps(text: str) -> list[tuple[str, str]]:
    """(file, function) of each step of a numbered list, which counts from 1 on."""
    found = re.findall(r"^(\d+)\. `([\w/]+\.py)` `([\w.]+)`: ", text, re.MULTILINE)
    assert [int(number) for number, _, _ in found] == list(range(1, len(found) + 1))
    return [(file, function) for _, file, function in found]


def out_of_order(wanted: list[tuple[str, str]], called: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The steps that are not called, or are called before one that stands earlier."""
    wrong, at = [], -1
    for step in wanted:
        if step in called and called.index(step) > at:
            at = called.index(step)
        else:
            wrong.append(step)
    return wrong


def lost_links(page: Path) -> list[str]:
    """The links of a page to files that a repository host does not have: a built site may."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link]
    return [f"{page.name}: {link}" for link in links if not (page.parent / link).exists()]


def test_links_lead_to_files_of_the_repository(tmp_path: Path) -> None:
    """On every page; and one to a page that only a site has would be seen."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "skills").rglob("*.md")]
    assert [lost for page in pages for lost in lost_links(page)] == []
    (tmp_path / "a.md").write_text("[it](explain/a.md#b), [here](a.md), [there](https://example.org)\n")
    assert lost_links(tmp_path / "a.md") == ["a.md: explain/a.md"]


def test_no_page_installs_a_release_that_is_not_there() -> None:
    """Until there is one, what is installed is a clone; the words of the program name packages that exist."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "skills").rglob("*.md")]
    assert [page.name for page in pages if re.search(r"pip install\s+'?layoutproof\b", page.read_text("utf-8"))] == []
    assert [name for name, text in sources().items() if re.search(r"pip install '?layoutproof\b", text)] == []


def test_the_picture_is_that_of_the_code() -> None:
    """Where it is not: `python -m tests.package_graph` writes it anew."""
    page = PAGE.read_text("utf-8")
    assert numberless(page) == numberless(renewed(page, sources()))


def test_another_import_changes_the_picture() -> None:
    """The check above can fail: on an import more, and on a package more."""
    modules = sources()
    shown = part(PAGE.read_text("utf-8"), "graph")
    modules["layoutproof.hlotext.lines"] += "\nfrom layoutproof.kernel.kernel import Kernel\n"
    assert "hlotext --> kernel" in picture(modules)
    assert picture(modules) != shown
    assert picture(sources() | {"layoutproof.zeta": "import layoutproof.cli.main"}) != shown


def test_an_edge_that_a_longer_way_says_is_left_out() -> None:
    """However long the way; every other one stays."""
    graph = {"d": {"a", "b", "c"}, "c": {"b"}, "b": {"a"}, "a": set(), "e": {"a", "c"}}
    assert without_transitive(graph) == {"d": {"c"}, "c": {"b"}, "b": {"a"}, "a": set(), "e": {"c"}}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), JOURNEYS, ids=[name for name, _ in JOURNEYS])
def test_each_journey_is_walked(name: str, text: str, tmp_path: Path) -> None:
    """Its command calls every function of its list, each for the first time after the ones before it."""
    if name == "kernel" and importlib.util.find_spec("jax") is None:
        pytest.skip("tracing a kernel needs the extra [jax]")
    for folder, order in (("old", "1,0"), ("new", "0,1")):
        (tmp_path / folder).mkdir()
        spec = f"layouts:\n  a: f32[3,5]{{{order}:T(2,2)}}\nchecks:\n  - injective: a\n"
        (tmp_path / folder / "a.yaml").write_text(spec)
    (command,) = re.findall(r"^\$ layoutproof (.*)$", text, re.MULTILINE)
    code = [sys.executable, "-c", CALLED, str(PACKAGE), *shlex.split(command)]
    done = subprocess.run(code, capture_output=True, text=True, check=True, cwd=tmp_path)
    called = [(file, function) for file, function in json.loads(done.stdout.splitlines()[-1])]
    wanted = steps(text)
    assert len(wanted) >= 15
    assert out_of_order(wanted, called) == []
    # the check can fail: on a step that is not taken, and on two that changed places
    assert out_of_order([*wanted, ("core/term.py", "nothing")], called) == [("core/term.py", "nothing")]
    assert out_of_order([wanted[1], wanted[0]], called) == [wanted[0]]


def test_there_are_three_journeys_and_six_examples() -> None:
    """So that no test above or below passes because it found nothing."""
    assert [name for name, _ in JOURNEYS] == ["question", "kernel", "gate"]
    assert sorted(each.title for each in EXAMPLES) == sorted(KINDS.values())


@pytest.mark.commit
@pytest.mark.slow
def test_what_is_written_for_something_new_leaves_the_tests_green(tmp_path: Path) -> None:
    """The examples under other names, all at once: their own tests, and those that look through what there is."""
    shutil.copytree(PACKAGE, tmp_path / "layoutproof")
    for folder in ("tests", "docs", "specs", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for file in ("pyproject.toml", *(page.name for page in ROOT.glob("*.md"))):
        shutil.copy(ROOT / file, tmp_path)
    looking = ["properties/test_faults.py", "properties/test_replicas.py", "formats/test_formats.py"]
    looking += [
        "questions/test_expressions.py",
        "test_docstrings.py",
        "cli/test_explain.py",
        "messages/test_messages.py",
    ]
    looking += ["questions/test_doors.py", "test_house.py", "test_reached.py"]
    for kind in KINDS:
        for file, text in files(kind, f"new_{kind}").items():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(text)
            looking += [file.removeprefix("tests/")] if Path(file).name.startswith("test_") else []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/{file}" for file in looking)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_new_files_have_the_new_name_alone() -> None:
    """And what is named after it; another example's name stays."""
    made = files("property", "my_rows")
    assert list(made) == ["layoutproof/properties/my_rows.py", "tests/properties/faults/my_rows.py"]
    assert [text for text in made.values() if "in_order" in text] == []
    assert "class MyPitchLayout" in files("language", "my_pitch")["layoutproof/layouts/my_pitch.py"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rules", "mine"], "KIND is one of property, rule,"),
        (["rule"], "python -m tests.new KIND NAME"),
        (["rule", "My-Rule"], "My-Rule is no name of a module"),
        (["property", "injective"], "layoutproof/properties/injective.py is there already"),
    ],
)
def test_nothing_is_written_for_what_is_none(words: list[str], said: str) -> None:
    """What is wrong is said."""
    with pytest.raises(SystemExit, match=said):
        main(words)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=[each.title for each in EXAMPLES])
def test_each_example_of_the_guide_works(example: Example, tmp_path: Path) -> None:
    """Its files, put into a copy of the package, make its commands print what stands below them."""
    shutil.copytree(PACKAGE, tmp_path / "layoutproof")
    for file, source in example.files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(source)
    (console,) = re.findall(r"^```console\n(.*?)^```$", example.text, re.DOTALL | re.MULTILINE)
    asked = re.findall(r"^\$ layoutproof (.*)\n((?:[^$\n].*\n)*)", console, re.MULTILINE)
    assert example.files
    assert asked
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for command, said in asked:
        code = [sys.executable, "-m", "layoutproof", *shlex.split(command)]
        done = subprocess.run(code, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
        assert done.stdout == said, command
        # what the example adds is not there without it
        code = [sys.executable, "-P", "-m", "layoutproof", *shlex.split(command)]
        without = subprocess.run(code, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert without.stdout != said, command
