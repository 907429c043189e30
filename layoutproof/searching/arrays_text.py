"""Answers about arrays as plain data and as lines for people; every certificate says how many candidates it covers."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from layoutproof.core.document import Doc
from layoutproof.searching.array_layouts import ArrayAnswer, ArrayTilings, SharedAnswer, Sized
from layoutproof.searching.document import CertificateEntry
from layoutproof.searching.padded_shapes import PaddingAnswer
from layoutproof.searching.shardings import RESTRICTIONS, RULE, Shard, ShardingAnswer


class SizedEntry(TypedDict):
    layout: str
    bytes: int
    values: NotRequired[Annotated[dict[str, int], Doc("of tile variables, where the tiles are searched")]]


class LayoutsEntry(TypedDict):
    """The best layouts of one array, or the best tiles."""

    best: list[SizedEntry]
    default: Annotated[SizedEntry, Doc("what the compiler gives by itself")]
    unpadded_bytes: int
    certificate: CertificateEntry
    written: NotRequired[Annotated[SizedEntry, Doc("the layout in the file")]]


class SharedEntry(TypedDict):
    """One order for all arrays."""

    order: list[str]
    layouts: dict[str, SizedEntry]
    bytes: int
    bytes_each: Annotated[int, Doc("with an order of its own for each")]
    certificate: CertificateEntry


class PaddingEntry(TypedDict):
    """The nearest shape that wastes nothing."""

    now: str
    bytes: int
    wasted_bytes: int
    full: Annotated[str | None, Doc("null where there is none, and reason says why")]
    dims: list[int] | None
    growth_elements: int
    certificate: CertificateEntry
    reason: str


class ShardEntry(TypedDict):
    """How an array is cut."""

    spec: Annotated[list[list[str] | None], Doc("mesh axes by dimension")]
    shard: str
    bytes: int
    even: bool


class SentEntry(TypedDict):
    """The memory and the traffic of one assignment."""

    cost: int
    bytes: int
    sent: int


class AllReduceEntry(TypedDict):
    """Partial sums of a product that the devices exchange."""

    product: str
    axes: list[str]
    bytes: int


class ShardingsEntry(TypedDict):
    """The best assignments of mesh axes."""

    best: list[dict[str, ShardEntry]]
    figures: list[SentEntry]
    all_reduces: list[list[AllReduceEntry]]
    price: Annotated[int | None, Doc("of a byte sent, in bytes held; null where no product says what is sent")]
    rule: str
    memory: int
    require: list[str]
    least_bytes: int | None
    least_bytes_unrestricted: int | None
    infeasible: list[str]
    conflict: Annotated[list[str], Doc("the older name of `infeasible`")]
    enough: dict[str, int]
    certificate: CertificateEntry


def layouts_rows(name: str, answer: ArrayAnswer, best: int) -> tuple[LayoutsEntry, list[str]]:
    """The best layouts of one array."""
    first = answer.best[0]
    lines = [f"  {name}  {first.layout}  {_bytes(first.bytes)}, {_times(first.bytes, answer.unpadded)} of its elements"]
    lines += [f"    next  {sized.layout}  {_bytes(sized.bytes)}" for sized in answer.best[1:best]]
    if answer.default.layout != first.layout:
        said = f"{answer.default.layout}  {_bytes(answer.default.bytes)}"
        lines.append(f"    default  {said}, {_times(answer.default.bytes, first.bytes)} of the best")
    else:
        lines.append("    it is the compiler's default")
    if answer.given is not None:
        said = f"{answer.given.layout}  {_bytes(answer.given.bytes)}"
        lines.append(f"    written  {said}, {_times(answer.given.bytes, first.bytes)} of the best")
    lines.append(f"    certificate  enumerated: all {answer.covered} orders of its dimensions")
    data: LayoutsEntry = {
        "best": [_sized(sized) for sized in answer.best[:best]],
        "default": _sized(answer.default),
        "unpadded_bytes": answer.unpadded,
        "certificate": {"kind": "enumerated", "covered": answer.covered},
    }
    if answer.given is not None:
        data["written"] = _sized(answer.given)
    return data, lines


def tilings_rows(name: str, answer: ArrayTilings, best: int) -> tuple[LayoutsEntry, list[str]]:
    """The best tiles of one array."""
    lines = []
    for rank, one in enumerate(answer.best[:best]):
        values = ", ".join(f"{key} = {value}" for key, value in one.values.items())
        more = f"{_bytes(one.sized.bytes)}, {_times(one.sized.bytes, answer.unpadded)} of its elements"
        lines.append(f"  {name if rank == 0 else ' ' * len(name)}  {values}  {one.sized.layout}  {more}")
    others = len(answer.best) - best
    lines += [f"    and {others} that take as many bytes or more"] if others > 0 else []
    lines.append(
        f"    default  {answer.default.layout}  {_bytes(answer.default.bytes)}: what the compiler gives by itself"
    )
    lines.append(
        f"    certificate  enumerated: all {len(answer.best)} choices; whether the compiler takes one is not asked"
    )
    data: LayoutsEntry = {
        "best": [
            {"values": dict(one.values), "layout": str(one.sized.layout), "bytes": one.sized.bytes}
            for one in answer.best[:best]
        ],
        "default": _sized(answer.default),
        "unpadded_bytes": answer.unpadded,
        "certificate": {"kind": "enumerated", "covered": len(answer.best)},
    }
    return data, lines


def shared_rows(answer: SharedAnswer) -> tuple[SharedEntry, list[str]]:
    """One order for all arrays."""
    lines = [f"  shared order, fastest first: {', '.join(answer.order)}  {_bytes(answer.bytes)} together"]
    lines += [f"    {name}  {sized.layout}  {_bytes(sized.bytes)}" for name, sized in answer.layouts.items()]
    more = "no more than with" if answer.bytes == answer.apart else f"{_times(answer.bytes, answer.apart)} of"
    lines.append(f"    {more} an order of its own for each ({_bytes(answer.apart)})")
    lines.append(f"    certificate  enumerated: all {answer.covered} orders, by {answer.sets} sets of names")
    data: SharedEntry = {
        "order": list(answer.order),
        "layouts": {name: _sized(sized) for name, sized in answer.layouts.items()},
        "bytes": answer.bytes,
        "bytes_each": answer.apart,
        "certificate": {"kind": "enumerated", "covered": answer.covered, "sets": answer.sets},
    }
    return data, lines


def padding_rows(name: str, answer: PaddingAnswer) -> tuple[PaddingEntry, list[str]]:
    """The nearest shape that wastes nothing."""
    lines = [f"  {name}  {answer.now}  {_bytes(answer.bytes)}, {answer.wasted} of them wasted"]
    if answer.full is None:
        lines.append(f"    none  {answer.reason}")
    elif answer.wasted:
        lines.append(f"    grow to  {answer.full}  {answer.growth} elements more, nothing wasted")
        what = f"each of {answer.covered} choices" if answer.covered > 1 else "the one choice"
        lines.append(f"    certificate  closed form: the least extents for {what} of tiled dimensions")
    else:
        lines.append("    nothing to grow")
    data: PaddingEntry = {
        "now": str(answer.now),
        "bytes": answer.bytes,
        "wasted_bytes": answer.wasted,
        "full": None if answer.full is None else str(answer.full),
        "dims": None if answer.full is None else [int(n) for n in answer.full.dims],
        "growth_elements": answer.growth,
        "certificate": {"kind": "closed form", "covered": answer.covered},
        "reason": answer.reason,
    }
    return data, lines


def sharding_rows(answer: ShardingAnswer) -> tuple[ShardingsEntry, list[str]]:
    """The best assignments of mesh axes, or why there is none."""
    lines = []
    for rank, one in enumerate(answer.best, 1):
        shards = one.shards
        sent = "" if answer.price is None else f"; {_bytes(one.sent)} sent a step; cost {one.cost}"
        lines.append(f"  {rank}.  {_bytes(one.bytes)} a device, of {answer.memory}{sent}")
        lines += [
            f"    {n}  P({_spec(s)})  a shard is {s.layout}  {_bytes(s.bytes)}{'' if s.even else ', uneven'}"
            for n, s in shards.items()
        ]
        lines += [f"    all-reduce of {s.product} over {', '.join(s.axes)}  {_bytes(s.bytes)}" for s in one.sums]
    required = " and ".join(RESTRICTIONS[word] for word in answer.require)
    if answer.reason:
        lines.append(f"  unknown  {answer.reason}")
    elif answer.infeasible:
        demands = f" for {' and '.join(answer.infeasible[1:])}" if answer.infeasible[1:] else ", however they are cut"
        lines.append(f"  none  {answer.infeasible[0]} are not enough{demands}")
        with_them = f" with {required}" if required else ""
        lines.append(f"    {_bytes(answer.least)} a device would do{with_them}")
        lines += [f"    without {word} {_bytes(size)} a device would do" for word, size in answer.enough]
    if not answer.reason:
        lines.append(f"    restriction  {_restriction(answer, required)}")
        among = f"; the best of those with {required}" if required else "; the best of all"
        among = "" if answer.infeasible else among
        lines.append(f"    certificate  enumerated: all {answer.covered} assignments of mesh axes{among}")
        lines.append(f"    rule  {RULE}")
        if answer.price is None:
            lines.append(
                "    not counted  what the devices then send one another; products: [..] says what is computed"
            )
        else:
            lines.append(
                f"    cost  bytes held + {answer.price} x bytes sent, as all-reduces of the products' partial sums"
            )
    kind = "unknown" if answer.reason else "enumerated"
    restrictions = list(answer.require)
    data: ShardingsEntry = {
        "best": [{name: _shard(shard) for name, shard in one.shards.items()} for one in answer.best],
        "figures": [{"cost": one.cost, "bytes": one.bytes, "sent": one.sent} for one in answer.best],
        "all_reduces": [
            [{"product": str(s.product), "axes": list(s.axes), "bytes": s.bytes} for s in one.sums]
            for one in answer.best
        ],
        "price": answer.price,
        "rule": RULE,
        "memory": answer.memory,
        "require": restrictions,
        "least_bytes": None if answer.reason else answer.least,
        "least_bytes_unrestricted": None if answer.reason else answer.least_of_all,
        "infeasible": list(answer.infeasible),
        "conflict": list(answer.infeasible),
        "enough": dict(answer.enough),
        "certificate": {
            "kind": kind,
            "covered": 0 if answer.reason else answer.covered,
            "require": restrictions,
            "reason": answer.reason,
        },
    }
    return data, lines


def _restriction(answer: ShardingAnswer, required: str) -> str:
    """The restriction on every shard, its cost, and how it is lifted."""
    if not required:
        return "none; JAX takes uneven shards inside of a jitted function only"
    without = "no fewer bytes" if answer.least == answer.least_of_all else f"{_bytes(answer.least_of_all)} a device"
    return f"{required}; {without} without (write require: [] to lift it)"


def _shard(shard: Shard) -> ShardEntry:
    return {
        "spec": [list(axes) or None for axes in shard.spec],
        "shard": str(shard.layout),
        "bytes": shard.bytes,
        "even": shard.even,
    }


def _spec(shard: Shard) -> str:
    entries = ["None" if not axes else repr(axes[0]) if len(axes) == 1 else repr(axes) for axes in shard.spec]
    return ", ".join(entries)


def _sized(sized: Sized) -> SizedEntry:
    return {"layout": str(sized.layout), "bytes": sized.bytes}


def _bytes(size: int) -> str:
    return f"{size} bytes"


def _times(size: int, of: int) -> str:
    return f"{size / of:.4g}x" if of else "any multiple"
