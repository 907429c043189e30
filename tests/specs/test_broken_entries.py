"""An entry of a section that is something else: a mistake at its place, and no error of ours in what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.in_one_process import commands

pytestmark = pytest.mark.slow

BROKEN = (
    "null",
    "[1]",
    "text",
    "3",
    "{}",
    "{record}",
    "{dump: null}",
    "{export: null}",
    "{trace: null}",
    "{trace: [1]}",
    "{trace: 'a:b', args: 5}",
    "{trace: 'a:b', kwargs: [1]}",
    "{trace: 'a:b', call: [1]}",
    "{trace: 'a:b', assume: 3}",
    "{function: 'a:b', seconds: x}",
)
RIGHT = """
kernels:
  mm: {trace: "a:b"}
layouts:
  a: f32[8]{0}
programs:
  p: {dump: step.txt}
checks:
  - {injective: a}
"""


@pytest.mark.parametrize("section", ["kernels", "programs", "inline"])
def test_a_broken_entry_is_bad_input(tmp_path: Path, section: str) -> None:
    asked = []
    (tmp_path / "right.yaml").write_text(RIGHT)
    for k, value in enumerate(BROKEN):
        named = {
            "kernels": f"kernels:\n  x: {value}\nchecks:\n  - blocks_in_bounds: x\n  - kernel: x\n  - kernel: x[0]\n",
            "programs": f"programs:\n  x: {value}\nchecks:\n  - {{copies: x, at_most: 0}}\n",
            "inline": f"checks:\n  - kernel: {{pallas: {value}}}\n  - injective: {{pallas: {value}}}\n",
        }[section]
        (tmp_path / f"{k}.yaml").write_text(named + "  - {injective: 'f32[8]{0}'}\n")
        asked += [["check", f"{k}.yaml"], ["gate", "right.yaml", f"{k}.yaml"], ["gate", f"{k}.yaml", "right.yaml"]]
    answers, _ = commands(tmp_path, *asked)
    for words, done in zip(asked, answers, strict=True):
        assert "bug in layoutproof" not in done.out + done.err, words
        if words[0] == "check":
            assert done.code == 2, words
            assert "1 claim as stated: 1 proved" in done.out, words
            assert f"{words[1]}:2:" in done.out, words
