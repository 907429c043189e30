"""Every form of a report, held against its own rules: schemas, escapes, a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, Report, unknown, wrong_input
from layoutproof.core.fingerprint import named
from layoutproof.core.result import Verdict
from layoutproof.formats import names, render
from layoutproof.gating.classes import layouts
from tests.formats.sarif_schema import SARIF

NASTY = "100% <b>&\"'\n::error::,\x00\x1b[31m ]]> é"
"""What each form must escape or replace."""


def report() -> Report:
    """One finding of each severity, one of them with everything in it that could break a form."""
    (moved,) = layouts("f32[3,5]{1,0:T(2,2)}", "f32[3,5]{0,1:T(2,2)}")
    base = replace(moved, subject="layout a", relpath="s.yaml", file="a b/s,1.yaml", line=3, column=6)
    texts = dict.fromkeys(("subject", "reason", "before", "after", "match_heuristic", "policy", "fix"), NASTY)
    nasty = replace(base, question="lost", **texts)
    findings = [
        replace(base, severity="deny", fix="keep the order 1,0"),
        replace(
            base, question="grew", severity="warn", figures={"bytes_before": 1, "bytes_after": 2, "percent": 100.0}
        ),
        replace(base, question="added", severity="allow", policy="approved until 2027-01-01: it fits", before=""),
        unknown("layout u", "nobody can tell", relpath="s.yaml", file="s.yaml"),
        wrong_input("spec file", "not YAML", relpath="s.yaml", file="s.yaml", line=1),
        replace(nasty, severity="deny"),
    ]
    return Report("new against old", tuple(named(findings)), 2, (NASTY,))


EMPTY = Report("new against old", (), 1)


@pytest.mark.parametrize("form", names())
def test_every_form_says_everything(form: str) -> None:
    """Each finding's class and both texts are in it, and nothing is an error without findings."""
    text = render(form, report())
    for finding in report().findings[:3]:
        assert finding.question in text
    assert "f32[3,5]{0,1:T(2,2)}" in text
    assert "keep the order 1,0" in text
    assert render(form, EMPTY)
    with pytest.raises(LayoutError, match=f"known: {', '.join(sorted(names()))}"):
        render("pdf", EMPTY)


def test_json() -> None:
    """One object, with the exit code of the process."""
    whole = json.loads(render("json", report()))
    assert (whole["exit_code"], whole["compared"], len(whole["findings"])) == (1, 2, 6)
    assert whole["findings"][0]["counterexample"] == {"element": [0, 1]}
    assert whole["findings"][5]["reason"] == NASTY


@pytest.mark.parametrize("given", [report(), EMPTY])
def test_sarif(given: Report) -> None:
    """Valid by the standard's rules; each result names its rule, and the fingerprints are those of the findings."""
    whole = json.loads(render("sarif", given))
    jsonschema.Draft202012Validator(SARIF).validate(whole)
    (run,) = whole["runs"]
    # bad input, also beside something that is denied
    assert run["invocations"][0]["executionSuccessful"] is not any(f.bad_input for f in given.findings)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for finding, result in zip(given.findings, run["results"], strict=True):
        assert rules[result["ruleIndex"]] == result["ruleId"] == finding.question
        assert result["partialFingerprints"] == {"layoutproof/v1": finding.fingerprint}
    assert [bool(r.get("suppressions")) for r in run["results"]] == [
        f.policy.startswith("approved") for f in given.findings
    ]


def test_the_sarif_check_can_fail() -> None:
    """A property that the standard does not have, a missing message and a line 0 are each found."""
    for breakage in ({"speed": 1}, {"message": {}}, {"level": "deny"}):
        whole = json.loads(render("sarif", report()))
        whole["runs"][0]["results"][0] |= breakage
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(SARIF).validate(whole)


def test_github() -> None:
    """One line per finding and note, bad input first, then the worst, as the text has them from its end on; everything
    is escaped: a text cannot start a command of its own."""
    lines = render("github", report()).splitlines()
    assert len(lines) == 6 + 1 + 1
    assert "spec file" in lines[0]
    assert lines[1].startswith(
        "::error file=a b/s%2C1.yaml,line=3,col=6,title=layoutproof%3A moved layout a::(0, 1) is stored at offset 1"
    )
    assert [re.match(r"::(\w+)", line)[1] for line in lines[:7]] == [  # type: ignore[index]
        "error", "error", "error", "error", "warning", "notice", "notice",
    ]  # fmt: skip
    assert "100%25 <b>" in lines[2]
    assert not any(line.startswith("::error::") for line in lines)


def test_junit() -> None:
    """XML with the right counts; characters that XML cannot hold are replaced."""
    root = ElementTree.fromstring(render("junit", report()))
    suite = root[0]
    assert dict(suite.attrib) == {"name": "layoutproof", "tests": "7", "failures": "3", "errors": "1"}
    assert len(suite.findall(".//failure")) == 3
    assert suite.findall("testcase")[5].get("classname") == "s.yaml"
    assert len(ElementTree.fromstring(render("junit", EMPTY))[0].findall("testcase")) == 1


class Page(HTMLParser):
    """What a page has: tags in order, ids, links, and whether every tag is closed."""

    VOID = ("meta", "link", "br", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_html() -> None:
    """Well formed, self-contained, with unique ids, a skip link, headings in order, and pictures of both sides."""
    text = render("html", report())
    page = Page(text)
    assert (page.wrong, page.open) == ([], [])
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    tags = [tag for tag, _ in page.tags]
    assert "script" not in tags
    urls = [v for tag, a in page.tags for k, v in a.items() if k in ("href", "src", "srcset") and tag != "svg"]
    assert urls == ["#findings"]
    assert "findings" in ids
    assert not re.search(r"@import|url\((?!#)", text)
    headings = [tag for tag in tags if re.fullmatch(r"h\d", tag)]
    assert headings == ["h1", "h2", "h2", "h2", "h2", "h2"]
    assert tags.count("details") == tags.count("summary") == 6
    assert tags.count("svg") == 6  # two sides twice, one of what is new, and the patterns of all
    assert text.count("(0, 1) is at offset 1, marked") == 2
    assert text.count("(0, 1) is at offset 2, marked") == 3
    assert text.count('<path class="box hit"') == 5
    assert "<b>&" not in text
    assert ":focus-visible" in text


def test_html_of_nothing() -> None:
    """It says so."""
    assert "<p>No change.</p>" in render("html", EMPTY)


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_html_in_a_browser(tmp_path: Path) -> None:
    """A real browser builds the page without network: summaries, pictures and styles are there and take up room."""
    probe = """<script>
      const size = (q) => Array.from(document.querySelectorAll(q)).map(e => e.getBoundingClientRect().height > 0);
      document.querySelector('details:not([open]) > summary').click();
      document.querySelector('.skip').focus();
      const skip = document.activeElement.className;
      const stops = Array.from(document.querySelectorAll('a, summary, [tabindex="0"]')).filter(e => e.tabIndex === 0);
      const out = document.createElement('pre'); out.id = 'probe';
      out.textContent = JSON.stringify({
        summaries: size('summary'), pictures: size('figure svg'), skip: skip, stops: stops.length,
        badge: getComputedStyle(document.querySelector('.badge.deny')).backgroundColor,
        opened: document.querySelectorAll('details[open]').length,
        wide: document.documentElement.scrollWidth <= window.innerWidth,
        requests: performance.getEntriesByType('resource').length});
      document.body.appendChild(out);</script>"""
    page = tmp_path / "report.html"
    page.write_text(render("html", report()).replace("</body>", probe + "</body>"), "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [str(CHROMIUM), *flags, "--virtual-time-budget=3000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert said, done.stderr[-2000:]
    seen = json.loads(said[1])
    assert seen["summaries"] == [True] * 6
    assert seen["pictures"] == [True] * 5
    assert seen["badge"] == "rgb(179, 38, 30)"
    assert (seen["opened"], seen["skip"], seen["stops"], seen["requests"]) == (6, "skip", 1 + 6 + 5, 0)
    assert seen["wide"]


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("@octocat", "@octocat"),
        ("see #12", "#12"),
        ("https://evil.example", "https://"),
        ("HTTP://evil.example", "HTTP://"),
        ("WWW.evil.example", "WWW."),
        ("mail a@b.example", "a@b"),
    ],
)
def test_markdown_calls_nobody_and_leads_nowhere(name: str, called: str) -> None:
    """A name of the stranger's: as GitHub reads it once backslashes are gone, outside of code, it is no mention."""
    finding = Finding("same_map", name, f"because of {name}", verdict=Verdict.REFUTED)
    text = render("markdown", Report("new against old", (finding,), 1))
    outside = re.sub(r"(`+).*?\1", "", text).replace("\\", "")
    assert called not in outside
    assert name.split()[0][:3] in text
