"""The peak memory of a process, which a child must not inherit."""

from __future__ import annotations


def peak() -> float:
    """MiB that this process took at most. Stands alone: children of tests run its source (`inspect.getsource`)."""
    import resource
    import sys
    from pathlib import Path

    # Linux lets a child's ru_maxrss begin at its parent's peak
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
