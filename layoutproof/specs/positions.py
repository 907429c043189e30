"""YAML with positions: plain data that still knows the line and column of every key and value.

Built from the parser's events in one pass without recursion, because the file may be anybody's: depth, size, aliases
and digits are bounded while reading, before anything is built. Scalars are resolved by the core schema of YAML 1.2
(https://yaml.org/spec/1.2.2/#103-core-schema), so `no`, `on` and `2026-01-02` are texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from layoutproof.core import problems as core_problems
from layoutproof.core.errors import LayoutError, shorten
from layoutproof.core.files import MAX_YAML, read
from layoutproof.core.message import restated
from layoutproof.specs import problems

MAX_DEPTH = 64
MAX_NODES = 100_000
"""Values in one file, each alias counted with everything it stands for."""
MAX_DIGITS = 40

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_CORE = "tag:yaml.org,2002:"
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# libyaml's parser where PyYAML was built with it, about ten times faster than the Python one
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Node(NamedTuple):
    """One value and where it starts (1-based).

    value: a scalar, a list of nodes, or a dict from text to node.  keys: for a dict, where each key stands.
    """

    value: Any
    line: int
    column: int
    keys: dict[str, tuple[int, int]] | None = None

    def plain(self) -> Any:
        """The value without positions: dicts, lists, text, int, float, bool, None.

        >>> read_yaml("{a: [1, no]}").plain()
        {'a': [1, 'no']}
        """
        if type(self.value) is dict:
            return {key: node.plain() for key, node in self.value.items()}
        return [node.plain() for node in self.value] if type(self.value) is list else self.value


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been read; `count` is the node count before it, `height` what is in it."""

    value: Any
    keys: dict[str, tuple[int, int]] | None
    line: int
    column: int
    anchor: str | None
    count: int
    height: int = 0
    key: str | None = None


@dataclass(slots=True)
class _PositionReader:
    file: str
    count: int = 0
    open: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[Node, int, int]] = field(default_factory=dict)
    root: Node | None = None

    def refuse(self, problem: str, line: int, column: int) -> LayoutError:
        return LayoutError(problem, file=self.file, line=line, column=column)

    def add(self, node: Node, size: int, height: int, anchor: str | None) -> None:
        if len(self.open) + height > MAX_DEPTH:
            raise self.refuse(problems.DEPTH(MAX_DEPTH), node.line, node.column)
        if anchor is not None:
            self.anchors[anchor] = (node, size, height)
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        parent.height = max(parent.height, height + 1)
        if parent.keys is None:
            parent.value.append(node)
        elif parent.key is None:
            parent.key = self.as_key(node, parent.keys)
        else:
            parent.value[parent.key] = node
            parent.key = None

    def as_key(self, node: Node, keys: dict[str, tuple[int, int]]) -> str:
        key = node.value
        if type(key) is not str:
            what = _shown(key)
            raise self.refuse(problems.KEY_TYPE(what), node.line, node.column)
        if key in keys:
            first = keys[key][0]
            raise self.refuse(problems.DUPLICATE_KEY(shorten(key, 40), first), node.line, node.column)
        keys[key] = (node.line, node.column)
        return key

    def step(self, size: int, line: int, column: int) -> None:
        self.count += size
        if self.count > MAX_NODES:
            raise self.refuse(problems.MOST_VALUES(MAX_NODES), line, column)

    def alias(self, name: str, line: int, column: int) -> None:
        if name not in self.anchors:
            inside = any(o.anchor == name for o in self.open)
            why = problems.ALIAS_CYCLE if inside else problems.UNKNOWN_ALIAS
            raise self.refuse(why(shorten(name, 40)), line, column)
        node, size, height = self.anchors[name]
        self.step(size, line, column)
        self.add(node._replace(line=line, column=column), size, height, None)

    def scalar(self, event: yaml.ScalarEvent, line: int, column: int) -> object:
        tag = event.tag
        if tag is None:
            return self.resolve(event.value, line, column) if event.implicit[0] else event.value
        if tag not in ("!", f"{_CORE}str"):
            raise self.unknown_tag(tag, line, column)
        return event.value

    def unknown_tag(self, tag: str, line: int, column: int) -> LayoutError:
        shown = shorten(tag.replace(_CORE, "!!"), 60)
        return self.refuse(problems.UNKNOWN_TAG(shown), line, column)

    def resolve(self, text: str, line: int, column: int) -> object:
        if text in _WORDS:
            return _WORDS[text]
        if text[0] not in "0123456789+-.":
            return text
        whole = _INT.fullmatch(text)
        if not whole and not _FLOAT.fullmatch(text):
            return text
        if len(text.lstrip("+-")) > MAX_DIGITS:
            raise self.refuse(problems.NUMBER_LENGTH(len(text), MAX_DIGITS), line, column)
        if not whole:
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def read_file(path: str | Path) -> Node:
    """The one YAML document of a file; errors as those of `read_yaml`, and LayoutError when it cannot be read."""
    data, file = read(path, MAX_YAML), Path(path).as_posix()
    try:
        return read_yaml(data.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LayoutError(core_problems.NOT_UTF8(data[error.start]), file=file, line=line) from error


def read_yaml(text: str, file: str = "") -> Node:
    """The one YAML document in `text`.

    Raises LayoutError, with line and column, for what is not YAML, for a duplicate or non-text key, an unknown tag, a
    second document, and beyond the bounds above. Nothing is executed and nothing grows beyond the bounds.

    >>> node = read_yaml("checks:\\n  - injective: no")
    >>> check = node.value["checks"].value[0]
    >>> check.keys, check.value["injective"]
    ({'injective': (2, 5)}, Node(value='no', line=2, column=16, keys=None))
    """
    reader = _PositionReader(file)
    odd = _UNPRINTABLE.search(text)
    if odd:
        line, column = text.count("\n", 0, odd.start()) + 1, odd.start() - text.rfind("\n", 0, odd.start())
        raise reader.refuse(problems.CHARACTER(odd[0]), line, column)
    try:
        for event in _events(text):
            _take(reader, event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        spot = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        if "nesting depth" in (error.problem or ""):
            # libyaml 0.2.6 looks ahead as far as its own bound of 1,000 levels, and fails there before ours
            raise reader.refuse(problems.DEPTH(MAX_DEPTH), *spot) from None
        raise reader.refuse(_explained(error), *spot) from None
    except yaml.YAMLError as error:
        raise reader.refuse(problems.NOT_YAML(shorten(str(error), 200)), 1, 1) from None
    return reader.root or Node(None, 1, 1)


def _events(text: str) -> Iterator[Any]:
    return yaml.parse(text, Loader=_LOADER)


def _take(reader: _PositionReader, event: Any) -> None:
    kind = type(event)
    line, column = event.start_mark.line + 1, event.start_mark.column + 1
    if kind is yaml.ScalarEvent:
        reader.step(1, line, column)
        reader.add(Node(reader.scalar(event, line, column), line, column), 1, 0, event.anchor)
    elif kind is yaml.AliasEvent:
        reader.alias(event.anchor, line, column)
    elif kind in (yaml.MappingStartEvent, yaml.SequenceStartEvent):
        mapping = kind is yaml.MappingStartEvent
        if event.tag not in (None, "!", _CORE + ("map" if mapping else "seq")):
            raise reader.unknown_tag(event.tag, line, column)
        if len(reader.open) >= MAX_DEPTH:
            raise reader.refuse(problems.DEPTH(MAX_DEPTH), line, column)
        before = reader.count
        reader.step(1, line, column)
        # an anchor that is opened again names nothing until its new value is complete
        reader.anchors.pop(event.anchor, None)
        value: Any = {} if mapping else []
        reader.open.append(_Open(value, {} if mapping else None, line, column, event.anchor, before))
    elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
        done = reader.open.pop()
        node = Node(done.value, done.line, done.column, done.keys)
        reader.add(node, reader.count - done.count, done.height, done.anchor)
    elif kind is yaml.DocumentStartEvent and reader.root is not None:
        raise reader.refuse(problems.SECOND_DOCUMENT(), line, column)


def _explained(error: yaml.MarkedYAMLError) -> str:
    problem = problems.NOT_YAML(error.problem or error.context or "unreadable")
    if "any token" in problem:
        return restated(f"{problem}; quote the text, and indent with spaces, not tabs", problem)
    if "flow" in (error.context or ""):
        # the usual slip: f32[3,5]{1,0} has brackets and commas of its own
        return restated(problem + "; inside [..] or {..} a layout text must be quoted", problem)
    return problem


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    kind = "empty value" if value is None else "truth value" if isinstance(value, bool) else "number"
    return f"the {kind} {'null' if value is None else str(value).lower()}"
