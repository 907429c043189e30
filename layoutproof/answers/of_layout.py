"""`lp.show`: a layout as a picture, with what its padding costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from layoutproof.core.document import Doc, Document, envelope, without_empty
from layoutproof.core.finding import Answer, Finding
from layoutproof.core.result import plain
from layoutproof.kernel.kernel import Kernel, KernelTarget
from layoutproof.layouts.axe.layout import AxeLayout
from layoutproof.layouts.xla import XlaLayout
from layoutproof.layouts.xla.sizes import WHAT, sizes
from layoutproof.pallas.judge import kernel_target
from layoutproof.pictures.counterexamples import difference
from layoutproof.pictures.drawing import Drawing
from layoutproof.pictures.formula import formula_latex, formula_text, proof_text
from layoutproof.pictures.picture import png_bytes, svg_picture, text_picture
from layoutproof.pictures.programs import program_grid
from layoutproof.pictures.subjects import drawing_of
from layoutproof.questions.programs import ElementPrograms, ProgramsEntry, as_data, programs_of
from layoutproof.registry.catalogue import property_module
from layoutproof.registry.defaults import tpu_default
from layoutproof.registry.read import map_of, read_layout


class _More(TypedDict, total=False):
    formula: str
    formula_is: str
    latex: str
    matrix: Annotated[list[str], Doc("of an Axe layout: extents above strides, as the paper writes it")]
    derivation: Annotated[list[str], Doc("how an expression was computed, with what was proved of it")]
    programs: Annotated[ProgramsEntry, Doc("with --programs: which program writes each element")]


class ShowDocument(Document, _More):
    """The figures of a layout."""

    subject: str
    figures: dict[str, Any]
    sizes: Annotated[dict[str, int | str], Doc("bytes by who says so, where they differ")]
    written: list[str]


@dataclass(frozen=True, slots=True)
class Picture(Answer):
    """A layout as it is shown. figures: those of `padding`, in elements and bytes.

    sizes: bytes by who says so, where those who say so disagree.  formula: the offset in closed form, "" where it was
    not asked for.  formula_is: whether that is proved equal to the map.  latex: the same for math mode, "" where it was
    not asked for.  width: characters of the picture.  color: whether tiles have backgrounds of the terminal's.
    programs: which program has each element of a kernel's operand, None where that was not asked for.
    target: of a kernel, whose memory its blocks lie in, None where that was not asked for.
    other: the layout that it is compared with, None where that was not asked for.
    """

    layout: Any
    figures: Mapping[str, Any]
    sizes: Mapping[str, Any]
    formula: str = ""
    formula_is: str = ""
    latex: str = ""
    width: int = 100
    color: bool = False
    programs: ElementPrograms | None = None
    target: KernelTarget | None = None
    other: Any = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """None: nothing is asked."""
        return ()

    @property
    def exit_code(self) -> int:
        """Always 0: nothing is asked."""
        return 0

    def __str__(self) -> str:
        drawn = self.programs is not None or _kernel(self.layout) is not None or not map_of(self.layout).sizes()
        lines = [self._grid()] if drawn or self.other is not None else self._numbers()
        lines += [f"{name:<10}{line}" for name, line in zip(("matrix", ""), self._matrix(), strict=False)]
        lines += [f"size      {size} bytes by {name} ({WHAT[name]})" for name, size in self.sizes.items()]
        if self.formula:
            lines.append("formula   " + f"{self.formula}\n{self.formula_is}".replace("\n", "\n          "))
        lines += [f"latex     {self.latex}"] if self.latex else []
        lines += [f"note      {note}" for note in getattr(self.layout, "notes", ())]
        lines += [f"derived   {step}" for step in self._derivation()]
        return "\n".join(lines)

    def as_dict(self) -> ShowDocument:
        """What `layoutproof show --json` prints."""
        more: _More = {
            "formula": self.formula, "formula_is": self.formula_is, "latex": self.latex,
            "matrix": self._matrix(), "derivation": self._derivation(),
        }  # fmt: skip
        if self.programs is not None:
            more["programs"] = as_data(self.programs)
        return {
            **envelope(0),
            "subject": str(self.layout),
            "figures": dict(self.figures),
            "sizes": dict(self.sizes),
            **without_empty(more),
            "written": [],
        }

    def svg(self) -> str:
        """The picture as SVG. Raises LayoutError for sizes without a value."""
        return svg_picture(self._drawn())

    def png(self, dark: bool = False) -> bytes:
        """The picture as PNG. dark: light words on a dark page.

        Raises LayoutError for sizes without a value, and without the extra [viz].
        """
        return png_bytes(self._drawn(), dark)

    def _drawn(self) -> Drawing:
        if self.programs is not None:
            return program_grid(self.programs)
        return drawing_of(self.layout, self.target) if self.other is None else difference(self.layout, self.other)

    def _matrix(self) -> list[str]:
        """Of an Axe layout, extents above strides."""
        return self.layout.matrix().splitlines() if isinstance(self.layout, AxeLayout) else []

    def _derivation(self) -> list[str]:
        """How the layout was computed, where it was given as an expression."""
        return list(getattr(self.layout, "derivation", ()))

    def _grid(self) -> str:
        return text_picture(self._drawn(), width=self.width, color=self.color) + "\n"

    def _numbers(self) -> list[str]:
        """The cost of padding in closed form, for a layout that cannot be drawn."""
        figures, lines = self.figures, [str(self.layout), ""]
        if figures:
            lines.append(f"elements  {figures['elements']} in {figures['padded_elements']} places")
            lines.append(f"bytes     {figures['bytes']} allotted, {figures['unpadded_bytes']} without padding")
        for entry in figures.get("per_dimension", ()):
            if entry["extent"] != entry["padded"]:
                dimensions = ", ".join(map(str, entry["dimensions"])) or "none"
                lines.append(f"padding   dimension {dimensions}: {entry['extent']} becomes {entry['padded']}")
        return lines


def _kernel(layout: object) -> Kernel | None:
    found = layout if isinstance(layout, Kernel) else getattr(layout, "kernel", None)
    return found if isinstance(found, Kernel) else None


def _read(layout: object, target: str | None) -> Any:
    """A kernel has no default layout: of it, the target says what its memory holds."""
    if isinstance(layout, Kernel) or target is None or _kernel(layout) is not None:
        return layout if isinstance(layout, Kernel) else read_layout(layout)
    if isinstance(layout, Mapping) or " blockspec " in str(layout):
        read = read_layout(layout)
        return read if _kernel(read) is not None else tpu_default(layout, target)
    return tpu_default(layout, target)


def show(
    layout: object,
    *,
    target: str | None = None,
    formula: bool = False,
    latex: bool = False,
    programs: bool = False,
    width: int = 100,
    color: bool = False,
    other: object = None,
) -> Picture:
    """Draw a layout or a kernel for the terminal and for notebooks, and say what its padding costs.

    Args:
        layout: As `lp.read_layout` takes it; a kernel is drawn as the walk of its grid over each operand.
        target: The TPU generation whose default layout a bare shape gets, e.g. "v5e"; of a kernel, the target whose
            memory its blocks lie in.
        formula: Whether to say also the offset in closed form, and whether that is proved equal to the map.
        latex: Whether to say the closed form as LaTeX for math mode.
        programs: Whether to draw, of a kernel's operand, which program writes or reads each element.
        width: Of the picture, in characters.
        color: Whether tiles have backgrounds, as terminals show them.
        other: Another layout of the same array: both are drawn, with what is elsewhere in the other one marked.

    Returns:
        The picture: `str` is for a terminal, `svg()` and `png()` for files, `figures` and `sizes` are in bytes.

    Raises:
        LayoutError: The layout cannot be read.

    >>> print(show("f32[2,2]{0,1}"))
    f32[2,2]{0,1}
    2 x 2
    4 elements, no padding; 16 bytes unpadded, 16 bytes allotted
    cells show offsets in elements
    <BLANKLINE>
     j=   0 1
    i=0   0 2
      1   1 3
    <BLANKLINE>
    """
    read = _read(layout, target)
    if programs:
        return Picture(read, {}, {}, width=width, color=color, programs=programs_of(read))
    if other is not None:
        return Picture(read, {}, {}, width=width, color=color, other=_read(other, target))
    if _kernel(read) is not None and not formula and not latex:
        chip = None if target is None else kernel_target(target)
        return Picture(read, {}, {}, width=width, color=color, target=chip)
    m = map_of(read)
    figures = plain(property_module("padding").figures(m)) if m.memory is not None else {}
    said = plain(sizes(read)) if isinstance(read, XlaLayout) else {}
    differ = said if len(set(map(str, said.values()))) > 1 else {}
    text, text_is = (formula_text(read), proof_text(read)) if formula else ("", "")
    return Picture(read, figures, differ, text, text_is, formula_latex(read) if latex else "", width, color)
