"""Findings as pictures: the files that `--svg` of `ask`, `check`, `gate` and `kernels` writes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence

from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.findings import Judged
from layoutproof.pallas.judge import kernel_target
from layoutproof.pictures.counterexamples import MOST_FOUND, finding_drawing, together
from layoutproof.pictures.drawing import Drawing
from layoutproof.pictures.kernels import kernel_drawing
from layoutproof.pictures.svg import svg_text


def finding_svg(finding: Finding, layouts: Sequence[object] = ()) -> str:
    """The picture of one answer, its counterexample marked.

    Args:
        finding: The answer.
        layouts: The layouts of the question, in its order.

    Returns:
        One SVG document; where there is nothing to draw, it says so.
    """
    drawn = finding_drawing(finding, layouts)
    return svg_text(together(finding.question, [] if drawn is None else [drawn]))


def findings_svg(title: str, findings: Iterable[Finding]) -> str:
    """The pictures of what is not as it should be, in one document."""
    bad = [finding for finding in findings if finding.verdict is not Verdict.PROVED]
    return svg_text(together(title, _first(map(finding_drawing, bad)), len(bad)))


def calls_svg(calls: Sequence[Judged]) -> str:
    """The kernels of some calls: the refuted findings of each, or its whole walk where there are none."""
    found = (each for judged in calls if isinstance(judged.call, Kernel) for each in _call(judged, judged.call))
    return svg_text(together("kernels", _first(found)))


def _first(drawn: Iterable[Drawing | None]) -> list[Drawing]:
    """As many as one picture shows: those after them are not even drawn."""
    return list(itertools.islice((each for each in drawn if each is not None), MOST_FOUND))


def _call(judged: Judged, kernel: Kernel) -> Iterator[Drawing | None]:
    # an info refutes a property that need not hold, e.g. that no block reaches past the edge: the walk shows it
    refuted = [finding for finding in judged.findings if finding.verdict is Verdict.REFUTED and finding.counterexample]
    bad = [finding for finding in refuted if finding.severity != "info"]
    drawn = [finding_drawing(finding, (kernel,)) for finding in bad[:MOST_FOUND]]
    if any(each is not None for each in drawn):
        yield from drawn
        return
    with contextlib.suppress(LayoutError):
        yield kernel_drawing(kernel, kernel_target(judged.target) if judged.target else None)
