"""A correction of the model by the cycles that the compiler gave: it ranks the candidates that were not compiled.

The model is a roofline, with an overhead of each step that is an assumption. Of one kernel the compiler's simulation
says what each part of it takes: its cycles are fitted as a sum of the bytes that the model moves, of its products and
of the steps, none of them below 0, by least squares of the relative errors. Like an estimate of the
compiler a prediction is at least the cycles that traffic and products need. How good it is each compiled candidate
says: it is predicted by the others alone (leave-one-out). A prediction is no estimate of the compiler, and it orders
nothing that has one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple, Protocol, TypeVar

from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.mosaic.bounds import flops_a_cycle
from layoutproof.searching.branch import Candidate
from layoutproof.searching.compiler_stage import Report, accepted
from layoutproof.searching.cost import Machine

LEAST = 5
"""Candidates with an estimate below which nothing is learned: one more than the terms of the sum, and one left out."""

SHOWN = 3
"""Candidates that were not compiled of which a prediction is shown, the fewest cycles first."""

TRIED = 12
"""Candidates that are judged for them."""


class PricedCandidate(Protocol):
    """A candidate with the figures of the model."""

    @property
    def values(self) -> Mapping[str, int]:
        """Of the variables."""

    @property
    def figures(self) -> Mapping[str, int]:
        """Of all its kernels together: `cost.FIGURES`."""


@dataclass(frozen=True, slots=True)
class OfOneShape:
    """A candidate of a declared kernel that has one shape."""

    candidate: Candidate

    @property
    def values(self) -> Mapping[str, int]:
        """Of the variables."""
        return self.candidate.values

    @property
    def figures(self) -> Mapping[str, int]:
        """Of its shape."""
        return self.candidate.figures[0]


_Candidate = TypeVar("_Candidate", bound=PricedCandidate)

Terms = tuple[float, ...]
"""What the model says of one candidate: picoseconds of traffic, and of products; steps."""


class Fitted(NamedTuple):
    """One candidate that was compiled. cycles: by the simulation.  least: those that traffic and products need."""

    terms: Terms
    cycles: int
    least: int


def terms(figures: Mapping[str, int], machine: Machine) -> Terms:
    """The terms of one candidate.

    Args:
        figures: Those of the model: `bytes`, `flops`, `carried` in bytes, `steps`.
        machine: Its rates, a second.

    Returns:
        Picoseconds of traffic, and of products with the stores that their sums begin with; and the steps.

    >>> terms({"bytes": 8, "flops": 6, "carried": 0, "steps": 2}, Machine("v5e", 8, 3, 350_000, 0))
    (1000000000000.0, 2000000000000.0, 2.0)
    """
    stores = figures["carried"] / machine.stores if machine.stores else 0
    busy = figures["flops"] / machine.peak + stores
    return 1e12 * figures["bytes"] / machine.bandwidth, 1e12 * busy, float(figures["steps"])


@dataclass(frozen=True, slots=True)
class Correction:
    """Cycles of the simulation as a sum over the model's terms.

    Attributes:
        weights: Cycles for each picosecond of traffic, and of products; and for each step.
        errors: Of each candidate that it rests on, in percent of its cycles, how far a correction by the others is off.
    """

    weights: Terms
    errors: tuple[float, ...]

    def cycles(self, of: Terms, least: int) -> int:
        """The predicted cycles of a candidate, at least those that its traffic and products need.

        >>> Correction((0.001, 0.0, 100.0), ()).cycles((300_000.0, 0.0, 2.0), 0)
        500
        """
        return max(round(_sum(self.weights, of)), least)

    @property
    def error(self) -> float:
        """The median of the errors, in percent."""
        return median(self.errors)

    @property
    def worst(self) -> float:
        """The largest of them."""
        return max(self.errors)


def correction(known: Sequence[Fitted]) -> Correction | None:
    """The correction of a kernel.

    Args:
        known: The candidates with an estimate, of at least one cycle.

    Returns:
        The correction, None where fewer than LEAST have an estimate.

    >>> rows = [Fitted((1e6 * moved, 0.0, steps), round(1500 * moved + 400 * steps), 0) for moved, steps in
    ...     [(10, 4.0), (20, 8.0), (10, 64.0), (40, 16.0), (15, 32.0), (12, 2.0)]]
    >>> found = correction(rows)
    >>> found.cycles((30e6, 0.0, 10.0), 0), found.worst < 1
    (49000, True)
    """
    if len(known) < LEAST:
        return None
    errors = []
    for k, one in enumerate(known):
        others = Correction(_weights([*known[:k], *known[k + 1 :]]), ())
        ranked = max(one.cycles, one.least)
        errors.append(100 * abs(others.cycles(one.terms, one.least) - ranked) / ranked)
    return Correction(_weights(known), tuple(errors))


@dataclass(frozen=True, slots=True)
class Learned:
    """What the compiler's cycles say of those that it was not asked about.

    Attributes:
        correction: Of the model, for this kernel.
        compiled: How many candidates it rests on.
        fewest: The fewest cycles among them, by the compiler.
        predicted: Candidates that are legal by the rules and were not compiled, with their predicted cycles, the fewest
            first.
    """

    correction: Correction
    compiled: int
    fewest: int
    predicted: tuple[tuple[Mapping[str, int], int], ...]


def learned(
    asked: Sequence[tuple[PricedCandidate, Report]],
    rest: Iterable[_Candidate],
    machine: Machine,
    legal: Callable[[_Candidate], bool],
) -> Learned | None:
    """What the compiler's answers say of candidates that it was not asked about; None where it gave too few cycles.

    Args:
        asked: Candidates with the compiler's answer on each.
        rest: Those that it was not asked about.
        machine: The rates of the model.
        legal: Whether the rules allow one of the rest; asked of TRIED at most.

    Returns:
        The correction, and the best of the rest by it.
    """
    known = fitted(asked, machine)
    found = correction(known)
    if found is None:
        return None
    ranked = []
    for one in rest:
        of = terms(one.figures, machine)
        ranked.append(
            (found.cycles(of, _needed(of, machine.name)), one.figures["time"], tuple(one.values.values()), one)
        )
    predicted: list[tuple[Mapping[str, int], int]] = []
    for cycles, _, _, one in sorted(ranked, key=lambda each: each[:3])[:TRIED]:
        if len(predicted) < SHOWN and legal(one):
            predicted.append((one.values, cycles))
    return Learned(found, len(known), min(max(one.cycles, one.least) for one in known), tuple(predicted))


def fitted(asked: Sequence[tuple[PricedCandidate, Report]], machine: Machine) -> list[Fitted]:
    """The candidates that the compiler takes and gives cycles for, of all of their kernels.

    Args:
        asked: Candidates with the compiler's answer on each.
        machine: The rates of the model.

    Returns:
        Those, in the same order.
    """
    found = []
    for of, report in asked:
        each = [one.estimate.cycles for one in report]
        cycles = sum(many for many in each if many is not None)
        if accepted(report) is True and None not in each and cycles > 0:
            found.append(Fitted(terms(of.figures, machine), cycles, sum(one.estimate.at_least for one in report)))
    return found


def _needed(of: Terms, target: str) -> int:
    """The cycles that traffic and products need at the least where all cores share them, 0 = no clock is known."""
    per = flops_a_cycle(target)
    return int(max(of[:2]) * CHIPS[target].bf16 / (1e12 * per * CHIPS[target].cores)) if per else 0


def _sum(weights: Terms, of: Terms) -> float:
    return sum(weight * term for weight, term in zip(weights, of, strict=True))


def _weights(known: Sequence[Fitted]) -> Terms:
    """The weights, none below 0, with the least squares of relative errors.

    Some of few terms are 0 in it, and the others are those of least squares without a bound: all choices are tried.
    """
    import numpy as np

    rows = np.array([[term / one.cycles for term in one.terms] for one in known])
    scale = rows.max(axis=0)
    places = [k for k in range(rows.shape[1]) if scale[k] > 0]
    best: tuple[float, Terms] | None = None
    for used in itertools.chain.from_iterable(itertools.combinations(places, n + 1) for n in range(len(places))):
        found = np.linalg.lstsq(rows[:, used] / scale[list(used)], np.ones(len(known)), rcond=None)[0]
        if any(value < 0 for value in found):
            continue
        weights = [0.0] * len(scale)
        for k, value in zip(used, found, strict=True):
            weights[k] = float(value / scale[k])
        rest = float(sum((_sum(tuple(weights), one.terms) / one.cycles - 1) ** 2 for one in known))
        if best is None or rest < best[0] * (1 - 1e-9):
            best = rest, tuple(weights)
    assert best is not None
    return best[1]
