"""`docs/versions.md`: the versions of jax and libtpu that were tried, and what moved. `python -m` prints the page."""

from __future__ import annotations

from collections.abc import Iterator

from layoutproof.hardware.facts import facts, numbers
from layoutproof.hardware.tpu_described import DESCRIBED, JAX, LIBTPU, UNKNOWN
from layoutproof.known_bugs.bugs import BUGS
from tests.bodies.primitives_page import TESTED


def page() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    every = facts()
    tried = sorted({fact.version for fact in every if fact.version.startswith("libtpu ")}, key=numbers)
    yield "# Versions of JAX and libtpu"
    yield ""
    yield "Facts about a compiler are of one version. `.ci/nightly` runs the suite with the newest of each, prints this"
    yield "page (part `versions`), measures a new compiler (`compiler-rules`) and runs the known bugs (`known-bugs`);"
    yield "`python -m tests.hardware.versions_page` prints it, and a test holds it against the facts."
    yield ""
    yield "## Tried"
    yield ""
    yield "| | versions |"
    yield "|---|---|"
    pairs = ", ".join(f"{jax} (Python {python})" for jax, python in TESTED.items())
    yield f"| jax, with the tests of bodies | {pairs} |"
    yield f"| libtpu, measured | {', '.join(version.removeprefix('libtpu ') for version in tried)} |"
    yield ""
    yield "## What moved"
    yield ""
    yield "| fact | target | " + " | ".join(version for version in tried) + " |"
    yield "|---|---|" + "---|" * len(tried)
    for name, target in dict.fromkeys((fact.name, fact.target) for fact in every):
        said = {fact.version: fact.value for fact in every if (fact.name, fact.target) == (name, target)}
        if len(set(said.values())) > 1:
            yield f"| {name} | {target or 'all'} | " + " | ".join(said.get(version, "") for version in tried) + " |"
    yield ""
    yield "A version without a value was not asked; it has that of the nearest older one, and every answer says so."
    yield ""
    yield "## Known bugs by version"
    yield ""
    yield "| bug | versions |"
    yield "|---|---|"
    for bug in BUGS:
        yield f"| [{bug.name}](known_bugs.md#{bug.name}) | {bug.versions()} |"
    yield ""
    yield "## Generations that JAX describes and libtpu does not take"
    yield ""
    yield f"By {JAX}; {LIBTPU} refuses their names. Not known are {UNKNOWN}: no rule of them is asked."
    yield ""
    yield "| chip | what JAX says |"
    yield "|---|---|"
    for chip in DESCRIBED.values():
        yield f"| {chip.name} | {chip} |"


if __name__ == "__main__":
    print(page(), end="")
