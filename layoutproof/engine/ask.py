"""Ask one question: which property, of which layouts; get a verdict with its counterexample or its engine.

Order of engines: `digits` (structural, microseconds), `bits` (xor, by rank over GF(2)), `isl` (exact, natural
coordinates), `smt` (what isl cannot), `brute` (small boxes). The first that decides answers; a refutation is replayed
on plain ints before anyone sees it.
"""

from __future__ import annotations

import importlib
import itertools
import threading
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any

from layoutproof.core.claim import At, Claim, Holds, Outside, Same, Unreached
from layoutproof.core.errors import InternalError, LayoutError, NotSmallest, Undecided, shorten
from layoutproof.core.expression import parse_condition
from layoutproof.core.index_map import IndexMap
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Point, Result, Verdict
from layoutproof.core.size import Extent, product
from layoutproof.core.term import Term
from layoutproof.engine.catalogue import check_options, property_module
from layoutproof.engine.count import count
from layoutproof.engine.hardware import resolve
from layoutproof.engine.read import map_of, read_layout

ENGINES = ("digits", "bits", "isl", "smt", "brute")
SHORT = 30
"""The short try of isl has this part of its budget."""
ENUMERATED = 100_000
"""Elements up to which a hole is replayed by looking at every element."""
_NATIVE = threading.RLock()
"""Held while isl or z3 run: z3's context is one for all threads, and two of them in it end the process."""


def ask(
    name: str,
    *layouts: object,
    where: str | None = None,
    engine: str | None = None,
    confirm: bool = False,
    effort: int = 1,
    **options: Any,
) -> Result:
    """Whether a property holds of one layout or of a pair.

    where: a condition on size symbols, e.g. "N % 8 == 0"; the answer is then for all sizes >= 1 that satisfy it.
    engine: force one of digits, bits, isl, smt, brute.  confirm: demand that two engines agree.
    effort: multiplies the step budgets.  options: the property's own, e.g. at_most="2%", permutation=(1, 0).
    The figures of a claim about symbolic sizes that is not proved for all of them say, where a condition of a simple
    form is found, under which it is: `holds_when`, and whether that is exact, `holds_when_is`.
    Raises LayoutError for bad input, never a library's error.

    >>> ask("injective", "f32[3,5] strides (4,1)").counterexample
    {'first': (0, 4), 'second': (1, 0)}
    >>> ask("bijective", "f32[N,M]{1,0:T(8,128)}").verdict
    <Verdict.PROVED: 'proved'>
    """
    module = property_module(name)
    if where is not None and not isinstance(where, str):
        raise LayoutError(f"where is a condition as text, e.g. 'N % 8 == 0', not {shorten(repr(where), 60)}")
    if type(effort) is not int or effort < 1:
        raise LayoutError(f"effort is a whole number of at least 1, not {shorten(repr(effort), 60)}")
    if engine is not None and engine not in ENGINES:
        raise LayoutError(f"unknown engine {engine!r}; known: {', '.join(ENGINES)}")
    if len(layouts) != module.LAYOUTS:
        many = "one layout" if module.LAYOUTS == 1 else f"{module.LAYOUTS} layouts"
        raise LayoutError(f"{name} is about {many}; got {len(layouts)}")
    read = [read_layout(value) for value in layouts]
    maps = [map_of(layout) for layout in read]
    subject = " , ".join([_subject(layout) for layout in read])
    symbols = tuple(dict.fromkeys([s for m in maps for s in m.sizes()]))
    condition = None if where is None else _where(where, symbols)
    check_options(name, options)
    options = resolve(module, maps, options)
    claims: tuple[Claim, ...] = module.claims(*maps, **options)
    figures = module.figures(*maps, **options) if hasattr(module, "figures") else {}
    if symbols:
        claims = tuple([replace(claim, where=condition, symbols=symbols) for claim in claims])
        subject += f" where {where}" if where else ""
    vacuous = _vacuous(maps, where, effort)
    if vacuous:
        return Result(name, subject, Verdict.UNKNOWN, None, vacuous, "", figures)
    engines = ENGINES if engine is None else (engine,)
    decided: dict[str, None] = {}
    unknown = ""
    if hasattr(module, "counted"):
        try:
            numbers, more = module.counted(count, *maps, **options)
            figures, claims = {**figures, **numbers}, claims + more
        except Undecided as undecided:
            unknown = f"count: {undecided}"
    for claim in claims:
        point, by, reason = _decide(claim, engines, confirm, effort)
        if point is not None:
            shown = {**point, **claim.witness}
            why = claim.explain(point, claim.numbers(point)) + (f" ({reason})" if reason else "")
            if "sizes" in point:
                why = f"with {_sizes(claim, point)}: {why}"
            return Result(name, subject, Verdict.REFUTED, shown, why, by, _guarded(figures, claims, condition))
        decided.update(dict.fromkeys(by.split("+")))
        unknown = unknown or reason
    if unknown:
        if engine is None:
            figures = _guarded(figures, claims, condition)
        return Result(name, subject, Verdict.UNKNOWN, None, unknown, "", figures)
    return Result(name, subject, Verdict.PROVED, None, "", "+".join(decided), figures)


def _guarded(figures: dict[str, object], claims: tuple[Claim, ...], where: Term | None) -> dict[str, object]:
    """The figures, and for symbolic sizes the condition under which the property does hold."""
    bounded = any(isinstance(c.violation, Outside) and c.violation.extents for c in claims)
    if bounded or not any(claim.sizes() for claim in claims):
        return figures
    from layoutproof.engine.guards import holds_when

    return {**figures, **holds_when(claims, where)}


def _decide(claim: Claim, engines: tuple[str, ...], confirm: bool, effort: int) -> tuple[Point | None, str, str]:
    """(counterexample or None, engines that decided, reason when nobody could or the counterexample may be larger)."""
    answers: dict[str, Point | None] = {}
    reasons: dict[str, str] = {}
    best: tuple[Point, str] | tuple[()] = ()
    for name, function, share in _attempts(engines, effort):
        if name in answers:
            continue
        try:
            point = _run(name, function, claim, share)
            if point is not None:
                _replay(claim, point, name, effort)
        except NotSmallest as found:
            reasons[name] = f"has a violation and cannot show that it is the smallest: {found}"
            if not best:
                _replay(claim, found.point, name, effort)
                best = (found.point, name)
            continue
        except Undecided as undecided:
            reasons[name] = str(undecided)
            continue
        except ZeroDivisionError:
            reasons[name] = "the map divides by zero"
            continue
        if not confirm:
            return point, name, ""
        answers[name] = point
        if len(answers) == 2:
            (one, point), (other, second) = answers.items()
            if point != second:
                raise InternalError(f"{one} says {point} and {other} says {second}: please report this")
            return point, f"{one}+{other}", ""
    if best and not answers:
        return *best, "a violation, not shown to be the smallest within the step budget"
    said = "; ".join(f"{name}: {reason}" for name, reason in reasons.items() if name not in answers)
    for name, point in answers.items():
        verdict = "proves" if point is None else "refutes"
        return None, "", f"only {name} {verdict} it, no second engine confirms: {said}"
    return None, "", said


def _run(name: str, function: str, claim: Claim, share: float) -> Point | None:
    decide = getattr(_solver(name), function)
    if name not in ("isl", "smt"):
        return decide(claim, share)  # type: ignore[no-any-return]
    with _NATIVE:
        return decide(claim, share)  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _attempts(engines: tuple[str, ...], effort: int) -> tuple[tuple[str, str, float], ...]:
    """(solver, its function, effort) in order; between a short and a full try of isl a glance at the first elements."""
    attempts: list[tuple[str, str, float]] = []
    for name in engines:
        if name == "isl" and "brute" in engines:
            attempts += [(name, "decide", effort / SHORT), ("brute", "glance", effort)]
        attempts.append((name, "decide", effort))
    return tuple(attempts)


def _replay(claim: Claim, point: Point, engine: str, effort: int) -> None:
    violation = claim.violation
    if isinstance(violation, Unreached) and _product(_choices(violation.map), claim, point) > ENUMERATED:
        # too many elements to look at each: that none of them is at the place is asked of another engine instead
        target = point[violation.point]
        there = IndexMap(violation.map.domain, violation.map.range, lambda index, copy, on: target)
        copies = {"copy": violation.map.copies} if violation.map.copies.extents else {}
        held = Same(At(violation.map, "element", "copy" if copies else ""), At(there, "element"))
        nobody = Claim({"element": there.domain, **copies}, held)
        fixed = replace(nobody, where=_pinned(claim, point), symbols=claim.symbols)
        others = tuple(name for name in ENGINES if name != engine)
        found, _, reason = _decide(fixed, others, False, effort)
        if reason:
            raise Undecided(f"found a hole at {target} that no second engine confirms ({reason})")
        replays = found is None
    else:
        replays = _solver("brute").violates(claim, point)
    if not replays:
        raise InternalError(
            f"{engine} found {point}, which does not violate the claim on plain ints: please report this"
        )


def _choices(m: IndexMap) -> tuple[Extent, ...]:
    return m.domain.extents + m.copies.extents


def _product(extents: tuple[Extent, ...], claim: Claim, point: Point) -> int:
    on = claim.numbers(point)
    return int(product(on.size(extent) for extent in extents))


def _pinned(claim: Claim, point: Point) -> Term | None:
    """The condition that every size has the point's value."""
    terms = [Term("==", Term("name", n), Term("int", v)) for n, v in claim.numbers(point).sizes.items()]
    return reduce(lambda left, right: Term("and", left, right), terms) if terms else None


def _vacuous(maps: list[IndexMap], where: str | None, effort: int) -> str:
    """Why there is nothing to prove, or ""."""
    for m in maps:
        for extent in _choices(m):
            if type(extent) is int and extent == 0:
                return "vacuous: the array has no elements"
    return "" if where is None else _unsatisfied(where, effort)


@lru_cache(maxsize=256)
def _unsatisfied(text: str, effort: int) -> str:
    """Why no sizes are known to satisfy the condition, or ""."""
    where = _condition(text)
    names = where.names()
    likely = (1, 2, 3, 4, 8, 16, 64, 128, 256, 1024, 4096)
    for values in itertools.islice(itertools.product(likely, repeat=len(names)), 2000):
        if where.evaluate({}, Numbers(dict(zip(names, values, strict=True)))):
            return ""
    point, _, reason = _decide(Claim({}, Holds(where)), ("isl", "smt"), False, effort)
    if reason:
        return f"cannot tell whether any sizes satisfy {where}: {reason}"
    return "" if point is not None else f"vacuous: no sizes satisfy {where}"


def _where(text: str, known: tuple[str, ...]) -> Term:
    term = _condition(text)
    for name in term.names():
        if name not in known:
            have = f"only {', '.join(known)}" if known else "no size symbols"
            raise LayoutError(f"the condition speaks of {name}, but the layouts have {have}", text=text)
    return term


@lru_cache(maxsize=256)
def _condition(text: str) -> Term:
    return parse_condition(text)


@lru_cache(maxsize=8)
def _solver(name: str) -> Any:
    return importlib.import_module(f"layoutproof.solvers.{name}")


def _subject(layout: Any) -> str:
    if isinstance(layout, IndexMap):
        return f"map of ({layout.domain})"
    return str(layout)


def _sizes(claim: Claim, point: Point) -> str:
    return ", ".join(f"{n} = {v}" for n, v in zip(claim.sizes(), point["sizes"], strict=True))
