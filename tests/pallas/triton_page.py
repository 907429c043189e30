"""What is read of Triton, and the pairs that show it: `python -m tests.pallas.triton_page > docs/triton.md`.

The text around the table is in `triton_page.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.pallas.triton_pairs import PAIRS

HEAD, REST = Path(__file__).with_suffix(".md").read_text("utf-8").split("<!-- pairs -->\n")


def rows() -> Iterator[str]:
    """The rows of the pairs."""
    for name, pair in PAIRS.items():
        hidden = "the right ones" if pair.hidden else "wrong ones"
        element = "" if pair.element is None else f"({', '.join(map(str, pair.element))})"
        yield f"| {name} | {pair.why} | `{pair.question}` | {element} | {hidden} |"


def page() -> str:
    """The page."""
    return HEAD + "\n".join(rows()) + "\n" + REST


if __name__ == "__main__":
    print(page(), end="")
