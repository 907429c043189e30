"""For build servers: JUnit XML. A denied or undecided finding is a failed test case, a mistake in the input an error.

Source: the Jenkins xUnit schema, https://github.com/jenkinsci/xunit-plugin (junit-10.xsd); there is no standard.
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from layoutproof.core.finding import Finding, Report, level, summary, text


def render(report: Report) -> str:
    """One suite: a case per finding and per thing that is held, one for the whole, which fails when it is a part.

    Args:
        report: The findings with what they are about.

    Returns:
        The whole text of this form.
    """
    tags = [_tag(finding) for finding in report.findings]
    failures = tags.count("failure")
    errors = tags.count("error") + report.partial
    cases = [_case(finding) for finding in report.findings]
    cases += [f"<testcase {_about(finding)}/>" for finding in report.held]
    inner = '<error message="interrupted, so this is a part"/>' if report.partial else ""
    cases.append(f'<testcase classname="layoutproof" name={_attribute(report.title)}>{inner}</testcase>')
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}"'
    out = escape("\n".join([*report.notes, summary(report)]))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {counts}>\n<testsuite name="layoutproof" {counts}>\n'
        + "\n".join(cases)
        + f"\n<system-out>{out}</system-out>\n</testsuite>\n</testsuites>"
    )


def _case(finding: Finding) -> str:
    about = _about(finding)
    body = escape(text(finding))
    tag = _tag(finding)
    if not tag:
        return f"<testcase {about}><system-out>{body}</system-out></testcase>"
    what = f"message={_attribute(finding.reason)} type={_attribute(finding.question)}"
    return f"<testcase {about}><{tag} {what}>{body}</{tag}></testcase>"


def _tag(finding: Finding) -> str:
    return "error" if finding.bad_input else "failure" if level(finding) == "error" else ""


def _about(finding: Finding) -> str:
    about = f"classname={_attribute(finding.relpath or 'layoutproof')} name={_attribute(_name(finding))}"
    about += f" file={_attribute(finding.file)}" if finding.file else ""
    return about + (f' line="{finding.line}"' if finding.line else "")


def _name(finding: Finding) -> str:
    return f"{finding.question} {finding.subject} {finding.fingerprint}".rstrip()


def _attribute(text: str) -> str:
    return quoteattr(text, {"\n": "&#10;"})
