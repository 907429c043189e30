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


SLOW = (
    "tests/answers/test_no_path.py", "tests/bodies/test_compiled_bodies.py",
    "tests/pallas", "tests/oracles", "tests/hardware", "tests/test_notebooks.py", "tests/core/test_read_consistency.py",
    "tests/cli/test_action.py", "tests/cli/test_bad_inputs.py", "tests/cli/test_files.py",
    "tests/crosschecks/test_tpu", "tests/crosschecks/test_xla",
    "tests/cli/test_gate_weakened.py", "tests/cli/test_guard.py", "tests/cli/test_harmless_output.py",
    "tests/cli/test_kernel", "tests/cli/test_process.py", "tests/cli/test_pytest_plugin.py", "tests/cli/test_replay.py",
    "tests/cli/test_search", "tests/questions/test_ask.py", "tests/questions/test_cheapest.py",
    "tests/questions/test_decide.py", "tests/questions/test_evaluate.py", "tests/pictures/test_formula.py",
    "tests/questions/test_fuzz.py", "tests/changes/test_dump_kernels.py", "tests/changes/test_jax_dumps.py",
    "tests/changes/test_lock.py", "tests/changes/test_mutants.py", "tests/changes/test_programs.py",
    "tests/pallas/from_jax", "tests/tilings/test_branch.py", "tests/tilings/test_ready_compile.py",
    "tests/tilings/test_solve.py", "tests/tilings/test_traced.py", "tests/tilings/test_tuned.py",
    "tests/specs/test_positions.py", "tests/compiler/test_workers.py", "tests/layouts/test_axe_maps.py",
    "tests/layouts/test_axe_operations.py", "tests/layouts/test_kernel_random.py",
    "tests/layouts/test_sharding_jax.py", "tests/layouts/test_sharding_place.py",
    "tests/layouts/test_sharding_text.py", "tests/layouts/test_xla_text.py", "tests/mosaic/test_compile.py",
    "tests/properties/test_kernel_faults.py", "tests/solvers/test_bits.py",
)  # fmt: skip
"""How the paths of slow tests begin: they ask JAX or the TPU compiler, start processes, or try very many examples."""

FAST_SEEDS = 5
"""Of a test that is repeated for so many random problems, how many repeats are fast."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test `fast` or `slow`; what is marked `nightly` repeats a smaller test with more examples."""
    for item in items:
        seed = getattr(getattr(item, "callspec", None), "params", {}).get("seed", 0)
        again = (type(seed) is int and seed >= FAST_SEEDS) or item.get_closest_marker("nightly") is not None
        slow = again or item.nodeid.startswith(SLOW) or item.get_closest_marker("slow") is not None
        item.add_marker(pytest.mark.slow if slow else pytest.mark.fast)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Writes what was skipped, a line each, where LAYOUTPROOF_SKIPPED names a file: to be run where extras are."""
    file = os.environ.get("LAYOUTPROOF_SKIPPED")
    if file:
        skipped = {report.nodeid for report in terminalreporter.stats.get("skipped", ())}
        Path(file).write_text("".join(f"{name}\n" for name in sorted(skipped)), "utf-8")
