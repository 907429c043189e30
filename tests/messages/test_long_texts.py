"""Texts that say nothing, a million characters of them: each is read in a time that grows as the text does."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.hangs import HANGS

pytestmark = pytest.mark.slow

PROGRAM = """
import layoutproof as lp

LENGTH = 1_000_000
for before, again in [
    ("", "a"), ("", "1"), ("", "_"), ("", "a1"), ("", "("), ("", "()->"), ("", "f32["), ("", "1."), ("", "aError"),
    ("f32[8] ", "a"), ("f32[8] ", "1"), ("error ", "a"), ("", "f32[8]{0} = "), ("tensor<", "1x"), ("", "vector<f32,"),
    ("Ran out of memory in memory space hbm. ", "a"), ("Mosaic failed to compile TPU kernel: ", "a"),
]:
    try:
        lp.why(before + again * (LENGTH // len(again)))
    except lp.LayoutError:
        continue
print("read")
"""


@pytest.mark.commit
def test_one_long_line_is_read_in_linear_time() -> None:
    """With a reader that goes back at each character the million takes hours, and this never ends."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=HANGS)
    assert (done.stdout, done.stderr) == ("read\n", "")
