"""When a process that a test started counts as hanging."""

HANGS = 3600
"""Seconds: no machine is so slow, or so busy, that what ends takes as long. What is slow is no failure."""
