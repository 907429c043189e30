"""What runs beside this process and what is kept: child processes, workers, the cache of answers, what may be traced.

May import core. Start at `child.py`, which asks, and `serve.py`, which answers.
"""
