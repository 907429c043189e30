"""Compares the strength of two claims about the same layouts: by proof, never by their text.

A bound is an exact fraction, so `40%` and `40.0%` are one; a `where` is narrower when sizes exist that the old one has
and the new one lacks, which the engines decide; of what a file expects (`expect`, figures, a counterexample, a reason)
less is loosened. Of `expect: refuted` the sizes count the other way: a counterexample among fewer sizes says more.
The answers to two claims are not compared here: `specs` asks the old claim of the new layouts.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from layoutproof.core.amounts import amount, duration
from layoutproof.core.claim import Claim, SizeCondition
from layoutproof.core.errors import LayoutError
from layoutproof.core.expression import parse_condition
from layoutproof.core.message import extended
from layoutproof.core.numbers import Numbers
from layoutproof.core.result import Counterexample, plain
from layoutproof.core.term import Term
from layoutproof.gating import problems
from layoutproof.kernel.kernel import Table
from layoutproof.kernel.table_assumptions import WORDS
from layoutproof.properties.padding import read_bound
from layoutproof.registry.catalogue import layout_property
from layoutproof.registry.hardware import resolve
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers.decide import decide
from layoutproof.specs.spec import Check
from layoutproof.specs.spec_model import OF_VALUES, PROGRAM_CLAIMS, SAME, SUM_TYPES
from layoutproof.specs.traced import KEY

_LIKELY = (1, 2, 3, 4, 5, 7, 8, 9, 16, 64, 100, 127, 128, 256, 1000, 1024, 4096)
"""Sizes that are tried before an engine is asked; a difference at one of them is an answer."""
_MOST_TRIED = 5000
_HOW = ("engine", "effort")
"""Options that say how an answer is found, not what is claimed."""


@dataclass(frozen=True, slots=True)
class DemandChange:
    """looser, tighter: the weaker and the stronger demands, in words.  unknown: those that no engine decides.

    point: the smallest sizes that a claim no longer speaks of, where there are some.
    """

    looser: tuple[str, ...] = ()
    tighter: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    point: Counterexample | None = None

    @property
    def harmless(self) -> bool:
        """Whether the new claim is at least as strong as the old one."""
        return not self.looser and not self.unknown


def difference(old: Check, new: Check) -> DemandChange:
    """What `new` demands less and more than `old`, a claim of the same kind.

    >>> about = ("a.yaml", 1, 1, "padding", ("a",), ("f32[8]",))
    >>> difference(Check(*about, options={"at_most": "40%"}), Check(*about, options={"at_most": "99%"})).looser
    ('at_most was 40%, is 99%',)
    >>> difference(Check(*about, options={"at_most": "50%"}), Check(*about, options={"at_most": "2x"})).harmless
    True
    """
    parts = [_expectations(old, new), *(_fact(old, new) if old.is_fact else _options(old, new))]
    if old.kind == SAME:
        parts.append(_reference(old, new))
    point = next((part.point for part in parts if part.point is not None), None)
    looser, tighter, unknown = (
        tuple(text for part in parts for text in getattr(part, name)) for name in ("looser", "tighter", "unknown")
    )
    return DemandChange(looser, tighter, unknown, point)


def assumed(old: Mapping[str, Table], new: Mapping[str, Table]) -> DemandChange:
    """The added assumptions on tables, which weaken proofs under them, and the dropped ones.

    >>> assumed({"t": Table("t", low=0, high=8)}, {"t": Table("t", low=0, high=4)}).looser
    ('of table t more is assumed: 0 <= t < 4, before 0 <= t < 8',)
    """
    looser, tighter = [], []
    for name in dict.fromkeys([*old, *new]):
        one, other = (side.get(name, Table(name)) for side in (old, new))
        sides = [" and ".join(side.assumptions()) or "nothing" for side in (other, one)]
        if not _follows(one, other):
            looser.append(problems.TABLE_MORE_ASSUMED(name, sides[0], sides[1]))
        elif not _follows(other, one):
            tighter.append(problems.TABLE_LESS_ASSUMED(name, sides[0], sides[1]))
    return DemandChange(tuple(looser), tuple(tighter))


def _follows(given: Table, wanted: Table) -> bool:
    """Whether the assumptions on one table imply those on another; bounds in sizes only if they are equal."""

    def within(low: Any, high: Any) -> bool:
        return low is not None and high is not None and (low == high or (_whole(low, high) and low <= high))

    low = wanted.low is None or within(wanted.low, given.low)
    high = wanted.high is None or within(given.high, wanted.high)
    # every value among the first entries is more than every value somewhere; of two counts only alike ones are compared
    first = not wanted.onto or wanted.first is None or str(given.first) == str(wanted.first)
    total = wanted.total is None or (given.total is not None and given.total <= wanted.total)
    return low and high and first and total and all(getattr(given, word) or not getattr(wanted, word) for word in WORDS)


def _whole(*values: object) -> bool:
    return all(type(value) is int for value in values)


def _expectations(old: Check, new: Check) -> DemandChange:
    looser: list[str] = []
    tighter: list[str] = []
    if old.expect != new.expect:
        # a refuted or unknown claim may be proved later; a proof is never given up for less
        more = old.expect == "unknown" or (old.expect == "refuted" and new.expect != "unknown")
        (tighter if more else looser).append(problems.EXPECT_CHANGED(old.expect, new.expect))
    elif old.counterexample is not None and new.counterexample is None:
        looser.append(problems.NO_COUNTEREXAMPLE())
    elif old.counterexample is None and new.counterexample is not None:
        tighter.append(problems.COUNTEREXAMPLE_EXPECTED())
    if old.expect == new.expect and old.reason != new.reason:
        (tighter if old.reason in new.reason else looser).append(problems.REASON_CHANGED(old.reason, new.reason))
    _names(old.figures, new.figures, "figure", looser, tighter)
    return DemandChange(tuple(looser), tuple(tighter))


def _names(
    old: Mapping[str, object], new: Mapping[str, object], what: str, looser: list[str], tighter: list[str]
) -> None:
    looser += [problems.NOT_DEMANDED(what, name) for name in old if name not in new]
    tighter += [problems.DEMANDED(what, name) for name in new if name not in old]


def _fact(old: Check, new: Check) -> list[DemandChange]:
    """Of a fact: another value is for the engines to judge, another question is another fact."""
    looser: list[str] = []
    tighter: list[str] = []
    for key in dict.fromkeys([*old.fact, *new.fact]):
        was, now = old.fact.get(key), new.fact.get(key)
        if plain(was) == plain(now):
            continue
        if key == "is":
            if old.kind == "sizes" and isinstance(was, Mapping) and isinstance(now, Mapping):
                _names(was, now, "size", looser, tighter)
        elif key == "error" and str(was or "") in str(now or ""):
            tighter.append(problems.ERROR_CHANGED(_text(was), _text(now)))
        else:
            looser.append(problems.VALUE_CHANGED(key, _text(was), _text(now)))
    return [DemandChange(tuple(looser), tuple(tighter))]


def _reference(old: Check, new: Check) -> DemandChange:
    """Of a comparison: another reference is another demand, whatever it computes."""
    was, now = (
        {key: value for key, value in check.layouts[1][KEY].items() if key in ("trace", "kwargs")}  # type: ignore[index]
        for check in (old, new)
    )
    return DemandChange() if was == now else DemandChange((problems.REFERENCE_CHANGED(_text(was), _text(now)),))


def _options(old: Check, new: Check) -> list[DemandChange]:
    names = [n for n in dict.fromkeys([*old.options, *new.options]) if n not in _HOW]
    return [_option(name, old, new) for name in names if plain(old.options.get(name)) != plain(new.options.get(name))]


def _option(name: str, old: Check, new: Check) -> DemandChange:
    was, now = old.options.get(name), new.options.get(name)
    said = problems.VALUE_CHANGED(name, _text(was), _text(now))
    if old.expect == "unknown":
        return DemandChange()
    if old.expect != new.expect:
        return DemandChange((said,))
    if name == "where" and new.kind not in OF_VALUES:
        return _where(old, new, said)
    if new.kind in OF_VALUES:
        order = _of_values(name, was, now)
    elif new.kind in PROGRAM_CLAIMS:
        order = _of_program(name, was, now, new)
    else:
        order = _of_layouts(name, was, now, new)
    if old.expect == "refuted" and name not in ("confirm", "target", "compiler", "permutation", "owner"):
        order = -order  # a claim that fails under a wide bound fails under a tight one, not conversely
    return DemandChange((said,)) if order < 0 else DemandChange((), (said,)) if order > 0 else DemandChange()


def _of_layouts(name: str, was: object, now: object, check: Check) -> int:
    """As `_compared`, of an option of a claim about layouts; -1 too where another thing is asked."""
    if name == "at_most":
        return _compared(*(_factor(str(text), check) if text is not None else None for text in (was, now)))
    if name == "within":
        return _extents(was, now, check)
    if name == "fusion" and isinstance(was, Sequence | None) and isinstance(now, Sequence | None):
        return 1 if set(now or ()) < set(was or ()) else -1
    if type(was or False) is bool and type(now or False) is bool:
        return bool(now) - bool(was)  # a demand such as `confirm`, `dense` or `balanced`
    if was is None and name not in ("target", "compiler"):
        return -1 if name == "permutation" else 1
    return -1  # another question: the old one is no longer asked


def _of_values(name: str, was: Any, now: Any) -> int:
    """As `_compared`, of an option of a claim about values: fewer points, outputs or sizes demand less."""
    if name == "points":
        return _compared(*(Fraction(3 if many is None else many) for many in (now, was)))
    if name == "dtype":
        return _compared(*(Fraction(SUM_TYPES[str(dtype)]) for dtype in (now, was)))
    if name == "outputs":
        # of none named, all are meant
        return 1 if now is None or (was is not None and {*was} < {*now}) else -1
    if name == "where":
        return 1 if {*(now or ())} < {*(was or ())} else -1
    return -1  # other inputs, or a gradient instead of a value


_WIDER = {"collectives": ("kind", "axes"), "vmem": ("of",)}
"""Options of claims about programs that say which things are meant: without them all are."""


def _of_program(name: str, was: object, now: object, check: Check) -> int:
    """As `_compared`, of an option of a claim about a program; -1 too where another thing is meant."""
    if name in ("at_most", "entry_at_most", "above"):
        return _compared(*(None if text is None else _bound(name, text, check.kind) for text in (was, now)))
    ones, others = (
        frozenset(each if isinstance(each, list | tuple) else () if each is None else (each,)) for each in (was, now)
    )
    if name in _WIDER.get(check.kind, ()):
        # of nothing named, all are meant
        return 0 if ones == others else 1 if not others or (ones and ones < others) else -1
    if name == "of" and check.kind == "donated":
        return 0 if ones == others else 1 if ones < others else -1
    return -1


def _bound(name: str, text: object, kind: str) -> Fraction | None:
    """A bound of a claim about a program: a share, a count, a time, or bytes. LayoutError for what is none of these."""
    if kind == "program_padding":
        return read_bound(str(text))[0]
    if kind == "step_time_bound":
        return Fraction(duration(text))
    if kind in ("estimated_cycles", "flops") and isinstance(text, int):
        return Fraction(text)
    return Fraction(amount(text, least=0))


def _compared(was: Fraction | None, now: Fraction | None) -> int:
    """-1 where the new bound lets more through, 1 where less, 0 where they are the same; None bounds nothing."""
    if was is None or now is None:
        return (was is None) - (now is None)
    return (was > now) - (was < now)


def _factor(text: str, check: Check) -> Fraction | None:
    """How often the unpadded bytes a bound of `padding` lets be allotted; None for a bound that lets all through."""
    number, unit = read_bound(text)
    if unit == "x":
        return number
    if number >= 100:
        return None
    try:
        memory = map_of(read_layout(check.layouts[0])).memory
    except LayoutError:
        memory = None
    # an element may be stored wider than its type is: a share of places is then another share of bytes
    width = Fraction(memory.bits, memory.natural_bits) if memory is not None else Fraction(1)
    return width / (1 - number / 100)


def _extents(was: object, now: object, check: Check) -> int:
    """As `_compared`, of the bounds of `in_bounds`, with target names resolved."""
    try:
        m = map_of(read_layout(check.layouts[0]))
        claims = layout_property(check.kind).claims
        ranges = dict(zip(m.range.names, m.range.extents, strict=True))
        sides = [{**ranges, **(resolve(claims, [m], {"within": x})["within"] or {})} for x in (was, now)]
    except LayoutError:
        return -1
    if all(sides[1][axis] == extent for axis, extent in sides[0].items()):
        return 0
    pairs = [(sides[0][axis], sides[1][axis]) for axis in ranges]
    return 1 if all(a == b or (_whole(a, b) and b <= a) for a, b in pairs) else -1


def _where(old: Check, new: Check, said: str) -> DemandChange:
    """Whether the new condition lacks sizes that the old one has, or has sizes that the old one lacks."""
    before, after = (_condition(check.options.get("where")) for check in (old, new))
    sides = (before, after) if old.expect == "proved" else (after, before)
    lost, why = _sizes_in(sides[0], sides[1])
    if lost is not None:
        sizes = ", ".join(f"{name} = {value}" for name, value in lost.items())
        held = "it says nothing any more of" if old.expect == "proved" else "it now speaks also of"
        return DemandChange((extended(said, f": {held} {sizes}"),), point={"sizes": lost})
    if why:
        return DemandChange(unknown=(problems.NARROWER_UNKNOWN(said, why),))
    won, why = _sizes_in(sides[1], sides[0])
    return DemandChange((), (said,)) if won is not None or why else DemandChange()


def _condition(text: object) -> Term | None:
    return parse_condition(text) if isinstance(text, str) else None


def _sizes_in(one: Term | None, other: Term | None) -> tuple[dict[str, int] | None, str]:
    """Sizes of the first condition that the second lacks, None where there are none; and why it is unknown."""
    if other is None:
        return None, ""
    outside = Term("not", other) if one is None else Term("and", one, Term("not", other))
    names = outside.names()
    for values in itertools.islice(itertools.product(_LIKELY, repeat=len(names)), _MOST_TRIED):
        if outside.evaluate({}, Numbers(dict(zip(names, values, strict=True)))):
            return dict(zip(names, values, strict=True)), ""
    claim = Claim({}, SizeCondition(outside), symbols=names)
    point, _, why, *_ = decide(claim)
    if point is not None:
        return dict(zip(names, point["sizes"], strict=True)), ""
    return None, why


def _text(value: object) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
