"""What the page asks of the package, as JSON to JSON; runs in a browser, by public names alone.

Every request has `mode` and the fields of its form. Every answer has `error`, "" where there is none: bad input is the
tool's own sentence. What no engine here can tell is unknown, with the engines' words.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import layoutproof as lp

ROWS, COLUMNS = 16, 16
"""Elements that can be clicked: of the last two dimensions, the first ones."""
_BARE = re.compile(r"\w+\[[0-9, ]*\]")
_TILED = re.compile(r"\w+\[[0-9,]*\]\{[^}]*T\([^}]*\}")


def answer(request: str) -> str:
    """The answer to one request, both JSON. No exception leaves."""
    asked = json.loads(request)
    try:
        found = MODES[asked["mode"]](asked)
    except (lp.LayoutError, lp.Undecided) as error:
        found = {"error": str(error)}
    except RecursionError:
        found = {"error": "this is nested too deeply for a browser; ask on the command line"}
    except Exception as error:
        found = {"error": f"this is a bug in layoutproof, please report it: {type(error).__name__}: {error}"}
    return json.dumps({"error": "", **found})


def _layout(text: str, target: str) -> Any:
    text = text.strip()
    if target and _BARE.fullmatch(text):
        return lp.tpu_default(text, target=target)
    return lp.read_layout(json.loads(text) if text.startswith("{") else text)


def _finding(finding: lp.Finding) -> dict[str, Any]:
    shown = finding.as_dict()
    return {
        **{name: shown[name] for name in ("question", "subject", "verdict", "reason", "decided_by", "counterexample")},
        "text": str(finding),
    }


def _asked(question: str, *layouts: Any, **options: Any) -> dict[str, Any]:
    """One question; what it is not about, or cannot be read, is said in its place."""
    try:
        return _finding(lp.ask(question, *layouts, **options))
    except lp.LayoutError as error:
        return {"question": question, "verdict": "", "reason": str(error), "text": str(error), "counterexample": None}


def layout(asked: Mapping[str, str]) -> dict[str, Any]:
    """One layout: its verdicts, padding, what would waste less, picture and cells."""
    read = _layout(asked["layout"], asked.get("target", ""))
    bound, where = asked.get("at_most", "").strip(), asked.get("where", "").strip()
    options = {"where": where} if where else {}
    names = [asked.get("property") or "injective"]
    names += [name for name in ("injective", *(["padding"] if bound else [])) if name not in names]
    findings = [
        _asked(name, read, **options, **({"at_most": bound} if name == "padding" and bound else {})) for name in names
    ]
    found: dict[str, Any] = {"subject": str(read), "findings": findings, "less": [], "svg": "", "said": "", "cells": []}
    found["padding"] = _padding(read)
    found["assumed"] = (
        f"{read}: row-major without tiles. Choose a target for the layout that a TPU gives it."
        if not asked.get("target") and str(read).startswith("".join(asked["layout"].split()) + "{")
        else ""
    )
    if _TILED.fullmatch(str(read)):
        messages = lp.why(str(read), target=asked.get("target") or None).as_dict()["messages"]
        found["less"] = [fix for message in messages for array in message["arrays"] for fix in array["fixes"]]
    try:
        picture = lp.show(read, width=90)
        found["said"] = str(picture)
        found["svg"] = picture.svg()
    except (lp.LayoutError, lp.Undecided) as error:
        found["said"] = found["said"] or f"no picture: {error}"
    with contextlib.suppress(lp.LayoutError, lp.Undecided):
        found["cells"] = _cells(read)
    return found


def _padding(read: Any) -> str:
    """What padding costs, without a claim about it; "" of what is no memory."""
    try:
        of = lp.show(read).figures
    except (lp.LayoutError, lp.Undecided):
        return ""
    if not of:
        return ""
    return (
        f"{of['elements']} elements in {of['padded_elements']} places; {of['unpadded_bytes']} bytes without padding, "
        f"{of['bytes']} bytes allotted"
    )


def _cells(read: Any) -> list[list[dict[str, Any]]]:
    """The first elements of the last two dimensions, each with its index and its place in a few characters."""
    extents = read.index_map().domain.extents
    if not all(isinstance(extent, int) for extent in extents):
        return []
    last = [*(1 for _ in range(2 - len(extents))), *extents[-2:]]
    rows, columns = min(last[0], ROWS), min(last[1], COLUMNS)

    def element(row: int, column: int) -> tuple[int, ...]:
        index = (*(0 for _ in extents[:-2]), row, column)
        return index[len(index) - len(extents) :]

    return [[_cell(read, element(row, column)) for column in range(columns)] for row in range(rows)]


def _cell(read: Any, index: tuple[int, ...]) -> dict[str, Any]:
    places = lp.locate(read, index)
    short = ",".join(str(value) for value in places[0].values()) if places else ""
    return {"index": index, "short": short + (" .." if len(places) > 1 else "")}


def cell(asked: Mapping[str, Any]) -> dict[str, Any]:
    """One element: its places, and what else is there."""
    read = _layout(asked["layout"], asked.get("target", ""))
    index = tuple(asked["index"])
    places = lp.locate(read, index)
    lines = [", ".join(f"{axis} {value}" for axis, value in place.items()) for place in places[:8]]
    lines += [f".. {len(places) - 8} more"] if len(places) > 8 else []
    there = ""
    with contextlib.suppress(lp.LayoutError, lp.Undecided):
        there = str(lp.inverse(read).at(**places[0]))
    return {"index": index, "places": lines, "there": there}


def compare(asked: Mapping[str, str]) -> dict[str, Any]:
    """Two layouts: whether they are one map, or a reshape between them moves no byte."""
    one, other = (_layout(asked[name], asked.get("target", "")) for name in ("layout", "other"))
    where = asked.get("where", "").strip()
    question = asked.get("question") or "same_map"
    finding = _asked(question, one, other, **({"where": where} if where else {}))
    found: dict[str, Any] = {"subject": f"{one} and {other}", "findings": [finding], "svg": "", "said": ""}
    try:
        picture = lp.show(one, other=other, width=90)
        found["svg"], found["said"] = picture.svg(), str(picture)
    except (lp.LayoutError, lp.Undecided) as error:
        found["said"] = f"no picture: {error}"
    return found


def message(asked: Mapping[str, str]) -> dict[str, Any]:
    """A pasted message: its causes, its arrays, what would avoid it."""
    found = lp.why(asked["text"], target=asked.get("target") or None)
    return {"subject": "", "messages": found.as_dict()["messages"], "said": str(found), "exit_code": found.exit_code}


MODES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "layout": layout,
    "cell": cell,
    "compare": compare,
    "message": message,
}
