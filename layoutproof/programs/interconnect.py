"""The least time that a step's collectives take on the links between chips, by directions of the torus.

A chip has a link to each neighbour, which carries so many bytes a second each way (`hardware.tpu_chips`). Whatever the
routes are, what is sent takes three kinds of least amounts, each by the links that it must use:
    volume   chips that agree in some directions form a class. What a group exchanges goes from class to class, and only
             links of these directions lead from one to another: all bytes that must enter classes, by all such links
    cut      a part of one direction, from one place to another: all bytes that must enter it, by the links into it. The
             halves of a direction are the bisection of the torus
    lengths  each link along a ring has one length in one way and another in the other way: every byte takes at least
             the length of the shortest way, and all links together have the sum of their lengths. Equal lengths count
             hops; others say that a shift by one place cannot use the long way round without more hops there
The largest of them is the bound. Amounts of all collectives are added for the same links, since a link carries one byte
at a time.

A direction of two chips has one link between them. A longer one is a ring where the chip's generation may close it
(`closes`), and else a line. What the cores of one chip exchange takes no link. What goes between slices takes a network
whose rate is not known: it is said, and no link's rate bounds it; slices count beside one another, each with its links.
Nothing is said of latencies, nor of twisted tori, which no topology that is compiled for here has.

Source: the amounts of Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69 (2009), section 2, with
chips for their nodes. Cuts and lengths are the dual of a flow of several goods: Shahrokhi and Matula, The maximum
concurrent flow problem, JACM 37 (1990), theorem 2.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod

from layoutproof.core.counted import Counted
from layoutproof.core.errors import LayoutError
from layoutproof.core.size import ceil_div
from layoutproof.hardware.tpu_chips import Chip
from layoutproof.hlo.collectives import read_back
from layoutproof.hlo.groups import Groups, read_words
from layoutproof.hlo.shapes import Shapes
from layoutproof.programs.record import Collective, Provenance, Record

DIRECTIONS = "xyz"
UNKNOWN = "of unknown directions"
BETWEEN = "between slices"
Coordinates = tuple[int, ...]
Amount = Callable[[str, Groups, int], int]
"""Bytes that some links carry of a collective: of its kind, groups (of a permutation pairs), and size on a device."""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What goes over some links in one step.

    bytes: that they carry at the least, all together.  links: directed ones, 0 = not known which.  axes: those of the
    mesh of each collective that goes along whole axes, in words.  part: where the links lead, "" for all of these
    directions.
    """

    bytes: Counted
    links: int
    axes: tuple[str, ...]
    part: str = ""


@dataclass(frozen=True, slots=True)
class _Weighing:
    """Links, and what collectives take of them at the least."""

    links: int
    amount: Amount
    part: str = ""


@dataclass(frozen=True, slots=True)
class _Slices:
    """Whole boxes of chips beside one another.

    at, slices: of each device.  extents, rings: of a slice, by direction.  chips: of all slices.
    """

    at: tuple[Coordinates, ...]
    slices: tuple[int, ...]
    extents: tuple[int, ...]
    chips: int
    rings: tuple[bool, ...]

    def along(self, groups: Groups) -> tuple[int, ...]:
        """The directions in which chips of a group differ."""
        return tuple(
            k for k in range(len(self.extents)) if any(len({self.at[d][k] for d in group}) > 1 for group in groups)
        )

    def planes(self, k: int) -> int:
        """How many chips agree in a direction: of all slices, so many lines of links go along it."""
        return self.chips // self.extents[k]

    def links(self, along: Sequence[int]) -> int:
        """Directed links along some directions."""
        return sum(2 * self.planes(k) * (self.extents[k] - (not self.rings[k])) for k in along)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A collective within slices. over: groups of more than one chip.  size: bytes on one device."""

    of: Collective
    over: Groups
    along: tuple[int, ...]
    size: int

    def counted(self, total: int) -> Counted:
        """An amount each time, in a step."""
        place, often = self.of.place, self.of.often
        return often.counted(total, f"{place}: it stands in a branch", f"{place}: {often.why}")


def exchanged(record: Record, chip: Chip) -> Mapping[str, Exchanged]:
    """What the collectives of a program send between chips.

    Args:
        record: The program.
        chip: Its generation.

    Returns:
        Directions, as `x, y` -> what goes along them, by the links that take longest. {} where the record does not say
        where its devices are, or the chip's links have no known rate.
    """
    if not record.made.chips or not chip.link_bandwidth:
        return {}
    torus = _slice(record.made, chip)
    sent: list[_Sent] = []
    open_: dict[str, Counted] = {}
    for each in record.collectives:
        groups, size = _groups(each), _size(each)
        if torus is None or groups is None or size is None or not _within(groups, torus):
            why = "what it sends is not known" if torus is not None else "its chips are no whole slices"
            open_[UNKNOWN] = open_.get(UNKNOWN, Counted()) + Counted(0, None, f"{each.place}: {why}")
            continue
        own = tuple(group for group in groups if len({torus.slices[d] for d in group}) == 1)
        if len(own) < len(groups):
            why = f"{each.place}: it goes between slices, and the rate of the network between them is not known"
            open_[BETWEEN] = open_.get(BETWEEN, Counted()) + Counted(0, None, why)
        own = tuple(group for group in own if len({torus.at[d] for d in group}) > 1)
        if along := torus.along(own):
            sent.append(_Sent(each, own, along, size))
    for kernel in record.kernels:
        if kernel.communicates:
            why = f"{kernel.place}: it talks to devices itself"
            open_[UNKNOWN] = open_.get(UNKNOWN, Counted()) + Counted(0, None, why)
    found: dict[str, Exchanged] = {}
    for along in dict.fromkeys(each.along for each in sent):
        assert torus is not None
        found[", ".join(DIRECTIONS[k] for k in along)] = _longest(sent, along, torus)
    return found | {name: Exchanged(amount, 0, ()) for name, amount in open_.items()}


def _slice(made: Provenance, chip: Chip) -> _Slices | None:
    """Where devices are; None where they are not all devices of whole boxes of chips, so that links are not known."""
    slices = made.slices or (0,) * len(made.chips)
    extents = tuple(max(place) + 1 for place in zip(*made.chips, strict=True))
    chips = Counter(zip(slices, made.chips, strict=True))
    if len(chips) != len(set(slices)) * prod(extents) or max(chips.values()) > chip.devices:
        return None
    rings = tuple(extent > 2 and extent % chip.closes == 0 for extent in extents)
    return _Slices(made.chips, slices, extents, len(chips), rings)


def _within(groups: Groups, torus: _Slices) -> bool:
    return all(0 <= d < len(torus.at) for group in groups for d in group)


def _groups(of: Collective) -> Groups | None:
    """The devices of each group, or the two of each pair; None where the record's words do not list them."""
    if of.kind in ("send", "recv", "ragged-all-to-all"):
        return None
    found = read_words(read_back(of.kind, of.does).over)
    return found if found or of.groups == 0 else None


def _size(of: Collective) -> int | None:
    """Bytes of the elements alone of its larger side, on one device: padding need not be sent."""
    shapes = Shapes()
    try:
        sides = [[shapes.of(text).arrays for text in side] for side in (of.operands, of.results)]
    except LayoutError:
        return None
    every = [[array for arrays in side for array in arrays] for side in sides]
    if any(array.unknown for side in every for array in side):
        return None
    return max(sum(array.unpadded for array in side) for side in every)


def _longest(sent: Sequence[_Sent], along: Sequence[int], torus: _Slices) -> Exchanged:
    """Of all amounts along some directions the one that takes its links longest."""
    those = [each for each in sent if set(each.along) & set(along)]
    found = []
    for one in _weighings(along, torus):
        amounts = (each.counted(one.amount(each.of.kind, each.over, each.size)) for each in those)
        found.append((one, sum(amounts, Counted())))
    best, total = max(found, key=lambda pair: Fraction(pair[1].least, pair[0].links))
    most: int | None = None
    if all(other.most is not None for _, other in found):
        most = max(ceil_div((other.most or 0) * best.links, one.links) for one, other in found)
    why = total.why or next((other.why for _, other in found if other.why), "")
    axes = dict.fromkeys(", ".join(each.of.axes) for each in those if each.of.axes)
    return Exchanged(Counted(total.least, most, why), best.links, tuple(axes), best.part)


def _weighings(along: Sequence[int], torus: _Slices) -> Iterator[_Weighing]:
    """The links of some directions together, and the parts and lengths of each direction."""

    @lru_cache(maxsize=256)
    def classes(groups: Groups) -> Counter[tuple[int, ...]]:
        """How many groups have so many devices in each of their classes."""
        at = [tuple(place[k] for k in along) for place in torus.at]
        return Counter(tuple(sorted(Counter(at[d] for d in group).values())) for group in groups)

    def volume(kind: str, groups: Groups, size: int) -> int:
        return sum(many * _entering(kind, each, size) for each, many in classes(groups).items())

    yield _Weighing(torus.links(along), volume)
    for k in along:
        yield from _of_direction(k, torus)


def _of_direction(k: int, torus: _Slices) -> Iterator[_Weighing]:
    """The parts of one direction, and lengths of its links where it is a ring."""
    extent, ring, planes, name = torus.extents[k], torus.rings[k], torus.planes(k), DIRECTIONS[k]

    @lru_cache(maxsize=256)
    def positions(groups: Groups) -> Counter[tuple[int, ...]]:
        """How many groups have their devices there, in their order."""
        return Counter(tuple(torus.at[d][k] for d in group) for group in groups)

    def cut(inside: frozenset[int]) -> Amount:
        @lru_cache(maxsize=256)
        def halves(groups: Groups) -> Counter[tuple[int, int, bool]]:
            found = Counter[tuple[int, int, bool]]()
            for group, many in positions(groups).items():
                found[len(group), sum(p in inside for p in group), group[0] in inside] += many
            return found

        return lambda kind, groups, size: sum(
            many * _crossing(kind, devices, within, first, size)
            for (devices, within, first), many in halves(groups).items()
        )

    def hops(forth: int) -> Amount:
        """Bytes by lengths of which the two ways of a link have 2 together, as they have in hops."""

        def amount(kind: str, groups: Groups, size: int) -> int:
            if kind != "collective-permute":
                return 0
            pairs = positions(groups).items()
            far = ((many, (end - start) % extent, (start - end) % extent) for (start, end), many in pairs)
            return 2 * size * sum(many * min(on * forth, back * (extent - forth)) for many, on, back in far) // extent

        return amount

    for start in range(extent):
        for end in range(start + 1, start + extent) if ring else (extent,) if start else range(1, extent):
            part = f"into {name} {start} .. {(end - 1) % extent}"
            yield _Weighing(planes * (1 + ring), cut(frozenset(p % extent for p in range(start, end))), part)
    for forth in range(1, extent if ring else 0):
        way = "" if 2 * forth == extent else f", {forth} to {extent - forth} by the way"
        yield _Weighing(2 * planes * extent, hops(forth), f"times hops along {name}{way}")


def _entering(kind: str, chips: Sequence[int], size: int) -> int:
    """Bytes that classes of one group get from its other classes, all together. chips: of each its devices."""
    many, devices = len(chips), sum(chips)
    if kind == "all-gather":
        return sum(size - size * own // devices for own in chips)
    if kind == "all-to-all":
        return sum(size * own * (devices - own) // devices for own in chips)
    # a sum of all chips takes a message from each but one to the place where it is whole, and one back to each
    return {"all-reduce": 2, "reduce-scatter": 1, "collective-permute": 1, "collective-broadcast": 1}[kind] * (
        (many - 1) * size
    )


def _crossing(kind: str, devices: int, within: int, first: bool, size: int) -> int:
    """Bytes that must enter a part. within: of the devices of a group those there.  first: whether its first one is."""
    if not 0 < within < devices:
        return 0
    if kind == "all-gather":
        return size * (devices - within) // devices
    if kind == "reduce-scatter":
        return size * within // devices
    if kind == "all-to-all":
        return size * within * (devices - within) // devices
    # a sum has to know of the others; of a permutation the first one sends, and of a broadcast, too
    return size if kind == "all-reduce" or not first else 0
