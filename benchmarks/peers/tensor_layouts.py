"""tensor-layouts of Meta: CuTe's algebra and an analysis that looks at every element."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.asking import Ask, NotAsked, answering, one_of, size, tuples

INSTALL = ("tensor-layouts==0.3.2",)
IMPORT = "tensor_layouts"


def asked(question: dict[str, Any]) -> Ask:
    """Layouts and swizzles in CuTe's notation."""
    import tensor_layouts as tl
    from tensor_layouts import analysis

    kind, layouts = question["kind"], question["layouts"]
    forms = [one_of(one, "cute") for one in layouts]

    def made(number: int = 0) -> Any:
        shape, stride, swizzle = tuples(forms[number])
        found = tl.Layout(shape, stride)
        return found if swizzle is None else tl.compose(tl.Swizzle(*swizzle), found)

    def values(found: Any) -> list[int]:
        return [found(x) for x in range(tl.size(found))]

    match kind:
        case "injective":
            return Ask(lambda: bool(analysis.is_injective(made())))
        case "covers":
            # its question is about all offsets below a size
            return Ask(lambda: bool(analysis.is_surjective(made(), size(layouts[0]["range"]))))
        case "same_map":
            return Ask(lambda: bool(analysis.functionally_equal(made(), made(1))))
        case "compose":
            return Ask(lambda: tl.compose(made(), made(1)), values)
        case "complement":
            return Ask(lambda: tl.complement(made(), question["target"]), values)
        case "left_inverse":
            return Ask(lambda: tl.left_inverse(made()), values)
        case _:
            raise NotAsked("no such question")


if __name__ == "__main__":
    answering(asked, "tensor-layouts")
