"""Edits of a kernel's source that are tried: one change of the text each, judged before it is shown.

`edits` makes them out of the text alone, of the part that `source` says a function reaches. They are judged by what
calls them, `answers/of_repair.py`.
"""
