"""`lp.check`: every claim of spec files, proved or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike

from layoutproof.answers import problems
from layoutproof.compiler.tracing import here, only
from layoutproof.compiler.workers import Workers
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Answer, Finding, Report
from layoutproof.specs import report
from layoutproof.specs.check import Outcome, check_paths, exit_code, unasked_in
from layoutproof.specs.report import CheckDocument
from layoutproof.specs.spec import Unasked


@dataclass(frozen=True, slots=True)
class Checked(Answer):
    """outcomes: one for each check, in the order of the files.  unasked: definitions in the files without a check."""

    outcomes: tuple[Outcome, ...]
    unasked: tuple[Unasked, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The checks that do not end as the files state."""
        return self.report().findings

    @property
    def exit_code(self) -> int:
        """0 all as stated, 1 something is not, 2 a file cannot be read, 3 something unknown; 130 interrupted."""
        return exit_code(self.outcomes)

    def report(self) -> Report:
        """The same for the forms of reports."""
        return report.as_findings(self.outcomes, self.unasked)

    def text(self, everything: bool = False) -> str:
        """The checks that failed, a line per file, a line of counts; everything: also the checks that passed."""
        return report.text(self.outcomes, everything, self.unasked)

    def svg(self) -> str:
        """The checks that failed, as pictures."""
        # pictures read every language; a command that draws none does not wait for them
        from layoutproof.answers.of_pictures import findings_svg

        return findings_svg("check", self.findings)

    def summary(self) -> str:
        """The line that counts."""
        return report.summary(self.outcomes)

    def __str__(self) -> str:
        return self.text()

    def as_dict(self) -> CheckDocument:
        """What `layoutproof check --json` prints."""
        return report.as_json(self.outcomes, self.unasked)


def check(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]] = "specs",
    *,
    jobs: int = 1,
    trace: bool = True,
    workers: Workers | None = None,
    strict: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Checked:
    """Decide every claim in spec files.

    Args:
        paths: A file or a folder, or several.
        jobs: Processes; 0 is one per core.
        trace: Whether functions that files name may be imported, where pyproject.toml allows it.
        workers: Where the work is done, instead of `jobs`.
        strict: Whether sampled is not enough, and counts as unknown.
        progress: Called with (done, of how many) checks.

    Returns:
        The outcomes: `findings` are those that are not as stated, `exit_code`, `str` the report.

    Raises:
        LayoutError: There is no file. A mistake within a file is a finding.

    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> text = "layouts: {a: 'f32[3,5]{1,0}'}\\nchecks: [{injective: a}]\\n"
    >>> _ = pathlib.Path(folder, "a.yaml").write_text(text)
    >>> check(folder, trace=False).exit_code
    0
    """
    given = [paths] if isinstance(paths, str | PathLike) else paths
    if not isinstance(given, Iterable):
        raise LayoutError(problems.SPECS_TYPE(shorten(repr(paths), 60)))
    names = tuple(str(path) for path in given)
    with only(here(trace)):
        outcomes = check_paths(names, workers or Workers(jobs), progress)
    if strict:
        outcomes = [outcome.strictly() for outcome in outcomes]
    return Checked(tuple(outcomes), tuple(unasked_in(names)))
