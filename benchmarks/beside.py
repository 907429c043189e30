"""Benchmarks that answer each of their questions in a process beside them, which may take so much time for it.

The asking and the answering side are one file: `child` starts it again, and `run` is what it ends with.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutproof.compiler.child import Child

SERVES = "LAYOUTPROOF_BENCHMARK_SERVES"
"""Set in the environment of the side that answers."""


def child(what: str, program: Path, seconds: float, environment: Mapping[str, str] | None = None) -> Child:
    """The answering side of a benchmark: on CPUs, and without answers that were kept.

    what: it answers about, in errors.  program: the file that ends with `run`.  environment: instead of that of a CPU.
    """
    from layoutproof.compiler.child import Child

    own = {"JAX_PLATFORMS": "cpu"} if environment is None else environment
    return Child(what, program, {**own, SERVES: "1", "LAYOUTPROOF_CACHE": "off"}, seconds)


def run(answered: Callable[[Any, Any], Any], main: Callable[[], int]) -> None:
    """Ends the process: as the answering side where `child` started it, else with what `main` gives."""
    if not os.environ.get(SERVES):
        sys.exit(main())
    from layoutproof.compiler.serve import serve

    serve(answered)
    sys.exit(0)
