"""Wrong kernels, and who notices: `python benchmarks/wrong_kernels [--only NAME] [--column NAME] [--keep FILE]`.

`--checker NAME COMMAND` asks another checker, as one more column (`outside.py`; docs/wrong_kernels.md has an example).

Each kernel of `kernels/` is right, has a reference, and has wrong twins: the same file with one edit. Each is given to
every column (`columns.py`) in a process of its own that may take 40 s, so a kernel that hangs is a row and no end.
What is wrong with a twin is shown first without layoutproof (`columns.witness`); a row without such a witness is an
error of this benchmark, and named. Answers are kept in a file as lines of JSON, and asked again only where they are
missing. `--page` prints the tables of docs/wrong_kernels.md from that file. Exits 1 where layoutproof calls a right
kernel refuted, or a wrong one of another kind than rounding and stability sampled.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if __package__ != "benchmarks.wrong_kernels":
    sys.path[0] = str(HERE.parents[1])

from benchmarks.beside import child, run  # noqa: E402
from benchmarks.wrong_kernels.made import KINDS, Kernel, module_of  # noqa: E402

WITNESS = "witness"
ORDER = ("allclose 2e-2", "allclose 1e-5", "InterpretParams", "libtpu", "places", "values", "lines")
SECONDS = 40.0


@dataclass(frozen=True)
class Row:
    """What one column says of one kernel. wrong: "" of the right one."""

    kernel: str
    wrong: str
    kind: str
    column: str
    caught: str
    words: str
    seconds: float

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is about."""
        return self.kernel, self.wrong, self.column


def kernels() -> dict[str, Kernel]:
    """All, by name, in the order of the files' names."""
    files = sorted(path.stem for path in (HERE / "kernels").glob("[a-z]*.py"))
    modules = [importlib.import_module(f"benchmarks.wrong_kernels.kernels.{name}") for name in files]
    return {kernel.name: kernel for module in modules for kernel in module.KERNELS}


def answered(request: Mapping[str, str], tell: Any) -> dict[str, Any]:
    """The answering side: one column of one kernel."""
    from benchmarks.wrong_kernels import columns

    kernel, wrong = kernels()[request["kernel"]], request["wrong"]
    with tempfile.TemporaryDirectory() as folder:
        module = module_of(kernel, wrong, Path(folder))
        start = time.perf_counter()
        if request["column"] == WITNESS:
            said = columns.witness(kernel, wrong, module)
        else:
            said = columns.COLUMNS[request["column"]](kernel, module)
        return {**asdict(said), "seconds": time.perf_counter() - start}


def rows(wanted: Sequence[tuple[str, str]], column: str) -> Iterator[Row]:
    """What one column says of each (kernel, wrong)."""
    from layoutproof.compiler.child import ask
    from layoutproof.compiler.libtpu import ENVIRONMENT

    every = kernels()
    asked = child("a kernel", HERE / "__main__.py", SECONDS, ENVIRONMENT if column == "libtpu" else None)
    requests = ({"kernel": kernel, "wrong": wrong, "column": column} for kernel, wrong in wanted)
    for (kernel, wrong), answer in zip(wanted, ask(asked, requests, lambda value: value), strict=True):
        kind = every[kernel].kind(wrong) if wrong else ""
        if answer.value is None:
            # who waits for ever, or dies, has shown it; an exception of the column itself shows nothing
            shown = answer.cause in ("slow", "ended") and column in (WITNESS, *ORDER[:4])
            yield Row(kernel, wrong, kind, column, "yes" if shown else "unknown", answer.problem[:160], SECONDS)
        else:
            yield Row(kernel, wrong, kind, column, **answer.value)


def rows_of(wanted: Sequence[tuple[str, str]], column: str, command: str) -> Iterator[Row]:
    """What a checker from outside says of each (kernel, wrong)."""
    from benchmarks.wrong_kernels.outside import asked

    every = kernels()
    for kernel, wrong in wanted:
        said, seconds = asked(command, every[kernel], wrong, SECONDS)
        kind = every[kernel].kind(wrong) if wrong else ""
        yield Row(kernel, wrong, kind, column, said.caught, said.words, seconds)


def kept(path: Path) -> dict[tuple[str, str, str], Row]:
    """What a file holds, the last of each."""
    if not path.exists():
        return {}
    found = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
    return {row.key: row for row in found}


def tables(found: Iterable[Row]) -> Iterator[str]:
    """The lines of the page: columns, what layoutproof does not see, and what a test of today does not."""
    by_column: dict[str, dict[tuple[str, str], Row]] = {}
    for row in found:
        by_column.setdefault(row.column, {})[row.kernel, row.wrong] = row
    yield "| column | " + " | ".join(f"{kind or 'numbers'}" for kind in KINDS) + " | right ones refused | median s |"
    yield "|---" * (len(KINDS) + 3) + "|"
    columns = [c for c in ORDER if c in by_column]
    columns += sorted(set(by_column) - {WITNESS, *ORDER})
    for column in columns:
        said = by_column[column]
        cells = []
        for kind in KINDS:
            own = [row for row in said.values() if row.wrong and row.kind == kind]
            cells.append(f"{sum(row.caught == 'yes' for row in own)} of {len(own)}")
        right = [row for row in said.values() if not row.wrong]
        alarms = sum(row.caught == "yes" for row in right)
        seconds = statistics.median(row.seconds for row in said.values())
        yield f"| {column} | {' | '.join(cells)} | {alarms} of {len(right)} | {seconds:.2g} |"
    for title, column, kinds in (
        ("not refuted by `same`", "values", tuple(KINDS)),
        ("missed by allclose at 2e-2", ORDER[0], ("", "order")),
    ):
        if column not in by_column:
            continue
        yield ""
        yield f"| {title} | what is wrong | it says | who notices |"
        yield "|---|---|---|---|"
        missed = [r for r in by_column.get(column, {}).values() if r.wrong and r.kind in kinds and r.caught != "yes"]
        for row in sorted(missed, key=lambda r: (r.kind, r.key)):
            answers = {c: by_column[c].get(row.key[:2]) for c in columns if c != column}
            others = [c for c, other in answers.items() if other is not None and other.caught == "yes"]
            said = (
                f"unknown: {row.words}" if row.caught == "unknown" else "sampled" if column == "values" else "the same"
            )
            name = f"{row.kernel} | {row.wrong} ({row.kind or 'numbers'})"
            yield f"| {name} | {said} | {', '.join(others) or 'none'} |"


def errors(found: Iterable[Row]) -> Iterator[str]:
    """What must not be: false alarms, false answers, rows that nothing shows to be wrong."""
    for row in found:
        name = f"{row.kernel}: {row.wrong or 'right'}: {row.column}"
        if row.column == WITNESS and (row.caught == "yes") != bool(row.wrong):
            yield f"{name}: no witness of what it is: {row.words}"
        elif row.column in ("values", "places") and not row.wrong and row.caught == "yes":
            yield f"{name}: a right kernel is refuted: {row.words}"
        elif row.column == "values" and row.wrong and row.kind in ("", "order") and row.caught == "no":
            yield f"{name}: a wrong kernel is sampled"


def main() -> int:
    """Asks what is missing, prints the tables."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", action="append", help="a kernel by name; may be repeated")
    options.add_argument("--column", action="append", choices=[WITNESS, *ORDER], help="may be repeated; all by default")
    options.add_argument("--checker", nargs=2, metavar=("NAME", "COMMAND"), help="ask this command, as a column NAME")
    options.add_argument("--keep", type=Path, default=Path("wrong_kernels.jsonl"), help="where answers are kept")
    options.add_argument("--page", action="store_true", help="print the tables of what is kept, and ask nothing")
    given = options.parse_args()
    every = kernels()
    pairs = [(n, w) for n, k in every.items() if not given.only or n in given.only for w in ("", *k.wrong)]
    found = kept(given.keep)
    name, command = given.checker or ("", "")
    if name in (WITNESS, *ORDER):
        options.error(f"{name} is a column of this benchmark: give the checker another name")
    for column in [] if given.page else given.column or ([name] if name else [WITNESS, *ORDER]):
        wanted = [(n, w) for n, w in pairs if (n, w, column) not in found]
        with given.keep.open("a") as file:
            for row in rows_of(wanted, column, command) if column == name else rows(wanted, column):
                found[row.key] = row
                file.write(json.dumps(asdict(row)) + "\n")
                file.flush()
                print(f"{row.seconds:6.2f} {row.caught:8} {column:16} {row.kernel}: {row.wrong or 'right'}", flush=True)
    asked = [row for key, row in found.items() if key[:2] in pairs]
    print("\n".join(tables(asked)))
    wrong = list(errors(asked))
    print(
        "\n".join(["", f"{len(every)} right kernels, {sum(len(k.wrong) for k in every.values())} wrong ones", *wrong])
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    run(answered, main)
