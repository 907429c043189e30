"""The files that the TPU compiler writes of one kernel: memory, instructions with source lines, relayouts, cycles.

Read from libtpu 0.0.42.1 and 0.0.52, whose names differ: passes are found by their own name and not by their number,
operations by their name without the dialect. A figure that a file does not have is None or a count of its own, never 0.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from layoutproof.core.brackets import without_remarks
from layoutproof.core.document import JsonObject
from layoutproof.core.files import MAX_TEXT, read
from layoutproof.hlo.shapes import read_array
from layoutproof.hlotext.lines import read_hlo
from layoutproof.hlotext.texts import arrays, logical

VMEM = 1
"""XLA's number for this memory, as in `S(1)`."""
CALLER = "<top-inlining-caller>"
"""An entry in the report of VMEM that repeats another one."""
FAMILIES = {"vpack": "packs", "vunpack": "unpacks", "vrot": "rotates"}
"""The start of the names of instructions that only move data -> their class."""

_DATA = re.compile(r"const DATA\s*=\s*")
_LOC = re.compile(r'loc\("([^"]+)":(\d+)')
_OPERATION = re.compile(r"(?:^|=)\s*(?:%[^\s=]+\s*=\s*)?([a-z]\w*)")
_BUNDLE = re.compile(r"^[^\S\n]*+0x[0-9a-f]+|^[^\S\n]*+0(?=\s+:)", re.MULTILINE)
_SPILL = re.compile(r"\[vmem:\[#(allocation\d+_spill)\]")

_RELAYOUT = re.compile(
    r"= \w+\.relayout \S+ \{in_layout = \[#\w+\.vpad<\"([^\"]*)\">\], out_layout = \[#\w+\.vpad<\"([^\"]*)\">\]"
    r"[^:]{0,400}\} : vector<([^>]*)> -> vector<[^>]*> loc\((.*)\)$"
)
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_NAMED = re.compile(r'"([^"]+)":(\d+)')
_REFERENCE = re.compile(r"#loc\d*")
_CYCLES = re.compile(r'hlo_op_name: "([^"]*)"\s+estimated_cycles: (\d+)')


def text_of(folder: Path, pattern: str) -> str:
    """The text of the last file of a name, "" where there is none."""
    found = sorted(folder.glob(pattern))
    return read(found[-1], MAX_TEXT).decode("utf-8", "replace") if found else ""


def vmem(html: str, operation: str) -> JsonObject | None:
    """The VMEM of one operation, from the text of a `vmem_report`: {"total", "parts": [[kind, what, bytes]]}.

    operation: its name in the compiled program.  None where the report does not speak of it.

    >>> blocks = '[{"allocations": [{"size": 8, "tag": "SPILL"}]}]'
    >>> vmem('const DATA ={"hlo_breakdowns": {"k.1": {"total_size": 8, "blocks": %s}}};' % blocks, "k.1")
    {'total': 8, 'parts': [['spill', 'SPILL', 8]]}
    """
    mark = _DATA.search(html)
    if mark is None:
        return None
    try:
        data, _ = json.JSONDecoder().raw_decode(html, mark.end())
        found = {name: of for name, of in (data["hlo_breakdowns"] or {}).items() if name != CALLER}
        one = found[operation]
        parts = [[_kind(a["tag"]), _what(a), int(a["size"])] for block in one["blocks"] for a in block["allocations"]]
        return {"total": int(one["total_size"]), "parts": parts}
    except (ValueError, KeyError, TypeError):
        return None


def whole(text: str, operation: str) -> list[list[object]]:
    """Arrays that one operation of a compiled program finds or leaves in VMEM as a whole: [[kind, what, bytes]].

    text: of the program.  Such arrays have no windows, and the operation's own total leaves them out.

    >>> x = "HloModule m\\n\\nENTRY e {\\n  x = f32[8,128]{1,0:T(8,128)S(1)} parameter(0)\\n"
    >>> whole(x + "  ROOT k.1 = f32[8,128]{1,0:T(8,128)} custom-call(x), custom_call_target='k'\\n}\\n", "k.1")
    [['input', 'input 0, f32[8,128]', 4096]]
    """
    found = []
    for module in read_hlo(text.splitlines()):
        for computation in module.computations:
            call = computation.by_name.get(operation)
            if call is not None:
                found += [("input", k, shape) for k, shape in enumerate(computation.shapes_of(call))]
                found += [("output", k, shape) for k, shape in enumerate(arrays(call.shape))]
    rows = []
    for kind, k, shape in found:
        read = read_array(shape)
        if read.layout is not None and read.layout.memory_space == VMEM:
            rows.append([kind, f"{kind} {k}, {logical(shape)}", read.padded])
    return rows


def _kind(tag: str) -> str:
    for word, kind in (("window", "window"), ("SPILL", "spill"), ("scratch", "scratch")):
        if word in tag:
            return kind
    return "other"


def _what(allocation: Mapping[str, object]) -> str:
    """An allocation in words: the compiler's first sentence, its window, and its buffers."""
    tag = str(allocation["tag"])
    said = tag.partition(". ")[0]
    shape = re.search(r"window shape is (\S+),", tag)
    levels = re.search(r"has (\d+) buffering levels", tag)
    more = [shape[1] if shape else str(allocation.get("shape", "")), f"{levels[1]} buffers" if levels else ""]
    return ", ".join(filter(None, [said.replace("window allocation for operator ", "window of "), *more]))


def instructions(text: str) -> Iterator[tuple[str, str, tuple[str, int]]]:
    """Of the text of `final_bundles` each instruction: (operation, its text, (file, line)); ("", 0) for no line.

    An instruction of several lines, as copies between steps of a loop are, is counted at the last one, its own.
    """
    starts = [match.end() for match in _BUNDLE.finditer(text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        for part in text[start:end].split(";;"):
            plain = without_remarks(part)
            plain = plain.partition("{")[2] if "{" in part[:40] else plain
            named = _OPERATION.search(plain.strip())
            if named is None:
                continue
            places = _LOC.findall(part)
            yield named[1], part, (places[-1][0], int(places[-1][1])) if places else ("", 0)


def lines(text: str) -> JsonObject:
    """What `final_bundles` says of moves: {"lines": [[file, line, {"reloads", "packs", ..}]], "slots", "stores"}.

    slots: registers' places in VMEM.  stores: into them, which carry no line.
    """
    counts: dict[tuple[str, int], Counter[str]] = {}
    slots: set[str] = set()
    stores = 0
    for operation, part, place in instructions(text):
        family = next((word for start, word in FAMILIES.items() if operation.startswith(start)), "")
        spill = _SPILL.search(part)
        if spill is not None:
            slots.add(spill[1])
            stores += operation == "vst"
            family = "reloads" if operation == "vld" else ""
        if family:
            counts.setdefault(place, Counter())[family] += 1
    rows = [[file, line, dict(found)] for (file, line), found in counts.items()]
    return {"lines": rows, "slots": len(slots), "stores": stores}


def bundles(text: str) -> int:
    """How many instruction words the text of `final_bundles` has.

    >>> bundles("   0   :  { %a = nop }\\n 0x1   :  { %b = nop }\\n")
    2
    """
    return sum(1 for _ in _BUNDLE.finditer(text))


def relayouts(text: str) -> list[list[object]]:
    """Each relayout that was inserted, from the text after that pass: [before, after, vector, file, line]."""
    aliases = dict(_ALIAS.findall(text))
    found = []
    for line in text.splitlines():
        match = _RELAYOUT.search(line)
        if match is not None:
            file, number = place(match[4], aliases)
            found.append([match[1], match[2], match[3], file, number])
    return found


def place(location: str, aliases: Mapping[str, str]) -> tuple[str, int]:
    """The innermost line of a location, ("", 0) for none. aliases: `#loc5` -> what it stands for.

    >>> place("#loc3", {"#loc3": "callsite(#loc2 at #loc1)", "#loc2": '"mul"(#loc1)', "#loc1": '"a.py":7:2 to :9'})
    ('a.py', 7)
    """
    left, seen = [location], set()
    while left:
        text = left.pop()
        named = _NAMED.search(text)
        if named is not None:
            return named[1], int(named[2])
        inner = [name for name in _REFERENCE.findall(text) if name not in seen]
        seen |= set(inner)
        # the callee comes first, and is the inner one
        left += [aliases[name] for name in reversed(inner) if name in aliases]
    return "", 0


def schedule(folder: Path) -> dict[str, int]:
    """The cycles of each operation of a program, by its name, from the files of a static profile: one for each."""
    texts = (read(path, MAX_TEXT).decode("utf-8", "replace") for path in sorted(folder.glob("*.textproto")))
    return {name: int(many) for text in texts for name, many in _CYCLES.findall(text)}
