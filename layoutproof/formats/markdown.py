"""For a pull request's comment or a job's summary page: GitHub-flavoured Markdown.

Every text of a user stands in a code span, so that it can make no link, no heading, no mention and no table.
"""

from __future__ import annotations

import json
import re

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.finding import Finding, Report, following, rank, summary, word, worst
from layoutproof.core.result import show_point

MOST = 50
"""Findings in full; a comment has at most 65,536 characters. The rest is counted."""
MOST_FOLLOWS = 50
"""Rows of what comes from one difference."""
MOST_PICTURES = 5
"""Findings with a picture of both sides."""
MOST_PICTURE = 4_000
"""Characters of one picture; a larger one is left to the HTML form."""
MOST_HELD = 500
"""Rows of what is as stated."""


def render(report: Report) -> str:
    """The line that counts, the findings with the worst first, and what was asked and is as stated.

    Args:
        report: The findings with what they are about.

    Returns:
        The whole text of this form.
    """
    findings = sorted(report.findings, key=rank)
    lines = [f"### layoutproof: {_plain(report.title)}", "", _plain(summary(report))]
    lines += [f"- {_plain(note)}" for note in report.notes]
    drawn = 0
    for finding in findings[:MOST]:
        lines += ["", *_finding(finding)]
        if drawn < MOST_PICTURES and (pictures := _pictures(finding)):
            lines += pictures
            drawn += 1
    if len(findings) > MOST:
        lines += ["", f"{len(findings) - MOST} more findings are in the other forms of this report."]
    if report.held:
        lines += ["", f"<details><summary>{len(report.held)} as stated</summary>", ""]
        lines += ["| found | what | of | place |", "|---|---|---|---|"]
        lines += [
            f"| {_plain(f.reason)} | {_code(f.question)} | {_code(f.subject)} | {_code(f.place)} |"
            for f in report.held[:MOST_HELD]
        ]
        lines += ["", f"and {len(report.held) - MOST_HELD} more"] if len(report.held) > MOST_HELD else []
        lines += ["", "</details>"]
    return "\n".join(lines)


def _finding(finding: Finding) -> list[str]:
    rows = (
        ("before", _code(finding.before)),
        ("after", _code(finding.after)),
        ("because", _plain(finding.reason)),
        ("cause", _plain(finding.cause)),
        ("hunks", "; ".join(map(_code, finding.hunks))),
        ("fix", _plain(finding.fix)),
        ("hint", _plain(finding.hint)),
        ("at", _code(show_point(finding.counterexample)) if finding.counterexample else ""),
        ("matched", _plain(finding.match_heuristic)),
        ("policy", _plain(finding.policy)),
        ("fingerprint", _code(finding.fingerprint)),
    )
    head = f"**{word(finding)}** {_code(finding.question)} {_code(finding.subject)} {_code(finding.place)}"
    return [head, "", *(f"- {name}: {value}" for name, value in rows if value), *_follows(finding)]


def _pictures(finding: Finding) -> list[str]:
    """Both sides of a change as terminals show them, to be opened: a comment of GitHub shows no picture that is in it
    itself. [] for what cannot be drawn."""
    if not finding.before or not finding.after or finding.before == finding.after:
        return []
    from layoutproof.pictures.counterexamples import side
    from layoutproof.pictures.terminal import terminal_text
    from layoutproof.registry.read import read_layout

    element = (finding.counterexample or {}).get("element")
    lines = ["", "<details><summary>pictures</summary>", ""]
    for name, text in (("before", finding.before), ("after", finding.after)):
        try:
            layout = read_layout(json.loads(text) if text.startswith('{"') else text)
            shown = terminal_text(side(layout, None if element is None else tuple(element)))
        except (LayoutError, Undecided, ValueError):
            return []
        if len(shown) > MOST_PICTURE:
            return []
        fence = "`" * max(3, max(map(len, re.findall("`+", shown)), default=0) + 1)
        lines += [f"{name}:", "", f"{fence}text", *shown.splitlines(), fence, ""]
    return [*lines, "</details>"]


def _follows(finding: Finding) -> list[str]:
    """The consequences of a difference, to be opened."""
    if not finding.follows:
        return []
    lines = ["", f"<details><summary>{_plain(following(finding))}</summary>", "", "| | what | of | place |"]
    lines.append("|---|---|---|---|")
    shown = worst(finding, MOST_FOLLOWS)
    lines += [f"| {word(f)} | {_code(f.question)} | {_code(f.subject)} | {_code(f.place)} |" for f in shown]
    rest = len(finding.follows) - len(shown)
    return [*lines, *(["", f"and {rest} more"] if rest else []), "", "</details>"]


def _plain(text: str) -> str:
    """Text of ours that may quote a user's: nothing in it is markup, calls a person, or leads anywhere.

    GitHub looks for `@name`, `#12` and addresses in what was rendered, so that a backslash does not help: a character
    of no width does, as others use it (Renovate's `sanitizeMarkdown`).

    >>> _plain("a|b *c* <i>")
    'a\\\\|b \\\\*c\\\\* &lt;i&gt;'
    """
    one_line = " ".join(text.split())
    harmless = re.sub(
        r"([\\`*_\[\]|#@~])", r"\\\1", one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    return re.sub(r"(?i)([@#]|:(?=//)|www(?=\.))", r"\1&#8203;", harmless)


def _code(text: str) -> str:
    """A code span, also of a text with backticks or bars.

    >>> _code("a|b"), _code("x`y")
    ('`a\\\\|b`', '``x`y``')
    """
    one_line = " ".join(text.split()).replace("|", "\\|")
    if not one_line:
        return ""
    fence = "`" * (max(map(len, re.findall("`+", one_line)), default=0) + 1)
    edge = " " if one_line[0] == "`" or one_line[-1] == "`" else ""
    return f"{fence}{edge}{one_line}{edge}{fence}"
