"""Ask one question: which property, of which layouts; get a verdict with its counterexample or its engine.

Order of engines: `digits` (structural, microseconds), `bits` (xor, by rank over GF(2)), `isl` (exact, natural
coordinates), `smt` (what isl cannot), `brute` (small boxes). The first that decides answers; a refutation is replayed
on plain ints before anyone sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from layoutproof.core.claim import Claim, Outside
from layoutproof.core.errors import LayoutError, Undecided, shorten, unknown_name
from layoutproof.core.finding import Finding
from layoutproof.core.index_map import IndexMap
from layoutproof.core.message import message_of
from layoutproof.core.result import Verdict
from layoutproof.core.size import product
from layoutproof.core.term import Term
from layoutproof.questions import problems
from layoutproof.registry.catalogue import check_options, is_of_kernels, layout_property
from layoutproof.registry.hardware import resolve
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers.conclude import concluded
from layoutproof.solvers.decide import ENGINES
from layoutproof.solvers.vacuity import vacuous, where_term


def ask(
    name: str,
    *layouts: object,
    where: str | None = None,
    engine: str | None = None,
    confirm: bool = False,
    effort: int = 1,
    **options: object,
) -> Finding:
    """Decide whether a property holds of one layout or of a pair.

    For symbolic sizes that do not all satisfy the property, the figures say for which ones it holds, where a condition
    of a simple form is found: `holds_when`, and `holds_when_is`: "exact" (the property fails for all other sizes) or
    "sufficient".

    Args:
        name: The property, e.g. "injective". `layoutproof explain` lists them.
        *layouts: One layout or two, as the property asks: text, a mapping `{language: value}`, an object that
            `read_layout` takes, or a map.
        where: A condition on size symbols, e.g. "N % 8 == 0". The answer is then for all sizes >= 1 that satisfy it.
        engine: Ask this engine only: digits, bits, isl, smt or brute.
        confirm: Demand that two engines agree.
        effort: A whole number >= 1 that multiplies the engines' budgets of steps.
        **options: The property's own, e.g. at_most="2%" or permutation=(1, 0).

    Returns:
        The finding: `verdict` (proved, refuted or unknown), `reason`, `counterexample` where refuted, `figures`.

    Raises:
        LayoutError: The input is wrong. No library's error reaches the caller.

    >>> ask("injective", "f32[3,5] strides (4,1)").counterexample
    {'first': (0, 4), 'second': (1, 0)}
    >>> ask("bijective", "f32[N,M]{1,0:T(8,128)}").verdict
    <Verdict.PROVED: 'proved'>
    """
    _check_how(where, engine, effort)
    check_options(name, options)
    if is_of_kernels(name):
        options |= {"where": where, "engine": engine, "confirm": confirm, "effort": effort}
        return _of_kernel(name, layouts, options)
    asked = layout_property(name)
    if len(layouts) != asked.layouts:
        raise _wrong_number(name, layouts, asked.layouts)
    try:
        read = [read_layout(value) for value in layouts]
    except Undecided as undecided:
        subject = " , ".join([shorten(str(value), 120) for value in layouts])
        return Finding(name, subject, message_of(undecided), verdict=Verdict.UNKNOWN)
    maps = [map_of(layout) for layout in _admitted(read)]
    subject = " , ".join([_subject(layout) for layout in read])
    derivation, symbols = _derivation(read), _symbols(maps)
    condition = None if where is None else where_term(where, symbols)
    options = resolve(asked.claims, maps, options)
    claims = asked.claims(*maps, **options) if options else _claims(asked.claims, *maps)
    figures = asked.figures(*maps, **options) if asked.figures is not None else {}
    if symbols:
        claims = tuple([replace(claim, where=condition, symbols=symbols) for claim in claims])
        subject += f" where {where}" if where else ""
    nothing = vacuous(maps, where, effort)
    if nothing:
        return Finding(name, subject, nothing, verdict=Verdict.UNKNOWN, figures=figures, derivation=derivation)
    unknown = ""
    if asked.counted is not None:
        figures, claims, unknown = _counted(asked.counted, maps, options, figures, claims)
    said = concluded(claims, (ENGINES if engine is None else (engine,), confirm, effort), unknown)
    if said.verdict is Verdict.PROVED and asked.vacuous is not None:
        nothing = asked.vacuous(*maps, **options)
        said = said.left_open(nothing) if nothing else said
    elif symbols and (said.verdict is Verdict.REFUTED or (said.verdict is Verdict.UNKNOWN and engine is None)):
        figures = _guarded(figures, claims, condition)
    return said.finding(name, subject, figures, derivation=derivation)


def _check_how(where: object, engine: object, effort: object) -> None:
    """LayoutError for what is no way to ask."""
    if where is not None and not isinstance(where, str):
        raise LayoutError(problems.WHERE_TYPE(shorten(repr(where), 60)))
    if type(effort) is not int or effort < 1:
        raise LayoutError(problems.EFFORT(shorten(repr(effort), 60)))
    if engine is not None and engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)


def _wrong_number(name: str, layouts: tuple[object, ...], wanted: int) -> LayoutError:
    """The error that a property is about another number of layouts."""
    many = "one layout" if wanted == 1 else f"{wanted} layouts"
    return LayoutError(problems.LAYOUT_COUNT(name, many, len(layouts)))


def _derivation(read: list[object]) -> tuple[str, ...]:
    """How layouts were made from what was given, each step once."""
    steps = [step for layout in read for step in getattr(layout, "derivation", ())]
    return tuple(dict.fromkeys(steps)) if steps else ()


def _symbols(maps: list[IndexMap]) -> tuple[str, ...]:
    """The sizes that maps leave open."""
    sizes = [size for m in maps for size in m.sizes()]
    return tuple(dict.fromkeys(sizes)) if sizes else ()


def _counted(
    counted: Callable[..., tuple[Mapping[str, object], tuple[Claim, ...]]],
    maps: list[IndexMap],
    options: Mapping[str, object],
    figures: Mapping[str, object],
    claims: tuple[Claim, ...],
) -> tuple[Mapping[str, object], tuple[Claim, ...], str]:
    """The figures and claims with what counting adds to them; and why counting is out of reach, "" where it is not."""
    from layoutproof.solvers.count import count

    try:
        numbers, more = counted(count, *maps, **options)
    except Undecided as undecided:
        return figures, claims, f"count: {undecided}"
    return {**figures, **numbers}, claims + more, ""


@lru_cache(maxsize=16)
def _claims(make: Callable[..., tuple[Claim, ...]], *maps: IndexMap) -> tuple[Claim, ...]:
    """The claims of some maps, kept with all that is known of each: programs ask the same of one layout many times."""
    return make(*maps)


def _admitted(read: list[Any]) -> list[Any]:
    """The layouts, an Axe layout without a shape with that of the layout which it is compared with.

    Such a layout is for every shape with as many elements (arXiv:2601.19092, section 2.3: shape admission).
    """
    if len(read) != 2:
        return read
    from layoutproof.layouts.axe.layout import AxeLayout

    if not any(isinstance(layout, AxeLayout) and layout.shape is None for layout in read):
        return read
    one, other = read
    left, right = (map_of(layout).domain.extents for layout in read)
    if left == right or product(left) != product(right):
        return read
    if isinstance(one, AxeLayout) and one.shape is None:
        return [one.on(right), other]
    return [one, other.on(left)]


def _guarded(figures: Mapping[str, object], claims: tuple[Claim, ...], where: Term | None) -> Mapping[str, object]:
    """The figures, and for symbolic sizes the condition under which the property does hold."""
    bounded = any(isinstance(c.violation, Outside) and c.violation.extents for c in claims)
    if bounded or not any(claim.sizes() for claim in claims):
        return figures
    from layoutproof.solvers.guards import holds_when

    return {**figures, **holds_when(claims, where)}


def _of_kernel(name: str, layouts: tuple[object, ...], how: dict[str, object]) -> Finding:
    from layoutproof.pallas.judge import answer, kernel_of

    if len(layouts) != 1:
        raise LayoutError(problems.LAYOUT_COUNT(name, "one kernel", len(layouts)))
    return answer(name, kernel_of(layouts[0], name), **how)


def _subject(layout: object) -> str:
    if isinstance(layout, IndexMap):
        return f"map of ({layout.domain})"
    return str(layout)
