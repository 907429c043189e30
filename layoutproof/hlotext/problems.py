"""What may be wrong with the lines around the instructions of a text."""

from __future__ import annotations

from layoutproof.core.message import Template

DIGITS = Template("hlotext.digits", "a number of more than {most:,} digits")
ENTRY_LAYOUT = Template("hlotext.entry_layout", "entry_computation_layout is cut short or not of the form {{(..)->..}}")
MODULE_LINE_CUT = Template("hlotext.module_line_cut", "the line HloModule is cut short: a bracket in it is not closed")
NO_MODULE = Template("hlotext.no_module", "no line starts with HloModule or BufferAssignment")
NO_MODULE_LINE = Template("hlotext.no_module_line", "not a module's first line: {found}")
