"""Published block sizes by stage one of a search, by rules that need no model, and beside what other repositories take.

`python benchmarks/tuned_rules.py ROWS.jsonl`: two tables. The first says where the published size stands among all
candidates that fit: by the model's cost, fewest steps, fewest bytes, most VMEM. The second says how often the heuristic
or default of a repository (`tuned_peers.py`) is the published size, and what it costs by the model.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuned_kernels import MODELS
from tuned_peers import PEERS
from tuned_rank import RULES, Standing, standings_of

from layoutproof.core.errors import Undecided

Row = Mapping[str, Any]


def tables(rows: Sequence[Row]) -> str:
    """Both as Markdown."""
    head = "| kernel | rows | model | fewest steps | fewest bytes | most VMEM | by the model within 5 %, 10 % |"
    first = [head, "|---|" + "---:|" * 6]
    second = [
        "| kernel | who | rows | the published size | cost by the least: median | published: median |",
        "|---|---|" + "---:|" * 4,
    ]
    for kernel in MODELS:
        own, peers = _kernel([row for row in rows if row["kernel"] == kernel])
        near = [sum(one["cost"].ratio <= most for one in own) / len(own) for most in (1.05, 1.1)]
        cells = [_stands([one[rule] for one in own]) for rule in RULES]
        first.append(f"| {kernel} | {len(own)} | {' | '.join(cells)} | {near[0]:.0%}, {near[1]:.0%} |")
        for name, found in peers.items():
            same = sum(equal for equal, _, _ in found) / len(found)
            # what fits nowhere, or is no candidate, has no cost
            costs = [cost for _, cost, _ in found if cost is not None]
            theirs = f"{statistics.median(costs):.2f}" if costs else "-"
            published = f"{statistics.median(cost for _, _, cost in found):.2f}"
            second.append(f"| {kernel} | {name} | {len(found)} | {same:.0%} | {theirs} | {published} |")
    return "\n".join([*first, "", *second])


def _kernel(rows: Sequence[Row]) -> tuple[list[dict[str, Standing]], dict[str, list[tuple[bool, float | None, float]]]]:
    """How the rows of one kernel stand by each rule, and of each peer whether it names the published size, and what
    both cost by the least.
    """
    own = []
    peers: dict[str, list[tuple[bool, float | None, float]]] = {}
    for row in rows:
        try:
            one = MODELS[row["kernel"]](row)
        except Undecided:
            continue
        named = {name: made(row) for name, made in PEERS[row["kernel"]].items()}
        domains = one.problem.variables.items()
        judged = {
            name: values for name, values in named.items() if all(values[key] in domain for key, domain in domains)
        }
        published, *others = standings_of(one.problem, [one.values, *judged.values()])
        own.append(published)
        costs = {name: stand["cost"].ratio for name, stand in zip(judged, others, strict=True)}
        for name, values in named.items():
            found = (values == dict(one.values), costs.get(name), published["cost"].ratio)
            peers.setdefault(name, []).append(found)
    return own, peers


def _stands(of: Sequence[Standing]) -> str:
    return f"{statistics.median(one.rank for one in of):g}, {sum(one.rank <= 5 for one in of) / len(of):.0%}"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    options = parser.parse_args()
    lines = options.rows.read_text(encoding="utf-8").splitlines()
    print(tables([json.loads(line) for line in lines if line.strip()]))


if __name__ == "__main__":
    main()
