"""How long the gate takes: two HLO dumps of 10 and of 40 MB, 20 records, 1,000 layouts of which nothing changed.

Whole processes, from the start of Python.

python benchmarks/gate.py        prints one line per measurement: what, seconds (best of three), peak memory
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FUSION = """
%fused_computation.{k} (param_0.{k}: bf16[{n},{m}], param_1.{k}: f32[{n},{m}]) -> bf16[{n},{m}] {{
  %param_0.{k} = bf16[{n},{m}]{{1,0:T(8,128)(2,1)S(1)}} parameter(0)
  %param_1.{k} = f32[{n},{m}]{{1,0:T(8,128)}} parameter(1)
  %convert.{k} = f32[{n},{m}]{{1,0:T(8,128)}} convert(%param_0.{k}), metadata={{op_name="jit(f)/layer_{k}/convert"}}
  %copy.{k} = f32[{n},{m}]{{0,1:T(8,128)}} copy(%convert.{k}), metadata={{op_name="jit(f)/layer_{k}/transpose"}}
  %add.{k} = f32[{n},{m}]{{1,0:T(8,128)}} add(%convert.{k}, %param_1.{k}), metadata={{op_name="jit(f)/layer_{k}/add"}}
  %bitcast.{k} = f32[{n},1,{m}]{{2,0,1:T(8,128)}} bitcast(%add.{k})
  ROOT %convert.{l} = bf16[{n},{m}]{{1,0:T(8,128)(2,1)}} convert(%add.{k}), metadata={{op_name="jit(f)/layer_{k}/out"}}
}}
"""


def dump(seed: int, changed: float, megabytes: float) -> str:
    """A module of so many megabytes whose instruction numbers depend on the seed; `changed`: layouts that differ."""
    chance, numbers = random.Random(0), random.Random(seed)
    entry = "{(bf16[64,128]{1,0:T(8,128)(2,1)})->bf16[64,128]{1,0:T(8,128)(2,1)}}"
    parts, size = [f"HloModule jit_f, is_scheduled=true, entry_computation_layout={entry}\n"], 0
    while size < megabytes * 1_000_000:
        n, m = chance.choice((64, 128, 256, 320, 1000)), chance.choice((128, 256, 384, 512, 2048))
        k = len(parts)
        part = FUSION.format(k=k, l=k + 10_000_000 + numbers.randrange(10_000_000), n=n, m=m)
        if numbers.random() < changed:
            head = f"add.{k} = f32[{n},{m}]"
            part = part.replace(head + "{1,0", head + "{0,1")
        parts.append(part)
        size += len(part)
    x = "bf16[64,128]{1,0:T(8,128)(2,1)}"
    parts.append(f"\nENTRY %main.1 (x.1: bf16[64,128]) -> bf16[64,128] {{\n  ROOT %x.1 = {x} parameter(0)\n}}\n")
    return "".join(parts)


def specs(count: int) -> str:
    """A spec file of so many layouts, all different, with one claim each."""
    chance = random.Random(1)
    lines = ["source: generated", "layouts:"]
    lines += [f"  l{k}: bf16[{chance.randint(1, 4096)},{k + 1}]{{1,0:T(8,128)(2,1)}}" for k in range(count)]
    lines += ["checks:", *(f"  - injective: l{k}" for k in range(count))]
    return "\n".join(lines) + "\n"


def records(folder: Path, count: int = 20) -> None:
    """Two folders of the records of so many compiled programs, one byte more of temporaries in one of them."""
    root = Path(__file__).resolve().parents[1]
    sys.path.insert(0, str(root))
    from layoutproof.programs.reading import record_of
    from layoutproof.programs.record import MemoryStats

    with gzip.open(root / "tests" / "cases" / "programs.jsonl.gz", "rt") as lines:
        cases = [json.loads(next(lines)) for _ in range(count)]
    for state in ("old", "new"):
        (folder / state).mkdir()
        for k, case in enumerate(cases):
            more = case["memory"]["temporaries"] + (k == 0 and state == "new")
            record = record_of(case["text"].splitlines(keepends=True), case["name"])
            record = dataclasses.replace(record, memory=MemoryStats(**{**case["memory"], "temporaries": more}))
            (folder / state / f"{k}.json").write_text(record.to_json())


def measure(what: str, folder: Path, *arguments: str, times: int = 3) -> None:
    """Runs the command line so often and prints the best time and the largest memory of any run."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        environment = {**os.environ, "LAYOUTPROOF_CACHE": str(folder / "cache")}
        done = subprocess.run(
            [sys.executable, "-m", "layoutproof", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        best = min(best, time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    last = (done.stdout or done.stderr).strip().splitlines()[-1]
    print(f"{what:<58} {best:6.2f} s  {peak:5.0f} MB  {last}", flush=True)


def main() -> None:
    """All measurements."""
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "specs").mkdir()
        (folder / "specs" / "a.yaml").write_text(specs(1000))
        measure("check, 1,000 layouts, nothing kept", folder, "check", times=1)
        measure("check, 1,000 layouts, warm", folder, "check")
        measure("gate specs specs, 1,000 layouts", folder, "gate", "specs", "specs")
        measure("gate --lock, 1,000 layouts", folder, "gate", "--lock", times=1)
        measure("gate against the lock, nothing kept", folder, "gate", times=1)
        measure("gate against the lock, warm", folder, "gate")
        records(folder)
        measure("gate of 20 records, one of them changed", folder, "gate", "old", "new")
        for size in (10, 40):
            for file, seed, changed in (("a.txt", 1, 0.0), ("b.txt", 2, 0.0), ("c.txt", 3, 0.01)):
                (folder / file).write_text(dump(seed, changed, size))
            what = f"gate of two {size} MB dumps"
            measure(f"{what}, other numbers only", folder, "gate", "a.txt", "b.txt")
            measure(f"{what}, 1 % of the layers changed", folder, "gate", "a.txt", "c.txt", "--new-only")


if __name__ == "__main__":
    main()
