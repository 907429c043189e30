"""How large the house is: `python benchmarks/house.py [--walks]`.

Lines of each package, and what `tests/ratchet.py` measures, which may only become less; with `--walks` calls, functions
and files of our own on the way of one warm `ask`, one `kernels` and one `gate`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["LAYOUTPROOF_CACHE"] = "off"
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.imports import PACKAGE, package_of, sources  # noqa: E402
from tests.ratchet import COMPLEX, measured  # noqa: E402

KERNEL = "jax.experimental.pallas.ops.tpu.matmul:matmul"
BLOCKS = ["--args", "f32[1000,1000], f32[1000,1000]", "--kwarg", "block_shape=(256,256)", "--kwarg", "block_k=256"]


def walk(run: Callable[[], Any]) -> tuple[int, int, int]:
    """(Calls, functions, files) of our own code."""
    seen: dict[Any, int] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            seen[frame.f_code] = seen.get(frame.f_code, 0) + 1

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return sum(seen.values()), len(seen), len({code.co_filename for code in seen})


def walks() -> None:
    """Those of three commands."""
    from click.testing import CliRunner

    import layoutproof as lp
    from layoutproof.cli.main import cli as command

    def line(*words: str) -> Callable[[], Any]:
        return lambda: CliRunner().invoke(command, words, catch_exceptions=False)

    layout = lp.read_layout("bf16[100,300]{1,0:T(8,128)(2,1)}")
    lp.ask("injective", layout)
    with tempfile.TemporaryDirectory() as folder:
        for name, order in (("old", "1,0"), ("new", "0,1")):
            Path(folder, name).mkdir()
            text = f"layouts:\n  a: f32[3,5]{{{order}:T(2,2)}}\nchecks: [{{injective: a}}]\n"
            Path(folder, name, "a.yaml").write_text(text)
        asked = {
            "ask": lambda: lp.ask("injective", layout),
            "kernels": line("kernels", KERNEL, *BLOCKS, "--target", "v5e"),
            "gate": line("gate", f"{folder}/old", f"{folder}/new"),
        }
        for name, run in asked.items():
            print("{}: {:,} calls, {:,} functions, {:,} files".format(name, *walk(run)))


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--walks", action="store_true")
    options = parser.parse_args()
    modules = sources()
    lines = Counter[str]()
    for name, source in modules.items():
        lines[package_of(name)] += source.count("\n")
    found = measured(modules)
    print(", ".join(f"{name} {count:,}" for name, count in sorted(lines.items())), f"in all {lines.total():,} lines")
    print(f"functions with Any in their signature: {sum(found.any.values()):,}")
    print(f"functions of a complexity over {COMPLEX}: {len(found.complex)}")
    print(f"names of classes that mean two things: {len(found.doubled)}")
    print("\n".join(f"  {count} {name}" for name, count in sorted(found.complex.items(), key=lambda row: -row[1])))
    if options.walks:
        walks()


if __name__ == "__main__":
    main()
