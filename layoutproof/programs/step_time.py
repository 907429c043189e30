"""The least time that a step of a compiled program takes on a chip, by what it has to compute and to move.

Source of the form: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009. The rates are those of the chip
table (`hardware.tpu_chips`), the amounts those of the record; `interconnect` says what goes over the links between
chips. It is a bound and no forecast: vector units, latencies and waits are not in it, and no program reaches every
rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.core.amounts import seconds
from layoutproof.core.counted import Counted
from layoutproof.core.element_types import element_bits
from layoutproof.core.errors import LayoutError
from layoutproof.hardware.tpu_chips import CHIPS, Chip, generation
from layoutproof.programs.interconnect import exchanged
from layoutproof.programs.record import Record

PICO = 10**12
"""Picoseconds in a second: times are whole numbers of them, rounded down."""
MATRIX, MEMORY = "matrix unit", "HBM"


@dataclass(frozen=True, slots=True)
class StepTime:
    """A lower bound of a step's time on one device.

    chip: the generation.  terms: what is bound by a rate -> picoseconds at that rate.  said: the same -> its amount and
    rate in words.  left_out: what has no term, and why; "" where all that is spoken of has one.  uncounted: the first
    instruction whose work is not counted, "" for none: then the bound is open above.
    """

    chip: str
    terms: Mapping[str, Counted]
    said: Mapping[str, str]
    left_out: str = ""
    uncounted: str = ""

    @property
    def bound(self) -> Counted:
        """Picoseconds: the largest term. What can be done at once is not added."""
        found = list(self.terms.values())
        open_ = self.uncounted or any(term.most is None for term in found)
        most = None if open_ else max(term.most or 0 for term in found)
        why = next((term.why for term in found if term.why), self.uncounted)
        return Counted(max(term.least for term in found), most, why)

    @property
    def binds(self) -> str:
        """The term that is the largest, by what is certain."""
        return max(self.terms, key=lambda name: self.terms[name].least)

    def words(self) -> str:
        """The terms with their times, the largest first."""
        order = sorted(self.terms, key=lambda name: -self.terms[name].least)
        return "; ".join(f"{name} {seconds(self.terms[name].least)}, {self.said[name]}" for name in order)


def step_time(record: Record) -> StepTime | None:
    """The bound for a program on the chip that it was compiled for.

    Args:
        record: The program; its work, its collectives, and where its devices are.

    Returns:
        Its terms: flops of products at the matrix unit's rate for their type, bytes of elements at the rate of HBM, and
        what collectives send at the rate of the links along each set of directions. None where its work was not
        counted.

    Raises:
        LayoutError: There is no chip of that name.
    """
    chip, work = CHIPS[generation(record.made.target)], record.work
    if work is None:
        return None
    matrix, rates = Counted(), []
    for kind, flops in sorted(work.products.items()):
        rate = max(_rate(chip, each) for each in kind.split(" x "))
        matrix += _time(flops, rate)
        rates.append(f"{flops.least:,} flops of {kind} at {rate / 1e12:,.0f} T/s")
    terms = {MATRIX: matrix, MEMORY: _time(work.hbm, chip.bandwidth)}
    moved = f"{work.hbm.least:,} bytes of elements at {chip.bandwidth / 1e9:,.0f} GB/s"
    said = {MATRIX: "; ".join(rates) or "no product", MEMORY: moved}
    found = exchanged(record, chip)
    for along, each in found.items():
        name, rate = f"interconnect {along}", each.links * chip.link_bandwidth
        if not rate:
            terms[name], said[name] = each.bytes, each.bytes.why
            continue
        terms[name] = _time(each.bytes, rate)
        over = f" over {' and over '.join(each.axes)}" if each.axes else ""
        sent = f"{each.bytes.least:,} bytes between chips{over}{each.part and f', {each.part},'}"
        by = "1 link" if each.links == 1 else f"{each.links:,} links"
        said[name] = f"{sent} by {by} of {chip.link_bandwidth / 1e9:,.0f} GB/s"
    left_out, places = "", set(record.made.chips)
    if record.collectives and not places:
        left_out = "the interconnect is not in it, because the record does not say where devices are"
    elif record.collectives and len(places) > 1 and not chip.link_bandwidth:
        left_out = "the interconnect is not in it, because the rate of its links is not known"
    return StepTime(chip.name, terms, said, left_out, next(iter(work.uncounted), ""))


def _rate(chip: Chip, kind: str) -> int:
    """Operations a second on elements of a type: of the narrower one where a product has two."""
    try:
        bits = element_bits(kind)
    except LayoutError:
        bits = 8
    return chip.peak(bits, kind.startswith(("f", "bf")))


def _time(amount: Counted, rate: int) -> Counted:
    most = None if amount.most is None else amount.most * PICO // rate
    return Counted(amount.least * PICO // rate, most, amount.why)
