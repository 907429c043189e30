"""How much VMEM kernels take beyond their windows and scratch, beside the bounds that `lp.legal` reckons with.

    python benchmarks/legal_spills.py ANSWERS.jsonl [--only "jax flash"] [--each 60]

Each configuration of `legal_kernels.py` that no rule refuses is compiled as a program by libtpu, and its answer is kept
in the file. Then, of bodies with products: the most bytes beyond windows and scratch, by the bound of
`searching.machines` for it, and each that is above its bound; and each that is called legal and is refused.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from layoutproof.compiler import libtpu

os.environ.update(libtpu.environment())

import jax
from legal import Verdict, configurations, timed
from legal_kernels import TUNED, Tuned

from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.kernel.kernel import Kernel
from layoutproof.mosaic.compiling import _USED, _VMEM, _call_in
from layoutproof.pallas.from_jax.adapter import device_of
from layoutproof.pallas.from_jax.user import argument, calls_in
from layoutproof.pallas.judge import kernel_target
from layoutproof.searching.machines import of_loaded, of_products

_SIZE = re.compile(r"size ([\d.]+)([KMG]?)")
_UNIT = {"": 0, "K": 10, "M": 20, "G": 30}


def compiled(of: Tuned, values: dict[str, int]) -> tuple[bool, int | None]:
    """Whether the compiler takes a program, and the VMEM that its call takes; of a refusal as its words round it."""
    place = jax.sharding.SingleDeviceSharding(libtpu.device(CHIPS[of.target].topology))
    arrays = [argument(text) for text in of.args]
    given = [jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=place) for array in arrays]
    try:
        with device_of(of.target):
            text = jax.jit(partial(of.function, **values)).lower(*given).compile().as_text()
    except Exception as error:
        found = _SIZE.search(str(error)) if "memory space vmem" in str(error) else None
        return False, None if found is None else int(float(found[1]) * (1 << _UNIT[found[2]]))
    call = _call_in(text)
    used = _USED.search(text, call.start()) if call else None
    sizes = _VMEM.findall(used[1]) if used else []
    return True, int(sizes[0]) if sizes else None


def row_of(name: str, values: dict[str, int], verdict: Verdict) -> dict[str, Any]:
    """What the compiler says of one configuration, and what is known of it."""
    of = TUNED[name]
    calls = calls_in(of.function, [argument(text) for text in of.args], values, target=of.target)
    (kernel,) = [k for k in calls if isinstance(k, Kernel) and k.pipeline == "pallas_call"]
    use, work = kernel_target(of.target, None).memory(kernel)[0], kernel.work
    bound = None
    if work is not None:
        bound = of_products(work.held, work.products) if work.kind == "attention" else of_loaded(kernel)
    taken, total = compiled(of, values)
    return {
        "kernel": name, "values": values, "verdict": verdict.value, "taken": taken, "total": total, "used": use.used,
        "limit": use.limit, "kind": "" if work is None else work.kind, "bound": bound,
    }  # fmt: skip


def summed(rows: list[dict[str, Any]]) -> None:
    """What they say together."""
    of_kernels = defaultdict(list)
    for row in rows:
        of_kernels[row["kernel"]].append(row)
        if row["verdict"] == "proved" and not row["taken"]:
            print("called legal, refused:", row)
    print("kernel             compiled  taken  legal, refused  the most by its bound  by windows and scratch")
    for name, of in of_kernels.items():
        known = [row for row in of if row["total"] and row["kind"] in ("attention", "matmul")]
        shares = [(row["total"] - row["used"]) / max(row["bound"] or 1, 1) for row in known]
        ratios = [row["total"] / row["used"] for row in of if row["total"]]
        wrong = sum(row["verdict"] == "proved" and not row["taken"] for row in of)
        taken = sum(row["taken"] for row in of)
        most = f"{max(shares):.2f}" if shares else "-"
        print(f"{name:17}{len(of):>10}{taken:>7}{wrong:>16}{most:>23}{max(ratios, default=0):>24.2f}")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--only", action="append", default=[], help="a kernel; repeatable")
    parser.add_argument("--each", type=int, default=60, help="configurations of a kernel at most")
    given = parser.parse_args()
    path: Path = given.answers
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["kernel"], tuple(row["values"].values())) for row in rows}
    for name in given.only or TUNED:
        values = configurations(TUNED[name], 251)
        found, _, _ = timed(TUNED[name], values)
        fit = [(v, a) for v, a in zip(values, found, strict=True) if a.rules is not Verdict.REFUTED]
        for each, answer in fit[: given.each]:
            if (name, tuple(each.values())) not in known:
                rows.append(row_of(name, each, answer.verdict))
                with path.open("a") as file:
                    print(json.dumps(rows[-1]), file=file, flush=True)
    summed(rows)


if __name__ == "__main__":
    main()
