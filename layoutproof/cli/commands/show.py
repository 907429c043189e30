"""`layoutproof show LAYOUT`: a picture, the formula, what padding costs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from layoutproof.cli.arguments import json_flag, layouts_of, notes_of, print_json, say, target_option, write_whole
from layoutproof.core.document import document
from layoutproof.core.result import plain


@click.command()
@click.argument("layout")
@target_option
@click.option("--formula", is_flag=True, help="Also print the offset as a formula.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Write the picture to this file.")
@click.option("--png", type=click.Path(path_type=Path, dir_okay=False), help="Write the picture to this file.")
@json_flag
def command(layout: str, target: str | None, formula: bool, svg: Path | None, png: Path | None, as_json: bool) -> int:
    """Draw LAYOUT, with the cost of its padding and its bytes as each tool counts them."""
    (read,) = layouts_of((layout,), target)
    shown: dict[str, Any] = {"subject": str(read), "figures": _figures(read), "sizes": _sizes(read)}
    if formula:
        from layoutproof.pictures.formula import formula_text

        shown["formula"] = formula_text(read)
    written = _write(read, svg, png)
    if as_json:
        return print_json(document(0, {**shown, "written": written}))
    top = _numbers(shown) if _symbols(read) else [_picture(read)]
    say("\n".join([*top, *_details(shown), *notes_of(read), *(f"written   {path}" for path in written)]))
    return 0


def _symbols(layout: Any) -> tuple[str, ...]:
    """The size symbols of a layout: with one, there is no picture, but there are closed forms."""
    from layoutproof.registry.read import map_of

    return map_of(layout).sizes()


def _picture(layout: Any) -> str:
    from layoutproof.pictures.picture import text_picture

    width = shutil.get_terminal_size((100, 24)).columns
    return text_picture(layout, width=width, color=sys.stdout.isatty()) + "\n"


def _figures(layout: Any) -> dict[str, Any]:
    """The figures of `padding`, {} for a map without a memory."""
    from layoutproof.registry.catalogue import property_module
    from layoutproof.registry.read import map_of

    m = map_of(layout)
    found: dict[str, Any] = plain(property_module("padding").figures(m)) if m.memory is not None else {}
    return found


def _sizes(layout: Any) -> dict[str, Any]:
    """Bytes by who says so, {} unless this is an XLA array and they disagree."""
    from layoutproof.layouts.xla import XlaLayout
    from layoutproof.layouts.xla.sizes import sizes

    found: dict[str, Any] = plain(sizes(layout)) if isinstance(layout, XlaLayout) else {}
    return found if len(set(map(str, found.values()))) > 1 else {}


def _numbers(shown: dict[str, Any]) -> list[str]:
    """What padding costs in closed form, for a layout that cannot be drawn."""
    figures, lines = shown["figures"], [shown["subject"], ""]
    if figures:
        lines.append(f"elements  {figures['elements']} in {figures['padded_elements']} places")
        lines.append(f"bytes     {figures['bytes']} allotted, {figures['unpadded_bytes']} without padding")
    for entry in figures.get("per_dimension", ()):
        if entry["extent"] != entry["padded"]:
            dimensions = ", ".join(map(str, entry["dimensions"])) or "none"
            lines.append(f"padding   dimension {dimensions}: {entry['extent']} becomes {entry['padded']}")
    return lines


def _details(shown: dict[str, Any]) -> list[str]:
    lines = [f"size      {size} bytes by {name}" for name, size in shown["sizes"].items()]
    if "formula" in shown:
        lines.append("formula   " + shown["formula"].replace("\n", "\n          "))
    return lines


def _write(layout: Any, svg: Path | None, png: Path | None) -> list[str]:
    if svg is not None:
        from layoutproof.pictures.picture import svg_picture

        write_whole(svg, svg_picture(layout).encode())
    if png is not None:
        from layoutproof.pictures.picture import png_bytes

        write_whole(png, png_bytes(layout))
    return [str(path) for path in (svg, png) if path is not None]
