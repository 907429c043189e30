"""Compiles the programs of `tests/programs/corpus.py` once, by the real TPU compiler, for the tests' cases.

    python benchmarks/programs.py --write                        all of them, for all targets: some minutes
    python benchmarks/programs.py --write --lacking              those alone that are not kept yet
    python benchmarks/programs.py --only all_gather --target v5e  one of them, shown

Programs of flax need it (`pip install flax`); nothing else does, and the tests read what is kept.

What is kept is the compiled text with what its compiler says of it: nobody here wrote a number that is compared.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
CORPUS = ROOT / "tests" / "programs" / "corpus.py"
CASES = ROOT / "tests" / "cases" / "programs.jsonl.gz"


def without_folders(text: str) -> str:
    """A compiled text that names the last two parts of each source file's path, and no folder of this machine."""
    return re.sub(r'(?m)^(\d+ ")/(?:[^"/\n]*/)*([^"/\n]*/[^"/\n]*")$', r"\1\2", text)


def main() -> int:
    """Compiles, and writes or shows."""
    from layoutproof.compiler.child import ask
    from layoutproof.programs.compile import Asked, child_of, request_of
    from tests.programs.corpus import MESH, PROGRAMS, TARGETS

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", action="append", help="a program by name; may be repeated")
    options.add_argument("--target", action="append", help="a generation; may be repeated")
    options.add_argument("--write", action="store_true", help="write tests/cases/programs.jsonl.gz")
    options.add_argument("--lacking", action="store_true", help="only what is not kept yet; what is kept stays")
    given = options.parse_args()
    kept_rows = [json.loads(line) for line in gzip.decompress(CASES.read_bytes()).splitlines()] if given.lacking else []
    known = {(row["name"], row["target"]) for row in kept_rows}
    # what is kept names no folder of the machine that made it
    os.environ["JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX"] = r".*/(?=(tests|jax|flax)/)"
    os.environ["LAYOUTPROOF_CACHE"] = "off"
    asked = [
        (name, Asked(f"{CORPUS}:{name}", program.args, target=target, topology=TARGETS[target] if program.ins else "",
                     mesh=MESH if program.ins else {}, ins=program.ins, donate=program.donate))
        for target in given.target or TARGETS
        for name, program in PROGRAMS.items()
        if (not given.only or name in given.only) and (name, target) not in known
    ]  # fmt: skip
    rows, failed = kept_rows, 0
    answers = ask(child_of(asked[0][1], 300.0), (request_of(each) for _, each in asked), dict)
    for (name, each), answer in zip(asked, answers, strict=True):
        said = answer.value
        why = answer.problem if said is None else str(said.get("refused", ""))[:200]
        print(f"{each.target:4} {name:18} {why or len(said['text'])}", flush=True)
        if why or said is None:
            failed += 1
            continue
        said["text"] = without_folders(said["text"])
        kept = {key: said[key] for key in ("compiler", "jax", "memory", "cost", "shardings", "results", "text")}
        about = {"name": name, "target": each.target, "topology": each.topology, "mesh": dict(each.mesh)}
        rows.append(about | kept)
    if given.write:
        order = {(name, target): k for k, (target, name) in enumerate(product(TARGETS, PROGRAMS))}
        rows.sort(key=lambda row: order[row["name"], row["target"]])
        data = "".join(f"{json.dumps(row, sort_keys=True)}\n" for row in rows).encode()
        CASES.write_bytes(gzip.compress(data, 9, mtime=0))
        print(f"{len(rows)} programs, {CASES.stat().st_size} bytes, {failed} not compiled")
    return 0


if __name__ == "__main__":
    sys.exit(main())
