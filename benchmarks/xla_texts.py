"""XLA's own test texts against XLA's own parser: `python benchmarks/xla_texts.py FOLDER [--python PYTHON] [--show N]`.

FOLDER: a checkout of openxla/xla. Its texts stand as raw strings in `*_test.cc` and as files `*.hlo`. jaxlib says of
each whether it is HLO, and prints it; it runs in a process of its own, as it aborts on some. Counted are

  printed    what jaxlib prints: read, read with something unknown or refuted in it, refused
  written    what people wrote and jaxlib reads: the same
  rejected   what jaxlib rejects: refused, or read all the same

A text without the line HloModule counts as such: XLA takes it, and here a dump whose beginning is missing is none.
PYTHON: an interpreter whose jaxlib is asked, by default this one. The exit code is 1 where a printed text is refused.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

_RAW = re.compile(r'R"([^(\s]{0,16})\((.*?)\)\1"', re.DOTALL)
CHILD = """
import json, os, sys
from jaxlib import _hlo
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    try:
        answer = ["read", _hlo.hlo_module_from_text(json.loads(line)).to_string()]
    except Exception as error:
        answer = ["rejected", str(error)]
    print(json.dumps(answer), file=out, flush=True)
"""


def texts_of(folder: Path) -> Iterator[tuple[str, str]]:
    """(place, text) of each text that may be HLO; a file of several, which tests split, gives each of them."""
    seen = set[str]()
    for path in sorted([*folder.rglob("*_test*.cc"), *folder.rglob("*.hlo")]):
        text = path.read_text(errors="replace")
        if path.suffix == ".hlo":
            found = [(1, part) for part in re.split(r"^// -----.*\n", text, flags=re.MULTILINE)]
        else:
            found = [(text.count("\n", 0, m.start()) + 1, m[2]) for m in _RAW.finditer(text)]
        for line, part in found:
            if ("HloModule" in part or "ENTRY" in part) and part not in seen:
                seen.add(part)
                yield f"{path.relative_to(folder)}:{line}", part


def answers(texts: list[str], python: str) -> Iterator[tuple[str, str]]:
    """(read, its print), (rejected, why) or (aborted, "") of each text, as jaxlib has it."""
    child: subprocess.Popen[str] | None = None
    for text in texts:
        if child is None:
            command = [python, "-c", CHILD]
            pipe = subprocess.PIPE
            child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps(text) + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            kind, said = json.loads(line)
            yield kind, said
        else:
            child.wait()
            child = None
            yield "aborted", ""
    if child is not None and child.stdin is not None:
        child.stdin.close()
        child.wait()


def ours(text: str) -> tuple[str, str]:
    """(read, unknown, refuted or refused; why it is refused) of a text."""
    from layoutproof.hlo.audit import audit

    if "HloModule" not in text:
        return "no HloModule", ""
    found = audit(text.splitlines(keepends=True), "text")
    if found.errors:
        return "refused", f"line {found.errors[0].line}: {found.errors[0].problem}"
    return {0: "read", 1: "refuted", 3: "unknown"}[found.exit_code], ""


def main() -> int:
    """Prints the counts, and some of the texts on which the two do not agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--show", type=int, default=0)
    given = parser.parse_args()
    texts = [*texts_of(given.folder)]
    counts = Counter[tuple[str, str]]()
    printed = set[str]()
    shown: list[str] = []
    for (place, text), (kind, said) in zip(texts, answers([text for _, text in texts], given.python), strict=True):
        asked = [("rejected", text)] if kind == "rejected" else []
        if kind == "read":
            asked = [("written", text)]
            if said not in printed:
                printed.add(said)
                asked.append(("printed", said))
        counts["texts", kind] += 1
        for what, each in asked:
            answer, why = ours(each)
            counts[what, answer] += 1
            if answer not in ("no HloModule", "unknown", "refuted") and (what == "rejected") != (answer == "refused"):
                shown.append(f"{what} {place}: {answer}: {why or said.splitlines()[1:2] or said}")
    for what in ("texts", "printed", "written", "rejected"):
        line = ", ".join(f"{count} {answer}" for (of, answer), count in sorted(counts.items()) if of == what)
        print(f"{what:<9} {line}", flush=True)
    print("\n".join(shown[: given.show]))
    return int(counts["printed", "refused"] > 0)


if __name__ == "__main__":
    sys.exit(main())
