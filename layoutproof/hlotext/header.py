"""The lines around the computations: `HloModule ..`, the tables of source positions, `%name (..) -> .. {`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from layoutproof.core.errors import LayoutError, shorten
from layoutproof.hlotext import problems
from layoutproof.hlotext.module import Header
from layoutproof.hlotext.texts import balanced

TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_MODULE = re.compile(r"HloModule ([^\s,]+)(?:, (.*))?")
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]++) ([({])")
_ATTRIBUTE = re.compile(r'([A-Za-z_]\w*)=(?:(?=\{)|"(?:[^"\\]|\\.)*"|[^\s,{}"]+)')
_INDEX = r"\{[\d,\s]*\}"
_ALIAS = rf"{_INDEX}\s*:\s*\(\s*\d+\s*,\s*{_INDEX}\s*(?:,\s*(?:may|must)-alias\s*)?\)\s*"
_DONOR = rf"\(\s*\d+\s*,\s*{_INDEX}\s*\)\s*"
_FORMS = {
    "input_output_alias": re.compile(rf"\{{\s*(?:{_ALIAS}(?:,\s*{_ALIAS})*)?\}}"),
    "buffer_donor": re.compile(rf"\{{\s*(?:{_DONOR}(?:,\s*{_DONOR})*)?\}}"),
}
_FILE = re.compile(r'(\d+) "(.*)"')
_FIELD = re.compile(r"(?<!\w)(\w++)=(\d+)")


def module_line(line: str, number: int, file: str) -> Header:
    """The header that a line `HloModule name, attributes` writes. LayoutError when it is no such line, or cut short."""
    found = _MODULE.fullmatch(line.strip())
    if found is None:
        raise LayoutError(problems.NO_MODULE_LINE(shorten(line, 80)), file=file, line=number)
    attributes = found[2] or ""
    if attributes.count("{") != attributes.count("}") and not balanced("{" + attributes + "}", 0):
        raise LayoutError(problems.MODULE_LINE_CUT(), file=file, line=number)
    wrong = _wrong_attributes(attributes)
    if wrong:
        raise LayoutError(wrong, file=file, line=number)
    return Header(found[1], attributes, number)


def _wrong_attributes(text: str) -> str:
    """The mistake in `name=value, name={..}, ..`; "" for none.

    >>> _wrong_attributes('is_scheduled=true, a={{0}: (1, {})}, b="x, y"'), _wrong_attributes("a={1}, {0}")
    ('', "the line HloModule has no name=value at '{0}': cut short, or lines mixed?")
    """
    at, seen = 0, set[str]()
    while at < len(text):
        found = _ATTRIBUTE.match(text, at)
        end = -1 if found is None else found.end()
        if found is not None and text[end : end + 1] == "{":
            end += len(balanced(text, end)) or len(text)
        if found is None or (end < len(text) and not text.startswith(", ", end)):
            return f"the line HloModule has no name=value at {shorten(text[at:], 40)!r}: cut short, or lines mixed?"
        if found[1] in seen:
            return f"the line HloModule says {shorten(found[1], 40)} twice: lines mixed?"
        seen.add(found[1])
        form = _FORMS.get(found[1])
        if form is not None and form.fullmatch(text, found.end(), end) is None:
            shown = shorten(text[found.end() : end], 60)
            return f"the line HloModule has no {found[1]} of the form that XLA writes: {shown}"
        at = end + 2
    return ""


def computation_line(line: str) -> tuple[str, bool] | None:
    """(name, whether it is the entry) of a line that begins a computation; None for any other line.

    >>> computation_line("ENTRY %main.1 (x: f32[2]) -> f32[2] {"), computation_line("add {"), computation_line("x")
    (('main.1', True), ('add', False), None)
    """
    text = line.strip()
    found = _COMPUTATION.match(text) if text.endswith("{") else None
    if found is None or (found[3] == "{" and found.end() < len(text)):
        return None
    if found[3] == "(" and not (text.endswith(" {") and text.find(") -> ", found.end(), -2) >= 0):
        return None
    return found[2], bool(found[1])


def table_line(header: Header, table: str, line: str) -> bool:
    """Adds one line of a table to the header; False when it is none of that table."""
    key, _, rest = line.strip().partition(" ")
    if not key.isdigit():
        return False
    if table in ("FileNames", "FunctionNames"):
        named = _FILE.fullmatch(line.strip())
        if named and table == "FileNames":
            header.files[int(named[1])] = named[2]
        return named is not None
    fields = {name: int(value) for name, value in _FIELD.findall(rest)} if rest.startswith("{") else {}
    if table == "FileLocations" and "file_name_id" in fields:
        header.locations[int(key)] = (fields["file_name_id"], fields.get("line", 0))
        header.columns[int(key)] = fields.get("column", 0)
    elif table == "StackFrames" and "file_location_id" in fields:
        header.frames[int(key)] = fields["file_location_id"]
        header.parents[int(key)] = fields.get("parent_frame_id", 0)
    else:
        return False
    return rest.endswith("}")


def gaps(header: Header, sizes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """(table, number) for what a line of the tables names and no line has. sizes: how many lines each table has."""
    for file, _ in header.locations.values():
        if file > sizes["FileNames"]:
            yield "FileNames", file
    for location in header.frames.values():
        if location > sizes["FileLocations"]:
            yield "FileLocations", location
