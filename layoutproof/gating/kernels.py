"""Changes between two Pallas kernels: each operand's map from programs to elements, and the rest of the call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from layoutproof.core.element_types import ELEMENT_BITS
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, unknown
from layoutproof.core.message import extended, listing
from layoutproof.gating import problems
from layoutproof.gating.matching import Round, match
from layoutproof.kernel.kernel import Kernel, Operand, Scratch, Table
from layoutproof.kernel.relations import normal
from layoutproof.kernel.scalar_memory import every_table
from layoutproof.registry.read import read_layout

_SAYS_NOTHING = ("operands", "name", "source", "grid_names", "tables", "scalars", "relations")
"""Of a kernel: compared by themselves, or only what a person calls it."""

Compare = Callable[[object, object], list[Finding]]


def is_kernel(value: object) -> bool:
    """Whether a layout is a whole kernel: `{"kernel": {..}}`."""
    return isinstance(value, Mapping) and set(value) == {"kernel"} and isinstance(value["kernel"], Mapping)


def kernels(old: object, new: object, layouts: Compare) -> list[Finding]:
    """The classes of what changed between two mappings of kernels; `layouts` compares two operands."""
    one, other = _kernel(old), _kernel(new)
    sides = {"before": str(one.name), "after": str(other.name)}
    found: list[Finding] = []
    rounds: list[Round[Operand]] = [
        Round(lambda o: (o.role, o.name)),
        Round(lambda o: o.role, match_heuristic="by its position"),
    ]
    for pair in match(one.operands, other.operands, rounds):
        if pair.old is None or pair.new is None:
            gone, operand = pair.new is None, pair.old or pair.new
            why = problems.OPERAND_NEW_OR_GONE(operand.name if operand else "", "no longer there" if gone else "new")
            found.append(Finding("removed" if gone else "added", "", why, **sides))  # type: ignore[arg-type]
            continue
        before, after = pair.old, pair.new
        if replace(before, source="") == replace(after, source="") and one.grid == other.grid:
            continue
        for change in _operand(old, new, before, after, layouts):
            found.append(
                replace(
                    change,
                    reason=problems.OPERAND_CHANGED(after.name, change.reason),
                    match_heuristic=pair.match_heuristic,
                )
            )
    names = [f.name for f in fields(Kernel) if f.name not in _SAYS_NOTHING]
    rest = [name for name in names if getattr(one, name) != getattr(other, name)]
    parts = [(name, _words(getattr(one, name)), _words(getattr(other, name))) for name in rest]
    tables = [_words(tuple(map(_array, each.tables))) for each in (one, other)]
    parts += [("tables", tables[0], tables[1])] if tables[0] != tables[1] else []
    if parts:
        said = listing([problems.VALUE_CHANGED(name, was, now) for name, was, now in parts])
        trade, figures = _trade(one, other)
        found.append(Finding("kernel", "", extended(said, trade), figures=figures, **sides))  # type: ignore[arg-type]
    found += _assumptions(one, other)
    return found or [Finding("respelled", "", problems.SAME_KERNEL(), decided_by="normal form", **sides)]  # type: ignore[arg-type]


def _trade(one: Kernel, other: Kernel) -> tuple[str, dict[str, Any]]:
    """The cost of other blocks: the steps and the bytes of the blocks, before and after; "" where the number of steps
    is the same."""
    steps = [_product(kernel.grid) for kernel in (one, other)]
    if steps[0] is None or steps[1] is None or steps[0] == steps[1]:
        return "", {}
    held = [_held(kernel) for kernel in (one, other)]
    why = f"; {steps[1]} steps now, {steps[0]} before"
    why += f" ({steps[1] / steps[0]:.3g} times as many)" if steps[0] else ""
    figures: dict[str, Any] = {"steps_before": steps[0], "steps_after": steps[1]}
    if None not in held and held[0] != held[1]:
        why += f", on blocks of {held[1]} bytes, {held[0]} before"
        figures |= {"block_bytes_before": held[0], "block_bytes_after": held[1]}
    return why, figures


def _held(kernel: Kernel) -> int | None:
    """Bytes of one block of each operand; None where one is not fixed."""
    sizes = [_product(block.size for block in operand.block) for operand in kernel.operands]
    bits = [ELEMENT_BITS.get(operand.dtype) for operand in kernel.operands]
    known = [size * each // 8 for size, each in zip(sizes, bits, strict=True) if size is not None and each is not None]
    return sum(known) if len(known) == len(sizes) else None


def _product(amounts: Iterable[object]) -> int | None:
    """Their product; None where one of them is no number yet."""
    whole = list(amounts)
    known = [each for each in whole if isinstance(each, int)]
    return math.prod(known) if len(known) == len(whole) else None


def _operand(old: Any, new: Any, before: Operand, after: Operand, layouts: Compare) -> list[Finding]:
    specs = [
        {"blockspec": {"kernel": dict(side["kernel"]), "operand": operand.name}}
        for side, operand in ((old, before), (new, after))
    ]
    try:
        texts = [str(read_layout(spec)) for spec in specs]
        changes = [] if texts[0] == texts[1] else layouts(*specs)
    except LayoutError as error:
        return [unknown("", error.problem, before=str(before), after=str(after))]
    return [replace(change, before=texts[0], after=texts[1]) for change in changes]


def _assumptions(one: Kernel, other: Kernel) -> list[Finding]:
    """The added and dropped assumptions on the tables that both calls have, and on entries of tables together."""
    olds, news = ({table.name: table for table in every_table(side)} for side in (one, other))
    differ = [n for n in news if n in olds and news[n].assumptions() != olds[n].assumptions()]
    before, after = ({normal(relation): relation.text for relation in side.relations} for side in (one, other))
    looser: list[str] = [problems.ASSUMED_TOO(text) for key, text in after.items() if key not in before]
    tighter: list[str] = [problems.ASSUMED_NO_MORE(text) for key, text in before.items() if key not in after]
    if differ:
        from layoutproof.gating.demands import assumed

        than = assumed(*({name: side[name] for name in differ} for side in (olds, news)))
        looser, tighter = [*than.looser, *looser], [*than.tighter, *tighter]
    said = [
        "; ".join([*(text for name in differ for text in side[name].assumptions()), *related.values()]) or "nothing"
        for side, related in ((olds, before), (news, after))
    ]
    sides: dict[str, Any] = {"before": said[0], "after": said[1]}
    if looser:
        return [Finding("loosened", "", "; ".join(looser), **sides)]
    return [Finding("tightened", "", "; ".join(tighter), **sides)] if tighter else []


def _array(table: Table) -> str:
    integer = table.dtype or f"{'s' if table.signed else 'u'}{table.bits}"
    return f"{table.name} {integer}[{','.join(map(str, table.dims))}]"


def _words(value: object) -> str:
    """A part of a kernel as people write it.

    >>> _words((4, 2)), _words(("parallel", "arbitrary")), _words(()), _words(None)
    ('(4, 2)', '(parallel, arbitrary)', 'none', 'none')
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(_words, value))})" if value else "none"
    if isinstance(value, Scratch):
        return f"{value.dtype}[{','.join(map(str, value.dims))}] in {value.memory}"
    return "none" if value is None or value == "" else str(value)


def _kernel(value: object) -> Kernel:
    kernel = read_layout(value).kernel
    if not isinstance(kernel, Kernel):
        raise LayoutError(problems.NO_KERNEL(value))
    return kernel
