"""Layouts, kernels and answers drawn: in the terminal, as SVG and PNG, in notebooks; and as a formula.

A picture is data, a `Drawing` of cells, colours, marks and labels (`drawing.py`). What a subject looks like is said
once, in the file of that subject; each form draws any drawing: `terminal.py`, and from the same shapes (`scene.py`)
`svg.py` and `png.py`.

May import kernel, questions and registry. Start at `picture.py`.
"""
