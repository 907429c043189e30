"""A drawing as SVG, written by hand: self-contained, light and dark by what the reader's screen asks for."""

from __future__ import annotations

from html import escape
from itertools import groupby

from layoutproof.pictures.drawing import Drawing
from layoutproof.pictures.palette import DARK, FILLS, INK_ON_FILL, LIGHT, Theme
from layoutproof.pictures.scene import Box, Label, Shape, StraightLine, scene_of

_FONT = "ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace"


def style() -> str:
    """The rules that all pictures share; a page with many needs them once."""
    fills = "".join(f".lp .c{k}{{fill:{colour}}}" for k, colour in enumerate(FILLS))
    return (
        f".lp{{font:12px {_FONT}}}.lp .title{{font-size:16px;font-weight:bold}}"
        f".lp .cells{{text-anchor:middle}}.lp .cell{{fill:{INK_ON_FILL}}}{fills}.lp path{{fill:none}}"
        f".lp .box{{stroke-width:1}}.lp .edge{{stroke-width:1.5}}.lp .limit{{stroke-width:2;stroke-dasharray:4 3}}"
        ".lp .hit,.lp .hole{stroke-width:3}.lp .shared,.lp .moved{stroke-width:2}.lp .hole{stroke-dasharray:3 3}"
        f"{_theme(LIGHT)}@media(prefers-color-scheme:dark){{{_theme(DARK)}}}"
    )


def _theme(theme: Theme) -> str:
    return (
        f".lp .paper{{fill:{theme.paper}}}.lp .title,.lp .plain{{fill:{theme.ink}}}.lp .faint{{fill:{theme.faint}}}"
        f".lp .box{{stroke:{theme.line}}}.lp .none{{fill:{theme.plain}}}.lp .edge{{stroke:{theme.ink}}}"
        f".lp .hatch{{stroke:{theme.hatch}}}.lp .cross{{stroke:{theme.alarm}}}"
        f".lp .padding{{fill:url(#lp-hatch)}}.lp .outside{{fill:url(#lp-cross);stroke:{theme.alarm}}}"
        f".lp .beyond{{fill:url(#lp-beyond)}}"
        f".lp .hit,.lp .shared,.lp .hole,.lp .limit{{stroke:{theme.alarm}}}.lp .moved{{stroke:{theme.moved}}}"
    )


PATTERNS = (
    '<defs><pattern id="lp-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="hatch" d="M0 0V6" stroke-width="2"/></pattern>'
    '<pattern id="lp-cross" width="9" height="9" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="cross" d="M0 0V9M0 0H9" stroke-width="1"/></pattern>'
    '<pattern id="lp-beyond" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<path d="M0 0V6" stroke="{INK_ON_FILL}" stroke-opacity=".55" stroke-width="2"/></pattern></defs>'
)


def svg_text(drawing: Drawing, styled: bool = True) -> str:
    """One SVG document. styled: with the rules of `style` and the patterns; without, the page around it has them."""
    scene = scene_of(drawing)
    size = f'viewBox="0 0 {scene.width:g} {scene.height:g}" width="{scene.width:g}" height="{scene.height:g}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lp" {size} role="img">',
        f"<title>{escape(scene.title)}</title>",
        f"<desc>{escape(scene.said)}</desc>",
        *([shared()] if styled else []),
        '<rect class="paper" width="100%" height="100%"/>',
    ]
    for key, shapes in groupby(sorted(scene.shapes, key=_depth), key=_key):
        lines += _group(key, list(shapes))
    return "\n".join([*lines, "</svg>"]) + "\n"


def shared() -> str:
    """The shared rules and patterns of all pictures of a page."""
    return f"<style>{style()}</style>{PATTERNS}"


def _depth(shape: Shape) -> tuple[int, str]:
    """Padding below fills below marks below lines below words; what looks alike together, so that it is one element."""
    if isinstance(shape, Box):
        return (0 if shape.mark == "padding" else 2 if shape.mark else 1), _key(shape)
    return (4 if isinstance(shape, Label) else 3), _key(shape)


def _key(shape: Shape) -> str:
    match shape:
        case Box():
            look = shape.mark or ("none" if shape.fill is None else f"c{shape.fill % len(FILLS)}")
            return f"box {look}"
        case Label():
            return f"{shape.kind} {'cells' if shape.middle else ''}".strip()
    return shape.kind


def _group(key: str, shapes: list[Shape]) -> list[str]:
    if isinstance(shapes[0], Label):
        texts = [
            f'<text x="{shape.x:.4g}" y="{shape.y:.4g}">{escape(shape.text)}</text>'
            for shape in shapes
            if isinstance(shape, Label)
        ]
        return [f'<g class="{key}">', *texts, "</g>"]
    parts = []
    for shape in shapes:
        if isinstance(shape, Box):
            x, y, w, h = (f"{n:.5g}" for n in (shape.x, shape.y, shape.width, shape.height))
            parts.append(f"M{x} {y}h{w}v{h}h-{w}z")
        elif isinstance(shape, StraightLine):
            parts.append(f"M{shape.x1:.5g} {shape.y1:.5g}L{shape.x2:.5g} {shape.y2:.5g}")
    return [f'<path class="{key}" d="{"".join(parts)}"/>']
