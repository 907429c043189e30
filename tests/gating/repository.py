"""A repository of a test: git without the user's settings, and commands in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.in_one_process import Answer, commands


def git(folder: Path, *arguments: str) -> str:
    """One git command, without the user's own settings."""
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *settings, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def run(folder: Path, *arguments: list[str]) -> list[Answer]:
    return commands(folder, *arguments, seconds=300)[0]
