"""What is read of JAX's own objects: the parts of a jaxpr that all versions have which are read.

Source: `Jaxpr`, `ClosedJaxpr`, `JaxprEqn`, `Var` and `Literal` of jax/_src/core.py, jax 0.10.2 and 0.12.0.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from layoutproof.ir.program import Dtype

Params = Mapping[str, Any]
"""The parameters of an equation, or the options of a call, by name: what each holds is of its primitive."""


class JaxAval(Protocol):
    """What a value is: an array, or a reference. Of tokens, which have neither shape nor type, nobody asks for them."""

    @property
    def shape(self) -> tuple[Any, ...]:
        """Extents in elements."""

    @property
    def dtype(self) -> Dtype:
        """The element type."""


class JaxAtom(Protocol):
    """A variable or a literal; the latter has its value as `val` (`adapter.is_literal`)."""

    @property
    def aval(self) -> Any:
        """What it is: a `JaxAval`, or a token."""


class JaxLiteral(JaxAtom, Protocol):
    """A constant among the operands of an equation."""

    @property
    def val(self) -> Any:
        """Its value."""


class JaxPrimitive(Protocol):
    """A primitive."""

    @property
    def name(self) -> str:
        """As JAX prints it."""


class JaxEquation(Protocol):
    """An equation, also one that is still being traced."""

    @property
    def primitive(self) -> JaxPrimitive:
        """What it applies."""

    @property
    def params(self) -> Params:
        """By name, what the primitive makes of them."""

    @property
    def invars(self) -> Sequence[JaxAtom]:
        """Its operands, `JaxAtom`s."""

    @property
    def outvars(self) -> Sequence[JaxAtom]:
        """Its results, `JaxAtom`s."""

    @property
    def effects(self) -> object:
        """What it does beside giving results."""


class JaxSourced(JaxEquation, Protocol):
    """An equation of a jaxpr, which knows where it comes from."""

    @property
    def source_info(self) -> Any:
        """Where it was traced."""


class JaxJaxpr(Protocol):
    """A jaxpr without the values of its constants."""

    @property
    def invars(self) -> Sequence[JaxAtom]:
        """Its inputs, `JaxAtom`s."""

    @property
    def outvars(self) -> Sequence[JaxAtom]:
        """Its results, `JaxAtom`s."""

    @property
    def constvars(self) -> Sequence[JaxAtom]:
        """Its constants, `JaxAtom`s."""

    @property
    def eqns(self) -> Sequence[JaxSourced]:
        """Its equations, `JaxSourced` each."""

    @property
    def debug_info(self) -> object:
        """Which function it was traced of."""


class JaxClosed(Protocol):
    """A jaxpr with the values of its constants."""

    @property
    def jaxpr(self) -> JaxJaxpr:
        """The jaxpr."""

    @property
    def consts(self) -> Sequence[object]:
        """What its `constvars` are."""


EitherJaxpr = JaxJaxpr | JaxClosed
"""With or without the values of its constants (`adapter.opened`)."""
