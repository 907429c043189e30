"""Whether `search` calls legal what the TPU compiler takes, and finds the best by its cycles: twelve kernels.

    python benchmarks/search_legal.py truth TRUTH.jsonl [--target v5e] [--only matmul] [--cycles]
    python benchmarks/search_legal.py compare TRUTH.jsonl

`truth` asks libtpu about every candidate of `search_kernels.SEARCHED`, one after the other, and adds what is not in the
file yet. `compare` searches each, without the compiler, and counts: false illegal, called illegal and taken; set aside,
by headroom, and how many of those are taken; false legal, called legal and refused. With cycles: those of the first row
that the compiler takes, over the least of all candidates; both at least what their traffic with HBM needs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from search_kernels import SEARCHED, Searched

HERE = Path(__file__).resolve().parent / "search_kernels.py"
Key = tuple[str, str, tuple[int, ...]]


def candidates(of: Searched) -> Iterator[dict[str, int]]:
    """All of them."""
    for values in itertools.product(*of.tune.values()):
        yield dict(zip(of.tune, values, strict=True))


def read(path: Path) -> dict[Key, dict[str, Any]]:
    """The rows of a file of truth by kernel, target and values."""
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {(row["kernel"], row["target"], tuple(row["values"].values())): row for row in rows}


def truth(path: Path, targets: list[str], only: list[str], cycles: bool) -> None:
    """Asks about every candidate that is not in the file yet, with cycles where they are wanted."""
    from layoutproof.mosaic.ask import asked, compiled
    from layoutproof.pallas.from_jax.user import calls_of

    known = read(path)
    for name, target in itertools.product(only or SEARCHED, targets):
        of = SEARCHED[name]
        place = f"{HERE}:{of.function}"
        left = [
            values
            for values in candidates(of)
            if (row := known.get((name, target, tuple(values.values())))) is None
            or (cycles and row["accepted"] and row["cycles"] is None and not row["no_estimate"])
        ]

        def questions(
            left: list[dict[str, int]] = left, of: Searched = of, place: str = place, target: str = target
        ) -> Any:
            for values in left:
                (call,) = calls_of(place, of.args, values, target=target)
                yield asked(place, of.args, values, call, 0, target, cycles)  # type: ignore[arg-type]

        for values, report in zip(left, compiled(questions()), strict=True):
            row = {
                "kernel": name,
                "target": target,
                "values": values,
                "accepted": report.accepted,
                "words": (report.refused or report.problem)[:300],
                "total": None if report.vmem is None else report.vmem.total,
                "whole": 0 if report.vmem is None else len(report.vmem.whole),
                "cycles": report.estimate.ranked,
                "no_estimate": report.estimate.reason if cycles else "",
            }
            with path.open("a") as file:
                print(json.dumps(row), file=file, flush=True)
            print(name, target, values, report.accepted, row["total"], row["cycles"], flush=True)


def compare(path: Path) -> None:
    """A table of what the search says beside the truth."""
    import layoutproof as lp

    known = read(path)
    print("kernel target  candidates accepted  false illegal  set aside: taken refused  false legal  first/best")
    sums = [0] * 5
    for name, target in dict.fromkeys(key[:2] for key in known):
        of = SEARCHED[name]
        said = {key[2]: row for key, row in known.items() if key[:2] == (name, target)}
        tune = {n: ",".join(map(str, v)) for n, v in of.tune.items()}
        found = lp.search(f"{HERE}:{of.function}", args=of.args, tune=tune, target=target, best=1000).as_dict()
        allowed = [tuple(one["values"].values()) for one in found["best"]]
        aside = {tuple(one["values"].values()) for one in found["set_aside"]["candidates"]}
        takes = {values for values, row in said.items() if row["accepted"]}
        refuses = {values for values, row in said.items() if row["accepted"] is False}
        illegal = set(said) - set(allowed) - aside
        counts = [
            len(takes), len(illegal & takes), len(aside & takes), len(aside & refuses), len(set(allowed) & refuses)
        ]  # fmt: skip
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        cycles = {v: row["cycles"] for v, row in said.items() if row["cycles"] is not None}
        first = next((cycles[v] for v in allowed if v in cycles), None)
        ratio = "-" if first is None else f"{first / min(cycles.values()):.3f}"
        best = min(cycles, key=cycles.__getitem__) if cycles else None
        print(
            f"{name:17}{target:5}{len(said):6}{counts[0]:9}{counts[1]:15}{counts[2]:18}{counts[3]:8}{counts[4]:13}"
            f"  {ratio}  first {allowed[0] if allowed else None} best {best}"
            f"  illegal and taken {sorted(illegal & takes)[:4]} legal and refused {sorted(set(allowed) & refuses)[:4]}",
            flush=True,
        )
    print("all", *sums)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("truth", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", action="append", help="repeatable; v5e and v6e")
    parser.add_argument("--only", action="append", default=[], help="a kernel; repeatable")
    parser.add_argument("--cycles", action="store_true", help="ask for estimates of cycles too, which takes longer")
    given = parser.parse_args()
    if given.what == "truth":
        truth(given.file, given.target or ["v5e", "v6e"], given.only, given.cycles)
    else:
        compare(given.file)


if __name__ == "__main__":
    main()
