"""Digests of a program's values at fixed random points.

Who has kept them knows of a later program whether it computes the same at these points, without the program that was.
Equal digests say what a comparison at points says: points, draws and numbers are those of `compare`. Digests that
differ say nothing: one function can be written so that one of its forms needs other points, or reads a number of the
code otherwise, which a comparison of both sees and a digest does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.core.files import read
from layoutproof.ir.program import Program
from layoutproof.values.at_points import MOST_POINTS, OneWay
from layoutproof.values.elementwise import kind_of
from layoutproof.values.fields import Depth
from layoutproof.values.floats import Floats
from layoutproof.values.kinds import D, NumberKind
from layoutproof.values.known import data_of
from layoutproof.values.pair import DRAWN, PLACES_DRAWN, Input, drawn
from layoutproof.values.points import EQUAL, KIND, LOST, NUMBER, ROOT, Field, Points
from layoutproof.values.refusals import TOO_DEEP, ChainTooShort, Collision, NotModelled, OutOfBounds
from layoutproof.values.walk import Prepared, Walk
from layoutproof.values.witness import CLEAR, DRAWS

Array = np.ndarray[Any, Any]

_READ = ("values", "ir", "pallas/from_jax")
"""The packages that make values of a program."""


@dataclass(frozen=True)
class Values:
    """The values of a program at some points. digest: of its values in the fields.

    points: how many, of the fields.  floats: of each output and each draw of float64 its sum with fixed weights,
    relative to that of the magnitudes, and the logarithm of the latter; None where it is no number.
    """

    digest: str
    points: int
    floats: tuple[tuple[float | None, float | None], ...]

    def same_as(self, other: Values) -> bool:
        """Whether there is no difference at these points, nor a clear one on float64."""
        mine, theirs = (
            np.array([[np.nan if x is None else x for x in row] for row in side.floats]) for side in (self, other)
        )
        if (self.digest, self.points, mine.shape) != (other.digest, other.points, theirs.shape):
            return False
        return bool(np.allclose(mine, theirs, rtol=0, atol=CLEAR, equal_nan=True))


@cache
def evaluator() -> str:
    """A digest of what computes values here: another one may draw or read otherwise."""
    top = Path(__file__).parents[1]
    found = hashlib.sha256(np.__version__.encode())
    for package in _READ:
        for path in sorted((top / package).rglob("*.py")):
            found.update(path.relative_to(top).as_posix().encode() + b"\0" + read(path, 2**24))
    return found.hexdigest()[:16]


def values_of(program: Program, inputs: Sequence[Input], points: int = 3) -> Values:
    """The values of a program at fixed points. Raises NotModelled for what no comparison at points could answer."""
    try:
        return _values(program, [inputs], points)
    except NotModelled:
        if not any(map(_is_open, inputs)):
            raise
    # integers that decide places and branches are drawn several times, as in a comparison
    return _values(program, list(_draws(inputs)), points)


def _is_open(i: Input) -> bool:
    return i.value is None and kind_of(i.dtype) in "ib"


def _draws(inputs: Sequence[Input]) -> Iterator[list[Input]]:
    for draw in range(PLACES_DRAWN):
        rng = np.random.default_rng((17, draw))
        found = []
        for i in inputs:
            low, high = (0, 1) if kind_of(i.dtype) == "b" else i.span or (0, DRAWN - 1)
            value = rng.integers(low, high, i.shape, endpoint=True)
            found.append(replace(i, value=value.astype(np.dtype(i.dtype))) if _is_open(i) else i)
        yield found


def _values(program: Program, given: Sequence[Sequence[Input]], points: int) -> Values:
    found, floats = hashlib.sha256(), []
    for inputs in given:
        try:
            _at_points(program, inputs, points, found)
            floats += list(_on_floats(program, inputs))
        except OutOfBounds as refusal:
            raise NotModelled(refusal.said, refusal.place) from None
    return Values(found.hexdigest()[:32], points, tuple(floats))


def _at_points(program: Program, inputs: Sequence[Input], points: int, found: hashlib._Hash) -> None:
    """Puts the outputs at each point into a digest, until each element has said something."""
    prepared = Prepared()
    depth, seed, done = Depth(), 0, 0
    said: list[Array] = []
    one_way = OneWay()
    while done < MOST_POINTS * points:
        seed += 1
        if seed > 8 * points + 8:
            raise NotModelled("sets of maxima meet by chance at every point")
        numbers = Points(seed, depth.levels, False, False, depth.oracles)
        try:
            outputs = _run(program, numbers, inputs, prepared)
        except ChainTooShort:
            # as a comparison does: the fewest levels, since a root has to exist at each
            deeper = depth.deeper()
            if deeper is None:
                raise NotModelled(TOO_DEEP) from None
            depth, seed = deeper, seed - 1
            continue
        except Collision:
            continue
        if EQUAL in numbers.axioms:
            raise NotModelled("whether two numbers are equal decides, which points alone do not ask")
        if any(numbers.lost(each) for each in outputs):
            raise NotModelled("a mask value or an infinity is computed with in a way that the model does not say")
        done += 1
        found.update(f"{seed} {depth.levels} {depth.oracles}".encode())
        here = [_put(each, found) for each in outputs]
        said = [a | b for a, b in zip(said, here, strict=True)] if said else here
        aside = one_way.after(numbers)
        if done >= points and not aside and all(each.all() for each in said):
            return
    if not all(each.all() for each in said):
        raise NotModelled("elements rest on square roots that exist at none of the points")


def _put(value: Field, found: hashlib._Hash) -> Array:
    """Puts an array into a digest; whether each element says something: a root of what is no square does not."""
    level, residue = [(k, r) for k, r in enumerate(value.residues) if r is not None][-1]
    kinds = value.kinds
    says = (((value.marks & ROOT) == 0) | (value.signs != 0)) & (kinds != LOST)
    found.update(f"{level} {value.shape}".encode())
    found.update(np.ascontiguousarray(np.where(says & (kinds == NUMBER), residue, 0)).astype("<i8").tobytes())
    found.update(np.ascontiguousarray(np.where(says, kinds, KIND + 1)).astype(np.uint8).tobytes())
    return np.asarray(says)


def _on_floats(program: Program, inputs: Sequence[Input]) -> Iterator[tuple[float | None, float | None]]:
    """The float64 value of each output, in few digits; the weights show elements that change places."""
    prepared = Prepared()
    for draw in DRAWS:
        if draw.scale != 1.0:
            continue
        try:
            numbers = Floats(draw.seed, draw.scale, draw.sign, numbers=prepared.numbers)
            outputs = _run(program, numbers, inputs, prepared)
        except NotModelled:
            # as in a comparison, which then says so and rests on the fields
            return
        for each in outputs:
            array = np.asarray(each.array, np.float64).reshape(-1)
            with np.errstate(all="ignore"):
                weighted = np.cos(np.arange(array.size)) * array
                size = float(np.abs(weighted).sum())
                share, log = float(weighted.sum()) / size if size else 0.0, float(np.log(size)) if size else 0.0
            fine = bool(np.isfinite([share, log]).all())
            yield (round(share, 6), round(log, 6)) if fine else (None, None)


def _run(program: Program, numbers: NumberKind[D], inputs: Sequence[Input], prepared: Prepared) -> list[D]:
    walk = Walk(numbers, prepared)
    with np.errstate(all="ignore"):
        return [data_of(numbers, each) for each in walk.run(program, drawn(numbers, inputs))]
