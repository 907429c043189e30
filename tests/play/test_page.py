"""The page that runs in a browser, in real headless Chromium: typed into, clicked, linked to, opened offline."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.play import browser

pytestmark = pytest.mark.slow

PLAY = Path(__file__).resolve().parents[2] / "docs" / "play"
WAIT = 120_000


def module(name: str) -> ModuleType:
    """A Python file of the page."""
    spec = importlib.util.spec_from_file_location(f"play_{name}", PLAY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def ask() -> Callable[..., Any]:
    """What the page's own Python answers, without a browser."""
    answer = module("answers").answer
    return lambda **request: json.loads(answer(json.dumps(request)))


def test_a_layout(ask: Callable[..., Any]) -> None:
    """Verdicts, padding, what would waste less, picture, cells; a target gives a bare shape its layout."""
    found = ask(mode="layout", layout="f32[1000,5]", target="v5e", property="padding", at_most="30%")
    assert (found["subject"], found["assumed"]) == ("f32[1000,5]{0,1:T(8,128)}", "")
    assert [(one["question"], one["verdict"]) for one in found["findings"]] == [
        ("padding", "refuted"),
        ("injective", "proved"),
    ]
    assert found["less"] == ["reshaped to f32[5000]: 20.0K"]
    assert found["svg"].startswith("<svg")
    assert (len(found["cells"]), len(found["cells"][0])) == (16, 5)
    assert found["padding"].endswith("20000 bytes without padding, 32768 bytes allotted")
    bare = ask(mode="layout", layout="f32[3, 5]")
    assert bare["assumed"].startswith("f32[3,5]{1,0}: row-major")
    assert ask(mode="layout", layout='{"strided": "f32[3,5] strides (4,1)"}')["findings"][0]["verdict"] == "refuted"


def test_other_modes_and_bad_input(ask: Callable[..., Any]) -> None:
    """A cell says who else is there; bad input and what a layout is not about are sentences; nothing is a traceback."""
    cell = ask(mode="cell", layout="f32[3,5] strides (4,1)", index=[0, 4])
    assert cell["places"] == ["offset 4"]
    assert "2 elements: they collide" in cell["there"]
    pair = ask(mode="compare", layout="f32[a,b,c]{2,1,0}", other="f32[a*b,c]{1,0}", question="bitcast")
    assert [one["verdict"] for one in pair["findings"]] == ["proved"]
    (said,) = ask(mode="message", text="     Shape: f32[8388608,4]{1,0:T(8,128)}")["messages"]
    assert any("f32[4,8388608]" in fix for fix in said["fixes"])
    assert "] is missing" in ask(mode="layout", layout="f32[3,")["error"]
    assert "unknown TPU generation" in ask(mode="layout", layout="f32[3]", target="v99")["error"]
    axe = ask(mode="layout", layout="S[(8,2):(1@lane,8@lane)]", property="padding")
    assert (axe["findings"][0]["verdict"], "no memory" in axe["findings"][0]["reason"]) == ("", False)
    assert ask(mode="layout", layout="(" * 5000)["error"] != ""
    # what would waste less is of TPU tiles alone
    assert ask(mode="layout", layout="f32[3,5] strides (4,1)")["less"] == []
    nothing = ask(mode="layout", layout="f32[0,5]{1,0}")
    assert [one["verdict"] for one in nothing["findings"]] == ["unknown"]


def test_the_page_has_what_its_build_lists() -> None:
    """Every file that the page names is one of the build's, and nothing comes from elsewhere."""
    build = module("build")
    for name in ("index.html", "page.js", "worker.js", "style.css"):
        text = (PLAY / name).read_text("utf-8")
        assert "http://" not in text
        assert "https://" not in text
    assert {path.name for path in PLAY.iterdir() if path.is_file()} == {*build.PAGE, "build.py", "sw.js"}


def _missing() -> str:
    """Why the page cannot be opened here; "" where it can."""
    if not browser.CHROMIUM:
        return "chromium is not installed"
    if shutil.which("npm") is None:
        return "npm is not installed"
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    return ""


needs_chromium = pytest.mark.skipif(_missing() != "", reason=_missing())


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A profile of Chromium that has the page's address, `address`."""
    folder = tmp_path_factory.mktemp("play")
    try:
        module("build").build(folder)
    except SystemExit as reason:
        pytest.skip(str(reason))
    with browser.served(folder) as address, browser.chromium() as chromium:
        made = chromium.new_context(base_url=address)
        made.set_default_timeout(WAIT)
        yield made
        made.close()


@pytest.fixture
def page(context: Any) -> Iterator[Any]:
    """A tab; what it complains of is an error of the test."""
    tab = context.new_page()
    complaints: list[str] = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield tab
    tab.close()
    assert complaints == []


def verdict(page: Any, question: str) -> str:
    """The word beside a question, once it is there."""
    found = page.locator(".finding p", has_text=question).first
    found.wait_for()
    return str(found.locator(".verdict").inner_text())


@pytest.mark.commit
@pytest.mark.slow
@needs_chromium
def test_type_read_click_and_follow(page: Any, context: Any) -> None:
    """As a user: the verdict of what was typed, the place of a cell, the link that asks the same, offline too."""
    page.goto("")
    assert verdict(page, "injective") == "proved"
    page.get_by_label("Layout, or a bare shape").fill("f32[3,5] strides (4,1)")
    page.get_by_role("button", name="Prove it").click()
    page.get_by_text("smallest counterexample: first (0, 4), second (1, 0)").first.wait_for()
    assert verdict(page, "injective") == "refuted"
    assert page.locator(".cells .found").evaluate_all("all => all.map(one => one.dataset.index)") == ["0,4", "1,0"]

    cell = page.get_by_role("button", name="element (1, 0), at 4")
    cell.focus()
    page.keyboard.press("Enter")
    page.get_by_text("element (1, 0) is at offset 4").wait_for()
    assert "they collide" in page.locator("#told").inner_text()
    assert page.locator("img.picture").evaluate("image => image.naturalWidth") > 100

    link = page.get_by_role("link", name="Link to this question").evaluate("a => a.href")
    assert link == page.url
    page.wait_for_function("document.documentElement.dataset.offline === 'ready'")
    context.set_offline(True)
    try:
        other = context.new_page()
        other.goto(link)
        assert verdict(other, "injective") == "refuted"
        assert other.get_by_label("Layout, or a bare shape").input_value() == "f32[3,5] strides (4,1)"
        other.close()
    finally:
        context.set_offline(False)


@pytest.mark.commit
@pytest.mark.slow
@needs_chromium
def test_paste_a_message_compare_two_and_what_is_unknown(page: Any) -> None:
    """The other two forms, an example's link, bad input; what needs isl is unknown and says so, in no green."""
    page.goto("")
    verdict(page, "injective")
    page.get_by_label("An error message").check()
    page.get_by_label("The message").fill("  1. Size: 32.00G\n     Shape: s32[8388608,8,4]{2,1,0:T(8,128)}")
    page.get_by_role("button", name="Prove it").click()
    page.get_by_text("would waste less: s32[8388608,8,4]{2,1,0:T(8,128)}: with dimension 0 last").first.wait_for()

    assert page.locator(".finding.proved").count() == 0

    page.get_by_label("Two layouts").check()
    page.get_by_label("Layout", exact=True).fill("f32[3,5]{1,0}")
    page.get_by_label("Compared with").fill("f32[3,5]{0,1}")
    page.get_by_role("button", name="Prove it").click()
    page.get_by_text("smallest counterexample: element (0, 1)").first.wait_for()
    assert verdict(page, "same_map") == "refuted"

    page.get_by_role("link", name="What does a v5e make").click()
    page.get_by_role("heading", name="f32[1000,5]{0,1:T(8,128)}").wait_for()
    assert page.locator("li.less").all_inner_texts() == ["reshaped to f32[5000]: 20.0K"]

    page.goto("#mode=layout&layout=(i < 3000, j < 3000) -> (i * i %2B j)")
    page.get_by_text("islpy is not installed").first.wait_for()
    assert verdict(page, "injective") == "unknown"
    assert page.locator(".finding.proved").count() == 0

    page.goto("#mode=layout&layout=f32%5B3,")
    page.get_by_role("alert").get_by_text("] is missing").wait_for()


@pytest.mark.commit
@pytest.mark.slow
@needs_chromium
def test_on_a_phone_nothing_is_cut(context: Any) -> None:
    """At 360 pixels the page never scrolls sideways, every field has a name, words stand out of either paper."""
    tab = context.new_page()
    tab.set_viewport_size({"width": 360, "height": 740})
    tab.goto("#mode=layout&layout=f32%5B1000,5%5D&target=v5e&property=padding&at_most=30%25")
    assert verdict(tab, "padding") == "refuted"
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    unnamed = "all => all.filter(one => !one.labels.length && !one.ariaLabel).map(one => one.id)"
    assert tab.locator("input, select, textarea").evaluate_all(unnamed) == []
    papers = set()
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        paper, ink = (tab.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
        papers.add(paper)
        assert _contrast(paper, ink) > 7
        for part in ("footer", ".refuted .verdict", ".proved .verdict", "a"):
            assert _contrast(paper, tab.locator(part).first.evaluate("one => getComputedStyle(one).color")) > 4.5
    assert len(papers) == 2
    tab.close()


def _contrast(one: str, other: str) -> float:
    """WCAG's contrast of two colours that a browser printed as rgb(..)."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)
