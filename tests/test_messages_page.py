"""docs/messages.md is so: the command gives what stands below each message."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "messages.md").read_text()
EXAMPLES = re.findall(
    r"^```text\n(.*?)\n```\n\n```console\n\$ layoutproof why message.txt\n(.*?)\n```$", PAGE, re.S | re.M
)


def test_three_messages_are_answered() -> None:
    assert len(EXAMPLES) == PAGE.count("```text") == 3


@pytest.mark.parametrize(("message", "answer"), EXAMPLES)
def test_the_command_prints_what_stands_below_a_message(message: str, answer: str, tmp_path: Path) -> None:
    (tmp_path / "message.txt").write_text(message)
    done = subprocess.run(
        [sys.executable, "-m", "layoutproof", "why", "message.txt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr, done.stdout.rstrip("\n")) == (0, "", answer)
