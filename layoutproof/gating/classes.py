"""The classes of a change, and the class of a change of one layout, with its proof.

A pair of layouts can be in two classes at once: elements that moved, and more padding. Where no engine can tell, the
class is `unknown`, which no policy makes harmless.
"""

from __future__ import annotations

import json
from typing import Any

from layoutproof.core.errors import LayoutError, Undecided, shorten
from layoutproof.core.finding import Finding, unknown
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import extended, located
from layoutproof.core.result import Verdict, plain, show_sizes
from layoutproof.gating import problems
from layoutproof.gating.kernels import is_kernel, kernels
from layoutproof.registry.read import map_of, read_layout


def layouts(old: object, new: object) -> list[Finding]:
    """The classes of the change from one layout to another; none when they are written alike.

    old, new: texts, mappings, or anything that `read_layout` takes. Subject and place are for the caller to fill in.
    Raises LayoutError only for a layout that cannot be read.

    >>> [found.question for found in layouts("f32[3,5]{1,0}", "f32[3,5]{0,1}")]
    ['moved']
    >>> [found.question for found in layouts("f32[8,128]{1,0}", "f32[8,128]{1,0:T(8,128)}")]
    ['respelled']
    """
    if plain(old) == plain(new) and type(old) is type(new):
        return []
    if is_kernel(old) and is_kernel(new):
        return kernels(old, new, layouts)
    one, other = read_layout(old), read_layout(new)
    sides: dict[str, Any] = {"before": text_of(old), "after": text_of(new)}
    if type(one) is type(other) and one == other and not isinstance(one, IndexMap):
        return [Finding("respelled", "", problems.SAME_LAYOUT(), decided_by="normal form", **sides)]
    try:
        before, after = map_of(one), map_of(other)
    except LayoutError as error:
        return [_unknown(problems.NO_MAP(error.problem), sides)]
    asked = (old, new) if isinstance(old, str | dict) and isinstance(new, str | dict) else (one, other)
    found = _places(asked, _types(one, other), before, after, sides)
    return [*found, *_bytes(before, after, sides)] or [Finding("same_bytes", "", problems.UNEQUAL_LAYOUTS(), **sides)]


def _places(
    pair: tuple[Any, Any], types: str, before: IndexMap, after: IndexMap, sides: dict[str, Any]
) -> list[Finding]:
    """The findings about the places of elements, proved or refuted."""
    same_shape = before.domain.extents == after.domain.extents
    if not same_shape and len({str(before.domain.count()), str(after.domain.count())}) == 2:
        shapes = " to ".join(f"[{', '.join(map(str, m.domain.extents))}]" for m in (before, after))
        return [Finding("reshaped", "", problems.SHAPE_CHANGED(shapes, types), **sides)]
    question = "same_map" if same_shape else "bitcast"
    result = _asked(question, *pair)
    if isinstance(result, str):
        if before.memory is None or after.memory is None or same_shape:
            return [_unknown(result, sides)]
        return [Finding("reshaped", "", problems.NO_RESHAPE(result), **sides)]
    if result.verdict is Verdict.UNKNOWN:
        return [_unknown(located(question, result.reason), sides)]
    if result.verdict is Verdict.PROVED:
        if same_shape and _same_bytes(before, after):
            kind = "same_bytes" if types else "respelled"
            return [Finding(kind, "", problems.SAME_PLACES(types), decided_by=result.decided_by, **sides)]
        if not same_shape:
            return [Finding("same_bytes", "", problems.FREE_RESHAPE(types), decided_by=result.decided_by, **sides)]
        return []
    if result.counterexample is not None and "element" not in result.counterexample:
        return []  # only the allotted bytes differ, which _bytes says
    kind = "resharded" if "device" in {*before.range.names, *after.range.names} else "moved"
    why = _devices(*pair, result) if kind == "resharded" else result.reason
    return [
        Finding(
            kind, "", extended(why, types), counterexample=result.counterexample, decided_by=result.decided_by, **sides
        )
    ]


def _bytes(before: IndexMap, after: IndexMap, sides: dict[str, Any]) -> list[Finding]:
    """Whether more or fewer bytes are allotted."""
    if before.memory is None or after.memory is None:
        return []
    old, new = before.memory.bytes(), after.memory.bytes()
    if old == new:
        return []
    figures: dict[str, Any] = {"bytes_before": plain(old), "bytes_after": plain(new)}
    if isinstance(old, int) and isinstance(new, int):
        why = f"{old} bytes before, {new} after"
        if old:  # growth from 0 has no percentage, and a bound without a figure to compare is exceeded
            figures["percent"] = 100 * (new - old) / old
            why = extended(why, f": {figures['percent']:+.4g} %")
        return [Finding("grew" if new > old else "shrank", "", why, figures=figures, **sides)]
    return _symbolic_bytes(old, new, figures, sides)


def _symbolic_bytes(old: Any, new: Any, figures: dict[str, Any], sides: dict[str, Any]) -> list[Finding]:
    from layoutproof.core.claim import Claim, SizeCondition
    from layoutproof.core.size import symbols_of
    from layoutproof.core.term import Term, size_term
    from layoutproof.solvers.decide import decide

    found: list[Finding] = []
    for kind, less, more in (("grew", old, new), ("shrank", new, old)):
        symbols = symbols_of((old, new))
        claim = Claim({}, SizeCondition(Term("<", size_term(less), size_term(more))), symbols=symbols)
        point, by, reason, *_ = decide(claim)
        if point is not None:
            on = claim.numbers(point)
            at = show_sizes(on.sizes)
            why = f"{plain(old)} bytes before, {plain(new)} after; with {at}: {on.size(old)} and {on.size(new)}"
            found.append(
                Finding(
                    kind, "", why, counterexample=claim.counterexample(point), figures=figures, decided_by=by, **sides
                )
            )
        elif reason:
            found.append(_unknown(problems.BYTES_UNDECIDED(plain(old), plain(new), reason), sides))
    return found


def _same_bytes(before: IndexMap, after: IndexMap) -> bool:
    if before.memory is None or after.memory is None:
        return before.memory is after.memory
    return before.memory.bytes() == after.memory.bytes()


def _asked(question: str, one: object, other: object) -> Finding | str:
    """The answer, or why the question cannot be asked."""
    # most gates have nothing to prove, and the engines are the greater part of a quick one
    from layoutproof.questions.cached import ask

    try:
        return ask(question, one, other)
    except LayoutError as error:
        return error.problem
    except Undecided as error:
        return str(error)


def _devices(one: object, other: object, result: Finding) -> str:
    """From which devices to which, of the element that shows it."""
    from layoutproof.questions.evaluate import locate

    point = result.counterexample or {}
    if "sizes" in point or "element" not in point:
        return result.reason
    element = point["element"]
    try:
        old, new = (sorted({place["device"] for place in locate(x, element)}) for x in (one, other))
    except (LayoutError, KeyError):
        return result.reason
    if old == new:
        return result.reason
    return f"{element} goes from device{_s(old)} {_list(old)} to device{_s(new)} {_list(new)}"


def _types(one: object, other: object) -> str:
    """`; the element type changed from f32 to s32`, or ""."""
    before, after = (getattr(x, "element_type", "") for x in (one, other))
    return f"; the element type changed from {before} to {after}" if before and after and before != after else ""


def _unknown(why: str, sides: dict[str, Any]) -> Finding:
    return unknown("", why, **sides)


def text_of(value: object) -> str:
    """A layout as a report shows it: its text, or the mapping as JSON.

    >>> text_of({"strided": "f32[3,5] strides (4,1)"})
    '{"strided": "f32[3,5] strides (4,1)"}'
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if isinstance(value, dict | list) else str(value)


def _list(numbers: list[int]) -> str:
    return shorten(", ".join(map(str, numbers)), 60)


def _s(many: list[int]) -> str:
    return "" if len(many) == 1 else "s"
