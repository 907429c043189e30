"""CuTe DSL: NVIDIA's own CuTe, its algebra run at compile time in a host function; no GPU is asked."""

from __future__ import annotations

import ast
from typing import Any

from benchmarks.peers.asking import Ask, NotAsked, answering, one_of, tuples

INSTALL = ("nvidia-cutlass-dsl==4.8.1",)
IMPORT = "cutlass"


def asked(question: dict[str, Any]) -> Ask:
    """The result is printed while a function is compiled, and read back from its text: what users see of it."""
    from cutlass import cute

    kind = question["kind"]
    if kind not in ("compose", "complement", "left_inverse"):
        raise NotAsked("it has an algebra, and no questions")
    forms = [tuples(one_of(one, "cute")) for one in question["layouts"]]
    said: dict[str, str] = {}

    def made(number: int = 0) -> Any:
        shape, stride, _ = forms[number]
        return cute.make_layout(shape, stride=stride)

    def result() -> Any:
        if kind == "compose":
            return cute.composition(made(), made(1))
        return cute.complement(made(), question["target"]) if kind == "complement" else cute.left_inverse(made())

    @cute.jit
    def function() -> None:
        said["layout"] = str(result())

    def run() -> str:
        function()
        return said["layout"]

    return Ask(run, _values)


def _values(text: str) -> list[int]:
    """The offsets of a layout as it prints it, the first mode fastest."""
    extents, strides = (_leaves(ast.literal_eval(part)) for part in text.split(":"))
    found = [0]
    for extent, stride in zip(extents, strides, strict=True):
        found = [offset + digit * stride for digit in range(extent) for offset in found]
    return found


def _leaves(nested: Any) -> list[int]:
    return [nested] if isinstance(nested, int) else [leaf for part in nested for leaf in _leaves(part)]


if __name__ == "__main__":
    answering(asked, "nvidia-cutlass-dsl")
