"""pycute, NVIDIA's Python model of CuTe, as the last wheel that has it ships it."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.asking import Ask, NotAsked, answering, one_of, tuples

INSTALL = ("--no-deps", "nvidia-cutlass==4.2.0.0")
IMPORT = "pycute"


def asked(question: dict[str, Any]) -> Ask:
    """What it has is the algebra; nothing in it asks whether a layout is injective or equal to another."""
    import pycute

    kind = question["kind"]
    if kind not in ("compose", "complement", "left_inverse"):
        raise NotAsked("it has an algebra, and no questions")
    forms = [one_of(one, "cute") for one in question["layouts"]]

    def made(form: Any) -> Any:
        shape, stride, swizzle = tuples(form)
        if swizzle is not None:
            raise NotAsked("no swizzles here")
        return pycute.Layout(shape, stride)

    def values(found: Any) -> list[int]:
        return [found(x) for x in range(pycute.size(found))]

    match kind:
        case "compose":
            return Ask(lambda: pycute.composition(made(forms[0]), made(forms[1])), values)
        case "complement":
            return Ask(lambda: pycute.complement(made(forms[0]), question["target"]), values)
        case _:
            return Ask(lambda: pycute.left_inverse(made(forms[0])), values)


if __name__ == "__main__":
    answering(asked, "nvidia-cutlass")
