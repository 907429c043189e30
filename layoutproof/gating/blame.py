"""Which part of a diff makes a finding of the gate: parts are applied to the old tree, and its programs compiled.

The old tree is written into a folder of its own, as `--compile-base` has it. A finding of a program is there again
where the program, compiled with some of the parts, has one of the same class about the same thing, of at least half the
amount, against the program of the old tree. What does not compile with some of the parts does not have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from layoutproof.core import files
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.files import MAX_YAML, repository_of
from layoutproof.core.finding import Finding, Report, split_place
from layoutproof.core.result import Verdict
from layoutproof.gating import problems, spec_programs, states
from layoutproof.gating.first_change import CAUSED
from layoutproof.gating.git import commit_of, top_here
from layoutproof.gating.hunks import Hunk, PatchedTree, hunks_of
from layoutproof.gating.minimal import Spent, minimal
from layoutproof.gating.specs import Named, ReadSpec, read
from layoutproof.programs.compile import Asked, Made, made

_AMOUNTS = frozenset(("peak_memory", "temporaries", "vmem", "estimated_cycles"))


def blamed(report: Report, reference: str, library: str, most: int) -> Report:
    """The report with the hunks that make each denied finding of a program of a spec file.

    reference: the git revision of the old state.  library: the path of a libtpu to compile with.  most: how many
    programs are compiled in all. What that leaves open is said in the notes.
    """
    wanted = [(k, head) for k, each in enumerate(report.findings) if (head := _head(each)) is not None]
    if not wanted:
        return replace(report, notes=(*report.notes, problems.NOTHING_TO_BLAME()))
    top = top_here()
    findings, notes = list(report.findings), list(report.notes)
    with states.work_tree_of(reference) as folder, states.work_tree_of(reference) as base:
        there = repository_of(Path(folder))
        hunks = hunks_of(top, commit_of(top, reference), there)
        trial = _HunkTrial(PatchedTree(there, hunks), there, folder, base, library, most)
        earlier: list[Sequence[Hunk]] = []
        for k, head in wanted:
            found = trial.of(findings[k], head, hunks, [*_at(findings[k], hunks), *reversed(earlier)])
            if found.parts:
                earlier.append(found.parts)
            findings[k] = replace(findings[k], hunks=tuple(map(str, found.parts)) if found.sure else ())
            if found.why:
                notes.append(problems.BLAME(head.question, head.subject, found.why))
    tried = f"{len(hunks)} hunk{'' if len(hunks) == 1 else 's'}, {trial.compiled} of at most {most} compilations"
    return replace(report, findings=tuple(findings), notes=(*notes, f"blame: {tried}"))


def _head(finding: Finding) -> Finding | None:
    """The difference that is looked for: the finding itself, or the first that comes from it; None for no such one."""
    if finding.severity != "deny" or not finding.subject.startswith("program "):
        return None
    every = (finding, *finding.follows)
    return next((f for f in every if f.question in CAUSED and f.verdict is Verdict.REFUTED and not f.bad_input), None)


def _at(finding: Finding, hunks: Sequence[Hunk]) -> Iterator[Sequence[Hunk]]:
    """The hunks that have the line that the finding names as its cause."""
    file, line, _ = split_place(finding.cause.partition(": ")[0])
    for each in hunks:
        # a line that was taken away is named by its number in the old file
        here = each.line <= line < each.end or (not each.new and each.start < line <= each.stop)
        if file and each.path.endswith(file) and here:
            yield [each]


@dataclass(frozen=True, slots=True)
class Blamed:
    """parts: hunks that make it.  sure: each of them is needed.  why: it is unknown, or not sure."""

    parts: tuple[Hunk, ...] = ()
    sure: bool = False
    why: str = ""


@dataclass(slots=True)
class _HunkTrial:
    """Programs compiled with parts of a diff.

    tree: the old tree, to which the parts are applied.  top, folder: of it, and the folder in it that is the current
    one.  base: that folder in the old tree as it is.  most, compiled: how many programs are compiled at most, and were.
    """

    tree: PatchedTree
    top: Path
    folder: str
    base: str
    library: str
    most: int
    compiled: int = 0
    known: dict[tuple[str, str, tuple[Hunk, ...]], list[Finding] | None] = field(default_factory=dict)

    def of(self, finding: Finding, head: Finding, hunks: Sequence[Hunk], guesses: Sequence[Sequence[Hunk]]) -> Blamed:
        """The hunks that make a finding."""
        name = self._named(finding)
        if name is None:
            return Blamed(why=problems.BLAME_NO_PROGRAM())
        if not hunks:
            return Blamed(why=problems.BLAME_NO_FILE())
        failed = 0

        def makes(chosen: Sequence[Hunk]) -> bool:
            nonlocal failed
            found = self._found(finding.relpath, name, tuple(chosen))
            failed += found is None
            return found is not None and any(_alike(head, each) for each in found)

        found = minimal(hunks, makes, guesses)
        if not found.whole:
            narrowed = f"; it is in these {len(found.parts)}: {_first(found.parts)}" if found.parts else ""
            return Blamed(found.parts, why=problems.BLAME_BUDGET(self.most, narrowed))
        if not found.parts:
            why = problems.BLAME_NOT_ALL()
            if failed:
                why = problems.BLAME_NOT_COMPILED()
            return Blamed(why=why)
        return Blamed(found.parts, True)

    def _named(self, finding: Finding) -> str | None:
        """The name of the program that a finding is about, where its spec file has it in both trees."""
        names = [each.name for each in self._spec(Path(self.base), finding.relpath).programs]
        return max((n for n in names if finding.subject.startswith((f"program {n}:", f"program {n} "))), key=len,
                   default=next((n for n in names if finding.subject == f"program {n}"), None))  # fmt: skip

    def _spec(self, folder: Path, relpath: str) -> ReadSpec:
        path = repository_of(folder) / relpath
        return read(files.read(path, MAX_YAML) if path.is_file() else b"", path.as_posix())

    def _entry(self, folder: Path, relpath: str, name: str) -> Named | None:
        return next((each for each in self._spec(folder, relpath).programs if each.name == name), None)

    def _found(self, relpath: str, name: str, chosen: tuple[Hunk, ...]) -> list[Finding] | None:
        """The changes of a program with some of the hunks; None where it does not compile with them."""
        key = (relpath, name, chosen)
        if key not in self.known:
            if self.compiled >= self.most:
                raise Spent
            self.compiled += 1
            self.known[key] = self._compared(relpath, name, chosen)
        return self.known[key]

    def _compared(self, relpath: str, name: str, chosen: tuple[Hunk, ...]) -> list[Finding] | None:
        was = self._entry(Path(self.base), relpath, name)
        self.tree.apply(chosen)
        now = self._entry(self.top, relpath, name)
        if was is None or now is None:
            return None
        (first,) = spec_programs.compiled([was], self.library, self.base)
        asked = spec_programs.request_for(now, self.library, self.folder)
        if not isinstance(first, Made) or first.record is None or not isinstance(asked, Asked):
            return None
        with suppress(LayoutError, Undecided):
            (second,) = made([asked], spec_programs.seconds_of([now]))
            if second.record is not None:
                return [g for f in spec_programs.between(first, second) for g in (f, *f.follows)]
        return None


_NUMBERS = re.compile(r"\d+")


def _alike(wanted: Finding, found: Finding) -> bool:
    """Whether a difference is the one that is looked for, found in a tree with other lines and other numbers."""
    if found.question != wanted.question:
        return False
    if found.question not in _AMOUNTS and _thing(found) != _thing(wanted):
        return False
    many, most = (each.figures.get("bytes") for each in (found, wanted))
    if isinstance(many, int) and isinstance(most, int) and most > 0:
        return 2 * many >= most
    return True


def _thing(finding: Finding) -> str:
    """What a difference is about, without the user's names: the kind of a collective, the number of a parameter."""
    subject = finding.subject
    if subject.startswith("program "):
        subject = subject.partition(": ")[2]
    words = re.findall(r"(?:parameter|result) \d+", subject)
    return words[0] if words else _NUMBERS.sub("", subject.partition(" ")[0])


def _first(parts: Sequence[Hunk], most: int = 5) -> str:
    return ", ".join(f"{each.path}:{each.line}" for each in parts[:most]) + (" .." if len(parts) > most else "")
