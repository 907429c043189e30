"""Claims of spec files about values: `{same: kernel, as: reference}`, both traced when the check is run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from layoutproof.compiler.tracing import permit
from layoutproof.core.errors import Unsupported
from layoutproof.core.finding import Finding
from layoutproof.specs.traced import entry_of


def answer(layouts: Sequence[object], options: Mapping[str, Any]) -> Finding:
    """What comes of comparing the first of two traced functions with the second.

    options: points, gradient, outputs, inputs and where, as of `lp.same`.
    Raises LayoutError for input that does not fit, Undecided for code that may not be imported, and for a function that
    is compared with itself.
    """
    entries = [entry_of(layout) for layout in layouts]
    ours, theirs = (_called(entry) for entry in entries)
    if ours == theirs:
        raise Unsupported(f"{entries[0]['trace']} is compared with itself; there is nothing to prove")
    maker = options.get("inputs")
    # every place is held against the rule before anything is imported
    rules = {place: permit(place) for place in dict.fromkeys([*(e["trace"] for e in entries), maker]) if place}

    from layoutproof.pallas.from_jax.user import argument, check_stated, named_function
    from layoutproof.questions.same import same

    given = [argument(value) if isinstance(value, str) else value for value in entries[0].get("args") or ()]
    for entry in entries:
        check_stated([*given, *(entry.get("kwargs") or {}).values()], entry["trace"])
    with contextlib.ExitStack() as stack:

        def function(place: str, kwargs: Mapping[str, Any] | None = None) -> Callable[..., Any]:
            found = stack.enter_context(named_function(place, rules[place]))
            return partial(found, **kwargs) if kwargs else found

        found = same(
            *(function(entry["trace"], entry.get("kwargs")) for entry in entries),
            *(() if maker else given),
            where=options.get("where") or (),
            assume=entries[0].get("assume") or (),
            inputs=function(maker) if maker else None,
            outputs=options.get("outputs"),
            points=options.get("points", 3),
            target=entries[0].get("target"),
            gradient=options.get("gradient", False),
        )
    (finding,) = found.findings
    return finding


def _called(entry: Mapping[str, Any]) -> tuple[Any, Any]:
    return entry["trace"], entry.get("kwargs") or {}
