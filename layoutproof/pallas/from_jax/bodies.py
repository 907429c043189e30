"""The body of a traced pallas_call, as data: what only somebody who knows JAX's jaxprs can say of it.

Read from jax 0.10.2 and 0.12.0.1; where they differ, the attribute that is there decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from layoutproof.bodies.effects import Body
from layoutproof.bodies.interpreter import Begin
from layoutproof.bodies.reading import Around, LateBody, read_body, refused_body
from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.adapter import (
    is_jaxs_own,
    memory_word,
    opened,
    place_of,
    scan_parts,
    scope_of,
)


class JaxReader:
    """A `bodies.interpreter.Reader` for the jax that is installed."""

    def opened(self, jaxpr: Any) -> tuple[Any, tuple[Any, ...]]:
        """The jaxpr and the values of its constants."""
        return opened(jaxpr)

    def unflatten(self, tree: Any, leaves: Sequence[Any]) -> Any:
        """The object that a tree of JAX makes of leaves."""
        from jax.tree_util import tree_unflatten

        return tree_unflatten(tree, leaves)

    def place_of(self, equation: Any) -> str:
        """`file:line` of the user's line of an equation."""
        return place_of(equation.source_info)

    def scan_parts(self, equation: Any) -> tuple[int, int]:
        """Of a scan: how many constants, how many carried values."""
        return scan_parts(equation)

    def element_type(self, dtype: Any) -> str:
        """XLA's name of an element type."""
        return element_type(dtype)

    def memory_of(self, aval: Any) -> str:
        """The memory of a reference, a word of `kernel.MEMORIES`."""
        dtype = element_type(getattr(aval, "dtype", "f32"))
        return "semaphore" if dtype not in ELEMENT_BITS else memory_word(getattr(aval, "memory_space", None))

    def scope_of(self, equation: Any) -> str:
        """A `Spot.scope`; "" also where an equation does not say, and its scope is that of the equation around it."""
        return scope_of(equation)

    def is_jaxs_own(self, jaxpr: Any) -> bool:
        """Whether a nested jaxpr was traced from a function of the jax package."""
        return is_jaxs_own(jaxpr)


class TracedBody(LateBody):
    """Reads the body of a traced call where it is asked about, once: grids and BlockSpecs do not wait for it."""

    def __init__(self, jaxpr: Any, kernel: Kernel, around: Sequence[Around] = (), refused: str = "") -> None:
        """around: of a pipeline's body, what its constants are.  refused: why there is no jaxpr, "" where there is."""
        super().__init__(self._read, kernel)
        self.jaxpr = jaxpr
        self.around = tuple(around)
        self.refused = refused

    def __str__(self) -> str:
        """The jaxpr's text, which says no source lines: calls with equal texts have bodies that do the same."""
        return f"{self.refused} {self.jaxpr} {self.around}"

    def _read(self, kernel: Kernel, begin: Begin) -> Body:
        """The body; what goes wrong is said in its `unmodelled`."""
        if self.refused:
            return refused_body(self.refused, kernel)
        import jax

        return read_body(JaxReader(), lambda: self.jaxpr, kernel, f"jax {jax.__version__}", self.around, begin)


def with_body(jaxpr: Any, kernel: Kernel) -> Kernel:
    """The kernel with its body."""
    return replace(kernel, body_reader=TracedBody(jaxpr, kernel))
