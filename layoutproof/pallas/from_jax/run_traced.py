"""Runs a traced function on this machine's processor, its Pallas calls in Pallas' own interpreter (`interpret=True`).

No Python of the user's is called: a jaxpr runs. The interpreter runs the programs of a grid one after the other, copies
land when they are started, and waits wait for nothing, so it ends where the loops of the jaxpr do.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.pallas.from_jax import problems
from layoutproof.pallas.from_jax.adapter import inner_jaxprs, need_jax, opened
from layoutproof.pallas.from_jax.of_jax import EitherJaxpr, JaxJaxpr

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr, JaxprEqn
    from jax.typing import ArrayLike
    from numpy import generic
    from numpy.typing import NDArray

MOST_STEPS = 2**28
"""Programs of a kernel times the elements of its arguments and results."""
MOST_PROGRAMS = 1024
MOST_EQUATIONS = 2000
"""Of a function, with those of its kernels: compiling takes milliseconds for each."""
OUTSIDE = frozenset({"pure_callback", "io_callback", "debug_callback", "debug_print", "ffi_call"})
"""Primitives that call other code than that of a jaxpr."""


def too_much(jaxpr: EitherJaxpr) -> str:
    """Why a traced function is not run, in words; "" where it is.

    jaxpr: as `jax.make_jaxpr` gives it.
    """
    many = 0
    waiting = [opened(jaxpr)[0]]
    while waiting:
        for equation in waiting.pop().eqns:
            many += 1
            if equation.primitive.name in OUTSIDE:
                return problems.CALLS_UNKNOWN(equation.primitive.name)
            if any("mosaic_gpu" in type(mesh).__module__ for mesh in equation.params.get("meshes") or ()):
                # of products of a warpgroup the interpreter gives NaN, and its waits may never end
                return problems.RUNNING_GPU()
            waiting += [opened(inner)[0] for _, inner in inner_jaxprs(equation.params)]
            if equation.primitive.name == "pallas_call":
                grid = equation.params["grid_mapping"].grid
                if not all(isinstance(n, int) for n in grid):
                    return problems.RUNNING_GRID()
                elements = sum(prod(v.aval.shape) for v in (*equation.invars, *equation.outvars))
                if prod(grid) > MOST_PROGRAMS or prod(grid) * elements > MOST_STEPS:
                    return problems.PROGRAMS_OVER(prod(grid), elements)
            if equation.primitive.name == "while" and _floats(equation.params["cond_jaxpr"]):
                return problems.FLOAT_LOOP()
    return f"{many:,} equations" if many > MOST_EQUATIONS else ""


def _floats(jaxpr: JaxJaxpr) -> bool:
    """Whether something in it computes with what is no integer and no truth value."""
    read = [v.aval for e in opened(jaxpr)[0].eqns for v in (*e.invars, *e.outvars)]
    return any(getattr(getattr(a, "dtype", None), "kind", "f") not in "iub" for a in read)


def run(jaxpr: ClosedJaxpr, values: Sequence[ArrayLike]) -> list[NDArray[generic]]:
    """The results of a traced function for these values, as NumPy arrays.

    jaxpr: as `jax.make_jaxpr` gives it.  values: arrays, which are converted to the types of its arguments.
    Raises what JAX raises, where it cannot run it.
    """
    import numpy as np

    jax = need_jax()
    function = importlib.import_module("jax._src.core").jaxpr_as_fun(_interpreted(jaxpr))
    with jax.default_device(jax.devices("cpu")[0]):
        given = [jax.numpy.asarray(np.asarray(v)).astype(a.dtype) for v, a in zip(values, jaxpr.in_avals, strict=True)]
        return [np.asarray(jax.device_get(r)) for r in jax.jit(lambda *v: function(*v))(*given)]


def _interpreted(value: Any) -> Any:
    """A jaxpr, or what holds some, with each Pallas call to be interpreted."""
    if isinstance(value, tuple | list):
        made = [_interpreted(v) for v in value]
        return value if all(a is b for a, b in zip(made, value, strict=True)) else type(value)(made)
    if hasattr(value, "jaxpr") and hasattr(value, "consts"):
        inner = _interpreted(value.jaxpr)
        return value if inner is value.jaxpr else value.replace(jaxpr=inner)
    if not hasattr(value, "eqns"):
        return value
    made = [_equation(e) for e in value.eqns]
    return value if all(a is b for a, b in zip(made, value.eqns, strict=True)) else value.replace(eqns=made)


def _equation(equation: JaxprEqn) -> JaxprEqn:
    if equation.primitive.name == "pallas_call":
        return equation.replace(params={**equation.params, "interpret": True})
    made = {name: _interpreted(value) for name, value in equation.params.items()}
    same = all(value is equation.params[name] for name, value in made.items())
    return equation if same else equation.replace(params=made)
