"""A drawing as PNG, drawn by matplotlib from the same shapes as the SVG."""

from __future__ import annotations

import io
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutproof.compiler.workers import apart
from layoutproof.core.errors import LayoutError
from layoutproof.pictures import problems
from layoutproof.pictures.drawing import Drawing
from layoutproof.pictures.palette import DARK, INK_ON_FILL, LIGHT, Theme, fill
from layoutproof.pictures.scene import Box, Label, scene_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def png_image(drawing: Drawing, dark: bool = False) -> bytes:
    """The picture as PNG. Raises LayoutError when matplotlib is not installed.

    When it is imported matplotlib reads the matplotlibrc of the current folder, which may be a stranger's: a pipe, no
    text, settings of theirs. So this happens in a process of its own that runs where only this package has files.
    """
    return apart(partial(_saved, dark=dark), drawing, str(Path(__file__).parent))


def _saved(drawing: Drawing, dark: bool) -> bytes:
    try:
        from matplotlib import style
    except ImportError:
        raise LayoutError(problems.NO_MATPLOTLIB()) from None
    file = io.BytesIO()
    # the same picture for everyone, whatever settings are their own
    with style.context("default"), warnings.catch_warnings():
        figure = _figure_of(drawing, dark)
        warnings.filterwarnings("ignore", message="Glyph")  # a letter that the font lacks is drawn as a box
        figure.savefig(file, format="png")
    return file.getvalue()


def _figure_of(drawing: Drawing, dark: bool) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    scene, theme = scene_of(drawing), DARK if dark else LIGHT
    # one unit of the picture is one point of type, so that text fits its cell as it does in the SVG
    figure = Figure(figsize=(scene.width / 72, scene.height / 72), dpi=108, facecolor=theme.paper)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.set_axis_off()
    inks = {"title": theme.ink, "plain": theme.ink, "faint": theme.faint, "cell": INK_ON_FILL}
    for order, shape in enumerate(scene.shapes):
        if isinstance(shape, Box):
            at = (shape.x, shape.y)
            level = 0 if shape.mark == "padding" else 2 if shape.mark else 1
            axes.add_patch(
                Rectangle(at, shape.width, shape.height, zorder=1 + level + order / 1e6, **_look(shape, theme))
            )
        elif isinstance(shape, Label):
            bold: dict[str, Any] = {"size": 16, "weight": "bold"} if shape.kind == "title" else {"size": 12}
            where = "center" if shape.middle else "left"
            mono: dict[str, Any] = {"family": "monospace", "parse_math": False, "zorder": 6, "ha": where}
            axes.text(shape.x, shape.y, shape.text, color=inks[shape.kind], **bold, **mono)
        else:
            limit: dict[str, Any] = {"color": theme.alarm, "linewidth": 2, "linestyle": "--"}
            look = limit if shape.kind == "limit" else {"color": theme.ink, "linewidth": 1.5}
            axes.plot([shape.x1, shape.x2], [shape.y1, shape.y2], zorder=5, **look)
    return figure


def _look(box: Box, theme: Theme) -> dict[str, Any]:
    match box.mark:
        case "padding":
            return {"facecolor": theme.paper, "edgecolor": theme.hatch, "hatch": "////", "linewidth": 0.5}
        case "outside":
            return {"facecolor": "none", "edgecolor": theme.alarm, "hatch": "xx", "linewidth": 1}
        case "hit":
            return {"facecolor": "none", "edgecolor": theme.alarm, "linewidth": 3}
        case "shared":
            return {"facecolor": "none", "edgecolor": theme.alarm, "linewidth": 2}
        case "beyond":
            return {"facecolor": "none", "edgecolor": INK_ON_FILL + "90", "hatch": "////", "linewidth": 0}
        case "hole":
            return {"facecolor": "none", "edgecolor": theme.alarm, "linewidth": 3, "linestyle": ":"}
        case "moved":
            return {"facecolor": "none", "edgecolor": theme.moved, "linewidth": 2}
    return {"facecolor": theme.plain if box.fill is None else fill(box.fill), "edgecolor": theme.line, "linewidth": 1}
