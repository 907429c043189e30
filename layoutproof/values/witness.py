"""Two programs on float64: draws of their inputs, and a witness where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np

from layoutproof.values.dependence import one_sided
from layoutproof.values.elementwise import kind_of
from layoutproof.values.floats import SHIFTS, Floats, Real
from layoutproof.values.known import Known, first_place
from layoutproof.values.pair import Input, Pair, Retrace
from layoutproof.values.points import Field, Points
from layoutproof.values.prefixes import Begin, begins
from layoutproof.values.refusals import ChainTooShort, Collision, NotModelled, OutOfBounds

Array = np.ndarray[Any, Any]

WITNESSED = 2**22
"""Elements of arguments and results up to which a walk shows the element of what relations refute, and up to which it
is looked for where a difference begins."""
WHOLE = 8
"""Draws of whole numbers, where what points never show is what happens at equal ones."""


@dataclass(frozen=True)
class Large:
    """Elements of an input that are larger than all others, or smaller. input: its position.  at: their indices.

    words: for people.
    """

    input: int
    at: tuple[Any, ...]
    sign: int
    words: str

    def of(self, values: Sequence[Real | Known]) -> list[Real | Known]:
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
MOST_LARGE, LARGE_ELEMENTS = 48, 2**23
"""How many walks look for a difference where an element is the largest that was not, and elements in them together."""
SHOWN, CLEAR = 1e-6, 1e-3
"""Relative differences on float64: from the first on it confirms the field, from the second it speaks for itself."""
NEAR = 8.0
"""A difference counts from so many times what it makes of the outputs that the numbers of the code are others which
round to the same float32."""


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


@dataclass
class OnFloats:
    """The outcome on float64. first: a difference.  clear: one at scale 1 that is no rounding.  outside: an access."""

    first: Witness | None = None
    clear: Witness | None = None
    reason: str = ""
    outside: str = ""
    place: str = ""


def on_floats(pair: Pair, draws: Sequence[Draw] = DRAWS) -> OnFloats:
    """The outcome on float64 on some draws, of which all are looked at."""
    found = OnFloats()
    for draw in draws:
        numbers = _floats(draw, pair)
        try:
            values = _inputs(pair, numbers, draw)
            ours, _ = pair.walked(numbers, 0, values)
        except NotModelled as refusal:
            found.reason, found.place = refusal.what, refusal.place
            return found
        except OutOfBounds as refusal:
            found.outside, found.place = refusal.said, refusal.place
            return found
        try:
            theirs, _ = pair.walked(numbers, 1, values)
        except NotModelled as refusal:
            found.reason, found.place = refusal.what, refusal.place
            return found
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            _look(found, pair, draw, numbers, k, a, b)
        held = tuple(v.array for v in values)
        words = "" if draw.large is None else draw.large.words
        found.first, found.clear = (_on(w, held, words) for w in (found.first, found.clear))
    return found


def _look(found: OnFloats, pair: Pair, draw: Draw, numbers: Floats, k: int, a: Real, b: Real) -> None:
    """Notes whether an output differs on a draw. k: its position among those that are compared."""

    def differing(beyond: Array | float = 0.0) -> tuple[Witness | None, Witness | None]:
        first, clear = found.first, found.clear
        if first is None:
            first = _differs(a.array, b.array, SHOWN, pair.position(k), numbers, beyond)
        if clear is None and draw.scale == 1.0:
            clear = _differs(a.array, b.array, CLEAR, pair.position(k), numbers, beyond)
        return first, clear

    if draw.large is not None:
        # an overflow of one side is no difference over the reals
        a = replace(a, array=np.where(np.isinf(a.array), b.array, a.array))
    first, clear = differing()
    if first is not found.first or clear is not found.clear:
        # near to what rounding may make: of the numbers of the code, and on the way
        least = np.zeros(a.shape)
        for shifted in SHIFTS:
            moved = _floats(draw, pair, shifted)
            near = pair.results(moved, _inputs(pair, moved, draw))
            by = sum(_moved(x.array, y[k].array) for x, y in zip((a, b), near, strict=True))
            least = np.maximum(least, NEAR * by)
        found.first, found.clear = differing(least)


def _floats(of: Draw | Witness, pair: Pair, shifted: int = 0) -> Floats:
    """The numbers of a draw, or of the one that shows a difference."""
    return Floats(of.seed, of.scale, of.sign, shifted, numbers=pair.prepared.numbers, among=of.among)


def _moved(x: Array, y: Array) -> Array:
    """How far numbers have moved: any way where they became one, or none."""
    with np.errstate(all="ignore"):
        far = np.abs(x - y)
    return np.where(np.isfinite(x) & np.isfinite(y), far, np.where(np.isfinite(x) == np.isfinite(y), 0.0, np.inf))


def _inputs(pair: Pair, numbers: Floats, draw: Draw) -> list[Real | Known]:
    """The inputs of a draw."""
    values = pair.draw(numbers)
    return values if draw.large is None else draw.large.of(values)


def where_one_reads(pair: Pair, numbers: Points, output: int, index: tuple[int, ...]) -> Iterator[Draw]:
    """Draws in which an input is large where one side alone reads it, as a point that differs shows.

    numbers: the point.  output, index: the element that differs there.
    """
    numbers = numbers.again()

    def agree(values: Sequence[Field | Known]) -> bool:
        ours, theirs = (results[output] for results in pair.results(numbers, values))
        return not numbers.differs(ours, theirs)[0][index]

    with suppress(NotModelled, OutOfBounds, ChainTooShort, Collision):
        values = pair.draw(numbers)
        for k, given in enumerate(pair.inputs):
            drawn = values[k]
            if isinstance(drawn, Known) or drawn.span is not None or not prod(given.shape):
                continue
            box = [(0, n) for n in given.shape]
            for axis in range(len(box)):
                box[axis] = _narrowest(agree, numbers, values, k, box, axis)
            if box == [(0, n) for n in given.shape]:
                continue
            at, words = tuple(slice(*each) for each in box), _part(given, box)
            yield from (Draw(1, 0, 1.0, Large(k, at, sign, words)) for sign in (1, -1))


def _narrowest(
    agree: Callable[[Sequence[Field | Known]], bool], numbers: Points, values: list[Field | Known], k: int,
    box: list[tuple[int, int]], axis: int,
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

        return agree([numbers.map(cast(Field, v), same) if j == k else v for j, v in enumerate(values)])

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


def where_others_are_largest(pair: Pair) -> Witness | None:
    """A difference where other elements of the inputs are the largest: points take one element of a set as its maximum,
    and a set may have more elements than there are points.

    Along each axis one index after the other, of the first row the index itself, of each later one the next.
    """
    inputs = pair.inputs
    axes = [
        (k, axis) for k, i in enumerate(inputs) for axis, n in enumerate(i.shape)
        if i.value is None and kind_of(i.dtype) == "f" and n > 1 and 0 not in i.shape
    ]  # fmt: skip
    many = min(MOST_LARGE, LARGE_ELEMENTS // max(pair.elements, 1)) // max(2 * len(axes), 1)
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
                shown = on_floats(pair, (Draw(1, 0, 1.0, Large(k, tuple(at), sign, words)),))
                if shown.reason or shown.outside:
                    return None
                if shown.clear is not None:
                    return shown.clear
    return None


def where_equal(pair: Pair, seed: int = 1) -> Witness | None:
    """A difference on whole numbers, of which many are equal."""
    numbers = Floats(seed, whole=True, numbers=pair.prepared.numbers)
    with suppress(NotModelled, OutOfBounds):
        values = pair.draw(numbers)
        for k, (a, b) in enumerate(zip(*pair.results(numbers, values), strict=True)):
            found = _differs(a.array, b.array, CLEAR, pair.position(k), numbers)
            if found is not None:
                return _on(found, tuple(v.array for v in values))
    return None


def _on(witness: Witness | None, inputs: tuple[Array, ...], large: str = "") -> Witness | None:
    """A witness that was just found with the inputs on which it is one."""
    return witness if witness is None or witness.inputs else replace(witness, inputs=inputs, large=large)


def _inputs_of(witness: Witness, numbers: Floats, pair: Pair) -> list[Real | Known]:
    """The inputs on which a witness is one; of another scale likewise, where none was made large."""
    values = pair.draw(numbers)
    if not witness.large:
        return values
    return [replace(v, array=a) for v, a in zip(values, witness.inputs, strict=True)]


def _part(changed: Input, box: Sequence[tuple[int, int]]) -> str:
    """A part of an input, in words."""
    ranges = (":" if (a, b) == (0, n) else f"{a}:{b}" for (a, b), n in zip(box, changed.shape, strict=True))
    return f"{changed.name}[{', '.join(ranges)}]"


def hint(pair: Pair, witness: Witness) -> str:
    """Which part of an input reaches the element on one side alone, in words; nothing where none was found."""
    if not (np.isfinite(witness.ours) and np.isfinite(witness.theirs)):
        return ""
    numbers = _floats(witness, pair)
    output = pair.compared(witness.output)

    def element(values: Sequence[Real | Known]) -> tuple[float, float]:
        ours, theirs = (results[output].array[witness.index] for results in pair.results(numbers, values))
        return float(ours), float(theirs)

    found = one_sided(element, _inputs_of(witness, numbers, pair))
    if found is None:
        return ""
    part = _part(pair.inputs[found.input], found.box)
    if found.ours:
        return f"a change of {part} changes this element, and not the reference's"
    return f"a change of {part} changes the reference's element, and not this one"


def where_it_begins(pair: Pair, witness: Witness, retrace: Retrace) -> Begin | None:
    """Where a difference begins, on the draw that shows it; nothing of large arrays, which several more walks need."""
    if pair.elements > WITNESSED:
        return None
    output = pair.compared(witness.output)
    for scale in dict.fromkeys((1.0, witness.scale)):
        numbers = _floats(replace(witness, scale=scale), pair)
        with suppress(NotModelled, OutOfBounds):
            values = _inputs_of(witness, numbers, pair)
            found = begins(numbers, pair.sides, values, pair.prepared, pair.outputs, output, retrace)
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
