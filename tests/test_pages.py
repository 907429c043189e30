"""The pages with commands are so: each command prints what stands below it, the files of a page lying beside it."""

from __future__ import annotations

import doctest
import importlib.util
from pathlib import Path

import pytest

from tests import console_pages
from tests.console_pages import consoles, files, filled, matches, printed
from tests.test_readme import wrong_examples

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (*(ROOT / "docs").glob("howto/*.md"), *(ROOT / "docs").glob("concepts/*.md"), ROOT / "AGENTS.md",
                 ROOT / "docs" / "index.md", ROOT / "docs" / "languages.md")
    if "```console" in page.read_text("utf-8")
)  # fmt: skip
NEEDS_JAX = ("docs/howto/bodies.md", "docs/howto/kernel.md")


def test_there_are_pages_with_commands() -> None:
    """So that no test below passes because it found nothing."""
    assert {"docs/index.md", "docs/howto/ci.md", *NEEDS_JAX} <= set(PAGES)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_each_command_prints_what_stands_below_it(page: str, tmp_path: Path) -> None:
    """In the order of the page, in one process."""
    if page in NEEDS_JAX and importlib.util.find_spec("jax") is None:
        pytest.skip("tracing a kernel needs the extra [jax]")
    text = (ROOT / page).read_text("utf-8")
    wrong = [
        (said.command, lines)
        for said, lines in zip(consoles(text), printed(text, tmp_path), strict=True)
        if not matches(said.lines, lines)
    ]
    assert wrong == []


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
    lines = printed(PAGE, tmp_path)
    assert [matches(said.lines, out) for said, out in zip(consoles(PAGE), lines, strict=True)] == [True, True]
    for wrong in (PAGE.replace("1 proved", "2 proved"), PAGE.replace("...\n", "")):
        assert not all(matches(said.lines, out) for said, out in zip(consoles(wrong), lines, strict=True))
    empty = '```console\n$ layoutproof ask injective "f32[8]{0}"\n```\n'
    assert consoles(filled(empty, tmp_path))[0].lines[0].split() == ["proved", "injective", "f32[8]{0}"]
    assert doctest.testmod(console_pages).failed == 0
