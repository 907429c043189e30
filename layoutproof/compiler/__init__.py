"""What runs beside this process and what is kept between runs: workers, the cache of answers, what may be traced.

May import core. Start at `workers.py`.
"""
