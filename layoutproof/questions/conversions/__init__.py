"""How a layout is written in another language: `<from>_to_<to>.py` each, found by file name.

A module has `convert(layout)`, which returns a layout of the other language or raises LayoutError with the reason why
that language cannot say it. It need not be right: `questions.convert` proves the two equal before anyone sees the
result, by the property named in the module's `PROVED_BY` (without one: same_map). A module whose language has other
dimensions has `source(layout)`, the map that is compared.
"""
