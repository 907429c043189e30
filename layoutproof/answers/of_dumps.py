"""`lp.audit`: HLO dumps: padding, copies, bitcasts, entry layouts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Annotated

from layoutproof.answers import problems
from layoutproof.compiler.workers import Workers, spread
from layoutproof.core.document import Doc, Document, envelope
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import DUMP_ENDS, lines, lines_of, listed
from layoutproof.core.finding import Answer, Finding, exit_code
from layoutproof.core.finding import text as finding_text
from layoutproof.core.result import Verdict
from layoutproof.hlo import report
from layoutproof.hlo.audit import audit as audit_lines
from layoutproof.hlo.audit import audit_file
from layoutproof.hlo.found import Audit
from layoutproof.hlo.gc_pause import gc_disabled
from layoutproof.programs.advice import QUESTION, Advice, AdviceEntry, advice_on_dump
from layoutproof.programs.compile import CPU

_FIRST = 64
"""Lines of a file in a folder that are looked at for the start of a dump."""


class HloDocument(Document):
    """The audit of each dump."""

    results: list[report.AuditEntry]
    not_dumps: Annotated[list[str], Doc("texts beside the dumps that are none")]
    tried: Annotated[list[AdviceEntry], Doc("with --try, for each dump")]


@dataclass(frozen=True, slots=True)
class Audited(Answer):
    """audits: one for each dump.  others: texts beside them that are no dumps.

    target: the TPU generation that better layouts are for, None for v4 and later.  top: lines of each table.
    advice: the candidates tried for each program, where that was asked for.
    """

    audits: tuple[Audit, ...]
    others: tuple[str, ...] = ()
    target: str | None = None
    top: int = 10
    advice: tuple[Advice, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that is unknown, refuted or wrong, dump by dump, the worst of each last; why nothing could be tried."""
        audited = tuple(finding for audit in self.audits for finding in audit.findings())
        return (*audited, *(finding for each in self.advice for finding in each.findings))

    @property
    def exit_code(self) -> int:
        """0 all proved, 1 something refuted, 2 a text is wrong or cut short, 3 something unknown."""
        return exit_code(self.findings)

    def __str__(self) -> str:
        blocks = [report.as_text(audit, self.top, self.target) for audit in self.audits]
        tried = filter(None, map(tried_text, self.advice))
        return "\n\n".join([*blocks, *tried, *([self.passed_over()] if self.others else [])])

    def passed_over(self) -> str:
        """One line that names the texts that are no dumps, "" where there is none."""
        if not self.others:
            return ""
        more = " .." if len(self.others) > self.top else ""
        return f"not HLO text, not read: {', '.join(self.others[: self.top])}{more}"

    def as_dict(self) -> HloDocument:
        """What `layoutproof hlo --json` prints."""
        return {
            **envelope(self.exit_code),
            "results": [report.as_json(audit, self.top, self.target) for audit in self.audits],
            "not_dumps": list(self.others),
            "tried": [each.as_dict() for each in self.advice],
        }


def tried_text(of: Advice) -> str:
    """The candidates tried, or why there are none, as the command prints them."""
    return "\n".join(filter(None, [str(of), *map(finding_text, of.findings)]))


def audit(hlo: object, *, target: str | None = None, top: int = 10, jobs: int = 1, try_: bool = False) -> Audited:
    """Audit HLO text: the cost of padding and layouts that pad less, copies, bitcasts, entry layouts.

    Args:
        hlo: A dump's path, a folder of dumps, or "-" for standard input; the text itself (several lines); or what has
            it as `as_text()`, such as `jax.jit(f).lower(x).compile()`.
        target: The TPU generation that better layouts are for; v4 and later by default.
        top: Lines of each table of the report.
        jobs: Processes; 0 is one per core.
        try_: Compile text from before optimization for the target, or for "cpu", with each candidate that takes less,
            and say in `advice` which helped. Text of a compiled program cannot be compiled again, and says so.

    Returns:
        The audits: `findings`, `exit_code`, `str` the report; `advice`, with `try_`.

    Raises:
        LayoutError: There is no dump. A mistake within a dump is a finding.

    >>> audit("HloModule m\\nENTRY e {\\n  ROOT p = f32[8,128]{1,0} parameter(0)\\n}").exit_code
    0
    """
    rules, chip = rules_and_target(target, try_)
    text = hlo.as_text() if hasattr(hlo, "as_text") else hlo
    if isinstance(text, str) and "\n" in text:
        with gc_disabled():
            found = audit_lines(lines_of(text, "the text"), "the text", rules)
        return Audited((found,), (), rules, top, (advice_of(found, text, chip),) if try_ else ())
    if not isinstance(text, str | PathLike):
        raise LayoutError(problems.HLO_TYPE(shorten(repr(hlo), 60)))
    files, others = dumps_of(Path(text))
    if not try_:
        return Audited(tuple(audits_of(Path(text), files, rules, jobs)), tuple(others), rules, top)
    read = [(each, advice_of(each, words, chip)) for each, words in texts_of(Path(text), files, rules)]
    return Audited(tuple(each for each, _ in read), tuple(others), rules, top, tuple(about for _, about in read))


def rules_and_target(target: str | None, try_: bool) -> tuple[str | None, str]:
    """(whose tiles better layouts have, None for v4 and later; for which target a program is compiled).

    Raises LayoutError for an unknown target, and where something is to be compiled for none.
    """
    if try_ and target is None:
        raise LayoutError(problems.CHIP_NOT_SAID())
    if try_ and target == CPU:
        return None, CPU
    known = known_target(target)
    return known, known or ""


def advice_of(found: Audit, text: str, target: str, progress: Callable[[str], None] = lambda what: None) -> Advice:
    """The candidates tried for the program of one dump. text: of the dump.  progress: is called with each step."""
    if len(found.programs) != 1 or found.errors:
        why = "one program that can be read is tried at a time"
        return Advice(found.file, findings=(Finding(QUESTION, found.file, why, verdict=Verdict.UNKNOWN),))
    (program,) = found.programs
    names = [each.location.op_name or each.location.name for each in program.parameters]
    return advice_on_dump(text, found.file, target, program.scheduled, program.partitions, names, progress=progress)


def texts_of(path: Path, files: list[Path], target: str | None) -> Iterator[tuple[Audit, str]]:
    """The audits of files with their texts, in their order, each file read once: standard input has no second time."""
    for file in files:
        try:
            with lines(file) as found:
                text = "".join(found)
        except LayoutError as error:
            if files == [path]:
                raise
            yield Audit(file.as_posix(), errors=[error]), ""
            continue
        with gc_disabled():
            yield audit_lines(text.splitlines(keepends=True), str(file), target), text


def known_target(target: str | None) -> str | None:
    """The generation as it is spelled here. LayoutError lists the known ones."""
    if target is None:
        return None
    from layoutproof.hardware.tpu_chips import generation

    return generation(target)


def audits_of(path: Path, files: list[Path], target: str | None, jobs: int) -> Iterator[Audit]:
    """The audits of files, in their order, each as soon as it is there."""
    return spread(partial(_audited, target=target, alone=files == [path]), files, Workers(jobs))


def _audited(file: Path, target: str | None, alone: bool) -> Audit:
    try:
        with gc_disabled():
            return audit_file(file, target)
    except LayoutError as error:
        if alone:
            raise
        # an unreadable file hides nothing of the files beside it
        return Audit(file.as_posix(), errors=[error])


def dumps_of(path: Path) -> tuple[list[Path], list[str]]:
    """The dumps that a path means, and the texts beside them that are none. LayoutError when there is no dump."""
    if not os.path.isdir(path):
        return [path], []
    texts = [each for each in listed(path) if each.name.endswith(DUMP_ENDS) and not each.is_dir()]
    dumps = [each for each in texts if _is_dump(each)]
    if not dumps:
        raise LayoutError(problems.NO_DUMP_HERE(path))
    return dumps, [each.name for each in texts if each not in dumps]


def _is_dump(path: Path) -> bool:
    from layoutproof.hlotext.lines import STARTS

    try:
        with lines(path) as text:
            return any(line.startswith(STARTS) for line in islice(text, _FIRST))
    except LayoutError:
        return True  # unknown; the audit says why
