"""Operators: `{tile: [A, B]}` stands wherever a layout stands. A file each; its name is the operator's.

`registry.expressions` finds them by their names and reads their operands. Each file's text is its page (`explain tile`).
"""
