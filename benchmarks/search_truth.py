"""Searches against enumerations, at random: winner, cost, and why there is none. The exit code is 1 after a difference.

    python benchmarks/search_truth.py [KIND ..] [--each 1000] [--first 0]

Each kind asks the checks of tests/searching, which enumerate every candidate by arithmetic of their own. A problem is
made of a seed; the first is --first. Seeds that ask nothing are passed over, so the last line of a kind, and a line for
every hundred problems, names the seed that follows: --first takes it, and a run that was stopped goes on there.

    declared    the three cheapest tilings of declared kernels, their order and cost (1 or 2 shapes, 1 to 3 variables)
    infeasible  that conditions cannot be met together, and without any one can; problems that are met are passed
    arrays      the layout of one array with the fewest bytes, and one order of names for several arrays
    paddings    the nearest larger shape that wastes nothing: no shape between does
    shardings   assignments of a mesh by bytes held under restrictions, and by bytes held and sent
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def checks() -> Mapping[str, tuple[Callable[[int], object], ...]]:
    """By kind, functions of a seed that raise AssertionError at a difference; False: the seed asks nothing."""
    from tests.searching import test_array_layouts, test_infeasible, test_padded_shapes, test_shardings, test_solve

    return {
        "declared": (test_solve.test_answers_are_those_of_an_enumeration,),
        "infeasible": (test_infeasible.agrees,),
        "arrays": (
            test_array_layouts.test_no_order_takes_fewer_bytes,
            test_array_layouts.test_no_shared_order_takes_fewer_bytes,
        ),
        "paddings": (test_padded_shapes.test_no_smaller_shape_wastes_nothing,),
        "shardings": (
            test_shardings.test_the_best_are_those_of_a_plain_enumeration,
            test_shardings.test_the_cheapest_with_what_is_sent_are_those_of_a_plain_enumeration,
        ),
    }


def main() -> int:
    """One line per kind: problems, differences with their seeds, seconds of this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = checks()
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(known)}; all of them if none is named")
    parser.add_argument("--each", type=int, default=1000, help="problems of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    if unknown := [kind for kind in asked.kinds if kind not in known]:
        parser.error(f"no kind {unknown[0]!r}; there are {', '.join(known)}")
    wrong = 0
    for kind, functions in known.items():
        if asked.kinds and kind not in asked.kinds:
            continue
        start, count, seed, differ = time.process_time(), 0, asked.first, list[int]()
        while count < asked.each:
            asks = True
            try:
                asks = functions[seed % len(functions)](seed) is not False
            except AssertionError as error:
                differ.append(seed)
                print(f"{kind}, seed {seed}: {str(error)[:300]}", flush=True)
            seed += 1
            count += asks
            if asks and count % 100 == 0:
                print(f"{kind}: {count} problems, next --first {seed}", file=sys.stderr, flush=True)
        seconds = time.process_time() - start
        seeds = f"seeds {asked.first} to {seed - 1}"
        print(f"{kind:<10} {count:>6} problems ({seeds}), {len(differ)} differences, {seconds:.0f} s", flush=True)
        wrong += len(differ)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
