"""TVM: `tirx.IndexMap` for functions, the analyzer for bounds and injectivity, `tirx.layout.TileLayout` for Axe."""

from __future__ import annotations

import itertools
from typing import Any

from benchmarks.peers.asking import Ask, NotAsked, Refused, answering
from benchmarks.peers.expressions import run

INSTALL = ("apache-tvm==0.27.0.post1",)
IMPORT = "tvm"
STEPS = 1_000_000
"""Of its z3; its own users set 10,000, with which it proves less."""


def asked(question: dict[str, Any]) -> Ask:
    """An inverse is TVM's proof that a map is a bijection; where it gives none, it has not said that there is none."""
    from tvm import tirx

    kind, layouts = question["kind"], question["layouts"]
    first = layouts[0]
    if "axe" in first:
        return _axe(kind, layouts, question)
    if first["places"] is None or kind in ("compose", "complement", "left_inverse"):
        raise NotAsked("it has index maps, which do not compose")

    def index_map(layout: dict[str, Any] = first) -> Any:
        def place(*index: Any) -> list[Any]:
            return [_term(_expression(e, index)) for e in layout["places"]]

        # it counts the parameters of the function
        names = ", ".join(f"x{k}" for k in range(len(layout["shape"])))
        return tirx.IndexMap.from_func(eval(f"lambda {names}: place({names})", {"place": place}))

    def inverse() -> Any:
        return index_map().inverse(list(first["shape"]))

    def covers() -> bool:
        inverse()
        # it is onto the box of its own places, which need not be the range
        reached = index_map().map_shape(list(first["shape"]))
        return all(int(a) >= b for a, b in zip(reached, first["range"], strict=True))

    match kind:
        case "inverse":
            return Ask(inverse, lambda found: _values(found, first["range"]))
        case "same_map":
            return Ask(lambda: bool(index_map().is_equivalent_to(index_map(layouts[1]))))
        case "covers":
            return Ask(covers)
        case "padding":
            return Ask(
                lambda: index_map().non_surjective_inverse(list(first["shape"])), lambda f: _padding(f, first["range"])
            )
        case "in_bounds":
            return Ask(lambda: _in_bounds(first))
        case _:
            return Ask(lambda: _injective(first))


def _expression(data: Any, index: Any) -> Any:
    from tvm import tirx

    return run(data, index, xor=lambda a, b: tirx.bitwise_xor(_term(a), _term(b)))


def _term(value: Any) -> Any:
    from tvm import tirx

    return tirx.const(value, "int32") if isinstance(value, int) else value


def _bound(layout: dict[str, Any], *names: str) -> tuple[Any, list[list[Any]]]:
    """An analyzer, and indices that it knows the ranges of."""
    import tvm
    from tvm import sym, tirx

    analyzer = sym.Analyzer()
    analyzer.set_z3_rlimit(STEPS)
    found = [[tirx.Var(f"{name}{k}", "int32") for k in range(len(layout["shape"]))] for name in names]
    for index in found:
        for entry, extent in zip(index, layout["shape"], strict=True):
            analyzer.bind(entry, tvm.ir.Range(0, extent))
    return analyzer, found


def _proved(analyzer: Any, goal: Any) -> bool:
    from tvm import sym

    if not analyzer.can_prove(goal, sym.ProofStrength.SYMBOLIC_BOUND):
        raise Refused("cannot prove it")
    return True


def _in_bounds(layout: dict[str, Any]) -> bool:
    from tvm import tirx

    analyzer, (index,) = _bound(layout, "x")
    places = [_term(_expression(e, index)) for e in layout["places"]]
    bounds = [tirx.all(p >= 0, p < n) for p, n in zip(places, layout["range"], strict=True)]
    return _proved(analyzer, tirx.all(*bounds))


def _injective(layout: dict[str, Any]) -> bool:
    """Two indices with the same place are the same: what TileLang asks of the analyzer."""
    from tvm import tirx

    analyzer, (one, other) = _bound(layout, "x", "y")
    pairs = [(_expression(e, one), _expression(e, other)) for e in layout["places"]]
    with analyzer.constraint_scope(tirx.all(*[_term(p) == _term(q) for p, q in pairs])):
        return _proved(analyzer, tirx.all(*[p == q for p, q in zip(one, other, strict=True)]))


def _values(index_map: Any, extents: list[int]) -> list[list[int]]:
    """What it gives for each place; of many places, for some."""
    return [
        [int(v) for v in index_map.map_indices([_term(entry) for entry in place])]
        for place in itertools.product(*map(range, extents))
    ]


def _padding(found: Any, extents: list[int]) -> int:
    """How many places its predicate calls padding."""
    import tvm
    from tvm import sym, tirx

    inverse, predicate = found
    analyzer, many = sym.Analyzer(), 0
    for place in itertools.product(*map(range, extents)):
        values = dict(zip(inverse.initial_indices, map(_term, place), strict=True))
        held = analyzer.simplify(tirx.stmt_functor.substitute(predicate, values))
        if not isinstance(held, tvm.ir.PrimExpr):
            raise Refused(f"its predicate is {held}")
        many += bool(int(held))
    return many


def _axe(kind: str, layouts: list[dict[str, Any]], question: dict[str, Any]) -> Ask:
    from tvm.tirx.layout import Axis, R, S, TileLayout
    from tvm_ffi import structural_equal

    def made(form: dict[str, Any]) -> Any:
        extents = tuple(e for e, _, _ in form["D"])
        strides = tuple(s @ Axis.get(a) for _, s, a in form["D"])
        spec: Any = S[extents:strides] if len(extents) > 1 else S[extents[0] : strides[0]]
        if form["R"]:
            spec = spec + R[tuple(e for e, _, _ in form["R"]) : tuple(s @ Axis.get(a) for _, s, a in form["R"])]
        for axis, value in form["O"].items():
            spec = spec + value @ Axis.get(axis)
        return TileLayout(spec)

    forms = [one["axe"] for one in layouts]

    def equal() -> bool:
        if not structural_equal(made(forms[0]).canonicalize(), made(forms[1]).canonicalize()):
            raise Refused("their canonical forms differ, which settles nothing")
        return True

    if kind == "same_map":
        return Ask(equal)
    if kind == "injective":
        raise NotAsked("it has no such question")
    begin, end = question["region"]

    def sliced() -> Any:
        found = made(forms[0]).slice(list(layouts[0]["shape"]), [(begin, end)])
        if found is None:
            raise Refused("it finds none")
        return found

    return Ask(sliced, lambda found: [int(found.apply(k, shape=[end - begin])["m"]) for k in range(end - begin)])


if __name__ == "__main__":
    answering(asked, "apache-tvm")
