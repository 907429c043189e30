"""Edits of HLO dumps that leave every value as it is, and such that differ where two numbers are equal alone.

Each takes the text and a source of chance, as those of `mutants`. `benchmarks/gate_values.py` counts what is said.
"""

from __future__ import annotations

import random
import re

from tests.gating.mutants import Operator

_LINE = re.compile(
    r"^(?P<indent>  )(?P<root>ROOT )?%(?P<name>[\w.\-]+) = (?P<type>f32|bf16)(?P<shape>\[[\d,]*\](?:\{[^}]*\})?) "
    r"(?P<opcode>[a-z][\w\-]*)\((?P<operands>[^()]*)\)(?P<rest>.*)$",
    re.MULTILINE,
)
_COMMUTE = ("add", "multiply", "maximum", "minimum")
_FUSED = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "negate",
    "tanh",
    "exponential",
    "log",
    "rsqrt",
)


def _chosen(text: str, chance: random.Random, *opcodes: str) -> re.Match[str] | None:
    found = [m for m in _LINE.finditer(text) if not opcodes or m["opcode"] in opcodes]
    return chance.choice(found) if found else None


def _instead(text: str, spot: re.Match[str], lines: str) -> str:
    return text[: spot.start()] + lines + text[spot.end() :]


def _written(spot: re.Match[str], name: str, root: bool, call: str) -> str:
    kind = spot["type"] + spot["shape"]
    return f"  {'ROOT ' if root else ''}%{name} = {kind} {call}"


def exchanged(text: str, chance: random.Random) -> str | None:
    """The two operands of a sum, a product, a maximum the other way round."""
    spot = _chosen(text, chance, *_COMMUTE)
    operands = spot["operands"].split(", ") if spot else []
    if spot is None or len(set(operands)) != 2:
        return None
    return text[: spot.start("operands")] + ", ".join(operands[::-1]) + text[spot.end("operands") :]


def added_copy(text: str, chance: random.Random) -> str | None:
    """A copy of what an operation gives, laid out as that is."""
    spot = _chosen(text, chance, *_FUSED)
    if spot is None:
        return None
    own = _written(spot, "bare.9901", False, f"{spot['opcode']}({spot['operands']}){spot['rest']}")
    return _instead(text, spot, f"{own}\n{_written(spot, spot['name'], bool(spot['root']), 'copy(%bare.9901)')}")


def fused(text: str, chance: random.Random) -> str | None:
    """An operation in a fusion of its own."""
    spot = _chosen(text, chance, *_FUSED)
    if spot is None or f"%{spot['name']} = " not in text:
        return None
    operands = [o.removeprefix("%") for o in spot["operands"].split(", ")]
    start = text.rfind("\n%", 0, spot.start())
    start = max(start, text.rfind("\nENTRY", 0, spot.start()))
    shapes = [re.search(rf"^  (?:ROOT )?%{re.escape(o)} = (\S+) ", text[start:], re.MULTILINE) for o in operands]
    if None in shapes or any(s[1].startswith("(") for s in shapes):  # type: ignore[index]
        return None
    kinds = [s[1] for s in shapes if s is not None]
    given = "".join(f"  %in.990{k} = {kind} parameter({k})\n" for k, kind in enumerate(kinds))
    names = ", ".join(f"%in.990{k}" for k in range(len(kinds)))
    bare = re.compile(r"\{[^}]*\}")
    head = ", ".join(f"in.990{k}: {bare.sub('', kind)}" for k, kind in enumerate(kinds))
    result = spot["type"] + bare.sub("", spot["shape"])
    root = _written(spot, "out.9905", True, f"{spot['opcode']}({names})")
    body = f"%own.9906 ({head}) -> {result} {{\n{given}{root}\n}}\n\n"
    call = f"fusion({spot['operands']}), kind=kLoop, calls=%own.9906"
    new = _instead(text, spot, _written(spot, spot["name"], bool(spot["root"]), call))
    return new[: start + 1] + body + new[start + 1 :]


def rewritten(text: str, chance: random.Random) -> str | None:
    """Another way to compute the same: a - b as a + (-b), a b as -(-a b), -(-a) for a."""
    spot = _chosen(text, chance, "subtract", "multiply", "add", "tanh")
    if spot is None:
        return None
    operands, root, name = spot["operands"].split(", "), bool(spot["root"]), spot["name"]
    if spot["opcode"] == "subtract":
        lines = [_written(spot, "less.9907", False, f"negate({operands[1]})")]
        lines.append(_written(spot, name, root, f"add({operands[0]}, %less.9907)"))
    elif spot["opcode"] == "multiply":
        lines = [_written(spot, "less.9907", False, f"negate({operands[0]})")]
        lines.append(_written(spot, "less.9908", False, f"multiply(%less.9907, {operands[1]})"))
        lines.append(_written(spot, name, root, "negate(%less.9908)"))
    else:
        lines = [_written(spot, "less.9907", False, f"{spot['opcode']}({spot['operands']})")]
        lines.append(_written(spot, "less.9908", False, "negate(%less.9907)"))
        lines.append(_written(spot, name, root, "negate(%less.9908)"))
    return _instead(text, spot, "\n".join(lines))


NEUTRAL: dict[str, Operator] = {f.__name__: f for f in (exchanged, added_copy, fused, rewritten)}
"""Edits after which every value is what it was."""


def strict(text: str, chance: random.Random) -> str | None:
    """A comparison that is strict now, or is not any more: other values where the two are equal."""
    spots = list(re.finditer(r"direction=(LT|GT|LE|GE)", text))
    spot = chance.choice(spots) if spots else None
    if spot is None:
        return None
    to = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT"}
    return text[: spot.start(1)] + to[spot[1]] + text[spot.end(1) :]


TIES: dict[str, Operator] = {"strict": strict}
