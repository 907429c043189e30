"""For a browser: one page that needs nothing else, with a picture of both sides of each change.

The element of the counterexample is marked in both pictures. Without scripts: what opens and closes are `details`.
"""

from __future__ import annotations

import json
from html import escape

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding, Report, following, level, summary, word, worst
from layoutproof.core.result import Counterexample, show_point

MOST_FOLLOWS = 200
"""Rows of what comes from one difference."""
MOST_PICTURE_BYTES = 850_000
"""The size of all pictures of a page together; findings after that have their texts only."""

_SECTIONS = (
    ("error", "Wrong input"),
    ("deny", "Denied"),
    ("refuted", "Refuted"),
    ("unknown", "Unknown"),
    ("warn", "Warned"),
    ("warning", "Warnings"),
    ("allow", "Allowed"),
    ("info", "Said only"),
    ("not asked", "Not asked"),
    ("proved", "Proved"),
)
_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --faint: #595959; --line: #d4d4d4; --paper: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --faint: #b4b4b4; --line: #454b52; --paper: #14171a; } }
.patterns { position: absolute; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 75rem; padding: 1rem 1.5rem 4rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.5 system-ui, sans-serif; }
.skip { position: absolute; left: -100rem; } .skip:focus { position: static; }
:focus-visible { outline: 3px solid #0b57d0; outline-offset: 2px; }
h1 { font-size: 1.5rem; margin: .5rem 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
code, .mono { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .9rem;
  overflow-wrap: anywhere; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0;
  content-visibility: auto; contain-intrinsic-size: auto 12rem; }
summary { cursor: pointer; padding: .5rem .75rem; } details > div { padding: 0 .75rem .75rem; }
.badge { display: inline-block; min-width: 5rem; text-align: center; border-radius: .25rem; padding: 0 .4rem;
  font-weight: 600; color: #fff; background: #595959; }
.deny, .error, .refuted { background: #b3261e; } .unknown { background: #6b3fa0; }
.warn, .warning { background: #8a5300; } .allow, .info { background: #1e6b34; }
.place { color: var(--faint); float: right; }
dl { display: grid; grid-template-columns: 8rem 1fr; gap: .15rem 1rem; margin: .25rem 0; }
dt { color: var(--faint); } dd { margin: 0; }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: .5rem 0; flex: 1 1 28rem; min-width: 0; max-width: 100%; padding: .5rem;
  border: 1px solid var(--line); border-radius: .4rem; }
.scroll { overflow: auto; max-height: 32rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .15rem .75rem .15rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top; } .scroll-x { overflow-x: auto; }
figcaption { color: var(--faint); font-size: .9rem; }
"""


def render(report: Report) -> str:
    """The page.

    Args:
        report: The findings with what they are about.

    Returns:
        The whole text of this form.
    """
    number, room = 0, MOST_PICTURE_BYTES
    sections = []
    for severity, title in _SECTIONS:
        found = [f for f in report.findings if word(f) == severity]
        if not found:
            continue
        entries = []
        for finding in found:
            number += 1
            pictures = _pictures(finding) if room > 0 else ""
            room -= len(pictures)
            entries.append(_entry(finding, number, level(finding) != "note", pictures))
        name = severity.replace(" ", "-")
        sections.append(f'<section aria-labelledby="{name}">\n<h2 id="{name}">{title} ({len(found)})</h2>')
        sections.append("\n".join(entries) + "\n</section>")
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    head = f"<h1>{escape(report.title)}</h1>\n<p>{escape(summary(report))}</p>"
    head += f'\n<ul aria-label="Notes">{notes}</ul>' if notes else ""
    sections += _held(report)
    from layoutproof.pictures.svg import PATTERNS, style

    body = "\n".join(sections) or f"<p>{escape(report.nothing.capitalize())}.</p>"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>layoutproof: {escape(report.title)}</title>\n<style>{_STYLE}{style()}</style>\n</head>\n<body>\n"
        f'<svg width="0" height="0" class="patterns" aria-hidden="true">{PATTERNS}</svg>\n'
        f'<a class="skip" href="#findings">Skip to the findings</a>\n<header>\n{head}\n</header>\n'
        f'<main id="findings" tabindex="-1">\n{body}\n</main>\n</body>\n</html>\n'
    )


def _held(report: Report) -> list[str]:
    """The checks that passed, a row each, in one table that is open where all passed."""
    if not report.held:
        return []
    rows = "\n".join(
        f"<tr><td>{escape(f.reason)}</td><td>{escape(f.question)}</td><td>{_code(f.subject)}</td>"
        f'<td>{escape(f.decided_by)}</td><td class="mono">{escape(f.place)}</td></tr>'
        for f in report.held
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("found", "what", "of", "decided by", "place"))
    return [
        f"<details{'' if report.findings else ' open'}>\n<summary>{len(report.held)} as stated</summary>\n"
        f'<div class="scroll-x"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>\n'
        "</details>"
    ]


def _entry(finding: Finding, number: int, opened: bool, pictures: str) -> str:
    rows = (
        ("because", escape(finding.reason)),
        ("cause", escape(finding.cause)),
        ("hunks", "; ".join(map(_code, finding.hunks))),
        ("fix", escape(finding.fix)),
        ("hint", escape(finding.hint)),
        ("before", _code(finding.before)),
        ("after", _code(finding.after)),
        ("counterexample", _code(show_point(finding.counterexample) if finding.counterexample else "")),
        ("figures", escape(", ".join(f"{name} {_figure(value)}" for name, value in finding.figures.items()))),
        ("decided by", escape(finding.decided_by)),
        ("matched", escape(finding.match_heuristic)),
        ("policy", escape(finding.policy)),
        ("fingerprint", _code(finding.fingerprint)),
    )
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows if value)
    severity = word(finding)
    return (
        f'<details id="f{number}"{" open" if opened else ""}>\n<summary>'
        f'<span class="badge {severity}">{severity}</span>'
        f" <strong>{escape(finding.question)}</strong> {escape(finding.subject)}"
        f' <span class="place mono">{escape(finding.place)}</span></summary>\n'
        f"<div><dl>{listed}</dl>\n{pictures}{_follows(finding)}</div>\n</details>"
    )


def _follows(finding: Finding) -> str:
    """The consequences of a difference, a row each, to be opened."""
    if not finding.follows:
        return ""
    rows = "\n".join(
        f"<tr><td>{word(f)}</td><td>{escape(f.question)}</td><td>{_code(f.subject)}</td>"
        f'<td class="mono">{escape(f.place)}</td></tr>'
        for f in worst(finding, MOST_FOLLOWS)
    )
    rest = len(finding.follows) - MOST_FOLLOWS
    more = f"<p>and {rest} more</p>" if rest > 0 else ""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("severity", "what", "of", "place"))
    return (
        f"<details>\n<summary>{escape(following(finding))}</summary>\n"
        f'<div class="scroll-x"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>'
        f"\n{more}</details>"
    )


def _pictures(finding: Finding) -> str:
    if finding.before == finding.after:
        return ""
    sides = (("before", finding.before), ("after", finding.after))
    drawn = [_picture(text, name, finding.counterexample) for name, text in sides if text]
    inner = "\n".join(part for part in drawn if part)
    return f'<div class="pictures">\n{inner}\n</div>' if inner else ""


def _picture(text: str, name: str, point: Counterexample | None) -> str:
    """One side as a figure with the counterexample's element marked; "" for what cannot be drawn."""
    from layoutproof.pictures.counterexamples import side
    from layoutproof.pictures.svg import svg_text
    from layoutproof.registry.read import read_layout

    element = (point or {}).get("element")
    try:
        layout = read_layout(json.loads(text) if text.startswith('{"') else text)
        svg = svg_text(side(layout, None if element is None else tuple(element)), styled=False)
    except (LayoutError, Undecided, ValueError):
        return ""
    caption = name + ("" if element is None else _where(layout, element))
    about = f'tabindex="0" role="group" aria-label="picture of the layout {name}"'
    return f'<figure><div class="scroll" {about}>{svg}</div><figcaption>{escape(caption)}</figcaption></figure>'


def _where(layout: object, element: tuple[int, ...]) -> str:
    """Where the marked element is, in words; "" where it has no place."""
    from layoutproof.questions.evaluate import locate

    try:
        places = locate(layout, element)
    except (LayoutError, Undecided):
        return ""
    where = f": {element} is at " + ", ".join(f"{axis} {at}" for axis, at in places[0].items())
    return where + (f" and {len(places) - 1} more places" if len(places) > 1 else "") + ", marked"


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>" if text else ""
