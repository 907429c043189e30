"""Triton's linear layouts, by the bindings in its wheel; no GPU is asked."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.asking import Ask, NotAsked, answering, size
from benchmarks.peers.expressions import run

INSTALL = ("triton==3.9.0",)
IMPORT = "triton"
MOST = 4000
"""Indices at which a map is held against its bases before it is called linear."""


def _bases(layout: dict[str, Any]) -> tuple[list[tuple[str, list[list[int]]]], int]:
    """The images of powers of two, and the size of the output. Raises NotAsked for what is not linear over bits."""
    if "linear" in layout:
        inputs, out = layout["linear"]
        return [(name, [[base] for base in bases]) for name, bases in inputs.items()], out
    shape = layout["shape"]
    if layout["places"] is None or any(n & (n - 1) for n in (*shape, *layout["range"])):
        raise NotAsked("it has sizes that are powers of two only")

    def offset(index: list[int]) -> int:
        total = 0
        for place, extent in zip(layout["places"], layout["range"], strict=True):
            total = total * extent + run(place, index)
        return total

    zero = [0] * len(shape)
    found = []
    for k, extent in enumerate(shape):
        powers = [1 << bit for bit in range(extent.bit_length() - 1)]
        found.append((f"x{k}", [offset([*zero[:k], power, *zero[k + 1 :]]) for power in powers]))
    # some thousand indices, an odd number apart so that all bits change: what is not linear differs at most of them
    for number in range(0, size(shape), size(shape) // MOST | 1):
        index = []
        for extent in reversed(shape):
            index.insert(0, number % extent)
            number //= extent
        linear = 0
        for (_, images), entry in zip(found, index, strict=True):
            for bit, image in enumerate(images):
                linear ^= image if entry >> bit & 1 else 0
        if linear != offset(index):
            raise NotAsked("not linear over bits")
    return [(name, [[image] for image in images]) for name, images in found], size(layout["range"])


def asked(question: dict[str, Any]) -> Ask:
    """Made of bases each time, as ours from its text."""
    from triton._C.libtriton.linear_layout import LinearLayout

    kind = question["kind"]
    if kind not in ("injective", "covers", "same_map", "inverse"):
        raise NotAsked("a linear layout is one by its bases; it has no bounds and no holes to ask for")
    forms = [_bases(one) for one in question["layouts"]]

    def made(number: int = 0) -> Any:
        bases, out = forms[number]
        return LinearLayout.from_bases(bases, ["offset"], [out], False)

    def values(found: Any) -> list[list[int]]:
        names = [name for name, _ in forms[0][0]]
        return [[dict(found.apply({"offset": place}))[name] for name in names] for place in range(forms[0][1])]

    one, other = made(), made(len(forms) - 1)
    match kind:
        case "injective":
            return Ask(lambda: bool(made().is_injective()), known=lambda: one.is_injective())
        case "covers":
            return Ask(lambda: bool(made().is_surjective()), known=lambda: one.is_surjective())
        case "same_map":
            return Ask(lambda: bool(made() == made(1)), known=lambda: one == other)
        case _:
            return Ask(lambda: made().invert(), values)


if __name__ == "__main__":
    answering(asked, "triton")
