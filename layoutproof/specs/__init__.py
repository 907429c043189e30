"""Spec files: YAML with positions, the model of a file, every claim asked and held against what the file states.

May import questions, pallas, registry, compiler. Start at `spec.py`, then `check.py`.
"""
