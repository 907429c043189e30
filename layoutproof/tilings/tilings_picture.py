"""Tilings as a picture: cost over two variables with the feasible region, and the Pareto front (extra [viz])."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.pictures.png import png_of
from layoutproof.tilings.branch import Candidate, candidate
from layoutproof.tilings.pareto import Front
from layoutproof.tilings.problem import Problem, broken
from layoutproof.tilings.solve import Tilings
from layoutproof.tilings.tilings_text import cost_text

TICKS = 8
"""Labels of one axis, at most."""

MOST = 48
"""Values of one variable that are drawn; of more, evenly spread ones and those of the best."""


def png(answer: Tilings) -> bytes:
    """`figure_of` as the bytes of a PNG. Raises LayoutError as it does, and without matplotlib."""
    return png_of(figure_of, answer)


def figure_of(answer: Tilings) -> Any:
    """An answer with something found as a figure: left the cost of all pairs of two variables' values; right the front.

    Grey is what breaks a constraint or does not fit into VMEM. Without a front (`--pareto`) only the left one.
    Raises LayoutError where there are fewer than two variables.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    problem, found = answer.problem, answer.progress.found
    first, second = drawn(problem)
    front = answer.front
    width = 13 if front else 7
    figure = Figure(figsize=(width, 5.5), dpi=120, layout="constrained")
    # a canvas of its own: nothing of the user's own pictures or settings is touched
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2 if front else 1, squeeze=False)[0]
    _costs(axes[0], problem, found, first, second)
    if front is not None:
        _front(axes[1], problem, front)
    figure.suptitle(fill(shorten(f"{problem.name}, {problem.target}", 30 * width), 9 * width))
    for text in figure.findobj(Text):
        text.set_parse_math(False)  # a name is a name, whatever it has of dollars
    return figure


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
    far = _far_apart(known)
    norm = LogNorm(known.min(), known.max()) if far else None
    image = axes.imshow(grid * scale, origin="lower", aspect="auto", cmap="viridis_r", norm=norm)
    bar = axes.figure.colorbar(image, ax=axes, label=_cost_label(problem))
    _plain_numbers(bar.ax.yaxis, far)
    for values, put in ((down, axes.set_yticks), (across, axes.set_xticks)):
        every = -(-len(values) // TICKS)
        put(range(0, len(values), every), [str(v) for v in values[::every]])
    axes.set_ylabel(f"{first} (elements)")
    axes.set_xlabel(f"{second} (elements)")
    # upright, the labels of a long axis run into each other
    axes.tick_params(axis="x", labelrotation=45)
    axes.plot(across.index(best[second]), down.index(best[first]), "*", color="red", markersize=16)
    rest = ", ".join(f"{name} = {value}" for name, value in best.items() if name not in (first, second))
    said = f"best {cost_text(problem, found[0].cost)}{f'; {rest}' if rest else ''}; grey: not feasible"
    axes.set_title(fill(shorten(said, 150), 50))


def _front(axes: Any, problem: Problem, front: Front) -> None:
    scale = 1e-9 if problem.cost is None else 1.0
    across = [max(row["vmem"] for row in one.figures) / 2**20 for one in front.found]
    up = [one.cost * scale for one in front.found]
    waste = [100 * sum(r["padding"] for r in one.figures) / max(1, sum(r["bytes"] for r in one.figures))
             for one in front.found]  # fmt: skip
    points = axes.scatter(across, up, c=waste, cmap="plasma", vmin=0, vmax=max(waste, default=0) or 1)
    _plain_numbers(axes.figure.colorbar(points, ax=axes, label="padding, % of HBM bytes").ax.yaxis, far=False)
    axes.set_xlabel("VMEM, MiB")
    axes.set_ylabel(_cost_label(problem))
    far = _far_apart(up)
    if far:
        axes.set_yscale("log")
    _plain_numbers(axes.yaxis, far)
    axes.set_title(f"Pareto front: {len(front.found)} tilings" + ("; not complete" if front.unknown else ""))


def _cost_label(problem: Problem) -> str:
    return "time, ms (model)" if problem.cost is None else shorten(str(problem.cost), 60)


def _far_apart(values: Any) -> bool:
    """Whether costs span so much that only a logarithmic scale shows them."""
    return len(values) > 0 and min(values) > 0 and max(values) >= 4 * min(values)


def _plain_numbers(axis: Any, far: bool) -> None:
    """Ticks as digits; matplotlib's own write powers of ten as mathematics, which is not parsed here."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)) if far else MaxNLocator(TICKS))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))


def spread(values: Sequence[int], kept: int) -> list[int]:
    """At most MOST of the values, evenly spread, `kept` among them.

    >>> spread(range(100), 7)[:4]
    [0, 3, 6, 7]
    """
    every = -(-len(values) // MOST)
    return sorted({*values[::every], kept})
