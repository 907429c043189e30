"""Whether two jaxprs compute the same: as relations, at random points of prime fields, and as a witness on float64.

The field decides what float64 cannot: equal there means equal as functions, but for chance and for what its axioms do
not say. float64 shows what is different: nothing is refuted that it does not show. Where the two do not agree the
answer is unknown, with both. Sums of products are decided as relations, for every element: those prove, and refute what
is too large to be walked over, counted on plain integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from layoutproof.core.result import Verdict
from layoutproof.ir.program import Literal, Program, Variable
from layoutproof.values.control import called
from layoutproof.values.dependence import one_sided
from layoutproof.values.elementwise import kind_of
from layoutproof.values.fields import Depth
from layoutproof.values.floats import SHIFTS, Floats
from layoutproof.values.known import Known, first_place
from layoutproof.values.points import EQUAL, Points
from layoutproof.values.prefixes import Begin, begins
from layoutproof.values.readings import folded
from layoutproof.values.readings import told as read
from layoutproof.values.refusals import OFFER, TOO_DEEP, ChainTooShort, Collision, NotModelled, OutOfBounds
from layoutproof.values.relations.decide import Related, related
from layoutproof.values.sets import NOBODY
from layoutproof.values.stability import Exponent, KeptSum, StabilityAudit, sums_in
from layoutproof.values.walk import Prepared, Walk

Array = np.ndarray[Any, Any]

RELATIONS = "relations"
CONFIRMED = 2**16
"""Elements of arguments and results up to which what relations prove is walked over, too."""
WITNESSED = 2**22
"""Likewise of what they refute: a walk shows the element on float64. And of what is looked through for where a
difference begins."""
MOST_POINTS, MOST_ASIDE = 8, 4
"""Times more points than asked are tried where roots of what is no square leave elements without an answer, and where a
comparison came out one way alone."""
WHOLE = 4
"""Draws of whole numbers, where what points never show is what happens at equal ones."""
CHOSEN = 4
"""Times more points than asked where each maximum of two is the one that a comparison chooses: each decides one way."""


@dataclass(frozen=True)
class Large:
    """Elements of an input that are larger than all others, or smaller. input: its position.  at: their indices.

    words: for people.
    """

    input: int
    at: tuple[Any, ...]
    sign: int
    words: str

    def of(self, values: Sequence[Any]) -> list[Any]:
        """The inputs, with these elements large."""
        array = np.array(values[self.input].array)
        array[self.at] = self.sign * (BEYOND + np.abs(array[self.at]))
        return [replace(v, array=array) if k == self.input else v for k, v in enumerate(values)]


class Draw(NamedTuple):
    """One walk on float64: the seed, the sign that all inputs have (0 = either), their standard deviation.

    among: numbers between which inputs lie, and beyond them, as often in one place as in another.
    """

    seed: int
    sign: int
    scale: float
    large: Large | None = None
    among: tuple[float, ...] = ()


BEYOND = 8.0
"""From which on elements are that are to be the largest: those of standard deviation 1 are below it."""
DRAWS = (Draw(1, 0, 1.0), Draw(1, 0, 1e-3), Draw(1, 0, 30.0), Draw(1, 1, 1.0), Draw(1, -1, 1.0))
MORE_DRAWS = tuple(Draw(seed, 0, 1.0) for seed in range(2, 10))
"""Further ones, where the field differs and these show nothing: a row has its maximum in another place."""
BETWEEN = 4
"""Further ones, where inputs lie between the numbers that others are compared with."""
MOST_LARGE, LARGE_ELEMENTS = 48, 2**23
"""How many walks look for a difference where an element is the largest that was not, and elements in them together."""
SHOWN, CLEAR = 1e-6, 1e-3
"""Relative differences on float64: from the first on it confirms the field, from the second it speaks for itself."""
NEAR = 8.0
"""A difference counts from so many times what it makes of the outputs that the numbers of the code are others which
round to the same float32."""
DRAWN = 4
"""Integers that nobody gave are drawn below it where they decide places or branches."""
PLACES_DRAWN = 3
"""How often they are drawn."""


@dataclass(frozen=True)
class Input:
    """One array of the arguments. name: for people.  value: where it is given; None of what is drawn.

    span: the least and the greatest of integers that are drawn, where that is assumed.  sharding: of JAX, with which
    the function that is asked about is traced, and not its reference.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    value: Any = None
    span: tuple[int, int] | None = None
    sharding: Any = None


@dataclass(frozen=True)
class Witness:
    """Where two differ on float64. output: its position.  index: the first element in row-major order.

    different: how many elements.  rows: how many rows of the last dimension have one.  of: elements in all.
    inputs: on which they do.
    sign: 1 or -1 where all inputs have it, else 0.  large: which elements of the inputs are the largest, in words, ""
    where none were made so.  among: as of `Draw`.
    """

    output: int
    index: tuple[int, ...]
    ours: float
    theirs: float
    different: int
    of: int
    rows: int
    seed: int
    scale: float
    inputs: tuple[Array, ...] = field(default=(), compare=False, repr=False)
    sign: int = 0
    large: str = ""
    among: tuple[float, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """What came of it. points: at how many the field found no difference.  axioms: by name.  drawn: of integers.

    exponents, sums: of the one that is asked about, where no difference was found.  hint: of a difference, what reaches
    the element on one side alone, in words.  inside, ordered, race, defined: what was seen of its places, copies and
    integers, as of `Walk`, for those that were given; complete likewise, whatever was given.  decided_by: the engine
    that proves, or refutes without a witness.  operands: of a difference of relations, which products, in words.
    differs: where, as (output, element).  second: what JAX says of a witness, in words.  again: whether it may come
    out otherwise when it is asked again, because memory ran out.
    begins: of a difference that float64 shows, where it begins in the kernel; None where there is none.
    """

    verdict: Verdict
    reason: str = ""
    place: str = ""
    points: int = 0
    axioms: tuple[str, ...] = ()
    witness: Witness | None = None
    bits: int = 0
    drawn: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    exponents: tuple[Exponent, ...] = ()
    sums: tuple[KeptSum, ...] = ()
    hint: str = ""
    inside: bool = False
    ordered: bool = False
    race: str = ""
    defined: bool = False
    complete: bool = False
    decided_by: str = ""
    operands: str = ""
    differs: tuple[int, tuple[int, ...]] | None = None
    second: str = ""
    again: bool = False
    begins: Begin | None = None


@dataclass
class _Tally:
    """Of one output, over points: where some point differs and says so, or differs without saying, and how many agree
    and say so."""

    differs: Array
    doubtful: Array
    agrees: Array

    def undecided(self, points: int) -> Array:
        """Which elements fewer points say something of than were asked for, of those of which one said nothing."""
        found: Array = self.doubtful & (self.agrees < points)
        return found


@dataclass
class _Field:
    """What the points say. told: whether some told which element a maximum is.  chose: whether some drew which of
    several is the greatest.  last: the point that differs, with the element that does: (position among those compared,
    index)."""

    state: str
    reason: str = ""
    place: str = ""
    points: int = 0
    axioms: set[str] = field(default_factory=set)
    bits: int = 0
    audit: StabilityAudit = field(default_factory=StabilityAudit)
    inside: bool = True
    ordered: bool = True
    race: str = ""
    defined: bool = True
    told: bool = False
    chose: bool = False
    last: tuple[Points, int, tuple[int, ...]] | None = None
    complete: bool = True


Sides = tuple[Program, Program]
Retrace = Callable[[list[tuple[int, ...]]], Program | None]
"""The reference at other shapes of the inputs; None where it cannot be traced there."""


@dataclass(frozen=True)
class TooLarge:
    """Why nothing is walked over, "" where it is. place: of the largest array."""

    why: str = ""
    place: str = ""


SMALL = TooLarge()


def elements_of(sides: Sides, inputs: Sequence[Input]) -> int:
    """Elements of the arguments, and of the results of both."""
    shapes = [*(i.shape for i in inputs), *(a.shape for side in sides for a in side.out_avals)]
    return sum(map(prod, shapes))


def compare(
    sides: Sides,
    inputs: Sequence[Input],
    points: int = 3,
    outputs: Sequence[int] | None = None,
    tick: Callable[[str], None] = lambda what: None,
    relations: bool = True,
    too_large: TooLarge = SMALL,
    retrace: Retrace = lambda shapes: None,
    prepared: Prepared | None = None,
) -> Comparison:
    """Whether two programs of the same inputs give the same outputs.

    sides: the one that is asked about, and its reference.
    outputs: positions of those that are compared, None for all.  tick: is told what is done now.  relations: whether
    these are asked first.  too_large: why nothing is walked over, so that what relations do not decide is unknown.
    retrace: the reference at other sizes, for where a difference begins.  prepared: the programs of all walks, by which
    the caller knows afterwards which of them were walked over.
    """
    if prepared is None:
        prepared = Prepared(lambda grid, ids: tick(f"program {ids} of {grid}"), folded(*sides))
    if outputs is not None:
        sides = (_only(sides[0], outputs), _only(sides[1], outputs))
    for i in inputs:
        if i.span is not None and i.span[0] > i.span[1]:
            return Comparison(Verdict.UNKNOWN, f"no integer is as {i.name} is assumed to be, so nothing is compared")
    if relations:
        tick("relations")
    said = related(sides, inputs, outputs) if relations else Related(None)
    if said.same is None:
        if too_large.why:
            why = f"; relations, which have no such bound, do not decide it: {said.reason}" if said.reason else ""
            return Comparison(Verdict.UNKNOWN, f"{too_large.why}; {OFFER}{why}", too_large.place)
        return _sampled(sides, inputs, prepared, points, outputs, tick, retrace)
    size = elements_of(sides, inputs)
    notes = tuple(f"a conversion from {old} to {new} changes nothing, over the reals" for old, new in said.conversions)
    if said.same:
        inside = ordered = False
        if size <= CONFIRMED and not too_large.why:
            beside = _sampled(sides, inputs, prepared, points, outputs, tick, retrace)
            if beside.verdict is Verdict.REFUTED:
                return replace(
                    beside, verdict=Verdict.UNKNOWN, differs=None,
                    reason=f"relations prove that they are the same, and a walk refutes it: {beside.reason}",
                )  # fmt: skip
            inside, ordered = beside.inside, beside.ordered
        return Comparison(
            Verdict.PROVED, decided_by=RELATIONS, notes=notes, sums=sums_in(sides[0]), inside=inside,
            ordered=ordered,
        )  # fmt: skip
    at = f"[{', '.join(map(str, said.element))}]" if said.element else ""
    words = f"output {said.output}{at}: {said.operands}"
    if size <= WITNESSED and not too_large.why:
        beside = _sampled(sides, inputs, prepared, points, outputs, tick, retrace, hint=False)
        if beside.verdict is Verdict.SAMPLED:
            return replace(
                beside, verdict=Verdict.UNKNOWN, operands=words,
                reason=f"no difference at {beside.points} points of a field, and relations show one: {words}",
            )  # fmt: skip
        if beside.verdict is Verdict.REFUTED:
            return replace(beside, operands=words)
    return Comparison(
        Verdict.REFUTED, words, notes=notes, decided_by=RELATIONS, operands=words, differs=(said.output, said.element)
    )  # fmt: skip


def _sampled(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, points: int, outputs: Sequence[int] | None,
    tick: Callable[[str], None], retrace: Retrace, hint: bool = True,
) -> Comparison:  # fmt: skip
    """What points say. hint: whether it is looked for where they differ, which takes many walks."""
    integers = [i for i in inputs if i.value is None and kind_of(i.dtype) in "ib"]
    found = _compare(sides, inputs, prepared, points, outputs, tick, retrace, hint)
    if not integers or found.verdict is not Verdict.UNKNOWN:
        return found
    # what decides places and branches, or is compared, is a number: drawn several times
    small = {i.name: i.span or (0, DRAWN - 1) for i in integers}
    draws = [small for _ in range(PLACES_DRAWN)]
    # of a type as narrow as 8 bits every number is an ordinary one, and sums that are kept too narrow wrap at the ends
    wide = {i.name: _range(i) for i in integers if i.span is None and kind_of(i.dtype) == "i" and _range(i)[1] < 2**15}
    if wide:
        ends = [{name: (span[end],) * 2 for name, span in wide.items()} for end in (1, 0)]
        draws += [draws[0] | each for each in (wide, *ends)]
    said = tuple(
        f"{i.name}: {PLACES_DRAWN} times integers from {small[i.name][0]} to {small[i.name][1]}"
        + (", as assumed" if i.span is not None else "")
        + (f", once from {wide[i.name][0]} to {wide[i.name][1]}, once each of these alone" if i.name in wide else "")
        for i in integers
    )
    worst: Comparison | None = None
    for draw, spans in enumerate(draws):
        rng = np.random.default_rng((17, draw))
        chosen = [_given(i, rng, spans[i.name]) if i in integers else i for i in inputs]
        again = _compare(sides, chosen, prepared, points, outputs, tick, retrace, hint)
        again = replace(again, drawn=said, inside=False, ordered=False, race="", defined=again.complete)
        if draw >= PLACES_DRAWN and again.verdict is Verdict.REFUTED and again.witness is None:
            # they are places, and nobody says that every number of their type is one
            continue
        if worst is None or again.verdict < worst.verdict:
            worst = again
    assert worst is not None
    return worst


def _range(i: Input) -> tuple[int, int]:
    """Of integers: the least and the greatest number, as is assumed, or of the type."""
    if i.span is not None:
        return i.span
    info = np.iinfo(_held(i))
    return int(info.min), int(info.max)


def _held(i: Input) -> Any:
    """The type of NumPy in which they are held."""
    return i.dtype if getattr(i.dtype, "kind", "") in "iu" else np.int8


def _given(i: Input, rng: np.random.Generator, span: tuple[int, int]) -> Input:
    if kind_of(i.dtype) == "b":
        return Input(i.name, i.shape, i.dtype, rng.integers(0, 2, i.shape).astype(bool))
    return Input(i.name, i.shape, i.dtype, rng.integers(*span, i.shape, endpoint=True).astype(_held(i)))


def _compare(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, points: int, outputs: Sequence[int] | None,
    tick: Callable[[str], None], retrace: Retrace, hint: bool,
) -> Comparison:  # fmt: skip
    said = _at_points(sides, inputs, prepared, points, outputs, tick)
    shown = _shown(sides, inputs, prepared, outputs, said, tick)
    axioms = tuple(sorted(said.axioms))
    if shown.outside:
        return Comparison(Verdict.REFUTED, shown.outside, shown.place)
    if said.state == "same":
        return _of_same_points(sides, inputs, prepared, outputs, said, shown, retrace)
    if said.state == "differs" and shown.first is not None:
        tick("what reaches the element")
        return Comparison(
            Verdict.REFUTED, told(shown.first), witness=shown.first, axioms=axioms,
            hint=_hint(sides, inputs, prepared, outputs, shown.first) if hint else "",
            begins=_begins(sides, inputs, prepared, outputs, shown.first, retrace),
        )  # fmt: skip
    if said.state == "differs" and "max" in said.axioms and not shown.reason:
        # an identity of maxima of two, like max(a, b) + min(a, b) = a + b
        chosen = _at_points(sides, inputs, prepared, CHOSEN * points, outputs, tick, chosen=True)
        if chosen.state == "same":
            same = replace(chosen, axioms=said.axioms | chosen.axioms, audit=said.audit)
            return _of_same_points(sides, inputs, prepared, outputs, same, shown, retrace)
    if said.state == "differs":
        why = (
            shown.reason
            or f"no element differs by more than {SHOWN:g} there: "
            "a constant that is read otherwise, or an identity that the field does not know"
        )
        return Comparison(Verdict.UNKNOWN, f"the field differs and float64 does not show it: {why}", axioms=axioms)
    if shown.clear is not None:
        return Comparison(
            Verdict.REFUTED, f"{told(shown.clear)} (by float64 alone: {said.reason})", said.place, witness=shown.clear,
            begins=_begins(sides, inputs, prepared, outputs, shown.clear, retrace),
        )  # fmt: skip
    return Comparison(Verdict.UNKNOWN, said.reason, said.place)


def _shown(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, outputs: Sequence[int] | None, said: _Field,
    tick: Callable[[str], None],
) -> _Shown:  # fmt: skip
    """What float64 shows; where the field differs, of further draws too, until one shows it."""
    tick("float64")
    shown = _on_floats(sides, inputs, prepared, outputs)
    if said.state != "differs":
        return shown
    numbers = prepared.compared_with()
    among = tuple(sorted({0.0, *numbers, *(-x for x in numbers)}))
    between = [Draw(seed, 0, 1.0, among=among) for seed in range(1, BETWEEN + 1)] if numbers else []
    for draw in (*MORE_DRAWS, *between):
        if shown.first is not None or shown.reason or shown.outside:
            return shown
        tick(f"float64, seed {draw.seed}")
        shown = _on_floats(sides, inputs, prepared, outputs, (draw,))
    if shown.first is not None or shown.reason or shown.outside:
        return shown
    for draw in _where_one_reads(sides, inputs, prepared, outputs, said):
        tick(f"float64, {draw.large.words if draw.large else ''} large")
        shown = _on_floats(sides, inputs, prepared, outputs, (draw,))
        if shown.first is not None:
            break
    if shown.first is None and "max" in said.axioms:
        shown = replace(shown, first=_where_others_are_largest(sides, inputs, prepared, outputs))
    return shown


def _of_same_points(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, outputs: Sequence[int] | None, said: _Field,
    shown: _Shown, retrace: Retrace,
) -> Comparison:  # fmt: skip
    """What is answered where no point of the field differs: float64 may all the same, where other elements are the
    largest, or equal."""
    axioms = tuple(sorted(said.axioms))
    if shown.clear is not None and not said.chose:
        return Comparison(
            Verdict.UNKNOWN,
            f"no difference at {said.points} points of a field, and float64 shows one: {told(shown.clear)}",
            witness=shown.clear, points=said.points, axioms=axioms,
        )  # fmt: skip
    other = shown.clear
    if other is None and (said.told or said.chose):
        other = _where_others_are_largest(sides, inputs, prepared, outputs)
    if other is not None:
        why = f"{told(other)} (by float64 alone: points took other elements as maxima)"
        return Comparison(
            Verdict.REFUTED, why, witness=other, axioms=axioms,
            begins=_begins(sides, inputs, prepared, outputs, other, retrace),
        )  # fmt: skip
    whole = (where_equal(sides, inputs, prepared, outputs, seed) for seed in range(1, 1 + WHOLE))
    if EQUAL in said.axioms and (tied := next(filter(None, whole), None)) is not None:
        return Comparison(
            Verdict.UNKNOWN,
            f"no difference at {said.points} points of a field, where other numbers are never equal, and float64 "
            f"shows one on whole numbers: {told(tied)}",
            witness=tied, points=said.points, axioms=axioms,
        )  # fmt: skip
    notes = [f"float64 could not run: {shown.reason}"] if shown.reason else []
    if prepared.readings:
        notes.append(f"numbers that are read as what they may be made of: {read(prepared.readings)}")
    exponents, sums = said.audit.found()
    return Comparison(
        Verdict.SAMPLED, points=said.points, axioms=axioms, bits=said.bits, notes=tuple(notes), exponents=exponents,
        sums=sums, inside=said.inside, ordered=said.inside and said.ordered, race=said.race,
        defined=said.defined, complete=said.complete,
    )  # fmt: skip


def told(witness: Witness) -> str:
    """A difference in words."""
    at = f"[{', '.join(map(str, witness.index))}]" if witness.index else ""
    ours, theirs = (number(x) for x in (witness.ours, witness.theirs))
    rows = "1 row" if witness.rows == 1 else f"{witness.rows:,} rows"
    return (
        f"output {witness.output}{at} is {ours}, and the reference's {theirs}; "
        f"{witness.different:,} of {witness.of:,} elements differ, in {rows}"
    )


def number(x: float) -> str:
    """A number of float64 as people read it."""
    return "undefined" if np.isnan(x) else f"{x:.9g}"


def _only(program: Program, outputs: Sequence[int]) -> Program:
    """A program of which some results alone are wanted, so that what only the others rest on is not walked over."""
    kept = tuple(v if k in outputs else Literal(np.zeros(()), v.aval) for k, v in enumerate(program.outvars))
    wanted = {v for v in kept if isinstance(v, Variable)}
    equations = []
    for equation in reversed(program.eqns):
        inner = called(equation)
        used = [k for k, v in enumerate(equation.outvars) if v in wanted]
        if inner is not None and used and len(used) < len(equation.outvars):
            (name,) = (name for name, value in equation.params.items() if value is inner)
            equation = replace(equation, params={**equation.params, name: _only(inner, used)})
        if used or equation.effects:
            wanted.update(v for v in equation.invars if isinstance(v, Variable))
        equations.append(equation)
    return replace(program, outvars=kept, eqns=tuple(reversed(equations)))


def _chosen(values: Sequence[Any], outputs: Sequence[int] | None) -> list[Any]:
    return [values[k] for k in (range(len(values)) if outputs is None else outputs)]


def drawn(numbers: Any, inputs: Sequence[Input]) -> list[Any]:
    """What is given, and of the rest a draw."""
    found = []
    for i in inputs:
        kind = kind_of(i.dtype)
        if i.value is not None and kind in "ib":
            found.append(Known(np.asarray(i.value)))
        elif i.value is not None and not hasattr(i.value, "astype"):
            found.append(Known(i.value))
        elif kind == "b":
            raise NotModelled("truth values that are data")
        elif kind == "i":
            found.append(numbers.draw(i.shape, _range(i)))
        elif kind == "c":
            raise NotModelled("complex numbers")
        else:
            found.append(numbers.draw(i.shape))
    return found


def _run(
    numbers: Any, jaxpr: Any, values: Sequence[Any], prepared: Prepared, outputs: Sequence[int] | None,
    said: _Field | None = None,
) -> list[Any]:  # fmt: skip
    """The outputs. said: is told of exponentials, sums and places."""
    walk = Walk(numbers, prepared, said.audit if said is not None and numbers.bounds else None)
    with np.errstate(all="ignore"):
        found = [walk.data(v) for v in _chosen(walk.run(jaxpr, values), outputs)]
    if said is not None:
        said.inside, said.ordered = said.inside and walk.inside, said.ordered and walk.ordered
        said.defined, said.complete = said.defined and walk.defined, said.complete and walk.complete
        said.race = said.race or walk.race
    return found


def _at_points(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, points: int, outputs: Sequence[int] | None,
    tick: Callable[[str], None], chosen: bool = False,
) -> _Field:  # fmt: skip
    """What random points say. chosen: as of `points.Points`."""
    depth, seed, done = Depth(prepared.levels), 0, 0
    found = _Field("same")
    tallies: list[_Tally] = []
    preferred = NOBODY
    taken: Array | None = None
    # what is at most 0 is the same at every point, and only ours is told: after the first one, and of the reference
    # where ours has such, it is asked where that may explain a difference
    bounds, of_both, lean = True, False, True
    while done < MOST_POINTS * points:
        seed += 1
        if seed > 8 * points + 8:
            return _Field("unknown", "sets of maxima meet by chance at every point", "")
        tick(f"point {done + 1}")
        try:
            whose = ""
            numbers = Points(
                seed, depth.levels, bounds, lean, depth.oracles, prepared.readings, prepared.compared_with(), chosen
            )
            numbers.preferred, asked = preferred, bounds
            values = drawn(numbers, inputs)
            ours = _run(numbers, sides[0], values, prepared, outputs, found)
            mine, numbers.told = numbers.told, set()
            whose = "the reference: "
            numbers.bounds = asked = bounds and (of_both or not numbers.bounded)
            theirs = _run(numbers, sides[1], values, prepared, outputs)
            answers = [numbers.differs(a, b) for a, b in zip(ours, theirs, strict=True)]
            if prepared.compares_with(numbers.met):
                # the point once more, with the order of these
                seed -= 1
                continue
            if any(numbers.lost(v) for v in (*ours, *theirs)):
                whose = ""
                raise NotModelled("a mask value or an infinity is computed with in a way that the model does not say")
        except ChainTooShort:
            seed -= 1
            # where one was left, perhaps a maximum is wanted at a level at which it was not taken
            lean, deeper = not numbers.left, depth if numbers.left else depth.deeper()
            if deeper is None:
                return _Field("unknown", TOO_DEEP)
            depth, prepared.levels = deeper, max(prepared.levels, deeper.levels)
            continue
        except Collision:
            continue
        except NotModelled as refusal:
            if not asked:
                bounds, of_both, seed = True, True, seed - 1
                continue
            return _Field("unknown", whose + refusal.what, refusal.place)
        except OutOfBounds as refusal:
            return _Field("unknown", whose + refusal.said, refusal.place)
        if not asked and any((different & says).any() for different, says in answers):
            bounds, of_both, seed = True, True, seed - 1
            continue
        found.chose = found.chose or numbers.chose
        found.told = found.told or bool(mine | numbers.told)
        if not preferred.size and (preferred := numbers.apart(mine, numbers.told)).size:
            # these decide whether the two tell the same: the point once more, where a maximum is one of them
            seed -= 1
            continue
        preferred = NOBODY
        found.axioms |= numbers.axioms
        found.bits = int(numbers.fields[-1].p).bit_length() - 1
        done += 1
        bounds = of_both = False
        for k, (different, says) in enumerate(answers):
            if k == len(tallies):
                none = np.zeros(different.shape, bool)
                tallies.append(_Tally(none, none, none.astype(int)))
            t = tallies[k]
            tallies[k] = _Tally(
                t.differs | different & says, t.doubtful | different & ~says, t.agrees + (~different & says)
            )
        found.points = done
        for k, t in enumerate(tallies):
            if not t.differs.any():
                continue
            found.state = "differs"
            index = first_place(t.differs)
            found.last = None if index is None else (numbers, k, index)
            return found
        # what one comparison decides for a whole array, points have to decide in both ways
        ever = np.array(numbers.taken, bool).reshape(-1, 3)
        taken = ever if taken is None or taken.shape != ever.shape else taken | ever
        aside = done < MOST_ASIDE * points and bool((taken[:, 0] & ~taken[:, 1:].all(1)).any())
        if done >= points and not aside and not any(t.undecided(points).any() for t in tallies):
            return found
    left = sum(int(t.undecided(points).sum()) for t in tallies)
    return _Field("unknown", f"{left} elements rest on square roots that exist at fewer than {points} of {done} points")


def with_integers(inputs: Sequence[Input]) -> list[Input]:
    """The inputs with numbers for the integers that nobody gave."""
    rng = np.random.default_rng((17, 0))
    return [
        _given(i, rng, i.span or (0, DRAWN - 1)) if i.value is None and kind_of(i.dtype) in "ib" else i for i in inputs
    ]


def differs(sides: Sides, inputs: Sequence[Input], outputs: Sequence[int] | None) -> bool:
    """Whether float64 alone shows a difference, or an access out of bounds; integers that nobody gave are drawn."""
    shown = _on_floats(sides, with_integers(inputs), Prepared(), outputs)
    return bool(shown.outside or shown.first)


def not_same(sides: Sides, inputs: Sequence[Input], outputs: Sequence[int] | None) -> str:
    """Why one random point does not show that two are the same; "" where it does."""
    if any(i.value is None and kind_of(i.dtype) in "ib" for i in inputs):
        return "integers that are data"
    said = _at_points(sides, inputs, Prepared(), 1, outputs, lambda what: None)
    if said.state == "same" and said.inside and said.defined:
        return ""
    return said.reason or ("the field differs" if said.state == "differs" else "an access out of bounds")


@dataclass
class _Shown:
    """What float64 shows. first: a difference.  clear: one at scale 1 that is no rounding.  outside: an access."""

    first: Witness | None = None
    clear: Witness | None = None
    reason: str = ""
    outside: str = ""
    place: str = ""


def _on_floats(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, outputs: Sequence[int] | None,
    draws: Sequence[Draw] = DRAWS,
) -> _Shown:  # fmt: skip
    found = _Shown()
    for draw in draws:
        scale, large = draw.scale, draw.large
        numbers = _floats(draw, prepared)
        try:
            values = _large(drawn(numbers, inputs), draw)
            ours = _run(numbers, sides[0], values, prepared, outputs)
        except NotModelled as refusal:
            found.reason, found.place = refusal.what, refusal.place
            return found
        except OutOfBounds as refusal:
            found.outside, found.place = refusal.said, refusal.place
            return found
        try:
            theirs = _run(numbers, sides[1], values, prepared, outputs)
        except NotModelled as refusal:
            found.reason, found.place = f"the reference: {refusal.what}", refusal.place
            return found
        except OutOfBounds as refusal:
            found.reason, found.place = f"the reference: {refusal.said}", refusal.place
            return found
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            position = k if outputs is None else outputs[k]
            if large is not None:
                # an overflow of one side is no difference over the reals
                a = replace(a, array=np.where(np.isinf(a.array), b.array, a.array))
            first = found.first or _differs(a.array, b.array, SHOWN, position, numbers)
            clear = found.clear or (_differs(a.array, b.array, CLEAR, position, numbers) if scale == 1.0 else None)
            if first is not found.first or clear is not found.clear:
                # near to what rounding may make: of the numbers of the code, and on the way
                least = np.zeros(a.shape)
                for shifted in SHIFTS:
                    moved = _floats(draw, prepared, shifted)
                    values = _large(drawn(moved, inputs), draw)
                    near = [_run(moved, side, values, prepared, outputs)[k].array for side in sides]
                    by = sum(_moved(x.array, y) for x, y in zip((a, b), near, strict=True))
                    least = np.maximum(least, NEAR * by)
                first = found.first or _differs(a.array, b.array, SHOWN, position, numbers, least)
                if clear is not found.clear:
                    clear = _differs(a.array, b.array, CLEAR, position, numbers, least)
            found.first, found.clear = first, clear
        held = tuple(v.array for v in values)
        words = "" if large is None else large.words
        found.first, found.clear = (_on(w, held, words) for w in (found.first, found.clear))
    return found


def _floats(of: Draw | Witness, prepared: Prepared, shifted: int = 0) -> Floats:
    """The numbers of a draw, or of the one that shows a difference."""
    return Floats(of.seed, of.scale, of.sign, shifted, numbers=prepared.numbers, among=of.among)


def _moved(x: Array, y: Array) -> Array:
    """How far numbers have moved: any way where they became one, or none."""
    with np.errstate(all="ignore"):
        far = np.abs(x - y)
    return np.where(np.isfinite(x) & np.isfinite(y), far, np.where(np.isfinite(x) == np.isfinite(y), 0.0, np.inf))


def _large(values: list[Any], draw: Draw) -> list[Any]:
    """The inputs of a draw."""
    return values if draw.large is None else draw.large.of(values)


def _where_one_reads(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, outputs: Sequence[int] | None, said: _Field
) -> Iterator[Draw]:
    """Draws in which an input is large where one side alone reads it, as the point that differs shows."""
    if said.last is None:
        return
    numbers, output, index = said.last
    numbers = numbers.again()

    def agree(values: Sequence[Any]) -> bool:
        ours, theirs = (_run(numbers, side, values, prepared, outputs)[output] for side in sides)
        return not numbers.differs(ours, theirs)[0][index]

    with suppress(NotModelled, OutOfBounds, ChainTooShort, Collision):
        values = drawn(numbers, inputs)
        for k, given in enumerate(inputs):
            if isinstance(values[k], Known) or values[k].span is not None or not prod(given.shape):
                continue
            box = [(0, n) for n in given.shape]
            for axis in range(len(box)):
                box[axis] = _narrowest(agree, numbers, values, k, box, axis)
            if box == [(0, n) for n in given.shape]:
                continue
            at, words = tuple(slice(*each) for each in box), _part(given, box)
            yield from (Draw(1, 0, 1.0, Large(k, at, sign, words)) for sign in (1, -1))


def _narrowest(
    agree: Callable[[Sequence[Any]], bool], numbers: Points, values: list[Any], k: int, box: list[tuple[int, int]],
    axis: int,
) -> tuple[int, int]:  # fmt: skip
    """The fewest indices of an axis of an input, halved again and again, without which two sides agree: where these
    elements are what another index has, which both sides read."""

    def without(part: tuple[int, int], other: int) -> bool:
        at = [slice(*each) for each in box]
        at[axis] = slice(*part)

        def same(array: Array) -> Array:
            changed = np.array(array)
            changed[tuple(at)] = np.take(array, [other], axis)[
                tuple(s if d != axis else slice(None) for d, s in enumerate(at))
            ]
            return changed

        return agree([numbers.map(v, same) if j == k else v for j, v in enumerate(values)])

    found = box[axis]
    for other in (0, found[1] - 1):
        low, high = box[axis]
        while high - low > 1:
            middle = (low + high) // 2
            part = next((p for p in ((low, middle), (middle, high)) if without(p, other)), None)
            if part is None:
                break
            low, high = part
        if high - low < found[1] - found[0]:
            found = low, high
    return found


def _where_others_are_largest(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, outputs: Sequence[int] | None
) -> Witness | None:
    """A difference where other elements of the inputs are the largest: points take one element of a set as its maximum,
    and a set may have more elements than there are points.

    Along each axis one index after the other, of the first row the index itself, of each later one the next.
    """
    size = elements_of(sides, inputs)
    axes = [
        (k, axis) for k, i in enumerate(inputs) for axis, n in enumerate(i.shape)
        if i.value is None and kind_of(i.dtype) == "f" and n > 1 and 0 not in i.shape
    ]  # fmt: skip
    many = min(MOST_LARGE, LARGE_ELEMENTS // max(size, 1)) // max(2 * len(axes), 1)
    for k, axis in axes:
        shape = inputs[k].shape
        others = [n for d, n in enumerate(shape) if d != axis]
        rows, extent = np.arange(prod(others)), shape[axis]
        # the last index and the first, then others, each with as many rows as there are
        apart = max(1, -(-extent // max(many, 1)))
        for start in [*dict.fromkeys((extent - 1, 0, *range(apart, extent, apart)))][:many]:
            at = [*np.unravel_index(rows, tuple(others))] if others else []
            at.insert(axis, (start + rows) % extent)
            words = f"{inputs[k].name} along axis {axis}, from index {start} on one in each row,"
            for sign in (1, -1):
                shown = _on_floats(
                    sides, inputs, prepared, outputs, (Draw(1, 0, 1.0, Large(k, tuple(at), sign, words)),)
                )
                if shown.reason or shown.outside:
                    return None
                if shown.clear is not None:
                    return shown.clear
    return None


def where_equal(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, outputs: Sequence[int] | None, seed: int = 1
) -> Witness | None:  # fmt: skip
    """A difference on whole numbers, of which many are equal."""
    numbers = Floats(seed, whole=True, numbers=prepared.numbers)
    with suppress(NotModelled, OutOfBounds):
        values = drawn(numbers, inputs)
        ours, theirs = (_run(numbers, side, values, prepared, outputs) for side in sides)
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            found = _differs(a.array, b.array, CLEAR, k if outputs is None else outputs[k], numbers)
            if found is not None:
                return _on(found, tuple(v.array for v in values))
    return None


def _on(witness: Witness | None, inputs: tuple[Array, ...], large: str = "") -> Witness | None:
    """A witness that was just found with the inputs on which it is one."""
    return witness if witness is None or witness.inputs else replace(witness, inputs=inputs, large=large)


def _inputs_of(witness: Witness, numbers: Floats, inputs: Sequence[Input]) -> list[Any]:
    """The inputs on which a witness is one; of another scale likewise, where none was made large."""
    values = drawn(numbers, inputs)
    if not witness.large:
        return values
    return [replace(v, array=a) for v, a in zip(values, witness.inputs, strict=True)]


def _part(changed: Input, box: Sequence[tuple[int, int]]) -> str:
    """A part of an input, in words."""
    ranges = (":" if (a, b) == (0, n) else f"{a}:{b}" for (a, b), n in zip(box, changed.shape, strict=True))
    return f"{changed.name}[{', '.join(ranges)}]"


def _hint(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, outputs: Sequence[int] | None, witness: Witness
) -> str:
    """Which part of an input reaches the element on one side alone, in words; nothing where none was found."""
    if not (np.isfinite(witness.ours) and np.isfinite(witness.theirs)):
        return ""
    numbers = _floats(witness, prepared)
    output = witness.output if outputs is None else list(outputs).index(witness.output)

    def element(values: Sequence[Any]) -> tuple[float, float]:
        ours, theirs = (_run(numbers, side, values, prepared, outputs)[output].array[witness.index] for side in sides)
        return float(ours), float(theirs)

    found = one_sided(element, _inputs_of(witness, numbers, inputs))
    if found is None:
        return ""
    part = _part(inputs[found.input], found.box)
    if found.ours:
        return f"a change of {part} changes this element, and not the reference's"
    return f"a change of {part} changes the reference's element, and not this one"


def _begins(
    sides: Sides, inputs: Sequence[Input], prepared: Prepared, outputs: Sequence[int] | None, witness: Witness,
    retrace: Retrace,
) -> Begin | None:  # fmt: skip
    """Where a difference begins, on the draw that shows it; nothing of large arrays, which several more walks need."""
    if elements_of(sides, inputs) > WITNESSED:
        return None
    output = witness.output if outputs is None else list(outputs).index(witness.output)
    for scale in dict.fromkeys((1.0, witness.scale)):
        numbers = _floats(replace(witness, scale=scale), prepared)
        with suppress(NotModelled, OutOfBounds):
            found = begins(numbers, sides, _inputs_of(witness, numbers, inputs), prepared, outputs, output, retrace)
            if found is not None:
                return found
    return None


def _differs(
    a: Array, b: Array, least: float, output: int, numbers: Floats, beyond: Array | float = 0.0
) -> Witness | None:
    """The first element that differs relatively by more than `least`, and by more than `beyond` as it is."""
    if not a.size:
        return None
    known = np.isfinite(b)
    size = np.where(np.isfinite(a), np.maximum(np.abs(a), np.abs(b)), np.abs(b))
    typical = np.median(np.abs(b[known])) if known.any() else 0.0
    with np.errstate(all="ignore"):
        far = np.abs(a - b) > np.maximum(least * np.maximum(size, 1e-3 * typical), beyond)
    # an overflow of one side at a large scale is no difference over the reals; undefined memory is, at any
    odd = ~np.isfinite(a) & known & (numbers.scale <= 1.0)
    different = known & np.where(np.isfinite(a), far, odd)
    index = first_place(different)
    if index is None:
        return None
    rows = int(different.reshape(-1, a.shape[-1]).any(-1).sum()) if a.ndim else 1
    return Witness(
        output, index, float(a[index]), float(b[index]), int(different.sum()), a.size, rows,
        numbers.seed, numbers.scale, sign=numbers.sign, among=numbers.among,
    )  # fmt: skip
