"""Shapes in a text that is no message: lines of HLO, types of MLIR, bare shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from layoutproof.core.element_types import ELEMENT_BITS, element_type
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.result import Verdict
from layoutproof.hlo import bitcasts, copies
from layoutproof.hlo.fixes import DEFAULT_TARGET
from layoutproof.hlo.shapes import read_array
from layoutproof.messages.arrays import WORTH, array
from layoutproof.messages.explanation import Explanation, MessageArray, human, joined
from layoutproof.messages.pasted import PastedLine
from layoutproof.messages.sizes_text import SIZE, printed_as
from layoutproof.registry.defaults import tpu_default

_SHAPE = re.compile(r"\b([a-z]\w*+)\[((?:<=)?\d[\d,<=]*|)\](\{[^{}\s]*+\})?")
_MLIR = re.compile(r"\b(?:tensor|memref|vector)<((?:\d+x)*+)([a-z]\w*+)((?:,[^<>]*(?:<[^<>]*>[^<>]*)*)?)>")
_TILED = re.compile(r"#tpu\.tiled<\((\d+(?:,\s*\d+)*)\)((?:\(\d+(?:,\s*\d+)*\))*)")
_ELEMENTS = {"i": "s", "ui": "u", "si": "s", "index": "s32", "i1": "pred"}

_MOVES = re.compile(
    r"= (\w+\[[\d,]*\]\{[^}\s]*\}) (copy|transpose|reshape|bitcast)\((\w+\[[\d,]*\]\{[^}\s]*\})[^()]*\)"
    r"(?:, dimensions=\{([\d,]*)\})?"
)
"""An operation that keeps values, with the layouts of its result and operand."""

MOST = 20
"""Shapes of a text that are explained."""


_ERROR = re.compile(
    r"(?i)\b(?:error|exception|failed|failure|cannot|could not|unsupported|not supported|unimplemented|warning"
    r"|traceback|"
    r"INTERNAL|INVALID_ARGUMENT|RESOURCE_EXHAUSTED|FAILED_PRECONDITION|out of memory)\b|\b\w+(?:Error|Exception"
    r"|Warning)\b"
)
"""What a line of an error has, and no line of HLO or MLIR."""
_PRINTED = re.compile(rf"(?<![\w.\[,]){SIZE}(?:\b| bytes)")
"""A size that a text prints."""


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """One explanation for each line that names a shape; each shape once.

    Where a line is an error that no reader knows, its shapes are not its meaning: that is said, and nothing of sizes.
    Where the text prints sizes beside a shape and none is the computed one, the array is none that is known here.

    lines: of the text.  target: the generation whose default layout a bare shape gets, None for v5e.
    """
    seen: set[str] = set()
    unknown = next((line for line in lines if _ERROR.search(line.text)), None)
    if unknown is not None and any(_texts(line.text) for line in lines):
        said = shorten(unknown.text.strip(), 160)
        reason = "this message is not known here; paste one shape or line of HLO alone to have its size explained"
        yield Explanation("message", unknown.number, said, "", reason)
        return
    printed = {m[1] + (m[2] or "B") for line in lines for m in _PRINTED.finditer(line.text) if m[2] or "bytes" in m[0]}
    for line in lines:
        found = []
        for text in _texts(line.text):
            if text not in seen and len(seen) < MOST:
                seen.add(text)
                found.append(_array(text, target))
        if found:
            yield _explained(line, tuple(found), printed)


def _texts(line: str) -> list[str]:
    """The shapes in a line as XLA writes them, in order; JAX prints float32[8,128]."""
    found = [
        (m.start(), f"{element_type(m[1])}{m[0].removeprefix(m[1])}")
        for m in _SHAPE.finditer(line)
        if element_type(m[1]) in ELEMENT_BITS
    ]
    for match in _MLIR.finditer(line):
        name = _ELEMENTS.get(match[2]) or re.sub("^(ui|si|i)(?=[0-9])", lambda m: _ELEMENTS[m[1]], match[2])
        if name not in ELEMENT_BITS:
            continue
        dims = match[1].rstrip("x").split("x") if match[1] else []
        order = ",".join(str(d) for d in range(len(dims) - 1, -1, -1))
        tile = _TILED.search(match[3])
        layout = f"{{{order}:T({tile[1]}){tile[2]}}}".replace(" ", "") if tile else ""
        found.append((match.start(), f"{name}[{','.join(dims)}]{layout}"))
    return [text for _, text in sorted(found)]


def _array(text: str, target: str | None) -> MessageArray:
    """One shape; the default layout of the target where it names none."""
    if "{" in text:
        return array(text, target=target)
    name = target or DEFAULT_TARGET
    try:
        given = str(tpu_default(text, name))
    except LayoutError as error:
        return MessageArray(text, note=f"its size is not computed: {error.problem}")
    found = array(given, target=name)
    return MessageArray(
        found.shape, "", found.size, found.unpadded, None, 1, found.padded, "", "", found.fixes,
        f"{text} names no layout; this is the default of {name}",
    )  # fmt: skip


def _explained(line: PastedLine, arrays: tuple[MessageArray, ...], printed: Set[str]) -> Explanation:
    known = [each for each in arrays if each.size >= 0]
    said = shorten(line.text.strip(), 160)
    if not known:
        return Explanation("shape", line.number, said, "", "no size of it is known", arrays)
    if printed and not any(printed_as(each.size, size) for each in known for size in printed):
        plain = next((each for each in known for size in printed if printed_as(each.unpadded, size)), None)
        if plain is not None:
            cause = f"{human(plain.unpadded)}, as printed: the elements alone, without a tile of a TPU's"
            return Explanation("shape", line.number, said, cause)
        sizes = joined(sorted(printed)[:4])
        reason = f"{sizes} is printed, and {known[0].shape} takes {human(known[0].size)}: it is another array than this"
        return Explanation("shape", line.number, said, "", reason)
    worst = max(known, key=lambda each: each.size - each.unpadded)
    if worst.size >= WORTH * max(1, worst.unpadded):
        why = "; ".join(worst.padded) or worst.note
        cause = f"{human(worst.size)} for {human(worst.unpadded)} of elements, {_times(worst)}: {why}"
    else:
        cause = f"{human(worst.size)}, of which {human(worst.size - worst.unpadded)} are padding"
    ways = tuple(f"{each.shape}: {way}" for each in arrays for way in each.fixes)
    return Explanation("shape", line.number, said, cause, "", arrays, ways, _notes(line.text))


def _notes(text: str) -> tuple[str, ...]:
    """What a line of HLO or MLIR says besides its shapes."""
    notes = [f"the {match[2]} {_moved(match)}" for match in _MOVES.finditer(text)]
    if "vector<" in text:
        notes.append("a vector is in registers, laid out as the compiler likes: the sizes are an array's of that shape")
    return tuple(notes)


def _moved(match: re.Match[str]) -> str:
    """What an operation that keeps values does to bytes, proved."""
    try:
        result, operand = read_array(match[1]), read_array(match[3])
        if match[2] == "bitcast":
            found = bitcasts.judge(operand, result)
            if found.verdict is Verdict.PROVED:
                return f"moves no byte, proved: {found.how}" if found.how else "moves no byte, proved"
            return f"is {found.verdict.value} as one: {found.reason}"
        permutation = None if match[4] is None else tuple(int(d) for d in match[4].split(",") if d)
        move = copies.judge(match[2], operand, result, permutation)
    except (LayoutError, ValueError) as error:
        return f"is not judged: {error}"
    return {
        "relayout": f"moves elements to another layout: {human(move.size)} read and written together",
        "space": f"moves the array to another memory space, laid out as before: {human(move.size)} read and written",
        "same": f"makes a second array just like the first: {human(move.size)} read and written together",
        "free": "moves no byte, proved",
    }.get(move.kind, f"is not decided: {move.reason}")


def _times(one: MessageArray) -> str:
    return f"{one.size / max(1, one.unpadded):.1f} times"
