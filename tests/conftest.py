"""What holds for all tests: no answer of an earlier run stands in for one of this run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("LAYOUTPROOF_CACHE", "off")
# a test that keeps answers makes no key among the developer's own files
os.environ.setdefault("LAYOUTPROOF_CACHE_KEY", "of the tests, in a folder of the test alone")
# shapes are traced on the CPU; without this libtpu looks for TPUs and writes to the terminal
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# what commands print is compared with plain text
os.environ.pop("FORCE_COLOR", None)

# the same few examples in every run, so that a green commit stays green; the nightly run draws new ones, and many
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.register_profile("random", deadline=None, print_blob=True, max_examples=500)
hypothesis.settings.load_profile("fixed")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Helper modules have no doctests, and importing one may need an extra that is not installed."""
    helper = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if helper and collection_path.name != "conftest.py" else None


def pytest_collection_finish() -> None:
    """A module that a test writes twice in one second, as long as before, is not taken for the one compiled first."""
    sys.dont_write_bytecode = True


FAST_SEEDS, SEEDS = 5, 20
"""Of a test that is repeated for so many random problems, how many repeats are fast, and how many are in every run."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as `fast` each test that is not `slow` or run once per commit; later repeats are slow, or `nightly`."""
    for item in items:
        repeat = getattr(getattr(item, "callspec", None), "indices", {}).get("seed", 0)
        if repeat >= SEEDS:
            item.add_marker(pytest.mark.nightly)
        again = repeat >= FAST_SEEDS or any(item.get_closest_marker(kind) for kind in ("commit", "nightly"))
        if again or item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.slow if again else pytest.mark.fast)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Writes what was skipped, a line each, where LAYOUTPROOF_SKIPPED names a file: to be run where extras are."""
    file = os.environ.get("LAYOUTPROOF_SKIPPED")
    if file:
        skipped = {report.nodeid for report in terminalreporter.stats.get("skipped", ())}
        Path(file).write_text("".join(f"{name}\n" for name in sorted(skipped)), "utf-8")
