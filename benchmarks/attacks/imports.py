"""Modules at the root of a pull request whose names are those of libraries: none may run where nothing is traced."""

from __future__ import annotations

from pathlib import Path

from benchmarks.attacks.room import claims, hostile, layoutproof, ran


def check(room: Path) -> str:
    """A pull request brings a `re.py` and others, and `check --no-trace` runs in its folder."""
    work = claims(hostile(room / "work"))
    done = layoutproof(work, "check", "specs", "--no-trace")
    return ran(work) or ("" if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}")
