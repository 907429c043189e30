"""The work of a call's body, as a search needs it: its matrix products, and its kind."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from layoutproof.hardware.tpu_tiles import vmem_bytes
from layoutproof.kernel.kernel import Work
from layoutproof.pallas.from_jax.adapter import inner_jaxprs, opened
from layoutproof.pallas.from_jax.of_jax import JaxEquation, JaxJaxpr

_REDUCES = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin", "cumsum", "sort")
_EXPONENTIAL = ("exp", "exp2")


def work_of(jaxpr: JaxJaxpr) -> Work:
    """The work of one program of a call. jaxpr: its body."""
    equations = list(_equations(jaxpr))
    names = {equation.primitive.name for equation in equations}
    products = [equation for equation in equations if equation.primitive.name == "dot_general"]
    if not products:
        return Work("reduction" if names.intersection(_REDUCES) else "elementwise")
    every, least = _products(jaxpr)
    if not names.intersection(_EXPONENTIAL):
        return Work("matmul", every, every == least)
    values = [equation.outvars[0].aval for equation in products]
    held = max(prod(v.shape) * v.dtype.itemsize for v in values)
    return Work("attention", every, every == least, held, _at_once(jaxpr))


def _at_once(jaxpr: JaxJaxpr) -> int:
    """Bytes of the products that may be worked on at once: of the branches that hold most, of a loop those unrolled."""
    held = 0
    for equation in jaxpr.eqns:
        inner = [_at_once(opened(closed)[0]) for _, closed in inner_jaxprs(equation.params)]
        name = equation.primitive.name
        if name == "dot_general":
            value = equation.outvars[0].aval
            known = all(type(n) is int for n in value.shape)
            held += vmem_bytes(value.shape, 8 * value.dtype.itemsize) if known else 0
        elif name == "cond":
            held += max(inner, default=0)
        else:
            turns = min(int(equation.params["unroll"] or 1), equation.params["length"]) if name == "scan" else 1
            held += turns * sum(inner)
    return held


def _equations(jaxpr: JaxJaxpr) -> Iterator[JaxEquation]:
    for equation in jaxpr.eqns:
        yield equation
        for _, closed in inner_jaxprs(equation.params):
            yield from _equations(opened(closed)[0])


def _products(jaxpr: JaxJaxpr) -> tuple[int, int]:
    """Operations of matrix products: of the branches that do most, and of those that do least."""
    most = least = 0
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        inner = [_products(opened(closed)[0]) for _, closed in inner_jaxprs(equation.params)]
        if name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            many = 2 * prod(equation.outvars[0].aval.shape) * prod(left[d] for d in contracted)
            most, least = most + many, least + many
        elif name == "cond" and inner:
            most, least = most + max(m for m, _ in inner), least + min(n for _, n in inner)
        elif inner:
            # the trip count of a loop with a condition is unknown
            turns = equation.params["length"] if name == "scan" else 1
            most += turns * sum(m for m, _ in inner)
            least += 0 if name == "while" else turns * sum(n for _, n in inner)
    return most, least
