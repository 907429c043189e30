"""HLO modules with loops and branches that inputs decide, and edits of them: which step is made, with what, how often.

Each edit takes a text and a source of chance, as those of `mutants`.
"""

from __future__ import annotations

import random
import re

from tests.gating.mutants import Operator

_X = "f32[4]{0}"


def _of(name: str, step: str) -> str:
    """A computation of one array."""
    return f"%{name} (x: f32[4]) -> f32[4] {{\n  %x = {_X} parameter(0)\n  ROOT %{name}.r = {_X} {step}(%x)\n}}\n\n"


def _of_two(name: str, lines: str) -> str:
    """A computation of two arrays."""
    given = f"  %x = {_X} parameter(0)\n  %y = {_X} parameter(1)\n"
    return f"%{name} (x: f32[4], y: f32[4]) -> f32[4] {{\n{given}{lines}}}\n\n"


def _loop(name: str, more: str, step: str, arrays: int = 2, end: str = "") -> str:
    """The body and the condition of a loop: a counter, a bound, arrays. step: lines that give `%n.0`, `%n.1`, .."""
    shape = f"(s32[], s32[], {', '.join(['f32[4]'] * arrays)})"
    xs = "".join(f"  %x.{k} = {_X} get-tuple-element(%t), index={k + 2}\n" for k in range(arrays))
    counted = "  %i = s32[] get-tuple-element(%t), index=0\n  %n = s32[] get-tuple-element(%t), index=1\n"
    given = ", ".join(f"%n.{k}" for k in range(arrays))
    return more + (
        f"%{name}.body (t: {shape}) -> {shape} {{\n  %t = {shape} parameter(0)\n{counted}{xs}{step}"
        f"  %one = s32[] constant(1)\n  %j = s32[] add(%i, %one)\n  ROOT %r = {shape} tuple(%j, %n, {given})\n}}\n\n"
        f"%{name}.goes (t: {shape}) -> pred[] {{\n  %t = {shape} parameter(0)\n{counted}{end}"
        f"  ROOT %p = pred[] compare(%i, {'%m' if end else '%n'}), direction=LT\n}}\n\n"
    )


def _entry(lines: str) -> str:
    return (
        "ENTRY %e (k: s32[], a: f32[4], b: f32[4]) -> f32[4] {\n"
        f"  %k = s32[] parameter(0)\n  %a = {_X} parameter(1)\n  %b = {_X} parameter(2)\n{lines}}}\n"
    )


def _runs(name: str, start: str = "%z", bound: str = "%k", arrays: str = "%a, %b", many: int = 2) -> str:
    shape = f"(s32[], s32[], {', '.join(['f32[4]'] * many)})"
    return (
        f"  %z = s32[] constant(0)\n  %s = {shape} tuple({start}, {bound}, {arrays})\n"
        f"  %w = {shape} while(%s), condition=%{name}.goes, body=%{name}.body\n"
        f"  %w.0 = {_X} get-tuple-element(%w), index=2\n  %w.1 = {_X} get-tuple-element(%w), index=3\n"
    )


_STEP = f"  %n.0 = {_X} sine(%x.0)\n  %n.1 = {_X} multiply(%x.1, %n.0)\n"
_SUM = f"  ROOT %o = {_X} subtract(%w.0, %w.1)\n"
_CASES = _of("first", "sine") + _of("second", "negate") + _of("third", "tanh")
_CHOICE = (
    f"  %c = {_X} conditional(%i, %x.0, %x.1, %x.0), branch_computations={{%first, %second, %third}}\n"
    f"  %n.0 = {_X} add(%c, %x.1)\n  %n.1 = {_X} copy(%x.0)\n"
)
_HEAD = "HloModule m\n\n"
TEXTS: dict[str, str] = {
    "a bound that is an input": _HEAD + _loop("l", "", _STEP) + _entry(_runs("l") + _SUM),
    "a bound beyond every small number": _HEAD
    + _loop("l", "", _STEP, end="  %big = s32[] constant(90)\n  %m = s32[] subtract(%n, %big)\n")
    + _entry(_runs("l") + _SUM),
    "a start that is an input": _HEAD
    + _loop("l", "", _STEP)
    + _entry("  %five = s32[] constant(5)\n" + _runs("l", "%k", "%five") + _SUM),
    "a bound that is clamped": _HEAD
    + _loop("l", "", _STEP)
    + _entry(
        "  %lo = s32[] constant(1)\n  %hi = s32[] constant(4)\n  %q = s32[] clamp(%lo, %k, %hi)\n"
        + _runs("l", bound="%q")
        + _SUM
    ),
    "a branch by an input": _HEAD
    + _CASES
    + _entry(
        f"  %c = {_X} conditional(%k, %a, %b, %a), branch_computations={{%first, %second, %third}}\n"
        f"  ROOT %o = {_X} subtract(%c, %b)\n"
    ),
    "a branch by a comparison of an input": _HEAD
    + _of_two("yes", f"  %s = {_X} sine(%x)\n  ROOT %r = {_X} subtract(%s, %y)\n")
    + _of_two("no", f"  ROOT %r = {_X} subtract(%y, %x)\n")
    + _entry(
        f"  %h = s32[] constant(40)\n  %p = pred[] compare(%k, %h), direction=GT\n"
        f"  %g = ({_X}, {_X}) tuple(%a, %b)\n"
        f"  %c = {_X} conditional(%p, %a, %b), true_computation=%t.yes, false_computation=%t.no\n"
        f"  %d = {_X} call(%a, %b), to_apply=%no\n  ROOT %o = {_X} add(%c, %d)\n"
    ).replace("ENTRY", _of("t.yes", "sine") + _of("t.no", "cosine") + "ENTRY"),
    "a branch by the step": _HEAD + _loop("l", _CASES, _CHOICE) + _entry(_runs("l") + _SUM),
    "a branch at one step alone": _HEAD
    + _loop(
        "l",
        _of("first", "sine") + _of("second", "negate"),
        "  %seven = s32[] constant(7)\n  %at = pred[] compare(%i, %seven), direction=EQ\n"
        f"  %n.0 = {_X} conditional(%at, %x.0, %x.1), true_computation=%first, false_computation=%second\n"
        f"  %n.1 = {_X} copy(%x.0)\n",
    )
    + _entry(_runs("l") + _SUM),
    "a loop in a loop": _HEAD
    + _loop("m", "", _STEP)
    + _loop(
        "l",
        "",
        f"  %z.1 = s32[] constant(0)\n  %s.1 = (s32[], s32[], {_X}, {_X}) tuple(%z.1, %i, %x.0, %x.1)\n"
        f"  %w.9 = (s32[], s32[], {_X}, {_X}) while(%s.1), condition=%m.goes, body=%m.body\n"
        f"  %n.0 = {_X} get-tuple-element(%w.9), index=2\n  %n.1 = {_X} get-tuple-element(%w.9), index=3\n",
    )
    + _entry(_runs("l") + _SUM),
    "arrays that change places": _HEAD
    + _loop("l", "", f"  %n.0 = {_X} copy(%x.1)\n  %n.1 = {_X} copy(%x.2)\n  %n.2 = {_X} sine(%x.0)\n", 3)
    + _entry(_runs("l", arrays="%a, %b, %a", many=3) + _SUM),
}
"""By name."""


def _exchanged(text: str, first: tuple[int, int], second: tuple[int, int]) -> str:
    (a, b), (c, d) = first, second
    return f"{text[:a]}{text[c:d]}{text[b:c]}{text[a:b]}{text[d:]}"


def _shapes(text: str, at: int) -> dict[str, str]:
    """The arrays of the computation that a place stands in, by name."""
    start = text.rfind("{\n", 0, at)
    lines = text[start : text.find("\n}", at)]
    return {m[1]: m[2] for m in re.finditer(r"%([\w.\-]+) = (\w+\[[\d,]*\])", lines)}


def carried(text: str, chance: random.Random) -> str | None:
    """Two arrays of a tuple that a loop is given or hands on, in each other's place."""
    spots = []
    for spot in re.finditer(r" tuple\(([^)\n]*)\)", text):
        shapes = _shapes(text, spot.start())
        names = list(re.finditer(r"%([\w.\-]+)", text[spot.start(1) : spot.end(1)]))
        spots += [
            tuple((spot.start(1) + each.start(), spot.start(1) + each.end()) for each in (a, b))
            for k, a in enumerate(names)
            for b in names[k + 1 :]
            if a[1] != b[1] and shapes.get(a[1], a[1]) == shapes.get(b[1])
        ]
    return _exchanged(text, *chance.choice(spots)) if spots else None


def branch_operands(text: str, chance: random.Random) -> str | None:
    """Two operands of a branch in each other's place."""
    spots = []
    for spot in re.finditer(r" conditional\(%[\w.\-]+, ([^)\n]*)\)", text):
        shapes = _shapes(text, spot.start())
        names = list(re.finditer(r"%([\w.\-]+)", text[spot.start(1) : spot.end(1)]))
        spots += [
            tuple((spot.start(1) + each.start(), spot.start(1) + each.end()) for each in (a, b))
            for k, a in enumerate(names)
            for b in names[k + 1 :]
            if a[1] != b[1] and shapes.get(a[1], a[1]) == shapes.get(b[1])
        ]
    return _exchanged(text, *chance.choice(spots)) if spots else None


def branches(text: str, chance: random.Random) -> str | None:
    """Two computations of a branch in each other's place, or one in the place of another."""
    spots = []
    for spot in re.finditer(
        r"(?:branch_computations=\{[^}\n]*\}|true_computation=.*?false_computation=%[\w.\-]+)", text
    ):
        names = list(re.finditer(r"%[\w.\-]+", spot[0]))
        for k, a in enumerate(names):
            for b in names[k + 1 :]:
                one, other = ((spot.start() + each.start(), spot.start() + each.end()) for each in (a, b))
                spots += [_exchanged(text, one, other), text[: one[0]] + b[0] + text[one[1] :]]
    found = [each for each in spots if each != text]
    return chance.choice(found) if found else None


def stepped(text: str, chance: random.Random) -> str | None:
    """An integer of the code, one more or one less: a first step, a step, a last one, a bound, a choice."""
    spots = list(re.finditer(r"s32\[\](?:\{[^}]*\})? constant\((-?\d+)\)", text))
    if not spots:
        return None
    spot = chance.choice(spots)
    return f"{text[: spot.start(1)]}{int(spot[1]) + chance.choice((-1, 1))}{text[spot.end(1) :]}"


def compared(text: str, chance: random.Random) -> str | None:
    """Another comparison of integers."""
    spots = list(re.finditer(r"compare\([^)\n]*\), direction=(LT|LE|GT|GE|EQ|NE)", text))
    if not spots:
        return None
    spot = chance.choice(spots)
    new = chance.choice([each for each in ("LT", "LE", "GT", "GE", "EQ", "NE") if each != spot[1]])
    return text[: spot.start(1)] + new + text[spot.end(1) :]


def decided(text: str, chance: random.Random) -> str | None:
    """Another single integer in the place of one, of the same computation and above."""
    spots = []
    for spot in re.finditer(r"(?<![\w.\-])%([\w.\-]+)(?=[,)])", text):
        start = text.rfind("{\n", 0, spot.start())
        above = re.findall(r"%([\w.\-]+) = s32\[\]", text[start : text.rfind("\n", 0, spot.start())])
        if spot[1] in above:
            spots += [(spot, other) for other in above if other != spot[1]]
    if not spots:
        return None
    spot, other = chance.choice(spots)
    return text[: spot.start(1)] + other + text[spot.end(1) :]


EDITS: dict[str, Operator] = {f.__name__: f for f in (carried, branch_operands, branches, stepped, compared, decided)}
"""By name."""
