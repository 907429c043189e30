"""What the two tables of docs/published_steps.md have in common: rows are asked one by one, and written into it."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "published_steps.md"


class Published(Protocol):
    """A row. seconds: as published."""

    @property
    def seconds(self) -> float: ...


R = TypeVar("R", bound=Published)
F = TypeVar("F")


def made_by(script: str) -> str:
    """How, when and with what a table is made, in words."""
    libtpu, jax = (importlib.metadata.version(name) for name in ("libtpu", "jax"))
    return f"`python benchmarks/{script} --write`, {datetime.date.today()}, libtpu {libtpu}, jax {jax}"


def run(
    about: str, rows: Sequence[R], found: Callable[[R], F | None], least: Callable[[F], float],
    lines: Callable[[Sequence[tuple[R, F]]], Iterable[str]], put: Callable[[str, str], str],
) -> int:  # fmt: skip
    """Asks of every row, and prints or writes what came of it.

    Args:
        about: What the script is, for its help.
        rows: With their published times.
        found: What this tool says of one; None where it says nothing.
        least: The bound in that, in seconds.
        lines: The table of all that have something.
        put: The page as it is and the table to the page as it will be.

    Returns:
        1 where a bound is above a published time, 3 where a row has none, else 0.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    given = parser.parse_args()
    os.environ["LAYOUTPROOF_CACHE"] = "off"
    os.chdir(ROOT)
    known: list[tuple[R, F]] = []
    for row in rows:
        if (said := found(row)) is not None:
            known.append((row, said))
            print(row, said, file=sys.stderr, flush=True)
    text = "\n".join(lines(known))
    if given.write:
        PAGE.write_text(put(PAGE.read_text("utf-8"), text), "utf-8")
    else:
        print(text)
    if any(least(said) > row.seconds for row, said in known):
        return 1
    return 0 if len(known) == len(rows) else 3
