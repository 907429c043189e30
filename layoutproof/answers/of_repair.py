"""`lp.repair`: an edit of a kernel's source after which the kernel is judged right, tried before it is shown."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, TypedDict

from layoutproof.answers import problems
from layoutproof.answers.of_kernels import Kernels, kernels
from layoutproof.core.document import Doc
from layoutproof.core.errors import LayoutError
from layoutproof.core.files import read, write_whole
from layoutproof.core.finding import Finding, VerdictWord, split_place
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.body_fixes import padding_conditions
from layoutproof.pallas.from_jax.user import MAX_MODULE, arguments, file_of, named_function, parts_of_place
from layoutproof.questions.same import may_be_same, same
from layoutproof.questions.same_answer import Same
from layoutproof.repairing.edits import Edit, edits, joined, wrapped
from layoutproof.repairing.source import parameters_of, source_of

MOST = 250
"""Edits of one kernel that are tried."""
KINDS = {
    "initialised": ("zero",), "stale_read": ("zero",), "undefined_values": ("mask", "zero"),
    "outputs_covered": ("grid", "index"), "inputs_read": ("grid", "index"), "blocks_in_bounds": ("grid", "index"),
    "body_in_bounds": ("index",), "parallel_writes": ("order", "index"), "parallel_prefix": ("order",),
    "body_races": ("order",), "revisits": ("order", "index"), "dma_order": ("wait",), "semaphores_drained": ("wait",),
    "alias_hazard": ("order", "index"),
}  # fmt: skip
"""Question -> the kinds of edits that repair it without another meaning; without a reference no others are tried."""
_RIGHT = (Verdict.SAMPLED, Verdict.PROVED)


class RepairEntry(TypedDict):
    """An edit after which the kernel is judged right."""

    file: str
    line: int
    change: Annotated[str, Doc("in words")]
    diff: Annotated[str, Doc("a unified diff of the file")]
    kernels: Annotated[VerdictWord, Doc("of the kernel's places with the edit")]
    same: Annotated[str, Doc("of its values beside the reference; empty where no reference was given")]
    tried: Annotated[int, Doc("edits that were judged until this one")]
    written: bool


class RepairedEntry(TypedDict, total=False):
    """The key that `--fix` adds to an answer."""

    repair: Annotated[RepairEntry | None, Doc("with --fix: an edit that was judged right; null where none was found")]


@dataclass(frozen=True, slots=True)
class Repair:
    """An edit that was applied to a copy of the text, and judged.

    Attributes:
        file: The file that it changes.
        before: The file's text.
        edit: The change.
        kernels: The verdict on the kernel's places with it.
        same: The verdict on its values beside a reference; None where no reference was given.
        tried: How many edits were judged until this one.
    """

    file: Path
    before: str
    edit: Edit
    kernels: Verdict
    same: Verdict | None
    tried: int

    @property
    def name(self) -> str:
        """The path of the file, from the current folder where it is under it."""
        whole, here = self.file.resolve(), Path.cwd()
        return (whole.relative_to(here) if whole.is_relative_to(here) else whole).as_posix()

    @property
    def after(self) -> str:
        """The file's text with the edit."""
        return self.edit.of(self.before)

    @property
    def diff(self) -> str:
        """A unified diff, as `patch -p1` and `git apply` take it where the file is under the current folder."""
        name = self.name.lstrip("/")
        before, after = (text.splitlines(keepends=True) for text in (self.before, self.after))
        made = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made)

    def write(self) -> None:
        """Writes the file with the edit.

        Raises:
            LayoutError: The file is no longer what it was, or cannot be written.
        """
        if text_of(self.file) != self.before:
            raise LayoutError(problems.CHANGED_SINCE(), file=str(self.file))
        write_whole(self.file, self.after.encode())

    def __str__(self) -> str:
        values = "" if self.same is None else f", same is {self.same.value}"
        head = f"repair   {self.name}: {self.edit.words}"
        return f"{head}\n  judged   kernels is {self.kernels.value}{values}, after {self.tried} edits\n{self.diff}"

    @property
    def doubt(self) -> str:
        """What was not judged, and how to; empty where a reference was given."""
        return problems.NUMBERS_NOT_COMPARED() if self.same is None else ""

    def as_dict(self, written: bool = False) -> RepairEntry:
        """What `--fix --json` prints under `repair`."""
        return {
            "file": self.name, "line": self.edit.line, "change": self.edit.words, "diff": self.diff,
            "kernels": self.kernels.value, "same": "" if self.same is None else self.same.value, "tried": self.tried,
            "written": written,
        }  # fmt: skip


def repair(
    place: str,
    *args: object,
    reference: Callable[..., object] | str | None = None,
    target: str | None = None,
    assume: Sequence[str] = (),
    where: Sequence[str] = (),
    most: int = MOST,
    found: Same | None = None,
    tick: Callable[[str], None] = lambda what: None,
    named: Mapping[str, object] = MappingProxyType({}),
) -> Repair | None:
    """Search for an edit of one place of a function's file after which it is judged right. Nothing is written.

    Edits are made of the text alone, those of the lines that the findings name first. Each is judged as the file
    would be: the code is imported and traced with it, and no finding is refuted, nothing is unknown that was not, the
    calls and their arrays are as many and as large. With a reference, the values have to be sampled or proved the same
    too. Without one the numbers are compared with nothing: an edit may repair places and compute something else.

    Args:
        place: `MODULE:FUNCTION` or `FILE.py:FUNCTION`; its file is edited, and no other.
        *args: Its arguments, as of `lp.kernels`; texts such as f32[8,128] are shapes.
        reference: The function that says what is right, as of `lp.same`; as it stands in its file now.
        target: Also what this hardware demands, as of `lp.kernels`.
        assume: Conditions on tables, as of `lp.kernels`.
        where: Conditions on sizes, as of `lp.kernels`.
        most: How many edits are judged.
        found: The answer of `lp.same` for the file as it is, where the caller has it.
        tick: Is told what is done now.
        named: Arguments by name; none with a reference.

    Returns:
        The first edit that is judged right; None where none of them is, or nothing is wrong.

    Raises:
        LayoutError: The input is wrong, as of `lp.kernels` and `lp.same`.
    """
    if reference is not None and named:
        raise LayoutError(problems.REFERENCE_BY_NAME())
    file, (_, name) = file_of(place), parts_of_place(place)
    question = _RepairQuestion(place, args, named, reference, target, tuple(assume), tuple(where))
    before = question.kernels(None)
    values = question.same(None) if found is None else found
    if not _is_wrong(before) and (values is None or values.verdict in _RIGHT):
        return None
    text = text_of(file)
    tried: set[str] = {text}
    kinds = _kinds(before, values)
    for edit in _candidates(text, name, file, before, values, kinds):
        if reference is None and edit.kind not in kinds:
            continue
        after = edit.of(text)
        if after in tried:
            continue
        if len(tried) > most:
            return None
        tried.add(after)
        tick(f"edit {len(tried) - 1}: {edit.words}")
        outcome = question.judged(after, before)
        if outcome is not None:
            return Repair(file, text, edit, *outcome, len(tried) - 1)
    return None


@dataclass(frozen=True, slots=True)
class _RepairQuestion:
    """What is asked of each text of the file: the arguments of `repair`."""

    place: str
    args: Sequence[object]
    named: Mapping[str, object]
    reference: Callable[..., object] | str | None
    target: str | None
    assume: tuple[str, ...]
    where: tuple[str, ...]

    def kernels(self, text: str | None) -> Kernels:
        """The findings of a text; the file's own for None."""
        with named_function(self.place, text=text) as function:
            called = partial(function, **self.named) if self.named else function
            return kernels(called, *arguments(self.args), target=self.target, assume=self.assume, where=self.where)

    def same(self, text: str | None) -> Same | None:
        """The comparison of a text with the reference; None without one."""
        if self.reference is None:
            return None
        with named_function(self.place, text=text) as function:
            return same(function, self.reference, *self.args, target=self.target, assume=self.assume, where=self.where)

    def _may_be_right(self, text: str) -> bool:
        if self.reference is None:
            return True
        with named_function(self.place, text=text) as function:
            return may_be_same(function, self.reference, *self.args, assume=self.assume, target=self.target)

    def judged(self, text: str, before: Kernels) -> tuple[Verdict, Verdict | None] | None:
        """The verdicts on a text that is right, None where it is not, or is no program."""
        try:
            if not self._may_be_right(text):
                return None
            values = self.same(text)
            if values is not None and values.verdict not in _RIGHT:
                return None
            places = self.kernels(text)
        except Exception:
            # whatever an edit makes of the code, one that cannot be judged is no repair
            return None
        if _is_wrong(places) or _shapes(places) != _shapes(before) or not _open(places) <= _open(before):
            return None
        verdict = Verdict.UNKNOWN if places.exit_code == Verdict.UNKNOWN.exit_code else Verdict.PROVED
        return verdict, None if values is None else values.verdict


def _is_wrong(found: Kernels) -> bool:
    return any(f.verdict is Verdict.REFUTED and f.severity == "error" for f in found.findings)


def _open(found: Kernels) -> set[tuple[str, str]]:
    """What is unknown: as many subjects may be after an edit, and no others."""
    return {(f.question, f.subject) for f in found.findings if f.verdict is Verdict.UNKNOWN}


def _shapes(found: Kernels) -> list[object]:
    """What an edit may not change: how many calls there are, and their arrays."""
    return [
        [(o.role, o.dims, o.dtype) for o in call.operands] if isinstance(call, Kernel) else call.name
        for call in (judged.call for judged in found.calls)
    ]


def _kinds(before: Kernels, values: Same | None) -> set[str]:
    """The kinds of edits that repair what is refuted."""
    wrong = {f.question for f in before.findings if f.verdict is Verdict.REFUTED}
    if values is not None:
        wrong |= {f.question for f in values.premises if f.verdict is Verdict.REFUTED}
    return {kind for question in wrong for kind in KINDS.get(question, ())}


def _candidates(
    text: str, name: str, file: Path, before: Kernels, values: Same | None, kinds: Collection[str]
) -> Iterator[Edit]:
    """The edits, the likeliest first: what masks padding, where that is in doubt, then those of the lines named."""
    source = source_of(text, str(file))
    if any(f.question == "undefined_values" for f in before.findings if f.verdict is not Verdict.PROVED):
        masks = [
            edit
            for call in before.calls
            if isinstance(call.call, Kernel)
            for number, condition in padding_conditions(call.call)
            for reference in parameters_of(source, call.call.name, len(call.call.tables) + number)
            for edit in list(wrapped(source, name, reference, condition))[:1]
        ]
        yield from masks
        if len(masks) > 1 and len({edit.start for edit in masks}) == len(masks):
            yield joined(text, masks)
    yield from edits(source, name, _lines(file, before.findings, values), kinds)


def _lines(file: Path, findings: Sequence[Finding], values: Same | None) -> list[int]:
    """The lines of a file that the answers name, those of values first."""
    places: list[tuple[str, int]] = []
    begins = None if values is None else values.comparison.begins
    if begins is not None:
        places += [split_place(one)[:2] for one in (begins.place, begins.until, begins.stored) if one]
    wrong = [f for f in findings if f.verdict is Verdict.REFUTED]
    places += [(f.file, f.line) for f in sorted(wrong, key=lambda f: f.severity != "error")]
    if values is not None:
        places += [(f.file, f.line) for f in values.findings]
    whole = file.resolve()
    return list(dict.fromkeys(line for one, line in places if line and Path(one).resolve() == whole))


def text_of(file: Path) -> str:
    """The text of a Python file.

    Raises LayoutError where it is none that can be read.
    """
    try:
        return read(file, MAX_MODULE).decode()
    except UnicodeDecodeError as error:
        raise LayoutError(problems.NOT_UTF_8(error.reason), file=str(file)) from None
