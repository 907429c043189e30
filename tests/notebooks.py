"""The notebooks, made of their scripts: `python -m tests.notebooks [NAME ..]` runs each and writes it with its outputs.

A notebook is written and reviewed as a script with cells (`notebooks/NAME.py`, jupytext's percent format); what stands
beside it as `NAME.ipynb` is the same with outputs, for readers. The tests hold the two against each other.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
_CELL = re.compile(r"[^\s\"'<>&]*ipykernel_\d+[\\/]\d+\.py")
MOST_SECONDS = 300
"""What one cell may take before the run is given up, on a machine with much else to do."""


def scripts() -> list[Path]:
    """Every notebook's script, in the order of reading."""
    return sorted(FOLDER.glob("*.py"))


def cells_of(script: Path) -> Any:
    """The notebook of a script, without outputs; the same for the same script."""
    book = jupytext.read(script)
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number}"
        cell["metadata"] = {}
    return book


def executed(book: Any, more: Sequence[str] = (), before: str = "") -> Any:
    """The notebook with its outputs, run in a process of its own from its first cell to its last.

    more: code that is run after it, before: code that is run first; both are left out of what is returned. A cell that
    raises ends the run.
    """
    own = list(book.cells)
    book.cells = [nbformat.v4.new_code_cell(before), *own, *map(nbformat.v4.new_code_cell, more)]
    NotebookClient(book, timeout=MOST_SECONDS, resources={"metadata": {"path": str(FOLDER)}}).execute()
    book.cells = own
    for number, cell in enumerate(code for code in own if code["cell_type"] == "code"):
        cell["execution_count"] = number + 1
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = number + 1
    for cell in book.cells:
        cell["metadata"] = {}
        cell["outputs"] = _joined([_kept(output) for output in cell.get("outputs", [])])
        if cell["cell_type"] != "code":
            del cell["outputs"]
    return book


def _kept(output: Any) -> Any:
    """Of a picture only the picture: pages of repositories show that, and its HTML says the same once more.

    Where a cell's code lies is another place in every run; it is called cell.py.
    """
    if "text" in output:
        output["text"] = _CELL.sub("cell.py", output["text"])
    data = output.get("data", {})
    data |= {kind: _CELL.sub("cell.py", text) for kind, text in data.items()}
    if "image/svg+xml" in data:
        output["data"] = {"image/svg+xml": data["image/svg+xml"]}
    elif "text/html" in data:
        output["data"] = {"text/html": data["text/html"]}
    return output


def _joined(outputs: list[Any]) -> list[Any]:
    """What was printed as one text: how it was cut on its way is chance."""
    found: list[Any] = []
    for output in outputs:
        if found and output["output_type"] == found[-1]["output_type"] == "stream" and output.name == found[-1].name:
            found[-1]["text"] += output["text"]
        else:
            found.append(output)
    return found


def main(names: Sequence[str]) -> None:
    """Run and write the notebooks of these names, or all."""
    for script in scripts():
        if not names or script.stem in names:
            nbformat.write(executed(cells_of(script)), script.with_suffix(".ipynb"))
            print(script.with_suffix(".ipynb").name)


if __name__ == "__main__":
    main(sys.argv[1:])
