"""Every reader of a stranger's text takes steps that grow as the text does, whatever the text is."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.readers import AGAIN, HOLE, READERS, said
from layoutproof.core.bounds import MAX_CHARACTERS
from tests.hangs import HANGS

pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys
from tests import steps
steps.install()
from benchmarks.readers import READERS, said, texts

found = {}
for name in json.loads(sys.argv[1]) or READERS:
    of = READERS[name]
    for text in texts(of, name):
        said(of.read, text.of(100))
        counted = []
        for length in (500, 1_000):
            before = steps.steps
            said(of.read, text.of(length))
            counted.append(steps.steps - before)
        if counted[1] > 2.6 * counted[0]:
            found[f"{name}: {text.again!r} in {text.begin!r}"] = counted
print(json.dumps(found))
"""
"""Of the first 100 characters is asked what is imported, or kept, once."""


def found(program: str, *given: str) -> dict[str, list[int]]:
    """What a process says in which the steps of the package are counted."""
    done = subprocess.run([sys.executable, "-c", program, *given], capture_output=True, text=True, timeout=HANGS)
    assert done.stderr == ""
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.commit
def test_a_text_that_is_twice_as_long_is_twice_the_work() -> None:
    """Line ends, brackets and quotes that nobody closes, digits, computations on one line: no reader goes back."""
    assert found(PROGRAM, "[]") == {}


@pytest.mark.parametrize("name", [name for name, of in READERS.items() if 0 < of.most() <= MAX_CHARACTERS])
def test_a_text_beyond_the_bound_is_refused_in_one_line(name: str) -> None:
    """With line ends, and as one long line. At the bound it is not its length that is wrong."""
    of = READERS[name]
    words = f"at most {of.most():,} are read"
    for again in ("\n", "a"):
        text = again * of.most()
        assert words in said(of.read, f"{text}a")
        assert "\n" not in said(of.read, f"{text}a")
        assert words not in said(of.read, text)


FAULTS = {
    "a copy of the rest": "while text:\n    text = text[1:]",
    "a search from the start": "for at in range(len(text)):\n    text.find('b', 0)",
    "a search that fails at each place": "for at in range(len(text)):\n    AT.match(text, at)",
    "a text put together": "whole = ''\nfor each in text:\n    whole = whole + each",
    "a list that is looked through": "seen = []\nfor at in range(len(text)):\n    at in seen or seen.append(at)",
    "a list that is made anew": "seen = []\nfor each in text:\n    seen = [*seen, each]",
    "a loop within a loop": "for one in text:\n    for other in text:\n        pass",
}
SOUND = {
    "a cursor": "at = 0\nwhile at < len(text):\n    at = WORD.match(text, at).end()",
    "slices": "for at in range(len(text)):\n    text[at : at + 10]",
    "a list that grows": "seen = []\nfor each in text:\n    seen.append(each)",
    "a match that fails at once": "for at in range(len(text)):\n    NOT.match(text, at)",
}


@pytest.mark.parametrize("name", [*FAULTS, *SOUND])
def test_what_goes_back_is_counted(name: str) -> None:
    """A reader that is planted is found, and its right twin is not."""
    from tests import steps

    inside = {**FAULTS, **SOUND}[name].replace("\n", "\n    ")
    source = f"import re\nAT, NOT, WORD = map(re.compile, ('a*b', 'c*b', 'a{{5}}'))\ndef read(text):\n    {inside}\n"
    space: dict[str, object] = {"__steps__": steps}
    exec(steps.compiled(source, "planted"), space)
    counted = []
    for length in (1_000, 2_000):
        before = steps.steps
        space["read"]("a" * length)  # type: ignore[operator]
        counted.append(steps.steps - before)
    assert (counted[1] > 2.6 * counted[0]) == (name in FAULTS)


ODD = (
    *("\0", "\ud800", "\x1b[31m", "\u202e", "\ufeff", "##[error]", "\n::set-output name=a::b\n", "9" * 5000, "-1"),
    *("NaN", "1e999", "0x10", "<<: *a", "!!python/object/apply:os.system [id]", "${{ a }}", "\\ud800", "\r", "\u2028"),
)
"""What stands in any text: no letters, commands of terminals and build servers, numbers that are too large or none."""
AROUND = (
    "(@@)",
    "[@@]",
    "{@@}",
    '"@@"',
    "'@@'",
    '{"a": @@}',
    "- @@\n",
    "a: @@\n",
    "f32[@@]",
    "P(@@)",
    "a=@@,",
    "x @@ y",
)
"""What stands around others."""


@st.composite
def texts_of(draw: st.DrawFn) -> tuple[str, str]:
    """(a reader, a text): one of its beginnings with parts of its language in it, within one another."""
    name = draw(st.sampled_from(sorted(READERS)))
    of = READERS[name]
    parts = st.sampled_from([*AGAIN, *of.again, *of.begins, *ODD, *AROUND])
    text = draw(st.sampled_from(of.begins))
    for part in draw(st.lists(parts, max_size=12)):
        if HOLE in text and draw(st.booleans()):
            text = text.replace(HOLE, part, 1)
        else:
            text = part.replace(HOLE, text) if HOLE in part else text + part
        # doubling has an end
        text = text[:20_000]
    return name, text.replace(HOLE, "")


@given(texts_of())
@example(("XLA", "f32[" + "9" * 5000 + "]"))
@example(("spec", 'checks: [{injective: "f32[\\ud800]"}]'))
@example(("spec", "layouts: &a {b: *a}"))
@example(("settings", "[tool.layoutproof]\na = " + "9" * 5000))
@example(("lock", '{"version": NaN, "files": 1e999}'))
@example(("records of kernels", '{"version": ' + "[" * 5000))
@example(("HLO", "HloModule m\nENTRY e { x = f32[" + "9" * 5000 + "] parameter(0) }"))
@example(("message", "Ran out of memory in memory space hbm. \0\ud800" + "9" * 5000))
def test_whatever_a_text_is_its_reader_says_it(found: tuple[str, str]) -> None:
    """It is read, or a LayoutError; nothing else is raised. What failed once stays as an example."""
    name, text = found
    assert isinstance(said(READERS[name].read, text), str)
