"""What `layoutproof compile` takes beyond JAX and its compiler: `python benchmarks/compile.py [NAME ..]`.

    python benchmarks/compile.py --target v5e --target cpu mlp moe

NAME: of `tests/programs/corpus.py`, by default all that compile for every target. Nothing comes from the cache.

Prints one line per program, as Markdown: seconds of `jax.jit(f).lower(..)`, of `.compile()`, and of all else until the
record is there as JSON. That is ours: the compiled text and what the compiler says of it, the digest of the lowered
program, the way between two processes, reading. In the first line stands the start of the process that compiles, and
under lowering the import of JAX, which a user's own has too; arguments are read there as well.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main() -> int:
    """Prints the table; exit code 1 where a program was not compiled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", action="append", help="v5e, .. or cpu; may be repeated; default v5e")
    given = parser.parse_args()
    os.environ["LAYOUTPROOF_CACHE"] = "off"
    os.chdir(ROOT)
    from layoutproof.compiler.child import ask
    from layoutproof.programs.compile import Asked, child_of, made_of, request_of
    from tests.programs.corpus import MESH, PROGRAMS, TARGETS

    failed = 0
    for target in given.target or ["v5e"]:
        asked = [
            Asked(f"tests.programs.corpus:{name}", one.args, target=target,
                  topology=TARGETS.get(target, "") if one.ins else "", mesh=MESH if one.ins else {}, ins=one.ins,
                  donate=one.donate)
            for name, one in PROGRAMS.items() if not given.names or name in given.names
        ]  # fmt: skip
        print(f"{target}\n\n| program | lowering | compiling | ours |\n|---|---:|---:|---:|", flush=True)
        largest = max(asked, key=lambda one: len(one.mesh))  # so many devices the CPU has to show
        child = replace(child_of(largest, 300.0), program=ROOT / "benchmarks" / "compile_asked.py")
        ours, start = list[float](), time.perf_counter()
        for one, answer in zip(asked, ask(child, map(request_of, asked), dict), strict=True):
            made, said = made_of(one, answer), answer.value or {}
            name = one.program.partition(":")[2]
            if made.record is None or "compiling" not in said:
                failed += 1
                why = "no record" if made.problem is None else made.problem.reason
                print(f"| `{name}` | {why[:80]} | | |", flush=True)
            else:
                made.record.to_json()
                took = time.perf_counter() - start
                rest = took - said["lowering"] - said["compiling"]
                ours.append(rest)
                shown = f"{rest:.2f}" if len(ours) > 1 else f"{rest:.2f}, with the start"
                print(f"| `{name}` | {said['lowering']:.2f} | {said['compiling']:.2f} | {shown} |", flush=True)
            start = time.perf_counter()
        if ours[1:]:
            print(f"\nours, after the first: median {statistics.median(ours[1:]):.3f} s, most {max(ours[1:]):.3f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
