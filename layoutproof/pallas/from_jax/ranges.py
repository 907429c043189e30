"""Ranges of integers that a program computes, for all data: bounds of a grid that data choose.

Interval arithmetic over the equations of a jaxpr. A result that leaves its type wraps around, and is then unbounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from layoutproof.core.element_types import integer_range
from layoutproof.pallas.from_jax.adapter import inner_jaxprs, is_literal, opened
from layoutproof.pallas.from_jax.of_jax import JaxAtom, JaxAval, JaxEquation

Range = tuple[int, int]
"""The least and the greatest."""

MOST_EQUATIONS = 500
"""Equations that are looked at for one range."""
SAME = frozenset(
    {"squeeze", "reshape", "broadcast_in_dim", "slice", "transpose", "rev", "copy", "expand_dims", "reduce_max",
     "reduce_min", "cummax", "cummin", "dynamic_slice", "optimization_barrier", "stop_gradient"}
)  # fmt: skip
"""Primitives whose results are entries of their first operand."""
ONE_OF = frozenset({"concatenate", "select_n", "pad", "dynamic_update_slice"})
"""Primitives whose results are entries of their operands."""
RUNS = frozenset({"pjit", "jit", "closed_call", "core_call", "remat", "remat2", "checkpoint"})
"""Primitives that pass their operands to their one jaxpr, each in its place."""


def range_of(atom: JaxAtom, equations: Sequence[JaxEquation]) -> Range | None:
    """The range of an integer of a program, by its equations alone; None where it is unbounded."""
    whole = _type_of(atom.aval)
    try:
        found = _Ranges(equations, {})(atom)
    except RecursionError:
        return None
    return None if found == whole else found


def _type_of(aval: JaxAval) -> Range | None:
    dtype = getattr(aval, "dtype", None)
    kind = getattr(dtype, "kind", "")
    if kind == "b":
        return 0, 1
    if dtype is None or kind not in ("i", "u"):
        return None
    low, high = integer_range(8 * dtype.itemsize, kind == "i")
    return low, high - 1


class _Ranges:
    """Ranges of the values of one jaxpr. given: of its inputs, where those around it say so."""

    def __init__(
        self, equations: Sequence[JaxEquation], given: Mapping[int, Range | None], left: list[int] | None = None
    ):
        self._made = {id(v): (e, k) for e in equations for k, v in enumerate(e.outvars)}
        self._known: dict[int, Range | None] = dict(given)
        self._left = [MOST_EQUATIONS] if left is None else left

    def __call__(self, atom: JaxAtom) -> Range | None:
        whole = _type_of(atom.aval)
        if is_literal(atom):
            number = atom.val
            return (int(number), int(number)) if whole is not None and getattr(number, "ndim", 0) == 0 else whole
        if id(atom) not in self._known:
            self._known[id(atom)] = whole
            equation, position = self._made.get(id(atom), (None, 0))
            if equation is not None and whole is not None and self._left[0] > 0:
                self._left[0] -= 1
                found = self._of(equation, position)
                inside = found is not None and whole[0] <= found[0] <= found[1] <= whole[1]
                self._known[id(atom)] = found if inside else whole
        return self._known[id(atom)]

    def _of(self, equation: JaxEquation, position: int) -> Range | None:
        name = equation.primitive.name
        if name in RUNS:
            return self._inside(equation, position)
        size = prod(equation.invars[0].aval.shape) if equation.invars else 0
        if name in ("argmax", "argmin", "iota"):
            shape, params = (equation.invars or equation.outvars)[0].aval.shape, equation.params
            along = params["dimension"] if name == "iota" else params["axes"][0]
            return 0, max(shape[along] - 1, 0)
        if not size:
            # the greatest of nothing is the least of the type
            return None
        given = [self(v) for v in equation.invars]
        if name == "select_n":
            given = given[1:]
        if name == "convert_element_type" or name in SAME:
            return given[0]
        if any(one is None for one in given):
            return None
        ranges: list[Range] = [one for one in given if one is not None]
        if name in ONE_OF:
            return min(a for a, _ in ranges), max(b for _, b in ranges)
        if name in ("reduce_sum", "cumsum"):
            many = size // max(prod(equation.outvars[0].aval.shape), 1)
            many = many if name == "reduce_sum" else equation.invars[0].aval.shape[equation.params["axis"]]
            ((low, high),) = ranges
            least, most = low * many, high * many
            return (least, most) if name == "reduce_sum" else (min(low, least), max(high, most))
        rule = RULES.get(name)
        return None if rule is None else rule(*ranges)

    def _inside(self, equation: JaxEquation, position: int) -> Range | None:
        found = [opened(closed)[0] for _, closed in inner_jaxprs(equation.params)]
        if len(found) != 1 or len(found[0].invars) != len(equation.invars):
            return None
        (inner,) = found
        given = {id(v): self(outer) for v, outer in zip(inner.invars, equation.invars, strict=True)}
        return _Ranges(inner.eqns, given, self._left)(inner.outvars[position])


def _times(a: Range, b: Range) -> Range:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _over(a: Range, b: Range) -> Range | None:
    """Division that truncates, by what is positive."""
    if b[0] < 1:
        return None
    ends = [abs(x) // y * (1 if x >= 0 else -1) for x in a for y in b]
    return min(ends), max(ends)


def _rest(a: Range, b: Range) -> Range | None:
    """The remainder of a truncating division by a positive number: it has the sign of the dividend."""
    if b[0] < 1:
        return None
    most = b[1] - 1
    return max(a[0], -most) if a[0] < 0 else 0, min(a[1], most) if a[1] > 0 else 0


def _sign(a: Range) -> Range:
    return (a[0] > 0) - (a[0] < 0), (a[1] > 0) - (a[1] < 0)


RULES: Mapping[str, Callable[..., Range | None]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "neg": lambda a: (-a[1], -a[0]),
    "mul": _times,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "clamp": lambda low, x, high: (
        min(max(x[0], low[0]), high[0]),
        min(max(x[1], low[1]), high[1]),
    ),
    "div": _over,
    "rem": _rest,
    "sign": _sign,
    "abs": lambda a: (0 if a[0] <= 0 <= a[1] else min(map(abs, a)), max(map(abs, a))),
}
"""The range of a result by the ranges of the operands; None where nothing is known."""
