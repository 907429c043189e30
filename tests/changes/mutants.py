"""Mutants of HLO dumps: one edit of a real program's text, by a named operator, from a seed.

An operator of `MEANING` changes what the program computes, what it costs, or what it promises its caller; one of
`ALIKE` changes nothing of that. Each takes the text and a source of chance, and gives the new text, or None where there
is nothing to edit. `benchmarks/gate_mutants.py` counts how many of each the gate lets pass.
"""

from __future__ import annotations

import base64
import datetime
import random
import re
from collections.abc import Callable, Iterator

from layoutproof.changes import policy
from layoutproof.changes.program_changes import compare
from layoutproof.changes.states import File
from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict

Operator = Callable[[str, random.Random], str | None]

_ARRAY = r"[a-z]\w*\[[\d,]*\](?:\{[^}]*\})?"
_LINE = re.compile(r"^  (?:ROOT )?%([\w.\-]+) = ([^=\n]*?) ([a-z][\w\-]*)\((.*)$", re.MULTILINE)
_COLLECTIVE = re.compile(
    r"^  (?:ROOT )?%([\w.\-]+) = (\S.*?) ((?:all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute)"
    r"(?:-start)?)\(%([\w.\-]+)\)(.*)$",
    re.MULTILINE,
)


def _spots(text: str, pattern: str, chance: random.Random) -> re.Match[str] | None:
    """One of the places that a pattern has in the instructions of a text, none in its metadata and configuration."""
    found = [m for m in re.finditer(pattern, text, re.MULTILINE) if not _told(text, m.start())]
    return chance.choice(found) if found else None


def _told(text: str, at: int) -> bool:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return not line.startswith("  ") or any(
        f"{word}={{" in line for word in ("metadata", "backend_config", "frontend_attributes")
    )


def _put(text: str, spot: re.Match[str] | None, new: str | None, group: int = 0) -> str | None:
    if spot is None or new is None or new == spot[group]:
        return None
    return text[: spot.start(group)] + new + text[spot.end(group) :]


def layout_order(text: str, chance: random.Random) -> str | None:
    """Two dimensions of a result in another order in memory."""
    spots = []
    for m in re.finditer(r"(?<== )[a-z]\w*\[([\d,]+)\]\{([\d,]+)", text):
        sizes, order = m[1].split(","), m[2].split(",")
        if len(order) > 1 and sizes[int(order[0])] != "1" != sizes[int(order[1])]:
            spots.append(m)
    spot = chance.choice(spots) if spots else None
    if spot is None:
        return None
    order = spot[2].split(",")
    order[0], order[1] = order[1], order[0]
    return _put(text, spot, ",".join(order), 2)


def layout_tile(text: str, chance: random.Random) -> str | None:
    """A tile of another size, where that moves elements: fewer rows of a matrix of more."""
    spot = _spots(text, r"(?<== )[a-z]\w*\[(?:\d+,)*(?:1[6-9]|[2-9]\d|\d{3,}),(?:1[3-9]\d|[2-9]\d\d|\d{4,})\]"
                  r"\{1,0:T\((8),128\)", chance)  # fmt: skip
    return _put(text, spot, "4", 1)


def element_type(text: str, chance: random.Random) -> str | None:
    """The element type of a result."""
    spot = _spots(text, r"(?<== )(f32|bf16|s32|u32|s8|pred)\[\d[\d,]*\]", chance)
    to = {"f32": "bf16", "bf16": "f32", "s32": "s8", "u32": "f32", "s8": "s32", "pred": "s32"}
    return _put(text, spot, to[spot[1]] if spot else None, 1)


def extent(text: str, chance: random.Random) -> str | None:
    """One extent of a result: of iotas, broadcasts, reductions, sorts, collectives and all others."""
    spot = _spots(text, r"(?<== )[a-z]\w*\[(?:\d+,)*(\d+)\]", chance)
    return _put(text, spot, str(int(spot[1]) + 1) if spot else None, 1)


def donation_dropped(text: str, _: random.Random) -> str | None:
    """No argument's buffer goes to a result."""
    return _put(text, re.search(r"(?:input_output_alias|buffer_donor)=\{.*?\}, (?=[a-z])", text), "")


def donation_moved(text: str, _: random.Random) -> str | None:
    """An argument's buffer goes to another result."""
    return _put(text, re.search(r"input_output_alias=\{ \{(\d*)\}", text), "7", 1)


def groups(text: str, chance: random.Random) -> str | None:
    """Devices of a collective in other groups."""
    spot = _spots(text, r"(?:replica_groups|source_target_pairs)="
        r"(\{(?:\{[\d,]*\},?)+\}|\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?"
                  r"|mesh\[[^\]]*\](?:, device_ids=\(.*?\) )? ?\{[^}]*\})", chance)  # fmt: skip
    if spot is None:
        return None
    if spot[1].startswith("{{"):
        numbers = sorted({int(n) for n in re.findall(r"\d+", spot[1])})
        turned = dict(zip(numbers, [*numbers[1:], numbers[0]], strict=True))
        new = re.sub(r"\d+", lambda m: str(turned[int(m[0])]), spot[1])
        same = {frozenset(g.split(",")) for g in re.findall(r"[\d,]+\d", new)}
        if same == {frozenset(g.split(",")) for g in re.findall(r"[\d,]+\d", spot[1])}:
            # {} is all devices, and so is one group of them all: of these one leaves
            new = "{}" if len(same) > 1 else spot[1].replace(f",{numbers[-1]}}}", "}")
        return None if new == spot[1] else _put(text, spot, new, 1)
    return _put(text, spot, "{}", 1)


def channel(text: str, chance: random.Random) -> str | None:
    """A collective among replicas instead of partitions."""
    spot = _spots(text, r"channel_id=\d+, ", chance)
    return _put(text, spot, "")


def reduction(text: str, chance: random.Random) -> str | None:
    """A sum that is a product: in the computation of a reduction or of a collective."""
    called = re.findall(r" (?:all-reduce|reduce|reduce-scatter)(?:-start)?\(.*?to_apply=%([\w.\-]+)", text)
    if not called:
        return None
    start = text.find(f"%{chance.choice(called)} (")
    spot = re.compile(r"^  ROOT %[\w.\-]+ = \S+ (add|maximum|minimum|multiply|and|or)\(", re.MULTILINE).search(
        text, start
    )
    return _put(text, spot, "multiply" if spot and spot[1] != "multiply" else "add", 1)


def axes(text: str, chance: random.Random) -> str | None:
    """An instruction along other dimensions: of two of a transpose, a broadcast, a reduction, a sort, an iota."""
    spot = _spots(text, r"\b(?:iota_dimension=|dimensions=\{)(\d)(?=[,}]|$)", chance)
    return _put(text, spot, str((int(spot[1]) + 1) % 4) if spot else None, 1)


def bounds(text: str, chance: random.Random) -> str | None:
    """A slice from another start, a padding of another size."""
    spot = _spots(text, r"(?: slice\(.*?slice=\{\[|padding=)(\d+)", chance)
    return _put(text, spot, str(int(spot[1]) + 1) if spot else None, 1)


def operation(text: str, chance: random.Random) -> str | None:
    """A sum that is a difference, a maximum that is a minimum."""
    to = {"add": "subtract", "subtract": "add", "maximum": "minimum", "minimum": "maximum", "multiply": "divide"}
    spot = _spots(text, rf"(?<=[\}}\]] )({'|'.join(to)})(?=\()", chance)
    return _put(text, spot, to[spot[1]] if spot else None, 1)


def direction(text: str, chance: random.Random) -> str | None:
    """A comparison the other way."""
    spot = _spots(text, r"direction=(LT|GT|LE|GE|EQ|NE)", chance)
    to = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "NE", "NE": "EQ"}
    return _put(text, spot, to[spot[1]] if spot else None, 1)


def slower_memory(text: str, chance: random.Random) -> str | None:
    """An array in HBM instead of VMEM: of a fusion, a copy, a collective, a parameter."""
    made = r"(?:fusion|copy-done|slice-done|parameter|custom-call|all-reduce|all-gather)\("
    spot = _spots(text, rf"(?<== )[a-z]\w*\[[\d,]*\]\{{[^}}]*?(S\(1\))\}} {made}", chance)
    return _put(text, spot, "", 1)


def host_memory(text: str, chance: random.Random) -> str | None:
    """An array that was on the host, on the device."""
    spot = _spots(text, r"(?<== )[a-z]\w*\[[\d,]*\]\{[^}]*?(S\(5\))", chance)
    return _put(text, spot, "", 1)


def partitions(text: str, _: random.Random) -> str | None:
    """Another number of partitions or replicas."""
    spot = re.search(r"num_partitions=(\d+)", text)
    return (
        _put(text, spot, f"{spot[1]}0", 1)
        if spot
        else text.replace("is_scheduled=true", "is_scheduled=true, replica_count=2", 1)
    )


def schedule(text: str, _: random.Random) -> str | None:
    """A text of before scheduling."""
    return text.replace("is_scheduled=true, ", "", 1) if "is_scheduled=true, " in text else None


def target(text: str, chance: random.Random) -> str | None:
    """A custom call of something else."""
    return _put(text, _spots(text, r'custom_call_target="([^"]*)"', chance), "SomethingElse", 1)


def demand(text: str, chance: random.Random) -> str | None:
    """A custom call that demands another layout of an operand, or none."""
    if chance.random() < 0.5:
        spot = _spots(text, r"operand_layout_constraints=\{[^}]*?\{(\d,\d)[,:}]", chance)
        if spot is not None:
            return _put(text, spot, spot[1][::-1], 1)
    return _put(text, _spots(text, r"operand_layout_constraints=\{(?:[^{}]|\{[^}]*\})*\}, ", chance), "")


def _in_kernel(text: str, change: Callable[[str], str | None]) -> str | None:
    spot = re.search(r'"custom_call_config":\{"body":"([^"]*)"', text)
    if spot is None:
        return None
    body = base64.b64decode(spot[1])
    if not body.startswith(b"module"):
        return None
    new = change(body.decode())
    return None if new is None else _put(text, spot, base64.b64encode(new.encode()).decode(), 1)


def kernel_hole(text: str, chance: random.Random) -> str | None:
    """A kernel with a program less along one dimension of its grid."""

    def change(body: str) -> str | None:
        spot = re.search(r"iteration_bounds = array<i64: ([\d, ]+)>", body)
        if spot is None:
            return None
        sizes = [int(n) for n in spot[1].split(",")]
        at = chance.choice([k for k, n in enumerate(sizes) if n > 1])
        sizes[at] -= 1
        return _put(body, spot, ", ".join(map(str, sizes)), 1)

    return _in_kernel(text, change)


def kernel_map(text: str, chance: random.Random) -> str | None:
    """A kernel, one of whose index maps gives two indices in each other's place: it reads or writes other blocks."""

    def change(body: str) -> str | None:
        spots = list(re.finditer(r"return (%\w+), (%\w+),", body))
        spot = chance.choice(spots) if spots else None
        return None if spot is None else _put(body, spot, f"return {spot[2]}, {spot[1]},")

    return _in_kernel(text, change)


def kernel_body(text: str, chance: random.Random) -> str | None:
    """A kernel that computes something else."""

    def change(body: str) -> str | None:
        spot = chance.choice(list(re.finditer(r"arith\.(addf|mulf|subf)", body)) or [None])  # type: ignore[list-item]
        return _put(body, spot, {"addf": "subf", "mulf": "addf", "subf": "mulf"}[spot[1]] if spot else None, 1)

    return _in_kernel(text, change)


def collective_added(text: str, chance: random.Random) -> str | None:
    """A sum over all devices that nobody asked for."""
    spots = [m for m in _LINE.finditer(text) if m[2].startswith(("f32[", "bf16[")) and m[3] not in ("parameter",)]
    body = re.search(r"^%([\w.\-]+) \(.*\n(?:  %.* parameter.*\n){2}  ROOT %[\w.\-]+ = \S+ add\(", text, re.MULTILINE)
    if not spots or body is None:
        return None
    spot = chance.choice(spots)
    line = f"  %extra.987 = {spot[2]} all-reduce(%{spot[1]}), replica_groups={{}}, to_apply=%{body[1]}\n"
    if spot[0].startswith("  ROOT"):
        return None
    return text[: spot.end() + 1] + line + text[spot.end() + 1 :]


def collective_removed(text: str, chance: random.Random) -> str | None:
    """A sum or an exchange that is not made, where the shapes allow it."""
    for spot in chance.sample(found := list(_COLLECTIVE.finditer(text)), len(found)):
        if spot[3].endswith("-start") or spot[0].startswith("  ROOT"):
            continue
        source = re.search(rf"^  %{re.escape(spot[4])} = (\S+) ", text, re.MULTILINE)
        if source is not None and _logical(source[1]) == _logical(spot[2]):
            without = text[: spot.start()] + text[spot.end() + 1 :]
            return re.sub(rf"%{re.escape(spot[1])}(?![\w.\-])", f"%{spot[4]}", without)
    return None


def sharding(text: str, chance: random.Random) -> str | None:
    """A parameter whose pieces are on other devices."""
    spot = _spots(text, r"sharding=\{devices=\[\d+,\d+\](<=\[\d+\])\}", chance)
    return _put(text, spot, "0,2,1,3", 1)


def constant(text: str, chance: random.Random) -> str | None:
    """A constant of another value."""
    spot = _spots(text, r" constant\((-?\d+)\)", chance)
    return _put(text, spot, str(int(spot[1]) + 1) if spot else None, 1)


def trips(text: str, chance: random.Random) -> str | None:
    """A loop that runs once more: the constant that its condition compares with."""
    conditions = re.findall(r" while\(.*?condition=%([\w.\-]+)", text)
    if not conditions:
        return None
    start = text.find(f"%{chance.choice(conditions)} (")
    spot = re.compile(r" constant\((\d+)\)").search(text, start, text.find("\n}", start))
    return _put(text, spot, str(int(spot[1]) + 1) if spot else None, 1)


def element(text: str, chance: random.Random) -> str | None:
    """Another element of a tuple, of the same shape or of another."""
    spot = _spots(text, r"get-tuple-element\(%[\w.\-]+\), index=(\d+)", chance)
    return _put(text, spot, str(1 - min(1, int(spot[1]))) if spot else None, 1)


def operands(text: str, chance: random.Random) -> str | None:
    """Two operands in each other's place, which shapes do not show."""
    spot = _spots(text, r" (?:subtract|divide|power|dot|select)\((?:%[\w.\-]+, )?(%[\w.\-]+), (%[\w.\-]+)\)", chance)
    return (
        None
        if spot is None or spot[1] == spot[2]
        else text[: spot.start(1)] + f"{spot[2]}, {spot[1]}" + text[spot.end(2) :]
    )


MEANING: dict[str, Operator] = {
    f.__name__: f
    for f in (
        *(
            layout_order,
            layout_tile,
            element_type,
            extent,
            donation_dropped,
            donation_moved,
            groups,
            channel,
            reduction,
        ),
        *(axes, bounds, operation, direction, slower_memory, host_memory, partitions, schedule, target, demand),
        *(
            kernel_hole,
            kernel_map,
            kernel_body,
            collective_added,
            collective_removed,
            sharding,
            constant,
            element,
            trips,
        ),
        operands,
    )
}
SEEN_NOT_DENIED = ("constant", "kernel_body", "trips")
"""Operators whose class is a warning: a gate of layouts says that it saw them, and judges no arithmetic."""


def renumbered(text: str, chance: random.Random) -> str | None:
    """Other numbers in the names of instructions and computations."""
    more = chance.randrange(1000, 9000)
    return re.sub(r"%([\w\-]+)\.(\d+)\b", lambda m: f"%{m[1]}.{int(m[2]) + more}", text)


def reordered(text: str, chance: random.Random) -> str | None:
    """Two neighbouring instructions, neither of which needs the other, the other way round."""
    lines = text.splitlines(keepends=True)
    spots = []
    for k in range(len(lines) - 1):
        one, other = (_LINE.match(line) for line in lines[k : k + 2])
        if one and other and "ROOT" not in lines[k] + lines[k + 1] and f"%{one[1]}" not in other[4]:
            spots.append(k)
    if not spots:
        return None
    at = chance.choice(spots)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return "".join(lines)


def metadata(text: str, _: random.Random) -> str | None:
    """Every operation called otherwise by the user's program, on other lines."""
    new = re.sub(r'op_name="', 'op_name="other/', text)
    new = re.sub(r"line=(\d+)", lambda m: f"line={int(m[1]) + 7}", new)
    return None if new == text else new


def other_groups(text: str, chance: random.Random) -> str | None:
    """The same groups in another form."""
    from layoutproof.hlo.groups import groups_text, read_groups, words

    for spot in chance.sample(found := list(re.finditer(r"replica_groups=", text)), len(found)):
        written = groups_text(text[spot.start() : spot.start() + 400])
        if written and not written.startswith("{"):
            return text[: spot.end()] + "{" + words(read_groups(written, 1)) + "}" + text[spot.end() + len(written) :]
        if written == "{{0,2},{1,3}}":
            return text[: spot.end()] + "[2,2]<=[2,2]T(1,0)" + text[spot.end() + len(written) :]
    return None


def channels(text: str, _: random.Random) -> str | None:
    """Other numbers of channels."""
    new = re.sub(r"channel_id=(\d+)", lambda m: f"channel_id={int(m[1]) + 40}", text)
    return None if new == text else new


def respelled(text: str, chance: random.Random) -> str | None:
    """An equal layout that is written otherwise, everywhere."""
    return text.replace("{1,0:T(8,128)}", "{1,0:T(8,128)(1,128)}") if "{1,0:T(8,128)}" in text else None


def notes(text: str, _: random.Random) -> str | None:
    """Other notes of the compiler to itself."""
    new = re.sub(r'"(window_config|estimated_cycles|barrier_config)":', r'"other_\1":', text)
    return None if new == text else new


ALIKE: dict[str, Operator] = {
    f.__name__: f for f in (renumbered, reordered, metadata, other_groups, channels, respelled, notes)
}


def verdict(old: str, new: str) -> tuple[str, list[Finding]]:
    """ "denied", "unknown", "warned" or "green", by the default rules, and the findings."""
    found = compare(File("a.txt", "old.txt", old.encode()), File("a.txt", "a.txt", new.encode()), "a.txt")
    rules = policy.Policy()
    judged = policy.judge(found, {}, rules, datetime.date(2026, 11, 22))[0]
    if any(f.bad_input or (f.severity == "deny" and f.verdict is not Verdict.UNKNOWN) for f in judged):
        return "denied", judged
    if any(f.verdict is Verdict.UNKNOWN for f in judged):
        return "unknown", judged
    return ("warned" if any(f.severity == "warn" for f in judged) else "green"), judged


def mutants(text: str, operators: dict[str, Operator], many: int, seed: int) -> Iterator[tuple[str, str]]:
    """(operator, new text): up to `many` different ones of each operator."""
    for name, operator in operators.items():
        chance = random.Random(f"{seed} {name}")
        seen = {text}
        for _ in range(many):
            new = operator(text, chance)
            if new is not None and new not in seen:
                seen.add(new)
                yield name, new


def _logical(shape: str) -> str:
    return re.sub(r"\{[^}]*\}", "", shape)
