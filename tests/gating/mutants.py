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

from layoutproof.core.finding import Finding
from layoutproof.core.result import Verdict
from layoutproof.gating import policy
from layoutproof.gating.program_changes import compare
from layoutproof.gating.states import File

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


_FLOWS = re.compile(
    r"^  (?P<root>ROOT )?%(?P<name>[\w.\-]+) = (?P<shape>[a-z]\w*\[[\d,]*\])(?:\{[^}]*\})? (?P<opcode>[a-z][\w\-]*)"
    r"\((?P<inside>(?:%[\w.\-]+(?:, )?)*)\)(?P<rest>.*)$",
    re.MULTILINE,
)
_COMPUTATION = re.compile(
    r"^(?:ENTRY )?%(?P<name>[\w.\-]+) \((?P<given>.*)\) -> (?P<result>.*) \{\n(?P<body>(?:.*\n)*?)\}", re.MULTILINE
)
_HANDED = frozenset(
    (
        *("copy", "bitcast", "get-tuple-element", "tuple", "opt-barrier", "parameter", "constant", "iota", "broadcast"),
        *("convert", "slice-done", "copy-done", "all-reduce-done", "all-gather-done", "custom-call", "reshape"),
    )
)
"""Opcodes that give on what they are given, so that one in another's place may be the same value."""


def _flows(text: str) -> Iterator[tuple[int, list[re.Match[str]]]]:
    """Of each computation, where its body begins and its instructions of one array."""
    for of in _COMPUTATION.finditer(text):
        yield of.start("body"), list(_FLOWS.finditer(of["body"]))


def _does(text: str) -> dict[str, list[tuple[str, str]]]:
    """What is done in each computation besides handing on: (shape, opcode) of its instructions, fusions opened."""
    found: dict[str, list[tuple[str, str]]] = {}
    for of in _COMPUTATION.finditer(text):
        done: list[tuple[str, str]] = []
        for line in of["body"].splitlines():
            made = re.search(r" = (\S+?)(?:\{\S*)? ([a-z][\w\-]*)\(", line)
            called = re.search(r" fusion\(.*\bcalls=%([\w.\-]+)", line)
            if called is not None:
                done += found.get(called[1], [])
            elif made is not None and made[2] not in ("parameter", "copy", "bitcast"):
                done.append((made[1], made[2]))
        found[of["name"]] = sorted(done)
    return found


def _hands_on(of: re.Match[str], does: dict[str, list[tuple[str, str]]]) -> bool:
    """Whether what an instruction gives may be what it is given."""
    called = re.search(r"\bcalls=%([\w.\-]+)", of["rest"])
    return of["opcode"] in _HANDED or (called is not None and not does.get(called[1]))


def operand_replaced(text: str, chance: random.Random) -> str | None:
    """An operand that is another value of the same shape, computed above."""
    spots, does = [], _does(text)
    for start, lines in _flows(text):
        made: dict[str, str] = {}
        for k, each in enumerate(lines):
            for given in re.finditer(r"%([\w.\-]+)", each["inside"]):
                shape = made.get(given[1])
                others = [o["name"] for o in lines[:k] if made.get(o["name"]) == shape and o["name"] != given[1]]
                if shape is not None and others:
                    at = start + each.start("inside") + given.start(1)
                    spots.append((at, at + len(given[1]), others))
            if not _hands_on(each, does):
                made[each["name"]] = each["shape"]
    if not spots:
        return None
    first, last, others = chance.choice(spots)
    return text[:first] + chance.choice(others) + text[last:]


def operation_skipped(text: str, chance: random.Random) -> str | None:
    """An operation that is not made: who reads its result reads its operand of the same shape."""
    spots, does = [], _does(text)
    for start, lines in _flows(text):
        shapes = {each["name"]: each["shape"] for each in lines}
        for each in lines:
            alike = [o for o in re.findall(r"%([\w.\-]+)", each["inside"]) if shapes.get(o) == each["shape"]]
            if alike and not _hands_on(each, does) and not each["root"] and "-start" not in each["opcode"]:
                spots.append((start, each, alike[0]))
    if not spots:
        return None
    start, spot, instead = chance.choice(spots)
    body = text[start : text.find("\n}", start)]
    rest = re.sub(rf"%{re.escape(spot['name'])}(?![\w.\-])", f"%{instead}", body[spot.end() + 1 :])
    if rest == body[spot.end() + 1 :]:
        return None
    return text[:start] + body[: spot.end() + 1] + rest + text[start + len(body) :]


def other_root(text: str, chance: random.Random) -> str | None:
    """A computation whose result is another of its instructions, of the same shape."""
    spots, does = [], _does(text)
    for start, lines in _flows(text):
        root = next((each for each in lines if each["root"]), None)
        if root is not None and not _hands_on(root, does):
            spots += [(start, root, o) for o in lines if o is not root and o["shape"] == root["shape"]]
    if not spots:
        return None
    start, root, other = chance.choice(spots)
    text = text[: start + root.start("root")] + text[start + root.end("root") :]
    at = start + other.start() + 2
    return f"{text[:at]}ROOT {text[at:]}"


def other_called(text: str, chance: random.Random) -> str | None:
    """A fusion, a loop or a reduction that calls another computation, above, of the same parameters and result."""
    bare = re.compile(r"\{[^}]*\}|[\w.\-]+: ")
    kinds = {m["name"]: (bare.sub("", m["given"]), bare.sub("", m["result"])) for m in _COMPUTATION.finditer(text)}
    does = _does(text)
    starts = {m["name"]: m.end() for m in _COMPUTATION.finditer(text)}
    spots = []
    for spot in re.finditer(r"\b(?:calls|body|to_apply)=%([\w.\-]+)", text):
        own, at = spot[1], spot.start()
        others = [o for o, kind in kinds.items() if kind == kinds.get(own) and does[o] != does[own] and starts[o] < at]
        spots += [(spot, other) for other in others]
    if not spots:
        return None
    spot, other = chance.choice(spots)
    return _put(text, spot, other, 1)


def slice_moved(text: str, chance: random.Random) -> str | None:
    """A slice, made at once or while something else runs, of as many elements from one place later."""
    spot = _spots(text, r" slice(?:-start)?\(.*?slice=\{(?:\[\d+:\d+\], )*?\[(\d+):(\d+)\]", chance)
    if spot is None:
        return None
    return text[: spot.start(1)] + f"{int(spot[1]) + 1}:{int(spot[2]) + 1}" + text[spot.end(2) :]


def slice_sizes(text: str, chance: random.Random) -> str | None:
    """A dynamic slice that says other sizes than its result has."""
    spot = _spots(text, r"dynamic_slice_sizes=\{(?:\d+,)*(\d+)", chance)
    return _put(text, spot, str(int(spot[1]) + 1) if spot else None, 1)


FLOW: dict[str, Operator] = {
    f.__name__: f for f in (operand_replaced, operation_skipped, other_root, other_called, slice_moved, slice_sizes)
}
"""Operators of what is computed from what."""
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
} | FLOW
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


def renamed(text: str, chance: random.Random) -> str | None:
    """Every instruction and computation of another name, and nothing said of the user's program."""
    header, _, rest = text.partition("\n")
    number = chance.randrange(100)
    names: dict[str, str] = {}

    def name(m: re.Match[str]) -> str:
        return "%" + names.setdefault(m[1], f"v{number + len(names)}")

    rest = re.sub(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}', "", rest)
    rest = re.sub(
        r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d+ .*\n)*\n", "", rest, flags=re.MULTILINE
    )
    # what stands in strings is the compiler's, and no name of the program
    parts = re.split(r'("(?:[^"\\]|\\.)*")', rest)
    parts[::2] = [re.sub(r"%([\w.\-]+)", name, part) for part in parts[::2]]
    rest = "".join(parts)
    rest = re.sub(r"^((?:ENTRY )?%\S+ )\((.*)\) ->", lambda m: f"{m[1]}({_unnamed(m[2])}) ->", rest, flags=re.MULTILINE)
    return f"{re.sub(r'(?<=HloModule )[^,]+', 'another', header)}\n{rest}"


def unnamed(text: str) -> str:
    """The text with nothing of it called as it was: an edit of nothing."""
    return renamed(text, random.Random(0)) or text


def _unnamed(parameters: str) -> str:
    count = iter(range(len(parameters)))
    return re.sub(r"[A-Za-z_][\w.\-]*: ", lambda m: f"p{next(count)}: ", parameters)


def line_ends(text: str, _: random.Random) -> str | None:
    """Lines that end as on Windows."""
    return text.replace("\n", "\r\n")


def commented(text: str, _: random.Random) -> str | None:
    """Comments within lines, and another name of the module."""
    new = text.replace(" = ", " = /*so*/", 40)
    return re.sub(r"(?<=HloModule )[^,\s]+", "renamed_module", new, count=1)


ALIKE: dict[str, Operator] = {
    f.__name__: f
    for f in (
        *(renumbered, reordered, metadata, other_groups, channels, respelled, notes),
        *(renamed, line_ends, commented),
    )
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
