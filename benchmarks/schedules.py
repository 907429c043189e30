"""Cycles by the compiler's own schedule beside those that it estimates: `python benchmarks/schedules.py [TARGET ..]`.

The programs are the 19 of docs/programs.md (`tests/programs/corpus.py`), for each of the targets. Prints a table as
Markdown: how many have the sum, and which others do not.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]


def main() -> int:
    """Prints the table; 1 where one was not compiled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=("v5e", "v5p", "v6e", "7x"))
    given = parser.parse_args()
    os.chdir(ROOT)
    from drift import NAMES

    import layoutproof as lp
    from tests.programs.corpus import MESH, PROGRAMS, TARGETS

    print("| target | with a sum | operations | estimated | by the schedule | it aborts on | an operation has none |")
    print("|---|--:|--:|--:|--:|---|---|")
    code = 0
    for target in given.targets:
        sums, aborts, others = [0, 0, 0, 0], [], []
        for name in NAMES:
            one = PROGRAMS[name]
            where = {"topology": TARGETS[target], "mesh": MESH, "in_specs": one.ins} if one.ins else {}
            function = f"tests.programs.corpus:{name}"
            made = lp.compile(function, *one.args, target=target, donate=one.donate, schedule=True, **where)
            if not made.records or made.records[0].schedule is None:
                code = 1
                continue
            schedule = made.records[0].schedule
            print(target, name, made.records[0].cycles, schedule.cycles, schedule.why, file=sys.stderr)
            if schedule.cycles is None:
                (others if schedule.many else aborts).append(f"`{name}`")
                continue
            new = (1, schedule.many, made.records[0].cycles or 0, schedule.cycles)
            sums = [one + other for one, other in zip(sums, new, strict=True)]
        first, *more = sums
        cells = [
            target,
            f"{first} of {len(NAMES)}",
            *(f"{each:,}" for each in more),
            ", ".join(aborts),
            ", ".join(others),
        ]
        print(f"| {' | '.join(cells)} |")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
