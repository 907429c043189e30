"""Pictures of a layout, a kernel or what an answer found: in the terminal, as SVG, as PNG."""

from __future__ import annotations

from layoutproof.pictures.drawing import Drawing
from layoutproof.pictures.png import png_image
from layoutproof.pictures.subjects import drawing_of
from layoutproof.pictures.svg import svg_text
from layoutproof.pictures.terminal import terminal_text


def text_picture(layout: object, width: int = 100, color: bool = False) -> str:
    """A picture of at most `width` characters a line: offsets or coordinates, the tiles of the first level apart.

    Padding shows as dots, what is cut off as an ellipsis. color: ANSI backgrounds, so that adjacent tiles differ.
    Raises LayoutError as `read_layout` does, and for size symbols without a value.

    >>> print(text_picture("f32[3]{0:T(2)}"))
    f32[3]{0:T(2)}
    3, padded to 4
    3 elements, 1 padding (25 %); 12 bytes unpadded, 16 bytes allotted
    cells show offsets in elements
    <BLANKLINE>
    the array as it is indexed
    i=   0 1   2
         0 1 │ 2 .
    <BLANKLINE>
    memory in its order, a row for each tile of 2 places; a cell is the index that lies there
           +   0 1
    offset=0   0 1
              ────
           2   2 .
    """
    return terminal_text(layout if isinstance(layout, Drawing) else drawing_of(layout), width, color)


def svg_picture(layout: object) -> str:
    """The picture as one self-contained SVG document, light or dark as the reader's screen asks for.

    Cells are coloured by tile and hold their offset; padding is hatched. Raises LayoutError as `text_picture` does.

    >>> svg_picture("f32[3,5]{1,0:T(2,2)}").count("<title>f32[3,5]{1,0:T(2,2)}</title>")
    1
    """
    return svg_text(layout if isinstance(layout, Drawing) else drawing_of(layout))


def png_bytes(layout: object, dark: bool = False) -> bytes:
    """The same picture as PNG, drawn with matplotlib (`pip install matplotlib`). dark: light words on a dark page.

    Raises LayoutError as `text_picture` does, and when matplotlib is not installed.
    """
    return png_image(layout if isinstance(layout, Drawing) else drawing_of(layout), dark)
