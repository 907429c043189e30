"""Candidates for a program that takes less, and whether one helped. Records in, plain data out: nothing is compiled.

A candidate changes what the program's user controls and leaves its meaning alone: how a parameter or a result is laid
out, that a parameter is given away, that it is held in a larger or a reshaped array which the program slices or
reshapes first. The compiler's own choices, temporaries and the copies between them, are no candidates.

It helped where memory, copies or estimated cycles are less and none of them is more: `layoutproof compile --try` and
`layoutproof hlo --try` then call it a fix. docs/compiler.md has what that came to for programs of many kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypedDict

from layoutproof.core.amounts import size
from layoutproof.core.document import Doc, Exactly
from layoutproof.core.errors import LayoutError
from layoutproof.core.size import product
from layoutproof.hardware.tpu_tiles import LANES
from layoutproof.hlo.fixes import DEFAULT_TARGET
from layoutproof.layouts import xla
from layoutproof.layouts.xla import XlaLayout
from layoutproof.programs.record import Copy, ProgramValue, Record
from layoutproof.questions.cheapest import cheapest_merge, padded_bytes

AUTO: tuple[int, ...] = ()
"""In place of an order: the compiler chooses (JAX's `Layout.AUTO`)."""
MOST = 20
"""Candidates of one program: each is a compilation."""
LARGEST = 3
"""Parameters, and results, the largest ones, that are tried without a reason in the record."""
BYTES = 0.01
"""Share of a number of bytes by which it has to change, and a tenth of it of all memory; less counts as the same."""
CYCLES = 0.05
"""The same of estimated cycles: an estimate within it says nothing about time."""

MOST_REWRITES = 8
"""Rewrites of a program's equations that are tried; those first whose lines the program copies at."""

Kind = Literal["auto", "order", "donation", "padding", "reshape", "rewrite", "together"]
Orders = Mapping[int, tuple[int, ...]]


class ChangeEntry(TypedDict):
    """By the number of the parameter or result. An order is from major to minor, an empty one the compiler's choice."""

    orders: dict[str, list[int]]
    results: dict[str, list[int]]
    padded: dict[str, list[int]]
    reshaped: dict[str, list[int]]
    donated: list[int]
    rewrite: Annotated[int, Doc("the number of a rewrite of the program's equations; -1 for none")]


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """One change of what a user controls. Parameters and results go by their number in the record.

    what: in words.  write: the change in JAX.  saves: bytes that it would save if the compiler changed nothing else;
    0 where that is not known.  orders, results: the dimensions of parameters and results from major to minor, or AUTO.
    padded: larger dimensions of a parameter, whose corner the program slices out first.  reshaped: other dimensions of
    as many elements, which the program reshapes first.  donated: parameters whose buffers results may take.
    rewrite: the number of a rewrite of the program's equations, -1 for none.  cause: the operation that it rewrites.
    """

    kind: Kind
    what: str
    write: str = ""
    saves: int = 0
    orders: Orders = field(default_factory=dict)
    results: Orders = field(default_factory=dict)
    padded: Orders = field(default_factory=dict)
    reshaped: Orders = field(default_factory=dict)
    donated: tuple[int, ...] = ()
    rewrite: int = -1
    cause: str = ""

    @property
    def change(self) -> ChangeEntry:
        """The change as plain data; numbers of parameters are text, as in JSON."""
        return {
            "orders": _numbered(self.orders),
            "results": _numbered(self.results),
            "padded": _numbered(self.padded),
            "reshaped": _numbered(self.reshaped),
            "donated": list(self.donated),
            "rewrite": self.rewrite,
        }


def _numbered(orders: Orders) -> dict[str, list[int]]:
    return {str(key): list(value) for key, value in orders.items()}


NOTHING = ProgramChange("together", "nothing is changed")
"""The program as it is."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The resources of a program. Bytes on one device; None where the compiler does not say.

    memory: arguments, results and temporaries, less what they share (`Memory.taken`).
    copied: bytes that copies and transposes between layouts read and write in one run.  copies: how often one runs.
    copied_each_trip: the same bytes of loops whose trip count is unknown, for one trip.
    cycles: as the compiler estimates them; only comparable with those of the same compiler.
    """

    arguments: int | None = None
    temporaries: int | None = None
    memory: int | None = None
    copied: int = 0
    copies: int = 0
    copied_each_trip: int = 0
    cycles: int | None = None


Verdict = Literal["helped", "same", "worse", "trade", "failed"]
FiguresEntry = Annotated[dict[str, Any] | None, Exactly(Figures | None)]
"""`Figures` as JSON has them."""


class TryEntry(TypedDict):
    kind: Kind
    what: str
    write: Annotated[str, Doc("what to write in JAX")]
    causes: Annotated[list[str], Doc("what moved data that no longer does: the operation, its place, both layouts")]
    change: ChangeEntry
    verdict: Verdict
    figures: FiguresEntry
    less: Annotated[list[str], Doc("memory, copies, copies in loops, cycles: what is less than before")]
    more: list[str]
    layouts: Annotated[dict[str, str], Doc("what the compiler chose otherwise, where it was left the choice")]
    problem: Annotated[str, Doc("of what failed")]


@dataclass(frozen=True, slots=True)
class Try:
    """The effect of one candidate.

    verdict: `helped` (something is less and nothing is more), `same`, `worse`, `trade` (something is less, something
    more), `failed` (not compiled; `problem` says why).  less, more: which figures.  layouts: where the compiler chose
    them, those parameters and results by name that it lays out otherwise than before.  causes: the copies that it
    saves, each as the operation of the user's source that moves the data, its place, and both layouts.
    """

    candidate: ProgramChange
    verdict: Verdict
    figures: Figures | None = None
    less: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    layouts: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    causes: tuple[str, ...] = ()

    def as_dict(self) -> TryEntry:
        """Plain data."""
        c = self.candidate
        return {
            "kind": c.kind,
            "what": c.what,
            "write": c.write,
            "causes": list(self.causes),
            "change": c.change,
            "verdict": self.verdict,
            "figures": None if self.figures is None else asdict(self.figures),
            "less": list(self.less),
            "more": list(self.more),
            "layouts": dict(self.layouts),
            "problem": self.problem,
        }


def figures(record: Record) -> Figures:
    """The resources of a program by its record."""
    memory = record.memory
    known = [each for each in record.copies if _counts(each) and each.often.times is not None]
    unknown = [each for each in record.copies if _counts(each) and each.often.times is None]
    return Figures(
        memory.arguments if memory.arguments is not None else record.entry_bytes,
        memory.temporaries,
        memory.taken,
        sum((each.bytes or 0) * each.count * (each.often.times or 0) for each in known),
        sum(each.count * (each.often.times or 0) for each in known),
        sum((each.bytes or 0) * each.count for each in unknown),
        record.cycles,
    )


def _counts(copy: Copy) -> bool:
    """Whether a copy is one that a layout could have saved: a copy to another memory is wanted."""
    return copy.kind != "space"


def judged(
    candidate: ProgramChange,
    before: Record,
    after: Record,
    moved_by: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Try:
    """Whether a candidate helped, by the records of one program without and with it, of one compiler.

    moved_by: the operations that move data before what is computed at a place.

    >>> from dataclasses import replace
    >>> from layoutproof.programs.record import MemoryStats
    >>> one = Record("m", memory=MemoryStats(arguments=1000, outputs=8, temporaries=1000))
    >>> judged(NOTHING, one, replace(one, memory=MemoryStats(arguments=1000, outputs=8, temporaries=0))).verdict
    'helped'
    """
    was, now = figures(before), figures(after)
    floor = BYTES / 10 * (was.memory or was.arguments or 0)
    less: list[str] = []
    more: list[str] = []
    for name, words, share, least in (
        ("memory", "memory", BYTES, floor),
        ("copied", "copies", BYTES, floor),
        ("copied_each_trip", "copies in loops", BYTES, floor),
        ("cycles", "cycles", CYCLES, 0.0),
    ):
        one, other = getattr(was, name), getattr(now, name)
        if one is None or other is None or abs(other - one) <= max(share * one, least):
            continue
        (less if other < one else more).append(words)
    verdict: Verdict = "trade" if less and more else "helped" if less else "worse" if more else "same"
    chosen = _chosen(candidate, before, after)
    return Try(candidate, verdict, now, tuple(less), tuple(more), chosen, causes=_saved(before, after, moved_by))


def _saved(before: Record, after: Record, moved_by: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The copies of a program that another form of it does not have, in words, the most bytes first.

    They are matched by what they do, since names and places differ.
    """
    left = Counter({_does(copy): 0 for copy in before.copies})
    for copy in after.copies:
        left[_does(copy)] += copy.count
    found = []
    for copy in filter(_counts, before.copies):
        stays = min(left[_does(copy)], copy.count)
        left[_does(copy)] -= stays
        if copy.count > stays:
            found.append(cause_of(copy, moved_by))
    return tuple(found)


def _does(copy: Copy) -> tuple[str, str, str]:
    return (copy.kind, copy.source, copy.target)


def cause_of(copy: Copy, moved_by: Mapping[str, Sequence[str]] = MappingProxyType({})) -> str:
    """What moves data, in words: the operation of the user's source, its `file:line`, both layouts, bytes.

    >>> from layoutproof.programs.record import Often, Place
    >>> place = Place("copy.1", 7, "jit(f)/transpose", "model.py:12")
    >>> cause_of(Copy(place, "copy", "relayout", "f32[8,4]{1,0}", "f32[8,4]{0,1}", 256, 1, Often()))
    'transpose at model.py:12: f32[8,4]{1,0} -> f32[8,4]{0,1}, 256 B'
    """
    source = copy.place.source
    near = next((ops for place, ops in moved_by.items() if source and _among(place, [source])), ())
    near = near or moved_by.get(copy.boundary, ())
    scope, _, last = copy.place.op_name.rpartition("/")
    operation = (last.partition("[")[0] if scope else "") or copy.opcode
    where = f" at {source}" if source else ""
    after = ""
    own = f"{operation} at {source.rpartition('/')[2]}"
    if near and own not in (words.partition(", called at ")[0] for words in near):
        after = f" {'after' if source else 'for'} {', '.join(near)}"
    whose = f" of {copy.boundary}" if copy.boundary else ""
    return f"{operation}{where}{after}{whose}: {copy.source} -> {copy.target}, {_size(copy.bytes)}"


def rewrites_of(record: Record, found: Sequence[Mapping[str, str]]) -> tuple[ProgramChange, ...]:
    """Rewrites of a program's equations as candidates, `MOST_REWRITES` at most.

    found: each as `Rewrite.as_dict` gives it.  record: of the program; rewrites of lines at which it copies come first.
    """
    lines = {copy.place.source for copy in record.copies if _counts(copy) and copy.place.source}
    order = sorted(range(len(found)), key=lambda k: (not _among(found[k]["place"], lines), k))
    return tuple(
        ProgramChange(
            "rewrite",
            found[k]["what"],
            found[k]["write"],
            rewrite=k,
            cause=f"{found[k]['operation']} at {found[k]['place']}: {found[k]['before']} -> {found[k]['after']}",
        )
        for k in order[:MOST_REWRITES]
    )


def _among(place: str, lines: Iterable[str]) -> bool:
    """Whether a place is one of these; a record's are from the folder of the program on."""
    return any(place == line or place.endswith(f"/{line}") for line in lines)


def _chosen(candidate: ProgramChange, before: Record, after: Record) -> dict[str, str]:
    """The changed layouts that the compiler chose where a candidate left it the choice."""
    found = {}
    for numbers, was, now, what in (
        (candidate.orders, before.parameters, after.parameters, "parameter"),
        (candidate.results, before.results, after.results, "result"),
    ):
        for number, order in numbers.items():
            if order == AUTO and number < min(len(was), len(now)) and was[number].shape != now[number].shape:
                found[name_of(was[number], what)] = now[number].shape
    return found


def changes(before: Figures, after: Figures) -> str:
    """The figures that differ, before and after, in one line.

    >>> changes(Figures(memory=4096, copied=2048, copies=1, cycles=100), Figures(memory=4096, cycles=50))
    'copies 2048 B in 1 -> 0 B in 0, cycles 100 -> 50 (-50 %)'
    """
    parts = []
    for name in ("memory", "arguments", "temporaries"):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            parts.append(f"{name} {_size(one)} -> {_size(other)}")
    if (before.copied, before.copies) != (after.copied, after.copies):
        parts.append(f"copies {_size(before.copied)} in {before.copies} -> {_size(after.copied)} in {after.copies}")
    if before.copied_each_trip != after.copied_each_trip:
        parts.append(f"copies each trip {_size(before.copied_each_trip)} -> {_size(after.copied_each_trip)}")
    if before.cycles != after.cycles:
        one, other = (("unknown" if n is None else f"{n:,}") for n in (before.cycles, after.cycles))
        share = f" ({100 * (after.cycles / before.cycles - 1):+.0f} %)" if before.cycles and after.cycles else ""
        parts.append(f"cycles {one} -> {other}{share}")
    return ", ".join(parts) or "no figure changes"


def words(of: Figures) -> str:
    """All figures in one line."""
    parts = [f"{name} {_size(getattr(of, name))}" for name in ("memory", "arguments", "temporaries")]
    parts.append(f"copies {_size(of.copied)} in {of.copies}")
    if of.copied_each_trip:
        parts.append(f"and {_size(of.copied_each_trip)} each trip of loops of unknown length")
    if of.cycles is not None:
        parts.append(f"{of.cycles:,} cycles estimated")
    return ", ".join(parts)


def _size(amount: int | None) -> str:
    return "unknown" if amount is None else size(amount)


def name_of(value: ProgramValue, what: str) -> str:
    """The name of a parameter or a result."""
    return value.name or f"{what} {value.number}"


def candidates(record: Record, donors: bool = True, target: str = DEFAULT_TARGET) -> tuple[ProgramChange, ...]:
    """The candidates for a program, the most promising first, `MOST` at most.

    donors: whether it is known which parameters are donated already.  target: whose tiles a reshaped array has.
    Orders of results, larger and reshaped parameters are tried on one device only: there a shape is the whole.
    """
    found: list[ProgramChange] = []
    for each in _all(record, donors, target):
        if all(each.change != other.change for other in found):
            found.append(each)
    return tuple(found[:MOST])


def _all(record: Record, donors: bool, target: str) -> Iterator[ProgramChange]:
    alone = record.devices == 1
    layouts = {value.number: _layout(value) for value in record.parameters}
    results = {value.number: _layout(value) for value in record.results} if alone else {}
    whole = [value.number for value in record.parameters]
    yield ProgramChange(
        "auto",
        "the compiler chooses the layouts of all parameters and results",
        "in_shardings and out_shardings: Format(Layout.AUTO), then device_put to compiled.input_formats",
        orders=dict.fromkeys(whole, AUTO),
        results={value.number: AUTO for value in record.results},
    )
    yield from _copied(record, layouts, results)
    if donors:
        yield from _donations(record)
    if alone:
        yield from _reshapes(record, layouts, target)
        yield from _paddings(record, layouts)
    for value in _largest(record.parameters, layouts):
        yield _order("parameter", value, _swapped(layouts[value.number]))
    for value in _largest(record.results, results):
        yield _order("result", value, _swapped(results[value.number]))


def _copied(
    record: Record, layouts: Mapping[int, XlaLayout | None], results: Mapping[int, XlaLayout | None]
) -> Iterator[ProgramChange]:
    """A parameter in the layout into which the program copies it first; a result in the one from which."""
    for copy in record.copies:
        what, _, number = copy.boundary.partition(" ")
        if copy.kind != "relayout" or copy.opcode != "copy" or not number.isdigit():
            continue
        known, values = (layouts, record.parameters) if what == "parameter" else (results, record.results)
        own = known.get(int(number))
        wanted = _array(copy.target if what == "parameter" else copy.source)
        if own is None or wanted is None or own.dims != wanted.dims or own.minor_to_major == wanted.minor_to_major:
            continue
        value = next(each for each in values if each.number == int(number))
        yield _order(what, value, _major(wanted), copy.bytes or 0)


def _order(what: str, value: ProgramValue, order: Sequence[int], saves: int = 0) -> ProgramChange:
    minor = ",".join(map(str, reversed(order)))
    orders = {value.number: tuple(order)}
    where = "in_shardings" if what == "parameter" else "out_shardings"
    return ProgramChange(
        "order",
        f"{name_of(value, what)} laid out {{{minor}}} instead of {_shown(value)}",
        f"{where}: Format(Layout({tuple(order)}), sharding) for {name_of(value, what)}",
        saves,
        orders=orders if what == "parameter" else {},
        results={} if what == "parameter" else orders,
    )


def _donations(record: Record) -> Iterator[ProgramChange]:
    """A parameter whose buffer a result of the same shape could take; all such together."""
    free = [value for value in record.results if value.alias is None]
    given: list[ProgramValue] = []
    for value in sorted(record.parameters, key=lambda each: -(each.bytes or 0)):
        match = next((each for each in free if _same(value, each)), None)
        if value.donated or match is None:
            continue
        free.remove(match)
        given.append(value)
    chosen = [[each] for each in given[:LARGEST]] + ([given] if len(given) > 1 else [])
    for group in chosen[::-1]:
        names = ", ".join(name_of(each, "parameter") for each in group[:4]) + (", .." if len(group) > 4 else "")
        numbers = tuple(sorted(each.number for each in group))
        saves = sum(each.bytes or 0 for each in group)
        yield ProgramChange("donation", f"{names} donated", f"donate_argnums for {names}", saves, donated=numbers)


def _same(one: ProgramValue, other: ProgramValue) -> bool:
    """Whether two values have one element type and one shape."""
    a, b = _layout(one), _layout(other)
    return a is not None and b is not None and (a.element_type, a.dims) == (b.element_type, b.dims)


def _reshapes(record: Record, layouts: Mapping[int, XlaLayout | None], target: str) -> Iterator[ProgramChange]:
    """A parameter whose tiles are mostly padding, held with neighbouring dimensions merged."""
    for value in record.parameters:
        layout = layouts[value.number]
        if layout is None or not value.bytes or not value.unpadded or value.bytes < 1.25 * value.unpadded:
            continue
        try:
            merged = cheapest_merge(layout, target)
        except LayoutError:
            continue
        if merged is None or padded_bytes(merged) >= value.bytes:
            continue
        dims = tuple(map(int, merged.dims))
        name = name_of(value, "parameter")
        yield ProgramChange(
            "reshape",
            f"{name} held as {_dims(layout, dims)}, reshaped to {_dims(layout, layout.dims)} by the program",
            f"{name}.reshape({', '.join(map(str, layout.dims))}) first in the function",
            value.bytes - padded_bytes(merged),
            reshaped={value.number: dims},
        )


def _paddings(record: Record, layouts: Mapping[int, XlaLayout | None]) -> Iterator[ProgramChange]:
    """One of the largest parameters held padded, up to its tile and up to whole lanes, and sliced by the program."""
    for value in _largest(record.parameters, layouts):
        layout = layouts[value.number]
        if layout is None or not layout.tiles or len(layout.tiles[0]) != 2:
            continue
        dims = tuple(int(n) for n in layout.dims)
        lanes, rows = layout.minor_to_major[:2]
        tiled = list(dims)
        for dimension, tile in ((rows, layout.tiles[0][0]), (lanes, layout.tiles[0][1])):
            tiled[dimension] = _up(dims[dimension], int(tile))
        wide = [_up(n, LANES) if n >= LANES else tiled[k] for k, n in enumerate(dims)]
        for larger in (tuple(tiled), tuple(wide)):
            if larger != dims and product(larger) <= 2 * product(dims):
                name = name_of(value, "parameter")
                yield ProgramChange(
                    "padding",
                    f"{name} held as {_dims(layout, larger)}, its corner {_dims(layout, dims)} sliced by the program",
                    f"{name}[{', '.join(f':{n}' for n in dims)}] first in the function",
                    padded={value.number: larger},
                )


def together(tries: Iterable[Try]) -> ProgramChange | None:
    """All that helped at once, the most helpful of what excludes each other first; None for less than two."""
    chosen: list[ProgramChange] = []
    taken: set[tuple[str, int]] = set()
    for each in tries:
        c = each.candidate
        if c.rewrite >= 0:
            continue
        touched = {("parameter", n) for table in (c.orders, c.padded, c.reshaped) for n in table}
        # a parameter in another form has no buffer that a result could take
        touched |= {("donated", n) for table in (c.padded, c.reshaped) for n in table}
        touched |= {("result", n) for n in c.results} | {("donated", n) for n in c.donated}
        if each.verdict == "helped" and not touched & taken:
            chosen.append(c)
            taken |= touched
    if len(chosen) < 2:
        return None

    def merged(name: str) -> dict[int, tuple[int, ...]]:
        return {number: order for c in chosen for number, order in getattr(c, name).items()}

    return ProgramChange(
        "together",
        "; ".join(c.what for c in chosen),
        "; ".join(c.write for c in chosen),
        sum(c.saves for c in chosen),
        merged("orders"),
        merged("results"),
        merged("padded"),
        merged("reshaped"),
        tuple(sorted({n for c in chosen for n in c.donated})),
    )


def gain(before: Figures, of: Try) -> tuple[float, float]:
    """How much a try saves, the more the larger: share of memory and copies, share of cycles."""
    after = of.figures
    if after is None:
        return (0.0, 0.0)
    whole = before.memory or before.arguments or 1
    saved = (before.memory or 0) - (after.memory or 0) + before.copied - after.copied
    saved += before.copied_each_trip - after.copied_each_trip
    cycles = 1 - after.cycles / before.cycles if before.cycles and after.cycles else 0.0
    return (saved / whole + cycles, -float(len(of.candidate.orders) + len(of.candidate.results)))


def _largest(values: Sequence[ProgramValue], layouts: Mapping[int, XlaLayout | None]) -> list[ProgramValue]:
    """The largest values of two or more dimensions whose layouts are known."""
    known = [each for each in values if (layout := layouts.get(each.number)) is not None and len(layout.dims) > 1]
    return sorted(known, key=lambda each: -(each.bytes or 0))[:LARGEST]


def _layout(value: ProgramValue) -> XlaLayout | None:
    return _array(value.shape)


def _array(text: str) -> XlaLayout | None:
    """The layout that a text writes; None for a tuple, a token, sizes that are not known."""
    try:
        found = xla.read(text)
    except LayoutError:
        return None
    if not isinstance(found, XlaLayout) or any(type(n) is not int for n in found.dims) or 0 in found.dims:
        return None
    return None if any(found.dynamic) else found


def _major(layout: XlaLayout) -> tuple[int, ...]:
    return tuple(reversed(layout.minor_to_major))


def _swapped(layout: XlaLayout | None) -> tuple[int, ...]:
    """The order from major to minor, with the last two exchanged."""
    order = list(_major(layout)) if layout is not None else []
    order[-2:] = order[-2:][::-1]
    return tuple(order)


def _shown(value: ProgramValue) -> str:
    layout = _layout(value)
    return "{}" if layout is None else f"{{{','.join(map(str, layout.minor_to_major))}}}"


def _dims(layout: XlaLayout, dims: Sequence[object]) -> str:
    return f"{layout.element_type}[{','.join(map(str, dims))}]"


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple
