"""The bugs of BUGS-FOUND.md as reports that can be sent: `python benchmarks/bug_reports.py [FOLDER]`.

One file for each bug, with the headings of its project's own form (read on 2026-11-28; a project without one gets plain
headings). The page has the facts, and nothing is said here that it does not say.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.bugs_found import PAGE, Bug, bugs  # noqa: E402
from layoutproof.core.files import write_whole  # noqa: E402

FOLDER = ROOT / "bug_reports"
BY_DESIGN = "Surprises, documented or by design"
"""The part of the page that is not reported."""
MACHINE = "Linux x86_64, CPU only: no accelerator was used"


@dataclass(frozen=True)
class Tracker:
    """Where a project takes reports.

    form: the text of one, with {what}, {steps}, {expected}, {found} and {environment}.  title: how titles begin there.
    """

    project: str
    form: str
    title: str = ""


PLAIN = """**What happens**

{what}

**To reproduce**

{steps}

**Expected**

{expected}

**Environment**

{environment}

{found}
"""
JAX = """### Description

{what}

{steps}

Expected: {expected}

{found}

### System info (python version, jaxlib version, accelerator, etc.)

{environment}
"""
TVM = """### Expected behavior

{expected}

### Actual behavior

{what}

{found}

### Environment

{environment}

### Steps to reproduce

{steps}

### Triage

* needs-triage
"""
CUTLASS = """**Which component has the problem?** CuTe APIs (Python)

**Describe the bug**

{what}

**Steps/Code to reproduce bug**

{steps}

**Expected behavior**

{expected}

**Environment details**

{environment}

**Additional context**

{found}
"""
ISLPY = """**Describe the bug**

{what}

**To Reproduce**

{steps}

**Expected behavior**

{expected}

**Environment**

{environment}

**Additional context**

{found}
"""
QWIX = """## Expected Behavior

{expected}

## Actual Behavior

{what}

{found}

## Steps to Reproduce the Problem

{steps}

## Specifications

{environment}
"""
TPU_INFERENCE = """### Your current environment

{environment}

### 🐛 Describe the bug

{what}

{steps}

Expected: {expected}

{found}
"""
SGLANG = """### Describe the bug

{what}

Expected: {expected}

{found}

### Reproduction

{steps}

### Environment

{environment}
"""
TRACKERS = {
    "jax": Tracker("jax-ml/jax", JAX),
    "TVM": Tracker("apache/tvm", TVM, "[Bug] "),
    "CuTe DSL": Tracker("NVIDIA/cutlass", CUTLASS, "[BUG] CuTe DSL: "),
    "pycute": Tracker("NVIDIA/cutlass", CUTLASS, "[BUG] pycute: "),
    "islpy": Tracker("inducer/islpy", ISLPY),
    "google/qwix": Tracker("google/qwix", QWIX),
    "vllm-project/tpu-inference": Tracker("vllm-project/tpu-inference", TPU_INFERENCE, "[Bug]: "),
    "sgl-project/sglang-jax": Tracker("sgl-project/sglang-jax", SGLANG, "[Bug] "),
}
"""By the words in front of an entry's title; of what is not here the words are the project."""


def report(bug: Bug) -> str:
    """The report of one bug, with a first line that says where it goes and under which title."""
    owner, _, title = bug.title.partition(": ")
    tracker = TRACKERS.get(owner, Tracker(owner, PLAIN))
    what = [bug.told["Where"]] if "Where" in bug.told else []
    what += [f"{label}: {text}" for label, text in bug.told.items() if label.startswith(("Smallest", "Witness"))]
    what += [bug.table.rstrip()] if bug.table else []
    how = next((f"{label} {text}" for label, text in bug.told.items() if label.startswith(("Refuted", "Found"))), "")
    how, _, wanted = how.partition(" Expected: ")
    expected = [wanted if wanted else "the right result, or an error."]
    expected += [f"A fix that was tried: {bug.told['Fix']}"] if "Fix" in bug.told else []
    steps = f"```python\n{bug.code}```\n\nThis prints\n\n```text\n{bug.printed}```"
    if bug.checkout:
        steps = f"With a checkout of {bug.checkout} on `PYTHONPATH`:\n\n{steps}"
    related = f" Related: {bug.told['Upstream']}" if "Upstream" in bug.told else ""
    return f"<!-- to {tracker.project}, not sent; title: {tracker.title}{title} -->\n\n" + tracker.form.format(
        what="\n\n".join(what),
        steps=steps,
        expected="\n\n".join(expected),
        found=f"How it was found: with layoutproof, which proves what layouts and kernels do. {how}{related}".strip(),
        environment=f"{', '.join(_version(bug, package) for package in bug.packages)}. {MACHINE}.",
    )


def _version(bug: Bug, package: str) -> str:
    """A package with the version that the entry names; of JAX, what the page names where the entry does not."""
    found = re.search(rf"{package} (\d[\w.]*\w)", " ".join(bug.told.values()))
    known = "0.10.2" if package == "jax" else ""
    return f"{package} {found[1] if found else known}".strip()


def name(bug: Bug) -> str:
    """The file of its report."""
    return "-".join(re.findall(r"[a-z0-9]+", bug.title.lower())[:9]) + ".md"


def reported() -> list[Bug]:
    """The entries of the page that are bugs."""
    return [bug for bug in bugs(PAGE.read_text(encoding="utf-8")) if bug.section != BY_DESIGN]


def main() -> int:
    """Write every report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for bug in reported():
        write_whole(folder / name(bug), report(bug).encode())
    print(f"{len(reported())} reports")
    return 0


if __name__ == "__main__":
    sys.exit(main())
