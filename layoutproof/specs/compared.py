"""Claims of spec files about values: `{same: kernel, as: reference}`, `{stable: kernel}`, `{sums_at_least: kernel}`.

Functions are traced when the check is run. The last two walk a function beside itself: what is asked is what one walk
at random points notices, so that they are sampled at best, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from layoutproof.compiler.tracing import permit
from layoutproof.core.document import JsonObject
from layoutproof.core.errors import Unsupported
from layoutproof.core.finding import Finding
from layoutproof.core.message import restated
from layoutproof.core.result import Verdict
from layoutproof.kernel.kernel_parts import parts_of
from layoutproof.pallas.report import place
from layoutproof.specs import problems
from layoutproof.specs.spec_model import SAME, SUM_TYPES
from layoutproof.specs.traced import entry_of


def answer(kind: str, layouts: Sequence[object], options: Mapping[str, Any]) -> Finding:
    """The comparison of two traced functions, or the answer about a single one.

    kind: of `OF_VALUES`.  options: dtype of the sums, and args, points, gradient, outputs, inputs and where, as of
    `lp.same`.
    Raises LayoutError for input that does not fit, Undecided for code that may not be imported, and for a function that
    is compared with itself.
    """
    entries = [entry_of(layout) for layout in layouts]
    if kind != SAME:
        entries = [*entries, *entries]
    elif _called(entries[0]) == _called(entries[1]):
        raise Unsupported(problems.COMPARED_WITH_ITSELF(entries[0]["trace"]))
    maker = options.get("inputs")
    # every place is held against the rule before anything is imported
    rules = {name: permit(name) for name in dict.fromkeys([*(e["trace"] for e in entries), maker]) if name}

    from layoutproof.pallas.from_jax.user import arguments, check_stated, named_function
    from layoutproof.questions.same import same

    given = arguments(_stated(entries[0], options))
    for entry in entries:
        check_stated([*given, *(entry.get("kwargs") or {}).values()], entry["trace"])
    with contextlib.ExitStack() as stack:

        def function(name: str, kwargs: Mapping[str, Any] | None = None) -> Callable[..., Any]:
            found = stack.enter_context(named_function(name, rules[name]))
            return partial(found, **kwargs) if kwargs else found

        found = same(
            *(function(entry["trace"], entry.get("kwargs")) for entry in entries),
            *(() if maker and not options.get("args") else given),
            where=options.get("where") or (),
            assume=entries[0].get("assume") or (),
            inputs=function(maker) if maker else None,
            outputs=options.get("outputs"),
            points=options.get("points", 3),
            target=entries[0].get("target"),
            gradient=options.get("gradient", False),
            # a walk answers the question about one function
            relations=kind == SAME,
        )
    (finding,) = found.findings
    if finding.file and finding.reason:
        # a claim is told with its own place, and this is where the code is
        code = place(f"{finding.file}:{finding.line}")
        finding = replace(finding, reason=restated(f"{finding.reason} ({code})", finding.reason, code=code))
    if kind == SAME:
        return finding
    finding = replace(finding, question=kind, subject=found.function)
    if finding.verdict is not Verdict.SAMPLED:
        return finding
    more = _stable(found.comparison) if kind == "stable" else _sums(found.comparison, str(options["dtype"]))
    return replace(finding, **more)


def _stable(found: Any) -> dict[str, Any]:
    """The answer on exponents. A possible overflow is not shown for an input, and so unknown."""
    said = [problems.EXPONENT_UNBOUNDED(place(e.place)) for e in found.exponents if not e.bounded]
    said += [problems.MAXIMUM_WITH_CONSTANT(place(e.place)) for e in found.exponents if e.bounded and e.beside]
    if not found.exponents:
        said = [problems.NO_EXPONENTIAL()]
    return _unless(said, Verdict.UNKNOWN, {"exponents": len(found.exponents)})


def _sums(found: Any, dtype: str) -> dict[str, Any]:
    """The answer on sums: the accumulator's type stands in the code, so another one is refuted."""
    wanted = SUM_TYPES[dtype]
    said = [problems.SUM_TYPE(place(s.place), s.dtype, dtype) for s in found.sums if SUM_TYPES.get(s.dtype, 0) < wanted]
    figures = {"sums": len(found.sums)}
    if not found.sums:
        return _unless([problems.NO_SUM()], Verdict.UNKNOWN, figures)
    return _unless(said, Verdict.REFUTED, figures)


def _unless(said: Sequence[str], verdict: Verdict, figures: Mapping[str, int]) -> JsonObject:
    if not said:
        return {"figures": figures}
    by = "" if verdict is Verdict.UNKNOWN else "the code"
    return {"figures": figures, "verdict": verdict, "reason": restated("; ".join(said[:3]), said[0]), "decided_by": by}


def _stated(entry: Mapping[str, Any], options: Mapping[str, Any]) -> Sequence[Any]:
    """The arguments that the claim states, or else those of the function's entry."""
    own = options.get("args")
    if own is None:
        return entry.get("args") or ()
    return parts_of(f"({own})") if isinstance(own, str) else own


def _called(entry: Mapping[str, Any]) -> tuple[Any, Any]:
    return entry["trace"], entry.get("kwargs") or {}
