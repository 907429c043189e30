"""The rows of a sweep as a table, for people and for Markdown, and what follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from layoutproof.core.amounts import seconds, size
from layoutproof.core.counted import Counted
from layoutproof.core.errors import shorten
from layoutproof.core.visible import visible
from layoutproof.programs.ranking import RANKS, Cheapest, state
from layoutproof.programs.sweep import Axes, SweepRow

POLICIES = "jax.checkpoint_policies."
_COLUMNS = ("state", "peak", "sends", "cycles", "step at least", "binds")
_NUMBERS = frozenset(("peak", "cycles", "step at least"))
WIDEST = 40
"""Characters of one cell for people."""


def value_text(value: str) -> str:
    """A value of an axis as tables show it.

    >>> value_text("jax.checkpoint_policies.dots_saveable"), value_text("")
    ('dots_saveable', '-')
    """
    return shorten(value.removeprefix(POLICIES), WIDEST) or "-"


def amount_text(found: Counted) -> str:
    """Bytes that may be open above.

    >>> amount_text(Counted.of(8)), amount_text(Counted(8, None)), amount_text(Counted(8, 9))
    ('8 B', 'at least 8 B', '8 B to 9 B')
    """
    if found.most is None:
        return f"at least {size(found.least)}"
    return size(found.least) if found.most == found.least else f"{size(found.least)} to {size(found.most)}"


def cells_of(row: SweepRow, axes: Axes, memory: int | None) -> list[str]:
    """A row as texts, in the order of `header`."""
    sent = ", ".join(f"{over} {amount_text(each)}" for over, each in row.sent.items())
    bound = "" if row.bound is None else seconds(row.bound.least)
    if row.bound is not None and row.bound.most is None:
        bound += " or more"
    figures = ("" if row.peak is None else size(row.peak), sent or ("nothing" if row.devices else ""))
    more = ("" if row.cycles is None else f"{row.cycles:,}", bound, row.binds)
    return [*(value_text(row.at[name]) for name in axes), state(row, memory).replace("_", " "), *figures, *more]


def header(axes: Axes) -> list[str]:
    """The names of the columns."""
    return [*axes, *_COLUMNS]


def lines_of(program: str, axes: Axes, rows: Sequence[SweepRow], memory: int | None, kept: int) -> list[str]:
    """The line that counts, and the table."""
    table = [header(axes), *(cells_of(row, axes, memory) for row in rows)]
    table = [[visible(cell) for cell in line] for line in table]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    right = [name in _NUMBERS for name in table[0]]
    said = [
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)).rstrip()
        for line in table
    ]
    return [f"sweep  {visible(program)}, {counts(rows, memory, kept)}", "", *said]


def counts(rows: Sequence[SweepRow], memory: int | None, kept: int) -> str:
    """How many points there are of each kind."""
    found = Counter(state(row, memory).replace("fits", "fit").replace("_", " ") for row in rows)
    parts = ", ".join(f"{many} {word}" for word, many in found.items())
    before = f"; {kept} of them from an earlier run" if kept else ""
    return f"{len(rows)} point{'' if len(rows) == 1 else 's'}: {parts}{before}"


def took(rows: Sequence[SweepRow]) -> str:
    """The processor time of all points."""
    return f"tracing, compiling and reading all points, processor time; {sum(row.cpu for row in rows):.1f} s"


def cheapest_lines(rows: Sequence[SweepRow], found: Sequence[Cheapest], rank: str) -> list[str]:
    """The cheapest of each combination of sizes, and what that rests on."""
    lines = [f"cheapest  {visible(_cheapest(rows, each))}" for each in found]
    numbers = [each.first if each.row is None else each.row for each in found]
    best = [rows[number] for number in numbers if number is not None]
    if best:
        lines.append(f"rests on  {RANKS[rank]}")
    chips = sorted({row.target for row in best if row.bound is not None})
    if chips:
        rates = f"products, HBM and links at the rates of {', '.join(chips)}"
        lines.append(f"          the bound is a lower one and no forecast: {rates};")
        lines.append("          vector units, latencies and waits are not in it")
    return lines


def _cheapest(rows: Sequence[SweepRow], each: Cheapest) -> str:
    of = ", ".join(f"{name}={value}" for name, value in each.sizes.items())
    begin = f"of {of}: " if of else ""
    number = each.first if each.row is None else each.row
    if number is None:
        return f"{begin}{each.why}"
    row = rows[number]
    rest = [f"{name}={value_text(value)}" for name, value in row.at.items() if name not in each.sizes]
    bound = "no known bound" if row.bound is None else f"at least {seconds(row.bound.least)} a step ({row.binds})"
    sent = ", ".join(f"{over} {amount_text(part)}" for over, part in row.sent.items()) or "nothing"
    left = f"; {each.unbounded} more fit and are not compared, as their bound is open" if each.unbounded else ""
    if each.row is None:
        begin += f"undecided, {each.why}; by what is counted alone the first is "
    said = ", ".join([*rest, bound, f"peak {size(row.peak or 0)}", f"sends {sent}"])
    among = f"the least of {each.among} that fit" if each.among > 1 else "the only one that fits"
    return f"{begin}{said}; {among}{left}"


def markdown_of(
    program: str,
    axes: Axes,
    rows: Sequence[SweepRow],
    memory: int | None,
    found: Sequence[Cheapest],
    rank: str,
    kept: int,
) -> str:
    """The same as GitHub-flavoured Markdown; texts of the user stand in code spans."""

    def code(text: str) -> str:
        plain = visible(" ".join(text.split())).replace("`", "'").replace("|", "\\|")
        return f"`{plain}`" if plain else ""

    names = header(axes)
    lines = [f"{code(program)}: {counts(rows, memory, kept)}", "", f"| {' | '.join(map(_escaped, names))} |"]
    lines.append("|" + "|".join("---:" if name in _NUMBERS else "---" for name in names) + "|")
    for row in rows:
        texts = cells_of(row, axes, memory)
        values = [code(text) for text in texts[: len(axes)]]
        lines.append(f"| {' | '.join([*values, *map(_escaped, texts[len(axes) :])])} |")
    lines += ["", *(f"- {_escaped(line)}" for line in _sentences(cheapest_lines(rows, found, rank)))]
    for row in rows:
        if row.reason:
            at = ", ".join(f"{name}={value}" for name, value in row.at.items())
            lines.append(f"- {code(at)}: {code(shorten(row.reason, 400))}")
    return "\n".join([*lines, "", took(rows)])


def _sentences(lines: Sequence[str]) -> list[str]:
    """Lines with those that go on in the next one joined."""
    found: list[str] = []
    for line in lines:
        if line.startswith(" ") and found:
            found[-1] += f"{'' if found[-1].endswith(',') else ';'} {line.strip()}"
        else:
            found.append(" ".join(line.split()))
    return found


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\|*_<>[]`#@" else c for c in visible(text))
