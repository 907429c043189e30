"""The pages with commands are so: each command prints what stands below it, the files of a page lying beside it."""

from __future__ import annotations

import doctest
import importlib.metadata
import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest

from layoutproof.cli import main as cli
from tests import console_pages
from tests.console_pages import BLOCK, answers, consoles, failed, files, filled, lines_of, matches, wrong
from tests.test_readme import wrong_examples

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
ALL = sorted(page.relative_to(ROOT).as_posix() for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
RUN_BY = {
    "CONTRIBUTING.md": "tests/test_docs.py",
    "docs/architecture.md": "tests/test_docs.py",
    "docs/kernels.md": "tests/test_kernels_page.py",
    "docs/messages.md": "tests/test_messages_page.py",
    "docs/programs.md": "tests/programs/test_compile.py",
    "docs/seeds.md": "tests/test_seeds.py",
}
"""Pages with a test of their own, which runs their commands; every other page is run here."""

PAGES = [page for page in ALL if "```console" in (ROOT / page).read_text("utf-8") and page not in RUN_BY]
NEEDS_JAX = ("docs/howto/bodies.md", "docs/howto/kernel.md", "docs/howto/troubleshooting.md")
NEEDS_TPU = ("README.md", "docs/compiler.md")


def test_there_are_pages_with_commands() -> None:
    """So that no test below passes because it found nothing; and whose test is elsewhere has one."""
    assert {"docs/index.md", "docs/howto/ci.md", "docs/algebra.md", *NEEDS_JAX, *NEEDS_TPU} <= set(PAGES)
    assert set(RUN_BY) <= set(ALL)
    of_page = {page: (ROOT / test).read_text("utf-8") for page, test in RUN_BY.items()}
    of_page["CONTRIBUTING.md"] += (ROOT / "tests" / "new.py").read_text("utf-8")
    of_page["docs/architecture.md"] += (ROOT / "tests" / "package_graph.py").read_text("utf-8")
    assert [page for page, text in of_page.items() if Path(page).name not in text] == []
    other = [
        page
        for page in ALL
        if any(
            language != "console" and re.search(r"^\$ layoutproof ", block, re.MULTILINE)
            for _, _, language, block in BLOCK.findall((ROOT / page).read_text("utf-8"))
        )
    ]
    assert other == []


@pytest.mark.commit
@pytest.mark.parametrize("page", PAGES)
def test_each_command_prints_what_stands_below_it(page: str, tmp_path: Path) -> None:
    """In the order of the page, in one process; an error only where the page says that it is one."""
    text = (ROOT / page).read_text("utf-8")
    if page in (*NEEDS_JAX, *NEEDS_TPU) and importlib.util.find_spec("jax") is None:
        pytest.skip("tracing a kernel needs the extra [jax]")
    if page in NEEDS_TPU:
        if importlib.util.find_spec("libtpu") is None:
            pytest.skip("the TPU compiler is not installed")
        version = importlib.metadata.version("libtpu")
        if f"libtpu {version}" not in text:
            pytest.skip(f"the page shows the answers of another compiler than libtpu {version}")
    assert wrong(text, tmp_path) == []


def commands_of(text: str) -> list[list[str]]:
    """The words of each command that a page shows to be typed and whose output it does not show."""
    found = []
    for _, _, language, block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines() if language in ("sh", "bash") else ():
            found += [
                shlex.split(part, comments=True)[1:] for part in re.findall(r"(?:^|&& )(?:\S*/)?(layoutproof .*)", line)
            ]
    return found


def refused(words: list[str]) -> str:
    """What click says of a command that has no such name or options; "" of one that it takes."""
    try:
        context = click.Context(cli.cli)
        name, command, rest = cli.cli.resolve_command(context, words)
        assert command is not None
        command.make_context(name, rest[: rest.index(">")] if ">" in rest else rest)
    except click.UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("page", ALL)
def test_each_command_without_its_output_is_one(page: str) -> None:
    """There is such a command, with these options."""
    found = {" ".join(words): refused(words) for words in commands_of((ROOT / page).read_text("utf-8"))}
    assert {command: reason for command, reason in found.items() if reason} == {}


def test_a_command_that_is_none_is_found() -> None:
    """The check above can fail: on a command and on an option that are gone; and it finds the commands."""
    assert commands_of("```sh\n.venv/bin/layoutproof check a \\\n  b  # both\n```\n") == [["check", "a", "b"]]
    assert "did you mean 'check'" in refused(["chekc", "specs"])
    assert "--bets" in refused(["search", "matmul", "8", "8", "8", "--bets", "2"])
    assert sum(len(commands_of((ROOT / page).read_text("utf-8"))) for page in ALL) >= 10


@pytest.mark.parametrize("page", ["index.md", "howto/python.md"])
def test_the_python_of_a_page(page: str) -> None:
    """Each line runs, and each comment begins with the value."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    source = text.partition("```python\n")[2].partition("```")[0]
    assert wrong_examples(source) == []


PAGE = """\
```yaml
# a.yaml
checks: [{injective: "f32[8]"}]
```

```console
$ layoutproof check a.yaml
1 claim as stated: 1 proved; 0.1 s
$ layoutproof ask injective "f32[0]{0}"
...
  because  vacuous: the array has no elements
```
"""


def test_a_page_that_is_wrong_is_found(tmp_path: Path) -> None:
    """The check above can fail: on another line, on one too few; what is empty is filled, and then right."""
    assert files(PAGE) == {"a.yaml": '\nchecks: [{injective: "f32[8]"}]\n'}
    found = [lines_of(answer) for answer in answers(PAGE, tmp_path)]
    assert wrong(PAGE, tmp_path) == []
    for page in (PAGE.replace("1 proved", "2 proved"), PAGE.replace("...\n", "")):
        assert not all(matches(said.lines, out) for said, out in zip(consoles(page), found, strict=True))
    empty = '```console\n$ layoutproof ask injective "f32[8]{0}"\n```\n'
    assert consoles(filled(empty, tmp_path))[0].lines[0].split() == ["proved", "injective", "f32[8]{0}"]
    assert doctest.testmod(console_pages).failed == 0


def test_an_error_is_no_result(tmp_path: Path) -> None:
    """A page whose command is refused is wrong, also where it shows the error; it is right where it says so."""
    file = "```yaml\n# a.yaml\nchecks: []\nbest: 1\n```\n"
    shown = "```console\n$ layoutproof check a.yaml\n...\n```\n"
    ((problem),) = wrong(file + shown, tmp_path)
    assert problem.startswith("layoutproof check a.yaml: exit code 2: ")
    assert wrong(f"{file}<!-- exit: 2 -->\n{shown}", tmp_path) == []
    with pytest.raises(SystemExit, match="exit code 2"):
        filled(file + shown, tmp_path)
    right = shown.replace("check a.yaml", "explain injective")
    assert [failed(said, 0) for said in consoles(right + f"<!-- exit: 2 -->\n{right}")] == [False, True]
    assert wrong(right.replace("explain injective", "check a.yaml") + file, tmp_path)[0].endswith("stands below it")


OF_A_MACHINE = re.compile(r"(?<![\w.~/-])/(?:home|root|work|Users)/\w")
"""A folder of the machine on which something was made."""


@pytest.mark.parametrize("page", ALL)
def test_no_page_names_a_folder_of_a_machine(page: str) -> None:
    assert [line for line in (ROOT / page).read_text("utf-8").splitlines() if OF_A_MACHINE.search(line)] == []


def test_the_check_of_folders_can_fail() -> None:
    assert OF_A_MACHINE.search("the loop at /work/kernels/gmm.py:3")
    assert not OF_A_MACHINE.search("https://example.com/work/kernels, tests/home/x and ~/work/x")
