"""How large the house is: `python benchmarks/house.py [--walks]`. A report, never a limit.

Lines of each package, functions whose cyclomatic complexity is over 25 (decisions and 1, nested functions for
themselves), signatures with `Any`; with `--walks` calls, functions and files of our own on the way of one warm `ask`,
one `kernels` and one `gate`.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["LAYOUTPROOF_CACHE"] = "off"
ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "layoutproof"
COMPLEX = 25
DECISIONS = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.comprehension, ast.Assert, ast.match_case)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
KERNEL = "jax.experimental.pallas.ops.tpu.matmul:matmul"
BLOCKS = ["--args", "f32[1000,1000], f32[1000,1000]", "--kwarg", "block_shape=(256,256)", "--kwarg", "block_k=256"]


def own(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function, without the functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, FUNCTIONS):
            yield child
            yield from own(child)


def complexity(node: ast.AST) -> int:
    """Decisions and 1."""
    inside = list(own(node))
    branches = sum(len(each.values) - 1 for each in inside if isinstance(each, ast.BoolOp))
    return 1 + branches + sum(isinstance(each, DECISIONS) for each in inside)


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
    sizes: dict[str, int] = {}
    hard: list[tuple[int, str]] = []
    many = loose = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        package = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        sizes[package] = sizes.get(package, 0) + text.count("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, FUNCTIONS[:2]):
                many += 1
                said = [node.returns, *(each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg))]
                loose += any("Any" in ast.unparse(each) for each in said if each is not None)
                if complexity(node) > COMPLEX:
                    hard.append((complexity(node), f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"))
    print(", ".join(f"{name} {count:,}" for name, count in sizes.items()), f"in all {sum(sizes.values()):,} lines")
    print(f"{loose:,} of {many:,} functions have Any in their signature; complexity over {COMPLEX}: {len(hard)}")
    print("\n".join(f"  {count} {place}" for count, place in sorted(hard, reverse=True)))
    if options.walks:
        sys.path.insert(0, str(ROOT))
        walks()


if __name__ == "__main__":
    main()
