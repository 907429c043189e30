"""What changed between two Pallas kernels: each operand's map from programs to elements, and the rest of the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from layoutproof.changes.matching import Round, match
from layoutproof.core.errors import LayoutError
from layoutproof.core.finding import Finding, unknown
from layoutproof.kernel.kernel import Kernel, Operand, Scratch, Table
from layoutproof.registry.read import read_layout

_SAYS_NOTHING = ("operands", "name", "source", "grid_names")
"""Of a kernel: compared by themselves, or only what a person calls it."""

Compare = Callable[[object, object], list[Finding]]


def is_kernel(value: object) -> bool:
    """Whether a layout is a whole kernel: `{"kernel": {..}}`."""
    return isinstance(value, Mapping) and set(value) == {"kernel"} and isinstance(value["kernel"], Mapping)


def kernels(old: Any, new: Any, layouts: Compare) -> list[Finding]:
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
            why = f"operand {operand.name if operand else ''} is {'no longer there' if gone else 'new'}"
            found.append(Finding("removed" if gone else "added", "", why, **sides))  # type: ignore[arg-type]
            continue
        before, after = pair.old, pair.new
        if replace(before, source="") == replace(after, source="") and one.grid == other.grid:
            continue
        for change in _operand(old, new, before, after, layouts):
            found.append(
                replace(change, reason=f"operand {after.name}: {change.reason}", match_heuristic=pair.match_heuristic)
            )
    names = [f.name for f in fields(Kernel) if f.name not in _SAYS_NOTHING]
    rest = [name for name in names if getattr(one, name) != getattr(other, name)]
    if rest:
        said = "; ".join(f"{name} was {_words(getattr(one, name))}, is {_words(getattr(other, name))}" for name in rest)
        found.append(Finding("kernel", "", said, **sides))  # type: ignore[arg-type]
    return found or [Finding("respelled", "", "the same kernel, operand by operand", decided_by="normal form", **sides)]  # type: ignore[arg-type]


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


def _words(value: object) -> str:
    """A part of a kernel as people write it.

    >>> _words((4, 2)), _words(("parallel", "arbitrary")), _words(()), _words(None)
    ('(4, 2)', '(parallel, arbitrary)', 'none', 'none')
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(_words, value))})" if value else "none"
    if isinstance(value, Scratch):
        return f"{value.dtype}[{','.join(map(str, value.dims))}] in {value.memory}"
    if isinstance(value, Table):
        said = "".join(f", {text}" for text in value.assumptions())
        return f"{value.name} [{','.join(map(str, value.dims))}]{said}"
    return "none" if value is None or value == "" else str(value)


def _kernel(value: Any) -> Kernel:
    kernel = read_layout(value).kernel
    if not isinstance(kernel, Kernel):
        raise LayoutError(f"not a kernel: {value}")
    return kernel
