"""layoutproof, asked as its users ask it, in the same kind of process as its peers."""

from __future__ import annotations

import functools
import gc
import itertools
import sys
from typing import Any

from benchmarks.peers.asking import Ask, Refused, answering, size, tuples
from benchmarks.peers.expressions import text

INSTALL = ("layoutproof",)
IMPORT = "layoutproof"


def _given(layout: dict[str, Any]) -> Any:
    """What `read_layout` is given: text or a mapping."""
    if layout["ours"] is not None:
        return layout["ours"]
    names = "ijkl"[: len(layout["shape"])]
    places = ", ".join(text(place, names) for place in layout["places"])
    index = f"({', '.join(names)}) -> ({places})"
    return {"map": {"index": index, "shape": layout["shape"], "range": layout["range"]}}


def asked(question: dict[str, Any]) -> Ask:
    """An answer that is a layout, or that there is none, is proved before it is given."""
    import layoutproof as lp
    from layoutproof.core.errors import Reason

    kind, layouts = question["kind"], question["layouts"]
    values = [_given(one) for one in layouts]

    def verdict(name: str) -> bool:
        found = lp.ask(name, *values)
        if found.verdict is lp.Verdict.UNKNOWN:
            raise Refused(found.reason)
        return found.verdict is lp.Verdict.PROVED

    def padding() -> int:
        return int(lp.ask("padding", *values).figures["padding_elements"])

    def cute(form: dict[str, Any]) -> Any:
        from layoutproof.layouts.cute.layout import CuteLayout

        return CuteLayout(*tuples(form["cute"][:2]))

    def algebra() -> Any:
        if kind == "compose":
            return lp.algebra.cute.composition(cute(layouts[0]), cute(layouts[1]))
        if kind == "complement":
            return lp.algebra.cute.complement(cute(layouts[0]), question["target"])
        return lp.algebra.cute.left_inverse(cute(layouts[0]))

    def offsets(found: Any) -> list[int] | None:
        from layoutproof.layouts.cute.layout import linear_offset

        if isinstance(found, Reason) and " is known" in str(found):
            raise Refused(str(found))
        return (
            None if isinstance(found, Reason) else [linear_offset(found.modes(), x) for x in range(int(found.size()))]
        )

    def inverse() -> Any:
        return lp.inverse(values[0]) if verdict("bijective") else None

    def elements(found: Any) -> list[list[int]] | None:
        if found is None:
            return None
        extents, names = layouts[0]["range"], [f"p{k}" for k in range(len(layouts[0]["range"]))]
        ours = lp.read_layout(values[0]).index_map()
        if ours.memory is not None:
            extents, names = [size(extents)], ["offset"]
        elif ours.range.names != tuple(names):
            names = list(ours.range.names)
        places = itertools.product(*map(range, extents))
        return [list(found.at(dict(zip(names, place, strict=True))).elements[0].index) for place in places]

    def sliced() -> Any:
        return lp.algebra.axe.slice_(lp.read_layout(values[0]), layouts[0]["shape"], [tuple(question["region"])])

    def addresses(found: Any) -> list[int] | None:
        if isinstance(found, Reason):
            return None
        begin, end = question["region"]
        return [dict(place).get("m", 0) for k in range(end - begin) for place in lp.algebra.axe.forward(found, (k,))]

    match kind:
        case "compose" | "complement" | "left_inverse":
            return Ask(algebra, offsets)
        case "inverse":
            return Ask(inverse, elements)
        case "slice":
            return Ask(sliced, addresses)
        case "padding":
            return Ask(padding)
        case "in_bounds" if "grid" in layouts[0]:
            return Ask(lambda: verdict("blocks_in_bounds"))
        case _:
            return Ask(lambda: verdict(kind))


def fresh() -> None:
    """Forgets every layout and every answer, so that a repetition takes as long as the first time."""
    for kept in _kept(len(sys.modules)):
        kept.cache_clear()


@functools.cache
def _kept(modules: int) -> list[Any]:
    """What remembers. modules: how many are loaded; looking for it each time would empty the processor's own cache."""
    found = [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
    return [each for each in found if each.__module__.startswith(KEPT)]


KEPT = ("layoutproof.layouts", "layoutproof.solvers", "layoutproof.properties", "layoutproof.questions")

if __name__ == "__main__":
    answering(asked, "layoutproof", fresh)
