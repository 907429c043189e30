"""Tilings as a picture: cost over two variables with the feasible region, and the Pareto front (extra [viz])."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.jobs.search.branch import Candidate, candidate
from layoutproof.jobs.search.front import Front
from layoutproof.jobs.search.problem import Problem, broken
from layoutproof.jobs.search.solve import Tilings
from layoutproof.jobs.search.tilings_text import cost_text

MOST = 48
"""Values of one variable that are drawn; of more, evenly spread ones and those of the best."""


def png(answer: Tilings) -> bytes:
    """A PNG of an answer with something found: left the cost of all pairs of values of two variables; right the front.

    Grey is what breaks a constraint or does not fit into VMEM. Without a front (`--pareto`) only the left one.
    Raises LayoutError where there are fewer than two variables, and without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.text import Text
    except ImportError:
        raise LayoutError("a picture needs matplotlib: pip install matplotlib") from None
    problem, found = answer.problem, answer.progress.found
    first, second = drawn(problem)
    front = answer.front
    figure = Figure(figsize=(13 if front else 7, 5.5), layout="constrained")
    # a canvas of its own: nothing of the user's own pictures or settings is touched
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2 if front else 1, squeeze=False)[0]
    _costs(axes[0], problem, found, first, second)
    if front is not None:
        _front(axes[1], problem, front)
    figure.suptitle(f"{problem.name}, {problem.target}")
    for text in figure.findobj(Text):
        text.set_parse_math(False)  # a name is a name, whatever it has of dollars
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a letter that the font lacks is drawn as a box
        figure.savefig(out, format="png", dpi=120)
    return out.getvalue()


def drawn(problem: Problem) -> tuple[str, str]:
    """The two variables with the most values, in the problem's order. LayoutError where there are not two."""
    several = [name for name, values in problem.variables.items() if len(values) > 1]
    if len(several) < 2:
        raise LayoutError("a picture is drawn over two variables with several values each; here are fewer")
    largest = sorted(several, key=lambda name: -len(problem.variables[name]))[:2]
    first, second = (name for name in problem.variables if name in largest)
    return first, second


def costs(
    problem: Problem, best: Mapping[str, int], first: Sequence[int], second: Sequence[int], names: tuple[str, str]
) -> list[list[int | None]]:
    """The cost for every pair of values, the other variables as in `best`; None where it is not feasible."""
    rows = []
    for one in first:
        row: list[int | None] = []
        for other in second:
            try:
                made = candidate(problem, {**best, names[0]: one, names[1]: other})
                row.append(None if broken(problem, made.values, made.figures) else made.cost)
            except (ZeroDivisionError, Undecided):
                row.append(None)
        rows.append(row)
    return rows


def _costs(axes: Any, problem: Problem, found: Sequence[Candidate], first: str, second: str) -> None:
    import numpy as np
    from matplotlib.colors import LogNorm

    best = found[0].values
    down = spread(problem.variables[first], best[first])
    across = spread(problem.variables[second], best[second])
    table = costs(problem, best, down, across, (first, second))
    grid = np.array([[np.nan if cost is None else float(cost) for cost in row] for row in table])
    scale = 1e-9 if problem.cost is None else 1.0
    axes.set_facecolor("lightgrey")
    known = grid[~np.isnan(grid)] * scale
    norm = LogNorm(known.min(), known.max()) if known.min() > 0 and known.max() > known.min() else None
    image = axes.imshow(grid * scale, origin="lower", aspect="auto", cmap="viridis_r", norm=norm)
    axes.figure.colorbar(image, ax=axes, label="time, ms (model)" if problem.cost is None else str(problem.cost))
    for label, values, put in ((first, down, axes.set_yticks), (second, across, axes.set_xticks)):
        every = max(1, len(values) // 8)
        put(range(0, len(values), every), [str(v) for v in values[::every]])
        (axes.set_ylabel if label == first else axes.set_xlabel)(f"{label} (elements)")
    axes.plot(across.index(best[second]), down.index(best[first]), "*", color="red", markersize=16)
    rest = ", ".join(f"{name} = {value}" for name, value in best.items() if name not in (first, second))
    axes.set_title(f"best {cost_text(problem, found[0].cost)}{f'; {rest}' if rest else ''}; grey: not feasible")


def _front(axes: Any, problem: Problem, front: Front) -> None:
    scale = 1e-9 if problem.cost is None else 1.0
    across = [max(row["vmem"] for row in one.figures) / 2**20 for one in front.found]
    up = [one.cost * scale for one in front.found]
    waste = [100 * sum(r["padding"] for r in one.figures) / max(1, sum(r["bytes"] for r in one.figures))
             for one in front.found]  # fmt: skip
    points = axes.scatter(across, up, c=waste, cmap="plasma")
    axes.figure.colorbar(points, ax=axes, label="padding, % of HBM bytes")
    axes.set_xlabel("VMEM, MiB")
    axes.set_ylabel("time, ms (model)" if problem.cost is None else str(problem.cost))
    if up and min(up) > 0:
        axes.set_yscale("log")
    axes.set_title(f"Pareto front: {len(front.found)} tilings" + ("; not complete" if front.unknown else ""))


def spread(values: Sequence[int], kept: int) -> list[int]:
    """At most MOST of the values, evenly spread, `kept` among them.

    >>> spread(range(100), 7)[:4]
    [0, 3, 6, 7]
    """
    every = -(-len(values) // MOST)
    return sorted({*values[::every], kept})
