"""Layouts drawn: in the terminal, as SVG and PNG, and as a formula.

May import questions and registry. Start at `picture.py`.
"""
