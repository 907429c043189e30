"""The work of a program as its source states it: flops of matrix products by their types, other arithmetic,
transcendental functions. Loops count by their trips, kernels by their grid, bodies over a mesh by its devices.

Of a branch the least and the most are kept; a loop whose trips the program does not state is unknown, never once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from layoutproof.core.counted import Counted
from layoutproof.core.element_types import element_type
from layoutproof.ir.program import Equation, Program, programs_in

TRANSCENDENTAL = frozenset(
    (
        *("exp", "exp2", "expm1", "log", "log1p", "tanh", "sin", "cos", "tan", "sqrt", "rsqrt", "cbrt", "pow", "erf"),
        *("erfc", "erf_inv", "logistic", "atan2", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
    )
)
"""Primitives of which each element of the result is one."""
ARITHMETIC = frozenset(
    (
        *("add", "sub", "mul", "div", "rem", "neg", "abs", "sign", "max", "min", "floor", "ceil", "round", "clamp"),
        *("add_any", "integer_pow", "square", "and", "or", "xor", "not", "eq", "ne", "lt", "le", "gt", "ge"),
        *("select_n", "nextafter", "is_finite", "population_count", "clz", "shift_left"),
        *("shift_right_logical", "shift_right_arithmetic", "mulhi"),
    )
)
"""Primitives of which each element of the result is one flop, as XLA's cost analysis counts them."""
REDUCTIONS = frozenset(
    ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "argmax", "argmin")
)
"""Primitives that take one flop for each element that is folded into another one."""


@dataclass(frozen=True, slots=True)
class ProgramCount:
    """What a program does. products: flops of matrix products and convolutions, by the types of both sides.
    flops: all of them, products too.  transcendentals: elements of such functions."""

    products: Mapping[str, Counted] = field(default_factory=dict)
    flops: Counted = Counted()
    transcendentals: Counted = Counted()

    @property
    def product_flops(self) -> Counted:
        """Flops of products of all types."""
        return sum(self.products.values(), Counted())

    def __add__(self, other: ProgramCount) -> ProgramCount:
        kinds = {**self.products, **other.products}
        products = {k: self.products.get(k, Counted()) + other.products.get(k, Counted()) for k in kinds}
        return ProgramCount(products, self.flops + other.flops, self.transcendentals + other.transcendentals)

    def often(self, times: int | None, why: str = "") -> ProgramCount:
        """The same so many times, as `Counted.often`."""
        products = {k: each.often(times, why) for k, each in self.products.items()}
        return ProgramCount(products, self.flops.often(times, why), self.transcendentals.often(times, why))

    def either(self, other: ProgramCount, why: str) -> ProgramCount:
        """One of two, whichever."""
        kinds = {**self.products, **other.products}
        none = Counted()
        products = {k: self.products.get(k, none).either(other.products.get(k, none), why) for k in kinds}
        flops, others = (getattr(self, k).either(getattr(other, k), why) for k in ("flops", "transcendentals"))
        return ProgramCount(products, flops, others)


def pair_of(left: str, right: str) -> str:
    """The types of a product by one name.

    >>> pair_of("bf16", "bf16"), pair_of("f32", "bf16")
    ('bf16', 'bf16 x f32')
    """
    return left if left == right else " x ".join(sorted((left, right)))


def count_of(program: Program) -> ProgramCount:
    """The work of one run of a program, on all of its devices together.

    Args:
        program: As a reader made it of a jaxpr or of a Mosaic module.

    Returns:
        Its products, flops and transcendental functions. What depends on data is bounded, and says why.

    Source: HandleDot, HandleConvolution, HandleElementwiseOp and HandleReduce of `hlo_cost_analysis.cc`,
    openxla/xla at 183fa00cb5 (2026-08-22).
    """
    return sum((_of(equation) for equation in program.eqns), ProgramCount())


def _of(equation: Equation) -> ProgramCount:
    name, params = equation.primitive.name, equation.params
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        left = equation.invars[0].aval.shape
        return _product(equation, 2 * _elements(equation) * prod(left[d] for d in contracted))
    if name == "conv_general_dilated":
        return _product(equation, _convolution(equation))
    if name in TRANSCENDENTAL:
        return ProgramCount(transcendentals=Counted.of(_elements(equation)))
    if name in ARITHMETIC:
        return ProgramCount(flops=Counted.of(_elements(equation)))
    if name in REDUCTIONS:
        return ProgramCount(flops=Counted.of(max(0, prod(equation.invars[0].aval.shape) - _elements(equation))))
    if name == "cond":
        first, *others = map(count_of, params["branches"])
        for other in others:
            first = first.either(other, f"a branch{_at(equation)}")
        return first
    if name == "while":
        why = f"a loop whose trips are unknown{_at(equation)}"
        return count_of(params["body_jaxpr"]).often(None, why) + count_of(params["cond_jaxpr"]).often(None, why)
    inside = sum(map(count_of, _bodies(equation)), ProgramCount())
    times, why = _times(equation)
    return inside.often(times, why)


def _bodies(equation: Equation) -> Sequence[Program]:
    if equation.primitive.name == "pallas_call":
        # its index maps are programs too, and no work
        body = equation.params.get("jaxpr")
        return [body] if isinstance(body, Program) else []
    if equation.primitive.name in ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"):
        # of the function and its derivatives the function runs
        return list(programs_in(equation))[:1]
    return list(programs_in(equation))


def _times(equation: Equation) -> tuple[int | None, str]:
    """(How often the programs in an equation run, why that is unknown)."""
    name, params = equation.primitive.name, equation.params
    if name == "scan":
        return int(params["length"]), ""
    if name == "shard_map":
        return prod(params["mesh"].values()), ""
    if name == "pallas_call":
        extents = getattr(params.get("grid_mapping"), "extents", None)
        if extents is None or any(type(n) is not int for n in extents):
            return None, f"a grid that only the running program knows{_at(equation)}"
        return prod(extents), ""
    return 1, ""


def _product(equation: Equation, flops: int) -> ProgramCount:
    types = [element_type(v.aval.dtype) for v in equation.invars[:2]]
    number = Counted.of(flops)
    return ProgramCount({pair_of(*types): number}, number)


def _convolution(equation: Equation) -> int:
    from layoutproof.ir.windows import pairs

    params = equation.params
    left, right = (v.aval.shape for v in equation.invars[:2])
    numbers = params["dimension_numbers"]
    lhs, rhs, out = (tuple(each) for each in numbers)
    space = range(len(lhs) - 2)
    valid = prod(
        pairs(
            left[lhs[2 + k]], right[rhs[2 + k]], equation.outvars[0].aval.shape[out[2 + k]],
            params["window_strides"][k], params["padding"][k][0], params["lhs_dilation"][k], params["rhs_dilation"][k],
        )
        for k in space
    )  # fmt: skip
    return int(2 * valid * (left[lhs[0]] // params["batch_group_count"]) * right[rhs[1]] * right[rhs[0]])


def _elements(equation: Equation) -> int:
    return prod(equation.outvars[0].aval.shape)


def _at(equation: Equation) -> str:
    source = str(equation.source)
    return f" at {source}" if source else ""
