"""Whether two jaxprs compute the same: as relations, at random points of prime fields, and as a witness on float64.

The field decides what float64 cannot: equal there means equal as functions, but for chance and for what its axioms do
not say. float64 shows what is different: nothing is refuted that it does not show. Where the two do not agree the
answer is unknown, with both. Sums of products are decided as relations, for every element: those prove, and refute what
is too large to be walked over, counted on plain integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from layoutproof.core.result import Verdict
from layoutproof.values.at_points import AtPoints, at_points
from layoutproof.values.elementwise import kind_of
from layoutproof.values.pair import (
    DRAWN,
    PLACES_DRAWN,
    Input,
    Pair,
    Retrace,
    Sides,
    chosen,
    only,
    range_of,
    with_integers,
)
from layoutproof.values.points import EQUAL
from layoutproof.values.prefixes import Begin
from layoutproof.values.readings import folded
from layoutproof.values.readings import told as read
from layoutproof.values.refusals import OFFER
from layoutproof.values.relations.decide import Related, related
from layoutproof.values.stability import Exponent, KeptSum, sums_in
from layoutproof.values.walk import Prepared
from layoutproof.values.witness import (
    MORE_DRAWS,
    SHOWN,
    WHOLE,
    WITNESSED,
    Draw,
    OnFloats,
    Witness,
    hint,
    on_floats,
    told,
    where_equal,
    where_it_begins,
    where_one_reads,
    where_others_are_largest,
)

RELATIONS = "relations"
CONFIRMED = 2**16
"""Elements of arguments and results up to which what relations prove is walked over, too."""
BETWEEN = 4
"""Further draws, where inputs lie between the numbers that others are compared with."""
CHOSEN = 4
"""Times more points than asked where each maximum of two is the one that a comparison chooses: each decides one way."""


@dataclass(frozen=True)
class Comparison:
    """The result. points: at how many the field found no difference.  axioms: by name.  drawn: of integers.

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


@dataclass(frozen=True)
class TooLarge:
    """Why nothing is walked over, "" where it is. place: of the largest array."""

    why: str = ""
    place: str = ""


SMALL = TooLarge()


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
        sides = (only(sides[0], outputs), only(sides[1], outputs))
    for i in inputs:
        if i.span is not None and i.span[0] > i.span[1]:
            return Comparison(Verdict.UNKNOWN, f"no integer is as {i.name} is assumed to be, so nothing is compared")
    question = _PairQuestions(Pair(sides, inputs, prepared, outputs), points, tick, retrace)
    if relations:
        tick("relations")
    said = related(sides, inputs, outputs) if relations else Related(None)
    if said.same is None:
        if too_large.why:
            why = f"; relations, which have no such bound, do not decide it: {said.reason}" if said.reason else ""
            return Comparison(Verdict.UNKNOWN, f"{too_large.why}; {OFFER}{why}", too_large.place)
        return question.sampled()
    notes = tuple(f"a conversion from {old} to {new} changes nothing, over the reals" for old, new in said.conversions)
    size = None if too_large.why else question.pair.elements
    return (_proved if said.same else _refuted)(question, said, notes, size)


def _proved(question: _PairQuestions, said: Related, notes: tuple[str, ...], size: int | None) -> Comparison:
    """A proof by relations, walked over too where it is small. size: of `Pair.elements`, None: nothing is walked."""
    inside = ordered = False
    if size is not None and size <= CONFIRMED:
        beside = question.sampled()
        if beside.verdict is Verdict.REFUTED:
            return replace(
                beside, verdict=Verdict.UNKNOWN, differs=None,
                reason=f"relations prove that they are the same, and a walk refutes it: {beside.reason}",
            )  # fmt: skip
        inside, ordered = beside.inside, beside.ordered
    return Comparison(
        Verdict.PROVED, decided_by=RELATIONS, notes=notes, sums=sums_in(question.pair.sides[0]), inside=inside,
        ordered=ordered,
    )  # fmt: skip


def _refuted(question: _PairQuestions, said: Related, notes: tuple[str, ...], size: int | None) -> Comparison:
    """A refutation by relations, with a witness where it is small. size: as of `_proved`."""
    at = f"[{', '.join(map(str, said.element))}]" if said.element else ""
    words = f"output {said.output}{at}: {said.operands}"
    if size is not None and size <= WITNESSED:
        beside = replace(question, hints=False).sampled()
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


@dataclass(frozen=True)
class _PairQuestions:
    """The questions to points and float64 about a pair.

    points: how many have to say something.  tick: is told what is done now.  retrace: as of `compare`.  hints: whether
    it is looked for what reaches an element that differs, which takes many walks.
    """

    pair: Pair
    points: int
    tick: Callable[[str], None]
    retrace: Retrace
    hints: bool = True

    def sampled(self) -> Comparison:
        """Their answer; integers without a given value are drawn where they decide."""
        found = self._compared()
        integers = self.pair.undrawn
        if not integers or found.verdict is not Verdict.UNKNOWN:
            return found
        # integers that decide places and branches, or are compared, are drawn several times
        small = {i.name: i.span or (0, DRAWN - 1) for i in integers}
        draws = [small for _ in range(PLACES_DRAWN)]
        # of a type as narrow as 8 bits every number is an ordinary one, and sums kept too narrow wrap at the ends
        wide = {i.name: range_of(i) for i in integers if _is_narrow(i)}
        if wide:
            ends = [{name: (span[end],) * 2 for name, span in wide.items()} for end in (1, 0)]
            draws += [draws[0] | each for each in (wide, *ends)]
        words = tuple(_drawn_words(i, small, wide) for i in integers)
        worst: Comparison | None = None
        for draw, spans in enumerate(draws):
            rng = np.random.default_rng((17, draw))
            given = [chosen(i, rng, spans[i.name]) if i in integers else i for i in self.pair.inputs]
            again = replace(self, pair=self.pair.given(given))._compared()
            again = replace(again, drawn=words, inside=False, ordered=False, race="", defined=again.complete)
            if draw >= PLACES_DRAWN and again.verdict is Verdict.REFUTED and again.witness is None:
                # they are places, and not every number of their type need be a valid one
                continue
            if worst is None or again.verdict < worst.verdict:
                worst = again
        assert worst is not None
        return worst

    def _compared(self) -> Comparison:
        """Their answer for these inputs."""
        said = at_points(self.pair, self.points, self.tick)
        shown = self._shown(said)
        axioms = tuple(sorted(said.axioms))
        if shown.outside:
            return Comparison(Verdict.REFUTED, shown.outside, shown.place)
        if said.state == "same":
            return self._of_same_points(said, shown)
        if said.state == "differs" and shown.first is not None:
            self.tick("what reaches the element")
            found = self._different(shown.first, told(shown.first), said)
            return replace(found, hint=hint(self.pair, shown.first) if self.hints else "")
        if said.state == "differs" and "max" in said.axioms and not shown.reason:
            # an identity of maxima of two, like max(a, b) + min(a, b) = a + b
            by_choice = at_points(self.pair, CHOSEN * self.points, self.tick, chosen=True)
            if by_choice.state == "same":
                same = replace(by_choice, axioms=said.axioms | by_choice.axioms, audit=said.audit)
                return self._of_same_points(same, shown)
        if said.state == "differs":
            why = (
                shown.reason
                or f"no element differs by more than {SHOWN:g} there: "
                "a constant that is read otherwise, or an identity that the field does not know"
            )
            return Comparison(Verdict.UNKNOWN, f"the field differs and float64 does not show it: {why}", axioms=axioms)
        if shown.clear is not None:
            why = f"{told(shown.clear)} (by float64 alone: {said.reason})"
            return replace(self._different(shown.clear, why, said), place=said.place, axioms=())
        return Comparison(Verdict.UNKNOWN, said.reason, said.place)

    def _different(self, witness: Witness, why: str, said: AtPoints) -> Comparison:
        """A difference, and where it begins."""
        begins = where_it_begins(self.pair, witness, self.retrace)
        axioms = tuple(sorted(said.axioms))
        return Comparison(Verdict.REFUTED, why, witness=witness, axioms=axioms, begins=begins)

    def _shown(self, said: AtPoints) -> OnFloats:
        """The outcome on float64; where the field differs, on further draws too, until one shows a difference."""
        pair = self.pair
        self.tick("float64")
        shown = on_floats(pair)
        if said.state != "differs":
            return shown
        numbers = pair.prepared.compared_with()
        among = tuple(sorted({0.0, *numbers, *(-x for x in numbers)}))
        between = [Draw(seed, 0, 1.0, among=among) for seed in range(1, BETWEEN + 1)] if numbers else []
        for draw in (*MORE_DRAWS, *between):
            if shown.first is not None or shown.reason or shown.outside:
                return shown
            self.tick(f"float64, seed {draw.seed}")
            shown = on_floats(pair, (draw,))
        if shown.first is not None or shown.reason or shown.outside:
            return shown
        for draw in where_one_reads(pair, *said.last) if said.last is not None else ():
            self.tick(f"float64, {draw.large.words if draw.large else ''} large")
            shown = on_floats(pair, (draw,))
            if shown.first is not None:
                break
        if shown.first is None and "max" in said.axioms:
            shown = replace(shown, first=where_others_are_largest(pair))
        return shown

    def _of_same_points(self, said: AtPoints, shown: OnFloats) -> Comparison:
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
            other = where_others_are_largest(self.pair)
        if other is not None:
            return self._different(
                other, f"{told(other)} (by float64 alone: points took other elements as maxima)", said
            )
        whole = (where_equal(self.pair, seed) for seed in range(1, 1 + WHOLE))
        if EQUAL in said.axioms and (tied := next(filter(None, whole), None)) is not None:
            return Comparison(
                Verdict.UNKNOWN,
                f"no difference at {said.points} points of a field, where other numbers are never equal, and float64 "
                f"shows one on whole numbers: {told(tied)}",
                witness=tied, points=said.points, axioms=axioms,
            )  # fmt: skip
        notes = [f"float64 could not run: {shown.reason}"] if shown.reason else []
        if self.pair.prepared.readings:
            notes.append(f"numbers that are read as what they may be made of: {read(self.pair.prepared.readings)}")
        exponents, sums = said.audit.found()
        return Comparison(
            Verdict.SAMPLED, points=said.points, axioms=axioms, bits=said.bits, notes=tuple(notes),
            exponents=exponents, sums=sums, inside=said.inside, ordered=said.inside and said.ordered, race=said.race,
            defined=said.defined, complete=said.complete,
        )  # fmt: skip


def _is_narrow(i: Input) -> bool:
    """Whether they are integers of a type as narrow as 8 bits, of which nothing is assumed."""
    return i.span is None and kind_of(i.dtype) == "i" and range_of(i)[1] < 2**15


def _drawn_words(i: Input, small: Mapping[str, tuple[int, int]], wide: Mapping[str, tuple[int, int]]) -> str:
    """How the numbers of an input were drawn."""
    low, high = small[i.name]
    assumed = ", as assumed" if i.span is not None else ""
    ends = f", once from {wide[i.name][0]} to {wide[i.name][1]}, once each of these alone" if i.name in wide else ""
    return f"{i.name}: {PLACES_DRAWN} times integers from {low} to {high}{assumed}{ends}"


def differs(pair: Pair) -> bool:
    """Whether float64 alone shows a difference, or an access out of bounds; integers that were not given are drawn."""
    shown = on_floats(pair.given(with_integers(pair.inputs)))
    return bool(shown.outside or shown.first)
