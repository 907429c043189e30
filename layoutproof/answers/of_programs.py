"""`lp.compile`: programs compiled ahead of time, and their records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from layoutproof.core.document import document
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Answer, Finding, as_dict, exit_code, text
from layoutproof.programs import report
from layoutproof.programs.reading import record_of
from layoutproof.programs.record import Compiled, Record


@dataclass(frozen=True, slots=True)
class Programs(Answer):
    """records: of what was compiled, in the order in which it was asked for.  problems: why there is no record of the
    rest."""

    records: tuple[Record, ...]
    problems: tuple[Finding, ...] = ()
    top: int = 5

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why there is no record of what could not be compiled."""
        return self.problems

    @property
    def exit_code(self) -> int:
        """0 all compiled, 1 a compiler refused one, 2 bad input, 3 not installed, time limit or abort."""
        return exit_code(self.problems)

    def __str__(self) -> str:
        blocks = [*(report.text(record, self.top) for record in self.records), *map(text, self.problems)]
        return "\n\n".join(blocks)

    def as_dict(self) -> dict[str, Any]:
        """What `layoutproof compile --json` prints."""
        return document(
            self.exit_code,
            {"records": [each.as_dict() for each in self.records], "findings": list(map(as_dict, self.problems))},
        )


def compile(program: Any, *, mesh: Mapping[str, int] | None = None, top: int = 5) -> Programs:
    """Read the record of a compiled program: memory, collectives, copies, kernels, cycles.

    Args:
        program: A dump's path, the text itself (several lines), or what has it as `as_text()`, such as
            `jax.jit(f).lower(x).compile()`.
        mesh: Axis to size, in the order of the devices: collectives are then named by axes.
        top: Lines of each list of the report.

    Returns:
        The records: `records`, `findings`, `exit_code`, `str` the report.

    Raises:
        LayoutError: There is no program. What is wrong with its text is a finding.

    >>> compile("HloModule m\\nENTRY e {\\n  ROOT p = f32[8,128]{1,0} parameter(0)\\n}").records[0].entry_bytes
    4096
    """
    made = Compiled(mesh=dict(mesh or {}))
    text = program.as_text() if hasattr(program, "as_text") else program
    if isinstance(text, str) and "\n" in text:
        return Programs((record_of(text.splitlines(keepends=True), "the text", made),), (), top)
    if not isinstance(text, str | PathLike):
        raise LayoutError(
            f"a program is a dump's path, its text, or a compiled program, not {shorten(repr(program), 60)}"
        )
    from layoutproof.programs.reading import read_program

    return Programs((read_program(Path(text), made),), (), top)
