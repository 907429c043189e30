"""Rows of the reference data that lies beside the checkout, outside the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def rows(name: str) -> list[dict[str, Any]]:
    """Every row of the JSON-lines file `name`; skips the test, saying why, where the file is not there."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"reference data {name} is not beside this checkout (looked in {FOLDER})")
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
