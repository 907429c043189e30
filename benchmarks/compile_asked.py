"""The process that `benchmarks/compile.py` asks: as that of `layoutproof compile`, with JAX's own steps timed."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from layoutproof.compiler.serve import Tell, serve
from layoutproof.programs import compiling


class Timed:
    """A lowered program of JAX whose compilation is timed. seconds: of all so far."""

    def __init__(self, lowered: Any) -> None:
        self.lowered, self.seconds = lowered, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lowered, name)

    def compile(self, **options: Any) -> Any:
        """As JAX's own."""
        start = time.perf_counter()
        try:
            return self.lowered.compile(**options)
        finally:
            self.seconds += time.perf_counter() - start


def answered(request: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """As `layoutproof compile` is answered. lowering, compiling: seconds that a user's own two calls take."""
    lowering, made = 0.0, list[Timed]()

    def lower(request: Mapping[str, Any]) -> tuple[Any, list[str]]:
        nonlocal lowering
        start = time.perf_counter()
        lowered, names = compiling._lowered(request)
        lowering = time.perf_counter() - start
        made.append(Timed(lowered))
        return made[0], names

    answer = compiling.answer_of(request, tell, lower)
    return {**answer, "lowering": lowering, "compiling": made[0].seconds}


if __name__ == "__main__":
    serve(answered)
