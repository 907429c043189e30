"""Whether our rules for kernels are those of the installed TPU compiler: `python benchmarks/compiler_rules.py`.

It asks the compiler itself, in a process of its own, about random blocks, starts of windows, arrays of no dimensions
and element types, and compares its answers with the rules of the nearest measured version. Exit code 0: this version is
measured, and every answer is the rules'. 1: it is not measured, and the line to add to `RULES` of
`layoutproof/hardware/tpu_kernels.py` is printed with what no rule explains. 2: no compiler is installed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from dataclasses import replace
from unittest import mock

from layoutproof.hardware import tpu_kernels
from layoutproof.hardware.tpu_kernels import RULES, Rules, installed, kernel_target
from tests.hardware import compiler
from tests.hardware.compiler_questions import (
    LATER,
    SCALARS,
    STARTS,
    blocks_at_random,
    of_the_body,
    refused_block,
    refused_scalar,
    refused_start,
    starting_at,
)

NARROW = [
    compiler.OneOperand("v5e", "int8", [64, 256], [8, 128], [8, 2], ["g0", "g1"]),
    compiler.OneOperand("v5e", "int8", [3, 64, 256], [3, 8, 128], [1, 8, 2], ["g0", "g1", "g2"]),
    compiler.OneOperand("v6e", "float8_e4m3fn", [64, 256], [24, 128], [3, 2], ["g0", "g1"]),
    compiler.OneOperand("v5e", "int4", [192, 256], [16, 128], [12, 2], ["g0", "g1"]),
]
"""Blocks that only some versions take."""


def main() -> int:
    """Asks, prints, and gives the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--blocks", type=int, default=200, help="random blocks")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    missing = compiler.available()
    if missing:
        print(missing, file=sys.stderr)
        return 2
    version = installed()
    blocks = [*NARROW, *blocks_at_random(random.Random(given.seed), given.blocks, RULES[-1].version)]
    starts = [*STARTS, *LATER]
    said = compiler.compile_kernels(blocks)
    said += compiler.compile_kernels([starting_at(text) for text in starts])
    said += compiler.compile_scalars(SCALARS)
    asked = [*blocks, *starts, *SCALARS]

    def wrong(rules: Rules) -> list[tuple[object, str]]:
        """What these rules do not explain."""
        with mock.patch.object(tpu_kernels, "RULES", (rules,)):
            ours = [refused_block(query, rules.version) == "" for query in blocks]
            ours += [refused_start(text, rules.version) == "" for text in starts]
            ours += [refused_scalar(query, rules.version) == "" for query in SCALARS]
        pairs = zip(asked, said, ours, strict=True)
        return [
            (query, answer) for query, answer, mine in pairs if (answer == "") is not mine and not of_the_body(answer)
        ]

    nearest = replace(kernel_target("v5e").rules, version=version)
    others = [Rules(version, narrow, sums) for narrow, sums in itertools.product((True, False), repeat=2)]
    best = min((nearest, *others), key=lambda rules: len(wrong(rules)))
    left = wrong(best)
    print(f"libtpu {version}: {len(asked)} kernels compiled, {len(asked) - len(left)} answered as {best} says")
    for query, answer in left[:20]:
        print(f"  no rule explains {query}: {' '.join(answer.split())[:300] or 'the compiler takes it'}")
    if best in RULES and not left:
        return 0
    print(f"add it to RULES in layoutproof/hardware/tpu_kernels.py: {best!r}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
