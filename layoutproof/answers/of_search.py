"""`lp.search`: the best tilings, layouts or shardings for a problem, each with its certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from layoutproof.compiler.tracing import here, only
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.finding import Answer, Finding
from layoutproof.core.result import Verdict
from layoutproof.specs.positions import Node, read_file, read_yaml
from layoutproof.tilings import file as problems


@dataclass(frozen=True, slots=True)
class Found(Answer):
    """What was found. answer: of the kind of problem that it is, with its own figures."""

    answer: problems.Answer

    @property
    def verdict(self) -> Verdict:
        """PROVED: the best is.  REFUTED: there is none.  UNKNOWN otherwise."""
        return self.answer.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One: whether there is a best answer and it is proved."""
        document = self.answer.as_json()
        reason = str(document.get("reason") or "") if self.verdict is not Verdict.PROVED else ""
        return (Finding("search", str(document.get("subject", "")), reason, verdict=self.verdict),)

    @property
    def exit_code(self) -> int:
        """0 the best is proved, 1 proved that there is none, 3 unknown."""
        return self.verdict.exit_code

    def __str__(self) -> str:
        return self.answer.text()

    def as_dict(self) -> dict[str, Any]:
        """What `layoutproof search --json` prints."""
        return {**self.answer.as_json(), "written": []}

    def png(self) -> bytes | None:
        """The cost over two variables, and the Pareto front, as PNG; None where nothing was found.

        Raises LayoutError where it is not about tilings of a declared kernel, and without the extra [viz].
        """
        return problems.picture(self.answer)


def search(
    problem: str | PathLike[str] | Mapping[str, Any],
    *,
    best: int = 5,
    pareto: bool = False,
    compiling: bool = False,
    prune: str | PathLike[str] | None = None,
    effort: int = 1,
    trace: bool = True,
) -> Found:
    """Find the best answers to a problem, each with what is proved of it, and a certificate that none is better.

    Args:
        problem: A search file's path, its text (several lines), or the mapping that it holds.
        best: How many answers to keep.
        pareto: Whether to keep also all that no other beats in time, VMEM and padding at once.
        compiling: Whether to ask the real TPU compiler about the best ones too.
        prune: A JSON file with a list of candidates: say which of them the rules allow, and search nothing.
        effort: A whole number >= 1 that multiplies the engines' budgets of steps.
        trace: Whether a function that the problem names may be imported, where pyproject.toml allows it.

    Returns:
        What was found: `verdict`, `exit_code`, `answer` with the numbers of its kind, `str` the report.

    Raises:
        LayoutError: Something is wrong with the problem; with file, line and column.

    >>> str(search({"target": "v5e", "layouts": {"x": "bf16[16,1280,40]"}}).verdict)
    'Verdict.PROVED'
    """
    root, file = _read(problem)
    with only(here(trace)):
        if prune is not None:
            return Found(problems.prune(root, file, Path(prune)))
        return Found(problems.answer(root, file, best, effort, pareto, compiling))


def _read(problem: str | PathLike[str] | Mapping[str, Any]) -> tuple[Node, str]:
    if isinstance(problem, Mapping):
        return read_yaml(yaml.safe_dump(dict(problem), sort_keys=False)), "the problem"
    if isinstance(problem, str) and "\n" in problem:
        return read_yaml(problem), "the problem"
    if not isinstance(problem, str | PathLike):
        raise LayoutError(f"a problem is a file, a text or a mapping, not {shorten(repr(problem), 60)}")
    path = Path(problem)
    return read_file(path), path.as_posix()
