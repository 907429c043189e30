"""z3, asked for a violation on bit-vectors of 40 bits: two indices, or one, or a place that every index misses."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.asking import Ask, NotAsked, Refused, answering
from benchmarks.peers.expressions import run

INSTALL = ("z3-solver==5.4.0.0",)
IMPORT = "z3"
WIDTH = 40


def asked(question: dict[str, Any]) -> Ask:
    """Truth values only; z3 makes no layouts."""
    import z3

    kind, layouts = question["kind"], question["layouts"]
    if kind not in ("injective", "in_bounds", "covers", "same_map") or layouts[0]["places"] is None:
        raise NotAsked("z3 decides formulas; it makes no functions")
    first = layouts[0]

    def index(name: str) -> tuple[list[Any], list[Any]]:
        entries = [z3.BitVec(f"{name}{k}", WIDTH) for k in range(len(first["shape"]))]
        return entries, [z3.ULT(x, extent) for x, extent in zip(entries, first["shape"], strict=True)]

    def places(layout: dict[str, Any], entries: list[Any]) -> list[Any]:
        found = [run(place, entries, floordiv=_divided, mod=_rest) for place in layout["places"]]
        return [z3.BitVecVal(place, WIDTH) if isinstance(place, int) else place for place in found]

    def violation() -> Any:
        x, inside = index("x")
        if kind == "same_map":
            pairs = zip(places(first, x), places(layouts[1], x), strict=True)
            return [*inside, z3.Or([p != q for p, q in pairs])]
        if kind == "in_bounds":
            # what is below 0 is a large number here
            bounds = zip(places(first, x), first["range"], strict=True)
            return [*inside, z3.Or([z3.UGE(p, extent) for p, extent in bounds])]
        if kind == "injective":
            y, also = index("y")
            equal = [p == q for p, q in zip(places(first, x), places(first, y), strict=True)]
            return [*inside, *also, *equal, z3.Or([p != q for p, q in zip(x, y, strict=True)])]
        wanted = [z3.BitVec(f"p{k}", WIDTH) for k in range(len(first["range"]))]
        missed = z3.Or([p != q for p, q in zip(places(first, x), wanted, strict=True)])
        bounds = [z3.ULT(p, extent) for p, extent in zip(wanted, first["range"], strict=True)]
        return [*bounds, z3.ForAll(x, z3.Implies(z3.And(inside), missed))]

    def ask() -> bool:
        solver = z3.Solver()
        solver.add(*violation())
        found = solver.check()
        if found == z3.unknown:
            raise Refused(solver.reason_unknown())
        return bool(found == z3.unsat)

    return Ask(ask)


def _divided(value: Any, by: int) -> Any:
    import z3

    # a sum may be below 0 on the way: Python's division, for positive divisors
    low = z3.If(value < 0, value - (by - 1), value)
    return low / by


def _rest(value: Any, by: int) -> Any:
    return value - by * _divided(value, by)


if __name__ == "__main__":
    answering(asked, "z3-solver")
