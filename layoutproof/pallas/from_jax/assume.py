"""`@layoutproof.assume(..)`: assumptions on scalar-prefetch tables, once, beside the code that fills them.

The conditions travel as a named scope of JAX, so they stand in the traced program at exactly the calls made inside:
through jit, vmap, grad and scan.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.kernel.table_assumptions import check_assumption
from layoutproof.kernel.table_assumptions import conditions as single
from layoutproof.pallas.from_jax import problems

P = ParamSpec("P")
R = TypeVar("R")
_SCOPE = re.compile(r"layoutproof\.assume\{([^{}]*)\}")


def assume(*conditions: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """State what the scalar prefetch operands of the Pallas calls inside a function hold.

    The function runs unchanged. The conditions hold wherever calls are found by tracing: `layoutproof kernels`,
    `trace:`, `guard()`, `pytest --layoutproof`. Verdicts name them, and JAX shows them in the names of operations.

    Args:
        *conditions: Each as `kernels --assume` takes it: "0 <= prefetch0 < 8", of a part "0 <= prefetch0[:, 2] < 8",
            "prefetch0 is monotone" (injective, onto), "prefetch0[:4] is onto", "prefetch0[i] <= prefetch1[i + 1]" for
            every i.

    Returns:
        A decorator.

    Raises:
        LayoutError: A condition has another form.

    >>> @assume("0 <= prefetch0 < 8")
    ... def gather(table, x):
    ...     return x
    >>> gather(None, 3)
    3
    """
    conditions = single(conditions)
    for condition in conditions:
        check_assumption(condition)
        if "{" in condition or "}" in condition or "\n" in condition:
            raise LayoutError(problems.ASSUMPTION_FORM(shorten(repr(condition), 60)))

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            jax = sys.modules.get("jax")
            with contextlib.ExitStack() as scopes:
                for condition in conditions if jax is not None else ():
                    scopes.enter_context(jax.named_scope(f"layoutproof.assume{{{condition}}}"))  # type: ignore[union-attr]
                return function(*args, **kwargs)

        return run

    return decorate


def said_in(scopes: str) -> tuple[str, ...]:
    """The conditions in the text of a name stack, outermost first.

    >>> said_in("jit(f)/layoutproof.assume{0 <= t < 8 // 2}/pallas_call")
    ('0 <= t < 8 // 2',)
    """
    return tuple(_SCOPE.findall(scopes))
