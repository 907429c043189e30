"""Known bugs of JAX and its compilers, as data: a pattern, the versions, the effect, a way out, and the thread.

May import bodies, core, hlotext, kernel. Start at `bug.py`; the data is in `bugs.py`.
"""
