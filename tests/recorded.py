"""Recorded outside truth: what XLA, TVM, JAX and the TPU compiler said, as values under `tests/cases/`."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "cases"
DUMPS = tuple(sorted(path.name.removesuffix(".txt.gz") for path in (CASES / "hlo").glob("*.txt.gz")))


def rows(name: str) -> list[dict[str, Any]]:
    """Every row of the recorded file `name` (e.g. "tpu_bitcasts.jsonl")."""
    text = gzip.decompress((CASES / f"{name}.gz").read_bytes()).decode("utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


@functools.cache
def dump(name: str) -> str:
    """The text of a recorded after-optimizations HLO dump (e.g. "conv_v5e")."""
    return gzip.decompress((CASES / "hlo" / f"{name}.txt.gz").read_bytes()).decode("utf-8")
