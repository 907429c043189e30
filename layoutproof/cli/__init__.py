"""The interface for people and programs: the commands, `guard()`, the pytest plugin.

May import every package below. Start at `main.py`; a command is a file in `commands`, found by its name.
"""
