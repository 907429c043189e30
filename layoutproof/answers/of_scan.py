"""`lp.scan`: what a repository has of Pallas calls, shardings and layouts, and what of it anything judges."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, TypedDict

from layoutproof.core.document import Doc, Document, envelope
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Answer, Finding
from layoutproof.scanning.judges import Entry, entries_of, is_test, runs_in
from layoutproof.scanning.module import CALLS, KINDS, Site
from layoutproof.scanning.tree import Node, Tree, tree_of

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


@dataclass(frozen=True, slots=True)
class Found:
    """A site with its file, and what judges it. standing: of STANDINGS.  by: the entry, None for none."""

    file: str
    site: Site
    standing: str
    by: Entry | None = None

    @property
    def is_call(self) -> bool:
        """Whether it runs a Pallas kernel."""
        return self.site.kind in CALLS


@dataclass(frozen=True, slots=True)
class Scanned(Answer):
    """The sites of a repository and what judges them.

    root: the folder.  sites: in the order of the files.  entries: what judges.  files, python: how many were looked at
    and parsed.  unread: files with why they could not be.  partial: there are more files than are looked at.
    """

    root: str
    sites: tuple[Found, ...]
    entries: tuple[Entry, ...]
    files: int
    python: int
    unread: tuple[tuple[str, str], ...] = ()
    partial: bool = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """None: nothing is asked."""
        return ()

    @property
    def exit_code(self) -> int:
        """0: it was looked at."""
        return 0

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
        return "\n".join([*lines, *([""] if lines else []), *self._counts()])

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
        return {
            **envelope(self.exit_code),
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


def scan(path: str | PathLike[str] = ".") -> Scanned:
    """Every Pallas call, `shard_map`, sharding and layout annotation of a repository, and what judges it.

    By syntax: nothing is imported. A site is judged where the function that it is in is named by an entry of a spec
    file that a claim asks about, by `layoutproof kernels` in the settings of CI, or is a test under the pytest plugin;
    it is reached where such a function uses it, by name, through any number of others.

    Args:
        path: The folder of the repository.

    Returns:
        The sites with what judges them, counts, and the files that could not be read; `str` is the command's output.

    Raises:
        LayoutError: There is no such folder.

    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> code = "from jax.experimental import pallas as pl\\ndef f(x):\\n  return pl.pallas_call(body)(x)\\n"
    >>> _ = pathlib.Path(folder, "a.py").write_text(code)
    >>> scan(folder).totals()
    {'pallas_call': {'by none': 1}}
    """
    if not isinstance(path, str | PathLike):
        raise LayoutError(f"a folder is named by its path, not {shorten(repr(path), 60)}")
    tree = tree_of(Path(path))
    entries = tuple(entries_of(tree, runs_in(tree)))
    best = _best(tree, entries)
    sites = tuple(
        _found(file, site, best.get((file, site.function)) if site.function else None)
        for file, module in tree.modules.items()
        for site in module.sites
    )
    return Scanned(str(path), sites, entries, len(tree.files), len(tree.modules), tree.unread, tree.partial)


def _found(file: str, site: Site, best: tuple[int, Entry] | None) -> Found:
    rank, entry = best if best is not None else (len(STANDINGS) - 1, None)
    return Found(file, site, STANDINGS[rank], entry)


def _best(tree: Tree, entries: tuple[Entry, ...]) -> dict[Node, tuple[int, Entry]]:
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
