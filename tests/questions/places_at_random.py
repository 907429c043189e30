"""Random places of random small layouts of every language, and what is there by looking at every element.

The layouts and their rules are those of `questions_at_random`; nothing of the package's languages or solvers is used
for what is expected.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any
from unittest import mock

import layoutproof as lp
from layoutproof.core.index_map import IndexMap, Memory, row_major
from layoutproof.core.numbers import Numbers
from layoutproof.questions.inverse import Contents, names_of
from layoutproof.questions.inverse_formula import InverseFormula
from layoutproof.registry.read import map_of, read_layout
from layoutproof.solvers import preimage
from tests.properties import places
from tests.questions.questions_at_random import LANGUAGES, Drawn, Sizes, xla

Row = tuple[tuple[int, ...], tuple[int, ...]]
LISTED = (3, 10_000)
"""How many elements are listed."""


@dataclass(frozen=True)
class Asked:
    """One place of one layout: what was found (None where it is unknown), and how that is wrong, or ""."""

    language: str
    text: Any
    place: Mapping[str, int]
    found: Contents | None
    wrong: str


def drawn(rng: random.Random) -> tuple[Drawn, int]:
    """A layout without size symbols, and the bits of one stored element; some of XLA's have less than a byte."""
    language = rng.choice([*LANGUAGES, "sub-byte"])
    if language != "sub-byte":
        layout = LANGUAGES[language][0](rng)
        memory = layout.rule({}).memory
        return layout, memory.bits if memory else 0
    layout = xla(rng, kind="s8")
    bits = rng.choice((1, 2, 4))
    head, _, body = str(layout.text).rpartition("{")
    text = f"{head.replace('s8', 's4')}{{{body[:-1]}{'' if ':' in body else ':'}E({bits})}}"
    return Drawn("sub-byte", text, layout.rule), bits


def ask(seed: int, number: int) -> list[Asked]:
    """A few places of one layout. Half of the layouts are asked without looking at every element."""
    rng = random.Random(f"{seed} {number}")
    layout, bits = drawn(rng)
    rule = layout.rule({})
    backwards = lp.inverse(layout.text)
    names = names_of(map_of(read_layout(layout.text)))
    with mock.patch.object(preimage, "LOOKED_AT", rng.choice((0, preimage.LOOKED_AT))):
        return [_asked(layout, rule, backwards, _place(rng, rule, names, bits), bits, names, rng) for _ in range(6)]


def _place(rng: random.Random, rule: IndexMap, names: Sequence[str], bits: int) -> dict[str, int]:
    """Coordinates of an element, of a place of the box or beyond it; some of them, an offset, a byte, a bit."""
    ranges: Any = rule.range.extents
    if rng.random() < 0.5:
        index = tuple(rng.randrange(e) for e in rule.domain.extents)  # type: ignore[arg-type]
        at = rule.at(index, tuple(rng.randrange(e) for e in rule.replicas.extents))  # type: ignore[arg-type]
    else:
        at = tuple(rng.randint(-1 if rng.random() < 0.1 else 0, extent) for extent in ranges)
    if rule.memory is not None and rng.random() < 0.8:
        offset = row_major(at, ranges) if min(at, default=0) >= 0 else rng.randint(0, int(rule.memory.allotted))
        if rng.random() < 0.4:
            return {"offset": offset}
        byte, bit = divmod(max(0, offset) * bits, 8)
        return {"byte": byte, "bit": bit} if rng.random() < 0.4 else {"byte": byte}
    kept = [k for k in range(len(names)) if rng.random() < 0.6] or [rng.randrange(len(names))]
    return {names[k]: at[k] for k in (range(len(names)) if rng.random() < 0.5 else kept)}


def _asked(
    layout: Drawn,
    rule: IndexMap,
    backwards: Any,
    place: dict[str, int],
    bits: int,
    names: Sequence[str],
    rng: random.Random,
) -> Asked:
    expected = there(rule, place, bits, names)
    most = rng.choice(LISTED)
    try:
        found = backwards.at(place, most=most)
    except lp.Undecided:
        return Asked(layout.language, layout.text, place, None, "")
    return Asked(layout.language, layout.text, place, found, disagreement(found, expected, rule, place, most))


def there(rule: IndexMap, place: Mapping[str, int], bits: int, names: Sequence[str]) -> list[Row]:
    """Every element and replica that has these coordinates, or a bit in this byte; in order."""
    extents: Any = rule.range.extents
    rows = []
    for index in places.every(rule.domain.extents):
        for replica in places.every(rule.replicas.extents):
            at = rule.at(index, replica)
            if "byte" in place:
                offset = row_major(at, extents)
                own = range(offset * bits, (offset + 1) * bits)
                asked = (
                    [8 * place["byte"] + place["bit"]]
                    if "bit" in place
                    else range(8 * place["byte"], 8 * place["byte"] + 8)
                )
                # what is said of a byte that is not allotted is that it is outside
                memory: Any = rule.memory
                inside = place["byte"] < -(-memory.allotted * bits // 8)
                held = inside and any(bit in own for bit in asked)
            elif "offset" in place and rule.memory is not None:
                held = row_major(at, extents) == place["offset"]
            else:
                held = all(at[names.index(name)] == value for name, value in place.items())
            if held:
                rows.append((index, replica))
    return rows


def disagreement(found: Contents, expected: list[Row], rule: IndexMap, place: Mapping[str, int], most: int) -> str:
    """How an answer is not what looking at every element says, or ""."""
    rows = [(held.index, held.replica) for held in found.elements]
    if rows != expected[:most]:
        return f"it lists {rows}, and there are {expected[:most]}"
    elements = len({index for index, _ in expected})
    if (found.count, found.places) != (elements, len(expected)):
        return f"it counts {found.count} and {found.places}, and there are {elements} and {len(expected)}"
    if expected:
        return "" if found.what == ("element" if elements == 1 else "elements") else f"it says {found.what}"
    if found.what not in ("padding", "hole", "outside"):
        return f"it says {found.what}, and nothing is there"
    if found.what == "outside" and _is_inside(rule, place):
        return "it says outside, and the place is inside"
    return ""


def _is_inside(rule: IndexMap, place: Mapping[str, int]) -> bool:
    """Whether an offset or a whole place is one that the layout has."""
    memory: Memory | None = rule.memory
    if memory is not None and "offset" in place:
        return 0 <= place["offset"] < int(memory.allotted)
    extents: Any = rule.range.extents
    whole = len(place) == len(extents) and not {"byte", "offset"} & place.keys()
    return whole and all(0 <= v < e for v, e in zip(place.values(), extents, strict=True))


SIZES = (1, 2, 3, 5, 8, 9)
"""Values of size symbols at which formulas are looked at."""


def formula(seed: int, number: int) -> tuple[str, bool]:
    """Of one layout, the formula of its inverse: its text evaluated by Python at every place of the range.

    Gives what is wrong, or "", and whether there was a formula.
    """
    rng = random.Random(f"formula {seed} {number}")
    draw, _, with_sizes = LANGUAGES[rng.choice(list(LANGUAGES))]
    layout = draw(rng, symbolic=with_sizes and rng.random() < 0.4)
    m = map_of(read_layout(layout.text))
    try:
        found = lp.inverse(layout.text).formula(*(names_of(m) if m.memory is None or rng.random() < 0.5 else ()))
    except lp.Undecided:
        return "", False
    entries = {name: compile(text, name, "eval") for name, text in {**found.element, **found.replica}.items()}
    for sizes in ({name: rng.choice(SIZES) for name in layout.symbols} for _ in range(3 if layout.symbols else 1)):
        rule = layout.rule(sizes)
        if 0 in rule.domain.extents or prod(rule.domain.extents) > 2000:  # type: ignore[type-var]
            continue
        box = [Numbers(sizes).size(extent) for extent in m.range.extents]
        problem = _formula_disagrees(found, entries, rule, sizes, box)
        if problem:
            return f"{layout.text} with {sizes}: {found}: {problem}", True
    return "", True


def _formula_disagrees(
    found: InverseFormula, entries: Mapping[str, Any], rule: IndexMap, sizes: Sizes, extents: Sequence[int]
) -> str:
    held: dict[tuple[int, ...], list[Row]] = {}
    flat = found.coordinates == ("offset",) and rule.memory is not None
    for row in itertools.product(places.every(rule.domain.extents), places.every(rule.replicas.extents)):
        at = rule.at(*row)
        held.setdefault((row_major(at, extents),) if flat else at, []).append(row)
    every = places.every([prod(extents)] if flat else extents) if prod(extents) < 20_000 else []
    for at in [*every, *held]:
        names = {"__builtins__": {}, **sizes, **dict(zip(found.coordinates, at, strict=True))}
        values = {name: eval(code, names) for name, code in entries.items()}
        rows = held.get(at, [])
        index = tuple(values[name] for name in found.element)
        if rows and {x for x, _ in rows} != {index}:
            return f"at {at} it gives {index}, and there are {rows}"
        if rows and found.replica and tuple(values[name] for name in found.replica) not in {c for _, c in rows}:
            return f"at {at} it gives the replica {values}, and there are {rows}"
        conditions = [part for part in found.condition.split(" and ") if part and "this one" not in part]
        holds = all(eval(_size_text(part), {**names, **values}) for part in conditions)
        if (rows and not holds) or (holds and not rows and "this one" not in found.condition):
            return f"at {at} the condition is {holds}, and there are {rows}"
    return ""


def _size_text(condition: str) -> str:
    """A condition with `ceil(N/8)` as Python has it."""
    return re.sub(r"ceil\(([^()]*)/([^()]*)\)", r"-(-(\1) // (\2))", condition)


def identity(seed: int, number: int) -> tuple[str, int]:
    """Of one layout, each place that an element has: the elements found there are those that have it.

    Gives what is wrong, or "", and how many places were asked for.
    """
    rng = random.Random(f"identity {seed} {number}")
    layout, _ = drawn(rng)
    rule = layout.rule({})
    names = names_of(map_of(read_layout(layout.text)))
    backwards = lp.inverse(layout.text)
    held: dict[tuple[int, ...], list[Row]] = {}
    for row in itertools.product(places.every(rule.domain.extents), places.every(rule.replicas.extents)):
        held.setdefault(rule.at(*row), []).append(row)
    for at, rows in held.items():
        found = backwards.at(dict(zip(names, at, strict=True)), most=10_000)
        if [(each.index, each.replica) for each in found.elements] != rows:
            return f"{layout.text} at {at}: {found}, and there are {rows}", len(held)
    one_each = all(len({index for index, _ in rows}) == 1 for rows in held.values())
    verdict = lp.ask("injective", layout.text).verdict
    if (verdict is lp.Verdict.PROVED) != one_each and verdict is not lp.Verdict.UNKNOWN:
        return f"{layout.text}: injective is {verdict.value}, and the inverse finds {one_each}", len(held)
    return "", len(held)
