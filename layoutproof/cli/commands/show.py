"""`layoutproof show LAYOUT`: a picture, the formula, what padding costs.

In the list: layouts: Draw a layout with its formula and the cost of its padding.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from layoutproof.cli.arguments import (
    assumed,
    coloured,
    json_flag,
    layouts_of,
    print_json,
    say_drawn,
    target_option,
    with_files,
)
from layoutproof.core.files import write_whole


@click.command()
@click.argument("layout")
@click.argument("other", metavar="[OTHER]", required=False)
@target_option
@click.option("--programs", is_flag=True, help="Of a kernel's operand: which program writes or reads each element.")
@click.option("--formula", is_flag=True, help="Also print the offset as a formula, and its proof.")
@click.option("--latex", is_flag=True, help="Also print the formula as LaTeX.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Write the picture to this file.")
@click.option("--png", type=click.Path(path_type=Path, dir_okay=False), help="Write the picture to this file.")
@json_flag
def command(
    layout: str,
    other: str | None,
    target: str | None,
    programs: bool,
    formula: bool,
    latex: bool,
    svg: Path | None,
    png: Path | None,
    as_json: bool,
) -> int:
    """Draw LAYOUT, with the cost of its padding and its bytes as each tool counts them.

    A kernel is drawn as the walk of its grid over each operand, with --target also what its memory holds. With OTHER,
    both layouts are drawn, and what is elsewhere in the other one is marked.

    \b
    Example:
      layoutproof show "f32[1000,5]" --target v5e --svg scores.svg
    """
    from layoutproof.answers.of_layout import show

    texts = (layout,) if other is None else (layout, other)
    read, *second = layouts_of(texts, None)
    kernel = hasattr(read, "kernel")
    if target is not None and not kernel:
        read, *second = layouts_of(texts, target)
    width = shutil.get_terminal_size((100, 24)).columns
    chip = target if kernel else None
    color = not as_json and coloured(sys.stdout)
    picture = show(
        read,
        target=chip,
        formula=formula,
        latex=latex,
        programs=programs,
        width=width,
        color=color,
        other=second[0] if second else None,
    )
    written = []
    if svg is not None:
        write_whole(svg, picture.svg().encode())
        written.append(str(svg))
    if png is not None:
        write_whole(png, picture.png())
        written.append(str(png))
    if as_json:
        return print_json(with_files(picture.as_dict(), written))
    notes = [f"assumed   {note}" for note in assumed(texts, (read, *second), target)]
    said = "\n".join([str(picture), *notes, *(f"written   {path}" for path in written)])
    say_drawn(said, color)
    return 0
