"""What holds for all tests: no answer of an earlier run stands in for one of this run."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("LAYOUTPROOF_CACHE", "off")
# shapes are traced on the CPU; without this libtpu looks for TPUs and writes to the terminal
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# the same examples in every run, so that a green commit stays green; the nightly run draws new ones
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.register_profile("random", deadline=None, print_blob=True)
hypothesis.settings.load_profile("fixed")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Helper modules have no doctests, and importing one may need an extra that is not installed."""
    helper = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if helper and collection_path.name != "conftest.py" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Writes what was skipped, a line each, where LAYOUTPROOF_SKIPPED names a file: to be run where extras are."""
    file = os.environ.get("LAYOUTPROOF_SKIPPED")
    if file:
        skipped = {report.nodeid for report in terminalreporter.stats.get("skipped", ())}
        Path(file).write_text("".join(f"{name}\n" for name in sorted(skipped)), "utf-8")
