"""One Pallas call of a function, in another process: the function is sent, traced there, and the same call found in it.

The asking side makes a request with `sent` and `identity`; the answering side gets the call with `call_of`.
"""

from __future__ import annotations

import base64
import contextlib
import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from layoutproof.core.document import JsonObject
from layoutproof.core.errors import LayoutError
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas.from_jax import problems

if TYPE_CHECKING:
    from layoutproof.pallas.from_jax.trace import Site

OTHER = problems.OTHER_CALLS()


def sent(function: Callable[..., object] | str, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """The function and its arguments as text; arrays as their shapes.

    Raises what pickling raises where they cannot be sent.
    """
    # takes a quarter of a second to import; with it closures, and what a notebook defines, are sent as they are
    from joblib import wrap_non_picklable_objects

    shapes = [as_shape(value) for value in args]
    named = {name: as_shape(value) for name, value in kwargs.items()}
    whole = wrap_non_picklable_objects((function, shapes, named), keep_wrapper=False)
    return base64.b64encode(pickle.dumps(whole)).decode("ascii")


def as_shape(value: Any) -> Any:
    """An array as its shape, anything else as it is."""
    from layoutproof.pallas.from_jax.trace import is_array

    if not is_array(value):
        return value
    import jax

    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def identity(call: Kernel) -> str:
    """The identity of a call among those of its function: another process must find the same one."""
    operands = ", ".join(f"{o.name} {o.dtype}{list(o.dims)}" for o in call.operands)
    return f"{call.name} grid {list(map(str, call.grid))} of {operands}"


def call_of(request: JsonObject) -> tuple[Kernel, Site]:
    """The call of a request, and where it stands.

    request: `code` as `sent` makes it, `target` as it is traced for ("" for none), `call` the number of the call, and
    `same`, its `identity`, "" for whatever call it is.
    Raises LayoutError where another call is found there, and for calls that need the code around them.
    """
    calls = _calls(request["code"], request["target"])
    if request["call"] >= len(calls):
        raise LayoutError(OTHER)
    kernel, site = calls[request["call"]]
    if not isinstance(kernel, Kernel) or request["same"] not in ("", identity(kernel)):
        raise LayoutError(OTHER)
    if site.equation.primitive.name == "core_map":
        raise LayoutError(problems.CORE_MAP())
    return kernel, site


@cache
def _calls(code: str, target: str) -> list[tuple[Kernel | Unmodelled, Site]]:
    """Every call of the function that a text holds, and where it stands: traced once for all requests."""
    from layoutproof.pallas.from_jax.adapter import opened
    from layoutproof.pallas.from_jax.trace import sites, traced, walk
    from layoutproof.pallas.from_jax.user import arguments, device, named_function

    sys.path.insert(0, os.getcwd())
    function, args, kwargs = pickle.loads(base64.b64decode(code))
    with contextlib.ExitStack() as stack:
        if isinstance(function, str):
            function = stack.enter_context(named_function(function))
            args = arguments(args)
        jaxpr, _ = traced(function, args, kwargs, **device(target))
    live = [True] * len(opened(jaxpr)[0].outvars)
    kernels: list[Kernel | Unmodelled] = []
    walk(jaxpr, live, kernels)
    return list(zip(kernels, sites(jaxpr, live), strict=True))
