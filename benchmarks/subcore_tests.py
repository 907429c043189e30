"""JAX's own tests of SparseCores as cases: `python benchmarks/subcore_tests.py FILE`.

The file is `tests/pallas/tpu_sparsecore_pallas_test.py` of a checkout of jax-ml/jax.

Each test is traced for v6e as it stands, without its checks, and every kernel that it makes is judged. Prints what is
not proved of each, and the counts. Nothing of a test is in this repository; which of them run depends on the installed
JAX. Of jax at 2026-08-08 with jax 0.10.2: docs/subcores.md.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import sys
import types
import unittest
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax._src
import jax.experimental.mosaic
import numpy as np

import layoutproof as lp
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.result import Verdict

TARGET = "v6e"


def tests_of(path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, what runs it) of each test in a file, without what it asks of the machine first."""
    # of a later version of JAX than is installed: settings that change nothing of what is traced
    helpers = types.ModuleType("jax._src.hypothesis_test_util")
    helpers.__dict__.update(setup_hypothesis=lambda *given: None, hypothesis_is_thread_safe=lambda: True)
    if importlib.util.find_spec(helpers.__name__) is None:
        sys.modules[helpers.__name__] = helpers
        vars(jax._src)["hypothesis_test_util"] = helpers
    if not hasattr(jax.experimental.mosaic, "OptLevel"):
        levels = SimpleNamespace(O0=0, O1=1, O2=2, O3=3)
        vars(jax.experimental.mosaic)["OptLevel"] = levels
    spec = importlib.util.spec_from_file_location("tests_of_subcores", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    for kind in vars(module).values():
        if isinstance(kind, type) and issubclass(kind, unittest.TestCase) and kind.__module__ == spec.name:
            for name in sorted(n for n in dir(kind) if n.startswith("test")):
                yield f"{kind.__name__}.{name}", getattr(kind(name), name)


def made_by(test: Callable[[], Any]) -> Callable[[], Any]:
    """The kernels of a test, up to where it looks at numbers."""

    def traced() -> Any:
        # what it wants to see of a tracer, or of an error that only a TPU gives
        with contextlib.suppress(Exception):
            test()
        return np.int32(0)

    return traced


def main() -> int:
    """Judges, prints, and gives the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file", type=Path)
    counts: Counter[str] = Counter()
    for name, test in tests_of(options.parse_args().file):
        try:
            found = lp.kernels(made_by(test), target=TARGET)
        except (LayoutError, Undecided, ValueError, TypeError, NotImplementedError) as error:
            counts["without a kernel"] += 1
            print(f"{name}: {error}"[:160], flush=True)
            continue
        errors = [f for f in found.findings if f.severity == "error"]
        counts.update(f.verdict.value for f in errors)
        counts["tests"] += 1
        counts["proved whole"] += all(f.verdict is Verdict.PROVED for f in errors)
        for finding in errors:
            if finding.verdict is not Verdict.PROVED:
                said = f"{name}:{finding.line} {finding.verdict.value} {finding.question} {finding.subject}"
                print(f"{said}: {finding.reason}"[:400], flush=True)
    print(dict(counts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
