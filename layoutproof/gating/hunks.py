"""A diff of two trees in parts that can be applied one by one.

The old tree is a commit written into a folder (`git.write_tree`), the new one the work tree that is here. No program of
git compares them: a repository may name one of its own for that. What Python reads as the same program, such as a
comment, is no part.
"""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from layoutproof.core import files
from layoutproof.core.errors import shorten
from layoutproof.core.visible import visible
from layoutproof.gating.git import LINK, MODULE, git, listed

MOST_LINES = 20_000
"""Lines of a file that is split; a longer one, or one that is no text, is one part."""
MOST_BYTES = 64 << 20
"""Of a file that is compared at all."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One part of a diff.

    path: from the top of the repository.  line: 1-based, in the new file the first that is new, or before which lines
    went.  end: the line after the last new one.  start, stop: the old lines that it replaces, from 0.  new: its lines.
    gone: the file is there in the old tree alone; fresh: in the new one alone.
    """

    path: str
    line: int
    end: int
    start: int
    stop: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    gone: bool = False
    fresh: bool = False

    def __str__(self) -> str:
        """`model.py:7: + h = f(h)`, the first line that it adds, or the first that it takes away."""
        added = [line for line in self.new if line.strip()] or [line for line in self.old if line.strip()]
        sign = "+" if any(line.strip() for line in self.new) else "-"
        text = (added[0] if added else b"").decode(errors="replace").strip()
        more = max(len(self.new), len(self.old)) - 1
        rest = f" (and {more} more line{'' if more == 1 else 's'})" if more else ""
        return visible(f"{self.path}:{self.line}: {sign} {shorten(text, 100)}{rest}")


def hunks_of(top: Path, commit: str, base: Path) -> tuple[Hunk, ...]:
    """The parts of the diff from a commit to the work tree, by path and line.

    top: of the repository that is here.  base: the folder with the files of the commit. LayoutError for a file that
    cannot be read. A link, a submodule and what git ignores is in no part.
    """
    olds = {name: identity for mode, identity, name in listed(top, "ls-tree", commit, [""]) if mode not in _OTHER}
    kept = [name for mode, _, name in listed(top, "ls-files", "--stage", [""]) if mode not in _OTHER]
    others = git(top, "ls-files", "--others", "--exclude-standard", "-z").decode("utf-8", "surrogateescape")
    found: list[Hunk] = []
    # what Python compiled beside a module says nothing that the module does not
    new = [name for name in others.split("\0") if name and "__pycache__" not in name.split("/")]
    for name in sorted({*olds, *kept, *new}):
        old = _contents(base / name) if name in olds else None
        now = _contents(top / name)
        if old != now:
            found += _hunks(name, old, now)
    return tuple(found)


_OTHER = (LINK, MODULE)


def _contents(path: Path) -> bytes | None:
    if path.is_symlink() or not path.is_file():
        return None
    return files.read(path, MOST_BYTES)


def _hunks(path: str, old: bytes | None, new: bytes | None) -> Iterator[Hunk]:
    if old is None or new is None:
        lines = [side.splitlines(keepends=True) if side is not None else [] for side in (old, new)]
        yield Hunk(
            path, 1, len(lines[1]) + 1, 0, len(lines[0]), tuple(lines[0]), tuple(lines[1]), new is None, old is None
        )
        return
    if path.endswith(".py") and _same_program(old, new):
        return
    before, after = (side.splitlines(keepends=True) for side in (old, new))
    if b"\0" in old + new or max(len(before), len(after)) > MOST_LINES:
        yield Hunk(path, 1, len(after) + 1, 0, len(before), tuple(before), tuple(after))
        return
    for kind, start, stop, first, last in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for a, b, c, d in _parts(before[start:stop], after[first:last]):
            olds, news = before[start + a : start + b], after[first + c : first + d]
            yield Hunk(path, first + c + 1, first + d + 1, start + a, start + b, tuple(olds), tuple(news))


def _parts(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """Lines that were replaced, line by line where they are alike: (start, stop) of old ones, then of new ones."""
    a = c = 0
    for k, other in _alike(old, new):
        if a < k or c < other:
            yield a, k, c, other
        yield k, k + 1, other, other + 1
        a, c = k + 1, other + 1
    if a < len(old) or c < len(new):
        yield a, len(old), c, len(new)


def _alike(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Pairs of an old line and a new one that is most like it, in order."""
    if max(len(old), len(new)) > _MOST_ALIKE:
        return
    if len(old) == len(new):
        yield from zip(range(len(old)), range(len(new)), strict=True)
        return
    at = 0
    for k, line in enumerate(old):
        ratios = [difflib.SequenceMatcher(None, line, other).ratio() for other in new[at:]]
        best = max(ratios, default=0.0)
        if best >= _LIKE:
            yield k, at + ratios.index(best)
            at += ratios.index(best) + 1


_MOST_ALIKE = 40
"""Lines of a replaced block whose lines are compared; a longer one is one part."""
_LIKE = 0.6
"""How much of two lines is the same where one is the other, edited."""


def _same_program(old: bytes, new: bytes) -> bool:
    """Whether two Python files are one program but for the numbers of their lines, which name no value."""
    try:
        return ast.dump(ast.parse(old)) == ast.dump(ast.parse(new))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


class PatchedTree:
    """A folder with the files of the old tree, to which any of the parts can be applied.

    Each version's files get a time of their own, so that no compiled module of an earlier version is taken for it.
    """

    def __init__(self, top: Path, hunks: Sequence[Hunk]) -> None:
        self._top, self._versions = top, 0
        self._hunks: dict[str, list[Hunk]] = {}
        for each in hunks:
            self._hunks.setdefault(each.path, []).append(each)
        self._olds = {
            name: [] if several[0].fresh else files.read(top / name, MOST_BYTES).splitlines(keepends=True)
            for name, several in self._hunks.items()
        }

    def apply(self, chosen: Collection[Hunk]) -> None:
        """The files as the old tree has them, with the chosen parts."""
        self._versions += 1
        for name, several in self._hunks.items():
            here = [each for each in several if each in chosen]
            path = self._top / name
            if (not here and several[0].fresh) or (here and several[0].gone):
                path.unlink(missing_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_with(self._olds[name], here))
            os.utime(path, (_FIRST + 2 * self._versions,) * 2)


def _with(old: Sequence[bytes], chosen: Sequence[Hunk]) -> bytes:
    """The old lines with some parts of a diff, which stand in their order."""
    found: list[bytes] = []
    at = 0
    for each in chosen:
        found += [*old[at : each.start], *each.new]
        at = each.stop
    return b"".join([*found, *old[at:]])


_FIRST = 1_000_000_000
"""The time of the first version, in seconds since 1970: in the past, as of files that were there before."""
