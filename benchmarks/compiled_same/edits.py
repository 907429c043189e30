"""Edits of the exchanges in a compiled text, each of one channel: what a wrong partition would look like."""

import re
from collections.abc import Iterator

from layoutproof.hlo.groups import groups_text, pairs, read_groups, words

_EXCHANGE = re.compile(
    r"(?P<kind>all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?P<start>-start)?"
    r"\((?P<operands>[^()]*)\), channel_id=(?P<channel>\d+), (?P<rest>.*)"
)
_MAX = (
    "%edited_max (x.0: f32[], y.0: f32[]) -> f32[] {\n  %x.0 = f32[] parameter(0)\n  %y.0 = f32[] parameter(1)\n"
    "  ROOT %z.0 = f32[] maximum(%x.0, %y.0)\n}\n\n"
)


def edited(text: str, devices: int) -> Iterator[tuple[str, str]]:
    """(what was edited, the edited text), of each channel."""
    lines = text.splitlines()
    found: dict[str, list[int]] = {}
    for k, line in enumerate(lines):
        if exchange := _EXCHANGE.search(line):
            found.setdefault(exchange["channel"], []).append(k)
    for channel, places in found.items():
        kind = _EXCHANGE.search(lines[places[0]])["kind"]
        for name, edit in EDITS.items():
            made = [edit(_EXCHANGE.search(lines[k]), lines[k], devices) for k in places]
            if all(made):
                now = list(lines)
                for k, line in zip(places, made, strict=True):
                    now[k] = line
                whole = "\n".join(now)
                if "%edited_max" in whole:
                    first = whole.index("\n%")
                    whole = f"{whole[:first]}\n{_MAX}{whole[first:]}"
                yield f"{kind} of channel {channel}: {name}", whole


def _groups(of: re.Match[str], devices: int):
    text = groups_text(of["rest"])
    return text, read_groups(text, devices) if text else ()


def _missing(of, line, devices):
    """An all-reduce is left out: each device goes on with its own part."""
    if of["kind"] != "all-reduce" or of["start"]:
        return ""
    several = "tuple" if "%" in of["operands"].partition(",")[2] else "copy"
    return f"{line[: of.start()]}{several}({of['operands']}), {of['rest']}"


def _reduction(of, line, devices):
    """A sum becomes a maximum."""
    return re.sub(r"to_apply=%[\w.-]*add[\w.-]*", "to_apply=%edited_max", line) if "to_apply=%add" in line else ""


def _other_groups(of, line, devices):
    """Other devices communicate, as many in each group; of one group of all, each half for itself where that fits."""
    text, groups = _groups(of, devices)
    if not text:
        return ""
    if len(groups) > 1:
        turned = tuple(tuple(group[k] for group in groups) for k in range(len(groups[0])))
        flat = [d for group in turned for d in group]
        size = len(groups[0])
        made = tuple(tuple(flat[k : k + size]) for k in range(0, len(flat), size))
        if {frozenset(g) for g in made} == {frozenset(g) for g in groups}:
            return ""
    elif of["kind"] == "all-reduce" and len(groups[0]) > 2:
        half = len(groups[0]) // 2
        made = (groups[0][:half], groups[0][half:])
    else:
        return ""
    return line.replace(text, "{" + words(made) + "}")


def _other_order(of, line, devices):
    """The devices of each group in another order, which says whose part goes where."""
    text, groups = _groups(of, devices)
    if not text or of["kind"] == "all-reduce" or max(map(len, groups)) < 2:
        return ""
    return line.replace(text, "{" + words(tuple(group[::-1] for group in groups)) + "}")


def _direction(of, line, devices):
    """Each device sends to whom it should have received from."""
    found = re.search(r"source_target_pairs=(\{\{.*?\}\})", line)
    if found is None:
        return ""
    turned = [(b, a) for a, b in pairs(found[1])]
    if set(turned) == set(pairs(found[1])):
        return ""
    return line.replace(found[1], "{" + ",".join(f"{{{a},{b}}}" for a, b in turned) + "}")


EDITS = {
    "left out": _missing,
    "the maximum for the sum": _reduction,
    "other groups": _other_groups,
    "another order": _other_order,
    "the other direction": _direction,
}
"""Of the match, its line, and how many devices there are, the edited line; "" where it does not apply."""
