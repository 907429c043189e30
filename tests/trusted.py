"""The parts of the code that a proof rests on, as `docs/concepts/trusted.md` lists them: `python -m tests.trusted`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.package_graph import part

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "concepts" / "trusted.md"


class Part(NamedTuple):
    """A part that is believed: what it does, its folders, and what checks it."""

    name: str
    folders: tuple[str, ...]
    checked: str


PARTS = (
    Part("terms, sizes, maps", ("core",), "brute force over small sizes, `benchmarks/fuzz.py`"),
    Part(
        "readers of layouts and their maps",
        ("layouts",),
        "NumPy by definition, XLA's parser and its numbers, TVM, JAX shardings (`layoutproof crosscheck`)",
    ),
    Part(
        "properties and rules as claims",
        ("properties", "kernel", "pallas/rules"),
        "every element or program is looked at",
    ),
    Part(
        "engines that decide",
        ("solvers",),
        "each engine alone against enumeration and against the others; `benchmarks/mutants.py`",
    ),
    Part(
        "readers of kernels",
        ("pallas/from_jax", "pallas/from_mosaic", "ir"),
        "traced and dumped, batched and unbatched, renamed; kernels at random in JAX's interpreter",
    ),
    Part("bodies of kernels", ("bodies",), "random bodies run step by step; each operation against JAX"),
    Part("values", ("values", "operators"), "float64, JAX's interpreter; wrong twins of right kernels"),
    Part("readers of HLO", ("hlotext", "hlo", "from_hlo"), "texts that XLA wrote; mutants of dumps"),
    Part("measured facts of targets", ("hardware",), "the TPU compiler of the version that the verdict names"),
)


def table() -> str:
    """A row for each part, with its files and lines of code as they are."""
    rows = ["| part | in `layoutproof/` | files | lines | checked by |", "|---|---|---:|---:|---|"]
    for each in PARTS:
        files = [path for folder in each.folders for path in (ROOT / "layoutproof" / folder).rglob("*.py")]
        lines = sum(len(path.read_text("utf-8").splitlines()) for path in files)
        places = ", ".join(f"`{folder}`" for folder in each.folders)
        rows.append(f"| {each.name} | {places} | {len(files)} | {lines:,} | {each.checked} |")
    return "\n".join(rows)


def page() -> str:
    """The page with the table of today."""
    return part(PAGE.read_text("utf-8"), "trusted", table())


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
