"""What is read of Mosaic GPU, and what is said of JAX's kernels: `python -m tests.pallas.mosaic_gpu_page`.

What it prints is `docs/mosaic_gpu.md`; the text around the tables is in `mosaic_gpu_page.md`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas.from_jax.trace import kernels_of
from layoutproof.pallas.judge import judge
from tests.pallas.mosaic_gpu_ops import MosaicGpuOp, ops, pretended
from tests.pallas.mosaic_gpu_pairs import PAIRS
from tests.pallas.mosaic_gpu_remote_pairs import REMOTE_PAIRS
from tests.pallas.mosaic_gpu_tensor_pairs import TENSOR_PAIRS
from tests.pallas.mosaic_gpu_thread_pairs import THREAD_PAIRS

HEAD, REST = Path(__file__).with_suffix(".md").read_text("utf-8").split("<!-- pairs -->\n")
ON_GPU, REST = REST.split("<!-- gpu -->\n")
TABLE, OTHERS = REST.split("<!-- public -->\n")
"""What stands before the pairs, before what a GPU showed, the kernels of the wheel, and those of tokamax."""

SEEN = Path(__file__).resolve().parents[1] / "cases" / "mosaic_gpu_on_gpu.json"
"""What was seen on a GPU, and what is said of it."""
GROUPS = {
    "pairs": "the pairs above, both of each",
    "drawn": "the same kernels with none to four options changed, drawn at random",
    "values": "kernels of which `same` says what they compute, right and with an error",
    "wheel": "JAX's own kernels for Hopper",
    "legal": "configurations of two of them, which `lp.legal` takes or refuses",
    "limits": "kernels at the limits of the chip and beyond them",
}
"""What is run, by its group."""

PUBLIC = Path(__file__).resolve().parents[1] / "cases" / "mosaic_gpu_kernels.json"
"""What is said of the kernels of tokamax."""

MOST = 4
"""Reasons that are shown of an operation."""


def row(op: MosaicGpuOp) -> str:
    """A row of the table."""
    try:
        with pretended(op.chip, op.devices):
            function, arguments = op.build()
            calls = kernels_of(function, arguments, target="v5e", assume=op.keeps)
    except LayoutError as error:
        return _cells(op.name, op.chip, 0, "not traced", "", "", "", _short(str(error)))
    count, reasons = said_of(calls)
    return _row(op.name, op.chip, len(calls), count, [*_assumed(op.keeps), *reasons])


def said_of(calls: Sequence[Kernel | Unmodelled]) -> tuple[dict[str, int], list[str]]:
    """How many errors have each verdict, and the reasons of those that are not proved, each once."""
    count: Counter[str] = Counter()
    said: dict[str, None] = {}
    for call in calls:
        if isinstance(call, Unmodelled):
            count["unknown"] += 1
            said[_short(call.reason)] = None
            continue
        for finding in judge(call, target="mosaic_gpu"):
            if not finding.asked or finding.severity != "error":
                continue
            count[finding.verdict.value] += 1
            if finding.verdict.value != "proved" and finding.question != "analysable":
                said[_short(finding.reason)] = None
    return {verdict: count[verdict] for verdict in ("proved", "unknown", "refuted")}, [*said]


def _row(name: str, chip: str, calls: int, count: Mapping[str, int], reasons: Sequence[str]) -> str:
    more = [f"and {len(reasons) - MOST} more"] if len(reasons) > MOST else []
    whole = "refuted" if count["refuted"] else "unknown" if count["unknown"] else "proved"
    numbers = count["proved"], count["unknown"], count["refuted"]
    return _cells(name, chip, calls, whole, *numbers, "; ".join([*reasons[:MOST], *more]))


def public_rows() -> Iterator[str]:
    """The rows of the kernels of tokamax, as `benchmarks/public_gpu_kernels.py` has kept them."""
    for said in json.loads(PUBLIC.read_text("utf-8"))["rows"]:
        if "failed" in said:
            yield _cells(said["call"], said["chip"], 0, "not traced", "", "", "", said["failed"])
        else:
            reasons = [*_assumed(said["assumed"]), *said["reasons"]]
            yield _row(said["call"], said["chip"], said["kernels"], said, reasons)


def _assumed(keeps: Sequence[str]) -> list[str]:
    return [f"assumed: {', '.join(f'`{one}`' for one in keeps)}"] if keeps else []


def _cells(*cells: object) -> str:
    return f"| {' | '.join(str(cell).replace('|', ' ') for cell in cells)} |"


def _short(reason: str) -> str:
    """A reason without its numbers, its places and what would settle it."""
    reason = re.split(r" \((?=the body|programs|digits|/)|; to settle it", reason)[0]
    return re.sub(r" at [\w.]+:\d+| \([^()]*/[^()]*\)", "", reason)


def pairs() -> Iterator[str]:
    """The rows of the pairs, with what a GPU showed of the wrong one."""
    seen = _seen()
    shown = {one["name"]: one for one in seen["seen"] if one["group"] == "pairs"}
    for name, pair in (PAIRS | THREAD_PAIRS | TENSOR_PAIRS | REMOTE_PAIRS).items():
        wrong = shown.get(f"{name}: wrong")
        yield _cells(name, f"`{pair.question}`", pair.why, "" if wrong is None else _shown(wrong, seen["runs"]))


def _seen() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SEEN.read_text("utf-8"))
    return found


def _shown(one: Mapping[str, Any], runs: int) -> str:
    """What runs of a kernel showed, in a word or two. runs: of each kernel."""
    word = re.search(r"CUDA_ERROR_\w+", one["detail"])
    saw = word.group(0).removeprefix("CUDA_ERROR_").lower().replace("_", " ") if word else one["saw"]
    return f"{saw}, {one['runs']} of {runs} runs" if one["saw"] in ("wrong numbers", "NaN") else saw


def on_gpu() -> Iterator[str]:
    """What was run, and a row for each group and each limit."""
    seen = _seen()
    where = f"on an {seen['gpu']}, jax {seen['jax']}, {seen['date']}"
    yield f"{len(seen['seen'])} kernels {where}, {seen['runs']} runs each."
    yield ""
    yield "| kernels | proved: right, wrong | refuted: wrong, right | unknown: wrong, right |"
    yield "|---|---|---|---|"
    for group, what in GROUPS.items():
        count = Counter((one["said"], one["saw"] == "right") for one in seen["seen"] if one["group"] == group)
        if not count:
            continue
        sides = (("proved", True, False), ("refuted", False, True), ("unknown", False, True))
        yield _cells(what, *(f"{count[said, first]}, {count[said, then]}" for said, first, then in sides))
    yield ""
    yield "| at a limit | said | seen |"
    yield "|---|---|---|"
    for one in seen["seen"]:
        if one["group"] == "limits":
            yield _cells(one["name"], one["said"], _shown(one, seen["runs"]))


def page() -> str:
    """The page."""
    wheel = TABLE + "\n".join(map(row, ops())) + "\n\n"
    gpu = ON_GPU + "\n".join(on_gpu()) + "\n"
    return HEAD + "\n".join(pairs()) + "\n" + gpu + wheel + OTHERS + "\n".join(public_rows()) + "\n"


if __name__ == "__main__":
    print(page(), end="")
