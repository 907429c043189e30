"""`lp.crosscheck`: the same maps on NumPy, on devices, on interpreters and the real compiler, compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.core.document import document
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Answer, Finding, as_dict, split_place
from layoutproof.core.result import Verdict
from layoutproof.crosschecks import run, table
from layoutproof.crosschecks.given import given_cases


@dataclass(frozen=True, slots=True)
class CrossChecked(Answer):
    """table: a row for each source, with its disagreements."""

    table: table.Table

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The disagreements, each on its smallest case."""
        return tuple(_finding(row, found) for row in self.table.rows for found in row.disagree)

    @property
    def exit_code(self) -> int:
        """0 whoever was asked agrees, 1 somebody disagrees, 3 nobody compared anything."""
        if any(row.disagreeing for row in self.table.rows):
            return 1
        return 0 if any(row.agree for row in self.table.rows) else 3

    def __str__(self) -> str:
        return table.as_text(self.table)

    def as_dict(self) -> dict[str, Any]:
        """What `layoutproof crosscheck --json` prints."""
        return document(self.exit_code, table.as_json(self.table) | {"findings": list(map(as_dict, self.findings))})


def _finding(row: table.Row, found: table.Found) -> Finding:
    file, line, column = split_place(found.case.origin)
    wrong = found.disagree
    return Finding(
        "crosscheck",
        found.case.text,
        f"{wrong.what}: {wrong.ours} here, {wrong.theirs} by {row.source}",
        file=file,
        line=line,
        column=column,
        verdict=Verdict.REFUTED,
        counterexample={"at": wrong.index} if wrong.index else None,
        decided_by=row.version,
    )


def crosscheck(
    *given: object,
    random: int = 0,
    seed: int = 0,
    sources: Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> CrossChecked:
    """Put layouts and kernels to sources that share nothing with this package, and compare what they say.

    Args:
        *given: Spec files and folders, and layouts as `read_layout` takes them.
        random: How many cases to make at random besides.
        seed: Of those; the same seed makes the same cases.
        sources: The names of those to ask; all by default.
        progress: Called with (source, cases done, of how many).

    Returns:
        The table: `findings` are the disagreements, `exit_code`, `str` the report.

    Raises:
        LayoutError: Something given cannot be read, nothing is given, or there is no such source.

    >>> crosscheck("f32[3,5]{1,0:T(2,2)}", sources=["numpy"]).exit_code
    0
    """
    cases = given_cases(given)
    if not cases and not random:
        raise LayoutError("nothing to compare: name spec files or layouts, or ask for random cases")
    title = f"{len(cases) + random} cases" + (f", {random} of them random with seed {seed}" if random else "")
    return CrossChecked(run.run(title, cases, sources, progress or (lambda name, done, of: None), random, seed))
