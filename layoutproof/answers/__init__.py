"""The function behind each command, and what it answers: `lp.kernels`, `check`, `search`, `gate`, `audit`, `show`.

A file each, with the type of its answers. A command reads its arguments, calls the function, and prints the answer.
May import everything below `cli`. Start at `of_layout.py`.
"""
