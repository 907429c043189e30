"""What users rely on is still there: commands, options, keys, names, exit codes."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from tests import contract, trusted
from tests.contract import DEPRECATED, ROOT, Contract, missing, promised

VERSION = contract.version()


@pytest.fixture(scope="module")
def now() -> Contract:
    """What the code has."""
    return contract.contract()


def test_nothing_that_was_promised_is_gone(now: Contract) -> None:
    """And what is new is promised from now on: `python -m tests.contract` writes it down."""
    assert missing(promised(), now, DEPRECATED, VERSION) == []
    assert now == promised()


def test_nothing_that_the_last_release_promised_is_gone(now: Contract) -> None:
    """The file of the last tag; before the first release there is none, and the committed file is the promise."""
    said = subprocess.run(["git", "tag", "--list", "v*", "--sort=-v:refname"], cwd=ROOT, capture_output=True, text=True)
    tags = [tag for tag in said.stdout.split() if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    if not tags:
        assert VERSION == "0.1.0", "a release has a tag"
        return
    shown = subprocess.run(["git", "show", f"{tags[0]}:tests/contract.json"], cwd=ROOT, capture_output=True, text=True)
    assert missing(json.loads(shown.stdout), now, DEPRECATED, VERSION) == []


def test_what_is_gone_is_found(now: Contract) -> None:
    """An option, a key, a name; one that is deprecated may go with the next minor version, and no earlier."""
    for part, entry in (("commands", "ask --json"), ("json", 'ask verdict: "proved"'), ("names", "injective")):
        less = {**now, part: [each for each in now[part] if each != entry]}
        line = f"{part}: {entry}"
        assert missing(now, less, {}, "0.2.0") == [line]
        assert missing(now, less, {line: "0.1"}, "0.1.3") == [line]
        assert missing(now, less, {line: "0.1"}, "0.2.0") == []
    assert missing(now, {**now, "names": [*now["names"], "new"]}, {}, VERSION) == []


def test_the_page_has_the_parts_that_are_believed() -> None:
    """Their lines to a tenth: `python -m tests.trusted` writes them."""
    row = re.compile(r"^(\| .*\|) \d+ \| ([\d,]+) (\| .*)$", re.MULTILINE)
    shown, made = (row.findall(text) for text in (trusted.PAGE.read_text("utf-8"), trusted.table()))
    assert [(name, checked) for name, _, checked in shown] == [(name, checked) for name, _, checked in made]
    for (name, before, _), (_, now, _) in zip(shown, made, strict=True):
        counted = int(now.replace(",", ""))
        assert abs(int(before.replace(",", "")) - counted) <= counted / 10, name
