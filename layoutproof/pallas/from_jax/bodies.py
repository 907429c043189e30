"""The body of a traced pallas_call, read where it is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import cast

from layoutproof.bodies.effects import Body
from layoutproof.bodies.interpreter import Begin
from layoutproof.bodies.reading import Around, LateBody, read_body, refused_body
from layoutproof.ir.program import Program
from layoutproof.kernel.kernel import Kernel
from layoutproof.pallas.from_jax.of_jax import EitherJaxpr
from layoutproof.pallas.from_jax.programs import program_of


class TracedBody(LateBody):
    """Reads the body of a traced call where it is asked about, once: grids and BlockSpecs do not wait for it."""

    def __init__(
        self, jaxpr: EitherJaxpr | None, kernel: Kernel, around: Sequence[Around] = (), refused: str = ""
    ) -> None:
        """around: of a pipeline's body, its constants.  refused: why there is no jaxpr, "" where there is."""
        super().__init__(self._read, kernel)
        self.jaxpr = jaxpr
        self.around = tuple(around)
        self.refused = refused

    @cached_property
    def program(self) -> Program:
        """The jaxpr as data."""
        return program_of(cast(EitherJaxpr, self.jaxpr))

    def of(self, kernel: Kernel) -> TracedBody:
        """The same body of another kernel, which can be recorded, too."""
        other = TracedBody(self.jaxpr, kernel, self.around, self.refused)
        # the jaxpr is read once
        other.read, other.begin = self.read, self.begin
        return other

    def __str__(self) -> str:
        """The jaxpr's text, which says no source lines: calls with equal texts have bodies that do the same."""
        return f"{self.refused} {self.jaxpr} {self.around}"

    def _read(self, kernel: Kernel, begin: Begin) -> Body:
        """The body; a failure is recorded in its `unmodelled`."""
        if self.refused:
            return refused_body(self.refused, kernel)
        import jax

        return read_body(lambda: self.program, kernel, f"jax {jax.__version__}", self.around, begin)


def with_body(jaxpr: EitherJaxpr, kernel: Kernel) -> Kernel:
    """The kernel with its body."""
    return replace(kernel, body_reader=TracedBody(jaxpr, kernel))
