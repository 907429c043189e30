"""Operators: `{tile: [A, B]}` stands wherever a layout stands. A file each; its name is the operator's.

`registry.expressions` finds them by name and reads their operands. A file's text is its page (`explain tile`).
"""
