"""Reports that memory ran out: HBM and VMEM of a TPU with their allocations, scoped VMEM, a GPU's shared memory.

Source of the form: XLA:TPU's own messages, 2019 to 2026 (`tests/cases/messages`); the list is cut by XLA, so what is
said of it is said of what it lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from layoutproof.core.errors import shorten
from layoutproof.hardware.tpu_chips import CHIPS
from layoutproof.messages.arrays import array, largest, made_by
from layoutproof.messages.explanation import Explanation, MessageArray, human, joined, made_of
from layoutproof.messages.pasted import PastedLine, search
from layoutproof.messages.sizes_text import SIZE, size_of

_HEAD = re.compile(r"Ran out of memory in memory space (\w+)")
_STACK = re.compile(r"while allocating on stack for (%?[\w\-]++(?:\.[\w\-]++)*+)")
_USED = re.compile(rf"Used {SIZE} of {SIZE} \w+\.?\s+(?:Exceeded \w+ capacity by {SIZE})?")
_SCOPED = re.compile(rf"Scoped allocation with size {SIZE} and limit {SIZE} exceeded scoped vmem limit by {SIZE}")
_TOTAL = re.compile(rf"Total (\w+) usage >= {SIZE}")
_PART = re.compile(
    rf"\s+(reserved|heap allocations|program|arguments|output|global|scoped|overlays|HLO temp)(?: ?\([^()]{{0,60}}\))?"
    rf"\s+{SIZE}\b"
)
_NEEDS = re.compile(rf"Program (\w+) requirement {SIZE}")
_UNPADDED = re.compile(rf"Unpadded \({SIZE}\) Padded \({SIZE}\)")
_LOST = re.compile(rf"% fragmentation \({SIZE}\)")
_ENTRY = re.compile(rf"\s*(?<!\d)(\d++)\. Size: {SIZE}\s*$")
_STARTS = (_TOTAL, _NEEDS, _UNPADDED, _ENTRY)
_FIELD = re.compile(r"\s*(Operator|Shape|Unpadded size|Extra memory due to padding|XLA label|Allocation type): ?(.*)")
_EXCEEDS = re.compile(r"Allocation \(size=(\d{1,15})\) would exceed memory \(size=(\d{1,15})\)")
_SPACE = re.compile(r"space=(\w+)")
_TAG = re.compile(r"tag = '([^']{1,200})'")
_SHARED = re.compile(r"Shared memory size limit exceeded: requested (\d+), available: (\d+)")
_OWN = ("reduce", "copy", "convolution", "dot", "sort", "scatter", "gather", "transpose")
"""How names begin that XLA gives its own operations; a kernel has the name of its function."""
_NAME = re.compile(r"%?([a-z_]*+)[\w\-]*+(?:\.\d++)*+")
_SPILL = "register allocator spill slots"

_SPACES = {"hbm": "HBM", "vmem": "VMEM", "smem": "SMEM"}
_SMEM_STEPS = (
    "scalar-prefetch operands (tables, lengths, page numbers) and operands with memory_space=SMEM lie there: prefetch "
    "the "
    "part that a program needs, or split the call",
    "or leave the table in HBM (memory_space=pl.ANY) and copy rows of it into a small scratch of SMEM",
)


@dataclass(slots=True)
class _Allocation:
    printed: str
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return size_of(self.printed)

    @property
    def extra(self) -> int:
        """Bytes of padding as XLA prints them."""
        return max(0, size_of(self.fields.get("Extra memory due to padding", "").split(" (")[0]))

    @property
    def spill(self) -> bool:
        return _SPILL in self.fields.get("XLA label", "")


@dataclass(slots=True)
class _Report:
    """One report as it is printed. Sizes in bytes, -1 where they are not printed."""

    line: int
    said: str = ""
    space: str = ""
    used: int = -1
    limit: int = -1
    over: int = -1
    total: int = -1
    """With what is reserved, which `used` leaves out in some versions of the compiler."""
    kernel: str = ""
    parts: dict[str, int] = field(default_factory=dict)
    unpadded: int = -1
    padded: int = -1
    lost: int = -1
    allocations: list[_Allocation] = field(default_factory=list)

    @property
    def whole(self) -> int:
        """Bytes that all of its parts take."""
        return max(self.total, self.used)

    @property
    def spills(self) -> int:
        return sum(each.size for each in self.allocations if each.spill)

    @property
    def key(self) -> tuple[object, ...]:
        """What a repetition of the same report repeats."""
        return (self.space, self.used, self.limit, self.kernel, tuple(each.printed for each in self.allocations))


def read(lines: Sequence[PastedLine], target: str | None) -> Iterator[Explanation]:
    """The reports in a text, each once.

    lines: of the text.  target: the generation that fixes are for, None for v4 and later.
    """
    seen = set()
    for report in _reports(lines):
        if report.key not in seen:
            seen.add(report.key)
            yield _explained(report, target)
    exceeded = set()
    for at, line in enumerate(lines):
        found = search(_EXCEEDS, lines, at)
        if found is not None and found[0] not in exceeded:
            exceeded.add(found[0])
            yield _exceeded(line, int(found[1]), int(found[2]), " ".join(each.text for each in lines[at : at + 4]))
        if match := _SHARED.search(line.text):
            yield _shared_memory(line, int(match[1]), int(match[2]))


def _reports(lines: Sequence[PastedLine]) -> list[_Report]:
    found: list[_Report] = []
    for at, line in enumerate(lines):
        text = line.text
        if head := search(_HEAD, lines, at):
            if not found or found[-1].space or found[-1].allocations:
                found.append(_Report(line.number))
            found[-1].space = head[1]
            found[-1].said = shorten(text[head.start() :], 160)
            if stack := search(_STACK, lines, at):
                found[-1].kernel = stack[1]
        elif not found and (search(_SCOPED, lines, at) or any(start.search(text) for start in _STARTS)):
            found.append(_Report(line.number, shorten(text.strip(), 160)))
        if found:
            _take(found[-1], lines, at)
    return found


def _take(report: _Report, lines: Sequence[PastedLine], at: int) -> None:
    """What one line says, into the report."""
    text = lines[at].text
    if used := search(_USED, lines, at):
        report.used, report.limit = size_of(used[1] + used[2]), size_of(used[3] + used[4])
        report.over = size_of(used[5] + used[6]) if used[5] else report.used - report.limit
    if scoped := search(_SCOPED, lines, at):
        report.space = "vmem"
        report.used, report.limit, report.over = (size_of(scoped[i] + scoped[i + 1]) for i in (1, 3, 5))
    if total := _TOTAL.search(text):
        report.space = report.space or total[1]
        report.total = size_of(total[2] + total[3])
        report.used = report.used if report.used >= 0 else report.total
    if needs := _NEEDS.search(text):
        report.space = report.space or needs[1]
        report.parts.setdefault("program", size_of(needs[2] + needs[3]))
    if part := _PART.match(text):
        report.parts.setdefault(part[1], size_of(part[2] + part[3]))
    if both := _UNPADDED.search(text):
        report.unpadded, report.padded = size_of(both[1] + both[2]), size_of(both[3] + both[4])
    if lost := _LOST.search(text):
        report.lost = size_of(lost[1] + lost[2])
    if entry := _ENTRY.match(text):
        report.allocations.append(_Allocation(entry[2] + (entry[3] or "B")))
    elif report.allocations and (named := _FIELD.match(text)):
        report.allocations[-1].fields.setdefault(named[1], named[2])


def _explained(report: _Report, target: str | None) -> Explanation:
    space = _SPACES.get(report.space.lower(), report.space or "memory")
    arrays, cut = _arrays(report.allocations, target)
    notes = [f"{cut} more shapes are listed"] * bool(cut)
    if space == "HBM" and report.limit > 0 and (chips := _chips_of(report.limit)):
        notes.append(f"{human(report.limit)} is the HBM of {joined(chips)}")
    whole = _made_of(report)
    cause, fixes = {"VMEM": _vmem, "SMEM": _smem}.get(space, _hbm)(report, arrays)
    notes += [f"of {human(report.whole)}: {whole}"] * (report.used > 0 and " and " in whole and whole not in cause)
    if cause:
        return Explanation(f"out of {space}", report.line, report.said, cause, "", arrays, fixes, tuple(notes))
    reason = "no shape of what is listed is in it" if report.allocations else "the message lists no allocation"
    needs = "paste what follows it, from 'Largest program allocations' on"
    kind = f"out of {space}"
    return Explanation(kind, report.line, report.said, "", f"{reason}; {needs}", arrays, fixes, tuple(notes))


def _hbm(report: _Report, arrays: tuple[MessageArray, ...]) -> tuple[str, tuple[str, ...]]:
    """The cause and what to do."""
    extra, listed = _padding_listed(report, arrays)
    over = report.over
    share, fits = f"{human(extra)} of {human(listed)} listed are padding", _without_padding(over, extra)
    steps = tuple(f"{each.shape}: {way}" for each in arrays for way in each.fixes)
    if extra and (0 < over <= extra or 2 * extra >= listed):
        return f"padding: {share}{fits}", steps
    arguments = report.parts.get("arguments", -1)
    if 0 < report.limit <= arguments or (report.limit < 0 and 2 * arguments > report.used > 0):
        how = "shard or quantise the parameters; what is donated counts once"
        return f"the arguments alone take {human(arguments)}", (*steps, how)
    if 0 < over <= report.lost:
        return f"fragmentation: {human(report.lost)} lie between allocations, {human(over)} are too many", steps
    whole, lost = _made_of(report), report.padded - report.unpadded
    if whole and report.padded > 0 and 2 * lost >= max(report.used, report.padded):
        return f"padding: {human(lost)} of {human(report.padded)} temporaries are padding{fits}", steps
    if listed and arrays:
        none = "; none of it is padding" if len(_known(arrays)) == len(arrays) else ""
        said, ways = _largest(report, arrays, whole, f"; {share}" if extra else none)
        return said, (*steps, *ways)
    return "", ()


def _known(arrays: Iterable[MessageArray]) -> list[MessageArray]:
    """Those whose bytes of padding are known."""
    return [each for each in arrays if each.agrees is not False and each.size >= 0]


def _padding_listed(report: _Report, arrays: Sequence[MessageArray]) -> tuple[int, int]:
    """Bytes of padding in what a report lists, and of all that it lists."""
    extra, listed = sum(each.extra for each in report.allocations), sum(each.size for each in report.allocations)
    if not extra and report.padded > 0 and not listed:
        extra, listed = report.padded - report.unpadded, report.padded
    known = _known(arrays)
    if not extra and len(known) == len(arrays):
        # a report that was cut prints sizes and not what of them is padding
        extra = sum((each.size - each.unpadded) * each.count for each in known)
    return extra, listed


def _without_padding(over: int, extra: int) -> str:
    """Whether it is enough to be rid of `extra` bytes of padding where `over` are too many; "" where none are."""
    if over <= 0:
        return ""
    left = "the program would fit" if extra >= over else f"{human(over - extra)} would still be too many"
    return f"; {human(over)} are too many, without the padding {left}"


def _largest(report: _Report, arrays: tuple[MessageArray, ...], whole: str, more: str) -> tuple[str, tuple[str, ...]]:
    """The cause where the arrays themselves are too much, and what to do. more: what of them is padding."""
    worst = max(arrays, key=lambda each: each.size * each.count)
    kinds = sorted({each.kind for each in arrays if each.kind})
    what = f"{worst.count} x {worst.shape} take {human(worst.size * worst.count)}"
    way = {"HLO temp": "temporaries: rematerialise, split the batch, or shard the dimension that is largest"}
    said = f"the listed arrays themselves ({joined(kinds) or 'allocations'}): {what}{more}"
    if whole and report.used > 2 * worst.size * worst.count:
        # one array of a long list is no cause: what the total is made of comes first
        said = f"{human(report.whole)} are made of {whole}{_padding_of(report)}; of what is listed {what}{more}"
    return said, tuple(way[kind] for kind in kinds if kind in way)


def _made_of(report: _Report) -> str:
    """What the total of a report is made of, the largest first: a program's own parts in place of the program."""
    own: dict[str, int] = {
        name: report.parts[name] for name in ("HLO temp", "scoped", "global", "overlays") if name in report.parts
    }
    parts = {name: size for name, size in report.parts.items() if name not in own and name != "program"}
    if "heap allocations" in parts:
        # arguments and results are allocated on the heap: they are a part of it
        parts = {name: size for name, size in parts.items() if name not in ("arguments", "output")}
    program = report.parts.get("program", -1)
    return made_of({**parts, **(own or ({"program": program} if program > 0 else {}))})


def _padding_of(report: _Report) -> str:
    """The padding of the temporaries as the report prints it."""
    if report.padded <= 0 or report.padded == report.unpadded:
        return ""
    return f" ({human(report.padded - report.unpadded)} of the temporaries are padding)"


def _smem(report: _Report, arrays: tuple[MessageArray, ...]) -> tuple[str, tuple[str, ...]]:
    """The cause and what to do."""
    if report.used < 0:
        return "", _SMEM_STEPS
    who = f" by {report.kernel}" if report.kernel else ""
    return (
        f"tables and other scalars{who} take {human(report.used)} of {human(report.limit)}: {human(report.over)} too "
        f"many",
        _SMEM_STEPS,
    )


def _vmem(report: _Report, arrays: tuple[MessageArray, ...]) -> tuple[str, tuple[str, ...]]:
    """The cause and what to do."""
    spills, extra = report.spills, sum(each.extra for each in report.allocations)
    who = f" by {report.kernel}" if report.kernel else ""
    steps = []
    room = [f"{chip.name} {human(chip.vmem)}" for chip in CHIPS.values() if chip.vmem >= report.used > 0]
    if report.used > 0 and room:
        more = f"a kernel of yours may ask for more: pltpu.CompilerParams(vmem_limit_bytes={_round_up(report.used)})"
        if _of_xla(report.kernel):
            more = f"give XLA more: LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib={_round_up(report.used) >> 10}"
        steps.append(f"{more}; it is there on {joined(room)}")
    if report.limit > 0 and not _of_xla(report.kernel):
        steps.append("layoutproof kernels MODULE:FUNCTION lists its windows and scratch; halve the largest block")
    if spills and 2 * spills >= sum(each.size for each in report.allocations):
        return (
            f"register spills{who}: {human(spills)} of {human(max(report.used, spills))} are values that did not fit "
            "into vector registers",
            ("compute in smaller pieces: fewer rows of a block at a time, or a loop over it", *steps[:1]),
        )
    if extra and 2 * extra >= max(report.over, sum(each.size for each in report.allocations)):
        ways = tuple(f"{each.shape}: {way}" for each in arrays for way in each.fixes)
        return f"padding: {human(extra)} of what is listed hold no element", (*ways, *steps)
    if report.used > 0 and report.limit > 0:
        given = joined([chip.name for chip in CHIPS.values() if chip.vmem_scoped == report.limit])
        default = f", the default on {given}" if given else ""
        return (
            f"windows, scratch and spills{who} take {human(report.used)} of {human(report.limit)}{default}: "
            f"{human(report.over)} too many",
            tuple(steps),
        )
    return "", ()


def _of_xla(name: str) -> bool:
    """Whether a kernel's name is one that XLA gives its own operations; one of yours has the name of its function."""
    found = _NAME.fullmatch(name)
    return found is not None and ("fusion" in found[1] or found[1].startswith(_OWN))


def _round_up(size: int) -> int:
    """Bytes up to the next MiB."""
    return -(-size // (1 << 20)) << 20


def _chips_of(limit: int) -> list[str]:
    """The generations whose HBM this is, to the hundredth of a GiB that is printed."""
    return [name for name, chip in CHIPS.items() if abs(chip.hbm - limit) <= 0.011 * (1 << 30)]


def _arrays(allocations: Iterable[_Allocation], target: str | None) -> tuple[tuple[MessageArray, ...], int]:
    """The shapes of a list, the largest sum first, each once with how many there are; and how many were cut off."""
    shaped = [(each.fields["Shape"].strip(), each.printed, each) for each in allocations if "Shape" in each.fields]
    listed, cut = largest(shaped)
    found = []
    for shape, printed, same in listed:
        fields = same[0].fields
        by = made_by(fields.get("Operator", ""), fields.get("XLA label", ""))
        kind = re.sub(r"[^\w ].*", "", fields.get("Allocation type", "")).strip()
        found.append(array(shape, printed, target, made_by=by, kind=kind, count=len(same)))
    return tuple(found), cut


def _exceeded(line: PastedLine, asked: int, there: int, block: str) -> Explanation:
    """One allocation of a kernel that its memory does not hold."""
    space, tag = _SPACE.search(block), _TAG.search(block)
    kind = f"out of {_SPACES.get(space[1].lower(), space[1]) if space else 'memory'}"
    cause = f"{tag[1] if tag else 'one allocation'} takes {human(asked)} ({asked} bytes), and there are {human(there)}"
    steps = (
        _SMEM_STEPS
        if kind == "out of SMEM"
        else ("halve the largest block; layoutproof kernels lists windows and scratch",)
    )
    said = shorten(line.text.strip(), 160)
    return Explanation(kind, line.number, said, f"{cause}: {human(asked - there)} too many", fixes=steps)


def _shared_memory(line: PastedLine, asked: int, there: int) -> Explanation:
    return Explanation(
        "out of shared memory",
        line.number,
        shorten(line.text.strip(), 160),
        f"the blocks of one program take {asked} bytes of a GPU's shared memory, which has {there}",
        fixes=(f"blocks of at most {there} bytes together: {-(-asked // there)} times smaller",),
    )
