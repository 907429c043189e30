"""Whether `search` calls legal what the TPU compiler takes, and finds the best by its cycles: twelve kernels.

    python benchmarks/search_legal.py truth TRUTH.jsonl [--target v5e] [--only matmul]
    python benchmarks/search_legal.py cycles TRUTH.jsonl [--target v5e] [--only matmul]
    python benchmarks/search_legal.py compare TRUTH.jsonl

`truth` asks libtpu about every candidate of `search_kernels.SEARCHED`, one after the other, and adds what is not in the
file yet. `cycles` adds its estimates of those that it takes: of the first by the search, then of the others by the
cycles that HBM and the matrix unit need at the least, until those are more than the fewest estimated so far: no other
can be the best. `compare` searches each, without the compiler, and counts: false illegal, called illegal and taken; set
aside, by headroom, and how many of those are taken; false legal, called legal and refused. With cycles: those of the
first row that the compiler takes over the least of all, and the same of the best of ten, as `--compile` shows it; all
at least what their traffic with HBM and their products need.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from math import prod
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


def truth(path: Path, targets: list[str], only: list[str]) -> None:
    """Asks about every candidate that is not in the file yet."""
    known = read(path)
    for name, target in itertools.product(only or SEARCHED, targets):
        left = [v for v in candidates(SEARCHED[name]) if (name, target, tuple(v.values())) not in known]
        for values, report in zip(left, answers(name, target, left, False), strict=True):
            row = {
                "kernel": name,
                "target": target,
                "values": values,
                "accepted": report.accepted,
                "words": (report.refused or report.problem)[:300],
                "total": None if report.vmem is None else report.vmem.total,
                "whole": 0 if report.vmem is None else len(report.vmem.whole),
                "cycles": None,
                "no_estimate": "",
            }
            _add(path, row)


def _add(path: Path, row: Mapping[str, Any]) -> None:
    """A later row of a candidate replaces an earlier one."""
    with path.open("a") as file:
        print(json.dumps(row), file=file, flush=True)
    shown = [row[key] for key in ("kernel", "target", "values", "accepted", "total", "cycles", "no_estimate")]
    print(time.strftime("%H:%M:%S"), *shown, flush=True)


def call_of(name: str, target: str, values: Mapping[str, int]) -> Any:
    """One candidate's call."""
    from layoutproof.pallas.from_jax.user import calls_of

    (call,) = calls_of(f"{HERE}:{SEARCHED[name].function}", SEARCHED[name].args, dict(values), target=target)
    return call


def needed(name: str, target: str, row: Mapping[str, Any]) -> int:
    """The cycles that its traffic and products need at the least."""
    from layoutproof.mosaic.bounds import pipeline_cycles, product_cycles, traffic_cycles

    kernel = call_of(name, target, row["values"])
    products = 0 if kernel.work is None else kernel.work.flops * prod(kernel.grid)
    steps = 0 if row["whole"] else pipeline_cycles(kernel, target, products)
    return max(traffic_cycles(kernel, target), product_cycles(kernel, target, products), steps)


def answers(name: str, target: str, many: Iterable[Mapping[str, int]], cycles: bool) -> Iterator[Any]:
    """What libtpu says of candidates of one kernel, each taken when its turn comes."""
    from layoutproof.mosaic.ask import asked, compiled

    place, args = f"{HERE}:{SEARCHED[name].function}", SEARCHED[name].args
    yield from compiled(asked(place, args, dict(v), call_of(name, target, v), 0, target, cycles) for v in many)


def cycles(path: Path, targets: list[str], only: list[str]) -> None:
    """Asks for the cycles of those that may have the fewest."""
    for name, target in itertools.product(only or SEARCHED, targets):
        known = {key[2]: row for key, row in read(path).items() if key[:2] == (name, target) and row["accepted"]}
        ranked = [v for v in order(name, target) if v in known]
        least = {values: needed(name, target, row) for values, row in known.items()}
        left = list(dict.fromkeys([*ranked[:1], *sorted(known, key=lambda v: least[v])]))
        current: list[tuple[int, ...]] = []

        def fewest(known: dict[Any, Any] = known) -> float:
            return min((row["cycles"] for row in known.values() if row["cycles"] is not None), default=float("inf"))

        def wanted(
            left: list[Any] = left, known: dict[Any, Any] = known, least: dict[Any, int] = least, current: Any = current
        ) -> Iterator[dict[str, int]]:
            for values in left:
                row = known[values]
                done = row["cycles"] is not None or row["no_estimate"]
                if not done and (values == left[0] or least[values] < fewest()):
                    current[:] = [values]
                    yield row["values"]

        for report in answers(name, target, wanted(), True):
            row = known[current[0]]
            row |= {"cycles": report.estimate.ranked, "no_estimate": report.estimate.reason or report.problem}
            _add(path, row)


def order(name: str, target: str, **more: Any) -> list[tuple[int, ...]]:
    """What the search shows of all candidates, cheapest first, without the compiler."""
    return [tuple(one["values"].values()) for one in found(name, target, **more)["best"]]


def found(name: str, target: str, **more: Any) -> Any:
    """The whole answer of a search that shows all."""
    import layoutproof as lp

    of = SEARCHED[name]
    tune = {n: ",".join(map(str, v)) for n, v in of.tune.items()}
    return lp.search(f"{HERE}:{of.function}", args=of.args, tune=tune, target=target, best=1000, **more).as_dict()


def compare(path: Path) -> None:
    """A table of what the search says beside the truth."""
    known = read(path)
    print(
        "kernel target  candidates accepted  false illegal  set aside: taken refused  false legal  first/best  of ten"
    )
    sums = [0] * 6
    for name, target in dict.fromkeys(key[:2] for key in known):
        said = {key[2]: row for key, row in known.items() if key[:2] == (name, target) and row["accepted"] is not None}
        answer = found(name, target)
        allowed = [tuple(one["values"].values()) for one in answer["best"]]
        aside = {tuple(one["values"].values()) for one in answer["set_aside"]["candidates"]}
        takes = {values for values, row in said.items() if row["accepted"]}
        refuses = said.keys() - takes
        illegal = set(said) - set(allowed) - aside
        counts = [
            len(said), len(takes), len(illegal & takes), len(aside & takes), len(aside & refuses),
            len(set(allowed) & refuses),
        ]  # fmt: skip
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        # estimates that were kept before the bound was as high
        many = {
            v: max(row["cycles"], needed(name, target, row)) for v, row in said.items() if row["cycles"] is not None
        }
        best = min(many, key=many.__getitem__) if many else None
        first = next((v for v in allowed if v in takes), None)
        ten = [v for v in order(name, target, headroom="0%") if v in takes][:10]
        shown = min((many[v] for v in ten if v in many), default=None)
        ratios = ["-" if of is None or best is None else f"{of / many[best]:.3f}" for of in (many.get(first), shown)]
        print(
            f"{name:17}{target:5}{counts[0]:6}{counts[1]:9}{counts[2]:15}{counts[3]:18}{counts[4]:8}{counts[5]:13}"
            f"  {ratios[0]:>6}  {ratios[1]:>6}  first {first} best {best} of {len(many)} estimates"
            f"  illegal and taken {sorted(illegal & takes)[:4]} legal and refused {sorted(set(allowed) & refuses)[:4]}",
            flush=True,
        )
    print("all", *sums)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("truth", "cycles", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", action="append", help="repeatable; default v5e, v6e and 7x")
    parser.add_argument("--only", action="append", default=[], help="a kernel; repeatable")
    given = parser.parse_args()
    if given.what == "compare":
        compare(given.file)
    else:
        {"truth": truth, "cycles": cycles}[given.what](given.file, given.target or ["v5e", "v6e", "7x"], given.only)


if __name__ == "__main__":
    main()
