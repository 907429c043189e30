"""Why nothing is drawn."""

from __future__ import annotations

from layoutproof.core.message import Template

ARRAY_SIZE = Template("pictures.array_size", "{array} has the size {size}; give it a value to draw it")
CUT_SHORT = Template("pictures.cut_short", "this is cut short, so it cannot be drawn")
FORMULA_DIVIDES_BY_ZERO = Template("pictures.formula_divides_by_zero", "{term} divides by zero, so it has no formula")
GRID_SIZE = Template("pictures.grid_size", "the grid has the size {size}; give it a value to draw the kernel")
NO_MATPLOTLIB = Template("pictures.no_matplotlib", "a PNG needs matplotlib: pip install matplotlib")
NO_SMALL_SIZES = Template(
    "pictures.no_small_sizes", "{sizes} has no value, and no small one draws the kernel; give it one"
)
SIZES = Template("pictures.sizes", "{name}: {sizes} has no value")
