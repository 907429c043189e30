"""Pallas calls as JAX traces them: every function traced within `traced` is looked through when its trace is complete.

Only then is it known which outputs of a call are used. Whole functions are looked at and not the ones traced
inside of them, so a call is seen once, in the form that runs: batched by vmap, inside its scan or shard_map.
JAX itself is not imported: where Pallas is not there yet, the hook waits for its import.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from layoutproof.core.errors import failure
from layoutproof.kernel.kernel import Kernel, Unmodelled
from layoutproof.pallas.from_jax.of_jax import EitherJaxpr

if TYPE_CHECKING:
    from jax import ShapeDtypeStruct
    from jax.extend.core import ClosedJaxpr, Jaxpr

    from layoutproof.pallas.from_jax.calls import Pipelines

Found = Kernel | Unmodelled
Callback = Callable[[tuple[Found, ...], Any], None]
"""Gets the calls of a function, and its jaxpr with constants."""
_PALLAS = "jax._src.pallas.pallas_call"
_PIPELINE = "jax._src.pallas.mosaic.pipeline"


@contextlib.contextmanager
def traced(callback: Callback, again: bool = False) -> Iterator[None]:
    """Within it `callback(calls, jaxpr)` gets the calls of every function that JAX traces, if it has any.

    For the whole process, all threads. A function in the jit cache is not traced again and not seen, unless a new
    function around it is. Of a call outside of any jit every output counts as used.

    again: whether the calls of a function that was traced within come again each time that it is called or lowered.
    """

    def hook(stack: contextlib.ExitStack) -> None:
        _hook(_each_time(callback, stack) if again else callback, stack)

    with contextlib.ExitStack() as stack:
        if _PALLAS in sys.modules:
            hook(stack)
            yield
            return
        watch = _Watch(lambda: hook(stack))
        sys.meta_path.insert(0, watch)
        try:
            yield
        finally:
            if watch in sys.meta_path:
                sys.meta_path.remove(watch)


class _Watch(importlib.abc.MetaPathFinder):
    """Finds no module; says when Pallas is imported for the first time."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.then: Callable[[], None] | None = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _PALLAS and self.then is not None:
            then, self.then = self.then, None
            then()
        return None


def function_of(jaxpr: ClosedJaxpr) -> tuple[Callable[..., object], list[ShapeDtypeStruct]]:
    """A traced function to be traced again, of its arrays one by one, and their shapes."""
    import jax
    from jax.extend.core import jaxpr_as_fun

    call = jaxpr_as_fun(jaxpr)

    def function(*arrays: object) -> object:
        return call(*arrays)

    function.__name__ = getattr(jaxpr.jaxpr.debug_info, "func_name", "") or "the function"
    return function, [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in jaxpr.in_avals]


def _hook(callback: Callback, stack: contextlib.ExitStack) -> None:
    """Hooks in until the stack closes."""
    tracing = importlib.import_module("jax._src.interpreters.partial_eval")
    closed = importlib.import_module("jax.extend.core").ClosedJaxpr
    frame, kind = tracing.JaxprStackFrame, tracing.DynamicJaxprTrace
    original = frame.to_jaxpr
    pipelines: list[Pipelines] = []
    waiting = [True]

    def pipeline(options: Mapping[str, object], refs: Sequence[object]) -> None:
        from layoutproof.pallas.from_jax.calls import Pipelines
        from layoutproof.pallas.from_jax.trace import caller

        if not pipelines:
            pipelines.append(Pipelines())
        pipelines[0].add(options, refs, caller())

    def to_jaxpr(self: Any, trace: Any, *args: Any, **options: Any) -> Any:
        made = original(self, trace, *args, **options)
        if waiting[0] and _PIPELINE in sys.modules:
            # a kernel's index maps are traced before its body, so this comes before its first pipeline
            waiting[0] = False
            from layoutproof.pallas.from_jax.adapter import pipelines_traced

            stack.enter_context(pipelines_traced(pipeline))
        if _outermost(trace, kind):
            calls = _calls(made[0], pipelines)
            if calls:
                pipelines.clear()
                callback(calls, closed(*made[:2]))
        return made

    frame.to_jaxpr = to_jaxpr
    stack.callback(setattr, frame, "to_jaxpr", original)


def _each_time(callback: Callback, stack: contextlib.ExitStack) -> Callback:
    """A callback for what is traced, which remembers it by function; `callback` gets it again when the function runs.

    JAX asks `_infer_params` for a function's jaxpr at each call that leaves its compiled fast path, so functions with
    Pallas calls are kept off that path. A JAX without these names gives what it traces, once.
    """
    pjit, core = (importlib.import_module(f"jax._src.{name}") for name in ("pjit", "core"))
    infer, fast = getattr(pjit, "_infer_params", None), getattr(pjit, "_get_fastpath_data", None)
    if infer is None or fast is None:
        return callback
    known: WeakKeyDictionary[Any, tuple[Found, ...]] = WeakKeyDictionary()
    here = threading.local()

    def while_traced(calls: tuple[Found, ...], jaxpr: EitherJaxpr) -> None:
        here.calls = (*getattr(here, "calls", ()), *calls)
        callback(calls, jaxpr)

    def infer_params(*args: Any, **options: Any) -> Any:
        if not core.trace_state_clean():
            return infer(*args, **options)
        here.calls = ()
        found = infer(*args, **options)
        jaxpr = found[0].params["jaxpr"]
        if jaxpr not in known:
            # nothing was traced now where it was traced before as a part of another function
            known[jaxpr] = here.calls or _calls(getattr(jaxpr, "jaxpr", jaxpr), ())
        if known[jaxpr] and not here.calls:
            callback(known[jaxpr], jaxpr)
        here.has_calls = bool(known[jaxpr])
        return found

    def fastpath_data(*args: object, **options: object) -> object:
        return None if getattr(here, "has_calls", False) else fast(*args, **options)

    for name, old, new in (("_infer_params", infer, infer_params), ("_get_fastpath_data", fast, fastpath_data)):
        setattr(pjit, name, new)
        stack.callback(setattr, pjit, name, old)
    return while_traced


def _outermost(trace: object, kind: type) -> bool:
    """Whether no other function is being traced around this one."""
    outer = getattr(trace, "parent_trace", None)
    while outer is not None:
        if isinstance(outer, kind):
            return False
        outer = getattr(outer, "parent_trace", None)
    return True


def _calls(jaxpr: Jaxpr, pipelines: Sequence[Pipelines]) -> tuple[Found, ...]:
    from layoutproof.pallas.from_jax.trace import caller, walk

    found: list[Found] = []
    try:
        walk(jaxpr, [True] * len(jaxpr.outvars), found, (), False)
    except Exception as error:
        # earlier findings stay
        found.append(Unmodelled("a traced function", "", failure(error)))
    if not found:
        return ()
    # a call outside of any jit is traced alone, without the user's frames
    place = caller()
    found = [call if call.source else replace(call, source=place) for call in found]
    return (*found, *(call for each in pipelines for call in each.take(found)))
