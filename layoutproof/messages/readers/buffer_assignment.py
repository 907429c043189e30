"""XLA:GPU's and XLA:CPU's report of the buffers of a program that did not fit: dense arrays, no tiles.

Source of the form: openxla/xla, xla/service/buffer_assignment.cc (`BufferAssignment::ToVerboseString`), and reports in
public threads (`tests/cases/messages`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from layoutproof.core.errors import shorten
from layoutproof.messages.arrays import array, largest, made_by
from layoutproof.messages.explanation import Explanation, MessageArray, human, made_of
from layoutproof.messages.pasted import PastedLine
from layoutproof.messages.sizes_text import SIZE, size_of

_BEGINS = re.compile(r"BufferAssignment (?:OOM Debugging|stats)|^\s*Peak buffers:|^\s*Buffer 1:\s*$")
_STAT = re.compile(rf"\s*(parameter|constant|maybe_live_out|preallocated temp|total) allocation:\s+{SIZE}")
_ENTRY = re.compile(r"\s*Buffer \d+:\s*$")
_FIELD = re.compile(r"\s*(Size|Operator|XLA Label|Shape|Entry Parameter Subshape): ?(.*)")
_ASKED = re.compile(r"[Oo]ut of memory while trying to allocate (\d+) bytes")
SOURCE = "openxla/xla, xla/service/buffer_assignment.cc"


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The report in a text, if there is one; its repetitions count once.

    lines: of the text.  target: not looked at: the arrays of a GPU have no tiles.
    """
    begins = next((at for at, line in enumerate(lines) if _BEGINS.search(line.text)), None)
    if begins is None:
        return
    parts: dict[str, int] = {}
    buffers: list[dict[str, str]] = []
    for line in lines[begins:]:
        if stat := _STAT.match(line.text):
            parts.setdefault(stat[1], size_of(stat[2] + stat[3]))
        elif _ENTRY.match(line.text):
            buffers.append({})
        elif buffers and (named := _FIELD.match(line.text)):
            buffers[-1].setdefault(named[1], named[2].strip())
    asked = next((int(m[1]) for line in lines[: begins + 1] if (m := _ASKED.search(line.text))), -1)
    yield _explained(lines[begins], asked, parts, buffers)


def _explained(line: PastedLine, asked: int, parts: dict[str, int], buffers: list[dict[str, str]]) -> Explanation:
    arrays, cut = _arrays(buffers)
    total = parts.pop("total", -1)
    whole = made_of({name.replace("preallocated temp", "temporaries"): size for name, size in parts.items()})
    notes = [f"{cut} more shapes are listed"] * bool(cut)
    notes += [f"{human(asked)} ({asked} bytes) are asked for at once"] * (asked >= 0)
    notes.append("arrays of a GPU lie without tiles: none of it is padding")
    said = shorten(line.text.strip(), 160)
    known = [each for each in arrays if each.size >= 0]
    if not known and total < 0:
        reason = "the report lists no array; paste what follows it, from 'Peak buffers' on"
        return Explanation("out of device memory", line.number, said, "", reason, arrays, (), tuple(notes), SOURCE)
    causes = [f"{human(total)} are made of {whole}"] * (total >= 0 and bool(whole))
    if known:
        worst = max(known, key=lambda each: each.size * each.count)
        causes.append(f"the largest array is {worst.count} x {worst.shape}, {human(worst.size * worst.count)}")
    fixes = ["rematerialise (jax.checkpoint), split the batch, or shard the dimension that is largest"]
    if parts.get("parameter", 0) > max(parts.get("preallocated temp", 0), parts.get("maybe_live_out", 0)):
        fixes = ["shard or quantise the parameters; donate what a step replaces (donate_argnums)"]
    return Explanation(
        "out of device memory", line.number, said, "; ".join(causes), "", arrays, tuple(fixes), tuple(notes), SOURCE
    )


def _arrays(buffers: Sequence[dict[str, str]]) -> tuple[tuple[MessageArray, ...], int]:
    """The shapes of the buffers, the largest sum first, each once with how many there are; and how many were cut."""
    shapes = [(each.get("Shape") or each.get("Entry Parameter Subshape", ""), each) for each in buffers]
    listed, cut = largest((shape, each.get("Size", ""), each) for shape, each in shapes if shape)
    found = []
    for shape, printed, same in listed:
        kind = "" if "Shape" in same[0] else "parameter"
        by = made_by(same[0].get("Operator", ""), same[0].get("XLA Label", ""))
        found.append(array(shape, printed, made_by=by, kind=kind, count=len(same), tiled=False))
    return tuple(found), cut
