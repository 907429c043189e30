"""Answers about arrays as plain data; every certificate says how many candidates it covers."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from layoutproof.core.document import Doc, Exactly, envelope
from layoutproof.searching.array_layouts import ArrayAnswer, SharedAnswer, Sized
from layoutproof.searching.arrays_answer import ArraysAnswer
from layoutproof.searching.document import CertificateEntry, ProblemDocument
from layoutproof.searching.padded_shapes import PaddingAnswer
from layoutproof.searching.shardings import ExchangeKind, Shard, ShardingAnswer


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


class ExchangeEntry(TypedDict):
    """A collective that a product needs."""

    kind: Annotated[str, Exactly(ExchangeKind)]
    product: str
    array: Annotated[str, Doc("whose shards are sent")]
    axes: list[str]
    bytes: Annotated[int, Doc("that each device receives")]


class ShardingsEntry(TypedDict):
    """The best assignments of mesh axes."""

    best: list[dict[str, ShardEntry]]
    figures: list[SentEntry]
    all_reduces: Annotated[list[list[AllReduceEntry]], Doc("those of `exchanges`")]
    exchanges: list[list[ExchangeEntry]]
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


class UnknownEntry(TypedDict):
    unknown: str


class OrdersEntry(TypedDict):
    """The best layouts of each array, and with one order for all of them."""

    each: dict[str, LayoutsEntry]
    shared: NotRequired[SharedEntry | UnknownEntry]


class _Sections(TypedDict, total=False):
    layouts: OrdersEntry
    padding: dict[str, PaddingEntry | UnknownEntry]
    shardings: ShardingsEntry


class ArraysDocument(ProblemDocument, _Sections):
    """The best layouts, paddings and shardings of arrays."""


def as_json(answer: ArraysAnswer) -> ArraysDocument:
    """The answer as plain data, with a key for everything that was asked."""
    found: _Sections = {}
    if answer.layouts:
        found["layouts"] = {"each": {name: _layouts(one, answer.best) for name, one in answer.layouts.items()}}
    if answer.shared is not None:
        shared = answer.shared
        found["layouts"]["shared"] = {"unknown": shared} if isinstance(shared, str) else _shared(shared)
    if answer.padding:
        found["padding"] = {
            name: {"unknown": one} if isinstance(one, str) else _padding(one) for name, one in answer.padding.items()
        }
    if answer.shardings is not None:
        found["shardings"] = _shardings(answer.shardings)
    return {
        **envelope(answer.verdict.exit_code),
        "subject": answer.name,
        "target": answer.target,
        "verdict": answer.verdict.value,
        **found,
    }


def _layouts(answer: ArrayAnswer, best: int) -> LayoutsEntry:
    data: LayoutsEntry = {
        "best": [_sized(sized) for sized in answer.best[:best]],
        "default": _sized(answer.default),
        "unpadded_bytes": answer.unpadded,
        "certificate": {"kind": "enumerated", "covered": answer.covered},
    }
    if answer.given is not None:
        data["written"] = _sized(answer.given)
    return data


def _shared(answer: SharedAnswer) -> SharedEntry:
    return {
        "order": list(answer.order),
        "layouts": {name: _sized(sized) for name, sized in answer.layouts.items()},
        "bytes": answer.bytes,
        "bytes_each": answer.apart,
        "certificate": {"kind": "enumerated", "covered": answer.covered, "sets": answer.sets},
    }


def _padding(answer: PaddingAnswer) -> PaddingEntry:
    return {
        "now": str(answer.now),
        "bytes": answer.bytes,
        "wasted_bytes": answer.wasted,
        "full": None if answer.full is None else str(answer.full),
        "dims": None if answer.full is None else [int(n) for n in answer.full.dims],
        "growth_elements": answer.growth,
        "certificate": {"kind": "closed form", "covered": answer.covered},
        "reason": answer.reason,
    }


def _shardings(answer: ShardingAnswer) -> ShardingsEntry:
    restrictions = list(answer.require)
    return {
        "best": [{name: _shard(shard) for name, shard in one.shards.items()} for one in answer.best],
        "figures": [{"cost": one.cost, "bytes": one.bytes, "sent": one.sent} for one in answer.best],
        "all_reduces": [
            [
                {"product": str(each.product), "axes": list(each.axes), "bytes": each.bytes}
                for each in one.exchanges
                if each.kind == "all-reduce"
            ]
            for one in answer.best
        ],
        "exchanges": [
            [
                {
                    "kind": each.kind,
                    "product": str(each.product),
                    "array": each.array,
                    "axes": list(each.axes),
                    "bytes": each.bytes,
                }
                for each in one.exchanges
            ]
            for one in answer.best
        ],
        "price": answer.price,
        "rule": answer.rule,
        "memory": answer.memory,
        "require": restrictions,
        "least_bytes": None if answer.reason else answer.least,
        "least_bytes_unrestricted": None if answer.reason else answer.least_of_all,
        "infeasible": list(answer.infeasible),
        "conflict": list(answer.infeasible),
        "enough": dict(answer.enough),
        "certificate": {
            "kind": "unknown" if answer.reason else "enumerated",
            "covered": 0 if answer.reason else answer.covered,
            "require": restrictions,
            "reason": answer.reason,
        },
    }


def _shard(shard: Shard) -> ShardEntry:
    return {
        "spec": [list(axes) or None for axes in shard.spec],
        "shard": str(shard.layout),
        "bytes": shard.bytes,
        "even": shard.even,
    }


def _sized(sized: Sized) -> SizedEntry:
    if sized.values:
        return {"values": dict(sized.values), "layout": str(sized.layout), "bytes": sized.bytes}
    return {"layout": str(sized.layout), "bytes": sized.bytes}
