"""What people and programs touch: the commands, `guard()`, the pytest plugin.

May import every package below. Start at `main.py`; a command is a file in `commands`, found by its name.
"""
