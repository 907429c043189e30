"""`docs/primitives.md`: what the tool knows of each primitive of a kernel's body. `python -m` prints the page."""

from __future__ import annotations

from layoutproof.bodies import (
    arithmetic,
    atomics,
    choosing,
    control,
    copies,
    memory,
    mosaic_gpu,
    packing,
    programs,
    reductions,
    shapes,
    subcores,
)
from layoutproof.bodies.interpreter import REFUSED

FAMILIES = (
    memory,
    copies,
    control,
    programs,
    arithmetic,
    shapes,
    reductions,
    choosing,
    packing,
    subcores,
    mosaic_gpu,
    atomics,
)

TESTED = {"0.10.2": "3.11", "0.12.0.1": "3.12"}
"""Versions of JAX with which the tests of bodies run, and Python's."""


def page() -> str:
    """The page."""
    lines = [
        "# Primitives of a kernel's body",
        "",
        "Every primitive that JAX may put into a body is modelled, or refused with the reason. What is in neither",
        "table, and a parameter in an unmodelled form, is an unknown that names the primitive and JAX's version.",
        "`python -m tests.bodies.primitives_page` prints this page; `tests/bodies/test_primitives.py` holds it against",
        "the code.",
        "",
        "| jax | Python |",
        "|---|---|",
        *(f"| {jax} | {python} |" for jax, python in TESTED.items()),
        "",
        "## Modelled",
        "",
        "| what they do | primitives |",
        "|---|---|",
    ]
    for family in FAMILIES:
        says = (family.__doc__ or "").partition("\n")[0].rstrip(".")
        # "unmodelled" is no primitive: what reads compiled kernels puts it in the place of what it cannot read
        names = sorted(set(family.PRIMITIVES) - {"unmodelled"})
        lines.append(f"| {says} | {', '.join(f'`{name}`' for name in names)} |")
    lines += [
        "",
        "## Refused",
        "",
        "What these compute is lost, and undefined where an operand is; of memory that they touch nothing is known.",
        "",
        "| primitive | why |",
        "|---|---|",
        *(f"| `{name}` | {why()} |" for name, why in sorted(REFUSED.items(), key=lambda row: row[0])),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
