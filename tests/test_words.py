"""Words that send an engineer to a dictionary do not come back: docs/glossary.md has the field's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
BANNED = {
    r"mend(?:s|ed|ing)?": "fix",
    r"doors?": "command, cli",
    r"glances?": "bounded search",
    r"settled_reads": "reachable_blocks",
    r"table_ties": "read_consistency",
    r"not_shown": "uncertified",
    r"uncollected": "gc_disabled",
    r"wordless": "not_serialisable",
    r"stanzas?": "approval snippet",
    r"Any_|Unreached|Unreadable": "Or, Uncovered, UnsupportedOp",
    r"first_copy|second_copy": "first_replica, second_replica",
    r"[Nn]obody (?:can|could) tell": "unknown",
    r"[Nn]othing asked is nothing proved": "there is nothing to prove",
    r"mov(?:e|es|ed) (?:\w+ )?by hand": "manual DMA",
    r"the user's to say": "assumed",
    r"unknown with words": "reported as unknown",
}
"""A word or a phrase -> what is written instead."""

OLD_KEYS = "docs/json.md"
"""The page that says what became of earlier keys."""

USERS = (
    *("README.md", "docs/index.md", "docs/languages.md", "docs/gallery.md", "docs/glossary.md"),
    *("docs/howto", "docs/concepts"),
)
"""What a user reads first: pages, and folders of them."""
WORDS = 30
"""The most words of a sentence there."""

FOUND = re.compile("|".join(rf"(?<![\w-])(?:{word})(?![\w-])" for word in BANNED))


def banned(text: str) -> list[str]:
    """The words of the list in a text, in order. Phrases are found across lines."""
    return [" ".join(hit[0].split()) for hit in FOUND.finditer(re.sub(r"\s*\n\s*#?\s*", " ", text))]


def pages() -> list[Path]:
    """What users and contributors read: the package, the README, the guides."""
    listed = subprocess.run(
        ["git", "ls-files", "layoutproof", "docs", "README.md", "CONTRIBUTING.md", "SECURITY.md"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    names = listed.stdout.split() or [p.relative_to(ROOT).as_posix() for p in (ROOT / "layoutproof").rglob("*.py")]
    return [ROOT / name for name in names if name.endswith((".py", ".md")) and name != OLD_KEYS]


@pytest.mark.parametrize(
    "package", sorted({p.relative_to(ROOT).parts[: 1 + ("layoutproof" in p.parts)] for p in pages()})
)
def test_no_private_word(package: tuple[str, ...]) -> None:
    """Each page and each file of a package."""
    of_package = [p for p in pages() if p.relative_to(ROOT).parts[: len(package)] == package]
    assert of_package
    found = {p.relative_to(ROOT).as_posix(): words for p in of_package if (words := banned(p.read_text("utf-8")))}
    assert found == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the mend is", ["mend"]),
        ("what nobody\n    can tell", ["nobody can tell"]),
        ("# what nobody\n# could tell", ["nobody could tell"]),
        ("data moved by hand", ["moved by hand"]),
        ("amend, recommend, outdoors, mend_line", []),
        ("a fix; unknown; manual DMA", []),
    ],
)
def test_the_check_can_fail(text: str, words: list[str]) -> None:
    """Whole words, also over the end of a line; parts of other words are none."""
    assert banned(text) == words


def long_sentences(text: str) -> list[str]:
    """Sentences of a page with too many words; code is one word, and a cell of a table or an item begins anew."""
    for pattern, instead in ((r"```.*?```|<!--.*?-->", ""), (r"`[^`]*`", "X"), (r"\]\([^)]*\)", "]")):
        text = re.sub(pattern, instead, text, flags=re.DOTALL)
    parts = re.split(r"\n\s*(?:[-#>]|\d+\.)|\n\s*\n|\s*\|\s*", text)
    sentences = [one for part in parts for one in re.split(r"(?<=[.!?])\s+", " ".join(part.split()))]
    return [one for one in sentences if len(one.split()) > WORDS]


@pytest.mark.parametrize(
    "page",
    [p.relative_to(ROOT).as_posix() for name in USERS for p in (sorted((ROOT / name).glob("*.md")) or [ROOT / name])],
)
def test_sentences_for_users_are_short(page: str) -> None:
    assert long_sentences((ROOT / page).read_text(encoding="utf-8")) == []


def test_the_check_of_sentences_can_fail() -> None:
    """Code, a cell and an item are not joined to what is around them."""
    words = "word " * 29
    assert long_sentences(f"{words}`a b c`. Short one.\n\n- {words}end.\n| {words}|{words}|") == []
    assert long_sentences(f"{words}\nover the end.") == [f"{words}over the end."]
