"""Findings of whole files: where they stand, and a file that one state lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutproof.core.finding import Finding
from layoutproof.gating import problems


def gone_or_new(new: bool, name: str) -> Finding:
    """A whole dump that one state lacks."""
    kind, where = ("added", "before") if new else ("removed", "now")
    return Finding(kind, f"program {name}", problems.NO_DUMP(where), line=1)


def placed(findings: Sequence[Finding], relpath: str, path: str) -> list[Finding]:
    """Findings with their path within the state and the file."""
    return [
        replace(f, relpath=relpath, file=f.file or path, follows=tuple(placed(f.follows, relpath, path)))
        for f in findings
    ]
