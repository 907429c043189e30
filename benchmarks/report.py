"""The HTML report of many findings: how long the gate takes to find and to write them, how large it is, how it opens.

    python benchmarks/report.py [--findings 1000]

As many layouts in two states, each in another order of dimensions. Times are CPU of whole processes, which other jobs
change little. With a Chromium on the path, also how long it takes to open the page and to take a picture of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path


def states(folder: Path, many: int) -> None:
    """Spec files of both states: arrays of whole tiles, so that they take as many bytes in the other order."""
    for name, order in (("old.yaml", "1,0"), ("new.yaml", "0,1")):
        layouts = [f"  a{k}: f32[128,{128 * (k + 1)}]{{{order}:T(8,128)}}" for k in range(many)]
        (folder / name).write_text("layouts:\n" + "\n".join(layouts) + "\n")


def cpu_seconds(arguments: Sequence[str], folder: Path, expected: int) -> float:
    """User and system time of one process and its children."""
    child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != expected:
        raise SystemExit(f"{' '.join(arguments)} exited {child.returncode}, not {expected}")
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--findings", type=int, default=1000)
    many = parser.parse_args().findings
    gate = [sys.executable, "-m", "layoutproof", "gate", "old.yaml", "new.yaml", "--jobs", "1", "--output"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        states(folder, many)
        plain = cpu_seconds([*gate, "gate.txt"], folder, 1)
        page = cpu_seconds([*gate, "gate.html", "--format", "html"], folder, 1)
        text = (folder / "gate.html").read_text()
        print(f"findings             {text.count('<details id=')}, {text.count('<figure>')} pictures")
        print(f"gate, as text        {plain:.2f} s of CPU")
        print(f"gate, as HTML        {page:.2f} s of CPU")
        print(f"size                 {len(text) / 1000:.0f} kB")
        browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if browser is not None:
            start = time.perf_counter()
            shot = ["--headless", "--no-sandbox", "--disable-gpu", "--screenshot=page.png", "gate.html"]
            cpu = cpu_seconds([browser, *shot], folder, 0)
            print(
                f"opened and drawn     {time.perf_counter() - start:.2f} s, {cpu:.2f} s of CPU, by {Path(browser).name}"
            )


if __name__ == "__main__":
    main()
