"""Cases from what a user has: spec files, dumps, texts of layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.files import YAML_ENDS
from layoutproof.crosschecks.case import Case
from layoutproof.registry.read import read_layout
from layoutproof.specs.spec import load


def given_cases(given: Sequence[object]) -> list[Case]:
    """The cases of files and layouts, each text once. LayoutError for what cannot be read."""
    found: dict[str, Case] = {}
    for each in given:
        for case in _cases(each):
            found.setdefault(case.text, case)
    return list(found.values())


def _cases(given: object) -> Iterator[Case]:
    path = Path(str(given)) if isinstance(given, str | Path) else None
    if path is not None and (path.suffix in YAML_ENDS or path.is_dir()):
        files = sorted(p for end in YAML_ENDS for p in path.glob(f"*{end}")) if path.is_dir() else [path]
        for file in files:
            yield from _of_specs(file)
    else:
        yield layout_case(given, "")


def layout_case(value: object, origin: str) -> Case:
    """One layout. LayoutError where it cannot be read."""
    layout = read_layout(value)
    return Case("layout", str(layout), layout, origin)


def _of_specs(path: Path) -> Iterator[Case]:
    """Every layout that a check of a spec file is about."""
    checks, errors = load(path)
    if errors:
        raise errors[0]
    for check in checks:
        for value in check.layouts:
            if isinstance(value, str | Mapping):
                yield from _readable(value, f"{check.file}:{check.line}")


def _readable(value: Any, origin: str) -> Iterator[Case]:
    try:
        yield layout_case(value, origin)
    except (LayoutError, Undecided):
        # a check may be about a text that is wrong; `check` says so
        return
