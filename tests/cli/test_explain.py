"""Each page of `explain` says why it matters, where it happened, what to do, what it does not say; its examples run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from layoutproof.cli.commands.explain import _pages
from layoutproof.pallas.judge import about_body
from layoutproof.registry.catalogue import kernel_properties
from tests.cli.in_one_process import commands

PAGES = _pages()
PARTS = {
    "properties": ("Why it matters", "Refuted by", "Fix", "Incident", "Limits"),
    "properties of kernels": ("Why it matters", "Refuted by", "Fix", "Incident", "Limits"),
    "claims about programs": ("Example", "Incident", "Limits"),
    "classes of the gate": ("Why it matters", "Incident", "Fix", "Limits"),
}
"""What every page of a kind has."""
NOTHING_REFUTES = {"owned", "analysable"}
"""A sharding that `owned` would refute is bad input; `analysable` is proved or unknown."""
NO_COMMAND = {name for name in kernel_properties() if about_body(name)} | {
    "compiled",
    "vmem_total",
    "known_bugs",
    "known_jax_bugs",
}
"""What needs JAX or the compiler: docs/kernels.md and docs/compiler.md have examples that run."""


def examples(text: str) -> dict[str, str]:
    """The command below `Refuted:` and below `Proved:`."""
    found = re.findall(r"^(Refuted|Proved):\n((?: {4}.*(?:\n|\Z))+)", text, re.MULTILINE)
    return {label: re.sub(r"^ {4}", "", block, flags=re.MULTILINE) for label, block in found}


EXAMPLES = {
    (name, label): command
    for kind in ("properties", "properties of kernels")
    for name, text in PAGES[kind].items()
    for label, command in examples(text).items()
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in PARTS for name in PAGES[kind]])
def test_each_page_has_its_parts(kind: str, name: str) -> None:
    """And its incident is a thread or an entry of BUGS-FOUND.md, or it says that none is known."""
    text = PAGES[kind][name]
    assert [part for part in PARTS[kind] if f"\n{part}: " not in text] == []
    incident = re.split(r"\n(?:[A-Z]\w+:)", text.partition("\nIncident: ")[2])[0]
    assert re.search(r"https://|BUGS-FOUND\.md|none is known to us", incident)


def test_each_property_has_examples() -> None:
    """A refuted and a proved one, but for those where the first cannot be, or neither without JAX."""
    for kind in ("properties", "properties of kernels"):
        for name in PAGES[kind]:
            wanted = set() if name in NO_COMMAND else {"Proved"} if name in NOTHING_REFUTES else {"Refuted", "Proved"}
            assert {label for other, label in EXAMPLES if other == name} == wanted, name


def test_the_examples_run(tmp_path: Path) -> None:
    """As they would be pasted: each asks what its page is about, and comes out as it says."""
    lines = [shlex.split(command)[1:] for command in EXAMPLES.values()]
    answers, _ = commands(tmp_path, *lines, seconds=300)
    wrong = [
        (name, label, answer.out + answer.err)
        for (name, label), answer in zip(EXAMPLES, answers, strict=True)
        if not answer.out.startswith(f"{label.lower():<8} {name} ") or answer.code != (label == "Refuted")
    ]
    assert wrong == []
