"""`python benchmarks/public_kernels.py [--only NAME] [--page] [--seconds N]`: public TPU kernels, judged as they are.

The kernels are records (`layoutproof kernels --record`): what was traced of code that others wrote, each with its
repository, commit and licence, and without its source (`tests/cases/public_kernels.jsonl.gz`). Each is judged in a
process of its own, which may use N seconds of processor time; JAX is not needed. Prints what each question says, what
is unknown with its reason, and a table for each kind of question about bodies, in which questions that need no solver
(nothing of the kind is in the body, or whole windows only) are left out. `--page` prints the page
`docs/public_kernels.md`. Exits 1 where something is refuted that nobody confirmed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layoutproof.core.files import lines
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Unmodelled
from layoutproof.kernel.table_assumptions import with_assumptions
from layoutproof.pallas.judge import about_body, conditions_on, judge
from layoutproof.pallas.records import read_records

RECORDS = Path(__file__).resolve().parents[1] / "tests" / "cases" / "public_kernels.jsonl.gz"
SECONDS = 60

CONFIRMED = {
    ("Tyronita/PallasBench", "outputs_covered"),
    ("Tyronita/PallasBench", "inputs_read"),
    ("google/qwix", "blocks_in_bounds"),
    ("sgl-project/sglang-jax", "parallel_writes"),
}
"""Repository, question: what was run or read, and is wrong in the kernel; BUGS-FOUND.md says each."""


@dataclass(frozen=True)
class Said:
    """What is said of one recorded call. seconds: of processor time."""

    name: str
    origin: Mapping[str, Any]
    findings: tuple[Finding, ...]
    seconds: float
    ended: str = ""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that decide."""
        return tuple(f for f in self.findings if f.severity == "error" and f.asked)

    def count(self, verdict: Verdict) -> int:
        """How many of them are so."""
        return sum(f.verdict is verdict for f in self.errors)


@dataclass
class Table:
    """How many questions of one kind are decided."""

    counts: Counter[str] = field(default_factory=Counter)

    @property
    def decided(self) -> str:
        """In words."""
        total = sum(self.counts.values())
        return f"{100 * (total - self.counts['unknown']) / total:.0f} %" if total else "-"


def records(path: Path = RECORDS) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each line with what it says of its origin."""
    with lines(path) as text:
        for line in text:
            yield line, json.loads(line)["origin"]


def said_of(line: str, origin: Mapping[str, Any]) -> Said:
    """What is found of one record, under what its origin says that the callers of the kernel keep to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "call.jsonl")
        path.write_text(line)
        (call,) = read_records(path)
    start = time.process_time()
    if isinstance(call, Unmodelled):
        found: tuple[Finding, ...] = (Finding("kernel", call.name, call.reason, verdict=Verdict.UNKNOWN),)
    else:
        call = with_assumptions(call, origin.get("assume", ()), strict=False)
        where = origin.get("where", ())
        found = judge(call, where=conditions_on(call, where) if where else None)
    return Said(call.name, origin, found, time.process_time() - start)


def bounded(line: str, origin: Mapping[str, Any], seconds: int) -> Said:
    """The same in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(line, origin, seconds, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv()  # type: ignore[no-any-return]
    except EOFError:
        data = json.loads(line)
        name = (data.get("kernel") or data["unmodelled"])["name"]
        return Said(name, origin, (), float(seconds), f"no answer within {seconds} s of processor time")
    finally:
        process.join()


def _work(line: str, origin: Mapping[str, Any], seconds: int, answer: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    answer.send(said_of(line, origin))


def trivial(finding: Finding) -> bool:
    """Whether a question needed no solver: nothing of its kind is in the body, or nothing that depends on anything."""
    return finding.verdict is Verdict.PROVED and finding.decided_by == "rule"


def tables(calls: Sequence[Said]) -> dict[str, Table]:
    """Question about bodies -> what became of it. A call without an answer leaves one of each kind unknown."""
    found: defaultdict[str, Table] = defaultdict(Table)
    for call in calls:
        for finding in call.errors:
            if about_body(finding.question) and not trivial(finding):
                found[finding.question].counts[finding.verdict.value] += 1
    for table in found.values():
        table.counts["unknown"] += sum(bool(call.ended) for call in calls)
    return dict(sorted(found.items()))


def by_kind(calls: Sequence[Said]) -> Counter[str]:
    """The worst verdict of each call and kind of question about bodies, counted."""
    found = Counter[str]()
    for call in calls:
        worst: dict[str, Verdict] = {}
        for finding in call.errors:
            if about_body(finding.question) and not trivial(finding):
                worst[finding.question] = min(finding.verdict, worst.get(finding.question, Verdict.PROVED))
        found.update(verdict.value for verdict in worst.values())
    return found


def unconfirmed(calls: Sequence[Said]) -> list[tuple[Said, Finding]]:
    """What is refuted and nobody confirmed."""
    return [
        (call, f)
        for call in calls
        for f in call.errors
        if f.verdict is Verdict.REFUTED and (call.origin["repository"], f.question) not in CONFIRMED
    ]


def page(calls: Sequence[Said]) -> str:
    """The page of the docs."""
    rows = []
    for call in calls:
        origin = call.origin
        said = [f"{call.count(v)}" for v in (Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN)]
        what = Counter(f.question for f in call.errors if f.verdict is not Verdict.PROVED)
        open_ = ", ".join(f"{name} {many}" if many > 1 else name for name, many in what.items())
        given = "; ".join((*origin.get("assume", ()), *origin.get("where", ())))
        name = origin["kernel"] if call.name != "emit_pipeline" else f"{origin['kernel']}, its pipeline"
        cells = [origin["repository"], name, origin["arguments"], *said, call.ended or open_, given]
        rows.append(f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} | {call.seconds:.2f} |")
    kinds = [
        f"| `{name}` | {t.counts['proved']} | {t.counts['refuted']} | {t.counts['unknown']} | {t.decided} |"
        for name, t in tables(calls).items()
    ]
    total = Counter[str]()
    for table in tables(calls).values():
        total.update(table.counts)
    proved = sum(not call.ended and call.count(Verdict.PROVED) == len(call.errors) for call in calls)
    commits = {call.origin["repository"]: (call.origin["commit"], call.origin["licence"]) for call in calls}
    sources = [f"- {name} at {commit[:10]}, {licence}" for name, (commit, licence) in sorted(commits.items())]
    times = sorted(call.seconds for call in calls)
    slow = times[int(0.9 * (len(times) - 1))]
    return "\n".join(
        [
            HEAD,
            f"{len(calls)} calls: {proved} proved whole. Of {sum(total.values())} questions about bodies that need a "
            f"solver, {total['proved']} are proved, {total['refuted']} refuted, {total['unknown']} unknown: "
            f"{Table(total).decided} decided; by call and kind {Table(by_kind(calls)).decided}. "
            f"Processor time of all questions of one call: median "
            f"{times[len(times) // 2]:.2f} s, 90 % within {slow:.2f} s.",
            "",
            "| question | proved | refuted | unknown | decided |",
            "|---|---:|---:|---:|---:|",
            *kinds,
            "",
            "| repository | kernel | arguments | proved | refuted | unknown | what is not proved | assumed | s |",
            "|---|---|---|---:|---:|---:|---|---|---:|",
            *rows,
            "",
            "Judged on 2026-11-22; traced with jax 0.10.2 on shapes, for v6e, from:",
            "",
            *sources,
            "",
        ]
    )


HEAD = """# Public TPU kernels, as they are

Kernels that others wrote, traced on shapes and kept as records without their source
(`tests/cases/public_kernels.jsonl.gz`). `python benchmarks/public_kernels.py --page` judges them, without JAX, and
prints this page. The refuted ones are wrong, and stand in [BUGS-FOUND.md](../BUGS-FOUND.md). The first table leaves out
questions that need no solver: nothing of the kind is in the body, or only whole windows. "assumed" is what the callers
of a kernel keep to, by its code.

What stays unknown, by kind:

| question | cause | lines | what would settle it |
|---|---|---:|---|
| `body_in_bounds` | a number that a loop hands on, by what data say | 10 | clamp it in the kernel |
| `body_in_bounds` | slots in scalar memory that the body changes | 17 | an invariant of what is stored there |
| `dma_order` | rows that entries of a table choose may meet | 2 | that rows of different entries are apart |
| `dma_order` | bytes are counted with sizes out of tables | 2 | bounds of parts of tables in the walk |
| `dma_order` | copies in flight depend on tables, in too many ways | 3 | fewer ways through the body |
| `initialised` | what was written before depends on tables | 16 | relations between entries of a schedule |
| `initialised` | the budget | 13 | `--effort 10` |
| `outputs_stored` | which elements are stored depends on tables | 8 | that a schedule reaches all blocks |
| `undefined_values` | a condition on memory of more than 4000 parts | 2 | a smaller block |
| `undefined_values` | what a pipeline leaves is used after it | 2 | a mask before that |
| `undefined_values` | the budget | 3 | `--effort 10` |

The walk that answers `dma_order` takes in neither relations between entries nor bounds of parts of tables.

`recurrent_scan v2` reads a schedule of 59 columns that mean different things. Each is bounded by itself, as callers
compute it (`compute_schedule_table_v2`, run on 4,000 random batches of these shapes: what is assumed of it holds), and
one relation is said of the row in which decoded and prefilled tokens meet; it does not hold for all shapes, see
[BUGS-FOUND.md](../BUGS-FOUND.md).

An unrolled loop is one question per line for `initialised` and `multiple_of`, and one for eight copies for
`body_in_bounds`. Since long kernels have more lines, the share is also counted by call and kind of question: a kind is
decided of a call where all of its questions are.
"""


def main() -> int:
    """Judge, print, and say whether something is refuted that nobody confirmed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME", help="kernels whose name or repository has this in it")
    parser.add_argument("--seconds", type=int, default=SECONDS, metavar="N")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--records", type=Path, default=RECORDS, metavar="FILE")
    given = parser.parse_args()
    every = [(line, origin, given.seconds) for line, origin in records(given.records)]
    asked = [one for one in every if given.only in f"{one[1]['repository']} {one[1]['kernel']}"]
    calls = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for call in pool.map(lambda one: bounded(*one), asked):
            calls.append(call)
            if not given.page:
                _print(call)
    if given.page:
        print(page(calls), end="")
    else:
        for name, table in tables(calls).items():
            print(f"{name:18} {dict(table.counts)} {table.decided}")
    wrong = unconfirmed(calls)
    for call, finding in wrong:
        print(f"refuted, and not confirmed: {call.origin['kernel']}: {finding.question}", file=sys.stderr)
    return 1 if wrong else 0


def _print(call: Said) -> None:
    counts = {v.value: call.count(v) for v in Verdict if call.count(v)}
    print(f"{call.origin['kernel']} / {call.name}: {call.ended or counts}; {call.seconds:.2f} s", flush=True)
    reasons = Counter((f.question, f.verdict.value, f.reason) for f in call.errors if f.verdict is not Verdict.PROVED)
    for (question, verdict, reason), many in reasons.items():
        print(f"    {many} {verdict} {question}: {reason[:200]}")


if __name__ == "__main__":
    sys.exit(main())
