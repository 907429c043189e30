"""JAX's own tests of Pallas as cases: `python benchmarks/jax_tests.py FILE --target v6e`.

A file is one of `tests/pallas` of a checkout of jax-ml/jax: `tpu_sparsecore_pallas_test.py` for v6e,
`mosaic_gpu_test.py` and the `gpu_pallas_interpret_*race_detection_test.py` for mosaic_gpu, `triton_pallas_test.py` for
triton.

Each test is traced as it stands, without its checks, and every kernel that it makes is judged. Prints what is not
proved of each, and the counts. Where a test says whether its kernel has a race, that is held against the questions
about the order of things; the exit code is 1 where a kernel with a race is proved, or one without is refuted.
Nothing of a test is in this repository; which of them run depends on the installed JAX.
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
from unittest import mock

import jax
import jax._src
import jax.experimental.mosaic
import numpy as np

import layoutproof as lp
from layoutproof.core.errors import LayoutError, Undecided
from layoutproof.core.result import Verdict


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
    for kind in [*vars(module).values()]:
        if isinstance(kind, type) and issubclass(kind, unittest.TestCase) and kind.__module__ == spec.name:
            for name in sorted(n for n in dir(kind) if n.startswith("test")):
                yield f"{kind.__name__}.{name}", getattr(kind(name), name)


ORDER = ("dma_order", "commit_smem", "body_races")
"""The questions that a race is one of; what is left running at the end is none."""
AT_END = "when all have ended"


class Races:
    """Stands for what JAX's interpreter finds; wanted: what the test says of it, None = nothing yet."""

    def __init__(self) -> None:
        self.wanted: bool | None = None

    def expects(self, first: object, wanted: object) -> None:
        """Notes what an assertion says, where it is about this."""
        if first is self and isinstance(wanted, bool | np.bool_):
            self.wanted = bool(wanted)


@contextlib.contextmanager
def asked_about_races(races: Races) -> Iterator[None]:
    """Assertions pass, but for those that are noted."""
    from jax._src.pallas.mosaic_gpu.interpret import interpret_pallas_call as interpreter

    case = unittest.TestCase
    with contextlib.ExitStack() as stack:
        for name, noted in (
            ("assertTrue", lambda _, x, *more: races.expects(x, True)),
            ("assertFalse", lambda _, x, *more: races.expects(x, False)),
            ("assertEqual", lambda _, x, y, *more: races.expects(x, y)),
        ):
            stack.enter_context(mock.patch.object(case, name, noted))
        found = SimpleNamespace(races_found=races)
        stack.enter_context(mock.patch.object(interpreter, "get_races", return_value=found, create=True))
        yield


def made_by(test: Callable[[], Any], races: Races) -> Callable[[], Any]:
    """The kernels of a test, up to where it looks at numbers."""

    def traced() -> Any:
        # what it wants to see of a tracer, or of an error that only a device gives
        with contextlib.suppress(Exception), asked_about_races(races):
            test()
        return np.int32(0)

    return traced


def main() -> int:
    """Judges, prints, and gives the exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", type=Path)
    options.add_argument("--target", default="v6e")
    options.add_argument("--only", default="", help="tests whose name has this")
    given = options.parse_args()
    counts: Counter[str] = Counter()
    of_races: Counter[str] = Counter()
    for name, test in tests_of(given.file):
        if given.only not in name:
            continue
        races = Races()
        try:
            found = lp.kernels(made_by(test, races), target=given.target)
        except (LayoutError, Undecided, ValueError, TypeError, NotImplementedError) as error:
            counts["without a kernel"] += 1
            print(f"{name}: {error}"[:160], flush=True)
            continue
        errors = [f for f in found.findings if f.severity == "error"]
        counts.update(f.verdict.value for f in errors)
        counts["tests"] += 1
        counts["proved whole"] += all(f.verdict is Verdict.PROVED for f in errors)
        if races.wanted is not None:
            about = [f for f in errors if f.question in ORDER and AT_END not in f.reason]
            said = min([f.verdict for f in about], default=Verdict.UNKNOWN)
            word = f"{'a race' if races.wanted else 'no race'}: {said.value}"
            of_races[word] += 1
            print(f"{name}: {word}", flush=True)
        for finding in errors:
            if finding.verdict is not Verdict.PROVED:
                said_of = f"{name}:{finding.line} {finding.verdict.value} {finding.question} {finding.subject}"
                print(f"{said_of}: {finding.reason}"[:400], flush=True)
    print(dict(counts))
    print(dict(of_races))
    return 1 if of_races["a race: proved"] or of_races["no race: refuted"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
