"""`layoutproof scan` on checkouts that the caller names: `python benchmarks/scan.py FOLDER..`. Nothing of them is
imported. A table: Python files, Pallas calls by hardware, shardings, what is judged in CI, and seconds of this process.

Held against a second reading: every line with `pallas_call(` in the text of a file without comments and strings is a
site of the first one, or is listed below the table.
"""

from __future__ import annotations

import io
import re
import sys
import time
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from layoutproof.answers.of_scan import Scanned, scan
from layoutproof.scanning.judges import is_test


def by_tokens(folder: Path, files: Sequence[str]) -> Iterator[tuple[str, int]]:
    """(file, line) of each `NAME.pallas_call` that is called or applied in part, by Python's tokens alone; `self` and
    `super()` have methods that are called so."""
    for file in files:
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO((folder / file).read_text("utf-8")).readline))
        except (OSError, ValueError, SyntaxError, tokenize.TokenError):
            continue
        names = [t for t in tokens if t.type in (tokenize.NAME, tokenize.OP)]
        for before, dot, name, after in zip(names, names[1:], names[2:], names[3:], strict=False):
            if (
                dot.string == "."
                and name.string == "pallas_call"
                and after.string in "(,"
                and before.string not in ("self", ")")
            ):
                yield file, name.start[0]


def row(name: str, answer: Scanned, seconds: float) -> str:
    """One line of the table."""
    calls = [f for f in answer.sites if f.is_call]
    own = [f for f in calls if not is_test(f.file)]
    hardware = Counter(f.site.hardware or "not said" for f in own)
    kinds = Counter(f.site.kind for f in answer.sites if not is_test(f.file))
    said = ", ".join(f"{count} {what}" for what, count in hardware.most_common())
    judged = sum(f.standing != "by none" for f in own)
    numbers = [kinds["shard_map"], kinds["PartitionSpec"], kinds["sharding"] + kinds["sharding constraint"]]
    cells = [name, f"{answer.python:,}", len(answer.unread), len(own), said or "-", len(calls) - len(own)]
    return f"| {' | '.join(map(str, [*cells, *numbers, kinds['layout'], judged, f'{seconds:.1f}']))} |"


def main(folders: Sequence[str]) -> int:
    """Prints the table, and what only the second reading has; 1 where there is such."""
    if not folders:
        print(__doc__)
        return 2
    print("| repository | Python files | not parsed | Pallas calls | for | in tests | `shard_map` | `PartitionSpec` "
          "| shardings | layouts | judged | CPU s |")  # fmt: skip
    print(f"|---|{'---:|' * 3}---|{'---:|' * 7}")
    missed: list[str] = []
    for given in folders:
        start = time.process_time()
        answer = scan(given)
        seconds = time.process_time() - start
        name = re.sub(r"^[^+]*\+", "", Path(given).name)
        print(row(name, answer, seconds), flush=True)
        have = {(f.file, f.site.line) for f in answer.sites}
        # the line of a call is that of its first name
        near = {(file, line + k) for file, line in have for k in range(4)}
        python = {f.file for f in answer.sites}
        missed += [
            f"{name} {file}:{line}" for file, line in by_tokens(Path(given), sorted(python)) if (file, line) not in near
        ]
    print(f"\n{len(missed)} calls that only a reading by tokens finds{': ' if missed else ''}{', '.join(missed[:20])}")
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
