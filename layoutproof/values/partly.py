"""The outputs that depend on unmodelled operations, set aside, and the answer on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from layoutproof.core.result import Verdict
from layoutproof.values.compare import Comparison
from layoutproof.values.pair import Sides
from layoutproof.values.walked import beyond, share


def partly(
    sides: Sides, outputs: Sequence[int] | None, ask: Callable[[Sequence[int] | None], Comparison]
) -> tuple[Comparison, Sequence[int]]:
    """What two programs come to, and the outputs that were compared. outputs: those that are asked about, None for all.

    Where that is unknown, and shows no difference, the outputs that do not rest on what is not modelled are asked about
    alone: they are refuted for themselves, and the rest stays unknown.
    """
    found = ask(outputs)
    every = range(len(sides[0].outvars)) if outputs is None else outputs
    missing = beyond(sides[1]) | beyond(sides[0])
    resting = [k for k in every if k in missing]
    if found.verdict is not Verdict.UNKNOWN or found.differs is not None or not resting:
        return found, every
    others = [k for k in every if k not in missing]
    rest = share(missing, every)
    if not others:
        return replace(found, reason=f"{found.reason}: {rest}"), others
    said = ask(others)
    if said.verdict is Verdict.REFUTED:
        return replace(said, notes=(*said.notes, f"{rest}, which is not modelled: not compared")), others
    why = said.reason if said.verdict is Verdict.UNKNOWN else "no difference"
    why = f"{found.reason}: {rest}; of the other {len(others)}: {why}"
    return replace(found, reason=why, points=said.points, axioms=said.axioms, drawn=said.drawn), others
