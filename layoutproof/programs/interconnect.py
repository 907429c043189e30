"""The least time that a step's collectives take on the links between chips, by directions of the torus.

A chip has a link to each neighbour, which carries so many bytes a second each way (`hardware.tpu_chips`). The chips of
one group differ along some directions. Those that agree in these directions form a class; what a group exchanges goes
from class to class, and only links of these directions lead from one to another, however it is routed. All bytes that
must enter classes, by all such links at once, is therefore a bound for any routing.

A direction of two chips has one link between them; of more the ring is counted, whether the slice closes it or not.
What the cores of one chip exchange takes no link. Nothing is said of latencies.

Source: the amounts of Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69 (2009), section 2, with
chips for their nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutproof.core.counted import Counted
from layoutproof.core.errors import LayoutError
from layoutproof.hardware.tpu_chips import Chip
from layoutproof.hlo.collectives import read_back
from layoutproof.hlo.groups import Groups, read_words
from layoutproof.hlo.shapes import Shapes
from layoutproof.programs.record import Collective, Record

DIRECTIONS = "xyz"
UNKNOWN = "of unknown directions"
Coordinates = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What goes over the links of some directions in one step.

    bytes: that enter classes, of all chips together.  links: directed links of these directions.  axes: those of the
    mesh of each collective that goes along whole axes, in words.
    """

    bytes: Counted
    links: int
    axes: tuple[str, ...]


def exchanged(record: Record, chip: Chip) -> Mapping[str, Exchanged]:
    """What the collectives of a program send between chips.

    Args:
        record: The program.
        chip: Its generation.

    Returns:
        Directions, as `x, y` -> what goes along them. {} where the record does not say where its devices are, or the
        chip's links have no known rate.
    """
    places = record.made.chips
    if not places or not chip.link_bandwidth:
        return {}
    found: dict[str, Exchanged] = {}
    for each in record.collectives:
        along, amount = _entered(each, places)
        if along or amount.most is None:
            name = ", ".join(DIRECTIONS[k] for k in along) or UNKNOWN
            axes = (", ".join(each.axes),) if each.axes else ()
            _add(found, name, Exchanged(amount, _links(along, places), axes))
    for kernel in record.kernels:
        if kernel.communicates:
            amount = Counted(0, None, f"{kernel.place}: it talks to devices itself")
            _add(found, UNKNOWN, Exchanged(amount, _links((), places), ()))
    return found


def _add(found: dict[str, Exchanged], name: str, more: Exchanged) -> None:
    known = found.get(name, Exchanged(Counted(), more.links, ()))
    axes = tuple(dict.fromkeys((*known.axes, *more.axes)))
    found[name] = Exchanged(known.bytes + more.bytes, more.links, axes)


def _entered(of: Collective, places: Sequence[Coordinates]) -> tuple[tuple[int, ...], Counted]:
    """(The directions in which chips of a group differ, bytes that enter classes in a step)."""
    groups = _groups(of)
    size = _size(of)
    if groups is None or size is None or any(not 0 <= d < len(places) for group in groups for d in group):
        return (), Counted(0, None, f"{of.place}: what it sends is not known")
    if of.kind == "collective-permute":
        # pairs, each of which sends all of its operand
        groups = tuple(pair for pair in groups if places[pair[0]] != places[pair[1]])
    total = sum(_entering(of.kind, Counter(places[d] for d in group), size) for group in groups)
    along = {k for group in groups for k in range(len(places[0])) if len({places[d][k] for d in group}) > 1}
    branch, loop = f"{of.place}: it stands in a branch", f"{of.place}: {of.often.why}"
    return tuple(sorted(along)), of.often.counted(total, branch, loop)


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


def _entering(kind: str, chips: Mapping[Coordinates, int], size: int) -> int:
    """Bytes that chips of one group get from its other chips, all together. chips: how many devices each has there."""
    many, devices = len(chips), sum(chips.values())
    if kind == "all-gather":
        return sum(size - size * own // devices for own in chips.values())
    if kind == "all-to-all":
        return sum(size * own * (devices - own) // devices for own in chips.values())
    # a sum of all chips takes a message from each but one to the place where it is whole, and one back to each
    return {"all-reduce": 2, "reduce-scatter": 1, "collective-permute": 1, "collective-broadcast": 1}[kind] * (
        (many - 1) * size
    )


def _links(along: Sequence[int], places: Sequence[Coordinates]) -> int:
    """Directed links along some directions; all of them where none is named."""
    every = set(places)
    found = 0
    for k in along or range(len(places[0])):
        extent = len({place[k] for place in every})
        found += len(every) * (2 if extent > 2 else extent - 1)
    return found
