"""The documentation site: each topic, command and public name has a page, links lead somewhere, nothing is fetched."""

from __future__ import annotations

import doctest
import importlib.util
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import click
import pytest

import layoutproof as lp
from layoutproof.cli.main import cli

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
NEEDS_DOCS = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None,
    reason="the extra docs is not installed",
)


def loaded(name: str) -> ModuleType:
    """A module of docs/site, which is no package."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "docs" / "site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = loaded("pages")


class _Links(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key in ("id", "name") and value:
                self.anchors.add(value)
            elif key == "href" and tag == "a" and value:
                self.links.append(value)
            elif key in ("href", "src") and value and tag in ("script", "link", "img", "iframe", "source"):
                self.loads.append(value)


def read(page: Path) -> _Links:
    """The links of one page."""
    links = _Links()
    links.feed(page.read_text("utf-8"))
    return links


def broken(site: Path) -> list[str]:
    """Links of a site to pages, files and anchors that it has not, and what a page loads from elsewhere."""
    pages = {page: read(page) for page in site.rglob("*.html") if "play" not in page.relative_to(site).parts}
    wrong = []
    for page, found in pages.items():
        name = page.relative_to(site).as_posix()
        wrong += [f"{name} loads {address}" for address in found.loads if re.match(r"https?:|//", address)]
        for address in (*found.links, *found.loads):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or name == "404.html":
                continue
            there = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
            there = there / "index.html" if there.is_dir() else there
            lost = parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].anchors
            if lost or not there.exists():
                wrong.append(f"{name} -> {address}")
    return wrong


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `.ci/site` builds it."""
    at = tmp_path_factory.mktemp("site").resolve()
    done = subprocess.run(
        [ROOT / ".ci" / "site", sys.executable], cwd=at, env={**os.environ, "SITE_DIR": str(at), "PLAY": "off"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return at


@pytest.mark.slow
@NEEDS_DOCS
def test_no_link_leads_to_nothing_and_nothing_is_fetched(site: Path) -> None:
    """Pages, files and anchors; no script, style or picture of another host."""
    assert len(list(site.rglob("*.html"))) > 200
    assert broken(site) == []


@pytest.mark.slow
@NEEDS_DOCS
def test_every_topic_command_and_public_name_has_a_page(site: Path) -> None:
    """Each says what it is about: the name in its title, and the first words of what the package says of it."""
    for kind, pages in PAGES.explained().items():
        for name in pages:
            assert f"explain {name}" in (site / PAGES.page_of(kind, name)).read_text("utf-8")
    for name in cli.list_commands(click.Context(cli)):
        assert f"layoutproof {name}" in (site / "commands" / name / "index.html").read_text("utf-8")
    for name in set(lp.__all__) - {"__version__"}:
        assert f"lp.{name}" in (site / "python" / name / "index.html").read_text("utf-8")
    signature = re.sub("<[^>]*>", "", (site / "python" / "ask" / "index.html").read_text("utf-8"))
    assert "confirm: bool = False" in signature
    assert "Demand that two engines agree." in signature


@pytest.mark.slow
@NEEDS_DOCS
@pytest.mark.parametrize(
    ("text", "code"), [("# A\n\n[b](nothing.md)", 1), ("# A\n\n[a](#b)", 1), ("# A\n\n[a](#a)", 0)]
)
def test_a_broken_link_fails_the_build(text: str, code: int, tmp_path: Path) -> None:
    """By the rules of mkdocs.yml, whose pages are one here; a link that is right passes."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(text)
    inherit = f"INHERIT: {ROOT / 'mkdocs.yml'}\n"
    (tmp_path / "mkdocs.yml").write_text(
        f"{inherit}docs_dir: docs\nhooks: []\nplugins: []\nnav: [index.md]\nextra_css: []\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"], cwd=tmp_path,
        env={**os.environ, "SITE_DIR": str(tmp_path / "out")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr


def test_a_link_to_nothing_and_a_picture_of_elsewhere_are_found(tmp_path: Path) -> None:
    """The check above can fail: on a page, an anchor, something loaded; links to other hosts are no fault."""
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        "<h1 id='x'></h1><a href='a/'>ok</a><a href='a/#y'>no</a><a href='b/'>no</a><a href='#x'>ok</a>"
        "<a href='https://example.com'>ok</a><img src='https://example.com/a.png'>"
    )
    (tmp_path / "a" / "index.html").write_text("<a href='../#x'>ok</a>")
    assert broken(tmp_path) == [
        "index.html loads https://example.com/a.png", "index.html -> a/#y", "index.html -> b/",
    ]  # fmt: skip


def test_the_navigation_has_every_page_of_docs() -> None:
    """Also where MkDocs is not installed: each Markdown page under docs/ is named in mkdocs.yml."""
    named = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if f": {page}\n" not in named] == []


def test_the_gallery_has_the_picture_of_each_command() -> None:
    """Each command is run; one that draws nothing raises."""
    page = (ROOT / "docs" / "gallery.md").read_text("utf-8")
    made = PAGES.pictured(page)
    assert made.count("<svg ") == page.count("```sh\nlayoutproof ") == 16
    assert "{1,0:T(2,2)}</text>" in made
    with pytest.raises(FileNotFoundError):
        PAGES.pictured('```sh\nlayoutproof show "f32[" --svg a.svg\n```')


def test_published_schemas_are_what_the_command_prints() -> None:
    """One file for each command and each kind of file, and nothing in them that JSON Schema does not know."""
    import jsonschema

    schemas = PAGES.schemas()
    assert set(schemas) == {"spec", "search", *(f"answers/{name}" for name in cli.list_commands(click.Context(cli)))}
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert json.dumps(schemas["spec"], indent=2) == PAGES.said("layoutproof schema spec")


@pytest.mark.parametrize(
    ("page", "link", "there"),
    [
        ("docs/kernels.md", "[a](compiler.md#x)", "[a](compiler.md#x)"),
        ("docs/howto/ci.md", "[a](../../BUGS-FOUND.md#x)", "[a](../BUGS-FOUND.md#x)"),
        ("BUGS-FOUND.md", "[a](docs/kernels.md)", "[a](kernels.md)"),
        ("CONTRIBUTING.md", "[`a`](README.md)", "[`a`](index.md)"),
        ("docs/kernels.md", "[a](../specs/axe.yaml)", "[a](https://host/blob/main/specs/axe.yaml)"),
        ("docs/kernels.md", "[a](../specs/nothing.yaml)", "[a](../specs/nothing.yaml)"),
        ("docs/kernels.md", "[a](https://example.com/b)", "[a](https://example.com/b)"),
    ],
)
def test_links_as_the_site_has_them(page: str, link: str, there: str) -> None:
    """Pages of docs/ and of the root are written for the repository; what is no page is a file of it."""
    assert PAGES.relinked(link, page, "https://host/") == there


def test_without_a_repository_a_file_is_no_link() -> None:
    """A build at home knows no address of it."""
    assert PAGES.relinked("see [a](../specs/axe.yaml).", "docs/kernels.md", "") == "see a."


def test_the_examples_in_the_builder() -> None:
    """They run, and there are some."""
    result = doctest.testmod(PAGES)
    assert result.attempted >= 3
    assert result.failed == 0


@NEEDS_DOCS
def test_examples_of_docstrings_become_code() -> None:
    """A fence around each, up to the empty line; the rest stays."""
    fenced = loaded("doctests").fenced
    assert fenced("Adds.\n\n>>> 1 + 1\n2\n\nMore.") == "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    assert fenced("No example.") == "No example."


def test_the_search_finds_words_inside_of_names() -> None:
    """Names are cut where people would look for their parts; numbers of versions are whole."""
    (separator,) = re.findall(r"^      separator: '(.*)'$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    separator = separator.replace("''", "'")
    for text, words in (
        ("outputs_covered", ["outputs", "covered"]),
        ("tpu.ragged_dot, (ragged)", ["tpu", "ragged", "dot", "ragged", ""]),
        ("f32[3,5]{1,0} libtpu 0.0.52.", ["f32", "3", "5", "1", "0", "libtpu", "0.0.52", ""]),
    ):
        assert re.split(separator, text) == words
