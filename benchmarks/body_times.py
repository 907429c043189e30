"""`python benchmarks/body_times.py [NAME ..] [--other TREE] [--out FILE]`: what it costs to judge real kernels.

Kernels: the TPU operations of the jax wheel with their gradients, each in a process of its own so that its peak memory
is its own, all pairs of `tests/bodies/pitfalls.py`, in one process, and one kernel with ten programs and with 10^9
(`programs`). NAME: only those whose name has one of these.
Judged is a traced call, as a user's: all questions, without a target. What is measured is CPU time in that process and
what it waits for, from the traced call to all answers; reading the body counts, tracing does not.

Prints a line per kernel: questions, verdicts, unknowns by budget, seconds, of that the body, the slowest question by
itself (`--questions`), peak memory; then median, 90th percentile, slowest. `--other TREE`: each kernel there, too, by
turns, with the ratio and every answer that differs. `--out FILE`: all answers as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LIMIT = 900
"""CPU seconds that one process may take."""
OTHERS = ("pitfalls", "programs")
SPENT = ("budget", "are spent", "more than", "too many", "not shown to be the smallest")
"""Words of a reason that a budget ended the search."""


def kernels_in(group: str) -> list[tuple[str, Any]]:
    """(name, its traced calls) of a group: one operation of the wheel, or one of `OTHERS`."""
    from layoutproof.pallas.from_jax.trace import kernels_of

    if group == "pitfalls":
        from tests.bodies.pitfalls import CASES

        found = []
        for name, case in CASES.items():
            for wrong in (True, False):
                built = case.build(wrong)
                calls = kernels_of(built.fn, built.args, assume=case.assume)
                found += [(f"{name} {'wrong' if wrong else 'right'}", call) for call in calls]
        return found
    if group == "programs":
        from layoutproof.pallas.judge import judge
        from tests.bodies.test_budget import masked_rows

        # what is imported for the first question counts for neither
        judge(masked_rows(10))
        return [(f"masked rows, {programs:,} programs", masked_rows(programs)) for programs in (10, 10**9)]
    from tests.pallas.wheel_ops import ops

    op = next(op for op in ops() if op.name == group)
    function, arguments = op.build()
    calls = kernels_of(function, arguments, target=op.target, assume=op.assume)
    return [(f"{group} #{k}" if len(calls) > 1 else group, call) for k, call in enumerate(calls)]


def child(group: str, questions: bool) -> None:
    """Judge the kernels of a group; a JSON line for each."""
    from layoutproof.kernel.kernel import Kernel
    from layoutproof.pallas.judge import in_order, judge
    from layoutproof.registry.catalogue import kernel_property

    for name, call in kernels_in(group):
        if not isinstance(call, Kernel):
            print(json.dumps({"kernel": name, "not": str(call)}), flush=True)
            continue
        start = time.process_time()
        _ = call.body
        body = time.process_time() - start
        found = judge(call)
        seconds = time.process_time() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        by_question = {}
        asked = [question for question in in_order(body=True) if not kernel_property(question).TARGET]
        for question in asked if questions else ():
            begun = time.process_time()
            judge(call, names=[question])
            by_question[question] = time.process_time() - begun
        answers = [
            [*map(str, (f.question, f.subject, f.verdict.value, f.severity, f.reason, f.fix, f.line))]
            + [f"{name} {value}" for name, value in (f.counterexample or {}).items()]
            + [*f.needs]
            for f in found
        ]
        row = {"kernel": name, "seconds": seconds, "body": body, "memory": memory, "by_question": by_question}
        print(json.dumps({**row, "answers": answers}), flush=True)


def rows_of(tree: Path, group: str, questions: bool) -> list[dict[str, Any]]:
    """The lines of one process on a tree."""
    command = [sys.executable, str(Path(__file__)), "--child", group, *(["--questions"] if questions else [])]
    paths = os.pathsep.join(map(str, (tree, HERE.parent)))
    environment = {**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"}
    limits = lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))  # noqa: E731
    done = subprocess.run(command, env=environment, capture_output=True, text=True, preexec_fn=limits)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        rows.append({"kernel": group, "not": f"exit code {done.returncode}: {done.stderr[-300:].strip()}"})
    return rows


def shown(row: dict[str, Any]) -> str:
    """A line of the table."""
    if "not" in row:
        return f"{row['kernel']}: not judged: {row['not'][:200]}"
    verdicts = [answer[2] for answer in row["answers"]]
    counts = " / ".join(str(verdicts.count(v)) for v in ("proved", "refuted", "unknown"))
    slowest = max(row["by_question"].items(), key=lambda item: item[1], default=None)
    more = f" | {slowest[0]} {slowest[1]:.2f} s" if slowest else ""
    return (
        f"| {row['kernel']} | {len(verdicts)} | {counts} | {spent(row)} | {row['seconds']:.2f} s | {row['body']:.2f} s "
        f"| {row['memory']} MB{more} |"
    )


def spent(row: dict[str, Any]) -> int:
    """How many answers are unknown because a budget ended."""
    return sum(a[2] == "unknown" and any(word in a[4] for word in SPENT) for a in row["answers"])


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Answers of one tree that the other does not give."""
    before, after = ([json.dumps(a) for a in row.get("answers", ())] for row in (old, new))
    gone = [f"    only there: {a}" for a in before if a not in after]
    return gone + [f"    only here:  {a}" for a in after if a not in before]


def summary(rows: list[dict[str, Any]]) -> str:
    """Median, 90th percentile and slowest, and what budgets ended."""
    judged = [row for row in rows if "not" not in row]
    times = sorted(row["seconds"] for row in judged)
    if not times:
        return "nothing judged"
    asked = sum(len(row["answers"]) for row in judged)
    ended = sum(map(spent, judged))
    return (
        f"{len(times)} kernels, {asked} questions: median {statistics.median(times):.2f} s, 90 % within "
        f"{times[-(-len(times) * 9 // 10) - 1]:.2f} s, slowest {times[-1]:.1f} s, all {sum(times):.0f} s; "
        f"{ended} unknown by budget ({ended / max(1, asked):.1%}); at most {max(r['memory'] for r in judged)} MB"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--other", type=Path, metavar="TREE")
    parser.add_argument("--out", type=Path, metavar="FILE")
    parser.add_argument("--questions", action="store_true", help="also each question by itself")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.questions)
        return
    sys.path.insert(0, str(HERE.parent))
    from tests.pallas.wheel_ops import ops

    groups = [op.name for op in ops() if op.target != "triton"] + [*OTHERS]
    chosen = [group for group in groups if not given.names or any(name in group for name in given.names)]
    print("| kernel | questions | proved / refuted / unknown | by budget | seconds | the body | memory |")
    print("|---|---|---|---|---|---|---|")
    every: dict[str, list[dict[str, Any]]] = {part: [] for part in ("wheel", *OTHERS)}
    others: dict[str, list[dict[str, Any]]] = {part: [] for part in ("wheel", *OTHERS)}
    for group in chosen:
        part = group if group in OTHERS else "wheel"
        old = [] if given.other is None else rows_of(given.other.resolve(), group, given.questions)
        new = rows_of(HERE.parent, group, given.questions)
        known = {row["kernel"]: row for row in old}
        for row in new:
            before = known.get(row["kernel"])
            ratio = ""
            if before is not None and "seconds" in before and "seconds" in row:
                ratio = f" {before['seconds']:.2f} s there: x {row['seconds'] / max(before['seconds'], 1e-6):.2f}"
            print(shown(row) + ratio, *(differences(before, row) if before else ()), sep="\n", flush=True)
        every[part] += new
        others[part] += old
    for part, rows in every.items():
        if rows:
            print(f"{part}: {summary(rows)}")
            if others[part]:
                print(f"{part}, there: {summary(others[part])}")
    if given.out is not None:
        given.out.write_text("".join(json.dumps(row) + "\n" for rows in every.values() for row in rows))


if __name__ == "__main__":
    main()
