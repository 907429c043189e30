"""`lp.crosscheck`: the same maps on NumPy, on devices, on interpreters and the real compiler, compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from layoutproof.answers import problems
from layoutproof.core.document import Doc, Document, envelope
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Answer, Finding, FindingEntry, as_dict, split_place
from layoutproof.core.result import Verdict
from layoutproof.crosschecks import run, table
from layoutproof.crosschecks.given import given_cases


class CrosscheckDocument(Document, table.TableEntry):
    """Answers of sources that share nothing with this package, compared with its own."""

    findings: Annotated[list[FindingEntry], Doc("disagreements, each kind once, on the smallest case")]


@dataclass(frozen=True, slots=True)
class CrossChecked(Answer):
    """table: a row for each source, with its disagreements."""

    table: table.CrosscheckResults

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The disagreements, each on its smallest case."""
        return tuple(_finding(row, found) for row in self.table.rows for found in row.disagree)

    @property
    def exit_code(self) -> int:
        """0 all sources that answered agree, 1 a source disagrees, 3 nothing was compared."""
        if any(row.disagreeing for row in self.table.rows):
            return 1
        return 0 if any(row.agree for row in self.table.rows) else 3

    def __str__(self) -> str:
        return table.as_text(self.table)

    def markdown(self) -> str:
        """The same as a table of Markdown, for a page.

        Returns:
            The text.
        """
        return table.as_markdown(self.table)

    def as_dict(self) -> CrosscheckDocument:
        """What `layoutproof crosscheck --json` prints."""
        found = list(map(as_dict, self.findings))
        return {**envelope(self.exit_code), **table.as_json(self.table), "findings": found}


def _finding(row: table.Row, found: table.Disagreement) -> Finding:
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
    args: Sequence[str] = (),
    kwargs: Mapping[str, str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> CrossChecked:
    """Put layouts and kernels to sources that share nothing with this package, and compare what they say.

    Args:
        *given: Spec files and dumps, folders of them, kernels as `MODULE:FUNCTION` or `FILE.py:FUNCTION`, and layouts
            as `read_layout` takes them.
        random: How many cases to make at random besides.
        seed: Of those; the same seed makes the same cases.
        sources: The names of those to ask; all by default.
        args: Of the functions, texts such as "bf16[4096,512]".
        kwargs: The same by name.
        progress: Called with (source, cases done, of how many).

    Returns:
        The table: `findings` are the disagreements, `exit_code`, `str` the report.

    Raises:
        LayoutError: Something given cannot be read, nothing is given, or there is no such source.

    >>> crosscheck("f32[3,5]{1,0:T(2,2)}", sources=["numpy"]).exit_code
    0
    """
    cases = given_cases(given, args, kwargs)
    if not cases and not random:
        raise LayoutError(problems.NOTHING_TO_COMPARE())
    count = len(cases) + random
    title = f"{count} case{'s' * (count != 1)}" + (f", {random} of them random with seed {seed}" if random else "")
    return CrossChecked(run.run(title, cases, sources, progress or (lambda name, done, of: None), random, seed))
