"""Engines that decide a claim: digits, bits, isl, smt, brute; `decide.py` asks them in turn, replaying refutations.

May import core; the only package that imports islpy and z3. Start at `brute.py`, the meaning of
a claim, then `decide.py`.
"""
