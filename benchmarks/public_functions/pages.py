"""Pages of documentation as functions: their blocks of code, run as one function whose arguments take names' places."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ASIDE = ("print", "np.testing", "err.throw", "iota(8)")
"""What a page says to its reader and no kernel needs: statements that begin so are left out, and assertions."""


@dataclass(frozen=True)
class Page:
    """text: A page in Markdown, with blocks of code."""

    text: str

    @staticmethod
    def read(path: Path) -> Page:
        """The page of a file."""
        return Page(path.read_text())

    def function(
        self, wanted: Callable[[str], bool], names: tuple[str, ...] = (), constants: Mapping[str, Any] | None = None
    ) -> Callable[..., list[Any]]:
        """The blocks that are wanted, run one after the other as one function; all arrays that it names are returned.

        Args:
            wanted: Of a block's text whether it is run.
            names: Those that stand for the arguments: what the page assigns to them is left out.
            constants: Names that the page has otherwise; what it assigns to them is left out.
        """
        kept = {**(constants or {})}
        held = {*names, *kept}
        bodies = [ast.parse(block).body for block in blocks(self.text) if wanted(block)]
        code = compile(ast.Module([s for body in bodies for s in body if needed(s, held)], []), "<page>", "exec")

        def run(*given: Any) -> list[Any]:
            import jax

            space = {**kept, **dict(zip(names, given, strict=True))}
            exec(code, space)
            return [leaf for value in space.values() for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array)]

        return run


def blocks(text: str) -> list[str]:
    """The blocks of code that a page runs, without what it says to its own tools."""
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [
        re.sub(r"\A(?:---\n.*?^---\n|(?::\w+:[^\n]*\n)+)", "", cell, flags=re.DOTALL | re.MULTILINE) for cell in cells
    ]


def needed(statement: ast.stmt, held: set[str]) -> bool:
    """Whether a statement makes what a kernel needs: no assertion, nothing aside, no assignment to names held."""
    if isinstance(statement, ast.Assign):
        assigned = {n.id for target in statement.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        return not assigned <= held
    return not isinstance(statement, ast.Assert) and not ast.unparse(statement).startswith(ASIDE)
