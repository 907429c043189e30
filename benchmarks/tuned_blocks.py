"""Block sizes that others tuned on hardware, held against what is proved of them and against the model's ranking.

`python benchmarks/tuned_blocks.py ROWS.jsonl [--write docs/tuned_blocks.md]`. A row is a published block size with its
kernel, chip and problem. Per row: is the choice legal by every property of kernels and does it fit into VMEM, and how
many of the candidates that fit does the cost model think cheaper? What is not modelled is counted, with the reason.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuned_kernels import MODELS, UNMODELLED
from tuned_rank import Rank, rank

from layoutproof.core.errors import Undecided


@dataclass(frozen=True)
class Answered:
    """kernel, chip: as the row names them.  rank: None where nothing is modelled, then `why` says so."""

    kernel: str
    chip: str
    rank: Rank | None
    ranked: bool = False
    why: str = ""


def answers(rows: Iterable[Mapping[str, Any]]) -> list[Answered]:
    """What is said of every row."""
    found = []
    for row in rows:
        kernel, chip = row["kernel"], row["chip"]
        if kernel not in MODELS:
            why = (
                "a GPU kernel: its sizes are no BlockSpecs"
                if "gpu" in kernel
                else UNMODELLED.get(kernel, "not looked at")
            )
            found.append(Answered(kernel, chip, None, why=why))
            continue
        try:
            one = MODELS[kernel](row)
            found.append(Answered(kernel, chip, rank(one.problem, one.values), one.ranked))
        except Undecided as undecided:
            found.append(Answered(kernel, chip, None, why=str(undecided)))
    return found


def page(found: Sequence[Answered]) -> str:
    """The report as Markdown."""
    modelled = [one for one in found if one.rank is not None]
    legal = [one for one in modelled if one.rank is not None and not one.rank.why]
    lines = [
        "# Tuned block sizes of others, judged",
        "",
        f"{len(found)} published block sizes; {len(modelled)} are of kernels whose grid and BlockSpecs are declared in",
        f"`benchmarks/tuned_kernels.py`. Of these **{len(legal)} are allowed by the rules**: every property of grids",
        "and BlockSpecs is proved, and windows + scratch fit into VMEM by the rules of libtpu 0.0.42.1; spills",
        "are not counted. The others break the constraint that is named.",
        "",
        "The sizes were found on hardware; the ranking is by the model of bytes, flops and steps that",
        "`layoutproof search` uses, which was not fitted to any data. `cheaper`: how many of the candidates that fit",
        "the model thinks cheaper than the published one. `python benchmarks/tuned_blocks.py ROWS.jsonl` prints this",
        "page; `tests/searching/test_tuned.py` holds it against a fresh run.",
        "",
        "VMEM: more than the chip's default limit; these tables do not say whether their callers raise it.",
        "Ragged paged attention copies by hand; it is declared as windows of the same blocks, decoding.",
        "",
        "| kernel | rows | allowed | refused | the best | best 5% | best 10% | best 25% | cheaper, median | worst | "
        "cost by the best: median | 90% | worst |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kernel in MODELS:
        own = [one for one in modelled if one.kernel == kernel]
        if own:
            lines.append(_line(kernel, own))
    lines += ["", "Not modelled:", "", "| kernel | rows | why |", "|---|---:|---|"]
    left = Counter((one.kernel, one.why) for one in found if one.rank is None)
    lines += [f"| {kernel} | {count} | {why} |" for (kernel, why), count in sorted(left.items())]
    return "\n".join(lines) + "\n"


def _line(kernel: str, own: Sequence[Answered]) -> str:
    stands = [one.rank for one in own if one.rank is not None]
    refused = Counter(re.sub(r":.*", "", stand.why) for stand in stands if stand.why)
    cells = [kernel, str(len(own)), str(sum(not stand.why for stand in stands))]
    cells.append(", ".join(f"{why}: {count}" for why, count in refused.most_common()) or "-")
    if not all(one.ranked for one in own):
        return f"| {' | '.join([*cells, *['-'] * 9])} |"
    shares = sorted(stand.share for stand in stands)
    ratios = sorted(stand.ratio for stand in stands)
    cells.append(str(sum(stand.cheaper == 0 for stand in stands)))
    cells += [str(sum(share <= most for share in shares)) for most in (0.05, 0.1, 0.25)]
    cells += [f"{statistics.median(shares):.1%}", f"{shares[-1]:.1%}"]
    cells += [f"{ratio:.2f}" for ratio in (statistics.median(ratios), ratios[int(0.9 * len(ratios))], ratios[-1])]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Prints the report, or writes it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    lines = options.rows.read_text(encoding="utf-8").splitlines()
    text = page(answers(json.loads(line) for line in lines if line.strip()))
    if options.write is None:
        print(text, end="")
    else:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
