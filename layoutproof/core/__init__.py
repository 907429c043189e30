"""The idea: a layout is one function on many kinds of number, a property is one formula that says what a violation is.

The standard library only; nothing of kernels or hardware. Start at `index_map.py`, the manual; then `claim.py`.
"""
