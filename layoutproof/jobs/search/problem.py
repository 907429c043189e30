"""A search problem as data: the kernel with holes, what may fill them, what must hold, and what it should cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from layoutproof.core.term import Term
from layoutproof.jobs.search.cost import Machine
from layoutproof.jobs.search.template import Template


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition over sizes, tile variables and FIGURES. text: how the user, or the target, says it."""

    text: str
    condition: Term


@dataclass(frozen=True, slots=True)
class Shape:
    """One set of sizes, and how much its cost counts."""

    sizes: Mapping[str, int]
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """variables: name -> the values it may take, rising.  flops: of the whole kernel, None = not counted.
    cost: over FIGURES and names, None = time.  worst: the largest cost over the shapes counts, not their weighted sum.
    partial: whether blocks may reach over the edge of an array (the kernel masks them).
    vmem: bytes that windows and scratch may take, headroom taken off.  target, compiler: whose rules are kept.
    """

    name: str
    template: Template
    variables: Mapping[str, tuple[int, ...]]
    shapes: tuple[Shape, ...]
    machine: Machine
    target: str
    vmem: int
    compiler: str | None = None
    flops: Term | None = None
    cost: Term | None = None
    worst: bool = True
    partial: bool = True
    constraints: tuple[Constraint, ...] = ()
    source: str = ""

    def count(self) -> int:
        """How many candidates there are, legal or not."""
        return prod(len(values) for values in self.variables.values())
