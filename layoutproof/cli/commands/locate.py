"""`layoutproof locate LAYOUT INDEX`: where one element is, step by step; `--at PLACE`: what is at a place.

In the list: layouts: Say where one element is or what is at a place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, TypedDict

import click

from layoutproof.cli import problems
from layoutproof.cli.arguments import (
    assumed,
    integers,
    json_flag,
    layouts_of,
    notes_of,
    print_json,
    say,
    target_option,
)
from layoutproof.core.document import Doc, Document, envelope, without_empty
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.index_map import IndexMap

if TYPE_CHECKING:
    from layoutproof.questions.inverse import ContentsDocument
    from layoutproof.questions.inverse_formula import FormulaDocument

MOST_REPLICAS = 20
"""Replicas of one element that are printed."""


_COORDINATE = re.compile(r"([^\s=,]+)\s*=\s*(-?[0-9]{1,40})(?:\s*,\s*|\s+|$)")


class StepEntry(TypedDict):
    step: str
    at: list[int]
    extents: list[int]


class _Derived(TypedDict, total=False):
    derivation: Annotated[list[str], Doc("how an expression was computed, with what was proved of it")]


class ElementDocument(Document, _Derived):
    """Where one element is."""

    subject: str
    index: list[int]
    steps: list[StepEntry]
    places: Annotated[list[dict[str, int]], Doc("one for each replica")]
    notes: Annotated[list[str], Doc("of a program: the part of its block that is not in the array")]


@click.command()
@click.argument("layout")
@click.argument("index", required=False)
@click.option(
    "--at",
    "at_place",
    metavar="'NAME=NUMBER ..'",
    help="What is at a place: offset=17, byte=68, lane=5 reg=2, device=3. Names alone, such as offset: the formula.",
)
@target_option
@json_flag
def command(layout: str, index: str | None, at_place: str | None, target: str | None, as_json: bool) -> int:
    """Find one element: the place of INDEX, written 2,3, in LAYOUT, step by step; or with --at what is at a place.

    \b
    Examples:
      layoutproof locate "f32[3,5]{1,0:T(2,2)}" 2,3
      layoutproof locate "f32[3,5]{1,0:T(2,2)}" --at byte=68
    """
    from layoutproof.questions.evaluate import locate
    from layoutproof.registry.read import map_of

    if (index is None) == (at_place is None):
        raise click.UsageError(problems.INDEX_OR_PLACE())
    (read,) = layouts_of((layout,), target)
    assumptions = [f"assumed   {note}" for note in assumed((layout,), (read,), target)]
    if at_place is not None:
        document, text = _at(read, at_place)
        if as_json:
            return print_json(document)
        say("\n".join([text, *notes_of(read), *assumptions]))
        return 0
    assert index is not None
    at = integers(index, "an index")
    places = locate(read, at)
    m = map_of(read)
    steps = _steps(read, m, at)
    found = [{**place, **_bytes(m, place)} for place in places]
    notes = _block_notes(read, m, at, places)
    if as_json:
        more: _Derived = {"derivation": list(getattr(read, "derivation", ()))}
        element: ElementDocument = {
            **envelope(0),
            "subject": str(read),
            "index": list(at),
            "steps": steps,
            "places": found,
            "notes": notes,
            **without_empty(more),
        }
        return print_json(element)
    lines = [f"{read}  element {at}"]
    width = max((len(step["step"]) for step in steps), default=0)
    for s in steps:
        inside = f" in {tuple(s['extents'])}" if s["extents"] else ""
        lines.append(f"  {s['step']:<{width}}  {tuple(s['at'])}{inside}")
    replicas = [f"replica {k}  " for k in range(len(found))] if len(found) > 1 else [""]
    for replica, place in zip(replicas[:MOST_REPLICAS], found, strict=False):
        lines.append(f"  {replica}" + "  ".join(f"{axis} {value}" for axis, value in place.items()))
    if len(found) > MOST_REPLICAS:
        lines.append(f"  .. {len(found) - MOST_REPLICAS} more replicas; --json has them")
    say("\n".join([*lines, *(f"  {note}" for note in notes), *notes_of(read), *assumptions]))
    return 0


def _at(layout: object, place: str) -> tuple[FormulaDocument | ContentsDocument, str]:
    """The contents of a place, as a document and as text; for names without numbers the formula of all places."""
    from layoutproof.questions.inverse import inverse

    backwards = inverse(layout)
    if place.strip() and "=" not in place:
        formula = backwards.formula(*place.replace(",", " ").split())
        return {**envelope(0), **formula.as_dict()}, str(formula)
    contents = backwards.at(_coordinates(place))
    return contents.as_dict(), str(contents)


def _coordinates(text: str) -> dict[str, int]:
    """Coordinates by name from `lane=5 reg=2`; LayoutError for anything else."""
    found: dict[str, int] = {}
    at, stripped = 0, text.strip()
    while at < len(stripped):
        match = _COORDINATE.match(stripped, at)
        if match is None:
            rest = shorten(stripped[at:], 40)
            raise LayoutError(problems.PLACE_FORM(rest), text=text[:200])
        if match[1] in found:
            raise LayoutError(problems.COORDINATE_TWICE(match[1]), text=text[:200], column=text.find(stripped) + at + 1)
        found[match[1]] = int(match[2])
        at = match.end()
    return found


def _steps(layout: object, m: IndexMap, at: tuple[int, ...]) -> list[StepEntry]:
    """The steps from an index to its place: the layout's own where it has some, else one step for a single place."""
    if hasattr(layout, "steps"):
        done = layout.steps(at)
    elif m.replicas.extents or not m.range.is_constant() or len(m.range.extents) < 2:
        return []
    else:
        done = [("place", m.at(at), m.range.extents)]
    return [{"step": step, "at": list(index), "extents": list(extents)} for step, index, extents in done]


def _block_notes(layout: object, m: IndexMap, program: tuple[int, ...], places: list[dict[str, int]]) -> list[str]:
    """The part of a program's block that is not in its array, and the values of interpret mode there."""
    kernel = getattr(layout, "kernel", None)
    if kernel is None:
        return []
    from layoutproof.kernel.kernel_elements import outside, unwritten

    operand = next(operand for operand in kernel.operands if operand.windowed)
    extents = [int(extent) for extent in m.range.extents]
    missing = sum(not all(0 <= e < n for e, n in zip(p.values(), extents, strict=True)) for p in places)
    if not missing:
        return []
    why = outside(kernel, operand, program)
    if why:
        return [f"{why}; at least one element of a block has to be in it, which JAX's own page asserts"]
    done = "dropped when written" if operand.role == "out" else f"{unwritten(operand.dtype)} in interpret mode"
    return [f"{missing} of {len(places)} elements are not in the array: undefined when read, {done}"]


def _bytes(m: IndexMap, place: dict[str, int]) -> dict[str, int]:
    """The byte, and the bit within it unless that is 0, of an offset in a memory."""
    if m.memory is None or "offset" not in place:
        return {}
    byte, bit = m.memory.byte_and_bit(place["offset"])
    found = {"byte": byte} | ({"bit": bit} if bit else {})
    return found | ({"memory_space": m.memory.space} if m.memory.space else {})
