"""Child processes, workers, the cache of answers, and the rule of which code may be traced.

May import core. Start at `child.py`, which asks, and `serve.py`, which answers.
"""
