"""The policy: severities, bounds, approvals, and what none of them can do."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, Report, unknown, wrong_input
from layoutproof.core.fingerprint import named
from layoutproof.gating.policy import Policy, approval_snippet, judge, read
from tests.said import stretch, words

TODAY = datetime.date(2026, 11, 21)
(MOVED,) = named([Finding("moved", "layout a", "x", relpath="a.yaml")])
UNKNOWN = unknown("layout a", "x", relpath="a.yaml", fingerprint="0" * 16)


def grew(percent: float, before: int = 1000) -> Finding:
    """Padding that grew by so many percent."""
    after = round(before * (1 + percent / 100))
    return Finding("grew", "a", "x", figures={"bytes_before": before, "bytes_after": after, "percent": percent})


def severity(finding: Finding, rules: dict[str, Any]) -> str:
    """What the rules say of one finding."""
    return judge([finding], {}, read(rules, "here"), TODAY)[0][0].severity


@pytest.mark.parametrize(
    ("rule", "percent", "expected"),
    [
        ("deny", 0.1, "deny"),
        ("allow", 900.0, "allow"),
        ("deny above 2%", 2.0, "allow"),
        ("deny above 2%", 2.1, "deny"),
        ("warn, deny above 2%", 1.0, "warn"),
        ("warn, deny above 2%", 3.0, "deny"),
        ("warn above 1%, deny above 5.5 %", 0.5, "allow"),
        ("deny above 100 bytes", 9.0, "allow"),
        ("deny above 100 bytes", 11.0, "deny"),
        ("deny above 1 KiB", 90.0, "allow"),
    ],
)
def test_bounds(rule: str, percent: float, expected: str) -> None:
    """A bound is exceeded, not reached."""
    assert severity(grew(percent), {"grew": rule}) == expected


def test_a_bound_that_nobody_can_compare_with_is_exceeded() -> None:
    """Growth in closed form has no percent: it is not let through."""
    finding = Finding("grew", "a", "x", figures={"bytes_before": "4*N", "bytes_after": "8*N"})
    assert severity(finding, {"grew": "deny above 2%"}) == "deny"
    assert severity(finding, {"grew": "deny above 1 MiB"}) == "deny"


def test_defaults() -> None:
    """Without rules: what is proved harmless is allowed, what is not is denied."""
    found = {k: severity(Finding(k, "a", "x"), {}) for k in ("respelled", "moved", "grew", "lost", "added", "nonsense")}
    assert found == {
        "respelled": "allow", "moved": "deny", "grew": "warn", "lost": "deny", "added": "allow", "nonsense": "deny",
    }  # fmt: skip


def approval(**given: Any) -> dict[str, Any]:
    """Rules with one approval."""
    whole = {"fingerprint": MOVED.fingerprint, "reason": "measured", "until": "2026-12-01"} | given
    return {"approvals": [whole]}


def test_an_approval_allows_one_finding_until_its_day() -> None:
    """On the last day still, after it not, and both is said."""
    (found,), notes = judge([MOVED], {}, read(approval(until="2026-11-21"), "here"), TODAY)
    assert (found.severity, found.policy, notes) == ("allow", "approved until 2026-11-21: measured", [])
    (found,), notes = judge([MOVED], {}, read(approval(until="2026-11-20"), "here"), TODAY)
    assert found.severity == "deny"
    assert notes == [f"the approval {MOVED.fingerprint} expired on 2026-11-20: measured"]


def test_an_idle_approval_is_said() -> None:
    """One that fits nothing can be removed."""
    _, notes = judge([MOVED], {}, read(approval(fingerprint="f" * 16), "here"), TODAY)
    assert notes == [words("gating.approval_of_nothing", fingerprint="ffffffffffffffff", reason="measured")]


def test_what_nobody_could_tell_cannot_be_approved() -> None:
    """Not by fingerprint and not by rule: exit 3."""
    rules = read(approval(fingerprint="0" * 16), "here")
    judged, _ = judge([UNKNOWN], {}, rules, TODAY)
    assert Report("t", tuple(judged)).exit_code == 3
    assert (judged[0].severity, judged[0].policy) == ("deny", "")


def test_rules_of_a_file_are_over_the_general_ones() -> None:
    """Only for what that file is about, and only where they say something."""
    general, own = read({"moved": "warn", "grew": "deny"}, "here"), read({"moved": "allow"}, "there")
    other = Finding("moved", "layout a", "x", relpath="b.yaml")
    judged, _ = judge([MOVED, other], {"a.yaml": own}, general, TODAY)
    assert [f.severity for f in judged] == ["allow", "warn"]
    assert own.over(general).steps.keys() == {"moved", "grew"}


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ({"mooved": "deny"}, stretch("gating.unknown_class", name="'mooved'")),
        ({"unknown": "allow"}, "unknown class 'unknown'"),
        ({"moved": "no"}, "'no' is no severity"),
        ({"moved": "deny above"}, "'deny above' is no severity"),
        ({"moved": 3}, stretch("gating.severity_form")),
        ("deny", stretch("gating.rules_form")),
        (approval(reason=" "), "says no reason"),
        (approval(until="soon"), stretch("gating.day_form")),
        (approval(until=3), stretch("gating.day_form")),
        (approval(fingerprint="xyz"), stretch("gating.fingerprint_form")),
        (approval(fingerprint=1234567890123456), stretch("gating.fingerprint_form")),
        (approval(team="mine"), "nothing else"),
        (approval(by=3), "by is a text"),
        ({"approvals": "all"}, "approvals is a list"),
    ],
)
def test_rules_that_are_refused(rules: Any, problem: str) -> None:
    """Nothing is ignored: a rule that is not understood is bad input, with its place."""
    with pytest.raises(LayoutError, match=problem) as caught:
        read(rules, "pyproject.toml")
    assert str(caught.value).startswith("pyproject.toml: ")


def test_the_stanza_reads_back_once_a_reason_is_given() -> None:
    """What --approve prints is TOML that approves this finding; as printed, its empty reason is refused."""
    import tomllib

    text = approval_snippet(MOVED, TODAY)
    gate = tomllib.loads(text)["tool"]["layoutproof"]["gate"]
    with pytest.raises(LayoutError, match="says no reason"):
        read(gate, "here")
    gate["approvals"][0]["reason"] = "measured"
    assert judge([MOVED], {}, read(gate, "here"), TODAY)[0][0].severity == "allow"
    assert Policy() == read({}, "here")


@pytest.mark.parametrize(
    ("findings", "partial", "code"),
    [
        ([], False, 0),
        ([Finding("moved", "", "", severity="warn")], False, 0),
        ([Finding("moved", "", "", severity="deny")], False, 1),
        ([UNKNOWN], False, 3),
        ([UNKNOWN, Finding("moved", "", "", severity="deny")], False, 1),
        ([wrong_input("", ""), Finding("moved", "", "")], False, 1),
        ([wrong_input("", ""), UNKNOWN], False, 2),
        ([], True, 130),
    ],
)
def test_exit_codes(findings: list[Finding], partial: bool, code: int) -> None:
    """Denied before bad input before unknown; a part is never green."""
    assert Report("t", tuple(findings), partial=partial).exit_code == code
