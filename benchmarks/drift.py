"""What another libtpu makes of the same programs: `python benchmarks/drift.py OLD NEW [--target v5e] [NAME ..]`.

OLD, NEW: the paths of two libtpu (`pip install --no-deps --target FOLDER libtpu==VERSION` makes a folder).
NAME: of `tests/programs/corpus.py`, by default the 19 of docs/programs.md. Prints one line per program, as Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
NAMES = (
    *("mlp", "attention", "grads", "moe", "scanned", "nested", "fourier", "sorted_", "scattered", "conv", "int8"),
    *("turned", "cumulative", "pallas", "norm", "updated", "sharded_scan", "sharded_grads", "resharded"),
)


def main() -> int:
    """Prints the table; exit code as `layoutproof gate`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--target", default="v5e")
    given = parser.parse_args()
    libraries = [os.path.abspath(each) for each in (given.old, given.new)]
    os.chdir(ROOT)
    import layoutproof as lp
    from tests.programs.corpus import MESH, PROGRAMS, TARGETS

    programs = {}
    for name in given.names:
        one = PROGRAMS[name]
        function, args = f"tests.programs.corpus:{name}", list(one.args)
        programs[name] = {"function": function, "args": args, "target": given.target, "donate": list(one.donate)}
        if one.ins:
            programs[name] |= {"topology": TARGETS[given.target], "mesh": MESH, "in": list(one.ins)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "drift.yaml"
        file.write_text(json.dumps({"programs": programs}))
        answer = lp.gate(libtpu=libraries, paths=[file])
    print(f"{answer.report.title}, {given.target}\n\n| program | differences |\n|---|---|")
    for name in given.names:
        here = [each for each in answer.findings if each.subject.split()[1].rstrip(":") == name]
        said = Counter(f"{each.severity} {each.question}" for each in here)
        shown = ", ".join(f"{many} {what}" if many > 1 else what for what, many in said.items())
        print(f"| `{name}` | {shown or 'none'} |")
        for each in here:
            print(f"    {each.subject}: {each.reason}", file=sys.stderr)
    return answer.exit_code


if __name__ == "__main__":
    sys.exit(main())
