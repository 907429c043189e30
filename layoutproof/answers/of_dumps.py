"""`lp.audit`: HLO dumps: padding, copies, bitcasts, entry layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from layoutproof.compiler.workers import Workers, spread
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import DUMP_ENDS, lines
from layoutproof.core.finding import Answer, Finding, exit_code
from layoutproof.hlo import report
from layoutproof.hlo.audit import audit as audit_lines
from layoutproof.hlo.audit import audit_file
from layoutproof.hlo.found import Audit
from layoutproof.hlo.gc_pause import gc_disabled

_FIRST = 64
"""Lines of a file in a folder that are looked at for the start of a dump."""


@dataclass(frozen=True, slots=True)
class Audited(Answer):
    """audits: one for each dump.  others: texts beside them that are no dumps.

    target: the TPU generation that better layouts are for, None for v4 and later.  top: lines of each table.
    """

    audits: tuple[Audit, ...]
    others: tuple[str, ...] = ()
    target: str | None = None
    top: int = 10

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that is unknown, refuted or wrong, dump by dump, the worst of each last."""
        return tuple(finding for audit in self.audits for finding in audit.findings())

    @property
    def exit_code(self) -> int:
        """0 all proved, 1 something refuted, 2 a text is wrong or cut short, 3 something unknown."""
        return exit_code(self.findings)

    def __str__(self) -> str:
        blocks = [report.as_text(audit, self.top, self.target) for audit in self.audits]
        return "\n\n".join([*blocks, *([self.passed_over()] if self.others else [])])

    def passed_over(self) -> str:
        """One line that names the texts that are no dumps, "" where there is none."""
        if not self.others:
            return ""
        more = " .." if len(self.others) > self.top else ""
        return f"not HLO text, not read: {', '.join(self.others[: self.top])}{more}"

    def as_dict(self) -> dict[str, Any]:
        """What `layoutproof hlo --json` prints."""
        return report.as_json(self.audits, self.others, self.top, self.target)


def audit(hlo: Any, *, target: str | None = None, top: int = 10, jobs: int = 1) -> Audited:
    """Audit HLO text: what padding costs and what would pad less, copies, bitcasts, entry layouts.

    Args:
        hlo: A dump's path, a folder of dumps, or "-" for standard input; the text itself (several lines); or what has
            it as `as_text()`, such as `jax.jit(f).lower(x).compile()`.
        target: The TPU generation that better layouts are for; v4 and later by default.
        top: Lines of each table of the report.
        jobs: Processes; 0 is one per core.

    Returns:
        The audits: `findings`, `exit_code`, `str` the report.

    Raises:
        LayoutError: There is no dump. What is wrong within a dump is a finding.

    >>> audit("HloModule m\\nENTRY e {\\n  ROOT p = f32[8,128]{1,0} parameter(0)\\n}").exit_code
    0
    """
    target = known_target(target)
    text = hlo.as_text() if hasattr(hlo, "as_text") else hlo
    if isinstance(text, str) and "\n" in text:
        with gc_disabled():
            return Audited((audit_lines(text.splitlines(keepends=True), "the text", target),), (), target, top)
    if not isinstance(text, str | PathLike):
        raise LayoutError(f"HLO is a dump's path, its text, or a compiled program, not {shorten(repr(hlo), 60)}")
    files, others = dumps_of(Path(text))
    return Audited(tuple(audits_of(Path(text), files, target, jobs)), tuple(others), target, top)


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
        # what cannot be read hides nothing of what lies beside it
        return Audit(file.as_posix(), errors=[error])


def dumps_of(path: Path) -> tuple[list[Path], list[str]]:
    """The dumps that a path means, and the texts beside them that are none. LayoutError when there is no dump."""
    if not path.is_dir():
        return [path], []
    texts = sorted(each for each in path.iterdir() if each.name.endswith(DUMP_ENDS) and not each.is_dir())
    dumps = [each for each in texts if _is_dump(each)]
    if not dumps:
        raise LayoutError(f"{path}: no HLO dump here: no .txt or .hlo file has a line that starts with HloModule")
    return dumps, [each.name for each in texts if each not in dumps]


def _is_dump(path: Path) -> bool:
    from layoutproof.hlotext.lines import STARTS

    try:
        with lines(path) as text:
            return any(line.startswith(STARTS) for line in islice(text, _FIRST))
    except LayoutError:
        return True  # unknown; the audit says why
