"""The one reader of HLO text: lines, headers, and a module as events.

May import core. Start at `lines.py`.
"""
