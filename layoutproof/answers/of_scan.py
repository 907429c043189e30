"""`lp.scan`: what a repository has of Pallas calls, shardings and layouts, and what of it anything judges."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from layoutproof.answers import problems
from layoutproof.compiler.workers import apart
from layoutproof.core.document import VERSION, Doc, Document
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import write_whole
from layoutproof.core.finding import Answer, Finding
from layoutproof.scanning.judges import Entry, entries_of, is_test, runs_in
from layoutproof.scanning.module import CALLS, KINDS, SourceSite
from layoutproof.scanning.shapes import Called, chosen, run_tests, spec_text
from layoutproof.scanning.tree import Node, SourceTree, tree_of

STANDINGS = ("judged in CI", "reached in CI", "judged", "reached", "by none")
"""What is said of a site, the best first: an entry names its function, or one that uses it; run by CI or not."""


class SiteEntry(TypedDict):
    kind: Annotated[str, Doc("pallas_call, pl.kernel, core_map, shard_map, PartitionSpec, sharding, ..")]
    hardware: Annotated[str, Doc("TPU, GPU or SparseCore; empty where the file does not say")]
    file: str
    line: int
    function: Annotated[str, Doc("the functions and classes that it is in, outermost first; empty where in none")]
    test: Annotated[bool, Doc("whether the file is one of tests, by its name")]
    standing: Annotated[str, Doc("judged in CI, reached in CI, judged, reached, by none")]
    by: Annotated[str, Doc("the entry that judges or reaches it, by its place; empty for none")]


class JudgeEntry(TypedDict):
    place: str
    names: Annotated[str, Doc("the function as it is named there")]
    known: Annotated[bool, Doc("whether a file of the tree has that function")]
    checked: Annotated[bool, Doc("whether a claim asks about it; if not, the gate compares it alone")]
    ci: Annotated[str, Doc("the place in the settings of CI that runs it; empty for none")]


class UnreadEntry(TypedDict):
    file: str
    reason: str


class StatedEntry(TypedDict):
    function: str
    args: Annotated[list[Any], Doc("shapes and literals, as the spec file has them")]
    kwargs: dict[str, Any]
    status: Annotated[str, Doc("of the claim that every call of it is right: as expected, wrong, unknown")]
    reason: str


class LeftOutEntry(TypedDict):
    function: str
    reason: str


class FromTestsEntry(TypedDict):
    """What the project's own tests gave."""

    written: Annotated[str, Doc("the spec file; empty where nothing could be stated")]
    pytest: Annotated[int, Doc("the exit code of pytest")]
    stated: list[StatedEntry]
    left_out: list[LeftOutEntry]
    summary: Annotated[str, Doc("the last line of `layoutproof check` of the file")]


class ScanDocument(Document):
    """Every site of a repository, by syntax, and what judges it."""

    root: str
    files: Annotated[int, Doc("files that were looked at")]
    python: Annotated[int, Doc("Python files that were parsed")]
    partial: Annotated[bool, Doc("there are more files than are looked at")]
    sites: list[SiteEntry]
    judges: list[JudgeEntry]
    unread: list[UnreadEntry]
    totals: Annotated[dict[str, dict[str, int]], Doc("per kind, how many stand how; without tests")]
    from_tests: NotRequired[FromTestsEntry]


@dataclass(frozen=True, slots=True)
class JudgedSite:
    """A site with its file, and what judges it. standing: of STANDINGS.  by: the entry, None for none."""

    file: str
    site: SourceSite
    standing: str
    by: Entry | None = None

    @property
    def is_call(self) -> bool:
        """Whether it runs a Pallas kernel."""
        return self.site.kind in CALLS


@dataclass(frozen=True, slots=True)
class FromTests:
    """What the project's own tests gave.

    file: the spec file that was written, "" where nothing could be stated.  pytest: its exit code.  stated: how the
    functions were called, with (status, reason) of the claim about each.  left: (function, why it is not stated).
    summary: the line that counts of the check of the file.  code: its exit code.
    """

    file: str
    pytest: int
    stated: tuple[tuple[Called, str, str], ...]
    left: tuple[tuple[str, str], ...]
    summary: str
    code: int

    def lines(self) -> list[str]:
        """The report."""
        lines = [
            f"stated   {called.place}({', '.join(map(str, called.args))}): {status}{f', {why}' if why else ''}"
            for called, status, why in self.stated
        ]
        lines += [f"left out {place}: {why}" for place, why in self.left]
        if self.pytest:
            lines.append(f"note     pytest ended with {self.pytest}: what failed before its Pallas call is not seen")
        wrote = f"{self.file}: {self.summary}" if self.file else "no call of a test could be stated; nothing is written"
        return [*lines, wrote]


@dataclass(frozen=True, slots=True)
class Scanned(Answer):
    """The sites of a repository and what judges them.

    root: the folder.  sites: in the order of the files.  entries: what judges.  files, python: how many were looked at
    and parsed.  unread: files with why they could not be.  partial: there are more files than are looked at.
    tests: what the project's own tests gave, None where they were not run.
    """

    root: str
    sites: tuple[JudgedSite, ...]
    entries: tuple[Entry, ...]
    files: int
    python: int
    unread: tuple[tuple[str, str], ...] = ()
    partial: bool = False
    tests: FromTests | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """None: nothing is asked."""
        return ()

    @property
    def exit_code(self) -> int:
        """0: it was looked at. With a spec file from tests, that of its check; 3 where nothing could be stated."""
        return 0 if self.tests is None else self.tests.code

    def totals(self) -> dict[str, dict[str, int]]:
        """Per kind of site, how many stand how; those in files of tests are left out.

        Returns:
            Kind to standing to count; kinds that are not there are left out.
        """
        counted = Counter((f.site.kind, f.standing) for f in self.sites if not is_test(f.file))
        return {
            kind: {s: counted[kind, s] for s in STANDINGS if counted[kind, s]}
            for kind in KINDS
            if any(counted[kind, s] for s in STANDINGS)
        }

    def text(self, everything: bool = False) -> str:
        """The Pallas calls and `shard_map`s outside of tests, a line each, and the counts.

        Args:
            everything: All kinds of sites, and tests too.

        Returns:
            The text that the command prints.
        """
        shown = [
            f for f in self.sites if everything or ((f.is_call or f.site.kind == "shard_map") and not is_test(f.file))
        ]
        rows = [
            (
                f"{f.site.kind} {f.site.hardware}".rstrip(),
                f"{f.file}:{f.site.line}",
                f"in {f.site.inside}" if f.site.inside else "",
                f"{f.standing}{f': {f.by.place}' if f.by else ''}",
            )
            for f in shown
        ]
        wide = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
        lines = [f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:<{wide[2]}}  {d}".rstrip() for a, b, c, d in rows]
        lines += [
            f"note     {entry.place} names {shorten(entry.what, 80)}, which no file here has"
            for entry in self.entries
            if not entry.nodes
        ]
        lines += [
            f"note     {entry.place}: no claim asks about {shorten(entry.what, 80)}; the gate compares it, that is all"
            for entry in self.entries
            if entry.nodes and not entry.checked
        ]
        most = len(self.unread) if everything else 5
        lines += [f"unread   {file}: {why}" for file, why in self.unread[:most]]
        if len(self.unread) > most:
            lines.append(f"unread   and {len(self.unread) - most} more, which --all names")
        told = self.tests.lines() if self.tests is not None else []
        return "\n".join([*lines, *([""] if lines else []), *self._counts(), *([""] if told else []), *told])

    def _counts(self) -> list[str]:
        rows = [
            f"{kind:<20} {sum(of.values()):>6}   {', '.join(f'{count} {standing}' for standing, count in of.items())}"
            for kind, of in self.totals().items()
        ]
        tests = sum(f.is_call for f in self.sites if is_test(f.file))
        calls = [f for f in self.sites if f.is_call and not is_test(f.file)]
        judged = sum(f.standing == STANDINGS[0] for f in calls)
        none = sum(f.standing == STANDINGS[-1] for f in calls)
        said = f"{len(calls)} Pallas call{'' if len(calls) == 1 else 's'} by syntax"
        said += f" in {self.python} Python files: {judged} judged in CI, {none} by none"
        said += f"; {tests} more in tests" if tests else ""
        said += f"; {len(self.unread)} files could not be read" if self.unread else ""
        said += "; there are more files, which were not looked at" if self.partial else ""
        return [*rows, said]

    def __str__(self) -> str:
        return self.text()

    def as_dict(self) -> ScanDocument:
        """What `layoutproof scan --json` prints."""
        document: ScanDocument = {
            "version": VERSION,
            "exit_code": self.exit_code,
            "root": self.root,
            "files": self.files,
            "python": self.python,
            "partial": self.partial,
            "sites": [
                {
                    "kind": f.site.kind,
                    "hardware": f.site.hardware,
                    "file": f.file,
                    "line": f.site.line,
                    "function": f.site.inside,
                    "test": is_test(f.file),
                    "standing": f.standing,
                    "by": f.by.place if f.by is not None else "",
                }
                for f in self.sites
            ],
            "judges": [
                {"place": e.place, "names": e.what, "known": bool(e.nodes), "checked": e.checked, "ci": e.ci}
                for e in self.entries
            ],
            "unread": [{"file": file, "reason": why} for file, why in self.unread],
            "totals": self.totals(),
        }
        if self.tests is not None:
            document["from_tests"] = {
                "written": self.tests.file,
                "pytest": self.tests.pytest,
                "stated": [
                    {"function": c.place, "args": list(c.args), "kwargs": dict(c.kwargs), "status": s, "reason": why}
                    for c, s, why in self.tests.stated
                ],
                "left_out": [{"function": place, "reason": why} for place, why in self.tests.left],
                "summary": self.tests.summary,
            }
        return document


def scan(
    path: str | PathLike[str] = ".",
    *,
    from_tests: Sequence[str] | None = None,
    write: str | PathLike[str] = "specs/from_tests.yaml",
) -> Scanned:
    """Every Pallas call, `shard_map`, sharding and layout annotation of a repository, and what judges it.

    By syntax: nothing is imported. A site is judged where the function that it is in is named by an entry of a spec
    file that a claim asks about, by `layoutproof kernels` in the settings of CI, or is a test under the pytest plugin;
    it is reached where such a function uses it, by name, through any number of others.

    Args:
        path: The folder of the repository.
        from_tests: Arguments of pytest, () for none. The project's tests are then run, in a process of their own with
            this Python, and what they call that makes Pallas calls is stated in a spec file with their shapes; the file
            is checked before it is reported. Functions of modules alone, by arguments that a file can state.
        write: With `from_tests`, where that file is written, below the folder; one that is there is not replaced.

    Returns:
        The sites with what judges them, counts, and the files that could not be read; `str` is the command's output.

    Raises:
        LayoutError: There is no such folder; with `from_tests`, the file is there already, or pytest is missing.

    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> code = "from jax.experimental import pallas as pl\\ndef f(x):\\n  return pl.pallas_call(body)(x)\\n"
    >>> _ = pathlib.Path(folder, "a.py").write_text(code)
    >>> scan(folder).totals()
    {'pallas_call': {'by none': 1}}
    """
    if not isinstance(path, str | PathLike):
        raise LayoutError(problems.FOLDER_TYPE(shorten(repr(path), 60)))
    tree = tree_of(Path(path))
    entries = tuple(entries_of(tree, runs_in(tree)))
    best = _best(tree, entries)
    sites = tuple(
        _found(file, site, best.get((file, site.function)) if site.function else None)
        for file, module in tree.modules.items()
        for site in module.sites
    )
    tests = None if from_tests is None else _from_tests(tree, sites, tuple(from_tests), Path(write))
    return Scanned(str(path), sites, entries, len(tree.files), len(tree.modules), tree.unread, tree.partial, tests)


def _from_tests(tree: SourceTree, sites: Sequence[JudgedSite], arguments: Sequence[str], write: Path) -> FromTests:
    """Runs the tests and states what they call, in a file of which every entry can be traced."""
    root = os.path.abspath(tree.root)
    file = Path(root) / write
    if os.path.lexists(file):
        raise LayoutError(problems.THERE_ALREADY(write))
    if importlib.util.find_spec("pytest") is None:
        raise LayoutError(problems.NO_PYTEST())
    ends = {(f.file, f.site.function) for f in sites if f.is_call and f.site.function and not is_test(f.file)}
    wanted: dict[str, list[str]] = {}
    for name, function in sorted(tree.reaching(ends)):
        if function and not is_test(name) and os.path.basename(name) != "conftest.py":
            wanted.setdefault(name, []).append(function)
    code, found = apart(run_tests, (root, wanted, tuple(arguments)), root)
    named, unreadable = chosen(found)
    left = [(called.place, called.problem) for called in unreadable]
    said = f"layoutproof scan --from-tests, {len(found)} calls seen"
    outcomes, summary, exit_code = _checked(named, said, root)
    kept = [(c, status, why) for c, (status, why) in zip(named, outcomes, strict=True) if status != "error"]
    left += [(c.place, why) for c, (status, why) in zip(named, outcomes, strict=True) if status == "error"]
    if len(kept) < len(named):
        outcomes, summary, exit_code = _checked([c for c, _, _ in kept], said, root)
    if not kept:
        return FromTests("", code, (), tuple(left), "", 3)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, spec_text([c for c, _, _ in kept], said).encode())
    return FromTests(write.as_posix(), code, tuple(kept), tuple(left), summary, exit_code)


def _checked(named: Sequence[Called], said: str, root: str) -> tuple[list[tuple[str, str]], str, int]:
    """(status, reason) of the claim about each, the line that counts, and the exit code, by a check in the project."""
    if not named:
        return [], "", 3
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "from_tests.yaml")
        write_whole(Path(path), spec_text(named, said).encode())
        return apart(_check, path, root)


def _check(path: str) -> tuple[list[tuple[str, str]], str, int]:
    from layoutproof.answers.of_specs import check

    answer = check(path)
    return [(o.status, o.finding.reason) for o in answer.outcomes], answer.summary(), answer.exit_code


def _found(file: str, site: SourceSite, best: tuple[int, Entry] | None) -> JudgedSite:
    rank, entry = best if best is not None else (len(STANDINGS) - 1, None)
    return JudgedSite(file, site, STANDINGS[rank], entry)


def _best(tree: SourceTree, entries: tuple[Entry, ...]) -> dict[Node, tuple[int, Entry]]:
    """Of each function that anything judges or reaches, the best that is said of it."""
    found: dict[Node, tuple[int, Entry]] = {}
    for entry in entries:
        if not entry.checked:
            continue
        for node in tree.reached(entry.nodes):
            rank = (0 if entry.ci else 2) + (node not in entry.nodes)
            if node not in found or rank < found[node][0]:
                found[node] = rank, entry
    return found
