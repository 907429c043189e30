"""Pallas calls as JAX traces them: every function traced within `traced` is looked through when its trace is complete.

Only then is it known which outputs of a call somebody uses. Whole functions are looked at and not the ones traced
inside of them, so a call is seen once, in the form that runs: batched by vmap, inside its scan or shard_map.
JAX itself is not imported: where Pallas is not there yet, the hook waits for its import.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from layoutproof.core.errors import failure
from layoutproof.kernel.kernel import Kernel, Unmodelled

if TYPE_CHECKING:
    from layoutproof.pallas.from_jax.calls import Pipelines

Found = Kernel | Unmodelled
_PALLAS = "jax._src.pallas.pallas_call"
_PIPELINE = "jax._src.pallas.mosaic.pipeline"


@contextlib.contextmanager
def traced(callback: Callable[[tuple[Found, ...]], None]) -> Iterator[None]:
    """Within it `callback(calls)` gets the calls of every function that JAX traces, if it has any.

    For the whole process, all threads. What a jit cache already holds is not traced again and not seen, unless a new
    function around it is. Of a call outside of any jit every output counts as used.
    """
    with contextlib.ExitStack() as stack:
        if _PALLAS in sys.modules:
            _hook(callback, stack)
            yield
            return
        watch = _Watch(lambda: _hook(callback, stack))
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


def _hook(callback: Callable[[tuple[Found, ...]], None], stack: contextlib.ExitStack) -> None:
    """Hooks in until the stack closes."""
    tracing = importlib.import_module("jax._src.interpreters.partial_eval")
    frame, kind = tracing.JaxprStackFrame, tracing.DynamicJaxprTrace
    original = frame.to_jaxpr
    pipelines: list[Pipelines] = []
    waiting = [True]

    def pipeline(options: Mapping[str, Any], refs: Sequence[Any]) -> None:
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
                callback(calls)
        return made

    frame.to_jaxpr = to_jaxpr
    stack.callback(setattr, frame, "to_jaxpr", original)


def _outermost(trace: Any, kind: type) -> bool:
    """Whether no other function is being traced around this one."""
    outer = getattr(trace, "parent_trace", None)
    while outer is not None:
        if isinstance(outer, kind):
            return False
        outer = getattr(outer, "parent_trace", None)
    return True


def _calls(jaxpr: Any, pipelines: Sequence[Pipelines]) -> tuple[Found, ...]:
    from layoutproof.pallas.from_jax.trace import caller, walk

    found: list[Found] = []
    try:
        walk(jaxpr, [True] * len(jaxpr.outvars), found, (), False)
    except Exception as error:
        # what was found before stays
        found.append(Unmodelled("a traced function", "", failure(error)))
    if not found:
        return ()
    # a call outside of any jit is traced alone, without the user's frames
    place = caller()
    found = [call if call.source else replace(call, source=place) for call in found]
    return (*found, *(call for each in pipelines for call in each.take()))
