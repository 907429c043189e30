"""isl, asked as its manual says: maps as quasi-affine relations, no engine chosen, nothing prepared."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.asking import Ask, NotAsked, Refused, answering, size
from benchmarks.peers.expressions import run

INSTALL = ("islpy==2026.2.2",)
IMPORT = "islpy"


class Text:
    """A term in isl's notation."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Any) -> Text:
        return Text(f"({self} + {other})")

    def __radd__(self, other: Any) -> Text:
        return Text(f"({other} + {self})")

    def __sub__(self, other: Any) -> Text:
        return Text(f"({self} - {other})")

    def __rsub__(self, other: Any) -> Text:
        return Text(f"({other} - {self})")

    def __mul__(self, other: Any) -> Text:
        if isinstance(other, Text):
            raise NotAsked("isl has no products of indices")
        return Text(f"({other}*{self})")

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> Text:
        return Text(f"floor({self}/{other})")

    def __mod__(self, other: int) -> Text:
        return Text(f"({self} mod {other})")

    def __str__(self) -> str:
        return self.text


def _written(layout: dict[str, Any], flat: bool = False) -> str:
    """The relation. flat: on one index, CuTe's, the first mode fastest."""
    if layout["places"] is None:
        raise NotAsked("no function to one place")
    bits = max(extent - 1 for extent in layout["range"]).bit_length()

    def xor(left: Any, right: Any) -> Any:
        total: Any = 0
        for k in range(bits):
            total = ((_bit(left, k) + _bit(right, k)) % 2) * (1 << k) + total
        return total

    names = ["x"] if flat else [f"x{k}" for k in range(len(layout["shape"]))]
    index: list[Any] = [Text(name) for name in names]
    if flat:
        step, index = 1, []
        for extent in layout["shape"]:
            index.append(Text(f"(floor(x/{step}) mod {extent})"))
            step *= extent
    places = ", ".join(str(run(place, index, xor=xor)) for place in layout["places"])
    extents = [size(layout["shape"])] if flat else layout["shape"]
    bounds = " and ".join(f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True))
    return f"{{ [{', '.join(names)}] -> [{places}] : {bounds} }}"


def _bit(value: Any, k: int) -> Any:
    return value >> k & 1 if isinstance(value, int) else value // (1 << k) % 2


def _box(extents: list[int]) -> str:
    names = [f"p{k}" for k in range(len(extents))]
    bounds = " and ".join(f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True))
    return f"{{ [{', '.join(names)}] : {bounds} }}"


def asked(question: dict[str, Any]) -> Ask:
    """Relations and sets; compositions and inverses as relations, evaluated point by point."""
    import islpy

    kind, layouts = question["kind"], question["layouts"]
    if kind in ("complement", "slice", "left_inverse"):
        raise NotAsked("isl has sets and relations, not layouts")
    texts = [_written(one, flat=kind == "compose") for one in layouts]

    def maps() -> list[Any]:
        return [islpy.Map(text) for text in texts]

    def box() -> Any:
        return islpy.Set(_box(layouts[0]["range"]))

    def composed() -> Any:
        a, b = maps()
        return b.apply_range(a)

    def inverse() -> Any:
        m = maps()[0]
        if not (m.is_injective() and box().is_equal(m.range())):
            raise Refused("no bijection")
        return m.reverse()

    match kind:
        case "injective":
            return Ask(lambda: bool(maps()[0].is_injective()))
        case "in_bounds":
            return Ask(lambda: bool(maps()[0].range().is_subset(box())))
        case "covers":
            return Ask(lambda: bool(box().is_subset(maps()[0].range())))
        case "padding":
            return Ask(lambda: int(box().subtract(maps()[0].range()).count_val().to_python()))
        case "same_map":
            return Ask(lambda: bool(islpy.Map(texts[0]).is_equal(islpy.Map(texts[1]))))
        case "compose":
            return Ask(composed, lambda found: _values(found, [size(layouts[1]["shape"])], single=True))
        case _:
            return Ask(inverse, lambda found: _values(found, layouts[0]["range"]))


def _values(relation: Any, extents: list[int], single: bool = False) -> list[Any]:
    """The image of each point of a box."""
    import itertools

    import islpy

    multi = islpy.PwMultiAff.from_map(relation)
    parts = [multi.get_pw_aff(k) for k in range(multi.dim(islpy.dim_type.out))]
    space = relation.domain().get_space()
    found: list[Any] = []
    for index in itertools.product(*map(range, extents)):
        point = islpy.Point.zero(space)
        for k, entry in enumerate(index):
            point = point.set_coordinate_val(islpy.dim_type.set, k, entry)
        values = [int(part.eval(point).to_python()) for part in parts]
        found.append(values[0] if single else values)
    return found


if __name__ == "__main__":
    answering(asked, "islpy")
